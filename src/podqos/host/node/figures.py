"""The node's figures in the format of the kubelet's ``/stats/summary``.

Memory is read on every call. A quick summary reads only the memory of the node and of each pod: that is all the ranking
for memory needs, and it takes a fraction of a millisecond. Everything else is as old as the last full summary, and has
its time.

Usage is exact, the figures of page cache are not. The kernel adds them up when they are read, if it has counted enough
changes since. A cgroup that is due for that no longer counts for those above it, and a race can leave those above not
due: they show what was, all of a node's cache, until the kernel's own round every two seconds. Reading every cgroup on
the way up ends that, from where most may have changed (``_add_up``); and a node has at least the page cache that its
containers have, whose own figures are always right.

The memory of a confined node is that of its own cgroup, with the limit as its capacity. Otherwise it is the machine's:
capacity is MemTotal, and the working set is what is neither free nor inactive page cache, as in cAdvisor.

Source: Linux 6.18 mm/memcontrol.c (memcg_rstat_updated, mem_cgroup_flush_stats).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from podqos.eviction.signals import Signal
from podqos.host.linux.cgroupfs import CgroupMemory, Cgroups
from podqos.host.linux.disk import DiskMeter, filesystem
from podqos.host.linux.procfs import Procfs
from podqos.host.linux.watch import Look, MemorySeen
from podqos.host.node.host_pod import ContainerRun, HostPod
from podqos.host.storage.state import StateDirectory
from podqos.model.stats import (
    SYSTEM_CONTAINER_PODS,
    ContainerStats,
    FsStats,
    MemoryStats,
    NodeStats,
    PodReference,
    PodStats,
    ProcessStats,
    RlimitStats,
    RuntimeStats,
    Summary,
    VolumeStats,
)

_ADDED_UP_PODS = 2  # one is enough: what changes fast, changes where most is


class Figures:
    """Reads the figures of one node."""

    def __init__(
        self,
        node: str,
        *,
        cgroups: Cgroups,
        state: StateDirectory,
        capacity_bytes: int | None,
        kubepods: str,
        procfs: Procfs | None = None,
    ) -> None:
        self._node = node
        self._cgroups = cgroups
        self._state = state
        self._capacity_bytes = capacity_bytes
        self.kubepods = kubepods
        self._procfs = procfs or Procfs()
        self.image_folder: Path | None = None
        self.disk = DiskMeter()
        self._last: dict[str, PodStats] = {}
        self._last_node = NodeStats(node)
        self._anon: dict[str, int] = {}
        """The pods' memory that is no page cache, as last seen, by uid."""

    @property
    def capacity_bytes(self) -> int:
        """The node's memory."""
        return self._capacity_bytes or self._procfs.machine_memory().total_bytes

    def look(self, pods: Iterable[HostPod]) -> Look:
        """Return what is there of memory now, and nothing else."""
        below = self._add_up(pods)
        cached = _cached(below)
        node, all_pods = self._node_memory(cached), self._all_pods(cached).memory
        found = {Signal.MEMORY: self._seen(self._cgroups.own, node, is_all=self._capacity_bytes is not None)}
        if all_pods is not None:
            found[Signal.ALLOCATABLE_MEMORY] = self._seen(self.kubepods, all_pods, is_all=True)
        return Look(found, below)

    def _seen(self, path: str, memory: MemoryStats, *, is_all: bool) -> MemorySeen:
        available, usage, working = memory.available_bytes or 0, memory.usage_bytes or 0, memory.working_set_bytes or 0
        if not is_all:
            own = self._cgroups.memory(path) or CgroupMemory(0, 0, 0)
            usage, working = own.usage_bytes, own.working_set_bytes
        return MemorySeen(available, usage, usage - working, working + available, is_all)

    def _add_up(self, pods: Iterable[HostPod]) -> list[CgroupMemory | None]:
        """Have the kernel add up its figures where most may have changed; return those of the containers."""
        found = [
            (usage - self._anon.get(pod.uid, 0), pod) for pod in pods if (usage := self._cgroups.usage(pod.cgroup))
        ]
        chosen = [pod for _, pod in heapq.nlargest(_ADDED_UP_PODS, found, key=lambda each: each[0])]
        below = [self._cgroups.memory(run.cgroup) for pod in chosen for run in pod.running]
        for pod in chosen:
            memory = self._cgroups.memory(pod.cgroup)
            self._anon[pod.uid] = 0 if memory is None else memory.anon_bytes
        for path in dict.fromkeys((*(pod.cgroup.rpartition("/")[0] for pod in chosen), self.kubepods)):
            self._cgroups.memory(path)
        return below

    def _node_memory(self, cached_bytes: int) -> MemoryStats:
        now = datetime.now(UTC)
        if self._capacity_bytes is None:
            machine = self._procfs.machine_memory()
            usage = machine.total_bytes - machine.free_bytes
            working = max(0, usage - machine.inactive_file_bytes)
            return MemoryStats(now, machine.total_bytes - working, usage, working)
        return self._memory_of(self._cgroups.own, now, self._capacity_bytes, cached_bytes)

    def quick(self, pods: Iterable[HostPod]) -> Summary:
        """Return current memory figures, and the rest from the last full summary."""
        there = tuple(pods)
        cached = _cached(self._add_up(there))
        node = replace(self._last_node, system_containers=(self._all_pods(cached),), memory=self._node_memory(cached))
        return Summary(node, tuple(self._quick_pod(pod) for pod in there))

    def full(self, pods: Iterable[HostPod]) -> Summary:
        """Return all current figures; directories are as last measured."""
        there = tuple(pods)
        node = self.of_node(_cached(self._add_up(there)))
        stats = tuple(self.of_pod(pod) for pod in there)
        self._last_node, self._last = node, {each.pod_ref.uid: each for each in stats}
        self._anon = {uid: anon for uid, anon in self._anon.items() if uid in self._last}
        return Summary(node, stats)

    def of_node(self, cached_bytes: int = 0) -> NodeStats:
        """Return all figures of the node itself; ``cached_bytes`` is known to be inactive page cache."""
        now = datetime.now(UTC)
        fs = filesystem(self._state.root)
        images = fs if self.image_folder is None else filesystem(self.image_folder)
        return NodeStats(
            self._node,
            (self._all_pods(cached_bytes),),
            self._node_memory(cached_bytes),
            fs,
            RuntimeStats(images, None),
            RlimitStats(now, self._procfs.max_pids(), self._procfs.running_threads()),
        )

    def folders(self, pods: Iterable[HostPod]) -> list[Path]:
        """Return the directories to measure."""
        found: list[Path] = []
        for pod in pods:
            for run in pod.runs.values():
                found += (run.start.folder, run.start.log.parent)
            found += (self._state.volume(pod.uid, name) for name in _empty_dirs(pod))
        return found

    def _all_pods(self, cached_bytes: int) -> ContainerStats:
        limit = self._cgroups.memory_limit(self.kubepods) or self.capacity_bytes
        return ContainerStats(
            SYSTEM_CONTAINER_PODS, self._memory_of(self.kubepods, datetime.now(UTC), limit, cached_bytes)
        )

    def _memory_of(self, path: str, now: datetime, limit_bytes: int, cached_bytes: int) -> MemoryStats:
        found = self._cgroups.memory(path) or CgroupMemory(0, 0, 0)
        working = min(found.working_set_bytes, max(0, found.usage_bytes - cached_bytes))
        return MemoryStats(now, max(0, limit_bytes - working), found.usage_bytes, working, found.anon_bytes)

    def _quick_pod(self, pod: HostPod) -> PodStats:
        memory = _memory(self._cgroups.memory(pod.cgroup), datetime.now(UTC))
        last = self._last.get(pod.uid)
        if last is None:
            return PodStats(_reference(pod), (), memory)
        return replace(last, memory=memory)

    def of_pod(self, pod: HostPod) -> PodStats:
        """Return all figures of one pod."""
        now = datetime.now(UTC)
        containers = tuple(self._container(run, now) for run in pod.runs.values() if run.is_running)
        volumes = tuple(self._volume(pod, name) for name in _empty_dirs(pod))
        return PodStats(
            _reference(pod),
            containers,
            _memory(self._cgroups.memory(pod.cgroup), now),
            volumes,
            _sum(now, containers, volumes),
            ProcessStats(self._cgroups.pids(pod.cgroup)),
        )

    def _container(self, run: ContainerRun, now: datetime) -> ContainerStats:
        return ContainerStats(
            run.id.name,
            _memory(self._cgroups.memory(run.cgroup), now),
            self._used(run.start.folder),
            self._used(run.start.log.parent),
        )

    def _volume(self, pod: HostPod, name: str) -> VolumeStats:
        used = self.disk.of(self._state.volume(pod.uid, name))
        return VolumeStats(name, used.used_bytes if used else None, used.inodes if used else None)

    def _used(self, folder: Path) -> FsStats | None:
        used = self.disk.of(folder)
        return used.as_stats() if used is not None else None


def _cached(below: Iterable[CgroupMemory | None]) -> int:
    return sum(each.inactive_file_bytes for each in below if each is not None)


def _empty_dirs(pod: HostPod) -> list[str]:
    return [volume.name for volume in pod.state.run.volumes if volume.empty_dir is not None]


def _reference(pod: HostPod) -> PodReference:
    metadata = pod.pod.metadata
    return PodReference(metadata.name, metadata.namespace, metadata.uid)


def _memory(found: CgroupMemory | None, now: datetime) -> MemoryStats | None:
    if found is None:
        return None
    return MemoryStats(now, None, found.usage_bytes, found.working_set_bytes, found.anon_bytes)


def _sum(now: datetime, containers: Iterable[ContainerStats], volumes: Iterable[VolumeStats]) -> FsStats:
    used = inodes = 0
    for container in containers:
        for fs in (container.rootfs, container.logs):
            if fs is not None:
                used += fs.used_bytes or 0
                inodes += fs.inodes_used or 0
    for volume in volumes:
        used += volume.used_bytes or 0
        inodes += volume.inodes_used or 0
    return FsStats(time=now, used_bytes=used, inodes_used=inodes)
