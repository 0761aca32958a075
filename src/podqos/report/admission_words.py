"""Admission in words. Every sentence here renders a value; nothing is decided a second time.

The API server's own texts are part of its interface and come with the refusal.
"""

from __future__ import annotations

from collections.abc import Sequence

from podqos.admission.chain import Step, StepResult
from podqos.admission.changes import Change, FieldChange, Why
from podqos.admission.limit_range import ConflictingDefaults
from podqos.admission.refusal import Code, Missing, Refusal
from podqos.admission.resource_override import Exempt, OverrideUse

_STATUS = {
    Code.BAD_REQUEST: "Bad Request",
    Code.FORBIDDEN: "Forbidden",
    Code.NOT_FOUND: "Not Found",
    Code.INVALID: "Invalid",
}

# Why something was written into a pod; {source} is the name of the policy.
_REASONS = {
    Why.REQUEST_FROM_LIMIT: "copied from the limit",
    Why.POD_REQUEST_FROM_CONTAINERS: "what the containers add up to",
    Why.POD_REQUEST_FROM_LIMIT: "copied from the limit",
    Why.POD_HUGEPAGES_LIMIT_FROM_CONTAINERS: "what the containers add up to",
    Why.POD_LEVEL_RESOURCES_UNKNOWN: "this version knows no resources of the pod as a whole and drops them",
    Why.ROUNDED_UP_TO_MILLI: "rounded up to thousandths",
    Why.LIMIT_RANGE_DEFAULT: "default of LimitRange {source}",
    Why.LIMIT_RANGE_DEFAULT_REQUEST: "defaultRequest of LimitRange {source}",
    Why.RUNTIME_CLASS_OVERHEAD: "overhead of RuntimeClass {source}",
    Why.PRIORITY_FROM_CLASS: "PriorityClass {source}",
    Why.PRIORITY_FROM_GLOBAL_DEFAULT: "PriorityClass {source}, the default of pods that name none",
    Why.PRIORITY_WITHOUT_CLASS: "no PriorityClass is named, and none is the default",
    Why.DAEMON_SET_TOLERATION: "pods of a DaemonSet stay on lost nodes and run on nodes under pressure",
    Why.TOLERATION_OF_LOST_NODES: "five minutes on a lost node, then it goes elsewhere",
    Why.RUNTIME_CLASS_SCHEDULING: "where RuntimeClass {source} can run",
    Why.MEMORY_REQUEST_FROM_LIMIT: "the override's percentage of the memory limit",
    Why.CPU_LIMIT_FROM_MEMORY: "the override's cores for the memory limit",
    Why.CPU_REQUEST_FROM_LIMIT: "the override's percentage of the cpu limit",
    Why.RESIZED: "asked for",
}


def status(code: Code) -> str:
    """Return an HTTP status as people say it: ``403 Forbidden``."""
    return f"{int(code)} {_STATUS[code]}"


def reason(change: Change | FieldChange) -> str:
    """Return why a step wrote something into a pod."""
    return _REASONS[change.why].format(source=change.source)


def why_drift(result: StepResult) -> str:
    """Return what changed the class, or nothing if it did not change."""
    if result.class_before is result.class_after:
        return ""
    sides = listed(sorted({_side(change.path) for change in result.changes}, reverse=True))
    match result.step:
        case Step.LIMIT_RANGER | Step.LIMIT_RANGER_AGAIN:
            names = list(dict.fromkeys(change.source for change in result.changes))
            several = "LimitRanges" if len(names) > 1 else "LimitRange"
            return f"the {several} {listed(names)} filled in {sides}"
        case Step.CLUSTER_RESOURCE_OVERRIDE:
            return f"the ClusterResourceOverride set {sides}"
    return "limits were copied to missing requests"


def conflict(conflicting: ConflictingDefaults) -> str:
    """Return the warning about defaults that depend on an order nobody defines."""
    side = conflicting.side.removesuffix("s")
    offers = listed(
        [f"{name} {amount}" for name, amount in zip(conflicting.limit_ranges, conflicting.amounts, strict=True)]
    )
    return (
        f"several LimitRanges default the {conflicting.resource} {side} ({offers}): "
        "which one a pod gets is not defined, the next API server may choose another"
    )


def exempt(use: OverrideUse, why: Exempt) -> str:
    """Return why an override leaves the pods of a namespace alone."""
    profile = use.profile
    reasons = {
        Exempt.SYSTEM_NAMESPACE: "namespaces of the system are exempt",
        Exempt.NOT_OPTED_IN: f"it lacks the label {profile.opt_in_label}=true",
        Exempt.OPTED_OUT: f"it opts out by the annotation {profile.opt_out_annotation}",
    }
    return f"not applied to namespace {use.namespace}: {reasons[why]} (profile {profile.name})"


def applied(use: OverrideUse, *, changes: bool) -> str:
    """Return that an override counts, and for whom it does nothing."""
    rest = "" if changes else ", but changes nothing: it works from limits, and they are missing or followed already"
    return f"applied to namespace {use.namespace} (profile {use.profile.name}){rest}"


def hint(refusal: Refusal) -> str:
    """Return how to mend a refusal that may only be due to an object podqos was not given."""
    if refusal.code is Code.NOT_FOUND:
        return "if the cluster has this namespace, list it in --policies"
    if isinstance(refusal.denied, Missing):
        return f"if the cluster has the {refusal.denied.kind} {refusal.denied.name}, give it with --policies"
    return ""


def stored_without_pods(kind: str) -> str:
    """Return what a refused pod means for the object around its template."""
    return f"the {kind} itself is stored; its controller keeps trying and reports FailedCreate"


def listed(words: Sequence[str]) -> str:
    """Return ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _side(path: str) -> str:
    return path.rpartition(".")[2]
