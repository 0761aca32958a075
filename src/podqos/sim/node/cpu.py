"""Who gets how much of the CPU of a simulated node, who is throttled, and what each got: accounts of containers.

Lines of a look hold until what containers get no longer changes linearly. If the next look comes after that (there are
many containers, and nothing depends on what they get), what they got since is added up by Simpson's rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from podqos.agent.reasons import CPUThrottled, ThrottledBy
from podqos.kernel.cpu import CORE_NANO, CpuBound, CpuCourse, CpuGroup, CpuShare, CpuTree
from podqos.qos.cpu import DEFAULT_SHARES, DEFAULT_WEIGHT
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.curve import Clock, Curve, constant
from podqos.sim.engine.event_queue import LAST_TURN, NEVER_US, Action, EventPriority
from podqos.sim.engine.gauge import FRACTION_BITS, Gauge, GaugeMark, Planner
from podqos.sim.engine.integral import CurveArea, area, span_us
from podqos.sim.node.pods import SimContainer
from podqos.sim.node.settings import CpuSettings

MILLI = CORE_NANO << FRACTION_BITS
"""A thousandth of a core, in the units in which a simulated node divides its CPU."""

CPU_US = 2 * 1000 * MILLI
"""The doubled area of one core for one microsecond."""

_DONE = CPU_US // 1000
"""What may be missing of work that is done: slopes and shares are rounded down."""


CpuPoint = tuple[int, int]
"""What a container wants and gets at a time."""


class CpuLine(Struct, frozen=True, gc=False):
    """What a container that is short of CPU wants and gets, from a time on."""

    since_us: int
    wanted: int
    wanted_slope: int
    granted: int
    granted_slope: int
    quota_period_us: int | None = None
    """The period of the quota that binds; None where it is contention."""

    def wanted_at(self, time_us: int) -> int:
        """Return what it wants at a time."""
        return self.wanted + self.wanted_slope * (time_us - self.since_us)

    def granted_at(self, time_us: int) -> int:
        """Return what it gets at a time."""
        return self.granted + self.granted_slope * (time_us - self.since_us)


class CpuAccount(Struct, frozen=True, gc=False):
    """What one run of a container wanted of the CPU and got."""

    pod: str
    """Its key."""
    container: str
    started_us: int
    ended_us: int
    """When it ended, or the run did."""
    wanted: int
    """As doubled areas, like those below (``CPU_US``)."""
    granted: int
    least: tuple[int, int]
    """The least share it got: so much of what it wanted."""
    throttled_us: int = 0
    """For how long it was denied a thousandth of a core or more."""
    throttled_periods: int = 0
    """Periods in which a quota stopped it."""
    work: int | None = None
    """What it had to do."""
    alone_us: int | None = None
    """How long that takes if it gets all it wants; None where it has no work, or its demand never adds up to it."""
    is_done: bool = False


class CpuMeter:
    """The CPU of one run of a container, from its start to its end."""

    __slots__ = (
        "_period",
        "demand",
        "granted",
        "least",
        "line",
        "settled_us",
        "started_us",
        "throttled_periods",
        "throttled_us",
        "wanted",
    )

    def __init__(self, curve: Curve, started_us: int) -> None:
        self.demand = CurveArea(curve, started_us if curve.clock is Clock.CONTAINER else 0, MILLI)
        self.started_us = self.settled_us = started_us
        self.line: CpuLine | None = None
        """While it is short of CPU."""
        self.wanted = self.granted = 0
        """Up to ``settled_us``."""
        self.least: tuple[int, int] = 1, 1
        """The least share it got: granted, of wanted."""
        self.throttled_us = 0
        self.throttled_periods = 0
        self._period = -1

    def settle(self, now_us: int) -> None:
        """Add up to now."""
        passed_us, line = now_us - self.settled_us, self.line
        if not passed_us:
            return
        if line is None:
            free = self.demand.between(self.settled_us, now_us)
            self.wanted += free
            self.granted += free
        else:
            wanted, granted = line.wanted_at(self.settled_us), line.granted_at(self.settled_us)
            self.wanted += area(wanted, line.wanted_slope, passed_us)
            self.granted += area(granted, line.granted_slope, passed_us)
            ended = line.wanted_at(now_us), line.granted_at(now_us)
            self._note_share(wanted, granted)
            self._note_share(*ended)
            if wanted - granted >= MILLI or ended[0] - ended[1] >= MILLI:
                self.throttled_us += passed_us
                if line.quota_period_us is not None:
                    self._add_periods(line.quota_period_us, now_us)
        self.settled_us = now_us

    @property
    def was_short(self) -> bool:
        """Whether it ever got less than it wanted."""
        return self.least[0] < self.least[1]

    def add(self, points: tuple[CpuPoint, CpuPoint, CpuPoint], now_us: int) -> None:
        """Add up to now by Simpson's rule: from what is wanted and granted when last settled, half-way, and now."""
        passed_us = now_us - self.settled_us
        self.wanted += passed_us * (points[0][0] + points[2][0])
        self.granted += passed_us * (points[0][1] + 4 * points[1][1] + points[2][1]) // 3
        for wanted, granted in points:
            self._note_share(wanted, granted)
        if any(wanted - granted >= MILLI for wanted, granted in points):
            self.throttled_us += passed_us
            if self.line is not None and self.line.quota_period_us is not None:
                self._add_periods(self.line.quota_period_us, now_us)
        self.settled_us, self.line = now_us, None

    def turn_to(self, curve: Curve, now_us: int) -> None:
        """Let the container want something else from now on."""
        self.settle(now_us)
        self.demand = CurveArea(curve, now_us if curve.clock is Clock.CONTAINER else 0, MILLI)

    def account(self, pod: str, container: str, work: WorkLeft | None) -> CpuAccount:
        """Return what was added up."""
        return CpuAccount(
            pod,
            container,
            self.started_us,
            self.settled_us,
            self.wanted,
            self.granted,
            self.least,
            self.throttled_us,
            self.throttled_periods,
            None if work is None else work.work,
            None if work is None else work.alone_us,
            is_done=work is not None and work.is_done,
        )

    def follow(self, line: CpuLine | None, now_us: int) -> None:
        """Go on with another line, or without one."""
        self.settle(now_us)
        self.line = line

    def _note_share(self, wanted: int, granted: int) -> None:
        if wanted > 0 and granted * self.least[1] < self.least[0] * wanted:
            self.least = max(0, granted), wanted

    def _add_periods(self, period_us: int, now_us: int) -> None:
        """Count the periods that a quota cut short: all that began before now and ended after it began to bind.

        Periods begin at multiples of their length (a model: the kernel's begin with the first thread that runs).
        """
        first, last = self.settled_us // period_us, (now_us - 1) // period_us
        self.throttled_periods += last - max(first, self._period + 1) + 1
        self._period = last


