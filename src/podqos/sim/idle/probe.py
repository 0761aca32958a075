"""A node to try pods on: its initial state with them, and what they add to its sums.

It is an ordinary ``SimNode``, but its time stays at 0 and it is not part of a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping

from podqos.agent.events import PodBound, PodDeleted
from podqos.agent.journal import Entry, Kind
from podqos.eviction.signals import NodeCondition
from podqos.model.pod import Pod
from podqos.model.time_units import SECOND_US
from podqos.sim.engine.event_queue import EventQueue
from podqos.sim.node.node import NodeIdentity, SimNode
from podqos.sim.node.pods import DemandOf
from podqos.sim.node.settings import SimNodeSettings
from podqos.sim.node.would_evict import MemoryRequests
from podqos.sim.scenario.demand import IDLE, ContainerDemand
from podqos.sim.scenario.scenario import Options

Demands = Mapping[str, ContainerDemand]
"""What a pod wants, by container."""

_BEGINNING = frozenset({Kind.ADMITTED, Kind.STARTED, Kind.EXITED})
"""The journal entries of a pod that is admitted and runs; its init containers end."""

_FIRST_PASS_US = 10 * SECOND_US - 1
"""When the eviction loop would run first: not at 0."""


class IdleProbe:
    """Such a node."""

    def __init__(self, settings: SimNodeSettings, requests: MemoryRequests) -> None:
        self.requests = requests
        self.written: list[Entry] = []
        self._is_disturbed = False
        self._demands: dict[str, Demands] = {}
        self._queue = EventQueue(0)
        identity = NodeIdentity(0, settings.spec.name, _FIRST_PASS_US)
        self.node = SimNode(identity, settings, Options(), self._queue, self)

    def bind(self, pod: Pod, demands: Demands) -> None:
        """Run a pod, as at the start of a scenario."""
        self._demands[pod.metadata.uid] = demands
        self.node.report(PodBound(pod))

    def settle(self) -> bool:
        """Run all events at time 0; return whether pods only started."""
        while self._queue.next is not None:
            self._queue.step()
        return not self._is_disturbed and all(entry.kind in _BEGINNING for entry in self.written)

    def remove(self, pod: Pod) -> None:
        """Remove a pod and all traces of it."""
        self.node.report(PodDeleted(pod.metadata.uid))
        self.settle()
        self.written.clear()
        self._is_disturbed = False

    # ---- what a node says to those around it (``node.Outside``) --------------------------------------------------

    def write(self, entry: Entry) -> None:
        """Keep an entry."""
        self.written.append(entry)

    def demand_of(self, pod: Pod) -> DemandOf:
        """Return what a pod wants."""
        demands = self._demands[pod.metadata.uid]
        return lambda container: demands.get(container, IDLE)

    def images_ready_us(self, name: str) -> dict[str, int]:  # noqa: ARG002 - no images are pulled here
        """Return no images."""
        return {}

    def left(self, node: SimNode, pod: Pod, *, rejected: bool) -> None:  # noqa: ARG002 - that it was said is enough
        """Take note that a pod does not run."""
        self._is_disturbed = True

    def readiness_changed(self, uid: str) -> None:
        """Nobody asks for it."""

    def condition(self, node: SimNode, condition: NodeCondition, *, holds: bool) -> None:  # noqa: ARG002 - as above
        """Take note of a condition."""
        self._is_disturbed = True

    def lost(self, node: SimNode) -> None:  # noqa: ARG002 - as above
        """Take note that the machine has died."""
        self._is_disturbed = True
