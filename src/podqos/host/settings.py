"""What a kubelet's configuration means on this machine: the agent's configuration, from files and figures.

The capacity is the machine's, except for memory when the node is confined to a share of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from podqos.agent.state import LONGEST_BACK_OFF_SECONDS, AgentConfig
from podqos.errors import HostError, InputError, InvalidConfiguration
from podqos.eviction.manager import configure
from podqos.eviction.ranking import Policy
from podqos.eviction.settings import EvictionSettings, settings_from_configuration
from podqos.eviction.signals import Layout
from podqos.host.cgroupfs import Cgroups
from podqos.host.disk import filesystem
from podqos.host.procfs import Procfs
from podqos.host.world import LogPolicy
from podqos.manifest.documents import plain_documents
from podqos.model.go_text import parse_duration_ns
from podqos.model.kubelet_config import PID, KubeletConfiguration, kubelet_configuration
from podqos.model.kubelet_ignored import Ignored, ignored_settings
from podqos.model.node import PODS
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, ResourceList
from podqos.placement.allocatable import node_allocatable
from podqos.qos.cgroup_settings import CgroupDriver, CgroupSettings, CgroupVersion, MemoryQoS, SwapBehavior


class NodeSettings(Struct, frozen=True, kw_only=True):
    """Everything a node is started with."""

    node: str
    manifests: Path
    state_dir: Path
    cgroup_root: str = "podqos"
    """The name of the node's own cgroup, or its path."""
    is_delegated: bool = False
    """Whether that cgroup lies in a unit of systemd's."""
    memory_bytes: int | None = None
    """Confine the node to so much; None: it has the whole machine."""
    configuration: KubeletConfiguration = KubeletConfiguration()
    eviction: EvictionSettings = EvictionSettings()
    logs: LogPolicy = LogPolicy()
    shadow: bool = False
    realtime: bool = False
    fast_path: bool = True
    keep_pods: bool = False
    policy: Policy | None = None
    profile: Profile = LATEST

    @property
    def own(self) -> str:
        """The node's own cgroup."""
        return "/" + self.cgroup_root.strip("/")


class KubeletFile(Struct, frozen=True):
    """A kubelet's configuration file."""

    configuration: KubeletConfiguration = KubeletConfiguration()
    eviction: EvictionSettings = EvictionSettings()
    logs: LogPolicy = LogPolicy()
    ignored: Ignored = Ignored()


def read_kubelet_file(source: str, data: bytes) -> KubeletFile:
    """Read a ``KubeletConfiguration``; ``source`` is the name to report it under."""
    documents = plain_documents(source, data)
    if len(documents) != 1:
        raise InputError(f"{len(documents)} documents", where=source, fix="one KubeletConfiguration")
    value = documents[0].value
    if not isinstance(value, Mapping):
        raise InputError("not a KubeletConfiguration", where=source, fix="kind: KubeletConfiguration")
    configuration = kubelet_configuration(value, source)
    if not configuration.cgroups_per_qos:
        raise InvalidConfiguration("this node needs QoS cgroups", where=f"{source}: cgroupsPerQOS", fix="leave it out")
    return KubeletFile(
        configuration, settings_from_configuration(value), _logs(value, source), ignored_settings(value, "node")
    )


def agent_config(settings: NodeSettings, cgroups: Cgroups, procfs: Procfs | None = None) -> AgentConfig:
    """Return what the agent has to know about this machine."""
    configuration = settings.configuration
    capacity = machine_capacity(settings, procfs or Procfs())
    divided = node_allocatable(capacity, configuration)
    if divided.over_reserved:
        raise HostError(f"more is reserved than there is: {', '.join(divided.over_reserved)}")
    return AgentConfig(
        node=settings.node,
        cgroups=_cgroup_settings(settings, cgroups, capacity, divided.enforced),
        eviction=configure(settings.eviction, layout=Layout.SINGLE, policy=settings.policy, profile=settings.profile),
        allocatable=divided.allocatable,
        max_pods=divided.allocatable[PODS].value,
        longest_back_off_seconds=configuration.max_container_restart_seconds(settings.profile)
        or LONGEST_BACK_OFF_SECONDS,
        shadow=settings.shadow,
        profile=settings.profile,
    )


def machine_capacity(settings: NodeSettings, procfs: Procfs) -> ResourceList:
    """Return what the node has."""
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
    settings: NodeSettings, cgroups: Cgroups, capacity: ResourceList, enforced: ResourceList
) -> CgroupSettings:
    configuration = settings.configuration
    is_v2 = cgroups.version is CgroupVersion.V2
    pids = configuration.reserved_for_kube.get(PID), configuration.reserved_for_system.get(PID)
    most = Procfs().max_pids()
    if any(pids) and most is not None:
        left = most - sum(amount.value for amount in pids if amount is not None)
        enforced = {**enforced, PID: Quantity.of_units(left)}
    swap = configuration.memory_swap.swap_behavior
    return CgroupSettings(
        node_memory_bytes=capacity[MEMORY].value,
        node_swap_bytes=0,
        node_capacity=capacity,
        node_allocatable=enforced,
        enforce_node_allocatable="pods" in configuration.enforce_node_allocatable,
        cgroup_version=cgroups.version,
        cgroup_driver=CgroupDriver.CGROUPFS,
        cgroup_root=settings.own,
        cpu_cfs_quota=configuration.cpu_cfs_quota,
        cpu_cfs_period_us=parse_duration_ns(configuration.cpu_cfs_quota_period) // 1000,
        pod_pids_limit=configuration.pod_pids_limit if configuration.pod_pids_limit > 0 else None,
        single_process_oom_kill=bool(configuration.single_process_oom_kill),
        memory_qos=_memory_qos(configuration, enforced) if is_v2 else None,
        qos_reserved_memory_percent=configuration.qos_reserved_memory_percent(settings.profile),
        swap_behavior=SwapBehavior(swap) if swap else SwapBehavior.NO_SWAP,
        swap_controller=_accounts_swap(cgroups, settings.own),
    )


def _memory_qos(configuration: KubeletConfiguration, enforced: ResourceList) -> MemoryQoS | None:
    if not configuration.has_memory_qos:
        return None
    policy = "TieredReservation" if configuration.memory_reservation_policy == "TieredReservation" else "None"
    factor = configuration.memory_throttling_factor
    return MemoryQoS(0.9 if factor is None else factor, policy, enforced[MEMORY].value)  # type: ignore[arg-type] # one of two texts


def _accounts_swap(cgroups: Cgroups, own: str) -> bool:
    file = "memory.swap.max" if cgroups.version is CgroupVersion.V2 else "memory.memsw.limit_in_bytes"
    return cgroups.read(own, file) is not None


def _logs(value: Mapping[str, object], source: str) -> LogPolicy:
    size, files = value.get("containerLogMaxSize", "10Mi"), value.get("containerLogMaxFiles", 5)
    if not isinstance(files, int) or files < 2:
        raise InvalidConfiguration(f"{files!r}", where=f"{source}: containerLogMaxFiles", fix="2 or more")
    return LogPolicy(Quantity.parse(str(size)).value, files)
