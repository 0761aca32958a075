"""``podqos admit``: what the API server makes of workloads in their namespaces, step by step.

The decisions come from ``admission``. The classes below are the documented JSON shape: fields are added, never renamed
or removed, and ``docs/schema/admit.json`` is made from them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from enum import StrEnum
from functools import cached_property, partial
from itertools import groupby
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, replace

from podqos.admission.chain import Admission, Step, StepResult
from podqos.admission.chain import admit as admit_pod
from podqos.admission.changes import container_names
from podqos.admission.coverage import not_judged
from podqos.admission.decoding import decoding_refusal, read_pod
from podqos.admission.limit_range import ConflictingDefaults
from podqos.admission.limit_range_bounds import BoundViolation, Fault, LimitRangeDenied
from podqos.admission.policies import NamespacePolicies, Policies
from podqos.admission.quota import QuotaDenied
from podqos.admission.refusal import Code, Refusal, joined
from podqos.admission.resource_override import PROFILES, OverrideProfile
from podqos.admission.workload_validation import workload_refusal
from podqos.admission.workloads import Admissions, Operation, WorkloadAdmission
from podqos.errors import InputError, InvalidArgument
from podqos.manifest.contents import RefusedDocument
from podqos.manifest.kinds import POD_HOLDERS, group_of, is_custom_group, is_served
from podqos.manifest.plain import Plain, format_path
from podqos.manifest.problems import Position, Severity
from podqos.manifest.text import Place
from podqos.model.assumption import Assumption, of_version
from podqos.model.listing import Listing
from podqos.model.pod import ObjectMeta, Pod, QOSClass, Workload
from podqos.model.policy import ResourceQuota
from podqos.model.profile import LATEST, Profile
from podqos.naming import naming
from podqos.objects.assumptions import cluster_assumptions, without_policies
from podqos.objects.files import STDIN
from podqos.objects.objects import Objects, in_namespace
from podqos.objects.sources import Source
from podqos.objects.spreading import Progress
from podqos.questions.explain import ContainerAmounts, amounts, typed_containers
from podqos.questions.resized_pods import ROOM_FOR_RESIZE, ResizePendingReport, ResizeSurroundings
from podqos.text import admission as words
from podqos.text.changes import ChangeReport, change_lines, change_report
from podqos.text.qos import kept_scores, taken_for
from podqos.text.style import Style, columns, wrapped
from podqos.text.tables import Table

# ---- the answer ------------------------------------------------------------------------------------------------------

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


# ---- the rule --------------------------------------------------------------------------------------------------------


def admit(
    objects: Objects,
    *,
    resizes: Objects | None = None,
    override_profile: str | None = None,
    profile: Profile = LATEST,
    progress: Progress | None = None,
) -> AdmissionList:
    """Return what becomes of each workload, in the order of the files; all replicas are charged to the quotas.

    ``resizes`` are workloads of the objects with other resources: their pods are resized in place once they are
    admitted. ``override_profile`` names the generation of ClusterResourceOverride (``okd-3.9`` or ``current``), by
    default that of its object's shape. ``progress`` is called with how many workloads are done, of how many.

    Raises InputError where the policies are not valid, as the problems of the objects say.
    """
    return _Admitting(objects, resizes, override_profile, profile).whole(progress)


class _Item(Struct, frozen=True):
    """A workload, or an object that should be one and is not in order, and where it stands."""

    source: Source
    place: Place
    what: Workload | RefusedDocument
    namespace: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, namespace and name: what is resized has the same as its resized version."""
        return self.what.kind, self.namespace, self.what.metadata.name

    @property
    def pod_path(self) -> tuple[str, ...]:
        """From the object to its pod or template."""
        if isinstance(self.what, RefusedDocument):
            return POD_HOLDERS[self.what.kind].pod_path
        return tuple(self.what.pod_path.split(".")) if self.what.pod_path else ()


class _AsStored(NamedTuple):
    """The pods of a workload as they are before a resize."""

    pod: Pod
    pods: int


