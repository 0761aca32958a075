"""The nodes of a simulated cluster: those that are set up, and idle ones, on which nothing happens.

A node stays idle while nothing provably happens there (``initial_state``) and nothing is asked of it. Otherwise it is
set up as at the start, its own events are run up to now, and from there on it runs with all other nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

from msgspec import Struct

from podqos.agent.events import PodBound
from podqos.agent.journal import Entry
from podqos.model.pod import Pod
from podqos.sim.cluster.known_nodes import KnownNodes
from podqos.sim.engine.event_queue import CLUSTER, EventQueue
from podqos.sim.idle.initial_state import InitialState, WorkloadPods
from podqos.sim.node.cpu_meter import CpuAccount
from podqos.sim.node.node import MakeColumns, NodeIdentity, Outside, SimNode
from podqos.sim.node.settings import SimNodeSettings
from podqos.sim.scenario.happenings import Happening, NodeAdded, NodeLost
from podqos.sim.scenario.replicas import Replica, is_there_first, numbers_by_node, places, pod_of
from podqos.sim.scenario.scenario import Scenario, ScenarioWorkload


class FleetOwner(Outside, Protocol):
    """What a fleet knows of the cluster."""

    scenario: Scenario
    queue: EventQueue

    def know(self, pod: Pod, name: str | None, replica: Replica) -> None:
        """Remember a pod that is there."""


class IdleNode(Struct, frozen=True):
    """A node that is not set up."""

    name: str
    initial: InitialState
    parts: tuple[WorkloadPods, ...]
    """Its pods."""


class Fleet:
    """All nodes, by name, in the order of the scenario."""

    def __init__(
        self,
        cluster: FleetOwner,
        known: KnownNodes,
        is_watched: Callable[[str], bool],
        columns: MakeColumns | None = None,
    ) -> None:
        self._cluster = cluster
        self._known = known
        self._is_watched = is_watched
        self._columns = columns
        self.touched: Callable[[SimNode], None] | None = None
        """Called with a node before something from outside happens to it."""
        self.step_waking: Callable[[SimNode], None] | None = None
        """Runs the next of the own events of a node that wakes, where somebody looks at them."""
        self.awake: dict[str, SimNode] = {}
        """Those that are set up."""
        self.idle: dict[str, IdleNode] = {}
        """Those that are not."""
        self._lost_accounts: list[CpuAccount] = []
        """Of machines that were lost."""
        self.initial_states = known.initial_states
        self.names: tuple[str, ...] = tuple(cluster.scenario.node_names)
        self._indexes = {name: index for index, name in enumerate(self.names)}
        self._set_up()

    def _set_up(self) -> None:
        """Set up the nodes, except idle ones that are not watched."""
        scenario = self._cluster.scenario
        first: dict[str, Happening] = {}
        for happening in sorted(scenario.happenings, key=lambda each: each.at_us):
            if isinstance(happening, NodeLost | NodeAdded):
                first.setdefault(happening.node, happening)
        kept_back = {name for name, each in first.items() if isinstance(each, NodeAdded)}
        busy = _busy(scenario)
        parts = self._first_parts()
        for name in self.names:
            if name in kept_back:
                continue
            if name not in busy and not self._is_watched(name):
                own = tuple(parts.get(name, ()))
                initial = self.initial_states.of_idle(self.settings(name), own) if self._may_idle(own) else None
                if initial is not None:
                    self.idle[name] = IdleNode(name, initial, own)
                    continue
            self.add(name)

    def _first_parts(self) -> dict[str, list[WorkloadPods]]:
        """Return which pods each node starts with, in the order in which they are bound."""
        found: dict[str, list[WorkloadPods]] = {}
        for index, workload in enumerate(self._cluster.scenario.workloads):
            if is_there_first(workload):
                for name, numbers in numbers_by_node(workload, self._known.turns(workload, self.names)):
                    found.setdefault(name, []).append(WorkloadPods(index, numbers))
        return found

    def _may_idle(self, parts: Sequence[WorkloadPods]) -> bool:
        """Whether to prove that a node is idle: where no other has its demands, columns are as quick.

        Where requests are answered it is not.
        """
        workloads = [self._cluster.scenario.workloads[part.workload] for part in parts]
        if self._known.has_services and any(workload.service is not None for workload in workloads):
            return False
        return self._columns is None or not any(
            workload.replicas <= len(workload.demands) > 1 for workload in workloads
        )

    # ---- who is there --------------------------------------------------------------------------------------------

    def is_present(self, name: str) -> bool:
        """Whether a node is present, awake or idle."""
        return name in self.awake or name in self.idle

    def numbered(self, index: int) -> tuple[SimNode, ...]:
        """Return the node with a number if it is awake; all of them for what concerns the cluster."""
        if index == CLUSTER:
            return tuple(self.awake.values())
        node = self.awake.get(self.names[index])
        return () if node is None else (node,)

    def settings(self, name: str) -> SimNodeSettings:
        """Return the settings of a node."""
        return self._known[name].settings

    def places(self, workload: ScenarioWorkload) -> Iterator[tuple[int, str]]:
        """Yield the numbers of the pods that are bound without asking, and their nodes."""
        return places(workload, self._known.turns(workload, self.names))

    def first_pods(self, workload: ScenarioWorkload) -> Iterator[tuple[int, str]]:
        """Yield the same of pods that are there from the beginning, without idle nodes."""
        return places(workload, self._known.turns(workload, self.names), left_out=self.idle)

    def get(self, name: str) -> SimNode | None:
        """Return a node, woken if necessary; None if it is away."""
        if name in self.idle:
            self._wake(name)
        node = self.awake.get(name)
        if self.touched is not None and node is not None:
            self.touched(node)
        return node

    def add(self, name: str) -> None:
        """Set up an empty node."""
        self.awake[name] = self._new(name, self._cluster.queue)

    def drop(self, name: str) -> None:
        """Remove a lost node."""
        lost = self.awake.pop(name, None)
        if lost is not None:
            self._lost_accounts += lost.world.cpu.ledger.accounts

    def cpu_accounts(self, end_us: int) -> tuple[CpuAccount, ...]:
        """Return what containers wanted of the CPU and got, where that is not the same; at the end of a run."""
        found = list(self._lost_accounts)
        for node in self.awake.values():
            node.world.cpu.close(end_us)
            found += node.world.cpu.ledger.accounts
        return tuple(sorted(found, key=lambda account: (account.started_us, account.pod, account.container)))

    def _new(self, name: str, queue: EventQueue) -> SimNode:
        cluster = self._cluster
        columns = None if self._is_watched(name) else self._columns
        options = cluster.scenario.options
        known = self._known[name]
        identity = NodeIdentity(self._indexes[name], name, known.loop_phase_us)
        return SimNode(identity, self.settings(name), options, queue, cluster, columns=columns)

    # ---- idle and waking --------------------------------------------------------------------------------------

    def wake_all_with(self, workload: ScenarioWorkload) -> None:
        """Wake the nodes on which pods of a workload run."""
        workloads = self._cluster.scenario.workloads
        for name, node in tuple(self.idle.items()):
            if any(workloads[part.workload] is workload for part in node.parts):
                self._wake(name)

    def idle_pods(self) -> Iterator[tuple[Pod, str, Replica]]:
        """Yield the pods on idle nodes, and where they are."""
        for node in self.idle.values():
            yield from ((pod, node.name, replica) for pod, replica in self._pods(node))

    def _wake(self, name: str) -> None:
        """Run a node's own events up to now, and add the rest to the common queue."""
        idle = self.idle.pop(name)
        queue = self._cluster.queue
        own = EventQueue(queue.until_us)
        self.awake[name] = node = self._new(name, own)
        for pod, replica in self._pods(idle):
            self._cluster.know(pod, name, replica)
            node.report(PodBound(pod))
        queue.take_over(own, own.step if self.step_waking is None else partial(self.step_waking, node))
        node.queue = queue

    def _pods(self, node: IdleNode) -> Iterator[tuple[Pod, Replica]]:
        for replica in self.initial_states.replicas(node.parts):
            yield pod_of(replica.workload, replica.number), replica

    def journal_of(self, node: IdleNode) -> Iterator[Entry]:
        """Yield the journal of an idle node."""
        return node.initial.entries(node.name, self.initial_states.keys(node.parts))


def _busy(scenario: Scenario) -> set[str]:
    """Return the nodes that something happens to at time 0."""
    return {
        happening.node for happening in scenario.happenings if isinstance(happening, NodeLost) and happening.at_us == 0
    }
