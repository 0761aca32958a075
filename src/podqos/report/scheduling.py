"""What the scheduler says when it finds no node, word for word.

Operators search for these texts, so they are Kubernetes' own; the data behind them is in ``placement.reasons``.

Source: Kubernetes v1.36 pkg/scheduler/framework/types.go (FitError) and the filter plugins, as recorded from a running
scheduler; v1.11 pkg/scheduler/algorithm/predicates/error.go for conditions that are not taints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from podqos.placement.reasons import (
    PODS,
    AffinityMismatch,
    AffinityUnmet,
    AntiAffinityViolated,
    ExistingAntiAffinity,
    Insufficient,
    MissingTopologyLabel,
    NotNamed,
    PortTaken,
    Reason,
    SelectorMismatch,
    SkewTooLarge,
    UnderPressure,
    Unschedulable,
    UntoleratedTaint,
)

_OF_CONDITION = {
    "MemoryPressure": "node(s) had memory pressure",
    "DiskPressure": "node(s) had disk pressure",
    "PIDPressure": "node(s) had pid pressure",
    "NetworkUnavailable": "node(s) had unavailable network",
    "Ready": "node(s) were not ready",
}


def reason_text(reason: Reason) -> str:
    """Return the scheduler's words for one reason."""
    match reason:
        case Insufficient():
            return "Too many pods" if reason.resource == PODS else f"Insufficient {reason.resource}"
        case UntoleratedTaint():
            return "node(s) had untolerated taint(s)"
        case UnderPressure():
            return _OF_CONDITION[reason.condition]
        case Unschedulable():
            return "node(s) were unschedulable"
        case NotNamed():
            return "node(s) didn't satisfy plugin(s) [NodeAffinity]"
        case SelectorMismatch() | AffinityMismatch():
            return "node(s) didn't match Pod's node affinity/selector"
        case PortTaken():
            return "node(s) didn't have free ports for the requested pod ports"
        case MissingTopologyLabel():
            return "node(s) didn't match pod topology spread constraints (missing required label)"
        case SkewTooLarge():
            return "node(s) didn't match pod topology spread constraints"
        case AffinityUnmet():
            return "node(s) didn't match pod affinity rules"
        case AntiAffinityViolated():
            return "node(s) didn't match pod anti-affinity rules"
        case ExistingAntiAffinity():
            return "node(s) didn't satisfy existing pods anti-affinity rules"


def no_node_message(node_count: int, texts: Iterable[str]) -> str:
    """Return ``0/5 nodes are available: 3 Insufficient cpu, 2 …``, one text per node and reason."""
    counted = sorted(f"{count} {text}" for text, count in Counter(texts).items())
    return f"0/{node_count} nodes are available:" + (f" {', '.join(counted)}." if counted else "")
