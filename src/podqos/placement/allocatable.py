"""Node allocatable: how much of a node's capacity pods may request, and what is reserved.

Three amounts are easily confused. *Capacity* is the machine. *Allocatable*, which the scheduler fills, is capacity less
what is reserved for the kubelet and the system and less the hard eviction thresholds. *Enforced* is the limit of the
cgroup that holds all pods: it leaves the thresholds out, because eviction must happen before the kernel steps in.

Source: Kubernetes v1.36 pkg/kubelet/cm/node_container_manager_linux.go, pkg/kubelet/nodestatus/setters.go
(MachineInfo). ``eviction`` parses thresholds; here only their amounts count.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.errors import InvalidConfiguration
from podqos.eviction.signals import Signal
from podqos.eviction.thresholds import Threshold, check_settings, parse_thresholds
from podqos.model.go_text import parse_duration_ns
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import PODS
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import EPHEMERAL_STORAGE, MEMORY, ResourceList, is_hugepages
from podqos.model.time_units import MICROSECOND_NS
from podqos.naming import hint, naming
from podqos.qos.cgroup_settings import CgroupDriver, CgroupSettings, CgroupVersion, MemoryQoS, SwapBehavior

# The only two signals whose thresholds are withheld from scheduling, and of what they are thresholds.
_RESERVING_SIGNALS = {Signal.MEMORY: MEMORY, Signal.NODEFS: EPHEMERAL_STORAGE}


class Division(Struct, frozen=True, gc=False, rename="camel"):
    """The calculation of allocatable for one resource: the first amount less all others, never below zero."""

    resource: str
    capacity: Quantity
    kube_reserved: Quantity
    system_reserved: Quantity
    hard_eviction: Quantity
    hugepages: Quantity
    """For memory: what the kernel has set aside."""
    allocatable: Quantity


class SoftCoverage(Struct, frozen=True, gc=False, rename="camel"):
    """Whether pods within their allocatable stay clear of a soft threshold.

    Pods can use capacity − soft − what the daemons use before the threshold is met. If that is less than allocatable,
    pods the scheduler was right to place are evicted. OKD's advice is to add the soft threshold to system-reserved;
    where that was done, the daemons use what is left of the reservation.
    """

    resource: str
    capacity: Quantity
    reserved: Quantity
    hard: Quantity
    soft: Quantity
    allocatable: Quantity
    usable_before_soft: Quantity
    used_by_daemons: Quantity

    @property
    def is_covered(self) -> bool:
        """Whether pods reach allocatable before the soft threshold."""
        return self.usable_before_soft >= self.allocatable


class Allocatable(Struct, frozen=True):
    """A node's resources, divided."""

    capacity: ResourceList
    allocatable: ResourceList
    reservation: ResourceList
    """What is withheld from scheduling: both reservations and the hard thresholds; nothing where it is zero."""
    enforced: ResourceList
    """The limit of the cgroup of all pods: capacity less both reservations."""
    over_reserved: tuple[str, ...]
    """Resources of which more is withheld than there is; with any, the kubelet does not start."""
    soft_coverage: tuple[SoftCoverage, ...]
    divisions: tuple[Division, ...] = ()
    """The calculation of each allocatable amount, except the number of pods."""


def node_allocatable(capacity: ResourceList, config: KubeletConfiguration) -> Allocatable:
    """Divide ``capacity`` as a kubelet with this configuration does. Never below zero."""
    kube, system = config.reserved_for_kube, config.reserved_for_system
    hard = _amounts(_hard_thresholds(config), capacity)
    withheld = {name: ZERO + _of(system, name) + _of(kube, name) + _of(hard, name) for name in capacity}
    reservation = {name: amount for name, amount in withheld.items() if amount}
    reported = _reported(capacity, config)
    allocatable = {name: _less(amount, _of(reservation, name)) for name, amount in reported.items()}
    if MEMORY in allocatable:
        allocatable[MEMORY] = _without_hugepages(allocatable[MEMORY], capacity)
    enforced = {name: _at_least_zero(amount - _of(system, name) - _of(kube, name)) for name, amount in capacity.items()}
    return Allocatable(
        capacity=reported,
        allocatable=allocatable,
        reservation=reservation,
        enforced=enforced,
        over_reserved=tuple(sorted(name for name, amount in reservation.items() if amount > capacity[name])),
        soft_coverage=_soft_coverage(capacity, allocatable, config),
        divisions=tuple(
            Division(
                resource=name,
                capacity=amount,
                kube_reserved=_of(kube, name),
                system_reserved=_of(system, name),
                hard_eviction=_of(hard, name),
                hugepages=_hugepages(capacity) if name == MEMORY else ZERO,
                allocatable=allocatable[name],
            )
            for name, amount in reported.items()
            if name != PODS
        ),
    )


