"""The figures of a kubelet's node, in the format of its ``/stats/summary``, without asking it.

Memory of the machine, of all pods and of each pod is read from the kernel on every call; that is a fraction of a
millisecond for a hundred pods, where a kubelet's own figures are up to ten seconds old. Process ids come with the
regular look. Disks are left to the kubelet (``settings``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from podqos.guard.known_pods import GuardedPod
from podqos.guard.tree import PodCgroup, pod_at
from podqos.host.linux.cgroupfs import Cgroups
from podqos.host.linux.procfs import Procfs
from podqos.host.linux.tree_memory import TreeMemory, cached_bytes
from podqos.host.linux.watch import Look
from podqos.model.stats import NodeStats, PodReference, PodStats, ProcessStats, RlimitStats, Summary
from podqos.qos.cgroup_paths import place_of


class WatchedContainer(Struct, frozen=True):
    """A container, or the sandbox, of a pod."""

    name: str | None
    """None where the API server does not know it."""
    cgroup: str
    pid: None = None
    """Not known."""


class WatchedPod:
    """A pod of which the API server knows, with the cgroup that the kubelet made for it."""

    __slots__ = ("cgroup", "container_cgroups", "pod", "stats")

    def __init__(self, pod: GuardedPod, tree: PodCgroup) -> None:
        self.pod = pod
        self.cgroup = tree.path
        self.container_cgroups: Sequence[str] = tuple(each.path for each in tree.containers)
        metadata = pod.metadata
        self.stats = PodStats(PodReference(metadata.name, metadata.namespace, metadata.uid))
        """Of the last look."""

    @property
    def uid(self) -> str:
        """The pod's uid, which for a static pod is not the one in the name of its cgroup."""
        return self.pod.metadata.uid

    @property
    def runs(self) -> Mapping[str, WatchedContainer]:
        """Its containers by id."""
        names = self.pod.container_names
        ids = {place_of(path).container_id: path for path in self.container_cgroups}
        return {each: WatchedContainer(names.get(each), path) for each, path in ids.items()}


class GuardFigures:
    """Reads the figures of one node."""

    def __init__(self, node: str, cgroups: Cgroups, procfs: Procfs) -> None:
        self._cgroups, self._procfs = cgroups, procfs
        self._memory = TreeMemory(cgroups, cgroups.own, None, procfs)
        self._node = NodeStats(node)

    def look(self, pods: Iterable[WatchedPod]) -> Look:
        """Return what is there of memory now, and nothing else."""
        return self._memory.look(pods)

    def quick(self, pods: Sequence[WatchedPod]) -> Summary:
        """Return current memory figures, and the rest from the last full summary."""
        cached = cached_bytes(self._memory.add_up(pods))
        all_pods, memory = self._memory.of_all_pods(cached), self._memory.of_node(cached)
        node = replace(self._node, system_containers=(all_pods,), memory=memory)
        return Summary(node, tuple(self._with_memory(pod) for pod in pods))

    def full(self, pods: Sequence[WatchedPod]) -> Summary:
        """Return all current figures."""
        for pod in pods:
            pod.container_cgroups = tuple(each.path for each in pod_at(self._cgroups, pod.uid, pod.cgroup).containers)
            pod.stats = replace(pod.stats, process_stats=ProcessStats(self._cgroups.pids(pod.cgroup)))
        limit = RlimitStats(datetime.now(UTC), self._procfs.max_pids(), self._procfs.running_threads())
        self._node = replace(self._node, rlimit=limit)
        self._memory.forget_others(pod.uid for pod in pods)
        return self.quick(pods)

    def _with_memory(self, pod: WatchedPod) -> PodStats:
        pod.stats = replace(pod.stats, memory=self._memory.of_cgroup(pod.cgroup))
        return pod.stats
