"""What the kubelet asks for one pod and each of its containers, before anything is a file.

A value carries why it is what it is, also where nothing is set: "no memory limit, because container b has none" is
the answer most people look for. The same values serve both cgroup versions; ``cgroup_files`` writes them down.

Sources: Kubernetes v1.36 pkg/kubelet/cm/helpers_linux.go (pods), pkg/kubelet/kuberuntime/
kuberuntime_container_linux.go (containers); KEP-2570 for MemoryQoS, KEP-2400 for swap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from podqos.errors import InvalidQuantity
from podqos.model.effective import pod_level_is_set, pod_limits, pod_requests
from podqos.model.pod import Container, Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import CPU, HUGEPAGES_PREFIX, MEMORY, ResourceList, is_hugepages
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion, MemoryQoS, SwapBehavior
from podqos.qos.classes import qos_class_of
from podqos.qos.cpu import MIN_SHARES, quota_from_milli, shares_from_milli

_PAGE_BYTES = 4096
_LARGEST_BYTES = 2**63 - 1


class Rule(StrEnum):
    """Which rule gave a value, or left it out."""

    REQUEST = "Request"
    """The container's own request."""
    LIMIT = "Limit"
    """The container's own limit."""
    LIMIT_AS_REQUEST = "LimitAsRequest"
    """No cpu request, so the cpu limit takes its place."""
    POD_LEVEL_LIMIT = "PodLevelLimit"
    """The container has no limit of its own and inherits the pod's."""
    POD_REQUEST = "PodRequest"
    """The pod's effective request: containers, sidecars, the largest start, pod-level amounts, overhead."""
    POD_LIMIT = "PodLimit"
    """The pod's effective limit."""
    NO_REQUEST = "NoRequest"
    """Nothing is requested."""
    NO_LIMIT = "NoLimit"
    """The containers named have no limit, and the pod has none of its own."""
    BEST_EFFORT = "BestEffort"
    """BestEffort pods get the least cpu share and no limits."""
    QUOTA_DISABLED = "QuotaDisabled"
    """``cpuCFSQuota: false``: cpu limits are not enforced."""
    EXCLUSIVE_CPUS = "ExclusiveCPUs"
    """``cpuManagerPolicy: static``: the CPUs are the container's own, and no quota holds it back on them."""

    POD_PIDS_LIMIT = "PodPidsLimit"
    """``podPidsLimit`` of the kubelet."""
    NOT_REQUESTED_SIZE = "NotRequestedSize"
    """A huge page size of the machine that is not asked for is limited to nothing."""
    UNBOUNDED = "Unbounded"
    """Set to a number no machine reaches: the levels below decide."""

    OOM_GROUP = "OOMGroup"
    """The container dies as a whole (1.28, unless ``singleProcessOOMKill``)."""
    RESERVATION = "Reservation"
    """MemoryQoS, TieredReservation (up to 1.35 always): the request is protected from reclaim."""
    NO_RESERVATION = "NoReservation"
    """MemoryQoS without anything to protect: written as 0, so that no older value stays."""
    THROTTLING = "Throttling"
    """MemoryQoS: request + factor × (limit − request), in whole pages."""
    THROTTLING_POD = "ThrottlingPod"
    """The same with the request and limit of the pod as a whole (1.37)."""
    THROTTLING_ALLOCATABLE = "ThrottlingAllocatable"
    """The same with the node's allocatable memory in place of a limit."""

    NO_SWAP = "NoSwap"
    """``swapBehavior`` is NoSwap or not set, or the node has cgroup v1."""
    SWAP_SHARE = "SwapShare"
    """LimitedSwap: the node's swap × request / node memory."""
    SWAP_NOT_BURSTABLE = "SwapNotBurstable"
    """LimitedSwap is for Burstable pods only."""
    SWAP_CRITICAL = "SwapCritical"
    """Critical pods do not swap."""
    SWAP_NO_REQUEST = "SwapNoRequest"
    """A container without a memory request and limit does not swap."""
    SWAP_FIXED = "SwapFixed"
    """A container whose memory request equals its limit does not swap."""
    SWAP_REQUEST_TOO_LARGE = "SwapRequestTooLarge"
    """A container that requests more than the node has does not swap."""

    NODE_ALLOCATABLE = "NodeAllocatable"
    """What is left for pods after ``kubeReserved`` and ``systemReserved``."""
    NODE_CAPACITY = "NodeCapacity"
    """The whole node: ``enforceNodeAllocatable`` lacks ``pods``."""
    TIER_REQUESTS = "TierRequests"
    """The requests of all pods of the class."""
    TIER_LEAST = "TierLeast"
    """All BestEffort pods together have the least share."""
    PROTECTED_REQUESTS = "ProtectedRequests"
    """MemoryQoS: an ancestor must protect what its pods protect."""
    QOS_RESERVED = "QOSReserved"
    """Allocatable less the percentage of what the higher classes request."""

    SANDBOX = "Sandbox"
    """The runtime's own value for the process that holds the pod's namespaces; the kubelet sets none."""


