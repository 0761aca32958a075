"""Words for what ``survival.drift`` finds: changed fields, and workloads that changed places in a kill order."""

from __future__ import annotations

from collections.abc import Iterable

from podqos.survival.drift.differences import DifferenceKind, PodChange
from podqos.survival.drift.drift import Order, ReversedPair
from podqos.survival.drift.resizing import ResizeCost, Resizing
from podqos.wording import listed, verb
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
        case Resizing.BELOW_USAGE:
            return "running pods are not resized in place: the kubelet sets no memory limit below current usage"
        case Resizing.REFUSED:
            return f"needs new pods: the API server rejects a resize ({'; '.join(verdict.reasons)})"


# Workloads of one sentence that are named.
_NAMED = 5
_VERBS = {Order.EVICTION: "evicted", Order.KERNEL: "killed"}


def overtaking_words(move: ReversedPair, workload: str) -> str:
    """Return a move in words, from the side of one of the two, and which of them changed."""
    return overtakings_words((move,), workload)[0]


def overtakings_words(moves: Iterable[ReversedPair], workload: str) -> list[str]:
    """Return moves in words, from the side of a workload that is part of all; those of one kind are one sentence."""
    kinds: dict[tuple[bool, str, bool, bool], list[str]] = {}
    for move in moves:
        reason = f"never evicted: {move.spared}" if move.spared is not None else str(move.key)
        is_first = workload == move.goes_first
        other = move.outlives if is_first else move.goes_first
        changed = (move.first_changed, move.other_changed)
        kind = (is_first, f"{_VERBS[move.order]} before {{}} ({reason})", *(changed if is_first else changed[::-1]))
        kinds.setdefault(kind, []).append(other)
    return [_sentence(kind, names) for kind, names in kinds.items()]


def _sentence(kind: tuple[bool, str, bool, bool], names: list[str]) -> str:
    is_first, turned, own_changed, other_changed = kind
    is_one = len(names) == 1
    rest = len(names) - _NAMED
    others = listed(names) if rest <= 0 else f"{', '.join(names[:_NAMED])} and {rest} more"
    said = (
        f"now {turned.format(others)}" if is_first else f"{others} {verb(names, 'is', 'are')} now {turned.format('it')}"
    )
    if not own_changed:
        return f"{said}; only {others if is_one else 'these'} changed"
    return f"{said}; {'both' if is_one else 'all'} changed" if other_changed else said
