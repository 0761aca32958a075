"""The CPU accounts of one node: a meter for each container that has work to do, or was short of CPU.

Lines of a look hold until what containers get no longer changes linearly. If the next look comes after that (there are
many containers, and nothing depends on what they get), what they got since is added up by Simpson's rule, from what
they get at the beginning, in the middle and at the end: demands are exact then, and what was granted is approximate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from podqos.kernel.cpu import CpuBound, CpuCourse, CpuShare, CpuTree
from podqos.sim.engine.curve import Curve
from podqos.sim.engine.event_queue import NEVER_US, Action
from podqos.sim.engine.gauge import FRACTION_BITS, Planner
from podqos.sim.node.cgroup_readings import CpuSettings
from podqos.sim.node.cpu_meter import CpuAccount, CpuLine, CpuMeter, CpuPoint, WorkLeft
from podqos.sim.node.pods import SimContainer


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
