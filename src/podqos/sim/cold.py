"""Nodes on which nothing happens: known by name, by their pods' workloads, and by one beginning for all that are alike.

A node is cold from the beginning if ``quiet`` proves that nothing can happen there until the end. Its pods are then
never made one by one. What its kubelet decides at the beginning is decided once for all nodes of the same make with the
same pods, by the agent itself; its journal is that decision with other names. When somebody does something to the node
(places a pod there, deletes one, breaks the machine) it is simulated from its beginning (``cluster``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import Because
from podqos.model.pod import Pod
from podqos.placement.workloads import DAEMON_SET
from podqos.sim.node_settings import NodeSettings
from podqos.sim.node_world import NodeWorld
from podqos.sim.peaks import Peaks
from podqos.sim.quiet import Bounds, Load, Trial
from podqos.sim.replicas import named, pod_name
from podqos.sim.scenario import NodeLost, Scenario, ScenarioWorkload
from podqos.sim.would_evict import MemoryRequests


class Part(Struct, frozen=True, gc=False):
    """The replicas of one workload on one node."""

    workload: int
    """Its place in the scenario."""
    numbers: Sequence[int]


class Line(Struct, frozen=True, gc=False):
    """An entry of a journal without the names."""

    time_us: int
    kind: Kind
    pod: int | None
    """The how manyeth of the node's pods."""
    container: str | None
    by: By | None
    because: Because | None


class Beginning(Struct, frozen=True):
    """How nodes of one make with the same pods begin."""

    lines: tuple[Line, ...]
    world: NodeWorld
    """Such a node, with idle pods."""


class ColdNode(Struct, frozen=True):
    """A node on which nothing happens."""

    name: str
    beginning: Beginning
    parts: tuple[Part, ...]

    def entries(self, scenario: Scenario) -> Iterator[Entry]:
        """Yield its journal."""
        keys = [
            f"{workload.pod.metadata.namespace or 'default'}/{pod_name(workload, number)}"
            for workload, number in replicas(scenario, self.parts)
        ]
        name = self.name
        for line in self.beginning.lines:
            key = None if line.pod is None else keys[line.pod]
            yield Entry(line.time_us, name, line.kind, key, line.container, line.by, line.because)


def replicas(scenario: Scenario, parts: Sequence[Part]) -> Iterator[tuple[ScenarioWorkload, int]]:
    """Yield workload and number of the pods of a node, in the order in which they were bound."""
    for part in parts:
        workload = scenario.workloads[part.workload]
        for number in part.numbers:
            yield workload, number


def is_there_first(workload: ScenarioWorkload) -> bool:
    """Whether a workload is there from the beginning, on nodes that are known in advance."""
    is_bound = bool(workload.nodes) or workload.spread
    return is_bound and workload.arrives_us == 0 and workload.deleted_us != 0 and workload.kind != DAEMON_SET


def first_pods(scenario: Scenario, names: Sequence[str]) -> dict[str, list[Part]]:
    """Return the parts of workloads that each node begins with; ``names`` are those of all nodes."""
    found: dict[str, list[Part]] = {}
    for index, workload in enumerate(scenario.workloads):
        if not is_there_first(workload):
            continue
        turns = workload.nodes or names
        if len(set(turns)) == len(turns):
            for turn, name in zip(range(workload.replicas), turns, strict=False):
                found.setdefault(name, []).append(Part(index, range(turn, workload.replicas, len(turns))))
        else:
            numbers: dict[str, list[int]] = {}
            for number in range(workload.replicas):
                numbers.setdefault(turns[number % len(turns)], []).append(number)
            for name, own in numbers.items():
                found.setdefault(name, []).append(Part(index, tuple(own)))
    return found


def cold_nodes(
    scenario: Scenario,
    parts: Mapping[str, Sequence[Part]],
    settings: Mapping[str, NodeSettings],
    requests: MemoryRequests,
    is_watched: Callable[[str], bool],
) -> dict[str, ColdNode]:
    """Return the nodes on which nothing happens by itself, and that nobody watches.

    ``parts`` are the ``first_pods``, ``settings`` those of the nodes that are there at the beginning.
    """
    busy = set(_busy(scenario, settings))
    proof = _Proof(scenario, requests)
    found: dict[str, ColdNode] = {}
    for name, own in settings.items():
        if name not in busy and not is_watched(name):
            cold = proof.cold(name, own, tuple(parts.get(name, ())))
            if cold is not None:
                found[name] = cold
    return found


