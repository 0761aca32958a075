"""What a node's spec means to its parts: the kubelet's settings for the agent, the machine for the kernel."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from podqos.agent.pod_plans import PodPlans
from podqos.agent.state import LONGEST_BACK_OFF_SECONDS, AgentConfig
from podqos.errors import InvalidConfiguration
from podqos.eviction.manager import configure
from podqos.eviction.ranking import Policy
from podqos.eviction.settings import EvictionSettings, MemorySwap
from podqos.eviction.signals import Layout, layout_of
from podqos.kernel.memory import Machine, machine
from podqos.model.go_text import parse_duration_ns
from podqos.model.kubelet_config import PID, KubeletConfiguration
from podqos.model.node import PODS
from podqos.model.profile import Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, ResourceList
from podqos.placement.allocatable import Allocatable, node_allocatable
from podqos.qos.cgroup_settings import (
    CgroupDriver,
    CgroupSettings,
    CgroupVersion,
    MemoryQoS,
    SwapBehavior,
)
from podqos.sim.cgroup_readings import CgroupReadings
from podqos.sim.scenario import NodeSpec

_NS_PER_US = 1000


class NodeSettings(Struct, frozen=True):
    """A node's spec, worked out; equal nodes share one."""

    spec: NodeSpec
    agent: AgentConfig
    """Under the name of the spec."""
    machine: Machine
    allocatable: Allocatable
    layout: Layout
    status_update_us: int
    readings: CgroupReadings


def node_settings(spec: NodeSpec, profile: Profile, policy: Policy | None) -> NodeSettings:
    """Work out a node."""
    config = spec.config
    allocatable = node_allocatable(capacity_of(spec), config)
    layout = layout_of(dedicated_image_fs=spec.imagefs is not None, split_container_fs=spec.containerfs is not None)
    cgroups = _cgroups(spec, allocatable, profile)
    for_pods = {name: amount for name, amount in allocatable.allocatable.items() if name != PID}
    agent = AgentConfig(
        node=spec.name,
        cgroups=cgroups,
        eviction=configure(eviction_settings(config), layout=layout, policy=policy, profile=profile),
        allocatable=for_pods,
        max_pods=allocatable.allocatable[PODS].value,
        longest_back_off_seconds=config.max_container_restart_seconds(profile) or LONGEST_BACK_OFF_SECONDS,
        profile=profile,
        plans=PodPlans(cgroups, profile, for_pods),
    )
    status_update_us = parse_duration_ns(config.node_status_update_frequency) // _NS_PER_US
    return NodeSettings(spec, agent, _machine(spec), allocatable, layout, status_update_us, CgroupReadings())


def capacity_of(spec: NodeSpec) -> ResourceList:
    """Return what the machine has, in the words of the API."""
    return {
        CPU: Quantity.of_milli(spec.cpu_milli),
        MEMORY: Quantity.of_units(spec.memory_bytes, "BinarySI"),
        EPHEMERAL_STORAGE: Quantity.of_units(spec.nodefs.capacity_bytes, "BinarySI"),
        PID: Quantity.of_units(spec.max_pids),
    }


def eviction_settings(config: KubeletConfiguration) -> EvictionSettings:
    """Return what of a kubelet's configuration eviction reads."""
    return EvictionSettings(
        eviction_hard=config.eviction_hard,
        eviction_soft=config.eviction_soft,
        eviction_soft_grace_period=config.eviction_soft_grace_period,
        eviction_minimum_reclaim=config.eviction_minimum_reclaim,
        merge_default_eviction_settings=config.merge_default_eviction_settings,
        eviction_pressure_transition_period=config.eviction_pressure_transition_period,
        eviction_max_pod_grace_period=config.eviction_max_pod_grace_period,
        enforce_node_allocatable=config.enforce_node_allocatable,
        local_storage_capacity_isolation=config.local_storage_capacity_isolation,
        fail_swap_on=config.fail_swap_on,
        memory_swap=MemorySwap(config.memory_swap.swap_behavior),
    )


def _machine(spec: NodeSpec) -> Machine:
    version: Literal[1, 2] = spec.cgroup_version
    usual = machine(spec.memory_bytes, swap_bytes=spec.swap_bytes, cgroup_version=version)
    if spec.watermarks is None:
        return usual
    return Machine(spec.memory_bytes, spec.watermarks, spec.swap_bytes, version)


def _cgroups(spec: NodeSpec, allocatable: Allocatable, profile: Profile) -> CgroupSettings:
    config = spec.config
    if not config.cgroups_per_qos and config.cgroup_driver == CgroupDriver.SYSTEMD:
        what = "without QoS cgroups containerd starts no container with the systemd driver"
        raise InvalidConfiguration(what, where="cgroupsPerQOS: false", fix="cgroupDriver: cgroupfs, or leave it out")
    is_v1 = spec.cgroup_version == 1
    return CgroupSettings(
        node_memory_bytes=spec.memory_bytes,
        node_swap_bytes=spec.swap_bytes,
        node_capacity={name: amount for name, amount in capacity_of(spec).items() if name != EPHEMERAL_STORAGE},
        node_allocatable={name: amount for name, amount in allocatable.enforced.items() if name != EPHEMERAL_STORAGE},
        enforce_node_allocatable="pods" in config.enforce_node_allocatable,
        cgroup_version=CgroupVersion.V1 if is_v1 else CgroupVersion.V2,
        cgroup_driver=CgroupDriver(config.cgroup_driver),
        cgroup_root=config.cgroup_root or "/",
        cgroups_per_qos=config.cgroups_per_qos,
        cpu_cfs_quota=config.cpu_cfs_quota,
        cpu_cfs_period_us=parse_duration_ns(config.cpu_cfs_quota_period) // _NS_PER_US,
        pod_pids_limit=config.pod_pids_limit if config.pod_pids_limit > 0 else None,
        single_process_oom_kill=bool(config.single_process_oom_kill),
        memory_qos=_memory_qos(config, allocatable),
        qos_reserved_memory_percent=config.qos_reserved_memory_percent(profile),
        swap_behavior=SwapBehavior(config.memory_swap.swap_behavior or SwapBehavior.NO_SWAP),
        swap_controller=spec.swap_bytes > 0,
    )


def _memory_qos(config: KubeletConfiguration, allocatable: Allocatable) -> MemoryQoS | None:
    if not config.has_memory_qos:
        return None
    tiered = config.memory_reservation_policy == "TieredReservation"
    return MemoryQoS(
        throttling_factor=0.9 if config.memory_throttling_factor is None else config.memory_throttling_factor,
        reservation_policy="TieredReservation" if tiered else "None",
        node_allocatable_bytes=allocatable.enforced[MEMORY].value,
    )
