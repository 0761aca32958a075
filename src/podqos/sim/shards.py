"""A fleet in shards: nodes that do not interact can be simulated apart, on other cores and machines.

Nodes interact through the scheduler alone. So a fleet can be split if all its pods are bound without it, by ``nodes``
or ``spread``, and none is ever replaced by a pod that could go anywhere; a template that names its node has its pods
replaced there. The first is seen in the scenario (``together``), the second while it runs: a shard in which it happens
says so, and the fleet has to be simulated together.

A shard is a scenario with some of the nodes and their pods, under the same names and numbers. Its journal is that of
the whole fleet, without the other nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import encode
from podqos.placement.workloads import DAEMON_SET
from podqos.sim.cluster.cluster import LeavesShard
from podqos.sim.node.recording import NodeRecord, Recorder
from podqos.sim.recorded_node import node_names
from podqos.sim.run import Tallies, simulate
from podqos.sim.scenario.replicas import is_bound
from podqos.sim.scenario.scenario import ELSEWHERE, NodeGroup, Scenario, ScenarioWorkload
from podqos.sim.summary import RunSummary, run_summary


class Because(StrEnum):
    """Why the nodes of a fleet have to be simulated together."""

    SCHEDULED = "Scheduled"
    """The scheduler places the pods of a workload."""
    DAEMON_SET = "DaemonSet"
    """So it does with those of a DaemonSet."""
    REPLACED = "Replaced"
    """A controller made a pod that could go to any node."""
    ONE_NODE = "OneNode"
    """There is but one."""


class Together(Struct, frozen=True, gc=False):
    """Why a fleet is not split."""

    because: Because
    what: str = ""
    """The workload, or the replacement that was made: ``namespace/name``."""
    time_us: int = 0
    """When it was made."""


class ShardRun(Struct, frozen=True):
    """What is kept of the run of a shard. The journal is text, and can be put aside."""

    journal: bytes
    tallies: Tallies
    summary: RunSummary
    records: dict[str, NodeRecord]


def together(scenario: Scenario) -> Together | None:
    """Return why a scenario cannot be split; None if it can, unless a pod is replaced."""
    if sum(group.count for group in scenario.nodes) == 1:
        return Together(Because.ONE_NODE)
    for workload in scenario.workloads:
        if workload.kind == DAEMON_SET:
            return Together(Because.DAEMON_SET, _name(workload))
        if not is_bound(workload):
            return Together(Because.SCHEDULED, _name(workload))
    return None


def shard(scenario: Scenario, names: Collection[str]) -> Scenario:
    """Return a scenario with these nodes only, and the pods on them."""
    here = frozenset(names)
    every = tuple(name if name in here else ELSEWHERE for name in node_names(scenario))

    def part(workload: ScenarioWorkload) -> ScenarioWorkload:
        own = tuple(name if name in here else ELSEWHERE for name in workload.nodes)
        return replace(workload, nodes=own or every, spread=False)

    return replace(
        scenario,
        nodes=tuple(piece for group in scenario.nodes for piece in _pieces(group, here)),
        workloads=tuple(map(part, scenario.workloads)),
        happenings=tuple(each for each in scenario.happenings if each.node in here),
        is_shard=True,
    )


def run_shard(scenario: Scenario, recorded: Sequence[str] = (), *, check: bool = False) -> ShardRun | Together:
    """Run a shard, or return the pod that could have left it. ``recorded`` are the nodes to record, of any shard."""
    own = [name for name in node_names(scenario) if name in recorded]
    recorder = Recorder(only=own)
    try:
        run = simulate(scenario, recorder=recorder if own else None, check=check)
    except LeavesShard as left:
        return Together(Because.REPLACED, left.pod, left.time_us)
    return ShardRun(encode(run.entries), run.tallies, run_summary(run), dict(recorder.nodes))


def total(runs: Iterable[Tallies]) -> Tallies:
    """Add up how much happened in all shards."""
    kinds: Counter[str] = Counter()
    events = 0
    for each in runs:
        events += each.events
        kinds.update(each.kinds)
    return Tallies(events, dict(sorted(kinds.items())))


def _pieces(group: NodeGroup, here: Collection[str]) -> Iterator[NodeGroup]:
    """Yield the parts of a group that are here, each without gaps."""
    begin: int | None = None
    for index in range(group.count + 1):
        is_here = index < group.count and group.name_of(index) in here
        if is_here and begin is None:
            begin = index
        elif not is_here and begin is not None:
            whole = index - begin == group.count
            first = group.first if whole else (group.first or 0) + begin
            yield replace(group, count=index - begin, first=first)
            begin = None


def _name(workload: ScenarioWorkload) -> str:
    return f"{workload.namespace}/{workload.name}"
