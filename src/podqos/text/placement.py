"""Why a pod fits on no node: the scheduler's own messages word for word, and the numbers and names behind each reason.

Operators search for the scheduler's texts, so they are Kubernetes' own; the data is in ``placement.reasons``.

Source: Kubernetes v1.36 pkg/scheduler/framework/types.go (FitError) and the filter plugins, as recorded from a running
scheduler; v1.11 pkg/scheduler/algorithm/predicates/error.go for conditions that are not taints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from podqos.amounts import mebibytes
from podqos.model.node import PODS
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, is_hugepages
from podqos.placement import reasons
from podqos.placement.place import WaitReason
from podqos.placement.reasons import (
    AffinityMismatch,
    AffinityUnmet,
    Insufficient,
    Reason,
    Reasons,
    UnderPressure,
    UntoleratedTaint,
)
from podqos.placement.schedule import NoCandidate

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


# ---- in podqos' own words --------------------------------------------------------------------------------------------

_REASONS: Mapping[type[Reason], str] = {
    UntoleratedTaint: "taint {0.taint.key}={0.taint.value}:{0.taint.effect}",
    reasons.UnderPressure: "condition {0.condition}",
    reasons.Unschedulable: "cordoned",
    reasons.NotNamed: "not the node it names",
    reasons.NamesConflict: "its node affinity requires several names at once",
    reasons.SelectorMismatch: "label {0.key} is {found}, not {0.wanted}",
    AffinityMismatch: "required node affinity: {failed}",
    reasons.PortTaken: "host port {0.port}/{0.protocol} is in use",
    reasons.MissingTopologyLabel: "no label {0.topology_key} to spread over",
    reasons.SkewTooLarge: "{0.topology_key}={0.topology_value} has {0.matching}, minimum {0.minimum}, "
    "maxSkew {0.max_skew}",
    AffinityUnmet: "no pod matches its affinity in {0.topology_key}={0.topology_value}",
    reasons.AntiAffinityViolated: "a pod matches its anti-affinity in {0.topology_key}={0.topology_value}",
    reasons.ExistingAntiAffinity: "anti-affinity of another pod in {0.topology_key}={0.topology_value}",
    reasons.FeaturesNotDeclared: "it does not declare {missing}",
}


def reason_words(reason: Reason) -> str:
    """Return one reason with the numbers and names behind it."""
    found = failed = missing = ""
    match reason:
        case Insufficient(resource=resource, requested=requested, used=used, capacity=capacity):
            if resource == PODS:
                return f"it has {used} of {capacity} pods"
            wanted, taken, of = (rounded_amount(resource, count) for count in (requested, used, capacity))
            return f"{resource}: requests {wanted}, {taken} of {of} already requested"
        case UntoleratedTaint(taint=taint) if not taint.value:
            return f"taint {taint.key}:{taint.effect}"
        case AffinityUnmet(topology_key=key, topology_value=None | ""):
            return f"no label {key}"
        case reasons.SelectorMismatch():
            found = reason.found or "missing"
        case AffinityMismatch():
            terms = (
                f"{requirement.key} {requirement.operator} {', '.join(requirement.values)}".rstrip()
                for requirement in reason.failed
            )
            failed = " or ".join(terms) or "no term can match"
        case reasons.FeaturesNotDeclared():
            missing = ", ".join(reason.features)
    return _REASONS[type(reason)].format(reason, found=found, failed=failed, missing=missing)


def amount_text(resource: str, count: int) -> str:
    """Return an amount in the scheduler's unit as manifests write it."""
    if resource == CPU:
        return str(Quantity.of_milli(count))
    return str(Quantity.of_units(count, "BinarySI" if resource == MEMORY else "DecimalSI"))


def rounded_amount(resource: str, count: int) -> str:
    """Return an amount as people read it: bytes in MiB or more."""
    in_bytes = resource in {MEMORY, EPHEMERAL_STORAGE} or is_hugepages(resource)
    return mebibytes(count) if in_bytes and count else amount_text(resource, count)