def _hard_thresholds(config: KubeletConfiguration) -> tuple[Threshold, ...]:
    """Return those of ``evictionHard`` alone: a soft one without grace acts at once, too, but withholds nothing."""
    settings = KubeletConfiguration(
        eviction_hard=config.eviction_hard, merge_default_eviction_settings=config.merge_default_eviction_settings
    )
    return parse_thresholds(settings)


def _soft_thresholds(config: KubeletConfiguration) -> tuple[Threshold, ...]:
    settings = KubeletConfiguration(
        eviction_hard={},
        eviction_soft=config.eviction_soft,
        eviction_soft_grace_period=config.eviction_soft_grace_period,
    )
    return parse_thresholds(settings)


def _amounts(thresholds: tuple[Threshold, ...], capacity: ResourceList) -> ResourceList:
    """Return thresholds as amounts of their resource, if they have one."""
    return {
        resource: threshold.amount(_of(capacity, resource).value)
        for threshold in thresholds
        if (resource := _RESERVING_SIGNALS.get(threshold.signal)) is not None
    }


def _reported(capacity: ResourceList, config: KubeletConfiguration) -> ResourceList:
    """Return the capacity as the node's status states it: memory in binary units, and a number of pods."""
    reported = {name: amount for name, amount in capacity.items() if name != PODS}
    if MEMORY in reported:
        reported[MEMORY] = Quantity.of_units(reported[MEMORY].value, "BinarySI")
    return {**reported, PODS: Quantity.of_units(_pod_count(capacity, config))}


def _pod_count(capacity: ResourceList, config: KubeletConfiguration) -> int:
    if not config.pods_per_core:
        return config.max_pods
    return min(capacity.get("cpu", ZERO).value * config.pods_per_core, config.max_pods)


def _without_hugepages(memory: Quantity, capacity: ResourceList) -> Quantity:
    """Take every huge page out of ``memory``: the kernel has set it aside already."""
    for name in sorted(capacity):
        if is_hugepages(name):
            memory = _less(memory, capacity[name])
    return memory


def _hugepages(capacity: ResourceList) -> Quantity:
    return sum((amount for name, amount in capacity.items() if is_hugepages(name)), start=ZERO)


def _soft_coverage(
    capacity: ResourceList, allocatable: ResourceList, config: KubeletConfiguration
) -> tuple[SoftCoverage, ...]:
    hard = _amounts(_hard_thresholds(config), capacity)
    coverage = []
    for resource, soft in _amounts(_soft_thresholds(config), capacity).items():
        if resource not in capacity:
            continue
        system = _of(config.reserved_for_system, resource)
        reserved = _of(config.reserved_for_kube, resource) + system
        used_by_daemons = reserved - soft if system >= soft else reserved
        coverage.append(
            SoftCoverage(
                resource=resource,
                capacity=capacity[resource],
                reserved=reserved,
                hard=_of(hard, resource),
                soft=soft,
                allocatable=allocatable[resource],
                usable_before_soft=_at_least_zero(capacity[resource] - soft - used_by_daemons),
                used_by_daemons=used_by_daemons,
            )
        )
    return tuple(coverage)


def _of(amounts: ResourceList, name: str) -> Quantity:
    return amounts.get(name, ZERO)


def _less(amount: Quantity, taken: Quantity) -> Quantity:
    return _at_least_zero(amount - taken) if taken else amount


def _at_least_zero(amount: Quantity) -> Quantity:
    return amount if amount.sign >= 0 else ZERO


# The default of older versions, which may stay in their files.
_FORMER_THROTTLING_FACTOR = 0.9


