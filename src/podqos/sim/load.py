"""Sums of many curves, and until when one stays below a limit: in closed form, without running anything.

A bound, not a simulation: if it says that a sum stays within a limit it does; if it says a time, the limit is not
reached before. Equal curves are counted, not repeated.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.sim.curve import Clock, Curve

_MOST_TIMES = 20_000
"""A sum that bends more often is not worked out."""


class Load:
    """A sum of curves, each so many times and from its own beginning on."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: dict[tuple[int, int], Part] = {}

    def add(self, curve: Curve, started_us: int, count: int = 1) -> None:
        """Add a curve ``count`` times; what it says before ``started_us`` does not count."""
        if len(curve.knots) == 1 and not curve.knots[0][1]:
            return
        known = self._parts.get((id(curve), started_us))
        before = 0 if known is None else known.count
        self._parts[id(curve), started_us] = Part(curve, started_us, before + count)

    def add_all(self, other: Load, count: int = 1) -> None:
        """Add all of another sum, ``count`` times."""
        for part in other._parts.values():
            self.add(part.curve, part.started_us, part.count * count)

    def __bool__(self) -> bool:
        return bool(self._parts)

    def first_above(self, limit: int, until_us: int) -> int | None:
        """Return a time before which the sum does not exceed ``limit``; None if it does not until ``until_us``."""
        parts = [part for part in self._parts.values() if part.started_us <= until_us]
        if sum(part.peak * part.count for part in parts) <= limit:
            return None
        times = _times(parts, until_us)
        if times is None:
            return min(part.started_us for part in parts)
        for time_us in times:
            if sum(part.most_from(time_us) * part.count for part in parts) > limit:
                return time_us
        return None


class Part(Struct, frozen=True, gc=False):
    """One curve of a sum."""

    curve: Curve
    started_us: int
    count: int

    @property
    def offset_us(self) -> int:
        """What its own time lags behind."""
        return self.started_us if self.curve.clock is Clock.CONTAINER else 0

    @property
    def peak(self) -> int:
        """The most it ever is."""
        return max(value for _, value in self.curve.knots)

    def most_from(self, time_us: int) -> int:
        """Return the most it is from a bend until its own next one."""
        if time_us < self.started_us:
            return 0
        piece = self.curve.piece(time_us - self.offset_us)
        return max(piece.at(time_us - self.offset_us), piece.end_value)


def _times(parts: list[Part], until_us: int) -> list[int] | None:
    """Return when any of the curves begins or bends; None if that is too often."""
    times = {part.started_us for part in parts}
    for part in parts:
        if len(part.curve.knots) == 1:
            continue
        for piece in part.curve.pieces(part.started_us - part.offset_us, until_us - part.offset_us):
            if piece.start_us + part.offset_us >= part.started_us:
                times.add(piece.start_us + part.offset_us)
            if len(times) > _MOST_TIMES:
                return None
    return sorted(times)
