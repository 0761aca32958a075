"""The journal in words: what was seen, decided and done, and why a pod was killed or evicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podqos.agent import reasons as r
from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import AutoscalerDecision
from podqos.agent.shutdown import stop_seconds
from podqos.amounts import amount, counted, listed, mebibytes, scheduled, signed, size, span, two_units
from podqos.eviction.signals import SIGNALS, RankKey, Signal
from podqos.kernel.build import PAGE_BYTES
from podqos.model.resources import MEMORY
from podqos.model.time_units import SECOND_NS
from podqos.orders.counterfactual import PodChange
from podqos.sim.services.outcome import ServiceOutcome
from podqos.sim.summary import JobOutcomes
from podqos.text.saving import change_words
from podqos.text.why import evicted_by_key

_MEBIBYTE = 1 << 20


def line(entry: Entry) -> str:
    """Return an entry in one line, without its time and node."""
    if isinstance(entry.because, JobReasons) and entry.pod is None:
        return job_line(entry.because, _VERBS[entry.kind])
    who = subject(entry)
    if isinstance(entry.because, _OF_WORKLOADS):
        return _of_workload(entry.because)
    match entry.kind:
        case Kind.OOM_KILLED | Kind.EVICTED:
            return f"{who} {fate(entry)}"
        case (
            Kind.OBSERVED
            | Kind.CONDITION_CHANGED
            | Kind.RECLAIMED
            | Kind.THROTTLED
            | Kind.MEMORY_THROTTLED
            | Kind.REFUSED
            | Kind.READINESS_CHANGED
            | Kind.OVERLOADED
        ):
            return f"{who} {_short(entry.because)}".strip()
        case Kind.SCALED | Kind.HELD if entry.because is not None:
            return _short(entry.because)
        case Kind.DRAINED | Kind.DRAIN_BLOCKED:
            evicted = "evicted by the drain" if entry.kind is Kind.DRAINED else "cannot be evicted by the drain"
            return f"{who} {evicted}{_after(_short(entry.because))}"
        case _:
            return f"{who or 'the node'} {_VERBS.get(entry.kind, entry.kind.value)}{_after(_short(entry.because))}"


def fate(entry: Entry) -> str:
    """Return what happened to a victim, who did it, and why."""
    return f"{verb(entry)}{_after(_short(entry.because))}"


def subject(entry: Entry) -> str:
    """Return the subject of an entry: the pod, and its container if that has another name."""
    if entry.pod is None:
        return ""
    name = entry.pod.partition("/")[2]
    own = entry.container is None or name == entry.container or name.startswith(f"{entry.container}-")
    return name if own else f"{name} ({entry.container})"


def reasons(entry: Entry) -> tuple[str, ...]:
    """Return why a pod was killed or evicted, as sentences."""
    match entry.because:
        case r.OOMKill() as because:
            return tuple(_oom_reasons(entry, because))
        case r.UnderPressure() as because:
            return tuple(_pressure_reasons(because, entry.by or By.KUBELET))
        case r.LocalStorageExceeded() as because:
            return (f"It exceeded its own limit, {_storage(because)}.",)
        case because:
            return () if because is None else (_sentence(_short(because)),)


_VERBS = {
    Kind.PLACED: "placed",
    Kind.ADMITTED: "admitted",
    Kind.REJECTED: "rejected",
    Kind.ADOPTED: "adopted",
    Kind.WOULD_EVICT: "would have been evicted",
    Kind.STARTED: "started",
    Kind.EXITED: "exited",
    Kind.RESTARTED: "restarted",
    Kind.SUCCEEDED: "succeeded",
    Kind.FAILED: "failed",
    Kind.UNHEALTHY: "is killed by the kubelet",
    Kind.STOPPED: "stopped",
    Kind.CLEANED_UP: "cleaned up",
    Kind.WAIT_TIMED_OUT: "not cleaned up yet",
    Kind.PREEMPTED: "preempted",
    Kind.DELETED: "deleted",
    Kind.CORDONED: "is cordoned",
    Kind.UNCORDONED: "is uncordoned",
    Kind.REPLACED: "created by its controller",
    Kind.SCALED: "scaled",
    Kind.HELD: "not scaled",
    Kind.PENDING: "waits for a node",
    Kind.JOB_CREATED: "creates Job",
    Kind.JOB_SKIPPED: "skips",
    Kind.JOB_COMPLETE: "complete",
    Kind.JOB_FAILED: "failed",
    Kind.JOB_DELETED: "deleted",
    Kind.LOST: "is lost",
    Kind.TERMINATING: "stays Terminating",
    Kind.WATCHING: "is guarded",
    Kind.REPORTED: "reported to the API server",
    Kind.EXPLAINED: "would have been saved by",
}


def _held_back(pressure: r.UnderPressure) -> str:
    return f" ({pressure.held_back})" if pressure.held_back else ""


def _after(text: str) -> str:
    return f": {text}" if text else ""


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _short(because: r.Because | None) -> str:
    """Return a reason as a clause."""
    match because:
        case None:
            return ""
        case r.ThresholdsMet(met=met):
            return "; ".join(map(_threshold, met)) or "all thresholds cleared"
        case r.NothingToDo(available=available, thresholds=thresholds):
            whole = size(available - available % _MEBIBYTE)
            found = "nothing to do" if thresholds else "no memory threshold set"
            return f"kubelet checked memory: {whole} available, {found}"
        case r.ConditionStatus(condition=condition, holds=holds):
            return f"{condition} begins" if holds else f"{condition} ends"
        case r.CleanUpGain() as gain:
            return _clean_up(gain)
        case r.UnderPressure() as pressure:
            return f"{_figures(pressure)}; {_decided(pressure)}{_held_back(pressure)}"
        case r.LocalStorageExceeded() as excess:
            return _storage(excess)
        case r.OOMKill() as kill:
            return f"{_LEVELS[kill.level]} out of memory; {_badness(kill)}"
        case r.Promised(qos_class=qos_class, oom_score_adj=scores):
            return f"{qos_class}, oom_score_adj {', '.join(map(signed, dict.fromkeys(scores.values())))}"
        case r.RestartedAfter(restarts=restarts, back_off_seconds=seconds, with_all=with_all):
            waited = f" after {seconds} s of back-off" if seconds else ""
            return f"restart {restarts}{waited}{' with the whole pod, by restart rule' if with_all else ''}"
        case r.ExitedWith(exit_code=code, oom_killed=killed):
            return "OOMKilled" if killed else f"exit code {code}"
        case r.ActiveDeadlineExceeded(active_deadline_seconds=seconds):
            return f"active for {seconds} s, its activeDeadlineSeconds (DeadlineExceeded)"
        case r.CPUThrottled() as cpu:
            granted = _OF_POD if cpu.pod_limit else _GRANTED[cpu.throttled_by]
            return f"wants {cpu.wanted_milli}m CPU{granted.format(cpu.granted_milli)}"
        case r.ProbeFailure() | r.Readiness() | r.ServiceOverload():
            return of_service(because)
        case r.LimitReached(resource=resource, wanted=wanted, limit=limit):
            unit = MEMORY if resource.endswith(".bytes") else resource
            return f"wants {amount(wanted, unit)} {resource}, limit {amount(limit, unit)}"
        case r.PlacedOn(displaced=displaced):
            return f"displaces {', '.join(displaced)}" if displaced else ""
        case r.PreemptedFor(preemptor=pod, preemptor_priority=higher, priority=priority, breaks_budget=breaks):
            budget = (
                "; this violates its PodDisruptionBudget, but no other pod would make enough room" if breaks else ""
            )
            return f"makes room for {pod} (priority {higher} vs {priority}){budget}"
        case r.RoomForCritical(preemptor=pod, lacking=lacking):
            what = [f"{scheduled(number, resource)} more {resource}" for resource, number in lacking.items()]
            return f"makes room for critical pod {pod}, which needs {listed(what)}"
        case r.MemoryThrottled(is_over=True):
            return "gets all the memory it wants again"
        case r.MemoryThrottled(high_bytes=high, denied_bytes=denied, delay_us=delay):
            more = f", wants {mebibytes(denied)} more" if denied else ""
            return f"is slowed at memory.high {mebibytes(high)}{more}, sleeps {delay / 1000:g} ms per 256Ki"
        case r.BudgetRefuses(budget=budget, healthy=healthy, desired=desired):
            pods = "pod" if desired == 1 else "pods"
            needs = f"PodDisruptionBudget {budget} needs {desired} healthy {pods} and has {healthy}"
            return f"{needs}, tried again every 5 s"
        case r.ReplacementFor(pod=pod, why=why, back_off_seconds=seconds):
            waited = f", after {seconds} s of back-off" if seconds else ""
            return f"replaces {pod} ({why}){waited}"
        case r.AutoscalerDecision() as decision:
            return horizontal(decision)
        case r.NodeUnreachable(node=node, seconds=seconds):
            lost = f"unreachable (tolerated for {seconds} s)" if seconds else "out of service"
            return f"{node} is {lost}, and no kubelet confirms the end"
        case r.SupersededIn(workload=workload, revision=revision):
            return f"updated to revision {revision}" if revision else f"{_own_name(workload)} is scaled down"
        case r.RolloutOf() | r.ScaledFromTo():
            return _of_workload(because)
        case r.TooLittleLeft(resource=resource) as left:
            requested, used, of = (scheduled(n, resource) for n in (left.requested, left.used, left.capacity))
            return f"requests {requested} {resource}; {used} of {of} already requested"
        case r.NotAdmitted(message=message):
            return message
        case r.NoPlace() as nowhere:
            return nowhere.message or _nowhere(nowhere)
        case r.WaitedTooLong(seconds=seconds):
            return f"after {seconds} s"
        case r.JobEnded() | r.DeletedWithJob() | r.CronJobDue() | r.CronJobSkipped():
            return job_words(because)
        case r.GuardMode() | r.EvictionReport() | r.WouldHaveSaved() | r.SeenEvicted():
            return _of_guard(because)


_OF_WORKLOADS = (r.RolloutOf, r.ScaledFromTo)


def _own_name(workload: str) -> str:
    return workload.partition("/")[2]


def _of_workload(because: r.RolloutOf | r.ScaledFromTo) -> str:
    """Return what happened to a workload as a whole."""
    name = _own_name(because.workload)
    match because:
        case r.RolloutOf(revision=revision, rolled_back=is_back, is_complete=is_complete):
            what = "rollback" if is_back else "rollout"
            return f"{what} of {name} {'is complete' if is_complete else 'starts'}: revision {revision}"
        case r.ScaledFromTo(before=before, after=after, replica_set=replica_set):
            who = f"{name} scales ReplicaSet {replica_set}" if replica_set else f"{name} is scaled"
            return f"{who} {'up' if after > before else 'down'} from {before} to {after}"


def _of_guard(because: r.GuardMode | r.EvictionReport | r.WouldHaveSaved | r.SeenEvicted) -> str:
    match because:
        case r.GuardMode(ended=True):
            return "the guard ended"
        case r.GuardMode(enforce=enforce, held_back=held_back):
            return f"evicts nothing: {held_back}" if held_back else "evicts" if enforce else "evicts nothing"
        case r.EvictionReport(outcome=outcome, why=why):
            took = _took(because)
            return f"{outcome} ({why}){took}" if why else f"{outcome}{took}"
        case r.WouldHaveSaved(savings=savings):
            return ", or ".join(map(_saving, savings)) or "nothing in the pod alone"
        case r.SeenEvicted(reason=reason, message=message):
            return message or reason


def _took(report: r.EvictionReport) -> str:
    if report.noticed_us is None or report.killed_us is None:
        return ""
    return f", killed {(report.killed_us - report.noticed_us) / 1000:.1f} ms after the threshold was crossed"


def _saving(saving: r.PodSaving) -> str:
    return change_words(PodChange(saving.change), saving.amount, saving.resource, saving.container)


_REFUSALS = {
    "Insufficient": "not enough {what}",
    "UntoleratedTaint": "taint {what}",
    "UnderPressure": "{what}",
    "SelectorMismatch": "label {what} doesn't match",
    "AffinityMismatch": "its node affinity",
    "NotNamed": "its node affinity",
    "Unschedulable": "cordoned",
    "PortTaken": "a host port is in use",
}


def _nowhere(nowhere: r.NoPlace) -> str:
    """Return why a pod fits on no node."""
    if nowhere.bound_to:
        return f"it is bound to {nowhere.bound_to}, which doesn't exist"
    reasons = [
        f"{nodes.nodes} × {_REFUSALS.get(nodes.reason, nodes.reason).format(what=nodes.what.rpartition('/')[2])}"
        for nodes in nowhere.refusing
    ]
    if sum(refusing.nodes for refusing in nowhere.refusing) < nowhere.nodes:
        return "other pods are being preempted for it"
    return f"no node fits ({', '.join(reasons)})"


def _threshold(figures: r.ThresholdFigures) -> str:
    resource = SIGNALS[figures.signal].resource
    grace = f" for {figures.grace_period_ns // SECOND_NS} s" if figures.grace_period_ns else ""
    return f"{figures.signal} {amount(figures.available, resource)} < {amount(figures.threshold, resource)}{grace}"


def _clean_up(gain: r.CleanUpGain) -> str:
    resource = SIGNALS[gain.signal].resource
    what = " and ".join(gain.what)
    before = amount(gain.available_before, resource)
    if gain.available_after is None:
        return f"removes {what}: {gain.signal} was {before}"
    enough = "enough" if gain.available_after >= gain.threshold else "not enough"
    return f"removes {what}: {gain.signal} {before} → {amount(gain.available_after, resource)}, {enough}"


_GRANTED = {
    r.ThrottledBy.QUOTA: ", its limit grants {}m",
    r.ThrottledBy.CONTENTION: ", its share grants {}m",
    r.ThrottledBy.NOTHING: " and gets it again",
}
_OF_POD = ", its pod's limit grants {}m"


# ---- the kernel's kills ----------------------------------------------------------------------------------------------

_LEVELS = {
    r.OOMLevel.CONTAINER: "the container",
    r.OOMLevel.POD: "the pod",
    r.OOMLevel.CLASS: "its QoS class",
    r.OOMLevel.KUBEPODS: "the kubepods cgroup",
    r.OOMLevel.NODE: "the machine",
}


def _badness(kill: r.OOMKill) -> str:
    used = mebibytes(kill.used_pages * PAGE_BYTES)
    return f"badness {size(kill.points * PAGE_BYTES)} = {used} + {signed(kill.oom_score_adj)} ‰"


def _oom_reasons(entry: Entry, kill: r.OOMKill) -> Iterator[str]:
    yield _sentence(f"{_LEVELS[kill.level]} used up its {size(kill.limit_bytes)}")
    used = mebibytes(kill.used_pages * PAGE_BYTES)
    yield (
        f"The kernel chose a process of {entry.container or entry.pod} using {used} with oom_score_adj "
        f"{signed(kill.oom_score_adj)}: badness {size(kill.points * PAGE_BYTES)}, the highest."
    )
    if kill.killed_processes > 1:
        how = " as a group" if kill.as_group else ""
        yield f"{kill.killed_processes} processes died{how}, freeing {mebibytes(kill.freed_bytes)}."
    elif kill.freed_bytes:
        yield f"This freed {mebibytes(kill.freed_bytes)}."
    if kill.denied_bytes:
        yield f"It wanted {mebibytes(kill.denied_bytes)} more and never got it."
    if kill.container_lives:
        yield "The container keeps running without that process."
    if kill.kept_bytes:
        yield f"{mebibytes(kill.kept_bytes)} in memory-backed volumes stays with the pod."
    if kill.runner_up_pod is not None and kill.runner_up_points is not None:
        margin = "a tie" if not kill.margin_bytes else f"a margin of {mebibytes(kill.margin_bytes)}"
        other = "another process of the same pod" if kill.runner_up_pod == entry.pod else kill.runner_up_pod
        yield f"The runner-up was {other} with {size(kill.runner_up_points * PAGE_BYTES)}: {margin}."
    if kill.would_evict is not None:
        yield _would_evict(entry, kill.would_evict)


def _would_evict(entry: Entry, other: r.WouldEvict) -> str:
    who = "the same pod" if other.pod == entry.pod else other.pod
    asks = f"requests {mebibytes(other.request)}" if other.request else "requests nothing"
    uses = f"uses {mebibytes(other.usage)}, {asks}"
    key, next_pod = other.before_next_by, other.next_pod
    before = ""
    if key is not None and next_pod is not None:
        excess = "exceeds its request by more" if other.usage > other.request else "closer to its request"
        before = f"; ahead of {next_pod}: {excess if key is RankKey.EXCESS else key}"
    first = "" if other.threshold_met else "no pod; first in the eviction order was "
    return f"At that moment the kubelet would have evicted {first}{who} ({uses}, priority {other.priority}{before})."


# ---- the kubelet's evictions -----------------------------------------------------------------------------------------


def _figures(pressure: r.UnderPressure) -> str:
    return f"{_left(pressure)} ({'hard' if pressure.hard else 'soft'})"


def _left(pressure: r.UnderPressure) -> str:
    resource = SIGNALS[pressure.signal].resource
    return f"{pressure.signal} {amount(pressure.available, resource)} < {amount(pressure.threshold, resource)}"


def _decided(pressure: r.UnderPressure) -> str:
    if not pressure.has_statistics:
        return "it has no statistics"
    return f"{_compared(pressure)}, priority {pressure.priority}"


def _compared(pressure: r.UnderPressure) -> str:
    """Return the usage that ranked a pod, with the request it was compared to."""
    resource = SIGNALS[pressure.signal].resource
    used = amount(pressure.usage, resource)
    if Signal.PID is pressure.signal:
        return f"has {used} processes"
    return f"uses {used}, requests {amount(pressure.request, resource) if pressure.request else 'nothing'}"


def _pressure_reasons(pressure: r.UnderPressure, by: By) -> Iterator[str]:
    yield _sentence(f"The {by.value} saw {_figures(pressure)}")
    order = "that may be evicted" if pressure.spared else "in the eviction order"
    decided = "has no statistics"
    if pressure.has_statistics:
        has = "" if Signal.PID is pressure.signal else "has "
        decided = f"{_compared(pressure)} and {has}priority {pressure.priority}"
    yield _sentence(f"It {decided}: the first of {pressure.candidates} {order}")
    if pressure.spared:
        yield f"Ranked before it but never evicted: {', '.join(pressure.spared)}."
    if pressure.next_pod is not None and pressure.before_next_by is not None:
        why = evicted_by_key(pressure.before_next_by, over=pressure.over_request)
        yield f"Ranked ahead of {pressure.next_pod}: {why}."
    seconds = pressure.grace_period_seconds
    least = stop_seconds(seconds)
    yield f"Its grace period was {seconds} s{f', its containers had {least} s to stop' if least > seconds else ''}."


_CAUSES = {
    r.OOMLevel.CONTAINER: "limit of {} reached",
    r.OOMLevel.POD: "pod limit of {} reached",
    r.OOMLevel.CLASS: "QoS class limit of {} reached",
    r.OOMLevel.KUBEPODS: "limit of all pods, {}, reached",
    r.OOMLevel.NODE: "all {} of the machine used",
}


def cause(entry: Entry) -> str:
    """Return why a pod was killed or evicted in a few words, for a picture."""
    match entry.because:
        case r.OOMKill(level=level, limit_bytes=limit_bytes):
            return _CAUSES[level].format(size(limit_bytes))
        case r.UnderPressure() as pressure:
            return _left(pressure)
        case because:
            return _short(because)


def _storage(excess: r.LocalStorageExceeded) -> str:
    what = f"{excess.limit_kind} {excess.name}".rstrip()
    return f"{what}: {mebibytes(excess.used_bytes)} of {mebibytes(excess.limit_bytes)}"


def verb(entry: Entry) -> str:
    """Return what happened to a victim and who did it."""
    if entry.kind is Kind.OOM_KILLED:
        return "OOM-killed"
    return f"evicted by the {(entry.by or By.KUBELET).value}"


def horizontal(decision: AutoscalerDecision) -> str:
    """Return what a HorizontalPodAutoscaler decided, with the figures it is based on."""
    name = decision.workload.partition("/")[2]
    if decision.desired != decision.current:
        head = f"{name} scaled from {decision.current} to {decision.desired} replicas"
    else:
        head = f"{name} stays at {decision.current} replica{'s' if decision.current != 1 else ''}"
    details = [*_autoscaling_figures(decision), *_held(decision), *_uncounted(decision)]
    return f"{head}: {', '.join(details)}" if details else head


def _autoscaling_figures(decision: AutoscalerDecision) -> list[str]:
    if decision.failed:
        return [f"no usable metric {decision.metric} ({_FAILED.get(decision.failed, decision.failed)})"]
    if decision.usage is None or decision.target is None:
        return []
    usage, target = (_value(decision, value) for value in (decision.usage, decision.target))
    of = " of requests" if decision.percent else " per pod"
    return [f"{decision.metric} {usage}{of}, target {target}"]


def _value(decision: AutoscalerDecision, value: int) -> str:
    if decision.percent:
        return f"{value} %"
    match decision.metric.partition(" ")[0]:
        case "cpu":
            return f"{value}m"
        case "memory":
            return amount(value, MEMORY)
        case _:
            return str(value)


_FAILED = {
    "NoMetrics": "no pod has one yet",
    "NoPods": "there are no pods",
    "NotReady": "no pod with one is ready",
    "NoRequest": "a container has no request for it",
    "NoContainer": "there is no such container",
}
_LIMITS = {
    "TooManyReplicas": "maxReplicas is {}",
    "TooFewReplicas": "minReplicas is {}",
    "ScaleUpLimit": "at most {} at this sync",
    "ScaleDownLimit": "at least {} at this sync",
}
_STABILIZED = {
    "ScaleDownStabilized": "a higher recent recommendation counts",
    "ScaleUpStabilized": "a lower recent recommendation counts",
}


def _held(decision: AutoscalerDecision) -> list[str]:
    """Return what keeps replicas from what the metric asks for."""
    held = []
    asked = decision.proposed
    if asked is not None and asked != decision.desired:
        held.append(f"asks for {asked}")
    if decision.stabilized:
        held.append(_STABILIZED.get(decision.stabilized, decision.stabilized))
    if decision.limited_by:
        held.append(_LIMITS.get(decision.limited_by, decision.limited_by).format(decision.desired))
    return held


def _uncounted(decision: AutoscalerDecision) -> list[str]:
    return [
        f"{count} pod{'s' if count != 1 else ''} {what}"
        for count, what in ((decision.missing, "without a metric"), (decision.unready, "not ready yet"))
        if count
    ]


JobReasons = r.JobEnded | r.DeletedWithJob | r.CronJobDue | r.CronJobSkipped

_DELETED = {
    "Surplus": "Job {job} needs fewer pods",
    "Replaced": "Job {job} makes way for the next one (concurrencyPolicy: Replace)",
}


def job_words(because: JobReasons) -> str:
    """Return a reason as a clause."""
    match because:
        case r.JobEnded():
            return f"{because.reason}{''.join(f', {fact}' for fact in _facts(because))}"
        case r.DeletedWithJob(job=job, reason=reason):
            return _DELETED.get(reason, f"Job {{job}} has failed ({reason})").format(job=_name(job))
        case r.CronJobDue(job=job, scheduled=scheduled, late_seconds=late, many_missed=many):
            late_words = f", {late} s late" if late else ""
            missed = ", more than 100 runs missed" if many else ""
            return f"{_name(job)} for {scheduled}{late_words}{missed}"
        case r.CronJobSkipped(scheduled=scheduled, active=active):
            jobs = listed([_name(job) for job in active])
            return f"the run of {scheduled}: {jobs} still active (concurrencyPolicy: Forbid)"


def jobs_headline(jobs: JobOutcomes | None) -> str:
    """Return how Jobs ended, in one sentence; empty if none did."""
    if jobs is None:
        return ""
    parts = [f"{counted(jobs.complete, 'Job')} complete"] if jobs.complete else []
    parts += [f"{counted(count, 'Job')} failed ({reason})" for reason, count in jobs.failed.items()]
    parts += [f"{counted(jobs.skipped, 'scheduled run')} skipped"] if jobs.skipped else []
    return f"{', '.join(parts)}."


def job_line(because: JobReasons, verb: str) -> str:
    """Return an entry about a Job or CronJob in one line."""
    match because:
        case r.CronJobDue(cron_job=cron_job) | r.CronJobSkipped(cron_job=cron_job):
            return f"CronJob {_name(cron_job)} {verb} {job_words(because)}"
        case r.DeletedWithJob(job=job):
            return f"Job {_name(job)} {verb}: {job_words(because)}"
        case r.JobEnded(job=job):
            return f"Job {_name(job)} {verb}: {job_words(because)}"


def _facts(ended: r.JobEnded) -> Iterator[str]:
    """Yield the numbers that led to the end of a Job, the decisive one first."""
    match ended.reason:
        case "BackoffLimitExceeded" if ended.restarts:
            yield f"{counted(ended.restarts, 'container restart')} (backoffLimit {ended.backoff_limit})"
        case "BackoffLimitExceeded":
            yield f"{counted(ended.failed, 'failed pod')} (backoffLimit {ended.backoff_limit})"
        case "DeadlineExceeded":
            yield f"active for {ended.active_deadline_seconds} s"
    if ended.completions is not None:
        yield f"{ended.succeeded} of {ended.completions} completions"
    else:
        yield f"{ended.succeeded} succeeded"


def _name(key: str) -> str:
    return key.partition("/")[2]


def of_service(because: r.ProbeFailure | r.Readiness | r.ServiceOverload) -> str:
    """Return what a probe or a service did, as a clause."""
    match because:
        case r.Readiness(ready=ready, because=failure):
            why = "" if failure is None else f": {of_service(failure)}"
            return f"{'is ready again' if ready else 'is not ready, out of the endpoints'}{why}"
        case r.ProbeFailure():
            times = "" if because.failures == 1 else f" {because.failures} times in a row"
            return (
                f"{because.probe} probe failed{times}, no answer within {because.timeout_seconds} s{_slowed(because)}"
            )
        case r.ServiceOverload(workload=workload, begins=False):
            return f"{short(workload)} answers again: {_percent(because.errors_permille)} errors"
        case r.ServiceOverload(workload=workload):
            figures = [f"{_percent(because.errors_permille)} errors", f"p99 {span(because.p99_us)}"]
            if because.waiting:
                figures.append(f"{because.waiting} requests waiting")
            cause = f": {overload_cause(because.cause)}" if because.cause is not None else ""
            return f"{short(workload)} is overloaded, {', '.join(figures)}{cause}"


def overload_cause(cause: r.OverloadCause) -> str:
    """Return what a service has too little of, as a clause."""
    return _OVERLOADS[cause]


_OVERLOADS = {
    r.OverloadCause.CPU_LIMIT: "throttled at its CPU limit",
    r.OverloadCause.CONTENTION: "short of CPU on its node",
    r.OverloadCause.CPU: "all the CPU it can use is in use",
    r.OverloadCause.WORKERS: "all its workers are busy",
    r.OverloadCause.NOT_READY: "no pod is ready",
    r.OverloadCause.NODE_LOST: "requests go to pods on a lost node, which is not noticed yet",
}


def _percent(permille: int) -> str:
    return f"{permille / 10:.0f} %" if permille >= 10 else f"{permille / 10:g} %"


def _slowed(failure: r.ProbeFailure) -> str:
    """Return why an answer took too long, in brackets."""
    parts = []
    if failure.throttled_by is not None:
        gets = f"{10_000 / failure.slowdown:.3g} %" if failure.slowdown else "none"
        by = "its limit" if failure.throttled_by is r.ThrottledBy.QUOTA else "its share"
        parts.append(f"{by} grants {gets} of the CPU it wants")
    if failure.waiting:
        parts.append(f"{failure.waiting} requests waiting")
    return f" ({', '.join(parts)})" if parts else ""


def services_headline(services: Sequence[ServiceOutcome]) -> str:
    """Return the worst service in one sentence; empty if none was overloaded."""
    overloaded = [service for service in services if service.first_overloaded_us is not None]
    if not overloaded:
        return ""
    worst = max(overloaded, key=lambda service: (service.errors, service.worst_p99_us or 0))
    figures = [f"{share(worst.errors, worst.requests)} errors"]
    if worst.worst_p99_us is not None:
        figures.append(f"p99 {span(worst.worst_p99_us)} at {two_units(worst.worst_p99_at_us)}")
    others = [service for service in overloaded if service.workload != worst.workload]
    more = f"; {counted(len(others), 'more service')} overloaded" if others else ""
    began = f"; {overload_cause(worst.cause)}" if worst.cause is not None else ""
    return f"{short(worst.workload)}: {', '.join(figures)}{began}{more}."


def latency(time_us: int) -> str:
    """Return how long an answer takes."""
    return span(time_us) if time_us else "0 s"


def share(part: int, whole: int) -> str:
    """Return a share in percent: ``31 %``, ``0.4 %``, ``no``."""
    if not part or not whole:
        return "no"
    percent = 100 * part / whole
    return f"{percent:.0f} %" if percent >= 1 else f"{percent:.1g} %" if percent >= 0.01 else "< 0.01 %"


def short(workload: str) -> str:
    """Return the name of a workload without its namespace."""
    return workload.partition("/")[2]