def _busy(scenario: Scenario, names: Mapping[str, object]) -> Iterator[str]:
    """Yield nodes to which something is done at the very beginning."""
    for workload in scenario.workloads:
        if workload.arrives_us == 0 and not is_there_first(workload):
            yield from workload.nodes
            if workload.spread:
                yield from names
    for happening in scenario.happenings:
        if isinstance(happening, NodeLost) and happening.at_us == 0:
            yield happening.node


class _Proof:
    """Finds out which nodes are quiet; nodes that are alike are looked at once."""

    def __init__(self, scenario: Scenario, requests: MemoryRequests) -> None:
        self._scenario = scenario
        self._requests = requests
        self._peaks = Peaks(scenario.duration_us)
        self._bounds: dict[int, Bounds] = {}
        self._beginnings: dict[tuple[int, tuple[tuple[int, int], ...]], Beginning | None] = {}
        self._loads: dict[tuple[int, int, int], Load | None] = {}
        self._answers: dict[tuple[int, tuple[tuple[int, ...], ...]], bool] = {}

    def cold(self, name: str, settings: NodeSettings, parts: tuple[Part, ...]) -> ColdNode | None:
        """Return the node if nothing can happen there."""
        beginning = self._beginning(settings, parts)
        if beginning is None:
            return None
        kinds = tuple(self._kinds(part) for part in parts)
        key = id(beginning), kinds
        if key not in self._answers:
            self._answers[key] = self._is_quiet(settings, beginning, parts, kinds)
        return ColdNode(name, beginning, parts) if self._answers[key] else None

    def _kinds(self, part: Part) -> tuple[int, ...]:
        """Return which of the workload's demands its replicas here have."""
        count = len(self._scenario.workloads[part.workload].demands)
        return (0,) if count == 1 else tuple(number % count for number in part.numbers)

    def _beginning(self, settings: NodeSettings, parts: tuple[Part, ...]) -> Beginning | None:
        key = id(settings), tuple((part.workload, len(part.numbers)) for part in parts)
        if key not in self._beginnings:
            self._beginnings[key] = self._begin(settings, parts)
        return self._beginnings[key]

    def _begin(self, settings: NodeSettings, parts: tuple[Part, ...]) -> Beginning | None:
        trial = Trial(settings, self._requests)
        pods: dict[str, int] = {}
        for workload, number in replicas(self._scenario, parts):
            pod = named(workload.pod, pod_name(workload, number))
            pods[pod.key] = len(pods)
            trial.bind(pod, {})
        if not trial.settle():
            return None
        lines = (_line(entry, pods) for entry in trial.written)
        return Beginning(tuple(lines), trial.node.world)

    def _is_quiet(
        self,
        settings: NodeSettings,
        beginning: Beginning,
        parts: tuple[Part, ...],
        kinds: tuple[tuple[int, ...], ...],
    ) -> bool:
        if id(settings) not in self._bounds:
            self._bounds[id(settings)] = Bounds(settings, self._requests, self._peaks)
        loads: list[Load] = []
        for part, own in zip(parts, kinds, strict=True):
            of_part = [self._load(settings, part.workload, kind) for kind in own]
            known = [load for load in of_part if load is not None]
            if len(known) < len(of_part):
                return False
            loads += known * (len(part.numbers) if len(own) == 1 else 1)
        return self._bounds[id(settings)].are_kept(beginning.world, loads)

    def _load(self, settings: NodeSettings, index: int, kind: int) -> Load | None:
        key = id(settings), index, kind
        if key not in self._loads:
            workload = self._scenario.workloads[index]
            pod: Pod = named(workload.pod, workload.name)
            self._loads[key] = self._bounds[id(settings)].load(pod, workload.demands[kind])
        return self._loads[key]


def _line(entry: Entry, pods: Mapping[str, int]) -> Line:
    pod = None if entry.pod is None else pods[entry.pod]
    return Line(entry.time_us, entry.kind, pod, entry.container, entry.by, entry.because)
