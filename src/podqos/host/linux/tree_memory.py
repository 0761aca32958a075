"""The memory of a node's cgroups, read in a fraction of a millisecond: the machine's share, all pods, each pod.

Usage is exact, the figures of page cache are not. The kernel adds them up when they are read, if it has counted enough
changes since. A cgroup that is due for that no longer counts for those above it, and a race can leave those above not
due: they show what was, all of a node's cache, until the kernel's own round every two seconds. Reading every cgroup on
the way up ends that, from where most may have changed (``add_up``); and a node has at least the page cache that its
containers have, whose own figures are always right.

The memory of a confined node is that of its own cgroup, with the limit as its capacity. Otherwise it is the machine's:
capacity is MemTotal, and the working set is what is neither free nor inactive page cache, as in cAdvisor.

Source: Linux 6.18 mm/memcontrol.c (memcg_rstat_updated, mem_cgroup_flush_stats).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from podqos.eviction.signals import Signal
from podqos.host.linux.cgroupfs import CgroupMemory, Cgroups
from podqos.host.linux.procfs import Procfs
from podqos.host.linux.watch import Look, MemorySeen
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

    @property
    def capacity_bytes(self) -> int:
        """The node's memory."""
        return self._capacity_bytes or self._procfs.machine_memory().total_bytes

    def look(self, pods: Iterable[PodTree]) -> Look:
        """Return what is there of memory now, and nothing else."""
        below = self.add_up(pods)
        cached = cached_bytes(below)
        node, all_pods = self.of_node(cached), self.of_all_pods(cached).memory
        found = {Signal.MEMORY: self._seen(self._cgroups.own, node, is_all=self._capacity_bytes is not None)}
        if all_pods is not None:
            found[Signal.ALLOCATABLE_MEMORY] = self._seen(self.kubepods, all_pods, is_all=True)
        return Look(found, below)

    def at_least(self) -> Mapping[Signal, int]:
        """Return what is available at least, for a fraction of the cost: as if no page cache of pods could go."""
        limit = self._cgroups.memory_limit(self.kubepods) or self.capacity_bytes
        found = {Signal.ALLOCATABLE_MEMORY: limit - (self._cgroups.usage(self.kubepods) or limit)}
        if self._capacity_bytes is None:
            found[Signal.MEMORY] = self.of_node().available_bytes or 0
        return found

    def _seen(self, path: str, memory: MemoryStats, *, is_all: bool) -> MemorySeen:
        available, usage, working = memory.available_bytes or 0, memory.usage_bytes or 0, memory.working_set_bytes or 0
        if not is_all:
            own = self._cgroups.memory(path) or CgroupMemory(0, 0, 0)
            usage, working = own.usage_bytes, own.working_set_bytes
        return MemorySeen(available, usage, usage - working, working + available, is_all)

    def add_up(self, pods: Iterable[PodTree]) -> Sequence[CgroupMemory | None]:
        """Have the kernel add up its figures where most may have changed; return those of the containers."""
        found = [
            (usage - self._anon.get(pod.uid, 0), pod) for pod in pods if (usage := self._cgroups.usage(pod.cgroup))
        ]
        chosen = [pod for _, pod in heapq.nlargest(_ADDED_UP_PODS, found, key=lambda each: each[0])]
        below = [self._cgroups.memory(path) for pod in chosen for path in pod.container_cgroups]
        for pod in chosen:
            memory = self._cgroups.memory(pod.cgroup)
            self._anon[pod.uid] = 0 if memory is None else memory.anon_bytes
        for path in dict.fromkeys((*(pod.cgroup.rpartition("/")[0] for pod in chosen), self.kubepods)):
            self._cgroups.memory(path)
        return below

    def forget_others(self, uids: Iterable[str]) -> None:
        """Keep what is known of these pods alone."""
        there = set(uids)
        self._anon = {uid: anon for uid, anon in self._anon.items() if uid in there}

    def of_node(self, cached: int = 0) -> MemoryStats:
        """Return the memory of the node; ``cached`` is known to be inactive page cache."""
        now = datetime.now(UTC)
        if self._capacity_bytes is None:
            machine = self._procfs.machine_memory()
            usage = machine.total_bytes - machine.free_bytes
            working = max(0, usage - machine.inactive_file_bytes)
            return MemoryStats(now, machine.total_bytes - working, usage, working)
        return self._memory_of(self._cgroups.own, now, self._capacity_bytes, cached)

    def of_all_pods(self, cached: int = 0) -> ContainerStats:
        """Return the memory of all pods together, of what they may have."""
        limit = self._cgroups.memory_limit(self.kubepods) or self.capacity_bytes
        return ContainerStats(SYSTEM_CONTAINER_PODS, self._memory_of(self.kubepods, datetime.now(UTC), limit, cached))

    def _memory_of(self, path: str, now: datetime, limit_bytes: int, cached: int) -> MemoryStats:
        found = self._cgroups.memory(path) or CgroupMemory(0, 0, 0)
        working = min(found.working_set_bytes, max(0, found.usage_bytes - cached))
        return MemoryStats(now, max(0, limit_bytes - working), found.usage_bytes, working, found.anon_bytes)

    def of_cgroup(self, path: str) -> MemoryStats | None:
        """Return the memory of one cgroup; None if it is gone."""
        found = self._cgroups.memory(path)
        if found is None:
            return None
        return MemoryStats(datetime.now(UTC), None, found.usage_bytes, found.working_set_bytes, found.anon_bytes)


def cached_bytes(below: Iterable[CgroupMemory | None]) -> int:
    """Return how much of these is inactive page cache."""
    return sum(each.inactive_file_bytes for each in below if each is not None)
