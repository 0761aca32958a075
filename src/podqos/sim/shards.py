"""A fleet in shards: nodes that do not interact can be simulated apart, on other cores and machines.

Nodes interact through the scheduler alone. So a fleet can be split if all its pods are bound without it, by ``nodes``
or ``spread``, and none is ever replaced by a pod that could go anywhere; a template that names its node has its pods
replaced there. The first is seen in the scenario (``together``), the second while it runs: a shard in which it happens
says so, and the fleet has to be simulated together.

A shard is the scenario of the whole fleet and the names of some of its nodes. Its journal is that of the whole fleet,
without the other nodes.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import Entry, encode, in_order
from podqos.placement.workloads import DAEMON_SET
from podqos.sim.cluster.cluster import LeavesShard
from podqos.sim.cluster.known_nodes import KnownNodes
from podqos.sim.node.cpu_meter import CpuAccount
from podqos.sim.node.recording import NodeRecord, Recorder
from podqos.sim.run import FinishedRun, Tallies, simulate
from podqos.sim.scenario.happenings import Drained
from podqos.sim.scenario.replicas import is_bound
from podqos.sim.scenario.scenario import Scenario, ScenarioWorkload
from podqos.sim.summary import RunSummary, run_summary


class TogetherReason(StrEnum):
    """Why the nodes of a fleet have to be simulated together."""

    SCHEDULED = "Scheduled"
    """The scheduler places the pods of a workload."""
    DAEMON_SET = "DaemonSet"
    """So it does with those of a DaemonSet."""
    CHANGED = "Changed"
    """A workload is rolled out or scaled."""
    REPLACED = "Replaced"
    """A controller made a pod that could go to any node."""
    AUTOSCALED = "Autoscaled"
    """An autoscaler changes workloads."""
    SERVICE = "Service"
    """The requests to a workload are divided among its pods on all nodes."""
    JOB = "Job"
    """What the controller of a Job or CronJob does depends on pods of all nodes."""
    DRAINED = "Drained"
    """A node is drained: budgets count the pods of all nodes."""
    ONE_NODE = "OneNode"
    """There is but one."""


class Together(Struct, frozen=True, gc=False):
    """Why a fleet is not split."""

    because: TogetherReason
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
    if len(scenario.node_names) == 1:
        return Together(TogetherReason.ONE_NODE)
    if scenario.has_actors:
        return Together(TogetherReason.AUTOSCALED, next(scenario.actor_names))
    for happening in scenario.happenings:
        if isinstance(happening, Drained):
            return Together(TogetherReason.DRAINED, happening.node)
    for workload in scenario.workloads:
        if workload.kind == DAEMON_SET:
            return Together(TogetherReason.DAEMON_SET, _name(workload))
        if not is_bound(workload):
            return Together(TogetherReason.SCHEDULED, _name(workload))
        if workload.service is not None:
            return Together(TogetherReason.SERVICE, _name(workload))
        if _is_counted(workload):
            return Together(TogetherReason.JOB, _name(workload))
    for change in scenario.workload_changes:
        return Together(TogetherReason.CHANGED, change.workload.partition("/")[2], change.at_us)
    return None


def _is_counted(workload: ScenarioWorkload) -> bool:
    """Whether a controller certainly counts the pods of a workload; it does so with any Job of which a pod fails."""
    if workload.job is None or not workload.recreate:
        return False
    is_due = workload.cron is not None or workload.job.active_deadline_seconds is not None or workload.job.suspend
    ends = (demand.ends for demands in workload.demands for demand in demands.values())
    return bool(is_due) or any(ends)


def shard(scenario: Scenario, names: Collection[str]) -> Scenario:
    """Return a scenario of which these nodes only are simulated, with their pods."""
    here = frozenset(names)
    return replace(
        scenario,
        only=tuple(name for name in scenario.node_names if name in here),
        happenings=tuple(happening for happening in scenario.happenings if happening.node in here),
    )


def run_shard(scenario: Scenario, recorded: Collection[str] = (), *, check: bool = False) -> ShardRun | Together:
    """Run a shard, or return the pod that could have left it. ``recorded`` are the nodes to record, of any shard.

    One node is simulated after the other: it stays in the processor's caches, and memory does not grow with the shard.
    """
    with _leaving_nothing(generation=1):
        return _run(scenario, KnownNodes(scenario), Recorder(only=recorded), check=check)


def _run(scenario: Scenario, known: KnownNodes, recorder: Recorder, *, check: bool) -> ShardRun | Together:
    entries: list[Entry] = []
    tallies: list[Tallies] = []
    cpu: list[CpuAccount] = []
    for name in scenario.node_names:
        watching = recorder if recorder.records(name) else None
        with _leaving_nothing():
            try:
                run = simulate(shard(scenario, (name,)), recorder=watching, check=check, known=known)
            except LeavesShard as left:
                because = TogetherReason.JOB if left.is_counted else TogetherReason.REPLACED
                return Together(because, left.pod, left.time_us)
            entries += run.entries
            tallies.append(run.tallies)
            cpu += run.cpu
            del run
    entries.sort(key=in_order)
    whole = FinishedRun(scenario, entries, scenario.duration_us, total(tallies), cpu=tuple(cpu))
    return ShardRun(encode(entries), whole.tallies, run_summary(whole), dict(recorder.nodes))


@contextmanager
def _leaving_nothing(generation: int = 0) -> Iterator[None]:
    """Free what a run leaves: its nodes refer to each other and to themselves.

    All that it made is young, because nothing is collected meanwhile; what was there during the runs of others is one
    generation older.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.collect(generation)
        if was_enabled:
            gc.enable()


def total(runs: Iterable[Tallies]) -> Tallies:
    """Add up how much happened in all shards."""
    kinds: Counter[str] = Counter()
    events = 0
    for run in runs:
        events += run.events
        kinds.update(run.kinds)
    return Tallies(events, dict(sorted(kinds.items())))


def _name(workload: ScenarioWorkload) -> str:
    return f"{workload.namespace}/{workload.name}"
