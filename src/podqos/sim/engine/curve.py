"""Amounts over time: piecewise linear functions from whole microseconds to whole numbers.

A container's demand for memory, CPU or disk is a curve. A curve is data, so that ten thousand pods can share one, and
piecewise linear, so that the moment at which a sum of curves reaches a threshold can be computed instead of searched
for in small steps. All arithmetic is exact.

``scenario_format.shapes`` makes curves (ramps, leaks, samples); ``demand`` assigns them to containers.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from operator import itemgetter
from typing import overload

from msgspec import Struct

Knot = tuple[int, int]
"""Time in microseconds, value."""

_time_of = itemgetter(0)

MANY_KNOTS = 32
"""From so many on they are kept as columns."""
MOST_KEPT = (1 << 63) - 1
"""The largest number that a column holds."""


class Clock(StrEnum):
    """What the time of a curve counts from."""

    SCENARIO = "scenario"
    """The beginning of the scenario."""
    CONTAINER = "container"
    """The start of the container: one that is started again begins again, as a leak does."""


class Knots(Sequence[Knot]):
    """Many knots, as two columns of numbers: a day in samples is a few kilobytes."""

    __slots__ = ("times_us", "values")

    def __init__(self, times_us: range | array[int], values: array[int]) -> None:
        assert len(times_us) == len(values), "every knot has a time and a value"
        self.times_us = times_us
        """A range where they are evenly spaced."""
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, index: int) -> Knot: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Knot]: ...

    def __getitem__(self, index: int | slice) -> Knot | Sequence[Knot]:
        if isinstance(index, slice):
            return Knots(self.times_us[index], self.values[index])
        return self.times_us[index], self.values[index]

    def __iter__(self) -> Iterator[Knot]:
        return zip(self.times_us, self.values, strict=True)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Knots):
            return self.values == other.values and list(self.times_us) == list(other.times_us)
        return isinstance(other, tuple) and tuple(self) == other

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


def kept(knots: Sequence[Knot]) -> Sequence[Knot]:
    """Return knots as they are kept: many of them as columns."""
    if len(knots) < MANY_KNOTS or max(map(max, knots)) > MOST_KEPT:
        return tuple(knots)
    times_us = [time_us for time_us, _ in knots]
    values = array("q", (value for _, value in knots))
    step_us = times_us[1] - times_us[0]
    even = range(times_us[0], times_us[0] + len(times_us) * step_us, step_us) if step_us else range(0)
    return Knots(even if times_us == list(even) else array("q", times_us), values)


class Piece(Struct, frozen=True, gc=False):
    """A stretch of a curve without a bend: from ``start_us`` up to, and without, ``end_us``.

    Within it the curve is ``start_value + (end_value − start_value) × (t − start_us) ÷ (end_us − start_us)``, rounded
    down. ``end_value`` is what the piece heads for; where the next one begins elsewhere, the curve steps.
    """

    start_us: int
    start_value: int
    end_us: int | None
    """None where it never ends; it is constant then."""
    end_value: int

    @property
    def is_constant(self) -> bool:
        """Whether it neither rises nor falls."""
        return self.start_value == self.end_value

    def at(self, time_us: int) -> int:
        """Return the value at a time within the piece."""
        if self.end_us is None or self.start_value == self.end_value:
            return self.start_value
        rise = (self.end_value - self.start_value) * (time_us - self.start_us)
        return self.start_value + rise // (self.end_us - self.start_us)


class Curve(Struct, frozen=True, gc=False):
    """A piecewise linear function of time.

    Two knots at one time are a step, whose later knot counts. Before the first knot the curve has its value, after the
    last one likewise. With a period, the times of the knots lie between 0 and the period, and the curve repeats.
    """

    knots: Sequence[Knot]
    """At least one; times never fall."""
    period_us: int | None = None
    clock: Clock = Clock.SCENARIO

    def __post_init__(self) -> None:
        assert self.knots, "a curve has at least one knot"
        times = self.knots.times_us if isinstance(self.knots, Knots) else [time_us for time_us, _ in self.knots]
        assert isinstance(times, range) or all(map(int.__le__, times, times[1:])), "the times of knots never fall"
        if self.period_us is not None:
            assert times[0] >= 0 < self.period_us >= times[-1], "knots lie within the period"

    @property
    def is_constant(self) -> bool:
        """Whether it has one value for all time."""
        return len(self.knots) == 1

    def at(self, time_us: int) -> int:
        """Return the exact value, rounded down; at a step the value after it."""
        if len(self.knots) == 1:
            return self.knots[0][1]
        return self.piece(time_us).at(time_us)

    def piece(self, time_us: int) -> Piece:
        """Return the piece that a time lies in, and that holds from there on."""
        knots, period_us = self.knots, self.period_us
        if period_us is None:
            return _piece(knots, time_us, 0, None)
        return _piece(knots, time_us % period_us, time_us // period_us * period_us, period_us)

    def pieces(self, from_us: int, until_us: int | None) -> Iterator[Piece]:
        """Yield the pieces from the one at ``from_us`` to the one at ``until_us``, which may be without end."""
        piece = self.piece(from_us)
        while True:
            yield piece
            if piece.end_us is None or (until_us is not None and piece.end_us > until_us):
                return
            piece = self.piece(piece.end_us)


def _piece(knots: Sequence[Knot], time_us: int, offset_us: int, period_us: int | None) -> Piece:
    """Return the piece around a time of the first period; ``offset_us`` is where the period in question begins."""
    if isinstance(knots, Knots):
        times_us, values = knots.times_us, knots.values
        if isinstance(times_us, range):
            after = min(max(0, (time_us - times_us.start) // times_us.step + 1), len(times_us))
        else:
            after = bisect_right(times_us, time_us)
        if 0 < after < len(values):
            start_us, next_us = offset_us + times_us[after - 1], offset_us + times_us[after]
            return Piece(start_us, values[after - 1], next_us, values[after])
    else:
        after = bisect_right(knots, time_us, key=_time_of)
    end_us = None if period_us is None else offset_us + period_us
    if after == 0:
        next_us, value = knots[0]
        return Piece(offset_us, value, offset_us + next_us, value)
    start_us, start_value = knots[after - 1]
    if after == len(knots):
        return Piece(offset_us + start_us, start_value, end_us, start_value)
    next_us, next_value = knots[after]
    return Piece(offset_us + start_us, start_value, offset_us + next_us, next_value)


def below(curve: Curve, level: int) -> Curve:
    """Return a curve that follows another up to a level, and stays there while the other is higher."""
    return _clipped(curve, level, lambda value: min(value, level))


def above(curve: Curve, level: int) -> Curve:
    """Return by how much a curve is above a level: the rest of ``below``."""
    return _clipped(curve, level, lambda value: max(0, value - level))


def _clipped(curve: Curve, level: int, clip: Callable[[int], int]) -> Curve:
    """Return a curve with clipped values, and a knot where it crosses the level."""
    knots: list[Knot] = []
    before = curve.knots[0][1]
    for time_us, value in curve.knots:
        if before < level < value or value < level < before:
            start_us = knots[-1][0]
            crossed_us = start_us - -(level - before) * (time_us - start_us) // (value - before)
            knots.append((crossed_us, clip(level)))
        knots.append((time_us, clip(value)))
        before = value
    return Curve(tuple(knots), curve.period_us, curve.clock)


def constant(value: int) -> Curve:
    """Return a curve with one value for all time."""
    return Curve(((0, value),))


ZERO = constant(0)
