"""What ``podqos admit`` says of a workload, as a value: the documented JSON shape, from which all other outputs follow.

The decisions come from ``admission``; here they are gathered and worded. The shape is stable: fields are added, never
renamed or removed, and ``docs/schema/admit.json`` is made from these classes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import asdict

from podqos.admission.chain import Admission, Step, StepResult
from podqos.admission.changes import container_names
from podqos.admission.limit_range import ConflictingDefaults
from podqos.admission.limit_range_bounds import BoundViolation, Fault, LimitRangeDenied
from podqos.admission.quota import QuotaDenied
from podqos.admission.refusal import Code, Refusal, joined
from podqos.admission.workloads import Operation, WorkloadAdmission
from podqos.answers.admission_changes import ChangeReport, change_report
from podqos.answers.containers import ContainerAmounts, container_amounts
from podqos.manifest.contents import RefusedDocument
from podqos.manifest.kinds import group_of
from podqos.manifest.plain import format_path
from podqos.manifest.problems import Position, Severity
from podqos.model.assumption import Assumption
from podqos.model.listing import Listing
from podqos.model.pod import ObjectMeta, Pod, QOSClass, Workload
from podqos.words import admission as words

Locate = Callable[[str], Position]
"""From the path of a field of the object to its line and column."""


class Outcome(StrEnum):
    """What became of the pods."""

    ALLOWED = "allowed"
    PARTLY_ALLOWED = "partly allowed"
    """Until a quota was used up."""
    REFUSED = "refused"


class StepReport(Struct, frozen=True, rename="camel"):
    """One step that let the pod pass."""

    step: str
    qos_class_before: QOSClass
    qos_class_after: QOSClass
    changes: tuple[ChangeReport, ...]
    reason: str
    """Why the class changed; empty where it did not."""


class FieldReport(Struct, frozen=True):
    """A field that a refusal is about, and where it stands. One that is not written is where it would belong."""

    path: str
    line: int
    column: int
    message: str


class RefusalReport(Struct, frozen=True, rename="camel"):
    """The API server's answer to a pod it does not take."""

    step: str
    code: int
    message: str
    fields: tuple[FieldReport, ...]
    holder_is_stored: bool
    """Whether the Deployment, or whatever else holds the template, is stored all the same."""
    hint: str


class WarningReport(ConflictingDefaults, frozen=True):
    """Defaults that the pod got from one of several LimitRanges in an order that is not defined."""

    message: str


class OverrideReport(Struct, frozen=True):
    """What a ClusterResourceOverride means for the pods."""

    profile: str
    """Which generation of it: ``okd-3.9`` or ``current``."""
    applied: bool
    message: str


class ResizePendingReport(Struct, frozen=True, rename="camel"):
    """The condition PodResizePending that the kubelet will give a pod."""

    node: str
    reason: str
    """Deferred or Infeasible."""
    message: str


class AdmissionReport(Struct, frozen=True, rename="camel"):
    """The pods of one workload on their way through the API server."""

    kind: str
    namespace: str
    name: str
    source: str
    operation: Operation
    outcome: Outcome
    pods: int
    pods_admitted: int
    qos_class_as_written: QOSClass | None
    """Null where the object cannot be read."""
    qos_class_defaulted: QOSClass | None
    """After the API server's defaulting, which belongs to what a manifest means."""
    qos_class: QOSClass | None
    """As stored; null where nothing is stored."""
    class_changed: bool
    """Whether admission made the class another than defaulting did."""
    steps: tuple[StepReport, ...]
    refusal: RefusalReport | None
    """Of the first pod that was not admitted."""
    warnings: tuple[WarningReport, ...]
    containers: tuple[ContainerAmounts, ...]
    priority: int | None
    override: OverrideReport | None = None
    """Null where there is no override, or its step was not reached."""
    notes: tuple[str, ...] = ()
    """What was assumed about the text."""
    not_judged: tuple[str, ...] = ()
    """Fields of the pod that podqos does not judge: the API server may refuse it for them."""
    pending: ResizePendingReport | None = None
    """Of an allowed resize that the kubelet will not carry out for now; null where it will, or its node is unknown."""
    keeps_scores: tuple[str, ...] = ()
    """Of an allowed resize: containers that keep the oom_score_adj of their earlier memory request until a restart."""

    @property
    def is_finding(self) -> bool:
        """Whether it needs attention."""
        return self.refusal is not None or self.class_changed


