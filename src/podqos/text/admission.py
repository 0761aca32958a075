"""Admission in words. Every sentence here renders a value; nothing is decided a second time.

The API server's own texts are part of its interface and come with the refusal.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from podqos.admission.chain import Step, StepResult
from podqos.admission.limit_range import ConflictingDefaults
from podqos.admission.refusal import Code, MissingObject, Refusal
from podqos.admission.resource_override import Exempt, OverrideUse
from podqos.amounts import listed
from podqos.naming import stated_with

_STATUS = {
    Code.BAD_REQUEST: "Bad Request",
    Code.FORBIDDEN: "Forbidden",
    Code.NOT_FOUND: "Not Found",
    Code.INVALID: "Invalid",
    Code.INTERNAL_ERROR: "Internal Server Error",
}


def status(code: Code) -> str:
    """Return an HTTP status as people say it: ``403 Forbidden``."""
    return f"{int(code)} {_STATUS[code]}"


OTHER_FIELDS = "Other fields are not judged: `kubectl apply --dry-run=server` sends them to the API server."
"""Said once below answers for people."""


def not_judged(paths: Sequence[str]) -> str:
    """Return the fields that podqos does not judge, those of one part of the pod together."""
    fields: dict[str, list[str]] = {}
    for path in paths:
        # An annotation, and what is no field at all, is named as a whole.
        part, _, name = ("", "", path) if path.endswith("]") or " " in path else path.rpartition(".")
        fields.setdefault(part, []).append(name)
    parts = [f"{part}: {', '.join(names)}" if part else ", ".join(names) for part, names in fields.items()]
    return "; ".join(parts)


def why_drift(result: StepResult) -> str:
    """Return what changed the class, or nothing if it did not change."""
    if result.class_before is result.class_after:
        return ""
    sides = listed(sorted({_side(change.path) for change in result.changes}, reverse=True))
    match result.step:
        case Step.LIMIT_RANGER | Step.LIMIT_RANGER_AGAIN:
            names = list(dict.fromkeys(change.source for change in result.changes))
            several = "LimitRanges" if len(names) > 1 else "LimitRange"
            return f"{several} {listed(names)} set default {sides}"
        case Step.CLUSTER_RESOURCE_OVERRIDE:
            return f"the ClusterResourceOverride set its {sides}"
        case Step.POD_LEVEL_DEFAULTING:
            return f"the pod's {sides} were computed from its containers"
    return "limits were copied to missing requests"


def conflict(conflicting: ConflictingDefaults) -> str:
    """Return the warning about defaults that depend on an order that is not defined."""
    side = conflicting.side.removesuffix("s")
    offers = listed(
        [f"{name} {amount}" for name, amount in zip(conflicting.limit_ranges, conflicting.amounts, strict=True)]
    )
    return (
        f"several LimitRanges default the {conflicting.resource} {side} ({offers}): "
        "which one applies is undefined, and may differ between API servers"
    )


def exempt(use: OverrideUse, why: Exempt) -> str:
    """Return why an override leaves the pods of a namespace alone."""
    profile = use.profile
    reasons = {
        Exempt.SYSTEM_NAMESPACE: "system namespaces are exempt",
        Exempt.NOT_OPTED_IN: f"the namespace lacks the label {profile.opt_in_label}=true",
        Exempt.OPTED_OUT: f"the namespace opts out with the annotation {profile.opt_out_annotation}",
    }
    return f"not applied to namespace {use.namespace}: {reasons[why]} (profile {profile.name})"


def applied(use: OverrideUse, *, changes: bool) -> str:
    """Return that an override counts, and that it may still change nothing."""
    rest = "" if changes else ", but changes nothing: limits are missing, or the requests already match"
    return f"applied to namespace {use.namespace} (profile {use.profile.name}){rest}"


def hint(refusal: Refusal, listed_kinds: Collection[str]) -> str:
    """Return how to fix a refusal that is due to an object which the cluster lacks, or podqos was not given."""
    if refusal.code is Code.NOT_FOUND:
        if "Namespace" in listed_kinds:
            return "the cluster has no such namespace: create it first"
        return f"if the cluster has this namespace, list it in {stated_with('policies')}"
    if isinstance(refusal.denied, MissingObject):
        what = f"{refusal.denied.kind} {refusal.denied.name}"
        if refusal.denied.kind in listed_kinds:
            return f"the cluster has no {what}: create it first"
        return f"if the cluster has the {what}, give it with {stated_with('policies')}"
    return ""


def stored_without_pods(kind: str) -> str:
    """Return what a refused pod means for the object around its template."""
    return f"the {kind} itself is stored; its controller keeps trying and reports FailedCreate"


def _side(path: str) -> str:
    return path.rpartition(".")[2]