class ValueReason(Struct, frozen=True, gc=False):
    """Why a value is what it is."""

    rule: Rule
    amount: Quantity | None = None
    """The request, limit or sum the value was computed from."""
    containers: tuple[str, ...] = ()
    """The containers that lack a limit."""
    clamped: bool = False
    """Whether the kernel's smallest or largest value was used instead of the computed one."""


class Value(Struct, frozen=True, gc=False):
    """A number for a cgroup file; None leaves the file as the kernel made it, which is "no limit"."""

    amount: int | None
    because: ValueReason


class HugepageLimit(Struct, frozen=True, gc=False):
    """How many bytes of huge pages of one size may be used."""

    page_size_bytes: int
    limit_bytes: Value


class CpuValues(Struct, frozen=True, gc=False):
    """What is decided about the CPU of one cgroup."""

    shares: Value
    quota_us: Value
    period_us: int | None


class CgroupValues(Struct, frozen=True, gc=False, kw_only=True):
    """What is decided for one cgroup. A field that is None is no business of that level."""

    cpu_shares: Value | None = None
    cpu_quota_us: Value | None = None
    cpu_period_us: int | None = None
    exclusive_cpus: Value | None = None
    """How many CPUs are the container's own; which ones, the CPU manager picks when the pod is admitted."""
    memory_limit_bytes: Value | None = None
    memory_swap_bytes: Value | None = None
    """Swap on top of memory."""
    memory_min_bytes: Value | None = None
    memory_low_bytes: Value | None = None
    memory_high_bytes: Value | None = None
    memory_oom_group: Value | None = None
    pids_limit: Value | None = None
    hugepage_limits: tuple[HugepageLimit, ...] = ()


def pod_values(pod: Pod, qos_class: QOSClass, settings: CgroupSettings, profile: Profile = LATEST) -> CgroupValues:
    """Return what the kubelet sets for the pod as a whole."""
    requests = pod_requests(pod, pod_level=profile.pod_level_resources)
    cpu = pod_cpu(pod, requests, qos_class, settings, profile)
    protection = _protection(requests.get(MEMORY, ZERO), settings, profile)
    never_reclaimed = qos_class is QOSClass.GUARANTEED or not profile.memory_reservation_policy
    return CgroupValues(
        cpu_shares=cpu.shares,
        cpu_quota_us=cpu.quota_us,
        cpu_period_us=cpu.period_us,
        memory_limit_bytes=_limit_value(_pod_limit(pod, MEMORY, qos_class, profile)),
        memory_min_bytes=protection if never_reclaimed else None,
        memory_low_bytes=None if never_reclaimed else protection,
        memory_high_bytes=_pod_memory_high(pod, requests, settings, profile),
        pids_limit=_pids_limit(settings),
        hugepage_limits=hugepage_limits(requests, Rule.POD_REQUEST, settings.hugepage_sizes_bytes),
    )


