"""The node's figures in the format of the kubelet's ``/stats/summary``.

Memory is read on every call. A quick summary reads only the memory of the node and of each pod: that is all the ranking
for memory needs, and it takes a fraction of a millisecond. Everything else is as old as the last full summary, and has
its time.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from podqos.host.linux.cgroupfs import Cgroups
from podqos.host.linux.disk import DiskMeter, filesystem
from podqos.host.linux.procfs import Procfs
from podqos.host.linux.tree_memory import NodeMemory, TreeMemory
from podqos.host.linux.watch import MemoryFigures
from podqos.host.node.host_pod import ContainerRun, HostPod
from podqos.host.storage.state import StateDirectory
from podqos.model.stats import (
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
        self._procfs = procfs or Procfs()
        self._memory = TreeMemory(cgroups, kubepods, capacity_bytes, self._procfs)
        self.disk = DiskMeter()
        self._last: dict[str, PodStats] = {}
        self._last_node = NodeStats(node)

    @property
    def kubepods(self) -> str:
        """The cgroup of all pods."""
        return self._memory.kubepods

    @property
    def capacity_bytes(self) -> int:
        """The node's memory."""
        return self._memory.capacity_bytes

    def look(self, pods: Iterable[HostPod]) -> MemoryFigures:
        """Return what is there of memory now, and nothing else."""
        return self._memory.look(pods)

    def last_look(self) -> MemoryFigures | None:
        """Return the memory of the last summary, without reading it again."""
        return self._memory.last_look()

    def quick(self, pods: Iterable[HostPod]) -> Summary:
        """Return current memory figures, and the rest from the last full summary."""
        there = tuple(pods)
        memory = self._memory.read(there)
        node = replace(self._last_node, system_containers=(memory.all_pods,), memory=memory.node)
        return Summary(node, tuple(self._quick_pod(pod, memory) for pod in there))

    def full(self, pods: Iterable[HostPod]) -> Summary:
        """Return all current figures; directories are as last measured."""
        there = tuple(pods)
        memory = self._memory.read(there)
        node = self._of_node(memory.all_pods, memory.node)
        stats = tuple(self.of_pod(pod, memory) for pod in there)
        self._last_node, self._last = node, {stat.pod_ref.uid: stat for stat in stats}
        self._memory.forget_others(self._last)
        return Summary(node, stats)

    def of_node(self) -> NodeStats:
        """Return all figures of the node itself."""
        return self._of_node(self._memory.of_all_pods(), self._memory.of_node())

    def _of_node(self, all_pods: ContainerStats, memory: MemoryStats) -> NodeStats:
        now = datetime.now(UTC)
        fs = filesystem(self._state.root)
        return NodeStats(
            self._node,
            (all_pods,),
            memory,
            fs,
            RuntimeStats(fs, None),
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

    def _quick_pod(self, pod: HostPod, known: NodeMemory) -> PodStats:
        memory = self._memory.of_cgroup(pod.cgroup, known)
        last = self._last.get(pod.uid)
        if last is None:
            return PodStats(_reference(pod), (), memory)
        return replace(last, memory=memory)

    def of_pod(self, pod: HostPod, known: NodeMemory | None = None) -> PodStats:
        """Return all figures of one pod; memory that is ``known`` is not read again."""
        now = datetime.now(UTC)
        containers = tuple(self._container(run, known) for run in pod.runs.values() if run.is_running)
        volumes = tuple(self._volume(pod, name) for name in _empty_dirs(pod))
        return PodStats(
            _reference(pod),
            containers,
            self._memory.of_cgroup(pod.cgroup, known),
            volumes,
            _sum(now, containers, volumes),
            ProcessStats(self._cgroups.pids(pod.cgroup)),
        )

    def _container(self, run: ContainerRun, known: NodeMemory | None) -> ContainerStats:
        return ContainerStats(
            run.id.name,
            self._memory.of_cgroup(run.cgroup, known),
            self._used(run.start.folder),
            self._used(run.start.log.parent),
        )

    def _volume(self, pod: HostPod, name: str) -> VolumeStats:
        used = self.disk.of(self._state.volume(pod.uid, name))
        return VolumeStats(name, used.used_bytes if used else None, used.inodes if used else None)

    def _used(self, folder: Path) -> FsStats | None:
        used = self.disk.of(folder)
        return used.as_stats() if used is not None else None


def _empty_dirs(pod: HostPod) -> list[str]:
    return [volume.name for volume in pod.state.run.volumes if volume.empty_dir is not None]


def _reference(pod: HostPod) -> PodReference:
    metadata = pod.pod.metadata
    return PodReference(metadata.name, metadata.namespace, metadata.uid)


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
