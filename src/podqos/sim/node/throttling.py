"""CPU on a simulated node: how much each container gets, and when throttling begins or ends.

The kernel model (``kernel.cpu``) divides the CPU. It is asked again only when the result can have changed: a demand
bends, a container crosses its quota, the containers of a pod together cross the pod's, or all cross the capacity of the
machine. While some are throttled it is asked, too, when what containers get stops changing linearly, and when one
begins or ceases to be denied a thousandth of a core, which is what counts as throttled: on nodes with few containers,
and wherever something depends on it, such as work. Elsewhere that is noticed when a demand bends next.

What containers that are short of CPU want and get is added up in ``cpu_ledger``. Others get what they want, and cost
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from podqos.agent.reasons import CPUThrottled, ThrottledBy
from podqos.kernel.cpu import CORE_NANO, CpuBound, CpuCourse, CpuGroup, CpuShare, CpuTree
from podqos.qos.cpu import DEFAULT_SHARES, DEFAULT_WEIGHT
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.curve import Curve, constant
from podqos.sim.engine.event_queue import LAST_TURN, NEVER_US, Action, EventPriority
from podqos.sim.engine.gauge import FRACTION_BITS, Gauge, GaugeMark, Planner
from podqos.sim.engine.integral import CurveArea
from podqos.sim.node.cgroup_readings import CpuSettings
from podqos.sim.node.cpu_ledger import CpuLedger
from podqos.sim.node.cpu_meter import MILLI
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
        return bool(self._bounds) or self.ledger.has_work

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
        if self.ledger.has_work:
            self.wanted.rouse(now_us)
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
        self.wanted.rouse(now_us)
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
        self.wanted.rouse(now_us)
        course = self._divided(now_us, _line if is_exact else _rounded).course(self.cpu_milli << FRACTION_BITS)
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
        if self.wanted.headroom is None and self.wanted.at(now_us) > self.cpu_milli:
            return True
        for path, gauge in self._quotas.items():
            if gauge.headroom is None:
                quota = self._limits_milli.get(path)
                if quota is not None and gauge.at(now_us) > quota:
                    return True
        return False


def _amount(demand: Allocation, time_us: int) -> tuple[int, int]:
    """Return what is wanted at a time, before or after a bend at that time."""
    return demand.fine(time_us) * CORE_NANO, 0


def _rounded(demand: Allocation, time_us: int) -> tuple[int, int]:
    """Return what is wanted from a time on, with the slope as sums round it: 6 ms of CPU in an hour at most."""
    return demand.fine(time_us) * CORE_NANO, demand.slope * CORE_NANO


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