def container_values(
    pod: Pod, container: Container, qos_class: QOSClass, settings: CgroupSettings, profile: Profile = LATEST
) -> CgroupValues:
    """Return what the kubelet asks the runtime to set for one container."""
    cpu = container_cpu(pod, container, qos_class, settings, profile)
    own_cpus = exclusive_cpus(pod, container, qos_class, settings, profile)
    memory_limit = _container_limit(pod, container, MEMORY, profile)
    memory_min, memory_low = _container_protection(container, qos_class, settings, profile)
    return CgroupValues(
        cpu_shares=cpu.shares,
        cpu_quota_us=cpu.quota_us,
        cpu_period_us=cpu.period_us,
        exclusive_cpus=Value(own_cpus, ValueReason(Rule.EXCLUSIVE_CPUS)) if own_cpus else None,
        memory_limit_bytes=_limit_value(memory_limit),
        memory_swap_bytes=_swap(pod, container, qos_class, settings),
        memory_min_bytes=memory_min,
        memory_low_bytes=memory_low,
        memory_high_bytes=_memory_high(pod, container, settings, profile),
        memory_oom_group=_oom_group(settings, profile),
        hugepage_limits=hugepage_limits(container.resources.limits, Rule.LIMIT, settings.hugepage_sizes_bytes),
    )


def memory_limits(pod: Pod, profile: Profile = LATEST) -> dict[str, int]:
    """Return the memory limits of the containers that run, by name, and of the pod as a whole, by the empty text."""
    limits = {each.name: _container_limit(pod, each, MEMORY, profile) for each in pod.running_containers}
    limits[""] = _pod_limit(pod, MEMORY, qos_class_of(pod, profile), profile)
    return {name: limit.amount.value for name, limit in limits.items() if limit.amount}


def pod_cpu(
    pod: Pod, requests: ResourceList, qos_class: QOSClass, settings: CgroupSettings, profile: Profile = LATEST
) -> CpuValues:
    """Return the part of ``pod_values`` about CPU; ``requests`` are the pod's effective ones."""
    limit = _pod_limit(pod, CPU, qos_class, profile)
    period_us = settings.cpu_cfs_period_us if limit.amount is not None else None
    own = settings.static_cpu_manager and any(
        exclusive_cpus(pod, container, qos_class, settings, profile)
        for container in (*pod.spec.containers, *pod.spec.init_containers)
    )
    return CpuValues(_pod_shares(requests, qos_class), _quota(limit, settings, has_own_cpus=own), period_us)


def container_cpu(
    pod: Pod, container: Container, qos_class: QOSClass, settings: CgroupSettings, profile: Profile = LATEST
) -> CpuValues:
    """Return the part of ``container_values`` about CPU."""
    limit = _container_limit(pod, container, CPU, profile)
    period_us = settings.cpu_cfs_period_us if settings.cpu_cfs_quota else None
    own = bool(exclusive_cpus(pod, container, qos_class, settings, profile))
    return CpuValues(_container_shares(container, limit), _quota(limit, settings, has_own_cpus=own), period_us)


def exclusive_cpus(
    pod: Pod, container: Container, qos_class: QOSClass, settings: CgroupSettings, profile: Profile = LATEST
) -> int:
    """Return how many CPUs a static CPU manager gives a container alone: all of a whole request, or none.

    Only in Guaranteed pods, and in none whose resources are stated for the pod. An ephemeral container has no request.
    Source: Kubernetes v1.36 pkg/kubelet/cm/cpumanager/policy_static.go.
    """
    if not settings.static_cpu_manager or qos_class is not QOSClass.GUARANTEED:
        return 0
    return 0 if profile.pod_level_resources and pod_level_is_set(pod) else whole_cpus(container)


def whole_cpus(container: Container) -> int:
    """Return how many CPUs a container requests, 0 where that is not a whole number."""
    milli = container.resources.requests.get(CPU, ZERO).milli_value
    return 0 if milli % 1000 else milli // 1000


