"""The scheduler's default spread constraints, for pods without constraints of their own.

They hold for pods of a ReplicaSet, a ReplicationController or a StatefulSet and for those that a Service selects. A
controller is known by the pod's owner reference. What it selects is not asked: the pods it makes have the labels of
its template, which its selector, with the hash of the template, tells from all others.

Source: Kubernetes v1.36 pkg/scheduler/framework/plugins/podtopologyspread/{plugin,common}.go (buildDefaultConstraints)
and pkg/scheduler/framework/plugins/helper/spread.go (DefaultSelector).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from podqos.model.node import LABEL_HOSTNAME, LABEL_ZONE
from podqos.model.pod import ObjectMeta
from podqos.model.scheduling import TopologySpreadConstraint
from podqos.model.selector import LabelSelector, LabelSelectorRequirement
from podqos.model.service import Service

_CONSTRAINTS = (
    TopologySpreadConstraint(3, LABEL_HOSTNAME, "ScheduleAnyway"),
    TopologySpreadConstraint(5, LABEL_ZONE, "ScheduleAnyway"),
)
_CONTROLLERS = (("apps/v1", "ReplicaSet"), ("v1", "ReplicationController"), ("apps/v1", "StatefulSet"))
_TEMPLATE_HASH = "pod-template-hash"
# Labels that a StatefulSet gives to each of its pods; its selector does not name them.
_OF_ONE_POD = ("statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "controller-revision-hash")


def default_constraints(pod: ObjectMeta, services: Iterable[Service] = ()) -> tuple[TopologySpreadConstraint, ...]:
    """Return the constraints with the pods they count; none if no selector matches similar pods."""
    selector = _like(pod, services)
    return (
        () if selector.is_empty else tuple(replace(constraint, label_selector=selector) for constraint in _CONSTRAINTS)
    )


def _like(pod: ObjectMeta, services: Iterable[Service]) -> LabelSelector:
    """Return which pods of the namespace count as similar to the pod."""
    labels: dict[str, str] = {}
    for service in services:
        if service.selects(pod.namespace, pod.labels):
            labels |= service.spec.selector
    if not pod.labels or not any(
        owner.controller and (owner.api_version, owner.kind) in _CONTROLLERS for owner in pod.owner_references
    ):
        return LabelSelector(labels)
    labels |= {key: value for key, value in pod.labels.items() if key not in _OF_ONE_POD}
    # A pod that is not made yet has no hash, and those that are there belong to another template.
    unmade = () if _TEMPLATE_HASH in labels else (LabelSelectorRequirement(_TEMPLATE_HASH, "DoesNotExist"),)
    return LabelSelector(labels, unmade)
