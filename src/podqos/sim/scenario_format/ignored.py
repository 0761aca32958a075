"""What a scenario's manifests say that could change a run, and that the simulation ignores.

Labels, images, environment and the like change nothing, and are not listed. What autoscalers ignore is reported where
those are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from podqos.admission.as_written import Fields, containers_of, fields_of, objects_of
from podqos.manifest.plain import Plain

_EVERYWHERE = "the volume is available on every node at once"
_OF_POD = {
    "readinessGates": "a pod is ready when its containers are",
    "resourceClaims": "every node has the devices",
    "schedulerName": "pods are placed by the rules of the default scheduler",
    "schedulingGroup": "the pods of the group are placed one by one",
}
_OF_LIFECYCLE = {"postStart": "the hook takes no time and does not fail"}
_OF_VOLUME = {"ephemeral": _EVERYWHERE, "persistentVolumeClaim": _EVERYWHERE}
_OF_SPEC = {
    "ordinals": "ordinals begin at 0",
    "paused": "rollouts happen as the events say",
    "progressDeadlineSeconds": "a rollout is never given up",
    "startingDeadlineSeconds": "a run is never too late",
    "volumeClaimTemplates": _EVERYWHERE,
}
_OF_ROLLING = {
    "StatefulSet": {"maxUnavailable": "pods are updated one after the other", "partition": "all pods are updated"},
    "DaemonSet": {"maxSurge": "a new pod waits for the end of the old one"},
}
_OF_JOB = {
    "backoffLimitPerIndex": "backoffLimit is that of all pods",
    "maxFailedIndexes": "completions have no indexes",
    "podFailurePolicy": "every failed pod counts",
    "podReplacementPolicy": "a pod is replaced when it is deleted",
    "successPolicy": "a Job needs all its completions",
}
_MARKS = (
    *(name.encode() for name in (*_OF_POD, *_OF_LIFECYCLE, *_OF_SPEC, *_OF_JOB)),
    b"rollingUpdate",
    b"persistentVolumeClaim",
    b"volumeClaimTemplate",  # of ephemeral volumes, too
)
_IMPLIED = frozenset({"default-scheduler", "NonIndexed", "TerminatingOrFailed"})

IGNORED_OBJECTS: Mapping[tuple[str, str], str] = {
    ("autoscaling.k8s.io", "VerticalPodAutoscaler"): "it changes no requests",
    ("karpenter.sh", "NodePool"): "nodes are those of spec.nodes",
    ("keda.sh", "ScaledJob"): "it creates no Jobs",
    ("keda.sh", "ScaledObject"): "it scales nothing",
    ("kueue.x-k8s.io", "ClusterQueue"): "Jobs are not queued",
    ("scheduling.k8s.io", "PodGroup"): "its pods are placed one by one",
    ("scheduling.x-k8s.io", "PodGroup"): "its pods are placed one by one",
    ("scheduling.volcano.sh", "PodGroup"): "its pods are placed one by one",
}
"""By API group and kind: objects that act in a cluster, and what a run does instead."""


class IgnoredField(Struct, frozen=True):
    """A field that a run ignores."""

    path: str
    name: str
    instead: str
    """What holds in a run."""


def may_be_ignored(data: bytes) -> bool:
    """Whether a text mentions any field that a run ignores."""
    return any(mark in data for mark in _MARKS)


def ignored_fields(value: Plain, pod_path: str) -> Iterator[IgnoredField]:
    """Yield the fields of a workload, written as ``value``, that a run ignores."""
    pod = value
    for step in pod_path.split(".") if pod_path else ():
        pod = fields_of(pod).get(step)
    spec, prefix = fields_of(fields_of(pod).get("spec")), f"{pod_path}." if pod_path else ""
    yield from _present(spec, _OF_POD, f"{prefix}spec")
    for container, path in containers_of(spec):
        yield from _present(fields_of(container.get("lifecycle")), _OF_LIFECYCLE, f"{prefix}{path}.lifecycle")
    for volume, path in objects_of(spec.get("volumes"), "spec.volumes"):
        yield from _present(volume, _OF_VOLUME, f"{prefix}{path}")
    if pod_path:
        own = fields_of(fields_of(value).get("spec"))
        yield from _present(own, _OF_SPEC, "spec")
        rolling = fields_of(fields_of(own.get("updateStrategy")).get("rollingUpdate"))
        of_kind = _OF_ROLLING.get(str(fields_of(value).get("kind")), {})
        yield from _present(rolling, of_kind, "spec.updateStrategy.rollingUpdate")
        yield from _present(own, _OF_JOB, "spec")
        yield from _present(fields_of(fields_of(own.get("jobTemplate")).get("spec")), _OF_JOB, "spec.jobTemplate.spec")


def _present(fields: Fields, table: Mapping[str, str], path: str) -> Iterator[IgnoredField]:
    for name, instead in table.items():
        stated = fields.get(name)
        if stated and not (isinstance(stated, str) and stated in _IMPLIED):
            yield IgnoredField(f"{path}.{name}", name, instead)
