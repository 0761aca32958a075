"""What a webhook answers to an AdmissionReview: the decision as data, from a policy and what is known of the cluster.

``Reviewer.validate`` and ``Reviewer.mutate`` are functions of the review alone: nothing is read or remembered between
two of them. ``report.admission.reviewed`` words the decision for the API server and for the audit log.

What is judged follows what the policies in CEL judge, so that one can take the place of the other: pods when they are
created or resized; what makes pods when it is created, and when its template or labels change, so that an old offender
can still be scaled, and not while it is being deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.chain import Step, StepResult
from podqos.admission.changes import Change, FieldChange
from podqos.admission.defaulting import defaulted, on_decoding
from podqos.admission.json_patch import PatchOperation, apply_patch, patch_of
from podqos.admission.keeping import Kept, keep_guaranteed
from podqos.admission.limit_range import apply_limit_ranges
from podqos.admission.limit_range_bounds import first_denial
from podqos.admission.policies import ClusterPolicies, NamespacePolicies, Policies
from podqos.admission.refusal import Denied
from podqos.admission.resource_override import apply_override, is_overridden
from podqos.admission.review import CREATE, RESIZE, UPDATE, AdmissionRequest, InvalidReview, plain_object
from podqos.advice.checks.bundle import CheckOptions, ClusterObjects, LocatedWorkload
from podqos.advice.checks.checking import findings_about
from podqos.advice.checks.finding import CheckedObject, FailOn, Finding
from podqos.advice.checks.policies import limit_range_changes_class, refused_by_limit_range
from podqos.advice.checks.view import CheckContext, View
from podqos.manifest.decode import REFUSALS, model_decoder
from podqos.manifest.kinds import POD_HOLDERS, PodHolder
from podqos.manifest.objects import workload_in
from podqos.manifest.plain import Plain, format_path, parse_path
from podqos.manifest.problems import Severity
from podqos.manifest.runtime_memory import written
from podqos.model.pod import Pod, QOSClass, Workload
from podqos.policy.judge import judge
from podqos.policy.model import Policy
from podqos.policy.violation import Judgement
from podqos.qos.classes import classify

_OF_POLICIES = {Step.LIMIT_RANGER, Step.CLUSTER_RESOURCE_OVERRIDE, Step.LIMIT_RANGER_AGAIN}
"""What changes a class and is not in the manifest to see."""


class Door(StrEnum):
    """Which of the two webhooks is asked."""

    VALIDATE = "validate"
    MUTATE = "mutate"


class ReviewNotJudged(StrEnum):
    """Why nothing is said about a request."""

    OPERATION = "Operation"
    """Only CREATE and UPDATE bring amounts."""
    KIND = "Kind"
    """The object has no pods."""
    SUBRESOURCE = "Subresource"
    """Scaling, binding, ephemeral containers and so on leave amounts as they are."""
    UPDATE = "Update"
    """An update of a pod cannot change its amounts."""
    UNCHANGED = "Unchanged"
    """Neither template nor labels changed."""
    BEING_DELETED = "BeingDeleted"
    NOT_IN_ORDER = "NotInOrder"
    """The API server will refuse it as invalid."""
    NOT_MUTATED = "NotMutated"
    """Only new pods are changed."""


class ReviewDecision(Struct, frozen=True):
    """What becomes of a request, and why."""

    door: Door
    request: AdmissionRequest
    not_judged: ReviewNotJudged | None = None
    name: str = ""
    """Of the object, as far as it has one."""
    qos_class: QOSClass | None = None
    """Of the pod, or of the pods that come of it."""
    old_class: QOSClass | None = None
    """Of a pod that is resized."""
    judgement: Judgement = Judgement()
    findings: tuple[Finding, ...] = ()
    """What `podqos check` finds and is to be told, the worst first."""
    drift: tuple[StepResult, ...] = ()
    """For the pods of a template: the steps of admission that will change their class."""
    refusal: Denied | None = None
    """Why the API server will refuse the pods, as far as LimitRanges and the like are known."""
    changes: tuple[Change, ...] = ()
    kept: Kept | None = None
    """Of a pod that asks to stay Guaranteed and would not."""
    patch: tuple[PatchOperation, ...] = ()

    @property
    def changes_class(self) -> bool:
        """Whether a resize would change the class, which no pod may."""
        return self.old_class is not None and self.old_class is not self.qos_class

    @property
    def allowed(self) -> bool:
        """Whether the request may go on."""
        return self.judgement.allowed and not self.changes_class


class Reviewer:
    """Decides by policies and what is known of a cluster."""

    def __init__(
        self,
        policies: Sequence[Policy] = (),
        cluster: ClusterPolicies | None = None,
        options: CheckOptions | None = None,
        *,
        warn_on: FailOn = FailOn.WARNING,
    ) -> None:
        self.policies = tuple(policies)
        self._options = options or CheckOptions()
        self._profile = self._options.profile
        self._warn_on = warn_on
        cluster = ClusterPolicies(Policies()) if cluster is None else cluster
        self._namespaces = NamespacePolicies(cluster)
        self._context = CheckContext(ClusterObjects(cluster), self._options)
        self._annotations = {
            key
            for policy in policies
            for rule in policy.spec.rules
            for key in (*rule.match.annotations, rule.require.class_label)
        }
        """The annotations that decide about anything: many others change with every update."""

    def decide(self, door: Door, request: AdmissionRequest, today: date | None = None) -> ReviewDecision:
        """Return what becomes of a request."""
        if door is Door.MUTATE:
            return self.mutate(request)
        return self.validate(request, today)

    # ---- validating --------------------------------------------------------------------------------------------------

    def validate(self, request: AdmissionRequest, today: date | None = None) -> ReviewDecision:
        """Return whether an object may be stored, and what is to be said about it."""
        holder = _judged_holder(request)
        if isinstance(holder, ReviewNotJudged):
            return ReviewDecision(Door.VALIDATE, request, holder)
        workload = _live_pod(request) if request.operation == CREATE and not holder.pod_path else None
        if workload is None:
            value = _object(request)
            if _mapping(value.get("metadata")).get("deletionTimestamp"):
                return ReviewDecision(Door.VALIDATE, request, ReviewNotJudged.BEING_DELETED)
            if request.operation == UPDATE and request.sub_resource != RESIZE:
                why = self._unchanged(holder, value, request)
                if why is not None:
                    return ReviewDecision(Door.VALIDATE, request, why)
            workload = _readable(holder, value, request.namespace, "object")
        name = workload.metadata.name or workload.metadata.generate_name
        located = LocatedWorkload(workload, CheckedObject(workload.kind, name, workload.metadata.namespace))
        whole = written(bytes(request.object), lambda: _object(request))
        view = View(located, self._context, compares=False, weighs=False, written=whole)
        user = request.user_info
        subject = replace(view.judged, user=user.username, groups=user.groups or ())
        decision = ReviewDecision(
            Door.VALIDATE,
            request,
            name=name,
            qos_class=view.stored_class,
            judgement=judge(self.policies, subject, today=today, profile=self._profile),
        )
        if request.sub_resource == RESIZE:
            old_value = _mapping(plain_object(request.old_object, "oldObject"))
            old = _readable(holder, old_value, request.namespace, "oldObject")
            before = old.pod.status.qos_class or classify(old.pod, self._profile).qos_class
            # What a running pod's status says is what it was.
            now = classify(subject.stored, self._profile).qos_class
            return replace(decision, old_class=before, qos_class=now)
        findings = () if self._warn_on is FailOn.NEVER else self._findings(view)
        if view.admission is None:
            return replace(decision, findings=findings)
        first = view.admission.first
        refusal = None if first.refusal is None else Denied(first.refusal.message)
        drift = tuple(step_result for step_result in first.drift if step_result.step in _OF_POLICIES)
        said = {limit_range_changes_class.id} if drift else set[str]()
        said |= {refused_by_limit_range.id} if refusal else set()
        findings = tuple(finding for finding in findings if finding.check not in said)
        return replace(decision, findings=findings, drift=drift, refusal=refusal)

    def _unchanged(
        self, holder: PodHolder, value: dict[str, Plain], request: AdmissionRequest
    ) -> ReviewNotJudged | None:
        """Return why an update is not judged."""
        if not holder.pod_path:
            return ReviewNotJudged.UPDATE
        old = _mapping(plain_object(request.old_object, "oldObject"))
        template, old_template = _at(value, holder.pod_path), _at(old, holder.pod_path)
        metadata, old_metadata = _mapping(value.get("metadata")), _mapping(old.get("metadata"))
        annotations, old_annotations = _mapping(metadata.get("annotations")), _mapping(old_metadata.get("annotations"))
        is_same = (
            template == old_template
            and _mapping(metadata.get("labels")) == _mapping(old_metadata.get("labels"))
            and all(annotations.get(key) == old_annotations.get(key) for key in self._annotations)
        )
        return ReviewNotJudged.UNCHANGED if is_same else None

    def _findings(self, view: View) -> tuple[Finding, ...]:
        found = [
            finding
            for finding in findings_about(view)
            if finding.suppression is None
            and self._warn_on.fails(finding.severity)
            and self._options.runs(finding.check)
        ]
        found.sort(key=lambda finding: (finding.severity.rank, finding.check))
        return tuple(found)

    # ---- mutating ----------------------------------------------------------------------------------------------------

    def mutate(self, request: AdmissionRequest) -> ReviewDecision:
        """Return what is to be changed in a new pod.

        The API server has run its own plug-ins over it, LimitRange defaults included, and runs them once more over what
        is changed here.
        """
        holder = _judged_holder(request)
        if isinstance(holder, ReviewNotJudged):
            return ReviewDecision(Door.MUTATE, request, holder)
        if holder.pod_path or request.operation != CREATE:
            return ReviewDecision(Door.MUTATE, request, ReviewNotJudged.NOT_MUTATED)
        new = _object(request)
        workload = _workload(holder, _mapping(new), request.namespace)
        if workload is None:
            return ReviewDecision(Door.MUTATE, request, ReviewNotJudged.NOT_IN_ORDER)
        policies = self._namespaces.of(request.namespace)
        limit_ranges = policies.stored_limit_ranges()
        pod, record = workload.pod, list[Change | FieldChange]()
        namespace = policies.namespace
        override, profile = policies.override, policies.override_profile
        overridden = override is not None and namespace is not None and is_overridden(namespace, profile)
        if override is not None and overridden:
            pod = apply_override(pod, override, limit_ranges, profile=profile, record=record)
        kept = keep_guaranteed(pod, self._profile, record, is_overridden=overridden)
        pod = pod if kept is None else kept.pod
        # What is changed twice counts as it is at last.
        changes = {(each.path, each.resource): each for each in record if isinstance(each, Change)}
        edits = [((*parse_path(change.path), change.resource), str(change.after)) for change in changes.values()]
        patch = patch_of(new, edits)
        if patch:
            self._verify(holder, apply_patch(new, patch), pod, request)
        after = apply_limit_ranges(on_decoding(pod, self._profile), limit_ranges)
        return ReviewDecision(
            Door.MUTATE,
            request,
            name=workload.metadata.name or workload.metadata.generate_name,
            qos_class=classify(defaulted(after, self._profile), self._profile).qos_class,
            refusal=first_denial(after, limit_ranges),
            changes=tuple(changes.values()) if patch else (),
            kept=kept,
            patch=patch,
        )

    def _verify(self, holder: PodHolder, patched: Plain, wanted: Pod, request: AdmissionRequest) -> None:
        """Make sure that a patch makes of the object what it is meant to."""
        made = _workload(holder, _mapping(patched), request.namespace)
        assert made is not None
        assert made.pod.spec == wanted.spec


def _judged_holder(request: AdmissionRequest) -> PodHolder | ReviewNotJudged:
    """Return how the object of a request holds its pods, or why it is not judged."""
    if request.operation not in {CREATE, UPDATE}:
        return ReviewNotJudged.OPERATION
    holder = POD_HOLDERS.get(request.kind.kind)
    if holder is None or request.kind.group not in holder.groups:
        return ReviewNotJudged.KIND
    if request.sub_resource and (holder.pod_path or request.sub_resource != RESIZE):
        return ReviewNotJudged.SUBRESOURCE
    return holder


def _live_pod(request: AdmissionRequest) -> Workload | None:
    """Return a new pod in one pass over its text, as nearly all of them can be read; None: look more closely."""
    try:
        pod: Pod = model_decoder(Pod).decode(request.object)
    except REFUSALS:
        return None
    metadata, spec = pod.metadata, pod.spec
    names = [container.name for container in (*spec.containers, *spec.init_containers, *spec.ephemeral_containers)]
    is_plain = (
        metadata.is_live
        and metadata.namespace == request.namespace
        and (metadata.name or metadata.generate_name)
        and not metadata.deletion_timestamp
        and spec.containers
        and len({*names}) == len(names)
    )
    return Workload(request.kind.kind, metadata, pod) if is_plain else None


def _object(request: AdmissionRequest) -> dict[str, Plain]:
    value = plain_object(request.object, "object")
    if value is None:
        raise InvalidReview(f"{request.operation} without an object", where="request.object")
    return value


def _workload(holder: PodHolder, value: dict[str, Plain], namespace: str) -> Workload | None:
    """Return the workload in an object, in the namespace of the request: its own may not be written yet."""
    workload = workload_in(holder, value).workload
    if workload is None or workload.pod.metadata.namespace == namespace:
        return workload
    metadata, pod = workload.metadata, workload.pod
    return replace(
        workload,
        metadata=replace(metadata, namespace=namespace),
        pod=replace(pod, metadata=replace(pod.metadata, namespace=namespace)),
    )


def _readable(holder: PodHolder, value: dict[str, Plain], namespace: str, field: str) -> Workload:
    """Return the workload in an object; ``field`` is where in the request it stands.

    The API server has found it in order. Where it is not, the fault is ours: the webhook's failurePolicy is to decide.
    """
    workload = _workload(holder, value, namespace)
    if workload is not None:
        return workload
    wrong = next(finding for finding in workload_in(holder, value).findings if finding.severity is Severity.ERROR)
    raise InvalidReview(wrong.what, where=format_path(("request", field, *wrong.path)), fix=wrong.fix)


def _mapping(value: Plain) -> dict[str, Plain]:
    return value if isinstance(value, dict) else {}


def _at(value: Plain, path: Sequence[str]) -> Plain:
    for step in path:
        value = _mapping(value).get(step)
    return value
