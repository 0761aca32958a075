"""What would have saved a pod, in words."""

from __future__ import annotations

from podqos.agent.journal import By
from podqos.report.simulation.view import Saving
from podqos.report.survival.ranking import amount
from podqos.report.text.words import edits
from podqos.survival.counterfactual import Change, Rescue
from podqos.wording import mebibytes


def saving(rescue: Rescue, by: By) -> Saving:
    """Word a change and what would have followed from it."""
    return Saving(_change(rescue), _effect(rescue, by), rescue.saves, tuple(edits(rescue.edits)))


def _change(rescue: Rescue) -> str:
    much = "" if rescue.amount is None else amount(rescue.amount, rescue.resource)
    match rescue.change:
        case Change.LESS:
            return f"Use {much} less"
        case Change.REQUEST:
            return f"Request {much} of {rescue.resource}"
        case Change.GUARANTEED:
            return "Make it Guaranteed"
        case Change.PRIORITY:
            return f"A priority of {rescue.amount}"


def _effect(rescue: Rescue, by: By) -> str:
    parts = []
    if rescue.oom_score_adj is not None:
        parts.append(f"oom_score_adj {_signed(rescue.oom_score_adj)}")
    whose = "kernel's" if by is By.KERNEL else "kubelet's"
    parts.append(f"place {rescue.place} of {rescue.others + 1} in the {whose} order")
    if rescue.instead is None:
        return f"{', '.join(parts)}: still the first"
    if rescue.over_limit_bytes is not None:
        return f"{', '.join(parts)}, but {mebibytes(rescue.over_limit_bytes)} over the limit that comes with it"
    verb = "killed" if by is By.KERNEL else "evicted"
    return f"{', '.join(parts)}; {rescue.instead} would have been {verb} instead"


def kubelet_in_time(threshold_bytes: int, growth_bytes_per_second: int, would_evict: str | None, pod: str) -> Saving:
    """Word the threshold with which the kubelet would have acted before the kernel had to."""
    rate = f"{mebibytes(growth_bytes_per_second)}/s"
    who = "the same pod" if would_evict == pod else would_evict or "nobody"
    return Saving(
        change=f"evictionHard memory.available {mebibytes(threshold_bytes)}",
        effect=f"memory fell by {rate}; from there the kubelet looks in time wherever its loop is, and evicts {who}",
        saves=would_evict is not None and would_evict != pod,
    )


def _signed(value: int) -> str:
    return str(value) if value >= 0 else f"−{-value}"