class WorkLeft:
    """An amount of CPU time that a container has to get before it ends."""

    __slots__ = ("_done", "_meter", "_planner", "_version", "alone_us", "work")

    def __init__(self, meter: CpuMeter, work_us: int, planner: Planner, done: Callable[[int], None]) -> None:
        self._meter = meter
        self._planner = planner
        self._done = done
        self._version = 0
        self.work = work_us * CPU_US
        """As a doubled area."""
        at_us, left = meter.demand.reached(meter.started_us, self.work - _DONE)
        self.alone_us = None if left else at_us - meter.started_us
        """How long it takes if it gets all it wants; None if that is never, or far away."""
        self.plan(meter.started_us)

    @property
    def is_done(self) -> bool:
        """Whether it got all that it needs."""
        return self._meter.granted >= self.work - _DONE

    def stop(self) -> None:
        """Let it never be done."""
        self._version += 1

    def plan(self, now_us: int) -> None:
        """Plan when it is done if nothing changes any more; the meter is settled."""
        self._version += 1
        meter, left = self._meter, self.work - self._meter.granted - _DONE
        line = meter.line
        if line is None:
            done_us, rest = meter.demand.reached(now_us, left)
        else:
            needed_us, rest = span_us(line.granted_at(now_us), line.granted_slope, left), 0
            done_us = NEVER_US if needed_us is None else now_us + needed_us
        if done_us < NEVER_US:
            self._planner(done_us, EventPriority.LIFE, self._look_again(self._version, is_done=not rest))

    def _look_again(self, version: int, *, is_done: bool) -> Callable[[int], None]:
        def look(now_us: int) -> None:
            if version != self._version:
                return
            if is_done:
                self._version += 1
                self._done(now_us)
            else:
                self._meter.settle(now_us)
                self.plan(now_us)

        return look


