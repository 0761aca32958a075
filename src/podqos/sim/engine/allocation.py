"""One curve of one container, added to the sums that it is part of.

An ``Allocation`` follows its curve from bend to bend. What the kernel reclaims (page cache, or memory that goes to
swap) is kept as a debt: the container holds what it wants minus that. Reclaimed page cache does not return by itself,
only as the curve falls and rises again.
"""

from __future__ import annotations

from collections.abc import Iterable

from podqos.sim.engine.curve import Clock, Curve, Knots, Piece
from podqos.sim.engine.event_queue import NEVER_US, EventPriority
from podqos.sim.engine.gauge import FRACTION_BITS, Flow, Gauge, Planner


class Allocation(Flow):
    """What is held of one resource."""

    __slots__ = (
        "_gauges",
        "_is_paused",
        "_lived",
        "_next",
        "_offset_us",
        "_parts",
        "_planner",
        "_step",
        "_stepped_us",
        "_version",
        "curve",
        "debt",
        "is_capped",
        "was_refused",
    )

    def __init__(self, curve: Curve, gauges: Iterable[Gauge], planner: Planner, started_us: int) -> None:
        super().__init__()
        self.curve = curve
        self.debt = 0
        """What was reclaimed, in 2⁻⁴⁰ units."""
        self.is_capped = False
        """Whether it was refused more and stays as it is."""
        self._gauges = tuple(gauges)
        self._planner = planner
        self.was_refused = False
        self._step = 0
        self._stepped_us = -1
        self._offset_us = started_us if curve.clock is Clock.CONTAINER else 0
        self._parts = self._lived = 1
        self._is_paused = False
        self._version = 0
        self._next = -1, 0
        """When it bends next, if nothing else happens to it before."""
        self._follow(started_us)

    @property
    def gauges(self) -> tuple[Gauge, ...]:
        """The sums that it is part of."""
        return self._gauges

    @property
    def is_plain(self) -> bool:
        """Whether it holds what its curve says, and will."""
        return not (self.debt or self.is_capped or self._is_paused or self._lived != self._parts)

    @property
    def offset_us(self) -> int:
        """When the time of its curve begins."""
        return self._offset_us

    def join(self, gauge: Gauge, time_us: int) -> None:
        """Be part of one more sum from now on."""
        self._gauges = (*self._gauges, gauge)
        gauge.change(time_us, self.fine(time_us), self.slope)

    def wanted(self, time_us: int) -> int:
        """Return what the curve asks for, in whole units."""
        return self.curve.at(time_us - self._offset_us) * self._lived // self._parts

    def follow(self, time_us: int) -> None:
        """Go on with the curve, from where it is now."""
        self.is_capped = False
        self._follow(time_us)

    def turn_to(self, curve: Curve, time_us: int, started_us: int | None = None) -> None:
        """Follow another curve from now on; its time, if it is the container's, begins now or began earlier."""
        self.curve = curve
        begun_us = time_us if started_us is None else started_us
        self._offset_us = begun_us if curve.clock is Clock.CONTAINER else 0
        self._follow(time_us)

    def hold(self, time_us: int) -> None:
        """Stay at what is held now, whatever the curve says."""
        self._version += 1
        self._set(time_us, self.fine(time_us), 0)

    def cap(self, time_us: int, excess: int) -> None:
        """Stay at the current amount, because no more is available: not even ``excess`` of what was just added.

        That is until the curve bends, or has fallen to it.
        """
        self.is_capped = True
        added = (self._step if self._stepped_us == time_us else 0) + max(0, self.slope)
        held = self.fine(time_us) - min(excess << FRACTION_BITS, added, self.fine(time_us))
        self._version += 1
        piece, amount, slope = self._asked(time_us)
        if piece.end_us is not None:
            follows_us = piece.end_us + self._offset_us
            if slope < 0:
                follows_us = min(follows_us, time_us + max(1, -(-(amount - self.debt - held) // -slope)))
            self._plan(follows_us)
        self._set(time_us, held, 0)

    def end(self, time_us: int) -> None:
        """Release everything."""
        self._version += 1
        self.debt = 0
        self._set(time_us, 0, 0)

    def take(self, time_us: int, amount: int) -> None:
        """Reclaim that many whole units."""
        self._resume(time_us)
        self.debt += amount << FRACTION_BITS
        self._follow(time_us)

    def pause(self, time_us: int, pause_us: int) -> None:
        """Do not rise for a while, at most until the next bend: what the curve adds until then is reclaimed at once."""
        end_us = self.curve.piece(time_us - self._offset_us).end_us
        if self.slope <= 0 or end_us is None:
            return
        resumed_us = min(time_us + pause_us, end_us + self._offset_us - 1)
        if resumed_us <= time_us:
            return
        self._version += 1
        self._is_paused = True
        version = self._version

        def resume(now_us: int) -> None:
            if version == self._version:
                self._resume(now_us)
                self._follow(now_us)

        self._planner(resumed_us, EventPriority.DEMAND, resume)
        self._set(time_us, self.fine(time_us), 0)

    def shrink(self, time_us: int, lived: int, parts: int) -> None:
        """Hold only ``lived`` of ``parts`` from now on: some of the processes behind it are gone."""
        self._lived, self._parts = lived, parts
        self._follow(time_us)

    def step(self, time_us: int) -> int:
        """Return by how much what is held has stepped up at this very time, in whole units."""
        return self._step >> FRACTION_BITS if self._stepped_us == time_us else 0

    # ---- at rest -------------------------------------------------------------------------------------------------

    def stop_following(self) -> None:
        """Bend no more for a while: its node rests."""
        self._version += 1

    def go_on(self, time_us: int, bent_us: int) -> None:
        """Be what it would be if all bends up to ``bent_us`` had been followed.

        Its sums are told, and its next bend is planned (``plan_on``), by the caller.
        """
        curve, offset_us = self.curve, self._offset_us
        local_us, knots = time_us - offset_us, curve.knots
        if curve.period_us is None and isinstance(knots, Knots) and isinstance(knots.times_us, range):
            # As below, without making a piece: this is asked of every part of a node at once.
            times_us, values = knots.times_us, knots.values
            place = (bent_us - offset_us - times_us.start) // times_us.step
            if 0 <= place < len(values) - 1:
                start, rise = values[place], (values[place + 1] - values[place]) << FRACTION_BITS
                slope = rise // times_us.step if rise >= 0 else -(-rise // times_us.step)
                self.base = (start << FRACTION_BITS) + slope * (local_us - times_us[place])
                self.slope, self.since_us = slope, time_us
                self._next = times_us[place + 1] + offset_us, self._version
                return
        piece = curve.piece(bent_us - offset_us)
        slope = slope_of(piece)
        self.base, self.slope, self.since_us = _fine(piece, slope, local_us), slope, time_us
        if piece.start_us == local_us:
            before = self.curve.piece(local_us - 1)
            more = self.base - _fine(before, slope_of(before), local_us)
            if more > 0:
                self._step, self._stepped_us = more, time_us
        self._next = -1 if piece.end_us is None else piece.end_us + self._offset_us, self._version

    def plan_on(self, until_us: int = NEVER_US) -> None:
        """Plan the next bend after ``go_on`` if it comes by then, unless something else has happened to it since."""
        time_us, version = self._next
        if version == self._version and 0 <= time_us <= until_us:
            self._planner(time_us, EventPriority.DEMAND, self._bend)

    # ---- how it follows ------------------------------------------------------------------------------------------

    def _resume(self, time_us: int) -> None:
        """Add what the curve gained during a pause to the debt."""
        if self._is_paused:
            self._is_paused = False
            local_us = time_us - self._offset_us
            piece = self.curve.piece(local_us)
            self.debt = _fine(piece, slope_of(piece), local_us) - self.fine(time_us)

    def _follow(self, time_us: int) -> None:
        self._version += 1
        knots = self.curve.knots
        if len(knots) == 1 and not self.debt and self._lived == self._parts:
            self._set(time_us, knots[0][1] << FRACTION_BITS, 0)
            return
        piece, amount, slope = self._asked(time_us)
        if self.debt:
            self.debt = min(self.debt, amount)
            amount -= self.debt
        if piece.end_us is not None:
            self._plan(piece.end_us + self._offset_us)
        if self.debt and slope < 0:
            self._plan_empty(time_us, amount, slope)
        self._set(time_us, amount, slope)

    def _asked(self, time_us: int) -> tuple[Piece, int, int]:
        """Return the piece of the curve, what it asks for, and how fast that grows."""
        local_us = time_us - self._offset_us
        piece = self.curve.piece(local_us)
        slope = slope_of(piece)
        amount = _fine(piece, slope, local_us)
        if self._lived != self._parts:
            amount, slope = amount * self._lived // self._parts, _towards_zero(slope * self._lived, self._parts)
        return piece, amount, slope

    def _plan(self, time_us: int) -> None:
        self._next = time_us, self._version
        self._planner(time_us, EventPriority.DEMAND, self._bend)

    def _bend(self, now_us: int) -> None:
        if (now_us, self._version) == self._next:
            self.follow(now_us)

    def _plan_empty(self, time_us: int, amount: int, slope: int) -> None:
        """Stay at zero when the amount reaches zero before the curve does."""
        version = self._version

        def empty(now_us: int) -> None:
            if version == self._version:
                self._set(now_us, 0, 0)

        self._planner(time_us + amount // -slope, EventPriority.DEMAND, empty)

    def _set(self, time_us: int, amount: int, slope: int) -> None:
        more, steeper = amount - self.base - self.slope * (time_us - self.since_us), slope - self.slope
        if more > 0:
            self._step = more + (self._step if self._stepped_us == time_us else 0)
            self._stepped_us = time_us
        self.base, self.slope, self.since_us = amount, slope, time_us
        if more or steeper:
            for gauge in self._gauges:
                gauge.change(time_us, more, steeper)


def _fine(piece: Piece, slope: int, time_us: int) -> int:
    return (piece.start_value << FRACTION_BITS) + slope * (time_us - piece.start_us)


def slope_of(piece: Piece) -> int:
    """Return how fast an amount changes, in 2⁻⁴⁰ units per microsecond."""
    rise = piece.end_value - piece.start_value
    if piece.end_us is None or not rise:
        return 0
    span_us = piece.end_us - piece.start_us
    return (rise << FRACTION_BITS) // span_us if rise > 0 else -((-rise << FRACTION_BITS) // span_us)


def _towards_zero(numerator: int, denominator: int) -> int:
    """Divide so that a slope never leads beyond the end of its piece."""
    quotient = abs(numerator) // denominator
    return quotient if numerator >= 0 else -quotient
