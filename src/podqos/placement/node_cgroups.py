"""What a kubelet's configuration and a machine mean for cgroups: the settings that ``qos`` plans them by.

One place for every command and both worlds, so that a field of ``KubeletConfiguration`` means the same everywhere. What
the configuration cannot say (cgroup version, runtime, swap) is given next to it.

Source: Kubernetes v1.36 pkg/kubelet/cm/container_manager_linux.go, cmd/kubelet/app/server.go.
"""

from __future__ import annotations

from podqos.model.go_text import parse_duration_ns
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import MEMORY, ResourceList
from podqos.model.time_units import MICROSECOND_NS
from podqos.placement.allocatable import node_allocatable
from podqos.qos.cgroup_settings import CgroupDriver, CgroupSettings, CgroupVersion, MemoryQoS, SwapBehavior


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
