"""Why a pod does not fit on a node, with the numbers and names behind each reason."""

from __future__ import annotations

from collections.abc import Mapping

from podqos.model.node import PODS
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, is_hugepages
from podqos.placement import reasons
from podqos.placement.reasons import AffinityMismatch, AffinityUnmet, Insufficient, Reason, UntoleratedTaint
from podqos.wording import mebibytes

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
