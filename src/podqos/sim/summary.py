"""How a run ended, per workload, counted from its journal; and what containers got of the CPU, from its accounts.

Every pod of the journal has one outcome: it never ran, was interrupted, waited for a node, was short of CPU, was
refused processes or disk, or was unaffected. A replacement is the pod it stands for. Times of a pod are unions: two
containers that are down, or short of CPU, at the same time count once. Times of a workload are sums over its pods.

The shape is part of what ``podqos simulate -o json`` prints: fields are added, never renamed or removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import Entry, Kind
from podqos.agent.reasons import (
    CPUThrottled,
    CronJobSkipped,
    ExitedWith,
    JobEnded,
    OOMKill,
    ReplacementFor,
    ThrottledBy,
    cause_of,
)
from podqos.model.pod import QOSClass
from podqos.qos.classes import qos_class_of
from podqos.sim.cpu_outcome import CpuOutcome, cpu_outcome, cpu_together
from podqos.sim.node.cpu import CpuAccount
from podqos.sim.run import FinishedRun
from podqos.sim.scenario.replicas import workload_of
from podqos.sim.scenario.scenario import Scenario, ScenarioWorkload
from podqos.sim.services.outcome import ServiceOutcome

# From this many evictions of the same pod, under whatever name, a line of its own.
_REPEATED = 3
_OUTCOMES = ("never_ran", "interrupted", "waited", "throttled", "refused")
_ADDED_UP = ("pods", "untouched", "oom_kills", "evictions", "restarts", "rejections", "downtime_us", *_OUTCOMES)
_ARRIVED = frozenset({Kind.PLACED, Kind.ADMITTED, Kind.ADOPTED})
# What ends a pod until it or a replacement starts.
_TAKEN = frozenset({Kind.EVICTED, Kind.PREEMPTED, Kind.DRAINED, Kind.REJECTED, Kind.LOST, Kind.FAILED})
# What ends a pod for good, as was wanted.
_OVER = frozenset({Kind.SUCCEEDED, Kind.DELETED})
_ENDED = frozenset({Kind.OOM_KILLED, Kind.EXITED, Kind.STOPPED, Kind.CLEANED_UP, *_TAKEN, *_OVER})
_DECIDED = (Kind.OOM_KILLED, Kind.EVICTED, Kind.WOULD_EVICT)

_GONE = frozenset({Kind.STOPPED, Kind.CLEANED_UP, *_TAKEN, *_OVER} - {Kind.REJECTED, Kind.LOST})


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
    """All its pods, whether they ran or not; a replacement is the pod it stands for."""
    untouched: int
    """Of those: unaffected, that is none of ``never_ran``, ``interrupted``, ``waited``, ``throttled``, ``refused``."""
    oom_kills: int
    evictions: int
    restarts: int
    rejections: int
    downtime_us: int
    """How long its pods did not run and should have, summed over its pods: from being killed, evicted, rejected or
    lost, from ending with an error, or from finding no node, until running again, or until its Job has ended. A pod is
    down while any of its containers is."""
    throttled_us: int
    """How long its pods got less CPU than they wanted, summed over its pods: a pod is short of CPU while any of its
    containers is."""
    never_ran: int = 0
    """Pods that found no node, were rejected, or did not get past their init containers."""
    interrupted: int = 0
    """Pods that ran and were killed, evicted, preempted or lost, or of which a container failed or was restarted."""
    waited: int = 0
    """Pods that had to wait for a node, and ran undisturbed then, but perhaps short of CPU."""
    throttled: int = 0
    """Pods to which nothing happened but that they were short of CPU."""
    refused: int = 0
    """Pods to which nothing happened but that they wanted more processes or disk than there were."""
    cpu: CpuOutcome | None = None
    """What its pods got of the CPU; null where all got what they wanted, and none had work to do."""


class JobOutcomes(Struct, frozen=True, rename="camel"):
    """How Jobs ended."""

    complete: int = 0
    failed: dict[str, int] = {}
    """By reason: BackoffLimitExceeded, DeadlineExceeded, …"""
    skipped: int = 0
    """Runs that CronJobs skipped."""


class RunSummary(Struct, frozen=True, rename="camel"):
    """How the run ended; fields are those of all workloads together."""

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
    never_ran: int = 0
    interrupted: int = 0
    waited: int = 0
    throttled: int = 0
    refused: int = 0
    services: tuple[ServiceOutcome, ...] = ()
    """What became of requests, by workload that answers them: a model."""
    cpu: CpuOutcome | None = None
    """What all pods got of the CPU."""
    jobs: JobOutcomes | None = None
    """Null where no Job ended, and no run of a CronJob was skipped."""


class PodWorkload(Struct, frozen=True, gc=False):
    """The workload of a pod."""

    workload: str
    """``namespace/name``."""
    qos_class: QOSClass
    priority: int
    regular: frozenset[str] | None = None
    """The containers with which its pods run; None where those are the first to start."""
    ephemeral: frozenset[str] = frozenset()
    """Containers that are no part of what its pods do."""
    until_us: int | None = None
    """When it is deleted."""


def run_summary(run: FinishedRun) -> RunSummary:
    """Count a run, on all its nodes."""
    scenario = run.scenario
    owners = _owners(scenario, run.entries)
    counted = summarized(run.entries, owners, run.cpu, nodes=len(scenario.node_names), end_us=run.end_us)
    return replace(counted, services=run.services) if run.services else counted


def outage_ends(run: FinishedRun, entries: Sequence[Entry]) -> dict[str, int]:
    """Return of each pod that was down, by the name of the one that was there first, when it was so for the last time.

    One that is down to the end counts as such until then.
    """
    owners = _owners(run.scenario, entries)
    tallies = {owner.workload: _Tally(owner) for owner in owners.values()}
    for entry in _with_lost_pods(list(entries)):
        if entry.pod in owners:
            tallies[owners[entry.pod].workload].take(entry)
        elif isinstance(entry.because, JobEnded):
            _end_job(tallies, entry.because, entry.time_us)
    return {pod: end_us for tally in tallies.values() for pod, end_us in tally.outage_ends(run.end_us)}


def _owners(scenario: Scenario, entries: Iterable[Entry]) -> dict[str, PodWorkload]:
    """Return the workload of every pod in a journal, in the order of the scenario."""
    workloads = [(f"{workload.namespace}/{workload.name}", workload) for workload in scenario.workloads]
    keys = dict.fromkeys(entry.pod for entry in entries if entry.pod is not None)
    found: dict[str, list[str]] = {name: [] for name, _ in workloads}
    for key in keys:
        owner = workload_of(key, found)
        if owner is not None:
            found[owner].append(key)
    owners: dict[str, PodWorkload] = {}
    for name, workload in workloads:
        if found[name]:
            one = _owner(name, workload, qos_class_of(workload.pod, scenario.profile))
            owners.update(dict.fromkeys(found[name], one))
    return owners


def _owner(name: str, workload: ScenarioWorkload, qos_class: QOSClass) -> PodWorkload:
    spec = workload.pod.spec
    is_prepared = any(not container.is_sidecar for container in spec.init_containers)
    return PodWorkload(
        name,
        qos_class,
        spec.priority or 0,
        regular=frozenset(container.name for container in spec.containers) if is_prepared else None,
        ephemeral=frozenset(container.name for container in spec.ephemeral_containers),
        until_us=workload.deleted_us,
    )


def summarized(
    entries: Iterable[Entry],
    owners: Mapping[str, PodWorkload],
    cpu: Iterable[CpuAccount] = (),
    *,
    nodes: int,
    end_us: int,
) -> RunSummary:
    """Count a run. ``owners`` are by key of the pod, in the order in which to list their workloads."""
    tallies: dict[str, _Tally] = {}
    for owner in owners.values():
        tallies.setdefault(owner.workload, _Tally(owner))
    levels: Counter[str] = Counter()
    signals: Counter[str] = Counter()
    jobs: Counter[tuple[Kind, str]] = Counter()
    entries = _with_lost_pods(list(entries))
    for entry in entries:
        if entry.pod is None or entry.pod not in owners:
            if isinstance(entry.because, JobEnded | CronJobSkipped):
                jobs[entry.kind, entry.because.reason] += 1
            if isinstance(entry.because, JobEnded):
                _end_job(tallies, entry.because, entry.time_us)
            continue
        tallies[owners[entry.pod].workload].take(entry)
        if entry.kind in _DECIDED:
            cause = cause_of(entry.because)
            if cause is not None:
                (levels if isinstance(entry.because, OOMKill) else signals)[cause] += 1
    for account in cpu:
        if account.pod in owners:
            tallies[owners[account.pod].workload].cpu.append(account)
    rows = tuple(tally.row(end_us) for tally in tallies.values())
    return RunSummary(
        nodes=nodes,
        **{name: sum(getattr(row, name) for row in rows) for name in _ADDED_UP},
        oom_kills_by_level=dict(sorted(levels.items())),
        evictions_by_signal=dict(sorted(signals.items())),
        workloads=rows,
        repeated_evictions=_repeated(entries),
        cpu=cpu_together([row.cpu for row in rows]),
        jobs=_job_outcomes(jobs),
    )


def _end_job(tallies: Mapping[str, _Tally], ended: JobEnded, time_us: int) -> None:
    owner = workload_of(ended.job, tallies)
    if owner is not None:
        tallies[owner].job_ended(ended.job, time_us)


def _job_outcomes(jobs: Counter[tuple[Kind, str]]) -> JobOutcomes | None:
    if not jobs:
        return None
    complete, skipped = (
        sum(count for (kind, _), count in jobs.items() if kind is which)
        for which in (Kind.JOB_COMPLETE, Kind.JOB_SKIPPED)
    )
    failed = {reason: count for (kind, reason), count in sorted(jobs.items()) if kind is Kind.JOB_FAILED}
    return JobOutcomes(complete, failed, skipped)


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
    """The running counts of one workload. Pods are known by the name of the one that was there first."""

    def __init__(self, owner: PodWorkload) -> None:
        self._owner = owner
        self._pods: set[str] = set()
        self._not_run: set[str] = set()
        """Those that have not run so far."""
        self._interrupted: set[str] = set()
        self._waited: set[str] = set()
        self._refused: set[str] = set()
        self._over: set[str] = set()
        """Those that ended as was wanted."""
        self._unwanted: set[str] = set()
        """Those whose Job has ended."""
        self._kinds: Counter[Kind] = Counter()
        self._firsts: dict[str, str] = {}
        """The pod that was there first, by its replacements."""
        self._down = _Spans()
        self._short = _Spans()
        self.cpu: list[CpuAccount] = []

    def take(self, entry: Entry) -> None:
        """Count an entry."""
        pod, kind, firsts = entry.pod, entry.kind, self._firsts
        assert pod is not None
        if kind is Kind.REPLACED and isinstance(entry.because, ReplacementFor):
            first = firsts[pod] = firsts.get(entry.because.pod, entry.because.pod)
            self._over.discard(first)  # it has its name again, after it was deleted
            return
        if firsts:
            pod = firsts.get(pod, pod)
        if pod not in self._pods:
            if kind is Kind.DELETED:
                return  # the moment it arrived
            self._pods.add(pod)
            self._not_run.add(pod)
        if kind in _ARRIVED or pod in self._over:
            return
        if kind is Kind.STARTED:
            self._started(pod, entry)
        elif entry.container not in self._owner.ephemeral:
            self._news(pod, entry)

    def _news(self, pod: str, entry: Entry) -> None:
        """Count what does not happen to a pod that just runs."""
        kind, because, time_us = entry.kind, entry.because, entry.time_us
        self._kinds[kind] += 1
        if kind in _ENDED:
            self._short.end(pod, entry.container, _ended_us(entry))
        if kind is Kind.RESTARTED:
            self._down.end(pod, entry.container, time_us)
        elif kind is Kind.PENDING:
            self._missed(pod, None, time_us)
        elif kind in _OVER:
            self._down.end(pod, None, time_us)
            self._over.add(pod)
        elif kind in _TAKEN:
            self._interrupted.add(pod)
            self._missed(pod, None, time_us)
        elif isinstance(because, OOMKill):
            self._interrupted.add(pod)
            if not because.container_lives:
                self._ended(pod, entry.container, time_us)
        elif isinstance(because, ExitedWith) and (because.exit_code or because.restarts):
            self._interrupted.add(pod)
            self._ended(pod, entry.container, _ended_us(entry))
        elif isinstance(because, CPUThrottled):
            if because.throttled_by is ThrottledBy.NOTHING:
                self._short.end(pod, entry.container, time_us)
            else:
                self._short.begin(pod, entry.container, time_us)
        elif kind is Kind.REFUSED:
            self._refused.add(pod)

    def _started(self, pod: str, entry: Entry) -> None:
        """Note that a pod runs, if it was its regular containers that started."""
        regular = self._owner.regular
        if entry.container is None if regular is None else entry.container in regular:
            if pod in self._not_run:
                self._not_run.remove(pod)
                if self._down.end(pod, None, entry.time_us):
                    self._waited.add(pod)
            else:
                self._down.end(pod, None, entry.time_us)

    def _ended(self, pod: str, container: str | None, time_us: int) -> None:
        """Note that a container no longer runs; of a pod that has not run yet, that it waits for more than that."""
        self._missed(pod, None if pod in self._not_run else container, time_us)

    def _missed(self, pod: str, container: str | None, time_us: int) -> None:
        """Note that a pod is down, if anybody still wants it."""
        if pod not in self._unwanted:
            self._down.begin(pod, container, time_us)

    def job_ended(self, job: str, time_us: int) -> None:
        """Note that nobody wants the pods of a Job any more."""
        for pod in self._pods:
            if pod.startswith(f"{job}-"):
                self._down.end(pod, None, time_us)
                self._unwanted.add(pod)

    def outage_ends(self, end_us: int) -> Iterator[tuple[str, int]]:
        """Yield the pods that were down, and until when."""
        return self._down.ends(self._until_us(end_us))

    def _until_us(self, end_us: int) -> int:
        until_us = self._owner.until_us
        return end_us if until_us is None else min(end_us, until_us)

    def row(self, end_us: int) -> WorkloadSummary:
        """Return what has been counted."""
        owner, kinds = self._owner, self._kinds
        until_us = self._until_us(end_us)
        down_us, short_us = self._down.lengths(until_us), self._short.lengths(until_us)
        interrupted = self._interrupted - self._not_run
        waited = self._waited - interrupted
        throttled = {pod for pod, length in short_us.items() if length} - interrupted - waited - self._not_run
        refused = self._refused - interrupted - waited - throttled - self._not_run
        affected = len(self._not_run) + len(interrupted) + len(waited) + len(throttled) + len(refused)
        return WorkloadSummary(
            workload=owner.workload,
            qos_class=owner.qos_class,
            priority=owner.priority,
            pods=len(self._pods),
            untouched=len(self._pods) - affected,
            oom_kills=kinds[Kind.OOM_KILLED],
            evictions=kinds[Kind.EVICTED],
            restarts=kinds[Kind.RESTARTED],
            rejections=kinds[Kind.REJECTED],
            downtime_us=sum(down_us.values()),
            throttled_us=sum(short_us.values()),
            never_ran=len(self._not_run),
            interrupted=len(interrupted),
            waited=len(waited),
            throttled=len(throttled),
            refused=len(refused),
            cpu=cpu_outcome(self.cpu, self._firsts),
        )


def _ended_us(entry: Entry) -> int:
    """Return when what an entry is about ended: the kubelet may learn of it later."""
    finished_us = entry.because.finished_us if isinstance(entry.because, ExitedWith) else None
    return entry.time_us if finished_us is None else finished_us


class _Spans:
    """Since when and for how long pods, or containers of them, have been in a state."""

    def __init__(self) -> None:
        self._since: dict[str, dict[str | None, int]] = {}
        self._ended: dict[str, list[tuple[int, int]]] = {}

    def begin(self, pod: str, container: str | None, time_us: int) -> None:
        """Note that it has begun, for a container or the whole pod."""
        self._since.setdefault(pod, {}).setdefault(container, time_us)

    def end(self, pod: str, container: str | None, time_us: int) -> bool:
        """Note that it has ended, for a container or the pod with all of them; return whether it took any time."""
        since = self._since.get(pod)
        if since is None:
            return False
        ended = [(since.pop(each), time_us) for each in list(since) if container is None or each == container]
        if not since:
            del self._since[pod]
        if ended:
            self._ended.setdefault(pod, []).extend(ended)
        return any(begun_us < time_us for begun_us, _ in ended)

    def ends(self, end_us: int) -> Iterator[tuple[str, int]]:
        """Yield the pods that were in the state for some time, and until when."""
        for pod, length in self.lengths(end_us).items():
            if length:
                yield pod, end_us if pod in self._since else max(ended_us for _, ended_us in self._ended[pod])

    def lengths(self, end_us: int) -> dict[str, int]:
        """Return for how long each pod was in the state, itself or with any of its containers, until the end."""
        found: dict[str, int] = {}
        for pod in dict.fromkeys((*self._ended, *self._since)):
            going_on = ((since_us, end_us) for since_us in self._since.get(pod, {}).values())
            total_us = reached_us = 0
            for begun_us, ended_us in sorted((*self._ended.get(pod, ()), *going_on)):
                total_us += max(0, min(ended_us, end_us) - max(begun_us, reached_us))
                reached_us = max(reached_us, ended_us)
            found[pod] = total_us
        return found
