"""CPU on a simulated node: how much each container gets, and when throttling begins or ends.

The kernel model (``kernel.cpu``) divides the CPU. It is asked again only when the result can have changed: a demand
bends, a container crosses its quota, the containers of a pod together cross the pod's, or all cross the capacity of the
machine. While some are short of CPU it is asked, too, when what they get stops changing linearly, and when one begins
or ceases to be denied a thousandth of a core, which is what counts as throttled.

What containers that are short of CPU want and get is added up by their meters (``cpu_meter``). Others get what they
want, and cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from podqos.agent.reasons import CPUThrottled, ThrottledBy
from podqos.kernel.cpu import CORE_NANO, CpuBound, CpuGroup, CpuShare, cpu_course, cpu_shares
from podqos.qos.cpu import DEFAULT_SHARES, DEFAULT_WEIGHT
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.curve import Curve, constant
from podqos.sim.engine.event_queue import LAST_TURN, NEVER_US, Action, EventPriority
from podqos.sim.engine.gauge import FRACTION_BITS, Gauge, GaugeMark, Planner
from podqos.sim.engine.integral import CurveArea
from podqos.sim.node.cgroup_readings import CpuSettings
from podqos.sim.node.cpu_meter import MILLI, CpuAccount, CpuLine, CpuMeter, WorkLeft
from podqos.sim.node.pods import SimContainer

_SYSTEM = "/system.slice"
_SYSTEM_WEIGHT = {1: DEFAULT_SHARES, 2: DEFAULT_WEIGHT}
"""The default weight of a systemd slice: ``cpu.shares`` or ``cpu.weight``."""

_BY = {
    None: ThrottledBy.NOTHING,
    CpuBound.QUOTA: ThrottledBy.QUOTA,
    CpuBound.CONTENTION: ThrottledBy.CONTENTION,
}

_UNBOUND = ThrottledBy.NOTHING, False

Note = Callable[[SimContainer, CPUThrottled, int], None]


class NodeCpu:
    """The CPUs of one node."""

    def __init__(self, cpu_milli: int, cgroup_version: int, planner: Planner, note: Note) -> None:
        self.cpu_milli = cpu_milli
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
        self._meters: dict[str, CpuMeter] = {}
        """By path: of containers that have work to do, or were short of CPU since they were started."""
        self._works: dict[str, WorkLeft] = {}
        """By path: of containers that end when their work is done."""
        self.accounts: list[CpuAccount] = []
        """Of containers that have ended, and had work to do or were short of CPU."""
        self._short: set[str] = set()
        """The paths of those that get less than they want, be it by less than a thousandth of a core."""
        self._looks_at_us = -1
        self._due_us = NEVER_US
        self._watch(self.wanted, cpu_milli)

    # ---- cgroups and containers ----------------------------------------------------------------------------------

    def write(self, path: str, settings: CpuSettings) -> None:
        """Apply the files of a cgroup."""
        self._settings[path] = settings
        limit_milli = settings.quota_milli
        if limit_milli is None:
            self._limits_milli.pop(path, None)
        else:
            self._limits_milli[path] = limit_milli

    def remove(self, path: str) -> None:
        """Forget a cgroup."""
        self._settings.pop(path, None)
        self._limits_milli.pop(path, None)
        self._quotas.pop(path, None)

    @property
    def is_throttled(self) -> bool:
        """Whether any container gets less than it wants."""
        return bool(self._bounds)

    def throttled_by(self, container: SimContainer) -> ThrottledBy:
        """Return what keeps a container from the CPU it wants, as of the last check."""
        return self._bounds.get(container.path, _UNBOUND)[0]

    def begin_system(self, curve: Curve, now_us: int) -> None:
        """Start what runs outside of pods."""
        self.system = Allocation(curve, (self.wanted,), self._noticing_if_short, now_us)

    def start(self, container: SimContainer, now_us: int, done: Action | None = None) -> None:
        """Add a container that starts; ``done`` is called when its work is, if it has any."""
        limits = self._limits_milli
        gauges = (self.wanted, *(self._quota(group.path, now_us) for group in container.groups if group.path in limits))
        container.cpu = Allocation(container.demand.cpu_milli, gauges, self._noticing, now_us)
        self.running[container.path] = container
        work_us = container.demand.work_us
        if work_us is not None and done is not None:
            self._works[container.path] = WorkLeft(self._meter(container), work_us, self._planner, done)
        self.look(now_us)

    def end(self, container: SimContainer, now_us: int) -> None:
        """Remove a container."""
        if container.cpu is None:
            return
        container.cpu.end(now_us)
        container.cpu = None
        del self.running[container.path]
        self._bounds.pop(container.path, None)
        self._short.discard(container.path)
        self._close(container, now_us)
        self.look(now_us)

    def close(self, now_us: int) -> None:
        """End all accounts: of containers on a machine that is lost, or at the end of a run."""
        for container in self.running.values():
            self._close(container, now_us)

    def _close(self, container: SimContainer, now_us: int) -> None:
        meter, work = self._meters.pop(container.path, None), self._works.pop(container.path, None)
        if meter is not None:
            meter.settle(now_us)
            self.accounts.append(meter.account(container.pod.key, container.name, work))
        if work is not None:
            work.stop()

    def want(self, container: SimContainer, cpu_milli: int, now_us: int) -> None:
        """Let a container want that much from now on: the demand of a service follows from its requests."""
        if container.cpu is not None and container.cpu.curve.at(0) != cpu_milli:
            curve = constant(cpu_milli)
            container.cpu.turn_to(curve, now_us)
            self.wants += 1
            self._meter(container).turn_to(curve, now_us)
            self.look(now_us)

    def could_get(self, container: SimContainer, cpu_milli: int, now_us: int) -> tuple[float, ThrottledBy]:
        """Return how much CPU a container would get, in millicores, if it wanted that much, and what binds it."""
        assert container.cpu is not None
        self.wanted.rouse(now_us)
        if sum(other.cpu is not None for other in container.pod.running) == 1:
            limits = [self._limits_milli[group.path] for group in container.groups if group.path in self._limits_milli]
            most = min([cpu_milli, *limits])
            others = self.wanted.fine(now_us) - container.cpu.fine(now_us)
            if others + (most << FRACTION_BITS) <= self.cpu_milli << FRACTION_BITS:
                # There is enough for all: only its own limits bind.
                return float(most), ThrottledBy.QUOTA if most < cpu_milli else ThrottledBy.NOTHING
        groups = [
            replace(group, demand_nano=cpu_milli * MILLI) if group.path == container.path else group
            for group in self._groups(now_us, _amount)
        ]
        share = cpu_shares(groups, self.cpu_milli << FRACTION_BITS)[container.path]
        return share.granted_nano / MILLI, _BY[share.bound]

    def _meter(self, container: SimContainer) -> CpuMeter:
        meter = self._meters.get(container.path)
        if meter is None:
            meter = self._meters[container.path] = CpuMeter(container.demand.cpu_milli, container.started_us)
        return meter

    def _quota(self, path: str, now_us: int) -> Gauge:
        """Return what all in a cgroup with a quota want."""
        gauge = self._quotas.get(path)
        if gauge is None:
            gauge = self._quotas[path] = Gauge()
            gauge.since_us = now_us
            self._watch(gauge, self._limits_milli[path])
        return gauge

    def _watch(self, gauge: Gauge, limit: int) -> None:
        """Look whenever a gauge passes a limit, upwards or downwards, be it by next to nothing."""
        rising, falling = GaugeMark.both_ways(gauge, limit, self._planner, self.look, self.look)
        rising.level = falling.level = (limit << FRACTION_BITS) + 1
        rising.is_armed = True

    def _noticing(self, time_us: int, priority: EventPriority, action: Action, turn: int = LAST_TURN) -> None:
        """Plan the next bend of a demand, and a look at what it means."""

        def bend(now_us: int) -> None:
            action(now_us)
            self.look(now_us)

        self._planner(time_us, priority, bend, turn)

    def _noticing_if_short(self, time_us: int, priority: EventPriority, action: Action, turn: int = LAST_TURN) -> None:
        """Plan the next bend of a demand, which matters to those that are short of CPU."""

        def bend(now_us: int) -> None:
            action(now_us)
            if self._short:
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
        return cpu_shares(self._groups(time_us, _amount), self.cpu_milli << FRACTION_BITS)

    def _groups(self, time_us: int, line: Callable[[Allocation, int], tuple[int, int]]) -> Iterator[CpuGroup]:
        """Yield the groups in the units of ``MILLI``: a machine may have a part of a core, and slopes are fine."""
        if self.system is not None:
            wanted, slope = line(self.system, time_us)
            yield CpuGroup(_SYSTEM, self._system_weight, demand_nano=wanted, demand_slope=slope)
        seen: set[str] = set()
        for container in self.running.values():
            for group in container.groups[1:-1]:
                if group.path not in seen:
                    seen.add(group.path)
                    yield self._group(group.path, 0, 0)
            assert container.cpu is not None
            yield self._group(container.path, *line(container.cpu, time_us))

    def _group(self, path: str, demand: int, slope: int) -> CpuGroup:
        setting = self._settings.get(path)
        if setting is None:
            return CpuGroup(path, demand_nano=demand, demand_slope=slope)
        quota = None if setting.quota_usec is None else setting.quota_usec * (1000 << FRACTION_BITS)
        return CpuGroup(path, setting.weight, quota, setting.period_usec, demand, demand_slope=slope)

    def _look(self, now_us: int) -> None:
        self._looks_at_us = -1
        if not self._bounds and not self._may_bind(now_us):
            for path in sorted(self._short):
                self._follow(path, None, now_us)
            return
        self.wanted.rouse(now_us)
        course = cpu_course(self._groups(now_us, _line), self.cpu_milli << FRACTION_BITS)
        changes = [] if course.steady_us is None else [course.steady_us]
        for path, container in self.running.items():
            share = course.shares[path]
            denied, slope = share.denied_nano - _lag(container, share, now_us), share.denied_slope
            bound = _BY[share.bound if denied >= MILLI else None]
            of_pod = bound is ThrottledBy.QUOTA and share.bound_at == container.pod.group.path
            if (bound, of_pod) != self._bounds.get(path, _UNBOUND):
                if bound is ThrottledBy.NOTHING:
                    del self._bounds[path]
                else:
                    self._bounds[path] = bound, of_pod
                wanted, granted = share.demand_nano // MILLI, share.granted_nano // MILLI
                self._note(container, CPUThrottled(wanted, granted, bound, of_pod), now_us)
            if slope > 0 and denied < MILLI:
                changes.append(-((denied - MILLI) // slope))
            elif slope < 0 and denied >= MILLI:
                changes.append((denied - MILLI) // -slope + 1)
            if share.denied_nano or path in self._short:
                self._follow(path, self._follow_line(share, now_us) if share.denied_nano else None, now_us)
        self._due_us = now_us + min(changes) if changes else NEVER_US
        if changes:
            self._planner(self._due_us, EventPriority.SHARING, self._look_again)

    def _look_again(self, now_us: int) -> None:
        """Look when what containers get no longer changes as it did, unless that is done anyway."""
        if now_us == self._due_us and now_us != self._looks_at_us:
            self._look(now_us)

    def _follow_line(self, share: CpuShare, now_us: int) -> CpuLine:
        period_us = None
        if share.bound is CpuBound.QUOTA and share.bound_at is not None:
            period_us = self._settings[share.bound_at].period_usec
        return CpuLine(
            now_us, share.demand_nano, share.demand_slope, share.granted_nano, share.granted_slope, period_us
        )

    def _follow(self, path: str, line: CpuLine | None, now_us: int) -> None:
        """Let a container go on with what it gets from now on; None is all that it wants."""
        if line is None:
            self._short.discard(path)
        else:
            self._short.add(path)
        self._meter(self.running[path]).follow(line, now_us)
        work = self._works.get(path)
        if work is not None:
            work.plan(now_us)

    def _may_bind(self, now_us: int) -> bool:
        if self.wanted.headroom is None and self.wanted.fine(now_us) > self.cpu_milli << FRACTION_BITS:
            return True
        for path, gauge in self._quotas.items():
            if gauge.headroom is None:
                quota = self._limits_milli.get(path)
                if quota is not None and gauge.fine(now_us) > quota << FRACTION_BITS:
                    return True
        return False


def _amount(demand: Allocation, time_us: int) -> tuple[int, int]:
    """Return what is wanted at a time, before or after a bend at that time."""
    return demand.fine(time_us) * CORE_NANO, 0


def _line(demand: Allocation, time_us: int) -> tuple[int, int]:
    """Return what is wanted from a time on: how much, and how fast that grows."""
    if not demand.slope:
        return demand.fine(time_us) * CORE_NANO, 0
    return CurveArea(demand.curve, demand.offset_us, MILLI).line(time_us)[:2]


def _lag(container: SimContainer, share: CpuShare, now_us: int) -> int:
    """Return by how much the sums of a node are behind a demand, whose slope they round: throttled is what they say."""
    demand = container.cpu
    assert demand is not None
    return share.demand_nano - demand.fine(now_us) * CORE_NANO if demand.slope else 0
