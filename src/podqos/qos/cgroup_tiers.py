"""What the kubelet sets above the pods: for ``kubepods`` and for the classes below it.

These cgroups belong to no pod; they sum up all of them and are written again whenever pods come or go. So the kernel
divides contended cpu between classes before it divides it between pods.

Source: Kubernetes v1.36 pkg/kubelet/cm/{qos_container_manager_linux,node_container_manager_linux}.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from podqos.model.effective import pod_requests
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import CPU, MEMORY
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.qos.cgroup_values import (
    CgroupValues,
    HugepageLimit,
    Rule,
    Value,
    ValueReason,
    hugepage_limits,
    memory_qos,
    protects_requests,
    shares_value,
)
from podqos.qos.classes import qos_class_of
from podqos.qos.cpu import MIN_SHARES

PIDS = "pid"

# "As much as you like" for huge pages of a class (1 << 62).
_UNBOUNDED_BYTES = 2**62


class TierRequests(Struct, frozen=True, gc=False):
    """What the pods of a node request, class by class."""

    burstable_cpu_milli: int = 0
    burstable_memory_bytes: int = 0
    guaranteed_memory_bytes: int = 0

    def plus(self, other: TierRequests, times: int = 1) -> TierRequests:
        """Return both together; ``times`` −1 takes the other away."""
        return TierRequests(
            self.burstable_cpu_milli + times * other.burstable_cpu_milli,
            self.burstable_memory_bytes + times * other.burstable_memory_bytes,
            self.guaranteed_memory_bytes + times * other.guaranteed_memory_bytes,
        )


def tier_requests(pods: Iterable[Pod], profile: Profile = LATEST) -> TierRequests:
    """Add up the effective requests of all pods on a node."""
    cpu_milli = burstable_bytes = guaranteed_bytes = 0
    for pod in pods:
        qos_class = qos_class_of(pod, profile)
        if qos_class is QOSClass.BEST_EFFORT:
            continue
        requests = pod_requests(pod, pod_level=profile.pod_level_resources)
        memory_bytes = requests.get(MEMORY, ZERO).value
        if qos_class is QOSClass.GUARANTEED:
            guaranteed_bytes += memory_bytes
        else:
            burstable_bytes += memory_bytes
            cpu_milli += requests.get(CPU, ZERO).milli_value
    return TierRequests(cpu_milli, burstable_bytes, guaranteed_bytes)


def tier_values(
    requests: TierRequests, settings: CgroupSettings, profile: Profile = LATEST
) -> dict[QOSClass, CgroupValues]:
    """Return what is set for each class; Guaranteed pods have no cgroup of their class, so nothing is."""
    burstable_limit, best_effort_limit = _reserved_limits(requests, settings)
    protected = _protected(requests.burstable_memory_bytes, settings, profile)
    hugepages = _unbounded_hugepages(settings)
    return {
        QOSClass.GUARANTEED: CgroupValues(),
        QOSClass.BURSTABLE: CgroupValues(
            cpu_shares=shares_value(
                Rule.TIER_REQUESTS, requests.burstable_cpu_milli, Quantity.of_milli(requests.burstable_cpu_milli)
            ),
            memory_limit_bytes=burstable_limit,
            memory_min_bytes=None if profile.memory_reservation_policy else protected,
            memory_low_bytes=protected if profile.memory_reservation_policy else None,
            hugepage_limits=hugepages,
        ),
        QOSClass.BEST_EFFORT: CgroupValues(
            cpu_shares=Value(MIN_SHARES, ValueReason(Rule.TIER_LEAST)),
            memory_limit_bytes=best_effort_limit,
            hugepage_limits=hugepages,
        ),
    }


def node_values(requests: TierRequests, settings: CgroupSettings, profile: Profile = LATEST) -> CgroupValues:
    """Return what is set for ``kubepods``: never more than the node leaves to pods, reserved or not."""
    if settings.enforce_node_allocatable:
        rule, resources = Rule.NODE_ALLOCATABLE, settings.node_allocatable
    else:
        rule, resources = Rule.NODE_CAPACITY, settings.node_capacity
    cpu, memory, pids = (resources.get(name) for name in (CPU, MEMORY, PIDS))
    return CgroupValues(
        cpu_shares=shares_value(rule, cpu.milli_value, cpu) if cpu is not None else None,
        memory_limit_bytes=Value(memory.value, ValueReason(rule, memory)) if memory is not None else None,
        memory_min_bytes=_protected(
            requests.guaranteed_memory_bytes + requests.burstable_memory_bytes, settings, profile
        ),
        memory_low_bytes=_protected(requests.burstable_memory_bytes, settings, profile)
        if profile.memory_low_of_node
        else None,
        pids_limit=Value(pids.value, ValueReason(rule, pids)) if pids is not None else None,
        hugepage_limits=hugepage_limits(resources, rule, settings.hugepage_sizes_bytes),
    )


def _reserved_limits(requests: TierRequests, settings: CgroupSettings) -> tuple[Value | None, Value | None]:
    """Return the ceilings of Burstable and BestEffort that ``qosReserved`` asks for.

    Each class leaves the given part of what higher classes request alone, used or not.
    """
    percent = settings.qos_reserved_memory_percent
    allocatable = settings.node_allocatable.get(MEMORY)
    if percent is None or not allocatable:
        return None, None
    burstable = allocatable.value - requests.guaranteed_memory_bytes * percent // 100
    best_effort = burstable - requests.burstable_memory_bytes * percent // 100
    return _ceiling(burstable), _ceiling(best_effort)


def _ceiling(limit_bytes: int) -> Value:
    return Value(limit_bytes, ValueReason(Rule.QOS_RESERVED, Quantity.of_units(max(0, limit_bytes), "BinarySI")))


def _protected(requested_bytes: int, settings: CgroupSettings, profile: Profile) -> Value | None:
    if memory_qos(settings) is None or (not profile.memory_reservation_policy and not requested_bytes):
        return None
    if not protects_requests(settings, profile):
        return Value(0, ValueReason(Rule.NO_RESERVATION))
    return Value(requested_bytes, ValueReason(Rule.PROTECTED_REQUESTS, Quantity.of_units(requested_bytes, "BinarySI")))


def _unbounded_hugepages(settings: CgroupSettings) -> tuple[HugepageLimit, ...]:
    unbounded = Value(_UNBOUNDED_BYTES, ValueReason(Rule.UNBOUNDED))
    return tuple(HugepageLimit(size, unbounded) for size in sorted(settings.hugepage_sizes_bytes))
