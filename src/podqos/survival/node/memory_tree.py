"""A snapshot as the kernel's memory: the planned cgroups with their limits, and what each container holds in them.

The limits are read back from the files of the cgroup plan, so that model and machine get the same values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from podqos.kernel.cgroup import ROOT, parent_path
from podqos.kernel.memcg import Kind, MemcgSettings, Memory
from podqos.kernel.memory import machine
from podqos.model.profile import LATEST, Profile
from podqos.model.snapshot import Snapshot
from podqos.qos.cgroup import Cgroup, Level, node_cgroups, pod_cgroups
from podqos.qos.cgroup_paths import node_path
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion
from podqos.qos.classes import qos_class_of
from podqos.survival.node.processes import container_ids


def memory_tree(snapshot: Snapshot, settings: CgroupSettings, profile: Profile = LATEST) -> Memory:
    """Return the machine's memory at the moment of the snapshot."""
    node = snapshot.node
    version: Literal[1, 2] = 1 if settings.cgroup_version is CgroupVersion.V1 else 2
    memory = Memory(machine(node.memory_bytes, swap_bytes=node.swap_bytes, cgroup_version=version))
    memory.put(ROOT, Kind.ANON, node.system_bytes)
    memory.put(ROOT, Kind.KERNEL, node.hugepages_bytes)
    _add(memory, node_cgroups((entry.pod for entry in snapshot.pods), settings, profile))
    memory.put(node_path(settings), Kind.ANON, max(0, node.pods_other_bytes))
    for entry in snapshot.pods:
        qos_class = qos_class_of(entry.pod, profile)
        ids = container_ids(entry, qos_class, settings)
        cgroups = pod_cgroups(entry.pod, qos_class, settings, profile, ids)
        paths = {cgroup.container: cgroup.path for cgroup in cgroups if cgroup.level is Level.CONTAINER}
        _add(memory, (cgroup for cgroup in cgroups if cgroup.level is Level.POD or cgroup.container in ids))
        for usage in entry.containers:
            path = paths[usage.name]
            assert path is not None
            for kind, amount in (
                (Kind.ANON, usage.anon_bytes),
                (Kind.ACTIVE_FILE, usage.active_file_bytes),
                (Kind.INACTIVE_FILE, usage.inactive_file_bytes),
                (Kind.KERNEL, usage.page_table_bytes + usage.tmpfs_bytes),
                (Kind.SWAP, usage.swap_bytes),
            ):
                memory.put(path, kind, amount)
    return memory


def _add(memory: Memory, cgroups: Iterable[Cgroup]) -> None:
    for cgroup in cgroups:
        if cgroup.path is not None and cgroup.path not in memory:
            _add_parents(memory, cgroup.path)
            memory.add(cgroup.path, memcg_settings(cgroup))


def _add_parents(memory: Memory, path: str) -> None:
    parent = parent_path(path)
    if parent not in memory:
        _add_parents(memory, parent)
        memory.add(parent)


def memcg_settings(cgroup: Cgroup) -> MemcgSettings:
    """Return what the files of a planned cgroup tell the kernel about memory."""
    written = {file.name: int(file.text) for file in cgroup.files if file.text and file.name.startswith("memory.")}
    limit = written.get("memory.max", written.get("memory.limit_in_bytes"))
    return MemcgSettings(
        # The kernel refuses a limit below zero, which is what qosReserved leaves where more is requested than there is.
        max_bytes=limit if limit is not None and limit >= 0 else None,
        high_bytes=written.get("memory.high"),
        min_bytes=written.get("memory.min", 0),
        low_bytes=written.get("memory.low", 0),
        swap_max_bytes=written.get("memory.swap.max"),
        memsw_max_bytes=written.get("memory.memsw.limit_in_bytes"),
        oom_group=written.get("memory.oom.group") == 1,
    )
