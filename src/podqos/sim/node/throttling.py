"""CPU on a simulated node: how much each container gets, and when throttling begins or ends.

The kernel model (``kernel.cpu``) divides the CPU. It is asked again only when the result can have changed: a demand
bends, a container crosses its quota, the containers of a pod together cross the pod's, or all cross the capacity of the
machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from podqos.agent.reasons import CPUThrottled, ThrottledBy
from podqos.kernel.cpu import CORE_NANO, CpuBound, CpuGroup, CpuShare, cpu_shares
from podqos.qos.cpu import DEFAULT_SHARES, DEFAULT_WEIGHT
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.curve import constant
from podqos.sim.engine.event_queue import LAST_TURN, Action, EventPriority
from podqos.sim.engine.gauge import Gauge, GaugeMark, Planner
from podqos.sim.node.cgroup_readings import CpuSettings
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
        self._looks_at_us = -1
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

    def start(self, container: SimContainer, now_us: int) -> None:
        """Add a container that starts."""
        limits = self._limits_milli
        gauges = (self.wanted, *(self._quota(group.path, now_us) for group in container.groups if group.path in limits))
        container.cpu = Allocation(container.demand.cpu_milli, gauges, self._noticing, now_us)
        self.running[container.path] = container
        self.look(now_us)

    def end(self, container: SimContainer, now_us: int) -> None:
        """Remove a container."""
        if container.cpu is None:
            return
        container.cpu.end(now_us)
        container.cpu = None
        del self.running[container.path]
        self._bounds.pop(container.path, None)
        self.look(now_us)

    def want(self, container: SimContainer, cpu_milli: int, now_us: int) -> None:
        """Let a container want that much from now on: the demand of a service follows from its requests."""
        if container.cpu is not None and container.cpu.curve.at(0) != cpu_milli:
            container.cpu.turn_to(constant(cpu_milli), now_us)
            self.look(now_us)

    def could_get(self, container: SimContainer, cpu_milli: int, now_us: int) -> tuple[float, ThrottledBy]:
        """Return how much CPU a container would get, in millicores, if it wanted that much, and what binds it."""
        assert container.cpu is not None
        self.wanted.rouse(now_us)
        groups = [
            replace(group, demand_nano=cpu_milli * CORE_NANO) if group.path == container.path else group
            for group in self._groups(now_us)
        ]
        share = cpu_shares(groups, self.cpu_milli)[container.path]
        return share.granted_nano / CORE_NANO, _BY[share.bound]

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

    # ---- who gets how much ---------------------------------------------------------------------------------------

    def look(self, now_us: int) -> None:
        """Check, after all other events of this moment, whether throttling begins or ends for a container."""
        if self._looks_at_us != now_us:
            self._looks_at_us = now_us
            self._planner(now_us, EventPriority.SHARING, self._look)

    def shares(self, time_us: int) -> dict[str, CpuShare]:
        """Divide the CPU; by path, in thousandths of the model's units."""
        return cpu_shares(self._groups(time_us), self.cpu_milli)

    def _groups(self, time_us: int) -> Iterator[CpuGroup]:
        """Yield the groups in units of 10⁻¹² cores, so that a machine may have a part of a core."""
        if self.system is not None:
            yield CpuGroup(_SYSTEM, self._system_weight, demand_nano=self.system.at(time_us) * CORE_NANO)
        seen: set[str] = set()
        for container in self.running.values():
            for group in container.groups[1:-1]:
                if group.path not in seen:
                    seen.add(group.path)
                    yield self._group(group.path, 0)
            assert container.cpu is not None
            yield self._group(container.path, container.cpu.at(time_us) * CORE_NANO)

    def _group(self, path: str, demand: int) -> CpuGroup:
        setting = self._settings.get(path)
        if setting is None:
            return CpuGroup(path, demand_nano=demand)
        quota = None if setting.quota_usec is None else setting.quota_usec * 1000
        return CpuGroup(path, setting.weight, quota, setting.period_usec, demand)

    def _look(self, now_us: int) -> None:
        self._looks_at_us = -1
        if not self._bounds and not self._may_bind(now_us):
            return
        self.wanted.rouse(now_us)
        shares = self.shares(now_us)
        for path, container in self.running.items():
            share = shares[path]
            bound = _BY[share.bound if share.denied_nano >= CORE_NANO else None]
            of_pod = bound is ThrottledBy.QUOTA and share.bound_at == container.pod.group.path
            if (bound, of_pod) != self._bounds.get(path, _UNBOUND):
                if bound is ThrottledBy.NOTHING:
                    del self._bounds[path]
                else:
                    self._bounds[path] = bound, of_pod
                wanted, granted = share.demand_nano // CORE_NANO, share.granted_nano // CORE_NANO
                self._note(container, CPUThrottled(wanted, granted, bound, of_pod), now_us)

    def _may_bind(self, now_us: int) -> bool:
        if self.wanted.headroom is None and self.wanted.at(now_us) > self.cpu_milli:
            return True
        for path, gauge in self._quotas.items():
            if gauge.headroom is None:
                quota = self._limits_milli.get(path)
                if quota is not None and gauge.at(now_us) > quota:
                    return True
        return False
