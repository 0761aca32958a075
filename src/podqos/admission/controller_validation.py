"""What the API server rejects about controllers that keep pods running, field by field, in its order.

Source: Kubernetes v1.36 pkg/apis/apps/validation/validation.go (ValidateDeployment, ValidateReplicaSet,
ValidateStatefulSet, ValidateDaemonSet), pkg/apis/core/validation/validation.go (ValidateReplicationController,
ValidatePodTemplate); defaults from pkg/apis/apps/v1/defaults.go and pkg/apis/core/v1/defaults.go.
"""

from __future__ import annotations

from msgspec.structs import replace

from podqos.admission.as_written import Errors, Fields, fields_of, number_of, objects_of, text_of
from podqos.admission.claim_templates import claim_spec_errors
from podqos.admission.field_errors import invalid, not_supported, required
from podqos.admission.holders import (
    Holder,
    negative_errors,
    owner_errors,
    running_errors,
    selector_in,
    template_errors,
)
from podqos.admission.names import label_complaints, label_prefix_complaints, long_name_complaints
from podqos.admission.pod_validation import metadata_errors
from podqos.admission.rolling_updates import (
    daemon_set_strategy_errors,
    deployment_strategy_errors,
    stateful_set_strategy_errors,
)
from podqos.admission.selectors import Selection, mismatch
from podqos.manifest.plain import Plain
from podqos.model.pod import Volume

_POLICIES = ("OrderedReady", "Parallel")
_RETENTIONS = ("Retain", "Delete")
_DEFAULT_DEADLINE = 600


def deployment_errors(holder: Holder) -> Errors:
    """Check a Deployment."""
    spec = holder.spec
    yield from object_errors(holder)
    yield from negative_errors(spec, ("replicas",), "spec")
    yield from _replica_errors(holder)
    yield from deployment_strategy_errors(spec)
    yield from negative_errors(spec, ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"), "spec")
    given = spec.get("progressDeadlineSeconds")
    deadline = given if isinstance(given, int) else _DEFAULT_DEADLINE
    if deadline <= number_of(spec, "minReadySeconds"):
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def replica_set_errors(holder: Holder) -> Errors:
    """Check a ReplicaSet."""
    yield from object_errors(holder)
    yield from negative_errors(holder.spec, ("replicas", "minReadySeconds"), "spec")
    yield from _replica_errors(holder)


def _replica_errors(holder: Holder) -> Errors:
    """Check selector and template of a Deployment or ReplicaSet, which are called ReplicaSet here."""
    selection = Selection(holder.kind, selector_in(holder.spec), holder.labels)
    yield from selection.errors
    if selection.is_readable:
        yield from selection.mismatch
        yield from template_errors(holder)
        yield from running_errors(holder, "ReplicaSet")


def stateful_set_errors(holder: Holder) -> Errors:
    """Check a StatefulSet."""
    spec = holder.spec
    yield from metadata_errors(holder.metadata, label_complaints, label_prefix_complaints)
    yield from owner_errors(fields_of(holder.value.get("metadata")))
    policy = text_of(spec, "podManagementPolicy")
    if policy and policy not in _POLICIES:
        yield invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    yield from stateful_set_strategy_errors(spec)
    retention = fields_of(spec.get("persistentVolumeClaimRetentionPolicy"))
    for field in ("whenDeleted", "whenScaled"):
        kept = text_of(retention, field)
        if kept and kept not in _RETENTIONS:
            yield not_supported(f"spec.persistentVolumeClaimRetentionPolicy.{field}", kept, _RETENTIONS)
    for claim, path in objects_of(spec.get("volumeClaimTemplates"), "spec.volumeClaimTemplates"):
        yield from claim_spec_errors(fields_of(claim.get("spec")), f"{path}.spec")
    yield from negative_errors(spec, ("replicas", "minReadySeconds"), "spec")
    yield from negative_errors(fields_of(spec.get("ordinals")), ("start",), "spec.ordinals")
    service = text_of(spec, "serviceName")
    for complaint in label_complaints(service) if service else ():
        yield invalid("spec.serviceName", service, complaint)
    selection = Selection(holder.kind, selector_in(spec), holder.labels)
    yield from selection.errors
    if selection.is_readable:
        yield from selection.mismatch
        yield from _identity_errors(holder)
    yield from running_errors(holder, holder.kind)


def _identity_errors(holder: Holder) -> Errors:
    """Check the template of a StatefulSet: the controller names its pods, and makes volumes of the claims."""
    claims = [claim for claim, _ in objects_of(holder.spec.get("volumeClaimTemplates"), "")]
    names = dict.fromkeys(text_of(fields_of(claim.get("metadata")), "name") for claim in claims)
    written = fields_of(holder.template.get("spec"))
    kept = [
        (volume, own)
        for volume, (own, _) in zip(holder.pod.spec.volumes, objects_of(written.get("volumes"), ""), strict=True)
        if volume.name not in names
    ]
    added: list[Plain] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    spec: Fields = {**written, "hostname": None, "subdomain": None, "volumes": [*added, *(own for _, own in kept)]}
    volumes = (*(Volume(name=name) for name in names), *(volume for volume, _ in kept))
    pod = replace(holder.pod, spec=replace(holder.pod.spec, volumes=volumes))
    yield from template_errors(replace(holder, pod=pod), spec)


def daemon_set_errors(holder: Holder) -> Errors:
    """Check a DaemonSet."""
    selection = Selection(holder.kind, selector_in(holder.spec), holder.labels)
    yield from object_errors(holder)
    yield from selection.errors
    yield from selection.mismatch
    yield from selection.emptiness
    yield from template_errors(holder)
    yield from running_errors(holder, holder.kind)
    yield from negative_errors(holder.spec, ("minReadySeconds",), "spec")
    yield from daemon_set_strategy_errors(holder.spec)
    yield from negative_errors(holder.spec, ("revisionHistoryLimit",), "spec")


def replication_controller_errors(holder: Holder) -> Errors:
    """Check a ReplicationController; it selects the labels of its template unless it says otherwise, and has them."""
    spec, labels = holder.spec, holder.labels or {}
    metadata = holder.metadata
    own = replace(metadata, labels=metadata.labels or labels)
    yield from metadata_errors(own, long_name_complaints, complaints_of_prefix=None)
    yield from owner_errors(fields_of(holder.value.get("metadata")))
    yield from negative_errors(spec, ("minReadySeconds",), "spec")
    written = fields_of(spec.get("selector"))
    selected = {key: str(value or "") for key, value in written.items()} or labels
    if not selected:
        yield required("spec.selector")
    yield from negative_errors(spec, ("replicas",), "spec")
    if spec.get("template") is None:
        yield required("spec.template")
        return
    if any(labels.get(key) != value for key, value in selected.items()):
        yield mismatch(holder.labels)
    yield from template_errors(holder)
    yield from running_errors(holder, holder.kind)


def pod_template_errors(holder: Holder) -> Errors:
    """Check a PodTemplate."""
    yield from object_errors(holder)
    yield from template_errors(holder)


def object_errors(holder: Holder) -> Errors:
    """Check the metadata of an object that is named like most."""
    yield from metadata_errors(holder.metadata)
    yield from owner_errors(fields_of(holder.value.get("metadata")))
