"""What would have saved a pod, in words."""

from __future__ import annotations

from podqos.agent.journal import By
from podqos.report.simulation.view import Saving
from podqos.report.survival.ranking import amount
from podqos.report.text.words import edits
from podqos.survival.counterfactual import Counterfactual, PodChange
from podqos.wording import mebibytes


def saving(counterfactual: Counterfactual, by: By) -> Saving:
    """Word a change and what would have followed from it."""
    return Saving(
        _change(counterfactual), _effect(counterfactual, by), counterfactual.saves, tuple(edits(counterfactual.edits))
    )


def _change(counterfactual: Counterfactual) -> str:
    much = "" if counterfactual.amount is None else amount(counterfactual.amount, counterfactual.resource)
    match counterfactual.change:
        case PodChange.LESS:
            return f"Use {much} less"
        case PodChange.REQUEST:
            return f"Request {much} of {counterfactual.resource}"
        case PodChange.GUARANTEED:
            return "Make it Guaranteed"
        case PodChange.PRIORITY:
            return f"A priority of {counterfactual.amount}"


def _effect(counterfactual: Counterfactual, by: By) -> str:
    parts = []
    if counterfactual.oom_score_adj is not None:
        parts.append(f"oom_score_adj {_signed(counterfactual.oom_score_adj)}")
    whose = "kernel's" if by is By.KERNEL else "kubelet's"
    parts.append(f"place {counterfactual.place} of {counterfactual.others + 1} in the {whose} order")
    if counterfactual.instead is None:
        return f"{', '.join(parts)}: still the first"
    if counterfactual.over_limit_bytes is not None:
        return f"{', '.join(parts)}, but {mebibytes(counterfactual.over_limit_bytes)} over the limit that comes with it"
    verb = "killed" if by is By.KERNEL else "evicted"
    return f"{', '.join(parts)}; {counterfactual.instead} would have been {verb} instead"


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
