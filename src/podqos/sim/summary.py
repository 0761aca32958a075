"""How a run ended, per workload, counted from its journal alone.

The shape is part of what ``podqos simulate -o json`` prints: fields are added, never renamed or removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import Entry, Kind
from podqos.agent.reasons import CPUThrottled, OOMKill, ReplacementFor, ThrottledBy, cause_of
from podqos.model.pod import QOSClass
from podqos.qos.classes import qos_class_of
from podqos.sim.run import FinishedRun
from podqos.sim.scenario.scenario import Scenario

# From this many evictions of the same pod, under whatever name, a line of its own.
_REPEATED = 3
_ADDED_UP = ("pods", "untouched", "oom_kills", "evictions", "restarts", "rejections", "downtime_us")
# What ends a pod, or a container of it, until a replacement starts.
_TAKEN = (Kind.OOM_KILLED, Kind.EVICTED, Kind.PREEMPTED, Kind.REJECTED, Kind.LOST)
_ENDED = (Kind.EXITED, Kind.STOPPED, Kind.SUCCEEDED, Kind.FAILED)
_DECIDED = (Kind.OOM_KILLED, Kind.EVICTED, Kind.WOULD_EVICT)

_GONE = (Kind.EVICTED, Kind.PREEMPTED, Kind.DELETED, Kind.STOPPED, Kind.SUCCEEDED, Kind.FAILED, Kind.CLEANED_UP)


class RepeatedEvictions(Struct, frozen=True, rename="camel"):
    """A pod that was evicted again each time it was replaced."""

    pod: str
    """Its first name."""
    times: int
    first_us: int
    last_us: int


class WorkloadSummary(Struct, frozen=True, rename="camel"):
    """How a workload fared, on all nodes."""

    workload: str
    qos_class: QOSClass
    priority: int
    pods: int
    """How many of its pods ran or were rejected; a replacement is the pod it stands for."""
    untouched: int
    """Of those: neither killed nor evicted nor rejected, and never replaced."""
    oom_kills: int
    evictions: int
    restarts: int
    rejections: int
    downtime_us: int
    """Summed over its pods: from being killed, evicted or lost until running again."""
    throttled_us: int
    """Summed over its pods: how long it got less CPU than it wanted."""


class RunSummary(Struct, frozen=True, rename="camel"):
    """How the run ended."""

    nodes: int
    pods: int
    untouched: int
    oom_kills: int
    evictions: int
    restarts: int
    rejections: int
    downtime_us: int
    oom_kills_by_level: dict[str, int]
    """Where memory ran out: container, pod, class, kubepods, node."""
    evictions_by_signal: dict[str, int]
    workloads: tuple[WorkloadSummary, ...]
    repeated_evictions: tuple[RepeatedEvictions, ...] = ()
    """Three times or more, most often first."""


class Owner(Struct, frozen=True, gc=False):
    """The workload of a pod."""

    workload: str
    """``namespace/name``."""
    qos_class: QOSClass
    priority: int


class SplitRun(FinishedRun, frozen=True):
    """A run of which parts were counted apart."""

    summary: RunSummary


def run_summary(run: FinishedRun) -> RunSummary:
    """Count a run, on all its nodes."""
    if isinstance(run, SplitRun):
        return run.summary
    scenario = run.scenario
    owners = _owners(scenario, run.entries)
    return summarized(run.entries, owners, nodes=len(scenario.node_names), end_us=run.end_us)


def _owners(scenario: Scenario, entries: Iterable[Entry]) -> dict[str, Owner]:
    """Return the workload of every pod in a journal, in the order of the scenario."""
    workloads = [(f"{each.namespace}/{each.name}", each) for each in scenario.workloads]
    keys = dict.fromkeys(entry.pod for entry in entries if entry.pod is not None)
    found: dict[str, list[str]] = {name: [] for name, _ in workloads}
    for key in keys:
        owner = workload_of(key, found)
        if owner is not None:
            found[owner].append(key)
    return {
        key: Owner(name, qos_class_of(workload.pod, scenario.profile), workload.pod.spec.priority or 0)
        for name, workload in workloads
        for key in found[name]
    }


def workload_of(pod: str, workloads: Container[str]) -> str | None:
    """Return the workload of a pod by its name, which begins with the workload's."""
    name = pod
    while name not in workloads:
        name, dash, _ = name.rpartition("-")
        if not dash:
            return None
    return name


