"""How advice fared when it was tried, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podqos.advice.sizing.sizing import UsageHistory
from podqos.advice.sizing.tried import AdviceTrial, Fate, Reason, Untried, WorkloadTrial
from podqos.wording import counted, listed

_HOUR, _DAY = 3600, 86_400
UNTRIED = {
    Untried.NO_NODES: "no nodes given, so only each pod's own limits were tested",
    Untried.NO_SAMPLES: "no usage given for some of its containers",
    Untried.NO_TIMES: "samples have no timestamps: treated as one per minute",
    Untried.NEED_UNKNOWN: "it was OOM-killed, so it needs more than was measured",
    Untried.TOO_MANY: "too many pods and nodes to test them together",
}
_UNTRIED_AMONG_ALL = {
    **UNTRIED,
    Untried.NO_SAMPLES: "workloads without usage were not tested",
    Untried.NEED_UNKNOWN: "containers that were OOM-killed need more than was measured",
}
_FAILED = {
    Reason.OOM_KILLED: "OOM-killed",
    Reason.EVICTED: "evicted",
    Reason.THROTTLED: "throttled more than now",
    Reason.REFUSED: "rejected by the API server",
    Reason.FOUND: "warned about",
}


def trial_words(trial: WorkloadTrial, usages: Iterable[UsageHistory], *, is_withheld: bool, refusal: str) -> str:
    """Return how the advice about one workload fared; what it requests, assumed to be its usage, tests nothing."""
    known = list(usages)
    if is_withheld:
        return f"not advised: {_why_not(trial, refusal)}"
    if not any(usage.memory_bytes for usage in known):
        said = ["no memory usage given: OOM kills and evictions not tested" if known else "no usage given: not tested"]
        if trial.after.pending:
            said.append(
                f"{counted(trial.after.pending, 'pod')} pending{_now(trial.after.pending, trial.before.pending)}"
            )
        return "; ".join(said)
    said = [f"tested: {_fate(trial.after, trial.before)}", *_raised(trial)]
    return "; ".join([*said, *(UNTRIED[untried] for untried in trial.untried)])


def _why_not(trial: WorkloadTrial, refusal: str) -> str:
    if Reason.FOUND in trial.failed:
        return f"podqos check would find: {refusal}"
    if Reason.REFUSED in trial.failed:
        return f"the API server would reject it: {refusal}"
    after = trial.after
    counts = []
    if after.oom_kills:
        counts.append(f"{counted(after.oom_kills, 'OOM kill')}")
    if after.evictions:
        counts.append(f"{counted(after.evictions, 'eviction')}")
    if Reason.THROTTLED in trial.failed:
        before = duration(trial.before.throttled_seconds or 0)
        counts.append(f"throttled for {duration(after.throttled_seconds or 0)} ({before} now)")
    fates = listed([_FAILED[reason] for reason in trial.failed])
    return f"at the computed sizes it would be {fates}{f' ({listed(counts)})' if counts else ''}"


def _raised(trial: WorkloadTrial) -> Iterator[str]:
    for raised in trial.raised:
        side, _, resource = raised.field.partition(".")
        at = "without one" if raised.sized is None else f"at {raised.sized}"
        what = f"{resource} {side.removesuffix('s')} of {raised.container} raised to {raised.raised}"
        yield f"{what} ({at} it would be {_FAILED[raised.because]})"


def whole_words(trial: AdviceTrial) -> str:
    """Return how all advice together fared."""
    if trial.replayed_seconds is None:
        if not trial.nodes:
            return "No usage given: not tested"
        pending = counted(trial.after.pending, "pod") if trial.after.pending else "no pods"
        now = _now(trial.after.pending or 0, trial.before.pending)
        return f"No usage given: only placement was tested, on {counted(trial.nodes, 'node')}: {pending} pending{now}"
    where = f"placed on {counted(trial.nodes, 'node')}" if trial.nodes else "each pod on its own"
    usage = f"{duration(trial.replayed_seconds)} of usage replayed"
    said = f"Tested: {where}, {usage}: {_fate(trial.after, trial.before)}"
    return "; ".join([said, *(_UNTRIED_AMONG_ALL[untried] for untried in trial.untried)])


def _fate(after: Fate, before: Fate) -> str:
    """Return what happened, beside what happens now where that differs."""
    parts = [
        _count(after.oom_kills, before.oom_kills, "OOM kill"),
        _count(after.evictions, before.evictions, "eviction"),
    ]
    throttled, now = after.throttled_seconds or 0, before.throttled_seconds
    is_same = now is None or throttled == now
    parts.append(
        ("throttled for " + duration(throttled) if throttled else "never throttled")
        + ("" if is_same else f" ({duration(now or 0)} now)")
    )
    if after.pending:
        parts.append(f"{counted(after.pending, 'pod')} pending{_now(after.pending, before.pending)}")
    return ", ".join(parts)


def _count(after: int | None, before: int | None, noun: str) -> str:
    return f"{counted(after, noun) if after else f'no {noun}s'}{_now(after or 0, before)}"


def _now(after: int, before: int | None) -> str:
    return "" if before is None or before == after else f" ({before} now)"


def pending_words(workload: str, count: int) -> str:
    """Return that pods of a workload would find no node."""
    return f"{counted(count, 'pod')} of {workload} would be pending"


def duration(seconds: float) -> str:
    """Return a time in the unit that is easiest to read."""
    if seconds >= _DAY:
        return f"{seconds / _DAY:.3g} days"
    if seconds >= _HOUR:
        return f"{seconds / _HOUR:.3g} h"
    return f"{seconds / 60:.3g} min" if seconds >= 60 else f"{seconds:.3g} s"