def hugepage_limits(amounts: ResourceList, rule: Rule, sizes_bytes: tuple[int, ...]) -> tuple[HugepageLimit, ...]:
    """Return the limit of every huge page size that is asked for or that the machine has, by size."""
    asked: dict[int, Quantity] = {}
    for name, amount in amounts.items():
        size_bytes = _hugepage_size_bytes(name)
        if size_bytes is not None:
            asked[size_bytes] = asked.get(size_bytes, ZERO) + amount
    nothing = Value(0, ValueReason(Rule.NOT_REQUESTED_SIZE))
    return tuple(
        HugepageLimit(size, Value(asked[size].value, ValueReason(rule, asked[size])) if size in asked else nothing)
        for size in sorted({*asked, *sizes_bytes})
    )


def shares_value(rule: Rule, cpu_milli: int, amount: Quantity | None) -> Value:
    """Return shares with the request behind them."""
    shares = shares_from_milli(cpu_milli)
    return Value(shares, ValueReason(rule, amount, clamped=shares != cpu_milli * 1024 // 1000))


def memory_qos(settings: CgroupSettings) -> MemoryQoS | None:
    """Return the MemoryQoS settings where they take effect, which is on cgroup v2 only."""
    return settings.memory_qos if settings.cgroup_version is CgroupVersion.V2 else None


def _pod_shares(requests: ResourceList, qos_class: QOSClass) -> Value:
    if qos_class is QOSClass.BEST_EFFORT:
        return Value(MIN_SHARES, ValueReason(Rule.BEST_EFFORT))
    request = requests.get(CPU)
    if not request:
        return Value(MIN_SHARES, ValueReason(Rule.NO_REQUEST))
    return shares_value(Rule.POD_REQUEST, request.milli_value, request)


def _pod_limit(pod: Pod, resource: str, qos_class: QOSClass, profile: Profile) -> ValueReason:
    """Return the pod's limit, or why it has none.

    A Burstable pod is limited only if all its containers are: one that is not may use what the node has.
    """
    if qos_class is QOSClass.BEST_EFFORT:
        return ValueReason(Rule.BEST_EFFORT)
    if qos_class is QOSClass.BURSTABLE:
        lacking = tuple(_containers_without_limit(pod, resource, profile))
        if lacking:
            return ValueReason(Rule.NO_LIMIT, containers=lacking)
    limits = pod_limits(pod, pod_level=profile.pod_level_resources)
    return ValueReason(Rule.POD_LIMIT, limits.get(resource, ZERO))


def _containers_without_limit(pod: Pod, resource: str, profile: Profile) -> Iterator[str]:
    """Yield the containers that leave the pod unlimited.

    Up to 1.36 an init container counts together with the sidecars that run beside it, as upstream's walk over them did.
    """
    if _pod_level_limit(pod, resource, profile):
        return
    for container in pod.spec.containers:
        if not container.resources.limits.get(resource):
            yield container.name
    sidecars = 0
    for container in pod.spec.init_containers:
        own = container.resources.limits.get(resource, ZERO).nanos
        if not own + sidecars:
            yield container.name
        if container.is_sidecar and profile.init_limits_with_sidecars:
            sidecars += own


def _pod_level_limit(pod: Pod, resource: str, profile: Profile) -> Quantity | None:
    if not profile.pod_level_resources or pod.spec.resources is None or not pod_level_is_set(pod):
        return None
    return pod.spec.resources.limits.get(resource)


def _container_limit(pod: Pod, container: Container, resource: str, profile: Profile) -> ValueReason:
    own = container.resources.limits.get(resource)
    if own:
        return ValueReason(Rule.LIMIT, own)
    inherited = _pod_level_limit(pod, resource, profile)
    if inherited:
        return ValueReason(Rule.POD_LEVEL_LIMIT, inherited)
    return ValueReason(Rule.NO_LIMIT, containers=(container.name,))


def _limit_value(limit: ValueReason) -> Value:
    # A limit of 0 is written nowhere: to the runtimes, 0 means "not set".
    return Value(limit.amount.value or None if limit.amount is not None else None, limit)


def _quota(limit: ValueReason, settings: CgroupSettings, *, has_own_cpus: bool) -> Value:
    if limit.amount is None:
        return Value(None, limit)
    if not settings.cpu_cfs_quota:
        return Value(None, ValueReason(Rule.QUOTA_DISABLED, limit.amount))
    if has_own_cpus and not settings.exclusive_cpu_quota:
        return Value(None, ValueReason(Rule.EXCLUSIVE_CPUS, limit.amount))
    period_us = settings.cpu_cfs_period_us
    quota_us = quota_from_milli(limit.amount.milli_value, period_us)
    clamped = quota_us is not None and quota_us > limit.amount.milli_value * period_us // 1000
    return Value(quota_us, ValueReason(limit.rule, limit.amount, clamped=clamped))


def _container_shares(container: Container, cpu_limit: ValueReason) -> Value:
    """Return the shares of the request; one that is absent follows the limit, an explicit 0 does not."""
    request = container.resources.requests.get(CPU)
    if request is None and cpu_limit.amount is not None:
        return shares_value(Rule.LIMIT_AS_REQUEST, cpu_limit.amount.milli_value, cpu_limit.amount)
    if not request:
        return Value(MIN_SHARES, ValueReason(Rule.NO_REQUEST))
    return shares_value(Rule.REQUEST, request.milli_value, request)


def _pids_limit(settings: CgroupSettings) -> Value | None:
    limit = settings.pod_pids_limit
    return Value(limit, ValueReason(Rule.POD_PIDS_LIMIT)) if limit is not None and limit > 0 else None


def _oom_group(settings: CgroupSettings, profile: Profile) -> Value | None:
    if settings.cgroup_version is CgroupVersion.V1 or not profile.memory_oom_group:
        return None
    single = settings.single_process_oom_kill and profile.single_process_oom_kill
    return None if single else Value(1, ValueReason(Rule.OOM_GROUP))


def protects_requests(settings: CgroupSettings, profile: Profile) -> bool:
    """Whether MemoryQoS keeps what is requested from being reclaimed: up to 1.35 always, since then if asked to."""
    memory = memory_qos(settings)
    if memory is None:
        return False
    return not profile.memory_reservation_policy or memory.reservation_policy == "TieredReservation"


def _protection(request: Quantity, settings: CgroupSettings, profile: Profile) -> Value | None:
    """Return the request as protected memory: ``memory.min`` of a Guaranteed pod, ``memory.low`` of any other."""
    if not protects_requests(settings, profile) or request.value <= 0:
        return None
    return Value(request.value, ValueReason(Rule.RESERVATION, request))


def _container_protection(
    container: Container, qos_class: QOSClass, settings: CgroupSettings, profile: Profile
) -> tuple[Value | None, Value | None]:
    """Return ``memory.min`` and ``memory.low``; where nothing is protected both are reset."""
    if memory_qos(settings) is None:
        return None, None
    protected = _protection(container.resources.requests.get(MEMORY, ZERO), settings, profile)
    if not profile.memory_reservation_policy:
        return protected, None
    if protected is None:
        nothing = Value(0, ValueReason(Rule.NO_RESERVATION))
        return nothing, nothing
    return (protected, None) if qos_class is QOSClass.GUARANTEED else (None, protected)


def _memory_high(pod: Pod, container: Container, settings: CgroupSettings, profile: Profile) -> Value | None:
    """Return where the kernel begins to slow the container; only its own request and limit count.

    Nothing is set where request and limit agree (since 1.37 two zeros do not), where the threshold would not be above
    the request, or, since 1.37, where the container has no limit and its pod has one: that slows the pod as a whole.
    """
    memory = memory_qos(settings)
    if memory is None or memory.throttling_factor is None:
        return None
    request = container.resources.requests.get(MEMORY, ZERO)
    limit = container.resources.limits.get(MEMORY, ZERO)
    if profile.memory_high_of_pods:
        is_fixed = request.value == limit.value != 0
        if not limit.value and _pod_level_limit(pod, MEMORY, profile):
            return None
    else:
        is_fixed = request.value == limit.value and profile.memory_high_above_request
    if is_fixed:
        return None
    ceiling, because = limit.value, ValueReason(Rule.THROTTLING, limit)
    if not limit.value:
        ceiling, because = memory.node_allocatable_bytes, ValueReason(Rule.THROTTLING_ALLOCATABLE)
    high_bytes = _threshold(request.value, ceiling, memory.throttling_factor, profile)
    return Value(high_bytes, because) if ceiling and high_bytes > request.value else None


def _pod_memory_high(pod: Pod, requests: ResourceList, settings: CgroupSettings, profile: Profile) -> Value | None:
    """Return where the kernel begins to slow a pod with pod-level resources and a limit, as a whole."""
    memory = memory_qos(settings)
    if memory is None or memory.throttling_factor is None or not profile.memory_high_of_pods:
        return None
    if not pod_level_is_set(pod) or any(_containers_without_limit(pod, MEMORY, profile)):
        return None
    request = requests.get(MEMORY, ZERO)
    limit = pod_limits(pod).get(MEMORY, ZERO)
    if not limit.value or request.value == limit.value:
        return None
    high_bytes = _threshold(request.value, limit.value, memory.throttling_factor, profile)
    return Value(high_bytes, ValueReason(Rule.THROTTLING_POD, limit)) if high_bytes > request.value else None


def _threshold(request_bytes: int, ceiling_bytes: int, factor: float, profile: Profile) -> int:
    # In floating point and in this order, because the value has to be upstream's to the page.
    low, high = float(min(request_bytes, _LARGEST_BYTES)), float(min(ceiling_bytes, _LARGEST_BYTES))
    if not profile.memory_high_above_request:
        return int(high * factor)
    return int(math.floor(low + (high - low) * factor) / _PAGE_BYTES) * _PAGE_BYTES


def _swap(pod: Pod, container: Container, qos_class: QOSClass, settings: CgroupSettings) -> Value | None:
    if not settings.swap_controller:
        return None
    request = container.resources.requests.get(MEMORY, ZERO)
    refusal = _swap_refusal(pod, container, qos_class, settings)
    if refusal is not None:
        return Value(0, ValueReason(refusal))
    share = int(float(request.value) / float(settings.node_memory_bytes) * float(settings.node_swap_bytes))
    return Value(share, ValueReason(Rule.SWAP_SHARE, request))


def _swap_refusal(pod: Pod, container: Container, qos_class: QOSClass, settings: CgroupSettings) -> Rule | None:
    request = container.resources.requests.get(MEMORY, ZERO)
    limit = container.resources.limits.get(MEMORY, ZERO)
    if settings.swap_behavior is SwapBehavior.NO_SWAP or settings.cgroup_version is CgroupVersion.V1:
        return Rule.NO_SWAP
    if pod.is_critical:
        return Rule.SWAP_CRITICAL
    if qos_class is not QOSClass.BURSTABLE:
        return Rule.SWAP_NOT_BURSTABLE
    if not request and not limit:
        return Rule.SWAP_NO_REQUEST
    if request == limit:
        return Rule.SWAP_FIXED
    if request.value > settings.node_memory_bytes or settings.node_memory_bytes <= 0:
        return Rule.SWAP_REQUEST_TOO_LARGE
    return None


def _hugepage_size_bytes(name: str) -> int | None:
    if not is_hugepages(name):
        return None
    try:
        return Quantity.parse(name.removeprefix(HUGEPAGES_PREFIX)).value
    except InvalidQuantity:
        return None
