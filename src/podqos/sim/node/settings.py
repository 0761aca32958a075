"""From a node's spec to the settings of its parts: the agent's configuration, the kernel's machine, cgroup files."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.agent import memory_notification
from podqos.agent.state import LONGEST_BACK_OFF_SECONDS, AgentConfig, PodPlans
from podqos.errors import InvalidConfiguration
from podqos.eviction.manager import configure
from podqos.eviction.ranking import Policy
from podqos.eviction.signals import Layout, layout_of
from podqos.kernel.cpu import DEFAULT_PERIOD_USEC
from podqos.kernel.memcg import MemcgSettings
from podqos.kernel.memory import Machine, machine
from podqos.model.go_text import parse_duration_ns
from podqos.model.kubelet_config import PID
from podqos.model.node import PODS
from podqos.model.profile import Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, ResourceList
from podqos.model.time_units import MICROSECOND_NS
from podqos.orders.memory import memcg_settings
from podqos.placement.allocatable import Allocatable, cgroup_settings, node_allocatable
from podqos.qos.cgroup import Cgroup
from podqos.qos.cgroup_files import CgroupFile
from podqos.qos.cgroup_settings import CgroupDriver, CgroupSettings, CgroupVersion
from podqos.sim.scenario.scenario import MachineSpec

_MOST_KEPT = 50_000


class CpuSettings(Struct, frozen=True, gc=False):
    """What the files say about CPU."""

    weight: int
    """``cpu.weight`` or ``cpu.shares``."""
    quota_usec: int | None
    """Per period; None is as much as there is."""
    period_usec: int

    @property
    def quota_milli(self) -> int | None:
        """The quota in thousandths of a core."""
        return None if self.quota_usec is None else self.quota_usec * 1000 // self.period_usec


class CgroupReading(Struct, frozen=True, gc=False):
    """What the files say."""

    files: tuple[CgroupFile, ...]
    memory: MemcgSettings
    cpu: CpuSettings
    pids_max: int | None


class CgroupReadings:
    """Remembers what has been read."""

    def __init__(self) -> None:
        self._known: dict[int, CgroupReading] = {}

    def of(self, cgroup: Cgroup) -> CgroupReading:
        """Return what the files of a cgroup say."""
        known = self._known.get(id(cgroup.files))
        if known is None:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            known = self._known[id(cgroup.files)] = _read(cgroup)
        return known


def _read(cgroup: Cgroup) -> CgroupReading:
    pids_max = cgroup.text("pids.max")
    return CgroupReading(
        cgroup.files, memcg_settings(cgroup), _cpu(cgroup), None if pids_max is None else int(pids_max)
    )


def _cpu(cgroup: Cgroup) -> CpuSettings:
    files = {file.name: file.text for file in cgroup.files if file.text is not None}
    quota, _, period = (files.get("cpu.max") or "max").partition(" ")
    if "cpu.cfs_quota_us" in files:
        quota, period = files["cpu.cfs_quota_us"], files.get("cpu.cfs_period_us", "")
    return CpuSettings(
        weight=int(files.get("cpu.weight") or files.get("cpu.shares") or 100),
        quota_usec=int(quota) if quota.isdecimal() else None,
        period_usec=int(period or DEFAULT_PERIOD_USEC),
    )


class SimNodeSettings(Struct, frozen=True):
    """The settings derived from a node's spec; equal nodes share one."""

    spec: MachineSpec
    agent: AgentConfig
    """Under the name of the spec."""
    machine: Machine
    allocatable: Allocatable
    layout: Layout
    status_update_us: int
    readings: CgroupReadings


def node_settings(spec: MachineSpec, profile: Profile, policy: Policy | None) -> SimNodeSettings:
    """Derive the settings of a node."""
    config = spec.config
    allocatable = node_allocatable(capacity_of(spec), spec.placement_config or config)
    layout = layout_of(dedicated_image_fs=spec.imagefs is not None, split_container_fs=spec.containerfs is not None)
    cgroups = _cgroups(spec, profile)
    for_pods = {name: amount for name, amount in allocatable.allocatable.items() if name != PID}
    agent = AgentConfig(
        node=spec.name,
        cgroups=cgroups,
        eviction=configure(config, layout=layout, policy=policy, profile=profile),
        allocatable=for_pods,
        max_pods=allocatable.allocatable[PODS].value,
        longest_back_off_seconds=config.max_container_restart_seconds(profile) or LONGEST_BACK_OFF_SECONDS,
        notification=memory_notification(config, cgroups.cgroup_version, fast_path=spec.fast_path),
        profile=profile,
        plans=PodPlans(cgroups, profile, for_pods),
    )
    status_update_us = parse_duration_ns(config.node_status_update_frequency) // MICROSECOND_NS
    return SimNodeSettings(spec, agent, _machine(spec), allocatable, layout, status_update_us, CgroupReadings())


def capacity_of(spec: MachineSpec) -> ResourceList:
    """Return the capacity of the machine as the API states it."""
    return {
        CPU: Quantity.of_milli(spec.cpu_milli),
        MEMORY: Quantity.of_units(spec.memory_bytes, "BinarySI"),
        EPHEMERAL_STORAGE: Quantity.of_units(spec.nodefs.capacity_bytes, "BinarySI"),
        PID: Quantity.of_units(spec.max_pids),
        **{name: Quantity.of_units(amount, "BinarySI") for name, amount in spec.hugepages.items()},
    }


def _machine(spec: MachineSpec) -> Machine:
    usual = machine(spec.memory_bytes, swap_bytes=spec.swap_bytes, cgroup_version=spec.cgroup_version)
    return usual if spec.watermarks is None else replace(usual, watermarks=spec.watermarks)


def _cgroups(spec: MachineSpec, profile: Profile) -> CgroupSettings:
    if not spec.config.cgroups_per_qos and spec.config.cgroup_driver == CgroupDriver.SYSTEMD:
        what = "without QoS cgroups containerd starts no container with the systemd driver"
        raise InvalidConfiguration(what, where="cgroupsPerQOS: false", fix="cgroupDriver: cgroupfs, or leave it out")
    version = CgroupVersion.V1 if spec.cgroup_version == 1 else CgroupVersion.V2
    settings = cgroup_settings(
        spec.config, capacity_of(spec), swap_bytes=spec.swap_bytes, cgroup_version=version, profile=profile
    )
    return replace(
        settings,
        cgroup_driver=CgroupDriver(spec.config.cgroup_driver or CgroupDriver.CGROUPFS),
        # The CPU model pins no container to a core, so quotas stay.
        static_cpu_manager=False,
        swap_controller=spec.swap_bytes > 0,
    )
