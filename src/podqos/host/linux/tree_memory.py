"""The memory of a node's cgroups, read in a fraction of a millisecond: the machine's share, all pods, each pod.

Usage is exact, the figures of page cache are not. The kernel adds them up when they are read, if it has counted enough
changes since. A cgroup that is due for that no longer counts for those above it, and a race can leave those above not
due: they show what was, all of a node's cache, until the kernel's own round every two seconds. Reading every cgroup on
the way up ends that, from where most may have changed (``read``); and a node has at least the page cache that its
containers have, whose own figures are always right.

The memory of a confined node is that of its own cgroup, with the limit as its capacity. Otherwise it is the machine's:
capacity is MemTotal, and the working set is what is neither free nor inactive page cache, as in cAdvisor.

Source: Linux 6.18 mm/memcontrol.c (memcg_rstat_updated, mem_cgroup_flush_stats).
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from podqos.eviction.signals import Signal
from podqos.host.linux.cgroupfs import CgroupMemory, Cgroups
from podqos.host.linux.procfs import Procfs
from podqos.host.linux.watch import MemoryFigures, MemorySeen
from podqos.model.stats import SYSTEM_CONTAINER_PODS, ContainerStats, MemoryStats

_ADDED_UP_PODS = 2  # one is enough: what changes fast, changes where most is


class PodTree(Protocol):
    """A pod's cgroups."""

    @property
    def uid(self) -> str:
        """The pod's uid."""

    @property
    def cgroup(self) -> str:
        """The pod's own cgroup."""

    @property
    def container_cgroups(self) -> Iterable[str]:
        """Those of its containers that run."""


class NodeMemory(NamedTuple):
    """The memory of a node and of its pods together, each cgroup read once."""

    node: MemoryStats
    all_pods: ContainerStats
    read: Mapping[str, CgroupMemory | None]
    """By path, what was read on the way; the pods with most of it are among them."""
    below: Sequence[CgroupMemory | None]
    """The containers of these pods."""
    read_at: float
    """In seconds of the monotonic clock."""