def summarized(entries: Iterable[Entry], owners: Mapping[str, Owner], *, nodes: int, end_us: int) -> RunSummary:
    """Count a run. ``owners`` are by key of the pod, in the order in which to list their workloads."""
    tallies: dict[str, _Tally] = {}
    for owner in owners.values():
        tallies.setdefault(owner.workload, _Tally(owner))
    levels: Counter[str] = Counter()
    signals: Counter[str] = Counter()
    entries = _with_lost_pods(list(entries))
    for entry in entries:
        if entry.pod is None or entry.pod not in owners:
            continue
        tallies[owners[entry.pod].workload].take(entry)
        if entry.kind in _DECIDED:
            cause = cause_of(entry.because)
            if cause is not None:
                (levels if isinstance(entry.because, OOMKill) else signals)[cause] += 1
    rows = tuple(tally.row(end_us) for tally in tallies.values())
    return RunSummary(
        nodes=nodes,
        **{name: sum(getattr(row, name) for row in rows) for name in _ADDED_UP},
        oom_kills_by_level=dict(sorted(levels.items())),
        evictions_by_signal=dict(sorted(signals.items())),
        workloads=rows,
        repeated_evictions=_repeated(entries),
    )


def _with_lost_pods(entries: list[Entry]) -> list[Entry]:
    """Return a journal that says of each pod on a lost node, too, that it is lost."""
    if not any(entry.kind is Kind.LOST for entry in entries):
        return entries
    found: list[Entry] = []
    running: dict[str, dict[str, None]] = {}
    for entry in entries:
        found.append(entry)
        pods = running.setdefault(entry.node, {})
        if entry.pod is None and entry.kind is Kind.LOST:
            found += (replace(entry, pod=pod) for pod in pods)
            pods.clear()
        elif entry.pod is not None and entry.container is None:
            if entry.kind is Kind.STARTED:
                pods[entry.pod] = None
            elif entry.kind in _GONE:
                pods.pop(entry.pod, None)
    return found


def added_up(parts: Sequence[RunSummary], scenario: Scenario) -> RunSummary:
    """Return the summary of a fleet from those of its parts, which have no pods in common."""
    rows: dict[str, list[WorkloadSummary]] = {f"{each.namespace}/{each.name}": [] for each in scenario.workloads}
    for part in parts:
        for row in part.workloads:
            rows[row.workload].append(row)
    repeated = (each for part in parts for each in part.repeated_evictions)
    return RunSummary(
        **{name: sum(getattr(part, name) for part in parts) for name in ("nodes", *_ADDED_UP)},
        oom_kills_by_level=_counts(part.oom_kills_by_level for part in parts),
        evictions_by_signal=_counts(part.evictions_by_signal for part in parts),
        workloads=tuple(
            replace(same[0], **{name: sum(getattr(row, name) for row in same) for name in (*_ADDED_UP, "throttled_us")})
            for same in rows.values()
            if same
        ),
        repeated_evictions=tuple(sorted(repeated, key=_most_first)),
    )


