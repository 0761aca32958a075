"""Words for what ``survival.drift`` finds: changed fields, and workloads that changed places in a kill order."""

from __future__ import annotations

from podqos.survival.drift.differences import DifferenceKind, PodChange
from podqos.survival.drift.drift import Order, ReversedPair
from podqos.survival.drift.resizing import ResizeCost, Resizing
from podqos.words.qos import kept_scores


def difference_words(difference: PodChange) -> str:
    """Return what changed, in words."""
    by = f" by {difference.injected_by}" if difference.injected_by else ""
    where = difference.container or "the pod"
    match difference.kind:
        case DifferenceKind.CONTAINER_ADDED:
            return f"container {where} was {'injected' if by else 'added'}{by}"
        case DifferenceKind.CONTAINER_REMOVED:
            return f"container {where} was removed"
        case DifferenceKind.POD_RESOURCES:
            return "pod-level resources were " + ("added" if difference.after else "removed")
        case DifferenceKind.PRIORITY:
            return f"priority {difference.before} → {difference.after}"
        case _:
            return f"{where}: {difference.field} {difference.before or 'none'} → {difference.after or 'none'}"


def resize_words(verdict: ResizeCost) -> str:
    """Return what it takes to give running pods their new resources, in words."""
    scores = f"; {kept_scores(verdict.keeps_scores)}" if verdict.keeps_scores else ""
    match verdict.outcome:
        case Resizing.IN_PLACE:
            return f"running pods can be resized in place, without a restart{scores}"
        case Resizing.RESTART:
            restarts = ", ".join(verdict.restarts)
            return f"running pods can be resized in place; restarts: {restarts} (resizePolicy){scores}"
        case Resizing.REFUSED:
            return f"needs new pods: the API server rejects a resize ({'; '.join(verdict.reasons)})"


_VERBS = {Order.EVICTION: "evicted", Order.KERNEL: "killed"}


def overtaking_words(move: ReversedPair, workload: str) -> str:
    """Return a move in words, from the side of one of the two, and which of them changed."""
    reason = f"never evicted: {move.spared}" if move.spared is not None else str(move.key)
    if workload == move.goes_first:
        said = f"now {_VERBS[move.order]} before {move.outlives} ({reason})"
        own, other, who = move.first_changed, move.other_changed, move.outlives
    else:
        said = f"{move.goes_first} is now {_VERBS[move.order]} before it ({reason})"
        own, other, who = move.other_changed, move.first_changed, move.goes_first
    if own:
        return f"{said}; both changed" if other else said
    return f"{said}; only {who} changed"