class TreeMemory:
    """Reads the memory of one node."""

    def __init__(self, cgroups: Cgroups, kubepods: str, capacity_bytes: int | None, procfs: Procfs) -> None:
        """``capacity_bytes`` is that of a node confined to its own cgroup; None is the whole machine."""
        self._cgroups = cgroups
        self.kubepods = kubepods
        self._capacity_bytes = capacity_bytes
        self._procfs = procfs
        self._anon: dict[str, int] = {}
        """The pods' memory that is no page cache, as last seen, by uid."""
        self._last: NodeMemory | None = None

    @property
    def capacity_bytes(self) -> int:
        """The node's memory."""
        return self._capacity_bytes or self._procfs.machine_memory().total_bytes

    def read(self, pods: Iterable[PodTree]) -> NodeMemory:
        """Read the memory of node and pods, for a pass; ``last_look`` is about the same figures."""
        self._last = self._read(pods)
        return self._last

    def last_look(self) -> MemoryFigures | None:
        """Return the figures of the last pass as a look, without reading them again; None before the first."""
        if self._last is None:
            return None
        return self._as_look(self._last)._replace(age_seconds=time.monotonic() - self._last.read_at)

    def look(self, pods: Iterable[PodTree]) -> MemoryFigures:
        """Return what is there of memory now, and nothing else."""
        return self._as_look(self._read(pods))

    def _as_look(self, memory: NodeMemory) -> MemoryFigures:
        all_pods = memory.all_pods.memory
        found = {Signal.MEMORY: self._part_seen(memory) if self._capacity_bytes is None else _seen(memory.node)}
        if all_pods is not None:
            found[Signal.ALLOCATABLE_MEMORY] = _seen(all_pods)
        return MemoryFigures(found, memory.below)

    def _part_seen(self, memory: NodeMemory) -> MemorySeen:
        """Return the memory of the machine, of which the node's own cgroup holds a part."""
        own = self._cgroups.own
        found = (memory.read[own] if own in memory.read else self._cgroups.memory(own)) or CgroupMemory(0, 0, 0)
        available, working = memory.node.available_bytes or 0, found.working_set_bytes
        return MemorySeen(available, found.usage_bytes, found.usage_bytes - working, working + available, is_all=False)

    def at_least(self) -> Mapping[Signal, int]:
        """Return what is available at least, for a fraction of the cost: as if no page cache of pods could go."""
        limit = self._cgroups.memory_limit(self.kubepods) or self.capacity_bytes
        found = {Signal.ALLOCATABLE_MEMORY: limit - (self._cgroups.usage(self.kubepods) or limit)}
        if self._capacity_bytes is None:
            found[Signal.MEMORY] = self.of_node().available_bytes or 0
        return found

    def _read(self, pods: Iterable[PodTree]) -> NodeMemory:
        """Have the kernel add up its figures where most may have changed, from the containers upwards."""
        found = [
            (usage - self._anon.get(pod.uid, 0), pod) for pod in pods if (usage := self._cgroups.usage(pod.cgroup))
        ]
        chosen = [pod for _, pod in heapq.nlargest(_ADDED_UP_PODS, found, key=lambda each: each[0])]
        read = {path: self._cgroups.memory(path) for pod in chosen for path in pod.container_cgroups}
        below = list(read.values())
        for pod in chosen:
            read[pod.cgroup] = memory = self._cgroups.memory(pod.cgroup)
            self._anon[pod.uid] = 0 if memory is None else memory.anon_bytes
        for path in dict.fromkeys((*(pod.cgroup.rpartition("/")[0] for pod in chosen), self.kubepods)):
            read[path] = self._cgroups.memory(path)
        cached = sum(memory.inactive_file_bytes for memory in below if memory is not None)
        all_pods = self._of_all_pods(read[self.kubepods], cached)
        return NodeMemory(self.of_node(cached), all_pods, read, below, time.monotonic())

    def forget_others(self, uids: Iterable[str]) -> None:
        """Keep what is known of these pods alone."""
        there = set(uids)
        self._anon = {uid: anon for uid, anon in self._anon.items() if uid in there}

    def of_node(self, cached: int = 0) -> MemoryStats:
        """Return the memory of the node; ``cached`` is known to be inactive page cache."""
        if self._capacity_bytes is None:
            machine = self._procfs.machine_memory()
            usage = machine.total_bytes - machine.free_bytes
            working = max(0, usage - machine.inactive_file_bytes)
            return MemoryStats(datetime.now(UTC), machine.total_bytes - working, usage, working)
        return _stats(self._cgroups.memory(self._cgroups.own), self._capacity_bytes, cached)

    def of_all_pods(self) -> ContainerStats:
        """Return the memory of all pods together, of what they may have."""
        return self._of_all_pods(self._cgroups.memory(self.kubepods))

    def _of_all_pods(self, found: CgroupMemory | None, cached: int = 0) -> ContainerStats:
        limit = self._cgroups.memory_limit(self.kubepods) or self.capacity_bytes
        return ContainerStats(SYSTEM_CONTAINER_PODS, _stats(found, limit, cached))

    def of_cgroup(self, path: str, known: NodeMemory | None = None) -> MemoryStats | None:
        """Return the memory of one cgroup, not read again where it is ``known``; None if it is gone."""
        found = known.read[path] if known is not None and path in known.read else self._cgroups.memory(path)
        if found is None:
            return None
        return MemoryStats(datetime.now(UTC), None, found.usage_bytes, found.working_set_bytes, found.anon_bytes)


def _seen(memory: MemoryStats) -> MemorySeen:
    available, usage, working = memory.available_bytes or 0, memory.usage_bytes or 0, memory.working_set_bytes or 0
    return MemorySeen(available, usage, usage - working, working + available)


def _stats(found: CgroupMemory | None, limit_bytes: int, cached: int) -> MemoryStats:
    found = found or CgroupMemory(0, 0, 0)
    working = min(found.working_set_bytes, max(0, found.usage_bytes - cached))
    return MemoryStats(datetime.now(UTC), max(0, limit_bytes - working), found.usage_bytes, working, found.anon_bytes)