def check_starts(
    config: KubeletConfiguration, capacity: ResourceList, *, swap_bytes: int = 0, profile: Profile = LATEST
) -> None:
    """Raise ``InvalidConfiguration`` where the kubelet does not start with these settings on such a node."""
    needs_memory_qos = config.memory_throttling_factor not in (None, _FORMER_THROTTLING_FACTOR)
    if profile.memory_qos == "beta" and needs_memory_qos and not config.has_memory_qos(profile):
        what = "is set, but featureGates turns MemoryQoS off: the kubelet does not start"
        raise InvalidConfiguration(what, where="memoryThrottlingFactor", fix="remove it, or turn MemoryQoS on")
    check_settings(config, profile)
    if swap_bytes and config.fail_swap_on:
        what = "is true, but the node has swap: the kubelet does not start"
        raise InvalidConfiguration(what, where="failSwapOn", fix="write failSwapOn: false")
    divided(capacity, config)


def divided(capacity: ResourceList, config: KubeletConfiguration) -> Allocatable:
    """Divide a node as this kubelet does; it must not reserve more than there is."""
    allocatable = node_allocatable(capacity, config)
    for resource in allocatable.over_reserved:
        withheld, there = allocatable.reservation[resource], capacity[resource]
        what = too_much_withheld(resource, str(withheld), str(there))
        fix = "reserve less" + hint(", or describe the node as it is, for example " + naming("node_memory"))
        raise InvalidConfiguration(what, fix=fix)
    return allocatable


def too_much_withheld(resource: str, withheld: str, there: str) -> str:
    """Return the error of a kubelet that withholds more from pods than its node has."""
    return f"{withheld} of {resource} is withheld from pods, but the node has only {there}: the kubelet does not start"


def cgroup_settings(
    config: KubeletConfiguration,
    capacity: ResourceList,
    *,
    swap_bytes: int = 0,
    cgroup_version: CgroupVersion = CgroupVersion.V2,
    profile: Profile = LATEST,
) -> CgroupSettings:
    """Return the settings of a node with this capacity, of which memory must be known.

    A driver that the file does not state is systemd: the kubelet asks the runtime (1.34), and that is the usual answer.
    """
    enforced = node_allocatable(capacity, config).enforced
    return CgroupSettings(
        node_memory_bytes=capacity[MEMORY].value,
        node_swap_bytes=swap_bytes,
        node_capacity=capacity,
        node_allocatable=enforced,
        enforce_node_allocatable="pods" in config.enforce_node_allocatable,
        cgroup_version=cgroup_version,
        cgroup_driver=CgroupDriver(config.cgroup_driver or CgroupDriver.SYSTEMD),
        cgroup_root=config.cgroup_root or "/",
        cgroups_per_qos=config.cgroups_per_qos,
        cpu_cfs_quota=config.cpu_cfs_quota,
        cpu_cfs_period_us=parse_duration_ns(config.cpu_cfs_quota_period) // MICROSECOND_NS,
        static_cpu_manager=config.cpu_manager_policy == "static",
        exclusive_cpu_quota=config.has_exclusive_cpu_quota(profile),
        pod_pids_limit=config.pod_pids_limit if config.pod_pids_limit > 0 else None,
        single_process_oom_kill=bool(config.single_process_oom_kill),
        memory_qos=_memory_qos(config, enforced, profile),
        qos_reserved_memory_percent=config.qos_reserved_memory_percent(profile),
        swap_behavior=SwapBehavior(config.memory_swap.swap_behavior or SwapBehavior.NO_SWAP),
    )


def _memory_qos(config: KubeletConfiguration, enforced: ResourceList, profile: Profile) -> MemoryQoS | None:
    if not config.has_memory_qos(profile):
        return None
    factor = config.memory_throttling_factor
    tiered = config.memory_reservation_policy == "TieredReservation"
    return MemoryQoS(
        throttling_factor=profile.memory_throttling_factor if factor is None else factor,
        reservation_policy="TieredReservation" if tiered else "None",
        # The kubelet takes the allocatable that it enforces here, which leaves eviction thresholds out.
        node_allocatable_bytes=enforced[MEMORY].value,
    )
