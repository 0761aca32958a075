"""Whether the kubelet takes a new pod while the node is under pressure.

The scheduler keeps pods away by taints; this is the kubelet's own check, and it knows a condition before the scheduler
does.

Source: Kubernetes v1.36 pkg/kubelet/eviction/eviction_manager.go (Admit); what differed up to 1.16 is in ``Profile``.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from msgspec import Struct

from podqos.eviction.messages import REASON, node_condition_text
from podqos.eviction.signals import NodeCondition
from podqos.model.node import TAINT_MEMORY_PRESSURE
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.qos.classes import qos_class_of


class AdmissionRule(StrEnum):
    """Which rule decided."""

    NO_PRESSURE = "NoPressure"
    CRITICAL = "Critical"
    NOT_BEST_EFFORT = "NotBestEffort"
    TOLERATES_MEMORY_PRESSURE = "ToleratesMemoryPressure"
    BEST_EFFORT_UNDER_MEMORY_PRESSURE = "BestEffortUnderMemoryPressure"
    OTHER_PRESSURE = "OtherPressure"


class Refused(StrEnum):
    """Which pods the kubelet refuses under a condition; critical ones never."""

    BEST_EFFORT = "BestEffort"
    BEST_EFFORT_WITHOUT_TOLERATION = "BestEffortWithoutToleration"
    ALL = "All"


def refused(condition: NodeCondition, profile: Profile = LATEST) -> Refused:
    """Return which pods the kubelet refuses while its node has this condition alone."""
    if condition is not NodeCondition.MEMORY_PRESSURE:
        return Refused.ALL
    return Refused.BEST_EFFORT_WITHOUT_TOLERATION if profile.memory_pressure_toleration else Refused.BEST_EFFORT


class NodeAdmission(Struct, frozen=True, gc=False):
    """The answer, in the words of the kubelet where it is no."""

    admit: bool
    rule: AdmissionRule
    reason: str = ""
    message: str = ""


def admit(pod: Pod, conditions: Collection[NodeCondition], profile: Profile = LATEST) -> NodeAdmission:
    """Decide on a pod that has just been bound to a node with these conditions."""
    if not conditions:
        return NodeAdmission(admit=True, rule=AdmissionRule.NO_PRESSURE)
    if pod.is_critical:
        return NodeAdmission(admit=True, rule=AdmissionRule.CRITICAL)
    rule = AdmissionRule.OTHER_PRESSURE
    if _memory_pressure_decides(conditions, profile):
        if qos_class_of(pod, profile) is not QOSClass.BEST_EFFORT:
            return NodeAdmission(admit=True, rule=AdmissionRule.NOT_BEST_EFFORT)
        whom = refused(NodeCondition.MEMORY_PRESSURE, profile)
        if whom is Refused.BEST_EFFORT_WITHOUT_TOLERATION and _tolerates_memory_pressure(pod):
            return NodeAdmission(admit=True, rule=AdmissionRule.TOLERATES_MEMORY_PRESSURE)
        rule = AdmissionRule.BEST_EFFORT_UNDER_MEMORY_PRESSURE
    return NodeAdmission(admit=False, rule=rule, reason=REASON, message=node_condition_text(conditions))


def _memory_pressure_decides(conditions: Collection[NodeCondition], profile: Profile) -> bool:
    """Whether other conditions do not matter: up to 1.16 memory pressure, where it held, decided alone."""
    if NodeCondition.MEMORY_PRESSURE not in conditions:
        return False
    return len(conditions) == 1 or not profile.disk_pressure_admits_only_critical


def _tolerates_memory_pressure(pod: Pod) -> bool:
    return any(toleration.tolerates(TAINT_MEMORY_PRESSURE, "", "NoSchedule") for toleration in pod.spec.tolerations)