class _Admitting:
    """Workloads on their way through the API server, one after the other."""

    def __init__(
        self, objects: Objects, resizes: Objects | None, override_profile: str | None, profile: Profile
    ) -> None:
        if resizes is not None and not profile.in_place_resize:
            version = profile.version_text
            raise InvalidArgument(
                f"Kubernetes {version} cannot resize pods in place", where=naming("resize"), fix="use 1.33 or newer"
            )
        self._objects = objects
        self._profile = profile
        self._override = PROFILES[override_profile] if override_profile else None
        self._check_policies()
        self._policies: dict[tuple[str, ...], NamespacePolicies] = {}
        self._items = list(_items(objects))
        self._is_node_missing = False
        """Whether a pod was resized whose node is not known."""
        known = {item.key for item in self._items}
        self._resizes: dict[tuple[str, str, str], _Item] = {}
        for item in [] if resizes is None else _items(resizes):
            self._resizes[item.key] = item
            if resizes is not None and item.key not in known:
                kind, namespace, name = item.key
                what = f"no {kind} {namespace}/{name} to resize"
                fix = "give it with " + naming("files") + ", as it is now"
                resizes.note(item.source.problem(item.place, ("metadata", "name"), what, fix))

    def _takes(self, item: _Item) -> bool:
        selection, what = self._objects.selection, item.what
        if selection is None:
            return True
        if isinstance(what, Workload):
            return selection.takes(what)
        return selection.takes_object(what.kind, item.namespace, what.metadata.name, what.metadata.labels)

    def _admitted(self, progress: Progress | None) -> Iterator[tuple[_Item, AdmissionReport]]:
        admissions = Admissions(self._objects.cluster(STDIN, self._override), self._profile)
        # What a quota has room for depends on all workloads; nothing else does.
        is_charged = bool(self._objects.of(ResourceQuota))
        for number, item in enumerate(self._items, 1):
            if not is_charged and not self._takes(item):
                continue
            if progress is not None:
                progress(number, len(self._items))
            if isinstance(item.what, RefusedDocument):
                value = item.source.lookup.plain(item.place)
                yield item, self._noted(self._unread(item, item.what, value), item, value)
                continue
            resized = self._resizes.get(item.key)
            old, pods = item.what.pod, 1
            if resized is None or not item.what.is_live:
                written = None if _is_custom(value := item.source.lookup.plain(item.place)) else value
                create = partial(admissions.create, item.what, self._policies_of(item), written)
                created, outcome = self._followed(item, item.what, create)
                yield item, created
                if outcome is None:
                    continue
                old, pods = outcome.first.pod, outcome.admitted
            if resized is not None and isinstance(resized.what, Workload) and pods:
                yield resized, self._resized(admissions, resized, resized.what, _AsStored(old, pods))

    def _resized(
        self, admissions: Admissions, resized: _Item, workload: Workload, stored: _AsStored
    ) -> AdmissionReport:
        """Follow a resize, through the API server and then its kubelet."""
        nodes, old = self._nodes, stored.pod
        resize = partial(admissions.resize, old, workload, stored.pods, self._policies_of(resized), nodes.known)
        admission, outcome = self._followed(resized, workload, resize)
        admission = replace(admission, operation=Operation.RESIZE)
        is_known = nodes.known.knows(old)
        self._is_node_missing = self._is_node_missing or not is_known
        if outcome is None or outcome.refusal is not None:
            return admission
        from podqos.orders.versions import keeps_scores

        new = outcome.first.pod
        pending = nodes.resized(old, new) if is_known else None
        return replace(admission, pending=pending, keeps_scores=keeps_scores(old, new, self._profile))

    @cached_property
    def _nodes(self) -> ResizeSurroundings:
        return ResizeSurroundings(self._objects, self._profile)

    def _unread(self, item: _Item, refused: RefusedDocument, value: Plain) -> AdmissionReport:
        """Report an object that podqos cannot take, in the API server's words where it rejects it as well."""
        read = read_pod(value, refused.kind, refused.api_version, item.pod_path)
        refusal, step = (read, Step.DECODING) if isinstance(read, Refusal) else (None, Step.VALIDATION)
        if isinstance(read, Pod) and is_served(refused.kind, value):
            refusal = workload_refusal(value, refused.kind)
        elif isinstance(read, Pod) and not item.pod_path:
            policies = self._policies_of(item).of(item.namespace)
            admission = admit_pod(read, policies, self._profile)
            refusal, step = admission.refusal, admission.refused_by or step
        rejection = None if refusal is None else _rejection_of_object(refusal, step, _locate(item))
        return _report_unread(refused, rejection, item.namespace, item.source.name)

    def _followed(
        self, item: _Item, workload: Workload, follow: Callable[[], WorkloadAdmission]
    ) -> tuple[AdmissionReport, WorkloadAdmission | None]:
        """Follow a workload that the API server can read; one that it sent itself it can."""
        value = item.source.lookup.plain(item.place)
        refusal = None
        if not workload.is_live and not _is_custom(value):
            api_version = value.get("apiVersion") if isinstance(value, dict) else None
            refusal = decoding_refusal(value, workload.kind, str(api_version or "v1"), item.pod_path)
        if refusal is not None:
            undecodable = _report_undecodable(workload, refusal, item.source.name, _locate(item))
            return self._noted(undecodable, item, value), None
        outcome = follow()
        listed = self._objects.cluster(item.source.path, self._override).listed_kinds
        return self._noted(report(outcome, item.source.name, _locate(item), listed), item, value), outcome

    def _noted(self, item_report: AdmissionReport, item: _Item, value: Plain) -> AdmissionReport:
        """Say what was assumed where the text names no kind, and which fields are not judged."""
        if _is_custom(value):
            fields: tuple[str, ...] = (f"{item.what.kind} (its controller makes the pods)",)
        else:
            fields = not_judged(value, item.pod_path, self._policies_of(item).of(item.namespace).namespace)
        kind = item.place.taken_for
        return replace(item_report, notes=(taken_for(kind),) if kind else (), not_judged=fields)

    def whole(self, progress: Progress | None) -> AdmissionList:
        """Return what becomes of all workloads that the answer is about, in the order of the files."""
        items = tuple(admission for item, admission in self._admitted(progress) if self._takes(item))
        for item in self._items:
            if not isinstance(item.what, RefusedDocument):
                self._policies_of(item)
        return AdmissionList(
            items=items,
            kubernetes_version=self._profile.version_text,
            override_profile=next((policies.override_profile.name for policies in self._overriding()), None),
            assumptions=(
                *of_version(self._profile),
                *without_policies(self._objects),
                *((ROOM_FOR_RESIZE,) if self._is_node_missing else ()),
                *cluster_assumptions(self._objects),
            ),
        )

    def _check_policies(self) -> None:
        """Raise an error if the policies are not valid."""
        self._objects.check_policies()
        self._objects.check_kubelets()
        errors = self._objects.policy_errors
        if errors:
            raise InputError("the policies are not valid", fix=f"first problem: {errors[0]}")
        if self._override is not None and not any(self._overriding()):
            what = "no ClusterResourceOverride in the input"
            raise InvalidArgument(
                what, where=naming("override_profile"), fix="add a ClusterResourceOverride to the files"
            )

    def _overriding(self) -> Iterator[Policies]:
        """Yield the policies of files that an override applies to."""
        for path in (STDIN, *(source.path for source in self._objects.sources)):
            policies = self._objects.cluster(path, self._override).policies
            if policies.override is not None:
                yield policies

    def _policies_of(self, item: _Item) -> NamespacePolicies:
        """Return what applies to the pods of a file; classes that the cluster may have are taken to exist."""
        scopes = self._objects.scopes(item.source.path)
        if scopes not in self._policies:
            self._policies[scopes] = policies_for(self._objects, item.source.path, self._override)
        return self._policies[scopes]


