"""The pods of workloads as their controllers create them, for the API server to name in its answers.

What is random in a generated name, and what depends on the template or the time, is written as ``x``. Everything else
of a pod is that of the template.

Source: Kubernetes v1.36 pkg/controller/controller_utils.go (getPodsPrefix), pkg/controller/deployment/sync.go,
pkg/controller/statefulset/stateful_set_utils.go (getPodName), pkg/controller/job/indexed_job_utils.go
(podGenerateNameWithIndex), pkg/controller/cronjob/cronjob_controllerv2.go (getJobName).
"""

from __future__ import annotations

from msgspec.structs import replace

from podqos.admission.names import given_name, prefix_complaints
from podqos.model.pod import Pod, Workload

_HASH = "x" * 10
_MINUTE = "x" * 8
_LONGEST_PREFIX = 58
_GENERATING = frozenset({"ReplicaSet", "ReplicationController", "DaemonSet", "Deployment", "Job", "CronJob"})


def as_created(workload: Workload, number: int = 0) -> Pod:
    """Return a pod of a workload under the name that its controller gives it; ``number``: of those of a StatefulSet."""
    pod, name = workload.pod, given_name(workload.metadata)
    if not name:
        return pod
    if workload.kind == "StatefulSet":
        return _named(pod, f"{name}-{number}", "")
    if workload.kind not in _GENERATING:
        return pod
    if workload.kind == "Deployment":
        name = f"{name}-{_HASH}"
    elif workload.kind == "CronJob":
        name = f"{name}-{_MINUTE}"
    if workload.job is not None and workload.job.is_indexed:
        index = f"-{number}-"
        return _named(pod, "", name[: _LONGEST_PREFIX - len(index)] + index)
    return _named(pod, "", name if prefix_complaints(f"{name}-") else f"{name}-")


def as_in_template(pod: Pod, workload: Workload) -> Pod:
    """Return a pod under the name it has in the manifest again."""
    own = workload.pod.metadata
    return _named(pod, own.name, own.generate_name)


def _named(pod: Pod, name: str, generate_name: str) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, name=name, generate_name=generate_name))
