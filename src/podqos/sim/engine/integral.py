"""Integrals over time of what changes linearly, exactly.

All areas are doubled, so that they are whole numbers: an amount ``a`` that grows by ``s`` a microsecond has, after ``t``
microseconds, the doubled area ``(2 a + s t) t``.
"""

from __future__ import annotations

from math import isqrt

from podqos.sim.engine.allocation import slope_of
from podqos.sim.engine.curve import Curve, Piece
from podqos.sim.engine.event_queue import NEVER_US
from podqos.sim.engine.gauge import FRACTION_BITS

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


def area_of(curve: Curve, offset_us: int, from_us: int, until_us: int) -> int:
    """Return the doubled area under a curve between two times, in 2⁻⁴⁰ units; its own time begins at ``offset_us``."""
    if curve.is_constant:
        return area(curve.knots[0][1] << FRACTION_BITS, 0, until_us - from_us)
    total, at_us, end_us = 0, from_us - offset_us, until_us - offset_us
    while at_us < end_us:
        amount, slope, piece = _line(curve, at_us)
        stop_us = end_us if piece.end_us is None else min(piece.end_us, end_us)
        total += area(amount, slope, stop_us - at_us)
        at_us = stop_us
    return total


def reached(curve: Curve, offset_us: int, from_us: int, wanted: int) -> tuple[int, int]:
    """Return when the doubled area under a curve is ``wanted``, and 0; or up to when it was looked for, and the rest.

    Of a curve of many pieces not all are walked over at once.
    """
    at_us = from_us - offset_us
    for _ in range(_MOST_PIECES):
        amount, slope, piece = _line(curve, at_us)
        needed_us = span_us(amount, slope, wanted)
        if piece.end_us is None:
            return (NEVER_US, wanted) if needed_us is None else (at_us + needed_us + offset_us, 0)
        if needed_us is not None and needed_us <= piece.end_us - at_us:
            return at_us + needed_us + offset_us, 0
        wanted -= area(amount, slope, piece.end_us - at_us)
        at_us = piece.end_us
    return at_us + offset_us, wanted


def _line(curve: Curve, at_us: int) -> tuple[int, int, Piece]:
    """Return what a curve has at a time, how fast that grows, and until when it does."""
    piece = curve.piece(at_us)
    slope = slope_of(piece)
    return (piece.start_value << FRACTION_BITS) + slope * (at_us - piece.start_us), slope, piece