def policies_for(objects: Objects, path: str, override: OverrideProfile | None = None) -> NamespacePolicies:
    """Return what applies to the pods of a file, quotas included; classes that the cluster may have exist."""
    cluster = objects.cluster(path, override)
    assumed = objects.with_assumed_classes(cluster.policies, objects.scopes(path), cluster.known_classes)
    return NamespacePolicies(replace(cluster, policies=assumed))


def _items(objects: Objects) -> Iterator[_Item]:
    """Yield workloads and what should be one, file by file, in the order in which they stand there."""
    for source in objects.sources:
        reading = source.reading
        items = []
        for workload, place in zip(reading.workloads, reading.places, strict=True):
            own = in_namespace(workload, objects.namespace)
            items.append(_Item(source, place, own, own.metadata.namespace))
        if reading.refused:
            items += [
                _Item(source, refused.place, refused, refused.metadata.namespace or objects.namespace)
                for refused in reading.refused
            ]
            items.sort(key=lambda item: (item.place.chunk.start, item.place.document, item.place.path))
        yield from items


def _is_custom(value: Plain) -> bool:
    """Whether an object is a custom resource, in which the API server sees no pod."""
    return isinstance(value, dict) and is_custom_group(group_of(str(value.get("apiVersion", ""))))


def _locate(item: _Item) -> Locate:
    return lambda path: item.source.locate(item.place, path)


