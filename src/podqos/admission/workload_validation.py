"""What the API server says of a new workload, before any of its pods exists.

Whether it can read it (400), and whether its name, its selector, its template, and how many pods it makes and when, are
valid (422). Policies of the namespace have no say in that: they wait for the pods. How it replaces its pods, and other
fields that have nothing to do with resources, priority, placement or eviction, are not checked.

Source: Kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/endpoints/handlers/create.go, pkg/registry/{apps,batch,core},
pkg/apis/{apps,batch,core}/validation/validation.go (ValidateDeployment, ValidateReplicaSet, ValidateStatefulSet,
ValidateDaemonSet, ValidateReplicationController, ValidatePodTemplate, ValidateJob, ValidateCronJobCreate),
pkg/registry/batch/job/strategy.go (generateSelector).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.as_written import Errors, Fields, fields_of, text_of
from podqos.admission.constraints import selector_errors
from podqos.admission.decoding import read_pod
from podqos.admission.defaulting import rounded
from podqos.admission.field_errors import FieldError, forbidden, invalid, not_supported, required
from podqos.admission.names import given_name, label_complaints, label_prefix_complaints, long_name_complaints
from podqos.admission.pod_validation import metadata_errors, validate_template
from podqos.admission.refusal import Refusal, invalid_holder
from podqos.admission.selectors import Selection, in_order, mismatch, printed
from podqos.manifest.decode import convert
from podqos.manifest.kinds import POD_HOLDERS
from podqos.manifest.plain import Plain
from podqos.model.cron_schedule import schedule_complaints
from podqos.model.pod import ObjectMeta, Pod
from podqos.model.selector import LabelSelector
from podqos.model.time_zone_names import zone_complaint

UID = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
"""Stands for the uid that the API server gives a Job, in selectors and labels that it makes of it."""
_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_OF_JOB = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit")
_TEXT_MAPS = frozenset({"labels", "annotations", "matchLabels"})
_LONGEST_CRON_JOB_NAME = 52


class _Holder(Struct, frozen=True):
    """An object around a pod template, as decoded."""

    kind: str
    value: Fields
    pod: Pod
    """Of its template."""

    @property
    def metadata(self) -> ObjectMeta:
        """Of the object."""
        return _metadata_in(self.value)

    @property
    def spec(self) -> Fields:
        """Of the object."""
        return fields_of(self.value.get("spec"))

    @property
    def labels(self) -> dict[str, str] | None:
        """The labels of the template; None if there are none at all."""
        value: Plain = self.value
        for step in (*POD_HOLDERS[self.kind].pod_path, "metadata"):
            value = fields_of(value).get(step)
        return self.pod.metadata.labels if isinstance(fields_of(value).get("labels"), dict) else None

    @property
    def path(self) -> str:
        """The path of the template."""
        return ".".join(POD_HOLDERS[self.kind].pod_path)


def workload_refusal(value: Plain, kind: str) -> Refusal | None:
    """Return why the API server rejects a new workload of a kind, in its words; None if it stores it."""
    pod = read_pod(value, kind, pod_path=POD_HOLDERS[kind].pod_path)
    if isinstance(pod, Refusal):
        return pod
    errors = holder_errors(kind, fields_of(value), pod)
    return invalid_holder(kind, _metadata_in(fields_of(value)), errors) if errors else None


def holder_errors(kind: str, value: Fields, pod: Pod) -> tuple[FieldError, ...]:
    """Return every error about an object around a pod template, as decoded; ``pod`` is that of its template."""
    return tuple(_CHECKS[kind](_Holder(kind, value, rounded(pod))))


def _metadata_in(value: Fields) -> ObjectMeta:
    return convert(_zeroed(value.get("metadata") or {}), ObjectMeta)


def _selector_in(spec: Fields) -> LabelSelector | None:
    written = spec.get("selector")
    return None if written is None else convert(_zeroed(written), LabelSelector)


def _zeroed(value: Plain, field: str = "") -> Plain:
    """Return a value in which null is what Go makes of it: nothing, or an empty text as the item of a map or list."""
    if isinstance(value, dict):
        if field in _TEXT_MAPS:
            return {key: item or "" for key, item in value.items()}
        return {key: _zeroed(item, key) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        empty: Plain = {} if field == "matchExpressions" else ""
        return [empty if item is None else _zeroed(item) for item in value]
    return value


def _negative_errors(spec: Fields, names: Iterable[str], path: str = "spec") -> Errors:
    """Check numbers that must not be negative."""
    for name in names:
        number = spec.get(name)
        if isinstance(number, int) and number < 0:
            yield invalid(f"{path}.{name}", number, "must be greater than or equal to 0")


def _template_errors(holder: _Holder) -> Errors:
    for error in validate_template(holder.pod):
        yield replace(error, path=f"{holder.path}.{error.path}")


# ---- controllers that keep pods running ------------------------------------------------------------------------------


def _running_errors(holder: _Holder, named: str) -> Errors:
    """Check that the pods of a controller are to run for ever."""
    spec, path = holder.pod.spec, f"{holder.path}.spec"
    if spec.restart_policy not in {"", "Always"}:
        yield not_supported(f"{path}.restartPolicy", spec.restart_policy, ("Always",))
    if spec.active_deadline_seconds is not None:
        yield forbidden(f"{path}.activeDeadlineSeconds", f"activeDeadlineSeconds in {named} is not Supported")


def _replica_errors(holder: _Holder) -> Errors:
    """Check a Deployment or ReplicaSet, the template of which is called that of a ReplicaSet in both."""
    yield from metadata_errors(holder.metadata)
    yield from _selecting_errors(holder, "ReplicaSet")


def _stateful_set_errors(holder: _Holder) -> Errors:
    # Its pods are named after it.
    yield from metadata_errors(holder.metadata, label_complaints, label_prefix_complaints)
    yield from _selecting_errors(holder, holder.kind)


def _selecting_errors(holder: _Holder, named: str) -> Errors:
    yield from _negative_errors(holder.spec, ("replicas",))
    selection = Selection(holder.kind, _selector_in(holder.spec), holder.labels)
    yield from selection.errors
    if selection.is_readable:
        yield from selection.mismatch
        yield from _template_errors(holder)
    if selection.is_readable or holder.kind == "StatefulSet":
        yield from _running_errors(holder, named)


def _daemon_set_errors(holder: _Holder) -> Errors:
    selection = Selection(holder.kind, _selector_in(holder.spec), holder.labels)
    yield from metadata_errors(holder.metadata)
    yield from selection.errors
    yield from selection.mismatch
    yield from selection.emptiness
    yield from _template_errors(holder)
    yield from _running_errors(holder, holder.kind)


def _replication_controller_errors(holder: _Holder) -> Errors:
    """Check a ReplicationController; it selects the labels of its template unless it says otherwise, and has them."""
    spec, labels = holder.spec, holder.labels or {}
    own = replace(holder.metadata, labels=holder.metadata.labels or labels)
    yield from metadata_errors(own, long_name_complaints, complaints_of_prefix=None)
    written = fields_of(spec.get("selector"))
    selected = {key: str(value or "") for key, value in written.items()} or labels
    if not selected:
        yield required("spec.selector")
    yield from _negative_errors(spec, ("replicas",))
    if spec.get("template") is None:
        yield required("spec.template")
        return
    if any(labels.get(key) != value for key, value in selected.items()):
        yield mismatch(holder.labels)
    yield from _template_errors(holder)
    yield from _running_errors(holder, holder.kind)


def _pod_template_errors(holder: _Holder) -> Errors:
    yield from metadata_errors(holder.metadata)
    yield from _template_errors(holder)


# ---- Jobs and CronJobs -----------------------------------------------------------------------------------------------


def _job_errors(holder: _Holder) -> Errors:
    spec, metadata, name = holder.spec, holder.metadata, given_name(holder.metadata)
    labels, selector = holder.labels, _selector_in(spec)
    is_manual = spec.get("manualSelector") is True
    own = metadata.labels or labels or {}
    if not is_manual:
        given, labels = labels, dict.fromkeys(_NAME_LABELS, name) | dict.fromkeys(_UID_LABELS, UID) | (labels or {})
        selector = _with_uid(selector)
        if metadata.name and not metadata.labels and given is not None:
            # A Job without labels has those of its template: upstream the same map, unless a name was generated.
            own = labels
    yield from metadata_errors(replace(metadata, labels=own))
    if not is_manual:
        yield from _generated_errors(name, labels or {}, selector)
    pod = replace(holder.pod, metadata=replace(holder.pod.metadata, labels=labels or {}))
    yield from _job_spec_errors(replace(holder, pod=pod), spec, "spec")
    if selector is None:
        yield required("spec.selector")
    errors = tuple(selector_errors(selector, "spec.selector"))
    yield from errors
    if not errors and (selector is None or not selector.matches(labels or {})):
        yield mismatch(labels)


def _with_uid(selector: LabelSelector | None) -> LabelSelector:
    """Return the selector of a Job with the label that the API server adds to it."""
    given = selector or LabelSelector()
    return replace(given, match_labels={_UID_LABELS[1]: UID} | given.match_labels)


def _generated_errors(name: str, labels: dict[str, str], selector: LabelSelector | None) -> Errors:
    """Check that nobody but the API server sets what it selects the pods of a Job by."""
    expected = dict.fromkeys(_UID_LABELS, UID) | dict.fromkeys(_NAME_LABELS, name)
    for key in (_UID_LABELS[0], _NAME_LABELS[0], _UID_LABELS[1], _NAME_LABELS[1]):
        if labels[key] != expected[key]:
            path = f"spec.template.metadata.labels[{key}]"
            yield invalid(path, in_order(labels), f"must be '{expected[key]}'")
    is_readable = next(selector_errors(selector, ""), None) is None
    if selector is not None and is_readable and not selector.matches(expected):
        yield invalid("spec.selector", printed(selector), "`selector` not auto-generated")


def _job_spec_errors(holder: _Holder, spec: Fields, path: str) -> Errors:
    """Check the specification of a Job, or of the Jobs of a CronJob: how many pods it makes, and that they can end."""
    yield from _negative_errors(spec, _OF_JOB, path)
    is_defaulted = holder.kind == "Job" and spec.get("parallelism") is None
    if text_of(spec, "completionMode") == "Indexed" and spec.get("completions") is None and not is_defaulted:
        # It has a pod for each index.
        yield required(f"{path}.completions", "when completion mode is Indexed")
    yield from _template_errors(holder)
    policy, path = holder.pod.spec.restart_policy, f"{holder.path}.spec.restartPolicy"
    if policy in {"", "Always"}:
        yield required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in {"OnFailure", "Never"}:
        yield not_supported(path, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        yield invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')


def _cron_job_errors(holder: _Holder) -> Errors:
    spec, name = holder.spec, given_name(holder.metadata)
    yield from metadata_errors(holder.metadata)
    schedule = text_of(spec, "schedule")
    if not schedule:
        yield required("spec.schedule")
    for complaint in schedule_complaints(schedule) if schedule else ():
        yield invalid("spec.schedule", schedule, complaint)
    yield from _negative_errors(spec, ("startingDeadlineSeconds",))
    if spec.get("timeZone") is not None:
        yield from _zone_errors(text_of(spec, "timeZone"))
    job, path = fields_of(fields_of(spec.get("jobTemplate")).get("spec")), "spec.jobTemplate.spec"
    yield from _job_spec_errors(holder, job, path)
    if job.get("selector") is not None:
        words = "`selector` will be auto-generated"
        yield invalid(f"{path}.selector", printed(_selector_in(job)), words)
    if job.get("manualSelector") is True:
        yield not_supported(f"{path}.manualSelector", True, ("nil", "false"))
    if len(name.encode()) > _LONGEST_CRON_JOB_NAME:
        yield invalid("metadata.name", name, f"must be no more than {_LONGEST_CRON_JOB_NAME} characters")


def _zone_errors(zone: str) -> Errors:
    path = "spec.timeZone"
    if not zone:
        yield invalid(path, zone, "timeZone must be nil or non-empty string")
        return
    if zone.lower() == "local":
        words = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield invalid(path, zone, words)
    if zone_complaint(zone):
        yield invalid(path, zone, f"unknown time zone {zone}")


_CHECKS: dict[str, Callable[[_Holder], Errors]] = {
    "Deployment": _replica_errors,
    "ReplicaSet": _replica_errors,
    "StatefulSet": _stateful_set_errors,
    "DaemonSet": _daemon_set_errors,
    "Job": _job_errors,
    "CronJob": _cron_job_errors,
    "ReplicationController": _replication_controller_errors,
    "PodTemplate": _pod_template_errors,
}
