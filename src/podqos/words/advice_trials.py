"""How advice fared when it was tried, in words."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.advice.sizing.tried import AdviceTrial, Fate, PoolNeed, Reason, Untried, WorkloadTrial
from podqos.wording import counted, listed

_HOUR, _DAY = 3600, 86_400
UNTRIED = {
    Untried.NO_NODES: "no nodes given, so only each pod's own limits were tested",
    Untried.NO_SAMPLES: "no usage data: usage assumed to equal requests",
    Untried.NO_TIMES: "samples have no timestamps: treated as one per minute",
    Untried.NEED_UNKNOWN: "it was OOM-killed, so it needs more than was measured",
    Untried.TOO_MANY: "too many pods and nodes to test them together",
}
_UNTRIED_AMONG_ALL = {
    **UNTRIED,
    Untried.NO_SAMPLES: "workloads without samples are assumed to use their requests",
    Untried.NEED_UNKNOWN: "containers that were OOM-killed need more than was measured",
}
_FAILED = {
    Reason.OOM_KILLED: "OOM-killed",
    Reason.EVICTED: "evicted",
    Reason.THROTTLED: "throttled more than now",
    Reason.REFUSED: "rejected by the API server",
}


def trial_words(trial: WorkloadTrial, *, is_withheld: bool, refusal: str) -> str:
    """Return how the advice about one workload fared, and what rests on nothing."""
    if is_withheld:
        return f"not advised: {_why_not(trial, refusal)}"
    said = [f"tested: {_fate(trial.after, trial.before)}", *_raised(trial)]
    return "; ".join([*said, *(UNTRIED[untried] for untried in trial.untried)])


def _why_not(trial: WorkloadTrial, refusal: str) -> str:
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
    where = f"placed on {counted(trial.nodes, 'node')}" if trial.nodes else "each pod on its own"
    usage = "" if trial.replayed_seconds is None else f", {duration(trial.replayed_seconds)} of usage replayed"
    said = f"Tested: {where}{usage}: {_fate(trial.after, trial.before)}"
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


def pool_words(pool: PoolNeed) -> str:
    """Return how many nodes of a pool are needed, beside now."""
    if pool.needed is None or pool.needed_before is None:
        return f"{pool.pool}: {counted(pool.nodes, 'node')}; the number needed was not tested"
    if pool.needed > pool.nodes:
        now = ", as now" if pool.needed == pool.needed_before else ""
        return f"{pool.pool}: {pool.needed - pool.nodes} more needed than the {pool.nodes} available{now}"
    fits = f"{pool.needed} of {counted(pool.nodes, 'node')} {'suffices' if pool.needed == 1 else 'suffice'}"
    if pool.needed_before > pool.nodes:
        return f"{pool.pool}: {fits}; now {pool.needed_before - pool.nodes} more would be needed"
    if pool.spared > 0:
        return f"{pool.pool}: {fits}, {pool.spared} fewer than now"
    if pool.spared < 0:
        return f"{pool.pool}: {fits}, {-pool.spared} more than now"
    return f"{pool.pool}: {fits}, as now"


def duration(seconds: float) -> str:
    """Return a time in the unit that is easiest to read."""
    if seconds >= _DAY:
        return f"{seconds / _DAY:.3g} days"
    if seconds >= _HOUR:
        return f"{seconds / _HOUR:.3g} h"
    return f"{seconds / 60:.3g} min" if seconds >= 60 else f"{seconds:.3g} s"