def _counts(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(sorted(total.items()))


def _most_first(each: RepeatedEvictions) -> tuple[int, str]:
    return -each.times, each.pod


def first_pods(entries: Iterable[Entry]) -> dict[str, str]:
    """Return for every replacement the pod that was there first."""
    found: dict[str, str] = {}
    for entry in entries:
        if entry.pod is not None and isinstance(entry.because, ReplacementFor):
            found[entry.pod] = found.get(entry.because.pod, entry.because.pod)
    return found


def _repeated(entries: Sequence[Entry]) -> tuple[RepeatedEvictions, ...]:
    """Return the pods that were evicted repeatedly, under whatever names."""
    firsts = first_pods(entries)
    times: dict[str, list[int]] = {}
    for entry in entries:
        if entry.kind is Kind.EVICTED and entry.pod is not None:
            times.setdefault(firsts.get(entry.pod, entry.pod), []).append(entry.time_us)
    found = (RepeatedEvictions(pod, len(at), at[0], at[-1]) for pod, at in times.items() if len(at) >= _REPEATED)
    return tuple(sorted(found, key=_most_first))


class _Tally:
    """The running counts of one workload."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._pods: set[str] = set()
        self._touched: set[str] = set()
        self._kinds: Counter[Kind] = Counter()
        self._waits: dict[tuple[str, str | None], int] = {}
        """Since when a pod, or a container of it, is missing."""
        self._stands_for: dict[str, str] = {}
        """The pod that is still missing, by its replacement."""
        self._firsts: dict[str, str] = {}
        """The pod that was there first, by its replacements."""
        self._downtime_us = 0
        self._short_since: dict[tuple[str, str | None], int] = {}
        self._throttled_us = 0

    def take(self, entry: Entry) -> None:
        """Count an entry."""
        kind, pod = entry.kind, entry.pod
        assert pod is not None
        if kind is Kind.STARTED:
            self._pods.add(self._firsts.get(pod, pod))
            if entry.container is None:
                self._started(pod, None, entry.time_us)
        elif kind is Kind.RESTARTED:
            self._kinds[kind] += 1
            self._started(pod, entry.container, entry.time_us)
        elif kind in _TAKEN:
            self._kinds[kind] += 1
            first = self._firsts.get(pod, pod)
            self._pods.add(first)
            self._touched.add(first)
            self._taken(pod, entry.container, entry.time_us)
            self._no_longer_short(entry)
        elif kind in _ENDED:
            self._no_longer_short(entry)
        elif isinstance(entry.because, ReplacementFor):
            self._firsts[pod] = self._firsts.get(entry.because.pod, entry.because.pod)
            self._stands_for[pod] = self._stands_for.get(entry.because.pod, entry.because.pod)
        elif isinstance(entry.because, CPUThrottled):
            self._throttled(entry, entry.because)

    def row(self, end_us: int) -> WorkloadSummary:
        """Return what has been counted."""
        kinds = self._kinds
        return WorkloadSummary(
            workload=self._owner.workload,
            qos_class=self._owner.qos_class,
            priority=self._owner.priority,
            pods=len(self._pods),
            untouched=len(self._pods - self._touched),
            oom_kills=kinds[Kind.OOM_KILLED],
            evictions=kinds[Kind.EVICTED],
            restarts=kinds[Kind.RESTARTED],
            rejections=kinds[Kind.REJECTED],
            downtime_us=self._downtime_us + sum(end_us - since for since in self._waits.values()),
            throttled_us=self._throttled_us + sum(end_us - since for since in self._short_since.values()),
        )

    def _taken(self, pod: str, container: str | None, time_us: int) -> None:
        """Start counting; a pod is missed once, whatever happens to it or its replacement before that runs."""
        missed = self._stands_for.get(pod, pod)
        known = [each for each in self._waits if each[0] == missed]
        if not known or (container is not None and known[0][1] not in {None, container}):
            self._waits[missed, container] = time_us

    def _started(self, pod: str, container: str | None, time_us: int) -> None:
        """End the wait for a container, or for a whole pod."""
        missed = self._stands_for.pop(pod, pod)
        for key in [each for each in self._waits if each[0] == missed and container in {None, each[1]}]:
            self._downtime_us += time_us - self._waits.pop(key)

    def _throttled(self, entry: Entry, because: CPUThrottled) -> None:
        assert entry.pod is not None
        if because.throttled_by is ThrottledBy.NOTHING:
            self._no_longer_short(entry)
        else:
            self._short_since.setdefault((entry.pod, entry.container), entry.time_us)

    def _no_longer_short(self, entry: Entry) -> None:
        for key in [
            (pod, container)
            for pod, container in self._short_since
            if pod == entry.pod and entry.container in {None, container}
        ]:
            self._throttled_us += entry.time_us - self._short_since.pop(key)