class CpuLedger:
    """All accounts of a node."""

    def __init__(self, cpu_milli: int, planner: Planner) -> None:
        self._cores = cpu_milli << FRACTION_BITS
        self._planner = planner
        self._meters: dict[str, CpuMeter] = {}
        """By path: of containers that have work to do, or were short of CPU since they were started."""
        self._works: dict[str, WorkLeft] = {}
        """By path: of containers that end when their work is done."""
        self.short: set[str] = set()
        """The paths of those that get less than they want, be it by less than a thousandth of a core."""
        self.accounts: list[CpuAccount] = []
        """Of containers that have ended, and had work to do or were short of CPU."""
        self.is_metered = False
        """Whether someone asks what containers got, and not only at their end."""
        self._course: CpuCourse | None = None
        """As of the last look, while some are short of CPU."""
        self._since_us = 0

    @property
    def has_work(self) -> bool:
        """Whether a container ends when its work is done."""
        return bool(self._works)

    @property
    def has_to_be_exact(self) -> bool:
        """Whether something depends on what containers get: one ends when its work is done, or someone measures."""
        return self.is_metered or bool(self._works)

    def start(self, container: SimContainer, done: Action) -> None:
        """Open an account for a container that has work to do."""
        work_us = container.demand.work_us
        if work_us is not None:
            self._works[container.path] = WorkLeft(self._meter(container), work_us, self._planner, done)

    def turn_to(self, container: SimContainer, curve: Curve, now_us: int) -> None:
        """Note that a container follows another demand from now on."""
        self._meter(container).turn_to(curve, now_us)

    def close(self, containers: Iterable[SimContainer], now_us: int) -> None:
        """Close the accounts of containers that end, or of all at the end of a run."""
        for container in containers:
            meter, work = self._meters.pop(container.path, None), self._works.pop(container.path, None)
            self.short.discard(container.path)
            if meter is not None:
                meter.settle(now_us)
                if work is not None or meter.was_short:
                    self.accounts.append(meter.account(container.pod.key, container.name, work))
            if work is not None:
                work.stop()

    def granted(self, container: SimContainer, now_us: int) -> int:
        """Return what a container got since it was started, as a doubled area."""
        meter = self._meter(container)
        meter.settle(now_us)
        return meter.granted

    def _meter(self, container: SimContainer) -> CpuMeter:
        meter = self._meters.get(container.path)
        if meter is None:
            meter = self._meters[container.path] = CpuMeter(container.demand.cpu_milli, container.started_us)
        return meter

    # ---- what they get -------------------------------------------------------------------------------------------

    def ease(self, now_us: int) -> None:
        """Note that all containers get what they want from now on."""
        self._course = None
        for path in sorted(self.short):
            self._follow(path, None, now_us)
        self.short.clear()

    def follow(
        self,
        course: CpuCourse,
        running: Mapping[str, SimContainer],
        settings: Mapping[str, CpuSettings],
        now_us: int,
    ) -> None:
        """Note what containers want and get from now on."""
        self._course, self._since_us = course, now_us
        for path, container in running.items():
            share = course.shares[path]
            if share.denied_nano > 0:
                self._meter(container)
                self.short.add(path)
                self._follow(path, _line(share, settings, now_us), now_us)
            elif path in self.short:
                self.short.discard(path)
                self._follow(path, None, now_us)

    def _follow(self, path: str, line: CpuLine | None, now_us: int) -> None:
        self._meters[path].follow(line, now_us)
        work = self._works.get(path)
        if work is not None:
            work.plan(now_us)

    def catch_up(self, tree: CpuTree | None, now_us: int) -> None:
        """Add up to now what changed other than linearly since the last look; ``tree`` is as it was then."""
        course, since_us = self._course, self._since_us
        if course is None or tree is None or now_us <= since_us + (course.steady_us or NEVER_US):
            return
        middle_us = (since_us + now_us) // 2
        begun = {path: (share.demand_nano, share.granted_nano) for path, share in course.shares.items()}
        middle, ended = (self._granted(tree, course, at_us - since_us) for at_us in (middle_us, now_us))
        for path, meter in self._meters.items():
            if path in begun:
                points = begun[path], middle[path], ended[path]
                if any(wanted > granted for wanted, granted in points):
                    meter.settle(since_us)
                    meter.add(points, now_us)
        self._course = None

    def _granted(self, tree: CpuTree, course: CpuCourse, passed_us: int) -> dict[str, CpuPoint]:
        for path, share in course.shares.items():
            tree.demand(path, max(0, share.demand_nano + share.demand_slope * passed_us))
        return tree.granted(self._cores)


