"""The initial state of nodes on which nothing happens, computed once for all equal ones.

What the kubelet decides at the start (which pods it admits, with which scores) depends on the machine and on the pods'
specs, not on names or demands. So the agent decides on one node, and the journal of all others is the same under other
names. ``idle_bounds`` proves that a node is one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat

from msgspec import Struct

from podqos.agent.journal import Entry
from podqos.sim.idle.idle_bounds import Held, IdleBounds, Load
from podqos.sim.idle.peaks import Peaks
from podqos.sim.idle.probe import IdleProbe
from podqos.sim.node.settings import SimNodeSettings
from podqos.sim.node.world import NodeWorld
from podqos.sim.node.would_evict import MemoryRequests
from podqos.sim.scenario.replicas import Replica, name_of, pod_of
from podqos.sim.scenario.scenario import Scenario


class WorkloadPods(Struct, frozen=True, gc=False):
    """The pods of one workload on one node."""

    workload: int
    """Its place in the scenario."""
    numbers: Sequence[int]


class InitialState(Struct, frozen=True):
    """The initial state of equal nodes with the same pods."""

    written: tuple[Entry, ...]
    """The journal of one of them."""
    places: Mapping[str, int]
    """By key: its pods, in the order in which they were bound."""
    world: NodeWorld
    """Such a node; its pods are idle."""

    def entries(self, node: str, keys: Sequence[str]) -> Iterator[Entry]:
        """Yield the journal of a node whose pods have these keys."""
        for entry in self.written:
            key = None if entry.pod is None else keys[self.places[entry.pod]]
            yield Entry(entry.time_us, node, entry.kind, key, entry.container, entry.by, entry.because)


class InitialStates:
    """The initial states of the idle nodes of one scenario."""

    def __init__(self, scenario: Scenario, requests: MemoryRequests) -> None:
        self._workloads = scenario.workloads
        self._requests = requests
        self.peaks = Peaks(scenario.duration_us)
        self._bounds: dict[int, IdleBounds] = {}
        self._states: dict[tuple[int, tuple[tuple[int, int], ...]], InitialState | None] = {}
        self._loads: dict[tuple[int, int, int], Load | None] = {}
        self._answers: dict[tuple[int, tuple[tuple[int, ...], ...]], bool] = {}

    def of_idle(self, settings: SimNodeSettings, parts: Sequence[WorkloadPods]) -> InitialState | None:
        """Return the initial state of a node on which nothing else happens until the end; None if something could."""
        key = id(settings), tuple((part.workload, len(part.numbers)) for part in parts)
        if key not in self._states:
            self._states[key] = self._probed(settings, parts)
        initial = self._states[key]
        if initial is None:
            return None
        kinds = tuple(self._kinds(part) for part in parts)
        asked = id(initial), kinds
        if asked not in self._answers:
            self._answers[asked] = self._is_idle(settings, initial, parts, kinds)
        return initial if self._answers[asked] else None

    def held(self, settings: SimNodeSettings, parts: Sequence[WorkloadPods]) -> dict[str, Held]:
        """Return what the sums of an idle node consist of, by name."""
        bounds = self._bounds_of(settings)
        kinds = tuple(self._kinds(part) for part in parts)
        loads = [*self._loads_of(bounds, id(settings), parts, kinds)]
        return bounds.held([load for load in loads if load is not None])

    def kinds(self, parts: Sequence[WorkloadPods]) -> tuple[object, ...]:
        """Return what is the same for nodes whose pods want the same."""
        return tuple((part.workload, len(part.numbers), self._kinds(part)) for part in parts)

    def keys(self, parts: Sequence[WorkloadPods]) -> list[str]:
        """Return the keys of a node's pods, in the order in which they were bound."""
        return [
            f"{replica.workload.pod.metadata.namespace_or_default}/{name_of(replica.workload, replica.number)}"
            for replica in self.replicas(parts)
        ]

    def replicas(self, parts: Sequence[WorkloadPods]) -> Iterator[Replica]:
        """Yield where a node's pods come from, in the order in which they were bound."""
        for part in parts:
            workload = self._workloads[part.workload]
            for number in part.numbers:
                yield Replica(workload, number, (part.workload, number))

    def _kinds(self, part: WorkloadPods) -> tuple[int, ...]:
        """Return which of their workload's demands pods have; once, if all have the same."""
        count = len(self._workloads[part.workload].demands)
        return (0,) if count == 1 else tuple(number % count for number in part.numbers)

    def _probed(self, settings: SimNodeSettings, parts: Sequence[WorkloadPods]) -> InitialState | None:
        probe = IdleProbe(settings, self._requests)
        places: dict[str, int] = {}
        for replica in self.replicas(parts):
            pod = pod_of(replica.workload, replica.number)
            places[pod.key] = len(places)
            probe.bind(pod, {})
        if not probe.settle():
            return None
        return InitialState(tuple(probe.written), places, probe.node.world)

    def _is_idle(
        self,
        settings: SimNodeSettings,
        initial: InitialState,
        parts: Sequence[WorkloadPods],
        kinds: tuple[tuple[int, ...], ...],
    ) -> bool:
        bounds = self._bounds_of(settings)
        loads: list[Load] = []
        for load in self._loads_of(bounds, id(settings), parts, kinds):
            if load is None:
                return False
            loads.append(load)
        return bounds.are_kept(initial.world, loads)

    def _bounds_of(self, settings: SimNodeSettings) -> IdleBounds:
        bounds = self._bounds.get(id(settings))
        if bounds is None:
            bounds = self._bounds[id(settings)] = IdleBounds(settings, self._requests, self.peaks)
        return bounds

    def _loads_of(
        self, bounds: IdleBounds, make: int, parts: Sequence[WorkloadPods], kinds: tuple[tuple[int, ...], ...]
    ) -> Iterator[Load | None]:
        """Yield what each pod adds to its node; None for one to which something can happen."""
        for part, own in zip(parts, kinds, strict=True):
            for kind in own:
                load = self._load(bounds, make, part.workload, kind)
                yield from repeat(load, len(part.numbers) if len(own) == 1 else 1)

    def _load(self, bounds: IdleBounds, make: int, index: int, kind: int) -> Load | None:
        if (make, index, kind) not in self._loads:
            workload = self._workloads[index]
            self._loads[make, index, kind] = bounds.load(pod_of(workload, 0), workload.demands[kind])
        return self._loads[make, index, kind]
