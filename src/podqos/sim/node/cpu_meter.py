"""What a container wants of the CPU and gets, added up: exactly, from one change to the next.

Between two looks of ``NodeCpu`` both change linearly, so that their integrals are quadratic: an amount of work is done
at the first whole microsecond at which the integral of the granted CPU has reached it, to a nanosecond of CPU. While
nothing keeps a container from what it wants, the curve of its demand says all: it is not followed bend by bend.

Amounts are in units of 2⁻⁴⁰ · 10⁻¹² cores (``MILLI`` of them are a thousandth of a core), areas are doubled
(``engine.integral``).
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from podqos.kernel.cpu import CORE_NANO
from podqos.sim.engine.curve import Clock, Curve
from podqos.sim.engine.event_queue import NEVER_US, EventPriority
from podqos.sim.engine.gauge import FRACTION_BITS, Planner
from podqos.sim.engine.integral import CurveArea, area, span_us

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
