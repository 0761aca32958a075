"""A webhook's decision as the answer to an AdmissionReview, and as a line of the audit log.

An API server passes warnings on as HTTP headers: those with a line break are lost, long ones are cut, and after 4 KiB
of all webhooks together the rest is left out. So the most important come first, and they are short. Source:
Kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/endpoints/filters/warning.go.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from podqos.admission.json_patch import PatchOperation
from podqos.admission.keeping import KEEP_ANNOTATION, LIMITS_ANNOTATION, Kept, WhyNotKept
from podqos.admission.review import AdmissionResponse, Status
from podqos.advice.reviewing import ReviewDecision
from podqos.amounts import counted, listed
from podqos.controls import harmless, one_line
from podqos.policy.model import Action
from podqos.policy.violation import Violation
from podqos.policy.words import cut, message, sentence
from podqos.text.admission import why_drift
from podqos.text.changes import reason

_WARNING_CHARACTERS = 240
"""An API server may cut a warning at 256 bytes."""
_ALL_BYTES = 3072
"""Leaves other webhooks a part of the 4 KiB."""
_MESSAGE_CHARACTERS = 2000
_ANNOTATION_CHARACTERS = 900
_JSON = msgspec.json.Encoder()


def response(decision: ReviewDecision) -> AdmissionResponse:
    """Return the answer to a review."""
    patch = _JSON.encode(decision.patch) if decision.patch and decision.allowed else None
    return AdmissionResponse(
        uid=decision.request.uid,
        allowed=decision.allowed,
        status=None if decision.allowed else Status(refusal(decision)),
        patch_type="" if patch is None else "JSONPatch",
        patch=patch,
        audit_annotations=_audit_annotations(decision),
        warnings=tuple(_within_bytes(_said(warning) for warning in _warnings(decision))),
    )


def refusal(decision: ReviewDecision) -> str:
    """Return why a request is refused."""
    if decision.changes_class:
        return f"Pod QOS Class may not change as a result of resizing: {decision.old_class} to {decision.qos_class}"
    denied = [message(violation) for violation in decision.judgement.violations if violation.action is Action.DENY]
    return harmless(cut("; ".join(denied), _MESSAGE_CHARACTERS))


def _warnings(decision: ReviewDecision) -> Iterator[str]:
    """Yield what to tell, the most important first."""
    for violation in decision.judgement.violations:
        if violation.action is Action.WARN:
            yield message(violation)
    whose = "the pods" if decision.request.kind.kind != "Pod" else "the pod"
    if decision.refusal is not None:
        yield f"{whose} will be rejected: {decision.refusal.message}"
    if decision.kept is not None and decision.kept.why_not is not None:
        yield _not_kept(decision.kept)
    for step in decision.drift:
        yield f"{whose} will be {step.class_after}, not {step.class_before}: {why_drift(step)}"
    for finding in decision.findings:
        yield f"{finding.check}: {finding.facts.sentence(finding.container or '')}"


def _not_kept(kept: Kept) -> str:
    match kept.why_not:
        case WhyNotKept.NO_SUCH_CLASS:
            return f"{KEEP_ANNOTATION}: the only class that can be kept is Guaranteed"
        case WhyNotKept.NOT_MEANT:
            return f"{KEEP_ANNOTATION}: no container is Guaranteed on its own"
        case WhyNotKept.OVERRIDDEN:
            return f"{KEEP_ANNOTATION}: a ClusterResourceOverride sets the requests in this namespace"
        case WhyNotKept.LIMITS_UNREADABLE:
            return f"{LIMITS_ANNOTATION}: write cpu=100m,memory=128Mi"
        case _:
            whose = f"container{'' if len(kept.containers) == 1 else 's'} {listed(kept.containers)}"
            return (
                f"not Guaranteed: no requests or limits in {whose}; set them with {LIMITS_ANNOTATION}: "
                "cpu=100m,memory=128Mi"
            )


def _said(warning: str) -> str:
    return harmless(one_line(cut(warning, _WARNING_CHARACTERS)))


def _within_bytes(warnings: Iterator[str]) -> Iterator[str]:
    left, dropped = _ALL_BYTES, 0
    for warning in dict.fromkeys(warnings):
        left -= len(warning.encode())
        if left >= 0 and not dropped:
            yield warning
        else:
            dropped += 1
    if dropped:
        yield f"and {counted(dropped, 'more warning')}: see podqos check"


def _audit_annotations(decision: ReviewDecision) -> dict[str, str]:
    """Return what the API server writes into its own audit log, under the name of the webhook."""
    found = {} if decision.qos_class is None else {"qos-class": str(decision.qos_class)}
    if decision.judgement.violations:
        rules = dict.fromkeys(
            f"{violation.policy}/{violation.rule} ({violation.action})" for violation in decision.judgement.violations
        )
        found["violations"] = cut(", ".join(rules), _ANNOTATION_CHARACTERS)
    return found


class AuditedViolation(Struct, frozen=True):
    """A violation, in short."""

    policy: str
    rule: str
    action: Action
    why: str
    what: str


class AuditLine(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One request in the audit log."""

    time: str
    request_id: str
    """The uid of the review, which is also in the API server's log."""
    webhook: str
    operation: str
    kind: str
    allowed: bool
    namespace: str = ""
    name: str = ""
    sub_resource: str = ""
    user: str = ""
    dry_run: bool = False
    not_judged: str = ""
    """Why nothing was judged."""
    qos_class: str = ""
    violations: tuple[AuditedViolation, ...] = ()
    exempted: tuple[AuditedViolation, ...] = ()
    findings: tuple[str, ...] = ()
    will_be_refused: str = ""
    changes: tuple[str, ...] = ()
    patch: tuple[PatchOperation, ...] = ()
    seconds: float = 0.0


def audit_line(decision: ReviewDecision, time: str, seconds: float) -> bytes:
    """Return a decision as a line of JSON."""
    request, judgement = decision.request, decision.judgement
    line = AuditLine(
        time=time,
        request_id=request.uid,
        webhook=decision.door,
        operation=request.operation,
        kind=request.kind.kind,
        allowed=decision.allowed,
        namespace=request.namespace,
        name=decision.name or request.name,
        sub_resource=request.sub_resource,
        user=request.user_info.username,
        dry_run=bool(request.dry_run),
        not_judged=decision.not_judged or "",
        qos_class=decision.qos_class or "",
        violations=tuple(_audited(violation) for violation in judgement.violations),
        exempted=tuple(_audited(exempted.violation) for exempted in judgement.exempted),
        findings=tuple(finding.check for finding in decision.findings),
        will_be_refused="" if decision.refusal is None else decision.refusal.message,
        changes=tuple(
            f"{change.path}.{change.resource}: {change.before or 'none'} → {change.after} ({reason(change)})"
            for change in decision.changes
        ),
        patch=decision.patch,
        seconds=round(seconds, 6),
    )
    return _JSON.encode(line)


def _audited(violation: Violation) -> AuditedViolation:
    return AuditedViolation(
        violation.policy, violation.rule, violation.action, violation.why, harmless(sentence(violation))
    )
