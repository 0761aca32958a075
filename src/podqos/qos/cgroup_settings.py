"""Everything about a node that decides where a pod's cgroups are and what is written into them.

One frozen value in the words of ``KubeletConfiguration`` where it has one; the rest is the machine's (cgroup version,
memory) and the container runtime's. Defaults are those of a stock node: cgroup v2, systemd, containerd.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, ResourceList
from podqos.qos.cpu import DEFAULT_PERIOD_US, WeightConversion

if TYPE_CHECKING:
    from fractions import Fraction


class CgroupVersion(StrEnum):
    """Which hierarchy the kernel offers."""

    V1 = "v1"
    V2 = "v2"


class CgroupDriver(StrEnum):
    """Who makes the directories (``cgroupDriver``)."""

    SYSTEMD = "systemd"
    CGROUPFS = "cgroupfs"


class Runtime(StrEnum):
    """The container runtime behind the kubelet. ``docker`` is Docker Engine behind cri-dockerd."""

    CONTAINERD = "containerd"
    CRIO = "cri-o"
    DOCKER = "docker"


class SwapBehavior(StrEnum):
    """``memorySwap.swapBehavior``; unset means NoSwap."""

    NO_SWAP = "NoSwap"
    LIMITED_SWAP = "LimitedSwap"


class MemoryQoS(Struct, frozen=True, gc=False):
    """The MemoryQoS feature (KEP-2570; off by default up to 1.36; cgroup v2 only)."""

    throttling_factor: float | None = 0.9
    """``memoryThrottlingFactor``: where between request and limit ``memory.high`` begins to slow a container; without
    one, which is the default since 1.37, nothing does."""
    reservation_policy: Literal["None", "TieredReservation"] = "None"
    """``memoryReservationPolicy``: whether requests are kept from being reclaimed. Up to 1.35 they all are."""
    node_allocatable_bytes: int = 0
    """Stands in for the limit of a container without one; 0 means not known, and no ``memory.high`` is set then."""


class CgroupSettings(Struct, frozen=True, kw_only=True):
    """One node, as far as cgroups are concerned."""

    node_memory_bytes: int
    node_swap_bytes: int = 0
    node_capacity: ResourceList = {}
    node_allocatable: ResourceList = {}
    """Capacity less what is reserved for the system, but not less eviction thresholds. The resource ``pid`` is the
    number of processes."""
    enforce_node_allocatable: bool = True
    """Whether ``enforceNodeAllocatable`` has ``pods``: then pods share the allocatable, otherwise the capacity."""
    hugepage_sizes_bytes: tuple[int, ...] = ()
    """The huge page sizes of the machine: what a pod does not ask for is limited to 0."""

    cgroup_version: CgroupVersion = CgroupVersion.V2
    cgroup_driver: CgroupDriver = CgroupDriver.SYSTEMD
    cgroup_root: str = "/"
    cgroups_per_qos: bool = True
    runtime: Runtime = Runtime.CONTAINERD
    weight_conversion: WeightConversion = "quadratic"
    """How the runtime converts a container's shares; the kubelet's own cgroups are always converted linearly."""

    cpu_cfs_quota: bool = True
    cpu_cfs_period_us: int = DEFAULT_PERIOD_US
    static_cpu_manager: bool = False
    """``cpuManagerPolicy: static``: whole CPUs that a Guaranteed container requests are its own."""
    exclusive_cpu_quota: bool = False
    """Whether a container with CPUs of its own has a quota as well: up to 1.32, and since then without the feature
    gate DisableCPUQuotaWithExclusiveCPUs."""
    pod_pids_limit: int | None = None
    single_process_oom_kill: bool = False
    memory_qos: MemoryQoS | None = None
    qos_reserved_memory_percent: int | None = None
    """``qosReserved: {memory: 50%}`` (alpha, off by default)."""
    swap_behavior: SwapBehavior = SwapBehavior.NO_SWAP
    swap_controller: bool = True
    """Whether the kernel accounts swap per cgroup; without it nothing is written about swap."""


def stock_node(
    memory_bytes: int,
    *,
    cores: int | Fraction | None = None,
    swap_bytes: int = 0,
    cgroup_version: CgroupVersion = CgroupVersion.V2,
    profile: Profile = LATEST,
) -> CgroupSettings:
    """Return a node whose kubelet has its defaults: nothing is reserved, and pods are limited to what there is."""
    has_memory_qos = profile.memory_qos == "beta"
    capacity = {MEMORY: Quantity.of_units(memory_bytes, "BinarySI")}
    if cores is not None:
        capacity[CPU] = Quantity.of_milli(int(cores * 1000))
    return CgroupSettings(
        node_memory_bytes=memory_bytes,
        node_swap_bytes=swap_bytes,
        node_capacity=capacity,
        node_allocatable=capacity,
        cgroup_version=cgroup_version,
        memory_qos=MemoryQoS(profile.memory_throttling_factor, "None", memory_bytes) if has_memory_qos else None,
    )