def _line(share: CpuShare, settings: Mapping[str, CpuSettings], now_us: int) -> CpuLine:
    period_us = None
    if share.bound is CpuBound.QUOTA and share.bound_at is not None:
        period_us = settings[share.bound_at].period_usec
    return CpuLine(now_us, share.demand_nano, share.demand_slope, share.granted_nano, share.granted_slope, period_us)


_SYSTEM = "/system.slice"
_SYSTEM_WEIGHT = {1: DEFAULT_SHARES, 2: DEFAULT_WEIGHT}
"""The default weight of a systemd slice: ``cpu.shares`` or ``cpu.weight``."""

_BY = {
    None: ThrottledBy.NOTHING,
    CpuBound.QUOTA: ThrottledBy.QUOTA,
    CpuBound.CONTENTION: ThrottledBy.CONTENTION,
}

_UNBOUND = ThrottledBy.NOTHING, False

_FEW = 8
"""With so many containers it costs little to look whenever what they get stops changing linearly."""

Note = Callable[[SimContainer, CPUThrottled, int], None]


class NodeCpu:
    """The CPUs of one node."""

    def __init__(
        self, cpu_milli: int, cgroup_version: int, planner: Planner, clock: Callable[[], int], note: Note
    ) -> None:
        self.cpu_milli = cpu_milli
        self._clock = clock
        self.system: Allocation | None = None
        self.wanted = Gauge()
        self.wants = 0
        """How often a service has wanted another amount."""
        self.running: dict[str, SimContainer] = {}
        """The containers that want CPU, by path."""
        self._system_weight = _SYSTEM_WEIGHT[cgroup_version]
        self._settings: dict[str, CpuSettings] = {}
        self._limits_milli: dict[str, int] = {}
        """By path of a cgroup with a quota: how much that is."""
        self._quotas: dict[str, Gauge] = {}
        """By path of such a cgroup: what all in it want."""
        self._planner = planner
        self._note = note
        self._bounds: dict[str, tuple[ThrottledBy, bool]] = {}
        """By path of a throttled container: by what, and whether that is the limit of its pod."""
        self.ledger = CpuLedger(cpu_milli, planner)
        self._tree: CpuTree | None = None
        """Made anew when cgroups or containers come, change or go."""
        self._looks_at_us = -1
        self._due_us = NEVER_US
        self._watch(self.wanted, cpu_milli)

    # ---- cgroups and containers ----------------------------------------------------------------------------------

    def write(self, path: str, settings: CpuSettings) -> None:
        """Apply the files of a cgroup."""
        before = self._settings.get(path)
        if before == settings:
            return
        if self.running:
            self._change(self._clock())
        self._settings[path] = settings
        limit_milli = settings.quota_milli
        if limit_milli is None:
            self._limits_milli.pop(path, None)
        else:
            self._limits_milli[path] = limit_milli
        if before is not None and before.quota_usec != settings.quota_usec:
            self._limit_anew(path, self._clock())

    def _limit_anew(self, path: str, now_us: int) -> None:
        """Watch another quota of a cgroup in which containers run already."""
        for mark in () if path not in self._quotas else tuple(self._quotas[path].marks):
            mark.remove()
        if path in self._limits_milli and path not in self._quotas:
            gauge = self._quota(path, now_us)
            for container in self.running.values():
                if container.cpu is not None and any(group.path == path for group in container.groups):
                    container.cpu.join(gauge, now_us)
        elif path in self._limits_milli:
            self._watch(self._quotas[path], self._limits_milli[path])
        if path in self._quotas:
            self._quotas[path].change(now_us, 0, 0)

    def remove(self, path: str) -> None:
        """Forget a cgroup."""
        self._settings.pop(path, None)
        self._limits_milli.pop(path, None)
        self._quotas.pop(path, None)

    def _change(self, now_us: int) -> None:
        """Note that the cgroups or containers are about to change: look again, but before that add up what was."""
        self.ledger.catch_up(self._tree, now_us)
        self._tree = None
        if self.ledger.short:
            self.look(now_us)

    @property
    def is_throttled(self) -> bool:
        """Whether any container gets less than it wants."""
        return bool(self._bounds)

    @property
    def is_followed(self) -> bool:
        """Whether it matters how demands bend, though no sum crosses a mark: one is throttled, or has work to do."""
        return bool(self._bounds) or bool(self.ledger.short) or self.ledger.has_work

    def throttled_by(self, container: SimContainer) -> ThrottledBy:
        """Return what keeps a container from the CPU it wants, as of the last check."""
        return self._bounds.get(container.path, _UNBOUND)[0]

    def begin_system(self, curve: Curve, now_us: int) -> None:
        """Start what runs outside of pods."""
        self.system = Allocation(curve, (self.wanted,), self._noticing_if_short, now_us)
        self._tree = None

    def start(self, container: SimContainer, now_us: int, done: Action) -> None:
        """Add a container that starts; ``done`` is called when its work is, if it has any."""
        self._change(now_us)
        limits = self._limits_milli
        gauges = (self.wanted, *(self._quota(group.path, now_us) for group in container.groups if group.path in limits))
        container.cpu = Allocation(container.demand.cpu_milli, gauges, self._noticing, now_us)
        self.running[container.path] = container
        self.ledger.start(container, done)
        self.look(now_us)

    def end(self, container: SimContainer, now_us: int) -> None:
        """Remove a container."""
        if container.cpu is None:
            return
        self._change(now_us)
        container.cpu.end(now_us)
        container.cpu = None
        del self.running[container.path]
        self._bounds.pop(container.path, None)
        self.ledger.close((container,), now_us)
        self.look(now_us)

    def want(self, container: SimContainer, cpu_milli: int, now_us: int) -> None:
        """Let a container want that much from now on: the demand of a service follows from its requests."""
        if container.cpu is not None and container.cpu.curve.at(0) != cpu_milli:
            curve = constant(cpu_milli)
            self.ledger.catch_up(self._tree, now_us)
            container.cpu.turn_to(curve, now_us)
            self.wants += 1
            self.ledger.turn_to(container, curve, now_us)
            self.look(now_us)

    def could_get(self, container: SimContainer, cpu_milli: int, now_us: int) -> tuple[float, ThrottledBy]:
        """Return how much CPU a container would get, in millicores, if it wanted that much, and what binds it."""
        assert container.cpu is not None
        if sum(other.cpu is not None for other in container.pod.running) == 1:
            limits = [self._limits_milli[group.path] for group in container.groups if group.path in self._limits_milli]
            most = min([cpu_milli, *limits])
            others = self.wanted.fine(now_us) - container.cpu.fine(now_us)
            if others + (most << FRACTION_BITS) <= self.cpu_milli << FRACTION_BITS:
                # There is enough for all: only its own limits bind.
                return float(most), ThrottledBy.QUOTA if most < cpu_milli else ThrottledBy.NOTHING
        tree = self._divided(now_us, _amount)
        tree.demand(container.path, cpu_milli * MILLI)
        share = tree.course(self.cpu_milli << FRACTION_BITS).shares[container.path]
        return share.granted_nano / MILLI, _BY[share.bound]

    def used_milli_us(self, container: SimContainer, now_us: int) -> int:
        """Return how much CPU a container got since it was started: thousandths of a core, times microseconds."""
        if not self.ledger.is_metered:
            self.ledger.is_metered = True
            self._change(now_us)
        return self.ledger.granted(container, now_us) // (2 * MILLI)

    def close(self, now_us: int) -> None:
        """End all accounts: of containers on a machine that is lost, or at the end of a run."""
        self.ledger.catch_up(self._tree, now_us)
        self.ledger.close(self.running.values(), now_us)

    def _quota(self, path: str, now_us: int) -> Gauge:
        """Return what all in a cgroup with a quota want."""
        gauge = self._quotas.get(path)
        if gauge is None:
            gauge = self._quotas[path] = Gauge()
            gauge.since_us = now_us
            self._watch(gauge, self._limits_milli[path])
        return gauge

    def _watch(self, gauge: Gauge, limit: int) -> None:
        """Look whenever a gauge passes a limit, upwards or downwards."""
        rising, _ = GaugeMark.both_ways(gauge, limit, self._planner, self.look, self.look)
        rising.is_armed = True

    def _noticing(self, time_us: int, priority: EventPriority, action: Action, turn: int = LAST_TURN) -> None:
        """Plan the next bend of a demand, and a look at what it means."""

        def bend(now_us: int) -> None:
            action(now_us)
            self.look(now_us)

        self._planner(time_us, priority, bend, turn)

    def _noticing_if_short(self, time_us: int, priority: EventPriority, action: Action, turn: int = LAST_TURN) -> None:
        """Plan the next bend of a demand, which matters where containers are short of CPU, or have work to do."""

        def bend(now_us: int) -> None:
            action(now_us)
            if self.ledger.short or self.ledger.has_to_be_exact:
                self.look(now_us)

        self._planner(time_us, priority, bend, turn)

    # ---- who gets how much ---------------------------------------------------------------------------------------

    def look(self, now_us: int) -> None:
        """Check, after all other events of this moment, whether throttling begins or ends for a container."""
        if self._looks_at_us != now_us:
            self._looks_at_us = now_us
            self._planner(now_us, EventPriority.SHARING, self._look)

    def shares(self, time_us: int) -> dict[str, CpuShare]:
        """Divide the CPU; by path, in the units of ``MILLI``."""
        return self._divided(time_us, _amount).shares(self.cpu_milli << FRACTION_BITS)

    def granted_milli(self, time_us: int) -> dict[str, int]:
        """Return what each container gets, in thousandths of a core, by path."""
        if not self.running:
            return {}
        granted = self._divided(time_us, _amount).granted(self.cpu_milli << FRACTION_BITS)
        return {path: granted[path][1] // MILLI for path in self.running}

    def _divided(self, time_us: int, line: Callable[[Allocation, int], tuple[int, int]]) -> CpuTree:
        """Return the tree of cgroups with what is wanted at a time."""
        if self._tree is None:
            self._tree = CpuTree(self._groups())
        if self.system is not None:
            self._tree.demand(_SYSTEM, *line(self.system, time_us))
        for path, container in self.running.items():
            assert container.cpu is not None
            self._tree.demand(path, *line(container.cpu, time_us))
        return self._tree

    def _groups(self) -> Iterator[CpuGroup]:
        """Yield the groups, for units of ``MILLI``: a machine may have a part of a core, and slopes are fine."""
        if self.system is not None:
            yield CpuGroup(_SYSTEM, self._system_weight)
        seen: set[str] = set()
        for container in self.running.values():
            for group in container.groups[:-1]:
                if group.path not in seen:
                    seen.add(group.path)
                    yield self._group(group.path)

    def _group(self, path: str) -> CpuGroup:
        setting = self._settings.get(path)
        if setting is None:
            return CpuGroup(path)
        quota = None if setting.quota_usec is None else setting.quota_usec * (1000 << FRACTION_BITS)
        return CpuGroup(path, setting.weight, quota, setting.period_usec)

    def _look(self, now_us: int) -> None:
        self._looks_at_us = -1
        self.ledger.catch_up(self._tree, now_us)
        is_exact = self.ledger.has_to_be_exact
        if not self._bounds and not self._may_bind(now_us) and not (is_exact and self._is_moving):
            self.ledger.ease(now_us)
            return
        course = self._divided(now_us, _wanted_line if is_exact else _rounded).course(self.cpu_milli << FRACTION_BITS)
        for path, container in self.running.items():
            share = course.shares[path]
            denied = share.denied_nano - (_lag(container, share, now_us) if is_exact else 0)
            bound = _BY[share.bound if denied >= MILLI else None]
            of_pod = bound is ThrottledBy.QUOTA and share.bound_at == container.pod.group.path
            if (bound, of_pod) != self._bounds.get(path, _UNBOUND):
                if bound is ThrottledBy.NOTHING:
                    del self._bounds[path]
                else:
                    self._bounds[path] = bound, of_pod
                wanted, granted = share.demand_nano // MILLI, share.granted_nano // MILLI
                granted = wanted if bound is ThrottledBy.NOTHING else granted
                self._note(container, CPUThrottled(wanted, granted, bound, of_pod), now_us)
        self.ledger.follow(course, self.running, self._settings, now_us)
        if is_exact or len(self.running) <= _FEW:
            self._plan_next(course, now_us)

    @property
    def _is_moving(self) -> bool:
        """Whether a demand rises or falls."""
        system = self.system is not None and bool(self.system.slope)
        return system or any(container.cpu is not None and container.cpu.slope for container in self.running.values())

    def _plan_next(self, course: CpuCourse, now_us: int) -> None:
        """Look when what containers get no longer changes as it does, or one begins or ceases to be throttled."""
        changes = [] if course.steady_us is None else [course.steady_us]
        for path, container in self.running.items():
            share = course.shares[path]
            denied, slope = share.denied_nano - _lag(container, share, now_us), share.denied_slope
            if slope > 0 and denied < MILLI:
                changes.append(-((denied - MILLI) // slope))
            elif slope < 0 and denied >= MILLI:
                changes.append((denied - MILLI) // -slope + 1)
        self._due_us = now_us + min(changes) if changes else NEVER_US
        if changes:
            self._planner(self._due_us, EventPriority.SHARING, self._look_again)

    def _look_again(self, now_us: int) -> None:
        if now_us == self._due_us and now_us != self._looks_at_us:
            self._look(now_us)

    def _may_bind(self, now_us: int) -> bool:
        if self.wanted.at(now_us) > self.cpu_milli:
            return True
        quotas = ((gauge, self._limits_milli.get(path)) for path, gauge in self._quotas.items())
        return any(quota is not None and gauge.at(now_us) > quota for gauge, quota in quotas)


def _amount(demand: Allocation, time_us: int) -> tuple[int, int]:
    """Return what is wanted at a time, before or after a bend at that time."""
    return demand.fine(time_us) * CORE_NANO, 0


def _rounded(demand: Allocation, time_us: int) -> tuple[int, int]:
    """Return what is wanted from a time on, with the slope as sums round it: 6 ms of CPU in an hour at most."""
    return demand.fine(time_us) * CORE_NANO, demand.slope * CORE_NANO


def _wanted_line(demand: Allocation, time_us: int) -> tuple[int, int]:
    """Return what is wanted from a time on: how much, and how fast that grows."""
    if not demand.slope:
        return demand.fine(time_us) * CORE_NANO, 0
    return CurveArea(demand.curve, demand.offset_us, MILLI).line(time_us)[:2]


def _lag(container: SimContainer, share: CpuShare, now_us: int) -> int:
    """Return by how much the sums of a node are behind a demand, whose slope they round: throttled is what they say."""
    demand = container.cpu
    assert demand is not None
    return share.demand_nano - demand.fine(now_us) * CORE_NANO if demand.slope else 0
