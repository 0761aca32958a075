"""The scheduler's own messages for a pod that fits on no node, word for word.

Operators search for these texts, so they are Kubernetes' own; the data behind them is in ``placement.reasons``.

Source: Kubernetes v1.36 pkg/scheduler/framework/types.go (FitError) and the filter plugins, as recorded from a running
scheduler; v1.11 pkg/scheduler/algorithm/predicates/error.go for conditions that are not taints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from podqos.model.node import PODS
from podqos.placement import reasons
from podqos.placement.outcome import WaitReason
from podqos.placement.preemption import NoCandidate
from podqos.placement.reasons import Insufficient, Reason, Reasons, UnderPressure

_NO_CANDIDATE = {
    NoCandidate.NOT_HELPFUL: "Preemption is not helpful for scheduling",
    NoCandidate.NO_VICTIMS: "No preemption victims found for incoming pod",
}
_OF_CONDITION = {
    "MemoryPressure": "node(s) had memory pressure",
    "DiskPressure": "node(s) had disk pressure",
    "PIDPressure": "node(s) had pid pressure",
    "NetworkUnavailable": "node(s) had unavailable network",
    "Ready": "node(s) were not ready",
}


_TEXTS: Mapping[type[Reason], str] = {
    Insufficient: "Insufficient {0.resource}",
    reasons.UntoleratedTaint: "node(s) had untolerated taint(s)",
    reasons.Unschedulable: "node(s) were unschedulable",
    reasons.NotNamed: "node(s) didn't satisfy plugin(s) [NodeAffinity]",
    reasons.NamesConflict: "pod affinity terms conflict",
    reasons.SelectorMismatch: "node(s) didn't match Pod's node affinity/selector",
    reasons.AffinityMismatch: "node(s) didn't match Pod's node affinity/selector",
    reasons.PortTaken: "node(s) didn't have free ports for the requested pod ports",
    reasons.MissingTopologyLabel: "node(s) didn't match pod topology spread constraints (missing required label)",
    reasons.SkewTooLarge: "node(s) didn't match pod topology spread constraints",
    reasons.AffinityUnmet: "node(s) didn't match pod affinity rules",
    reasons.AntiAffinityViolated: "node(s) didn't match pod anti-affinity rules",
    reasons.ExistingAntiAffinity: "node(s) didn't satisfy existing pods anti-affinity rules",
    reasons.FeaturesNotDeclared: "node(s) didn't match Pod's required features",
}


def reason_text(reason: Reason) -> str:
    """Return the scheduler's words for one reason."""
    if isinstance(reason, UnderPressure):
        return _OF_CONDITION[reason.condition]
    if isinstance(reason, Insufficient) and reason.resource == PODS:
        return "Too many pods"
    return _TEXTS[type(reason)].format(reason)


def refusal_message(refusal: WaitReason) -> str:
    """Return the whole message of the FailedScheduling event."""
    if not refusal.nodes:
        return "no nodes available to schedule pods"
    if any(isinstance(reason, reasons.NamesConflict) for reason in refusal.nodes[0].first):
        # No node is looked at, and the dynamic resource allocation plug-in does not find its state afterwards.
        return f"0/{len(refusal.nodes)} nodes are available: pod affinity terms conflict. not found"
    texts = (reason_text(reason) for node in refusal.nodes for reason in node.first)
    filtered = no_node_message(len(refusal.nodes), texts)
    # The first half is the dynamic resource allocation plug-in's, which is always asked and here never has claims.
    return f"{filtered} no new claims to deallocate, preemption: {_preemption_message(refusal)}"


def _preemption_message(refusal: WaitReason) -> str:
    failure = refusal.preemption
    if not failure.is_eligible:
        return "not eligible due to preemptionPolicy=Never."
    texts = (text for found in failure.nodes.values() for text in _failure_texts(found))
    return no_node_message(len(refusal.nodes), texts)


def _failure_texts(found: NoCandidate | Reasons) -> tuple[str, ...]:
    if isinstance(found, NoCandidate):
        return (_NO_CANDIDATE[found],)
    return tuple(map(reason_text, found))


def no_node_message(node_count: int, texts: Iterable[str]) -> str:
    """Return ``0/5 nodes are available: 3 Insufficient cpu, 2 …``, one text per node and reason."""
    counted = sorted(f"{count} {text}" for text, count in Counter(texts).items())
    return f"0/{node_count} nodes are available:" + (f" {', '.join(counted)}." if counted else "")
