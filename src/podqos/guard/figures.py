"""The figures of a kubelet's node, in the format of its ``/stats/summary``, without asking it.

Memory of the machine, of all pods and of each pod is read from the kernel on every call; that is a fraction of a
millisecond for a hundred pods, where a kubelet's own figures are up to ten seconds old. Process ids come with the
regular look. Disks are left to the kubelet (``settings``).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction.signals import Signal
from podqos.eviction.usage import memory_bytes
from podqos.guard.known_pods import GuardedPod
from podqos.guard.tree import PodCgroup, pod_at
from podqos.host.linux.cgroupfs import Cgroups
from podqos.host.linux.procfs import Procfs
from podqos.host.linux.tree_memory import NodeMemory, TreeMemory
from podqos.host.linux.watch import MemoryFigures
from podqos.model.stats import ContainerStats, NodeStats, PodReference, PodStats, ProcessStats, RlimitStats, Summary

_WITH_CONTAINERS = 16


class WatchedContainer(Struct, frozen=True):
    """A container of a pod."""

    name: str
    cgroup: str
    pid: None = None
    """Not known."""


class WatchedPod:
    """A pod of which the API server knows, with the cgroup that the kubelet made for it."""

    __slots__ = ("cgroup", "containers", "pod", "stats")

    def __init__(self, pod: GuardedPod, tree: PodCgroup) -> None:
        self.pod = pod
        self.cgroup = tree.path
        self.containers: Mapping[str, str] = {}
        """Their cgroups by id; the sandbox is one of them."""
        metadata = pod.metadata
        self.stats = PodStats(PodReference(metadata.name, metadata.namespace, metadata.uid))
        """Of the last look."""
        self.found(tree)

    def found(self, tree: PodCgroup) -> None:
        """Take in which containers there are now."""
        self.containers = {container.id: container.path for container in tree.containers}

    @property
    def uid(self) -> str:
        """The pod's uid, which for a static pod is not the one in the name of its cgroup."""
        return self.pod.metadata.uid

    @property
    def container_cgroups(self) -> Iterable[str]:
        """Those of its containers and its sandbox."""
        return self.containers.values()

    @property
    def runs(self) -> Mapping[str, WatchedContainer]:
        """Its containers by id, without those that the API server does not know."""
        names = self.pod.container_names
        return {each: WatchedContainer(names[each], path) for each, path in self.containers.items() if each in names}


class GuardFigures:
    """Reads the figures of one node."""

    def __init__(self, node: str, cgroups: Cgroups, procfs: Procfs) -> None:
        self._cgroups, self._procfs = cgroups, procfs
        self._memory = TreeMemory(cgroups, cgroups.own, None, procfs)
        self._node = NodeStats(node)

    def look(self, pods: Iterable[WatchedPod]) -> MemoryFigures:
        """Return what is there of memory now, and nothing else."""
        return self._memory.look(pods)

    def last_look(self) -> MemoryFigures | None:
        """Return the memory of the last summary, without reading it again."""
        return self._memory.last_look()

    def at_least(self) -> Mapping[Signal, int]:
        """Return what is available at least, at a glance."""
        return self._memory.at_least()

    def quick(self, pods: Sequence[WatchedPod]) -> Summary:
        """Return current memory figures, and the rest from the last full summary."""
        memory = self._memory.read(pods)
        node = replace(self._node, system_containers=(memory.all_pods,), memory=memory.node)
        return Summary(node, self._with_memory(pods, memory))

    def full(self, pods: Sequence[WatchedPod]) -> Summary:
        """Return all current figures."""
        for pod in pods:
            pod.found(pod_at(self._cgroups, pod.uid, pod.cgroup))
            pod.stats = replace(pod.stats, process_stats=ProcessStats(self._cgroups.pids(pod.cgroup)))
        limit = RlimitStats(datetime.now(UTC), self._procfs.max_pids(), self._procfs.running_threads())
        self._node = replace(self._node, rlimit=limit)
        self._memory.forget_others(pod.uid for pod in pods)
        return self.quick(pods)

    def _with_memory(self, pods: Sequence[WatchedPod], known: NodeMemory) -> tuple[PodStats, ...]:
        """Return the pods' figures; those of containers, which an eviction's message names, of the largest pods."""
        for pod in pods:
            pod.stats = replace(pod.stats, memory=self._memory.of_cgroup(pod.cgroup, known))
        for pod in heapq.nlargest(
            _WITH_CONTAINERS, pods, key=lambda watched_pod: memory_bytes(watched_pod.stats.memory)
        ):
            runs = pod.runs.values()
            containers = (ContainerStats(run.name, self._memory.of_cgroup(run.cgroup, known)) for run in runs)
            pod.stats = replace(pod.stats, containers=tuple(containers))
        return tuple(pod.stats for pod in pods)
