"""What the API server says of a new workload, before any of its pods exists.

Whether it can read it (400), and whether its fields are valid (422). Policies of the namespace have no say in that:
they wait for the pods.

Source: Kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/endpoints/handlers/create.go, pkg/registry/{apps,batch,core}.
"""

from __future__ import annotations

from collections.abc import Callable

from podqos.admission.as_written import Errors, Fields, fields_of
from podqos.admission.controller_validation import (
    daemon_set_errors,
    deployment_errors,
    pod_template_errors,
    replica_set_errors,
    replication_controller_errors,
    stateful_set_errors,
)
from podqos.admission.decoding import read_pod
from podqos.admission.defaulting import rounded
from podqos.admission.field_errors import FieldError
from podqos.admission.holders import Holder, metadata_in
from podqos.admission.job_validation import cron_job_errors, job_errors
from podqos.admission.refusal import Refusal, invalid_holder
from podqos.manifest.kinds import POD_HOLDERS
from podqos.manifest.plain import Plain
from podqos.model.pod import Pod

_CHECKS: dict[str, Callable[[Holder], Errors]] = {
    "Deployment": deployment_errors,
    "ReplicaSet": replica_set_errors,
    "StatefulSet": stateful_set_errors,
    "DaemonSet": daemon_set_errors,
    "Job": job_errors,
    "CronJob": cron_job_errors,
    "ReplicationController": replication_controller_errors,
    "PodTemplate": pod_template_errors,
}


def workload_refusal(value: Plain, kind: str) -> Refusal | None:
    """Return why the API server rejects a new workload of a kind, in its words; None if it stores it."""
    pod = read_pod(value, kind, pod_path=POD_HOLDERS[kind].pod_path)
    if isinstance(pod, Refusal):
        return pod
    errors = holder_errors(kind, fields_of(value), pod)
    if not errors:
        return None
    return invalid_holder(kind, metadata_in(fields_of(value)), errors)


def holder_errors(kind: str, value: Fields, pod: Pod) -> tuple[FieldError, ...]:
    """Return every error about an object around a pod template, as decoded; ``pod`` is that of its template."""
    holder = Holder(kind, value, rounded(pod), POD_HOLDERS[kind].pod_path)
    return tuple(_CHECKS[kind](holder))
