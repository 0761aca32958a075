"""Amounts that change linearly, and the exact moment at which one crosses a mark.

Between two events everything in a simulated node is linear. A ``Flow`` is one amount; a ``Gauge`` is a sum of many (the
usage of a cgroup, of a disk) that plans an event for the first microsecond at which it crosses one of its
``GaugeMark``s. Changing one part of a sum costs the same whether the sum has ten parts or ten thousand.

Amounts are whole numbers of 2⁻⁴⁰ units, slopes the same per microsecond: sums of them stay exact, in whatever order
they are made. A slope rounded down to that loses less than a tenth of a byte a day.
"""

from __future__ import annotations

from itertools import count
from typing import Protocol

from podqos.sim.engine.event_queue import LAST_TURN, NEVER_US, Action, EventPriority

FRACTION_BITS = 40

_turns = count()


class Planner(Protocol):
    """Plans an event on a node: when, with which priority, what, and which comes first of equal ones."""

    def __call__(self, time_us: int, priority: EventPriority, action: Action, turn: int = LAST_TURN, /) -> None:
        """Plan it."""


class Flow:
    """An amount that changes linearly."""

    __slots__ = ("base", "since_us", "slope")

    def __init__(self) -> None:
        self.base = 0
        """At ``since_us``."""
        self.slope = 0
        self.since_us = 0

    def fine(self, time_us: int) -> int:
        """Return the amount in 2⁻⁴⁰ units."""
        return self.base + self.slope * (time_us - self.since_us)

    def at(self, time_us: int) -> int:
        """Return the amount in whole units, rounded down."""
        return (self.base + self.slope * (time_us - self.since_us)) >> FRACTION_BITS


class Gauge(Flow):
    """A sum of flows that knows when it crosses its marks."""

    __slots__ = ("marks",)

    def __init__(self) -> None:
        super().__init__()
        self.marks: list[GaugeMark] = []

    def change(self, time_us: int, amount: int, slope: int) -> None:
        """Add to the amount and to the slope, both in 2⁻⁴⁰ units."""
        passed_us = time_us - self.since_us
        if passed_us:
            self.base += self.slope * passed_us
            self.since_us = time_us
        self.base += amount
        self.slope += slope
        for mark in self.marks:
            if mark.is_armed:
                mark.plan()


class GaugeMark:
    """A level of a gauge. When the gauge reaches it the action runs, once, until the mark is armed again.

    Marks that are reached in the same moment take their turns in the order in which they were made, however often the
    look of one was planned anew.
    """

    __slots__ = ("_action", "_gauge", "_planner", "_queued_us", "_turn", "is_armed", "is_rising", "level")

    def __init__(self, gauge: Gauge, planner: Planner, action: Action, *, is_rising: bool = True) -> None:
        self.level = NEVER_US << FRACTION_BITS
        self.is_rising = is_rising
        self.is_armed = False
        self._gauge = gauge
        self._planner = planner
        self._action = action
        self._queued_us = NEVER_US
        self._turn = next(_turns)
        gauge.marks.append(self)

    def above(self, limit: int, now_us: int) -> None:
        """Arm at more than ``limit`` whole units; if the gauge is there already, the action runs now."""
        self.level = (limit + 1) << FRACTION_BITS
        self.arm(now_us)

    def arm(self, now_us: int) -> None:
        """Wait for the gauge to reach the level; if it is there already, the action runs now."""
        self.is_armed = True
        self._gauge.change(now_us, 0, 0)

    def remove(self) -> None:
        """Remove the mark."""
        self.is_armed = False
        self._gauge.marks.remove(self)

    @staticmethod
    def both_ways(
        gauge: Gauge, limit: int, planner: Planner, rose: Action, fell: Action
    ) -> tuple[GaugeMark, GaugeMark]:
        """Return a rising and a falling mark at more than ``limit`` whole units, each of which arms the other."""

        def is_over(time_us: int) -> None:
            falling.arm(time_us)
            rose(time_us)

        def is_under(time_us: int) -> None:
            rising.arm(time_us)
            fell(time_us)

        rising, falling = GaugeMark(gauge, planner, is_over), GaugeMark(gauge, planner, is_under, is_rising=False)
        rising.level = falling.level = (limit + 1) << FRACTION_BITS
        return rising, falling

    def is_reached(self, time_us: int) -> bool:
        """Whether the gauge is at the level or beyond: at least there if rising, below it if falling."""
        amount = self._gauge.fine(time_us)
        return amount >= self.level if self.is_rising else amount < self.level

    def forget(self) -> None:
        """Plan anew, because the event that was planned did not happen."""
        self._queued_us = NEVER_US

    def plan(self) -> None:
        """Plan the event for when the gauge gets there, unless an earlier one will check anyway."""
        gauge = self._gauge
        slope = gauge.slope
        if self.is_rising:
            gap = self.level - gauge.base
            if gap <= 0:
                due_us = gauge.since_us
            elif slope <= 0:
                return
            else:
                due_us = gauge.since_us + -(-gap // slope)
        else:
            gap = gauge.base - self.level
            if gap < 0:
                due_us = gauge.since_us
            elif slope >= 0:
                return
            else:
                due_us = gauge.since_us + gap // -slope + 1
        if due_us < self._queued_us:
            self._queued_us = due_us
            self._planner(due_us, EventPriority.KERNEL, self._look, self._turn)

    def _look(self, time_us: int) -> None:
        if time_us != self._queued_us:
            return  # an earlier look has taken the place of this one
        self._queued_us = NEVER_US
        if not self.is_armed:
            return
        if self.is_reached(time_us):
            self.is_armed = False
            self._action(time_us)
        else:
            self.plan()
