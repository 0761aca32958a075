"""Taints and tolerations, and how a node's condition keeps pods away.

Since 1.12 the node controller turns conditions into taints, so that pressure keeps away *every* pod without the
toleration, whatever its class. Before, the scheduler looked at the conditions itself: memory pressure kept away
BestEffort pods only, disk and pid pressure all of them. The kubelet's own refusals come later, on the node, and are in
``eviction``.

Source: Kubernetes v1.36 staging/src/k8s.io/api/core/v1/toleration.go, pkg/controller/nodelifecycle/
node_lifecycle_controller.go (nodeConditionToTaintKeyStatusMap); v1.11 pkg/scheduler/algorithm/predicates/predicates.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from podqos.model.node import (
    TAINT_DISK_PRESSURE,
    TAINT_MEMORY_PRESSURE,
    TAINT_NETWORK_UNAVAILABLE,
    TAINT_NOT_READY,
    TAINT_PID_PRESSURE,
    TAINT_UNREACHABLE,
    TAINT_UNSCHEDULABLE,
    Node,
    Taint,
)
from podqos.model.pod import QOSClass, Toleration
from podqos.model.profile import Profile


class Repelled(StrEnum):
    """Which pods a condition of a node keeps away at scheduling."""

    WITHOUT_TOLERATION = "WithoutToleration"
    """Every pod that does not tolerate the condition's taint."""
    ALL = "All"
    BEST_EFFORT = "BestEffort"


NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"
PREFER_NO_SCHEDULE = "PreferNoSchedule"

UNSCHEDULABLE = Taint(key=TAINT_UNSCHEDULABLE, effect=NO_SCHEDULE)

# (condition, status) → the taint the node controller puts on the node
_TAINT_OF_CONDITION = {
    ("Ready", "False"): TAINT_NOT_READY,
    ("Ready", "Unknown"): TAINT_UNREACHABLE,
    ("MemoryPressure", "True"): TAINT_MEMORY_PRESSURE,
    ("DiskPressure", "True"): TAINT_DISK_PRESSURE,
    ("PIDPressure", "True"): TAINT_PID_PRESSURE,
    ("NetworkUnavailable", "True"): TAINT_NETWORK_UNAVAILABLE,
}
CONDITION_TAINTS = frozenset(_TAINT_OF_CONDITION.values())
"""The keys of taints that follow from what a node says about itself."""
# Conditions that kept every pod away before 1.12; MemoryPressure kept away BestEffort only.
_FOR_EVERY_POD = ("Ready", "DiskPressure", "PIDPressure", "NetworkUnavailable")


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether any toleration covers the taint."""
    return any(toleration.tolerates(taint.key, taint.value, taint.effect) for toleration in tolerations)


def first_untolerated(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> Taint | None:
    """Return the first taint that keeps a pod with these tolerations away; PreferNoSchedule never does."""
    for taint in taints:
        if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not is_tolerated(taint, tolerations):
            return taint
    return None


def disliked(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> int:
    """Return the number of PreferNoSchedule taints that are not tolerated."""
    return sum(taint.effect == PREFER_NO_SCHEDULE and not is_tolerated(taint, tolerations) for taint in taints)


def taints_of(node: Node, profile: Profile) -> tuple[Taint, ...]:
    """Return the node's taints, with those that its conditions bring where they are not there yet."""
    if not profile.conditions_become_taints:
        return node.spec.taints
    present = {(taint.key, taint.effect) for taint in node.spec.taints}
    keys = (_TAINT_OF_CONDITION.get((condition.type, condition.status)) for condition in node.status.conditions)
    added = (Taint(key=key, effect=NO_SCHEDULE) for key in keys if key and (key, NO_SCHEDULE) not in present)
    return (*node.spec.taints, *added)


def repelled(condition: str, profile: Profile) -> Repelled:
    """Return which pods the scheduler keeps away from a node with this condition."""
    if profile.conditions_become_taints:
        return Repelled.WITHOUT_TOLERATION
    return Repelled.ALL if condition in _FOR_EVERY_POD else Repelled.BEST_EFFORT


def refusing_condition(node: Node, qos_class: QOSClass, profile: Profile) -> str | None:
    """Return the condition that keeps a pod of this class away by itself, as before 1.12."""
    for condition in node.status.conditions:
        if (condition.type, condition.status) not in _TAINT_OF_CONDITION:
            continue
        whom = repelled(condition.type, profile)
        if whom is Repelled.ALL or (whom is Repelled.BEST_EFFORT and qos_class is QOSClass.BEST_EFFORT):
            return condition.type
    return None
