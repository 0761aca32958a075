"""The statistics of a kubelet's node, in the format of its ``/stats/summary``, without asking the kubelet.

Memory of the machine, of all pods and of each pod is read from the kernel on every call. That takes a fraction of a
millisecond for a hundred pods; a kubelet's own statistics are up to ten seconds old. Process IDs are read with the
regular check. Disks are left to the kubelet (``settings``).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction.pods import memory_bytes
from podqos.eviction.signals import Signal
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
    """Unknown."""


class WatchedPod:
    """A pod that the API server knows, with its cgroup."""

    __slots__ = ("cgroup", "containers", "pod", "stats")

    def __init__(self, pod: GuardedPod, tree: PodCgroup) -> None:
        self.pod = pod
        self.cgroup = tree.path
        self.containers: Mapping[str, str] = {}
        """Cgroups by id, including the sandbox."""
        metadata = pod.metadata
        self.stats = PodStats(PodReference(metadata.name, metadata.namespace, metadata.uid))
        """As of the last check."""
        self.found(tree)

    def found(self, tree: PodCgroup) -> None:
        """Update the containers."""
        self.containers = {container.id: container.path for container in tree.containers}

    @property
    def uid(self) -> str:
        """The pod's uid; for a static pod, it differs from the one in the name of its cgroup."""
        return self.pod.metadata.uid

    @property
    def container_cgroups(self) -> Iterable[str]:
        """The cgroups of its containers and its sandbox."""
        return self.containers.values()

    @property
    def runs(self) -> Mapping[str, WatchedContainer]:
        """Its containers by id, without those that the API server does not know."""
        names = self.pod.container_names
        return {each: WatchedContainer(names[each], path) for each, path in self.containers.items() if each in names}


class GuardFigures:
    """Reads the statistics of one node."""

    def __init__(self, node: str, cgroups: Cgroups, procfs: Procfs) -> None:
        self._cgroups, self._procfs = cgroups, procfs
        self._memory = TreeMemory(cgroups, cgroups.own, None, procfs)
        self._node = NodeStats(node)

    def look(self, pods: Iterable[WatchedPod]) -> MemoryFigures:
        """Return the currently available memory, and nothing else."""
        return self._memory.look(pods)

    def last_look(self) -> MemoryFigures | None:
        """Return the memory of the last summary without reading it again."""
        return self._memory.last_look()

    def at_least(self) -> Mapping[Signal, int]:
        """Return a quick lower bound of what is available."""
        return self._memory.at_least()

    def quick(self, pods: Sequence[WatchedPod]) -> Summary:
        """Return current memory statistics, and everything else from the last full summary."""
        memory = self._memory.read(pods)
        node = replace(self._node, system_containers=(memory.all_pods,), memory=memory.node)
        return Summary(node, self._with_memory(pods, memory))

    def full(self, pods: Sequence[WatchedPod]) -> Summary:
        """Return all current statistics."""
        for pod in pods:
            pod.found(pod_at(self._cgroups, pod.uid, pod.cgroup))
            pod.stats = replace(pod.stats, process_stats=ProcessStats(self._cgroups.pids(pod.cgroup)))
        limit = RlimitStats(datetime.now(UTC), self._procfs.max_pids(), self._procfs.running_threads())
        self._node = replace(self._node, rlimit=limit)
        self._memory.forget_others(pod.uid for pod in pods)
        return self.quick(pods)

    def _with_memory(self, pods: Sequence[WatchedPod], known: NodeMemory) -> tuple[PodStats, ...]:
        """Return the pods' statistics; for the largest pods also by container, as eviction messages name them."""
        for pod in pods:
            pod.stats = replace(pod.stats, memory=self._memory.of_cgroup(pod.cgroup, known))
        for pod in heapq.nlargest(
            _WITH_CONTAINERS, pods, key=lambda watched_pod: memory_bytes(watched_pod.stats.memory)
        ):
            runs = pod.runs.values()
            containers = (ContainerStats(run.name, self._memory.of_cgroup(run.cgroup, known)) for run in runs)
            pod.stats = replace(pod.stats, containers=tuple(containers))
        return tuple(pod.stats for pod in pods)