class AdmissionList(Listing[AdmissionReport], Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos admit -o json``."""

    items: tuple[AdmissionReport, ...]
    kubernetes_version: str
    override_profile: str | None
    """Null where there is no override."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "AdmissionList"
    assumptions: tuple[Assumption, ...] = ()
    """What the answer rests on that was not stated."""

    def _listed(self) -> tuple[AdmissionReport, ...]:
        return self.items


def report(
    outcome: WorkloadAdmission, source: str, locate: Locate, listed_kinds: Collection[str] = ()
) -> AdmissionReport:
    """Render what became of a workload; ``listed_kinds`` are those of which all that the cluster has is known."""
    workload, first = outcome.workload, outcome.first
    names = container_names(first.pod)
    return AdmissionReport(
        kind=workload.kind,
        namespace=workload.metadata.namespace,
        name=workload.metadata.name or workload.metadata.generate_name,
        source=source,
        operation=outcome.operation,
        outcome=_outcome(outcome),
        pods=outcome.pods,
        pods_admitted=outcome.admitted,
        qos_class_as_written=outcome.class_as_written,
        qos_class_defaulted=outcome.class_defaulted,
        qos_class=outcome.class_reached if first.allowed else None,
        class_changed=outcome.class_reached is not outcome.class_defaulted,
        steps=tuple(_step(result, names) for result in first.steps),
        refusal=_refusal(outcome, locate, listed_kinds),
        warnings=tuple(
            WarningReport(**asdict(conflict), message=words.conflict(conflict)) for conflict in outcome.conflicts
        ),
        containers=container_amounts(first.pod),
        priority=first.pod.spec.priority,
        override=_override(first),
    )


def report_undecodable(workload: Workload, refusal: Refusal, source: str, locate: Locate) -> AdmissionReport:
    """Render a workload that podqos can read and the API server cannot."""
    metadata = workload.metadata
    rejection = rejection_of_object(refusal, Step.DECODING, locate)
    return _unread(workload.kind, metadata, metadata.namespace, source, rejection)


def report_unread(
    refused: RefusedDocument, rejection: RefusalReport | None, namespace: str, source: str
) -> AdmissionReport:
    """Render an object that is not in order: with the API server's answer, or else with what is wrong with it."""
    if rejection is None:
        errors = [problem for problem in refused.problems if problem.severity is Severity.ERROR]
        name = refused.metadata.name or refused.metadata.generate_name
        group = group_of(refused.api_version)
        kind = f"{refused.kind}.{group}" if group else refused.kind
        message = f'{kind} "{name}" is invalid: {joined(f"{error.field}: {error.what}" for error in errors)}'
        fields = tuple(FieldReport(error.field, error.line, error.column, error.what) for error in errors)
        rejection = RefusalReport(Step.VALIDATION, Code.INVALID, message, fields, holder_is_stored=False, hint="")
    return _unread(refused.kind, refused.metadata, namespace, source, rejection)


def rejection_of_object(refusal: Refusal, step: Step, locate: Locate) -> RefusalReport:
    """Render the API server's rejection of an object that is not stored; paths are those of the object."""
    fields = tuple(FieldReport(error.path, *locate(error.path), error.words) for error in refusal.errors)
    return RefusalReport(step, refusal.code, refusal.message, fields, holder_is_stored=False, hint="")


def _unread(kind: str, metadata: ObjectMeta, namespace: str, source: str, refusal: RefusalReport) -> AdmissionReport:
    return AdmissionReport(
        kind=kind,
        namespace=namespace,
        name=metadata.name or metadata.generate_name,
        source=source,
        operation=Operation.CREATE,
        outcome=Outcome.REFUSED,
        pods=1,
        pods_admitted=0,
        qos_class_as_written=None,
        qos_class_defaulted=None,
        qos_class=None,
        class_changed=False,
        steps=(),
        refusal=refusal,
        warnings=(),
        containers=(),
        priority=None,
    )


def _outcome(outcome: WorkloadAdmission) -> Outcome:
    if outcome.refusal is None:
        return Outcome.ALLOWED
    return Outcome.PARTLY_ALLOWED if outcome.admitted else Outcome.REFUSED


def _override(admission: Admission) -> OverrideReport | None:
    use = admission.override
    if use is None:
        return None
    if use.exempt is not None:
        return OverrideReport(use.profile.name, applied=False, message=words.exempt(use, use.exempt))
    step = next((step for step in admission.steps if step.step is Step.CLUSTER_RESOURCE_OVERRIDE), None)
    if step is None:
        return None
    message = words.applied(use, changes=bool(step.changes))
    return OverrideReport(use.profile.name, applied=True, message=message)


def _step(result: StepResult, names: dict[str, str]) -> StepReport:
    return StepReport(
        step=result.step,
        qos_class_before=result.class_before,
        qos_class_after=result.class_after,
        changes=tuple(change_report(change, names) for change in result.changes),
        reason=words.why_drift(result),
    )


def _refusal(outcome: WorkloadAdmission, locate: Locate, listed_kinds: Collection[str]) -> RefusalReport | None:
    refusal, step = outcome.refusal, outcome.refused_by
    if refusal is None or step is None:
        return None
    fields = []
    for path, message in _fields_at_fault(refusal, step, outcome.first.pod):
        own = path if refusal.is_of_holder else outcome.workload.at(path)
        fields.append(FieldReport(own, *locate(own), message))
    return RefusalReport(
        step=step,
        code=refusal.code,
        message=refusal.message,
        fields=tuple(fields),
        holder_is_stored=outcome.holder_is_stored,
        hint=words.hint(refusal, listed_kinds),
    )


def _fields_at_fault(refusal: Refusal, step: Step, pod: Pod) -> Iterator[tuple[str, str]]:
    """Yield the fields of the pod that a refusal is about. A quota that is used up is about none."""
    for error in refusal.field_errors:
        yield error.path, error.words
    denied = refusal.denied
    if isinstance(denied, LimitRangeDenied):
        for violation in denied.violations:
            yield _violation_path(violation, pod), str(violation)
    elif isinstance(denied, QuotaDenied):
        for resource, containers in denied.unstated:
            for name in containers:
                yield f"{_container_path(name, pod)}.resources", f"must specify {resource}"
    elif denied is not None and step in _FIELDS:
        yield _FIELDS[step], denied.message


_FIELDS = {
    Step.PRIORITY: "spec.priorityClassName",
    Step.RUNTIME_CLASS: "spec.runtimeClassName",
    Step.RUNTIME_CLASS_OVERHEAD: "spec.overhead",
}


def _container_path(name: str, pod: Pod) -> str:
    return next(path for path, known in container_names(pod).items() if known == name)


def _violation_path(violation: BoundViolation, pod: Pod) -> str:
    if not violation.subject.container:
        return "spec.resources" if pod.spec.resources is not None else "spec.containers"
    side = "requests" if violation.fault in {Fault.REQUEST, Fault.NO_REQUEST} else "limits"
    container = _container_path(violation.subject.container, pod)
    return f"{container}.resources.{format_path((side, violation.resource))}"
