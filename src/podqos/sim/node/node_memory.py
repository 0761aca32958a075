"""The memory of a simulated machine: its cgroup tree, and what happens when a cgroup is full.

Every cgroup with a limit is a gauge; so is the machine. When one exceeds its limit the kernel first reclaims page
cache, then swaps where allowed, and kills only when that is not enough. The kernel model (``kernel.reclaim``) decides
what is reclaimed from which cgroup; for that the tree is laid out as it is at the moment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from msgspec.structs import replace

from podqos.agent.reasons import OOMLevel
from podqos.kernel.cgroup import ROOT, parent_path
from podqos.kernel.memcg import Kind, MemcgSettings, Memory
from podqos.kernel.memory import Machine
from podqos.kernel.reclaim import Taken, kswapd, relieve
from podqos.model.time_units import SECOND_US
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.event_queue import EventPriority
from podqos.sim.engine.gauge import FRACTION_BITS, Gauge, GaugeMark, Planner
from podqos.sim.node.memory_group import MemoryGroup
from podqos.sim.node.memory_layout import laid_out
from podqos.sim.node.pods import SimContainer, SimPod

_THRASHING_BYTES = 1 << 16
"""If less page cache than this can be reclaimed, the cache is thrashing: it is dropped as fast as it is read."""
_THRASHING_US = SECOND_US
"""How long such a cache stays empty before it grows again; otherwise each byte would be an event."""

RETRY_US = 60 * SECOND_US
"""How often the kubelet writes the cgroups of the classes again (periodicQOSCgroupUpdateInterval)."""

OutOfMemory = Callable[[MemoryGroup, int], None]
"""Called with a cgroup and the time; kills until the cgroup is within its limit."""


class NodeMemory:
    """All memory of one machine."""

    def __init__(self, machine: Machine, planner: Planner, out_of_memory: OutOfMemory) -> None:
        self.machine = machine
        self.groups: dict[str, MemoryGroup] = {}
        self.running: dict[str, SimContainer] = {}
        """By path of their cgroups, in the order in which they started."""
        self.keeping: dict[str, SimPod] = {}
        """By uid: pods with something in volumes in memory that a container left there."""
        self.system: dict[Kind, Allocation] = {}
        """What runs outside of pods."""
        self.seen_huge_bytes = 0
        """Huge pages that the kubelet counts as in use; up to 1.36 it takes them for available."""
        self.reclaimable = 0
        """How many hold page cache or could be swapped out; with none there is nothing to reclaim."""
        self._passed: list[MemoryGroup] = []
        self._planner = planner
        self._out_of_memory = out_of_memory
        self.above_high: Callable[[MemoryGroup, int], None] = lambda _group, _time_us: None
        """Called when a container has more than ``memory.high`` and nothing more can be reclaimed."""
        self.root = self._add(ROOT, OOMLevel.NODE, None)
        self._limit(self.root, machine.total_bytes - machine.watermarks.min_bytes, 0)
        assert self.root.gauge is not None
        self.usage: Gauge = self.root.gauge
        self._low = GaugeMark(self.usage, planner, self._kswapd)
        self._low.level = (machine.total_bytes - machine.watermarks.low_bytes + 1) << FRACTION_BITS

    # ---- cgroups -------------------------------------------------------------------------------------------------

    def write(self, path: str, settings: MemcgSettings, level: OOMLevel, now_us: int) -> MemoryGroup:
        """Make a cgroup, or write its files again; a limit that is not written stays as it is."""
        group = self.groups.get(path) or self._add(path, level, self._parent(path))
        limit = settings.max_bytes
        if limit is None:
            limit = group.limit_bytes
        elif self.machine.cgroup_version == 1 and group.gauge is not None:
            limit = self._accepted(group, limit, now_us)
        group.settings = settings if limit == settings.max_bytes else replace(settings, max_bytes=limit)
        if limit is not None:
            self._limit(group, limit, now_us)
        if level is OOMLevel.CONTAINER and (group.settings.high_bytes is not None or group.high_mark is not None):
            self._slow_above(group, group.settings.high_bytes, now_us)
        return group

    def _slow_above(self, group: MemoryGroup, high_bytes: int | None, now_us: int) -> None:
        """Watch ``memory.high`` of a container, or no longer."""
        if group.high_mark is not None:
            group.high_mark.remove()
            group.high_mark = None
        if high_bytes is None:
            return
        self._measure(group, now_us)
        assert group.gauge is not None
        group.high_mark = GaugeMark(group.gauge, self._planner, lambda time_us: self._above_high(group, time_us))
        group.high_mark.above(high_bytes, now_us)

    def _above_high(self, group: MemoryGroup, time_us: int) -> None:
        """Reclaim what a container has above ``memory.high``; slow it if that is not enough."""
        assert group.gauge is not None
        assert group.high_mark is not None
        high = group.settings.high_bytes
        if high is None:
            return
        group.gauge.rouse(time_us)
        over = group.gauge.at(time_us) - high
        if over > 0 and self._can_gain(time_us):
            over -= self._reclaim(group, time_us, over)
        if over > 0:
            self.above_high(group, time_us)
        else:
            group.high_mark.arm(time_us)

    def _accepted(self, group: MemoryGroup, limit_bytes: int, now_us: int) -> int:
        """Return the limit that cgroup v1 accepts: it refuses one below what is in use and cannot be reclaimed.

        The kubelet then sets the limit to what is in use, and tries again every minute. Version 2 takes every limit,
        and kills.
        """
        assert group.gauge is not None
        group.wanted_bytes = None
        group.gauge.rouse(now_us)
        lacking = group.gauge.at(now_us) - limit_bytes
        if lacking > 0 and self._can_gain(now_us):
            lacking -= self._reclaim(group, now_us, lacking)
        if lacking <= 0:
            return limit_bytes
        group.wanted_bytes = limit_bytes

        def again(time_us: int) -> None:
            if group.wanted_bytes is not None and self.groups.get(group.path) is group:
                self.write(group.path, replace(group.settings, max_bytes=group.wanted_bytes), group.level, time_us)

        self._planner((now_us // RETRY_US + 1) * RETRY_US, EventPriority.KUBELET, again)
        return limit_bytes + lacking

    def remove(self, path: str) -> None:
        """Remove a cgroup."""
        self.groups.pop(path, None)

    def _parent(self, path: str) -> MemoryGroup:
        above = parent_path(path)
        return self.groups.get(above) or self._add(above, OOMLevel.CLASS, self._parent(above))

    def _add(self, path: str, level: OOMLevel, parent: MemoryGroup | None) -> MemoryGroup:
        group = self.groups[path] = MemoryGroup(path, level, parent)
        return group

    def _limit(self, group: MemoryGroup, limit_bytes: int, now_us: int) -> None:
        self._measure(group, now_us)
        assert group.gauge is not None
        if group.mark is None:
            group.mark = GaugeMark(group.gauge, self._planner, lambda time_us: self._full(group, time_us))
        assert group.mark is not None
        if limit_bytes != group.limit_bytes or not group.mark.is_armed:
            group.limit_bytes = limit_bytes
            group.mark.above(limit_bytes, now_us)

    @staticmethod
    def _measure(group: MemoryGroup, now_us: int) -> None:
        if group.gauge is None:
            group.gauge = Gauge()
            group.gauge.since_us = now_us

    # ---- what is left --------------------------------------------------------------------------------------------

    def free_bytes(self, time_us: int) -> int:
        """Return MemFree."""
        return self.machine.total_bytes - self.usage.at(time_us)

    def swap_used_bytes(self) -> int:
        """Return what is in swap."""
        if not self.machine.swap_bytes:
            return 0
        system = self.system.get(Kind.ANON)
        own = 0 if system is None else system.debt >> FRACTION_BITS
        return own + sum(container.swap_bytes() for container in self.running.values())

    def anon_bytes(self, time_us: int) -> int:
        """Return all private memory."""
        pods = sum(container.anon_bytes(time_us) for container in self.running.values())
        return pods + self.system_bytes(Kind.ANON, time_us)

    def system_bytes(self, kind: Kind, time_us: int) -> int:
        """Return what of a kind is held outside of pods."""
        want = self.system.get(kind)
        return 0 if want is None else want.at(time_us)

    def system_working_set_bytes(self, time_us: int) -> int:
        """Return the working set outside of pods."""
        seen = self.system_bytes(Kind.ANON, time_us) + self.system_bytes(Kind.ACTIVE_FILE, time_us)
        return seen + self.seen_huge_bytes

    def members(self, group: MemoryGroup) -> Collection[SimContainer]:
        """Return the running containers whose memory is charged to a cgroup."""
        if group.parent is None:
            return self.running.values()
        if group.level is OOMLevel.CONTAINER:
            return [self.running[group.path]] if group.path in self.running else []
        return [container for container in self.running.values() if group in container.groups]

    def eased(self, time_us: int) -> None:
        """Let kswapd look again, after memory was freed."""
        if self.reclaimable and not self._low.is_armed:
            self._low.arm(time_us)

    # ---- what is full --------------------------------------------------------------------------------------------

    def _full(self, group: MemoryGroup, time_us: int) -> None:
        """Note a cgroup that has exceeded its limit; the order of several is decided when all are known."""
        if not self._passed:
            self._planner(time_us, EventPriority.KERNEL, self._make_room)
        self._passed.append(group)

    def _make_room(self, time_us: int) -> None:
        """Make room where most is missing: there the limit was hit first. Of equals, the machine comes first."""
        passed, self._passed = self._passed, []
        passed.sort(key=lambda group: (-group.excess_bytes(time_us), group.parent is not None, -len(group.path)))
        for group in passed:
            self._short(group, time_us)

    def _short(self, group: MemoryGroup, time_us: int) -> None:
        """Make room in a cgroup that is over its limit: reclaim, and kill if that is not enough."""
        lacking = group.excess_bytes(time_us)
        if lacking > 0 and self._can_gain(time_us):
            lacking -= self._reclaim(group, time_us, lacking)
        if lacking > 0:
            self._out_of_memory(group, time_us)
        if group.mark is not None and (group.parent is None or group.excess_bytes(time_us) <= 0):
            group.mark.arm(time_us)
        self.eased(time_us)

    def _reclaim(self, group: MemoryGroup, time_us: int, lacking_bytes: int) -> int:
        return self._take(relieve(self._laid_out(time_us), group.path, lacking_bytes), time_us)

    def _kswapd(self, time_us: int) -> None:
        """Reclaim page cache in the background: from below ``low`` up to ``high``, as far as there is any."""
        if not self._can_gain(time_us):
            return
        self._take(kswapd(self._laid_out(time_us)), time_us)
        if not self._low.is_reached(time_us):
            self._low.arm(time_us)

    def _laid_out(self, time_us: int) -> Memory:
        return laid_out(self.machine, self.system, self.running.values(), self.keeping.values(), time_us)

    def _can_gain(self, time_us: int) -> bool:
        """Whether anything can be reclaimed at all: a fast check before the tree is laid out."""
        if not self.reclaimable:
            return False
        self.usage.rouse(time_us)
        if self.machine.swap_bytes > self.swap_used_bytes():
            return True
        files = (want for kind, want in self.system.items() if kind in {Kind.ACTIVE_FILE, Kind.INACTIVE_FILE})
        held = (
            allocation
            for container in self.running.values()
            for allocation in (container.active_file, container.inactive_file)
        )
        return any(want is not None and want.at(time_us) > 0 for want in (*files, *held))

    def _take(self, taken: Iterable[Taken], time_us: int) -> int:
        """Reclaim memory, and pause page cache that is thrashing; return how many bytes were gained."""
        found = [(each, want) for each in taken if (want := self._want(each)) is not None]
        for each, want in found:
            want.take(time_us, each.size_bytes)
        gained = sum(taken.size_bytes for taken, _ in found)
        if gained < _THRASHING_BYTES:
            for each, want in found:
                if each.kind is not Kind.ANON:
                    want.pause(time_us, _THRASHING_US)
        return gained

    def _want(self, taken: Taken) -> Allocation | None:
        if taken.path == ROOT:
            return self.system.get(taken.kind)
        container = self.running[taken.path]
        match taken.kind:
            case Kind.ACTIVE_FILE:
                return container.active_file
            case Kind.INACTIVE_FILE:
                return container.inactive_file
            case _:
                return container.anon
