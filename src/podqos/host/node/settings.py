"""Derives the agent's configuration from a kubelet's configuration and this machine's figures.

The capacity is the machine's, except for memory when the node is confined to a share of it.
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.agent import memory_notification
from podqos.agent.state import LONGEST_BACK_OFF_SECONDS, AgentConfig
from podqos.errors import HostError, InvalidConfiguration
from podqos.eviction.manager import configure
from podqos.eviction.ranking import Policy
from podqos.eviction.signals import Layout
from podqos.eviction.thresholds import read_kubelet
from podqos.host.linux.cgroupfs import Cgroups
from podqos.host.linux.disk import filesystem
from podqos.host.linux.procfs import Procfs
from podqos.host.node.container_starts import LogPolicy
from podqos.manifest.kubelet import KubeletSettings
from podqos.model.kubelet_config import PID, KubeletConfiguration
from podqos.model.kubelet_ignored import Ignored
from podqos.model.node import PODS
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, ResourceList
from podqos.placement.allocatable import cgroup_settings, node_allocatable
from podqos.qos.cgroup_settings import CgroupDriver, CgroupSettings, CgroupVersion


class HostSettings(Struct, frozen=True, kw_only=True):
    """The settings of a node."""

    node: str
    manifests: Path
    state_dir: Path
    cgroup_root: str = "podqos"
    """The name of the node's own cgroup, or its path."""
    is_delegated: bool = False
    """Whether that cgroup is in a systemd unit."""
    memory_bytes: int | None = None
    """The memory limit of the node; None: the whole machine."""
    configuration: KubeletConfiguration = KubeletConfiguration()
    logs: LogPolicy = LogPolicy()
    shadow: bool = False
    realtime: bool = False
    fast_path: bool = True
    """Whether the kernel wakes the node and its victims are kept from growing (``agent.memory``)."""
    keep_pods: bool = False
    allow_privileged: bool = False
    """Whether containers may be privileged."""
    policy: Policy | None = None
    profile: Profile = LATEST

    @property
    def own(self) -> str:
        """The node's own cgroup."""
        return "/" + self.cgroup_root.strip("/")


class KubeletFile(Struct, frozen=True):
    """A kubelet's configuration file."""

    configuration: KubeletConfiguration = KubeletConfiguration()
    logs: LogPolicy = LogPolicy()
    ignored: Ignored = Ignored()


def read_kubelet_file(source: str, data: bytes) -> KubeletFile:
    """Read a kubelet's settings in any notation; ``source`` is their name in messages."""
    settings = read_kubelet(source, data)
    if not settings.configuration.cgroups_per_qos:
        where = f"{source}: {settings.notation.place('cgroupsPerQOS')}"
        raise InvalidConfiguration("QoS cgroups are required", where=where, fix="leave it out")
    return KubeletFile(settings.configuration, _logs(settings, source), settings.ignored_by("node"))


def agent_config(settings: HostSettings, cgroups: Cgroups, procfs: Procfs) -> AgentConfig:
    """Return the agent's configuration for this machine."""
    configuration = settings.configuration
    capacity = machine_capacity(settings, procfs)
    divided = node_allocatable(capacity, configuration)
    if divided.over_reserved:
        raise HostError(f"reservations exceed capacity: {', '.join(divided.over_reserved)}")
    return AgentConfig(
        node=settings.node,
        cgroups=_cgroup_settings(settings, cgroups, capacity, procfs),
        eviction=configure(configuration, layout=Layout.SINGLE, policy=settings.policy, profile=settings.profile),
        allocatable=divided.allocatable,
        max_pods=divided.allocatable[PODS].value,
        longest_back_off_seconds=configuration.max_container_restart_seconds(settings.profile)
        or LONGEST_BACK_OFF_SECONDS,
        shadow=settings.shadow,
        notification=memory_notification(configuration, cgroups.version, fast_path=settings.fast_path),
        profile=settings.profile,
    )


def machine_capacity(settings: HostSettings, procfs: Procfs) -> ResourceList:
    """Return the node's capacity."""
    memory = settings.memory_bytes or procfs.machine_memory().total_bytes
    fs = filesystem(settings.state_dir)
    capacity = {
        CPU: Quantity.of_units(os.cpu_count() or 1),
        MEMORY: Quantity.of_units(memory, "BinarySI"),
    }
    if fs is not None and fs.capacity_bytes is not None:
        capacity[EPHEMERAL_STORAGE] = Quantity.of_units(fs.capacity_bytes, "BinarySI")
    return capacity


def _cgroup_settings(
    settings: HostSettings, cgroups: Cgroups, capacity: ResourceList, procfs: Procfs
) -> CgroupSettings:
    configuration = settings.configuration
    planned = cgroup_settings(configuration, capacity, cgroup_version=cgroups.version, profile=settings.profile)
    enforced = planned.node_allocatable
    pids = configuration.reserved_for_kube.get(PID), configuration.reserved_for_system.get(PID)
    most = procfs.max_pids()
    if any(pids) and most is not None:
        left = most - sum(amount.value for amount in pids if amount is not None)
        enforced = {**enforced, PID: Quantity.of_units(left)}
    return replace(
        planned,
        node_allocatable=enforced,
        cgroup_driver=CgroupDriver.CGROUPFS,
        cgroup_root=settings.own,
        # This node pins no container to a core: quotas have to stay.
        static_cpu_manager=False,
        swap_controller=_accounts_swap(cgroups, settings.own),
    )


def _accounts_swap(cgroups: Cgroups, own: str) -> bool:
    file = "memory.swap.max" if cgroups.version is CgroupVersion.V2 else "memory.memsw.limit_in_bytes"
    return cgroups.read(own, file) is not None


def _logs(settings: KubeletSettings, source: str) -> LogPolicy:
    fields, place = settings.fields, settings.notation.place
    size, files = fields.get("containerLogMaxSize", "10Mi"), fields.get("containerLogMaxFiles", 5)
    if not isinstance(files, int) or files < 2:
        raise InvalidConfiguration(f"{files!r}", where=f"{source}: {place('containerLogMaxFiles')}", fix="2 or more")
    return LogPolicy(Quantity.parse(str(size)).value, files)
