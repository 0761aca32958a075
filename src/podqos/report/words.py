"""Decisions in words. Every sentence here renders a value; nothing is decided or computed a second time."""

from __future__ import annotations

from collections.abc import Iterable

from podqos.model.pod import QOSClass
from podqos.model.quantity import Quantity
from podqos.qos.classes import Classification, Edit, Missing, Place, Unequal
from podqos.qos.oom import OOMRule, OOMScore


def why_class(classification: Classification) -> str:
    """Return why a pod has its class, in one sentence."""
    if classification.qos_class is QOSClass.BEST_EFFORT:
        if classification.decided_by == "pod":
            return "spec.resources is present and sets neither cpu nor memory, so the containers are not asked"
        return "no container sets a cpu or memory request or limit"
    if classification.qos_class is QOSClass.GUARANTEED:
        if classification.decided_by == "pod":
            return "the pod-level cpu and memory requests equal their limits"
        return "every container has cpu and memory limits, and requests equal limits"
    return "; ".join((*_missing_clauses(classification.missing_limits), *_unequal_clauses(classification.unequal)))


def edits(changes: tuple[Edit, ...]) -> list[str]:
    """Return the lines to write, as ``path: value``."""
    return [f"{change.path}: {amount(change.value)}{_replacing(change)}" for change in changes]


def amount(quantity: Quantity | None) -> str:
    """Return an amount, or a place to fill in."""
    return "<choose>" if quantity is None else str(quantity)


def oom_rule(score: OOMScore, node_memory_bytes: int) -> str:
    """Return why a container has its oom_score_adj."""
    formula = f"1000 − 1000 × {mebibytes(score.request_bytes or 0)} / {mebibytes(node_memory_bytes)}"
    match score.rule:
        case OOMRule.NODE_CRITICAL:
            return "node-critical pod"
        case OOMRule.GUARANTEED:
            return "Guaranteed: fixed"
        case OOMRule.BEST_EFFORT:
            return "BestEffort: fixed"
        case OOMRule.BURSTABLE:
            return formula
        case OOMRule.SIDECAR:
            return f"{formula}, the smallest regular container's"
        case OOMRule.FLOOR:
            return f"{formula}, raised above every Guaranteed"
        case OOMRule.CEILING:
            return f"{formula}, lowered below every BestEffort"


def mebibytes(count: int) -> str:
    """Return a number of bytes for people: ``4130Mi``, ``64Gi``, ``23.4Gi``."""
    quantity = Quantity.of_units(count, "BinarySI")
    text = quantity.canonical()
    if text[-2:] in {"Mi", "Gi", "Ti"}:
        return text
    return f"{count / 2**30:.1f}Gi" if count >= 2**30 else f"{count / 2**20:.1f}Mi"


def _missing_clauses(missing: tuple[Missing, ...]) -> Iterable[str]:
    by_place: dict[Place, list[str]] = {}
    for lack in missing:
        by_place.setdefault(lack.place, []).append(lack.resource)
    for place, resources in by_place.items():
        yield f"{_named(place)} has no {' and no '.join(f'{resource} limit' for resource in resources)}"


def _unequal_clauses(unequal: tuple[Unequal, ...]) -> Iterable[str]:
    """Word the differences, but for missing limits, which have been told already."""
    for resource in unequal:
        for difference in resource.differences:
            if difference.limit:
                request = difference.request or "none"
                who = _named(difference.place)
                yield f"{who} requests {request} of its {resource.resource} limit {difference.limit}"


def _named(place: Place) -> str:
    if place.is_pod:
        return "the pod"
    return f"init container {place.container}" if "initContainers" in place.path else place.container


def _replacing(change: Edit) -> str:
    return f"   # was {change.replaces}" if change.replaces is not None else ""