# ---- told ------------------------------------------------------------------------------------------------------------


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
        containers=tuple(
            ContainerAmounts(each.name, kind, amounts(each.resources.requests), amounts(each.resources.limits))
            for kind, each in typed_containers(first.pod)
        ),
        priority=first.pod.spec.priority,
        override=_override(first),
    )


def _report_undecodable(workload: Workload, refusal: Refusal, source: str, locate: Locate) -> AdmissionReport:
    """Render a workload that podqos can read and the API server cannot."""
    metadata = workload.metadata
    rejection = _rejection_of_object(refusal, Step.DECODING, locate)
    return _unreadable(workload.kind, metadata, metadata.namespace, source, rejection)


def _report_unread(
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
    return _unreadable(refused.kind, refused.metadata, namespace, source, rejection)


def _rejection_of_object(refusal: Refusal, step: Step, locate: Locate) -> RefusalReport:
    """Render the API server's rejection of an object that is not stored; paths are those of the object."""
    fields = tuple(FieldReport(error.path, *locate(error.path), error.words) for error in refusal.errors)
    return RefusalReport(step, refusal.code, refusal.message, fields, holder_is_stored=False, hint="")


def _unreadable(
    kind: str, metadata: ObjectMeta, namespace: str, source: str, refusal: RefusalReport
) -> AdmissionReport:
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


# ---- as text ---------------------------------------------------------------------------------------------------------

_LABEL = 27  # columns of the name of a step within a block
_INDENT = " " * (2 + _LABEL)
_NOTHING = "–"

CSV_HEADER = (
    "namespace", "kind", "name", "operation", "class_as_written", "class", "class_changed", "pods", "pods_admitted",
    "outcome", "refused_by", "code", "message", "not_judged",
)  # fmt: skip


def text(whole: AdmissionList, style: Style) -> Iterator[str]:
    """Yield a block of lines per workload: each step with what it changed, and the outcome."""
    for item in whole.items:
        yield from _block(item, style)
    if whole.items:
        yield words.OTHER_FIELDS


def _block(item: AdmissionReport, style: Style) -> list[str]:
    lines = [f"{style.strong(_title(item))}  {_classes(item, style)}"]
    lines += _steps(item, style)
    if item.override is not None:
        lines += _labelled("override", [item.override.message], style)
    if item.refusal is not None:
        lines += _refusal_lines(item, item.refusal, style)
    elif item.steps:
        lines += _labelled("outcome", [_allowed(item)], style)
    if item.keeps_scores:
        lines += _labelled("scores", [kept_scores(item.keeps_scores)], style)
    if item.pending is not None:
        pending = item.pending
        lines += _labelled(
            "kubelet", [f"{pending.reason} on node {pending.node}: {pending.message}"], style, is_alarm=True
        )
    if item.not_judged:
        lines += _labelled("not evaluated", [words.not_judged(item.not_judged)], style)
    for warning in item.warnings:
        lines += _labelled("warning", [warning.message], style, is_alarm=True)
    lines.append("")
    return lines


def table(whole: AdmissionList, style: Style) -> list[str]:
    """Return one line per workload."""
    rows = [
        (
            item.namespace,
            f"{item.kind}/{item.name}",
            _class(item.qos_class_as_written, style),
            _class(item.qos_class, style),
            _drift(item),
            _outcome_words(item),
        )
        for item in whole.items
    ]
    headers = ("NAMESPACE", "NAME", "AS WRITTEN", "ADMITTED", "CLASS CHANGED BY", "OUTCOME")
    return [*columns(headers, rows, style), *([words.OTHER_FIELDS] if whole.items else ())]


def csv_rows(whole: AdmissionList) -> Table:
    """Return headings, and a row per workload."""
    return CSV_HEADER, (
        (
            item.namespace,
            item.kind,
            item.name,
            item.operation,
            item.qos_class_as_written or "",
            item.qos_class or "",
            "true" if item.class_changed else "false",
            item.pods,
            item.pods_admitted,
            item.outcome,
            item.refusal.step if item.refusal else "",
            item.refusal.code if item.refusal else "",
            item.refusal.message if item.refusal else "",
            " ".join(item.not_judged),
        )
        for item in whole.items
    )


# ---- one block -----------------------------------------------------------------------------------------------------


def _title(item: AdmissionReport) -> str:
    count = f" × {item.pods}" if item.pods != 1 else ""
    resize = "resize of " if item.operation is Operation.RESIZE else ""
    return f"{resize}{item.kind} {item.namespace}/{item.name}{count}"


def _classes(item: AdmissionReport, style: Style) -> str:
    """Return the class, or the way from the class as written to what became of it."""
    if item.qos_class_as_written is None:
        return style.alarm("rejected")
    before = style.qos_class(item.qos_class_as_written)
    if item.qos_class is None:
        return f"{before} → {style.alarm('rejected')}"
    after = style.qos_class(item.qos_class)
    return after if item.qos_class is item.qos_class_as_written else f"{before} → {after}"


def _steps(item: AdmissionReport, style: Style) -> list[str]:
    """Return the steps in their order; those that changed nothing share a line."""
    lines: list[str] = []
    # A quota that let the first pods in and refuses the next speaks once, below.
    passed = [step for step in item.steps if item.refusal is None or step.step != item.refusal.step]
    for has_changes, group in groupby(passed, key=lambda step: bool(step.changes)):
        if has_changes:
            for step in group:
                lines += _step_lines(step, style)
        else:
            lines += _labelled("passed", [", ".join(step.step for step in group)], style)
    return lines


def _step_lines(step: StepReport, style: Style) -> list[str]:
    paragraphs = change_lines(step.changes)
    is_drift = step.qos_class_before is not step.qos_class_after
    if is_drift:
        before, after = style.qos_class(step.qos_class_before), style.qos_class(step.qos_class_after)
        paragraphs.insert(0, f"{before} → {after}: {step.reason}")
    # What defaulting does belongs to what a manifest means.
    is_alarm = is_drift and step.step not in {Step.DEFAULTING, Step.POD_LEVEL_DEFAULTING}
    return _labelled(step.step, paragraphs, style, is_alarm=is_alarm)


def _refusal_lines(item: AdmissionReport, refusal: RefusalReport, style: Style) -> list[str]:
    code = words.status(Code(refusal.code))
    lines = _labelled(refusal.step, [f"{style.alarm(f'rejected, {code}')}: {refusal.message}"], style, is_alarm=True)
    # What comes from a cluster has no line.
    places = [
        f"{item.source}:{field.line}:{field.column}: {field.path}" if field.line else field.path
        for field in refusal.fields
    ]
    lines += _labelled("", places, style)
    if item.outcome is Outcome.PARTLY_ALLOWED:
        lines += _labelled("outcome", [f"{item.pods_admitted} of {item.pods} pods allowed"], style)
    stored = words.stored_without_pods(item.kind) if refusal.holder_is_stored else ""
    return lines + _labelled("note", filter(None, (refusal.hint, stored)), style)


def _allowed(item: AdmissionReport) -> str:
    if item.pods == 1:
        return "allowed, on every node" if item.kind == "DaemonSet" else "allowed"
    return f"{item.pods} of {item.pods} pods allowed" if item.pods else "would be allowed; 0 replicas requested"


def _labelled(label: str, paragraphs: Iterable[str], style: Style, *, is_alarm: bool = False) -> list[str]:
    lines = [line for paragraph in paragraphs for line in wrapped(paragraph, style, _INDENT)]
    if lines:
        mark = style.alarm("! ") if is_alarm else "  "
        lines[0] = f"{mark}{style.faint(label.ljust(_LABEL))}{lines[0][len(_INDENT) :]}"
    return lines


# ---- one line ------------------------------------------------------------------------------------------------------


def _class(qos_class: QOSClass | None, style: Style) -> str:
    return _NOTHING if qos_class is None else style.qos_class(qos_class)


def _drift(item: AdmissionReport) -> str:
    """Return the steps that changed the class, if it ends as another."""
    changed = [step.step for step in item.steps if step.qos_class_before is not step.qos_class_after]
    return ", ".join(changed) if item.qos_class is not item.qos_class_as_written and changed else _NOTHING


def _outcome_words(item: AdmissionReport) -> str:
    resize = "resize " if item.operation is Operation.RESIZE else ""
    undefined = "; its defaults are undefined" if item.warnings else ""
    if item.refusal is None:
        count = len(item.not_judged)
        unjudged = f"; {count} field{'s' if count > 1 else ''} not evaluated" if count else ""
        pending = "" if item.pending is None else f", then {item.pending.reason} on node {item.pending.node}"
        return f"{resize}allowed{pending}{undefined}{unjudged}"
    code = words.status(Code(item.refusal.code))
    allowed = f"{item.pods_admitted} of {item.pods} pods allowed, then " if item.pods_admitted else ""
    return f"{allowed}{resize}rejected by {item.refusal.step}, {code}: {item.refusal.message}"
