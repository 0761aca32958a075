"""What became of requests, in words. All figures are those of a model."""

from __future__ import annotations

from collections.abc import Sequence

from podqos.agent import reasons as r
from podqos.sim.services.outcome import ServiceOutcome
from podqos.wording import counted
from podqos.words.durations import span, two_units


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
            cause = f": {overload_cause(because.cause, because.limit)}" if because.cause is not None else ""
            return f"{short(workload)} is overloaded, {', '.join(figures)}{cause}"


def overload_cause(cause: r.OverloadCause, limit: str = "") -> str:
    """Return what a service has too little of, as a clause."""
    return _OVERLOADS[cause].format(limit)


_OVERLOADS = {
    r.OverloadCause.CPU_LIMIT: "throttled at its CPU limit",
    r.OverloadCause.CONTENTION: "short of CPU on its node",
    r.OverloadCause.CPU: "all the CPU it can use is in use",
    r.OverloadCause.WORKERS: "all its workers are busy",
    r.OverloadCause.CALLS: "waiting for {}",
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
    others = [service for service in overloaded if service.workload not in {worst.workload, worst.began_with}]
    more = f"; {counted(len(others), 'more service')} overloaded" if others else ""
    return f"{short(worst.workload)}: {', '.join(figures)}{_began(worst)}{more}."


def _began(service: ServiceOutcome) -> str:
    if service.cause is None:
        return ""
    if service.began_with:
        return f"; began with {short(service.began_with)}, {overload_cause(service.cause)}"
    return "" if service.cause is r.OverloadCause.CALLS else f"; {overload_cause(service.cause)}"


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
