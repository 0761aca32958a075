"""Integrals over time of what changes linearly, exactly.

All areas are doubled, so that they are whole numbers: an amount ``a`` that grows by ``s`` a microsecond has the doubled
area ``(2 a + s t) t`` after ``t`` microseconds. The area of a curve is in fractions of its units, so small that it does
not matter that slopes are whole numbers of them.
"""

from __future__ import annotations

from math import isqrt

from podqos.sim.engine.curve import Curve, Piece
from podqos.sim.engine.event_queue import NEVER_US

_MOST_PIECES = 4096
"""So many pieces of a curve are walked over at a time."""


def area(amount: int, slope: int, span_us: int) -> int:
    """Return the doubled area under a straight line."""
    return (2 * amount + slope * span_us) * span_us


def span_us(amount: int, slope: int, wanted: int) -> int | None:
    """Return the first whole microsecond at which the doubled area is at least ``wanted``; None is never.

    A line that falls is taken up to where it reaches zero.
    """
    if wanted <= 0:
        return 0
    if not slope:
        return -(-wanted // (2 * amount)) if amount > 0 else None
    root = amount * amount + slope * wanted
    if root < 0 or (amount <= 0 and slope < 0):
        return None
    guess = (isqrt(root) - amount) // slope
    while guess > 0 and area(amount, slope, guess - 1) >= wanted:
        guess -= 1
    while area(amount, slope, guess) < wanted:
        guess += 1
        if slope < 0 and guess * slope + amount < 0 and area(amount, slope, guess) < wanted:
            return None
    return guess


class CurveArea:
    """The area under a curve, in units of which ``unit`` are one of the curve's; its own time begins at an offset."""

    __slots__ = ("_curve", "_offset_us", "_unit")

    def __init__(self, curve: Curve, offset_us: int, unit: int) -> None:
        self._curve = curve
        self._offset_us = offset_us
        self._unit = unit

    def between(self, from_us: int, until_us: int) -> int:
        """Return the doubled area between two times."""
        total, at_us = 0, from_us
        while at_us < until_us:
            amount, slope, end_us = self.line(at_us)
            stop_us = until_us if end_us is None else min(end_us, until_us)
            total += area(amount, slope, stop_us - at_us)
            at_us = stop_us
        return total

    def reached(self, from_us: int, wanted: int) -> tuple[int, int]:
        """Return when the doubled area is ``wanted``, and 0; or up to when it was looked for, and what is missing.

        Of a curve of many pieces not all are walked over at once.
        """
        at_us = from_us
        for _ in range(_MOST_PIECES):
            amount, slope, end_us = self.line(at_us)
            needed_us = span_us(amount, slope, wanted)
            if end_us is None:
                return (NEVER_US, wanted) if needed_us is None else (at_us + needed_us, 0)
            if needed_us is not None and needed_us <= end_us - at_us:
                return at_us + needed_us, 0
            wanted -= area(amount, slope, end_us - at_us)
            at_us = end_us
        return at_us, wanted

    def line(self, time_us: int) -> tuple[int, int, int | None]:
        """Return the amount at a time, how fast it grows from there, and until when it does so; None is for ever."""
        piece, unit = self._curve.piece(time_us - self._offset_us), self._unit
        if piece.end_us is None:
            return piece.start_value * unit, 0, None
        slope = _slope(piece, unit)
        passed_us = time_us - self._offset_us - piece.start_us
        return piece.start_value * unit + slope * passed_us, slope, piece.end_us + self._offset_us


def _slope(piece: Piece, unit: int) -> int:
    """Return how fast a piece changes, rounded towards zero: it never leads beyond its end."""
    assert piece.end_us is not None
    rise, span = (piece.end_value - piece.start_value) * unit, piece.end_us - piece.start_us
    return rise // span if rise >= 0 else -(-rise // span)
