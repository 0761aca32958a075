"""The memory of a simulated machine: its cgroup tree, what happens when a cgroup is full, and whom the kernel kills.

Every cgroup with a limit is a gauge; so is the machine. When one exceeds its limit the kernel first reclaims page
cache, then swaps where allowed, and kills only when that is not enough. The kernel model (``kernel.reclaim``,
``kernel.oom``) decides; for that the tree is laid out as it is at the moment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.port import MemoryLevel, WatchMemory
from podqos.agent.reasons import OOMKill, OOMLevel, WouldEvict
from podqos.eviction.signals import Signal
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.cgroup import ROOT, parent_path
from podqos.kernel.memcg import Kind, MemcgSettings, Memory, oom_total_pages
from podqos.kernel.memory import Machine
from podqos.kernel.oom import OOMSelection, Process, kill, select
from podqos.kernel.reclaim import Taken, kswapd, relieve
from podqos.model.time_units import SECOND_US
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.event_queue import Action, EventPriority
from podqos.sim.engine.gauge import FRACTION_BITS, Gauge, GaugeMark, Planner
from podqos.sim.node.pods import MemoryGroup, SimContainer, SimPod


def laid_out(
    machine: Machine,
    system: Mapping[Kind, Allocation],
    running: Iterable[SimContainer],
    keeping: Iterable[SimPod],
    time_us: int,
) -> Memory:
    """Return all cgroups with what they hold; ``system`` is what is held outside of pods."""
    memory = Memory(machine)
    for kind, want in system.items():
        memory.put(ROOT, kind, want.at(time_us))
        if kind is Kind.ANON and want.debt:
            memory.put(ROOT, Kind.SWAP, want.debt >> FRACTION_BITS)
    for pod in keeping:
        _add(memory, tuple(pod.group.chain()))
        memory.put(pod.group.path, Kind.KERNEL, pod.kept_bytes(time_us))
    for container in running:
        _add(memory, container.groups)
        path = container.path
        for kind, want in _by_kind(container):
            memory.put(path, kind, want.at(time_us))
        swapped = container.swap_bytes()
        if swapped:
            memory.put(path, Kind.SWAP, swapped)
    return memory


def _add(memory: Memory, groups: Sequence[MemoryGroup]) -> None:
    """Make cgroups that are not there yet; the machine is the last."""
    for group in reversed(groups[:-1]):
        if group.path not in memory:
            memory.add(group.path, group.settings)


def _by_kind(container: SimContainer) -> Iterator[tuple[Kind, Allocation]]:
    if container.anon is not None:
        yield Kind.ANON, container.anon
    if container.active_file is not None:
        yield Kind.ACTIVE_FILE, container.active_file
    if container.inactive_file is not None:
        yield Kind.INACTIVE_FILE, container.inactive_file
    for volume in container.tmpfs.values():
        # Kubelets mount it without swap: nothing takes it back, like memory of the kernel's own.
        yield Kind.KERNEL, volume


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


class Killed(Struct, frozen=True):
    """One kill: which container it hits, whether that has ended, and the reasons."""

    container: SimContainer
    because: OOMKill
    has_ended: bool


def next_kill(memory: NodeMemory, group: MemoryGroup, time_us: int, would_evict: WouldEvict | None) -> Killed | None:
    """Return what the kernel kills to make room in ``group``; None where nothing can be killed."""
    total_pages = oom_total_pages(memory.machine, group.settings)
    members = memory.members(group)
    lacking = cuts(members, group, time_us)
    worst = {member: member.worst_process(time_us, lacking.get(member.path, 0)) for member in members}
    selection = select(worst.values(), total_pages, group.path)
    if selection is None:
        return None
    pid = selection.victim.process.pid
    victim = next(member for member, process in worst.items() if process.pid == pid)
    processes = tuple(victim.processes(time_us, lacking.get(victim.path, 0)))
    groups = {victim.path} if victim.groups[0].settings.oom_group else ()
    done = kill(selection, processes, groups, cgroup_version=memory.machine.cgroup_version)
    has_ended = done.group is not None or pid == victim.first_pid
    del worst[victim]
    denied = lacking.get(victim.path, 0)
    freed = (
        victim.usage_bytes(time_us) - victim.tmpfs_bytes(time_us) - denied
        if has_ended
        else selection.victim.process.rss_pages * PAGE_BYTES
    )
    because = OOMKill(
        level=group.level,
        domain=group.path,
        limit_bytes=group.limit_bytes or 0,
        total_pages=total_pages,
        oom_score_adj=victim.plan.oom_score_adj,
        used_pages=selection.victim.used_pages,
        points=selection.victim.points,
        killed_processes=len(processes) if has_ended else 1,
        as_group=done.group is not None,
        freed_bytes=freed,
        kept_bytes=_left_in_files(victim, members, group, time_us) if has_ended else 0,
        would_evict=would_evict,
        denied_bytes=denied,
        container_lives=not has_ended,
    )
    return Killed(victim, _with_runner_up(because, selection, worst), has_ended=has_ended)


def _with_runner_up(because: OOMKill, selection: OOMSelection, others: dict[SimContainer, Process]) -> OOMKill:
    """Return the reasons, with the container that would have been killed otherwise."""
    second = select(others.values(), selection.total_pages, selection.domain)
    if second is None:
        return because
    pid, points = second.victim.process.pid, second.victim.points
    container = next(container for container, process in others.items() if process.pid == pid)
    return replace(
        because,
        runner_up_pod=container.pod.key,
        runner_up_container=container.name,
        runner_up_points=points,
        margin_bytes=(selection.victim.points - points) * PAGE_BYTES,
    )


def cuts(members: Collection[SimContainer], group: MemoryGroup, time_us: int) -> dict[str, int]:
    """Return what containers whose demand steps up now do not get: only the first part of a step fits."""
    lacking = group.excess_bytes(time_us)
    assert group.gauge is not None
    if lacking <= (group.gauge.slope >> FRACTION_BITS) + 1:
        return {}
    total = _steps(members, time_us)
    return {
        container.path: min(step, lacking * step // total)
        for container in members
        if container.anon is not None and (step := min(container.anon.step(time_us), container.anon.at(time_us)))
    }


def unwritten(
    container: SimContainer, members: Collection[SimContainer], group: MemoryGroup, time_us: int
) -> Iterator[tuple[Allocation, int]]:
    """Yield what a container that is killed was writing into volumes in memory, and how much of it does not fit."""
    lacking = group.excess_bytes(time_us)
    total = _steps(members, time_us)
    for volume in container.files:
        step = min(volume.step(time_us), volume.at(time_us))
        yield volume, -(-lacking * step // total) if step else lacking


def _left_in_files(container: SimContainer, members: Collection[SimContainer], group: MemoryGroup, time_us: int) -> int:
    """Return what stays in volumes in memory of a container that is killed."""
    files = unwritten(container, members, group, time_us)
    return sum(volume.at(time_us) - (lacking if volume.step(time_us) else 0) for volume, lacking in files)


def _steps(members: Collection[SimContainer], time_us: int) -> int:
    """Return by how much demands for memory that cannot be reclaimed step up now."""
    growing = (allocation for member in members for allocation in (member.anon, *member.files))
    return sum(min(want.step(time_us), want.at(time_us)) for want in growing if want is not None)


class GaugeSource(NamedTuple):
    """What is used of a signal, in the kernel's count and the kubelet's, and how much there is."""

    usage: Gauge
    working_set: Gauge
    capacity_bytes: int


class MemoryWatch:
    """The levels that the agent of one node watches."""

    def __init__(self, planner: Planner, crossed: Action, *, tells_of_falls: bool) -> None:
        """``tells_of_falls``: cgroup v1 notifies a kubelet in both directions."""
        self._planner = planner
        self._crossed = crossed
        self._fell = crossed if tells_of_falls else lambda _: None
        self._marks: list[GaugeMark] = []
        self.is_shifted_by_cache = False
        """Whether page cache shifts what is watched, until it is asked for again."""

    def watch(self, asked: WatchMemory, sources: Mapping[Signal, GaugeSource], now_us: int) -> None:
        """Watch these levels and no others."""
        for mark in self._marks:
            mark.remove()
        self._marks = []
        self.is_shifted_by_cache = bool(asked.levels) and not asked.through_cache
        for level in asked.levels:
            if level.signal in sources:
                self._add(level, sources[level.signal], now_us, through_cache=asked.through_cache)

    def _add(self, level: MemoryLevel, source: GaugeSource, now_us: int, *, through_cache: bool) -> None:
        gauge, fell = (source.working_set, lambda _: None) if through_cache else (source.usage, self._fell)
        cache_bytes = gauge.at(now_us) - source.working_set.at(now_us)
        # Whole pages are counted: what the agent sees then, every part of it rounded down, is below the level.
        most_bytes = source.capacity_bytes + cache_bytes - level.below_bytes + PAGE_BYTES
        rising, falling = GaugeMark.both_ways(gauge, most_bytes, self._planner, self._crossed, fell)
        is_below = rising.is_reached(now_us)
        (falling if is_below and not level.tell_if_below else rising).arm(now_us)
        self._marks += (rising, falling)
