"""Peaks of curves and of their sums: upper bounds.

A sum of piecewise linear functions is highest where one of them bends, so its peak is found by walking over all bends
once. Amounts are in the units of ``gauge``; where those are too coarse for a slope it is rounded up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain, groupby
from operator import itemgetter

from podqos.sim.engine.curve import Curve, Piece
from podqos.sim.engine.gauge import FRACTION_BITS

_MOST_BENDS = 200_000
"""A sum with more of them is not worth the walk."""

Bend = tuple[int, int, int]
"""At a time: by how much amount and slope change."""


class Peaks:
    """Peaks of the curves of one scenario, from its beginning to its end; each curve is looked at once."""

    def __init__(self, until_us: int) -> None:
        self._until_us = until_us
        self._ceilings: dict[int, tuple[Curve, int]] = {}
        self._last: tuple[tuple[int, ...], list[Curve], int | None] | None = None
        """The last sum: several sums of a node have the same curves."""
        self._bends: dict[tuple[int, int], tuple[Curve, list[Bend]]] = {}

    def ceiling(self, curve: Curve) -> int:
        """Return the least whole number that a curve never exceeds."""
        if curve.is_constant:
            return curve.knots[0][1]
        known = self._ceilings.get(id(curve))
        if known is None:
            known = self._ceilings[id(curve)] = curve, _ceiling(curve, self._span_us((curve,)))
        return known[1]

    def of_sum(self, curves: Iterable[Curve]) -> int | None:
        """Return what a sum of curves never exceeds, in fine units; None where there are too many bends."""
        curves = tuple(curves)
        bent = [curve for curve in curves if not curve.is_constant]
        total = sum(curve.knots[0][1] for curve in curves if curve.is_constant) << FRACTION_BITS
        if not bent:
            return total
        key = tuple(map(id, bent))
        if self._last is None or self._last[0] != key:
            self._last = key, bent, self._of_bent(bent)
        peak = self._last[2]
        return None if peak is None else total + peak

    def extent(self, curves: Iterable[Curve]) -> tuple[int, int, int] | None:
        """Return the most of a sum, in fine units, when that is, and the least; None if there are too many bends."""
        curves = tuple(curves)
        bent = [curve for curve in curves if not curve.is_constant]
        total = sum(curve.knots[0][1] for curve in curves if curve.is_constant) << FRACTION_BITS
        if not bent:
            return total, 0, total
        parts = self._parts(bent)
        if parts is None:
            return None
        highest, when_us, lowest = _extent(sorted(chain.from_iterable(parts)))
        return total + highest, when_us, total + lowest

    def _of_bent(self, bent: list[Curve]) -> int | None:
        parts = self._parts(bent)
        return None if parts is None else _walk(sorted(chain.from_iterable(parts)))

    def _parts(self, bent: list[Curve]) -> list[list[Bend]] | None:
        """Return the bends of curves; None where there are too many."""
        until_us = self._span_us(bent)
        parts = []
        distinct = {id(curve): curve for curve in bent}
        if sum(_count(curve, until_us) for curve in distinct.values()) > _MOST_BENDS:
            return None
        for which, count in Counter(map(id, bent)).items():
            part = self._bends_of(distinct[which], until_us)
            parts.append(part if count == 1 else [(at_us, count * more, count * up) for at_us, more, up in part])
        return parts

    def _span_us(self, curves: Iterable[Curve]) -> int:
        """Return how long to look: one period, where all have the same."""
        periods = {curve.period_us for curve in curves}
        (first, *others) = periods
        return self._until_us if first is None or others else min(first, self._until_us)

    def _bends_of(self, curve: Curve, until_us: int) -> list[Bend]:
        known = self._bends.get((id(curve), until_us))
        if known is None:
            known = self._bends[id(curve), until_us] = curve, _bends(curve, until_us)
        return known[1]


def _ceiling(curve: Curve, until_us: int) -> int:
    ends = (
        _rounded_up(piece, time_us)
        for piece in curve.pieces(0, until_us)
        for time_us in (max(0, piece.start_us), until_us if piece.end_us is None else min(piece.end_us, until_us))
    )
    return max(ends)


def _rounded_up(piece: Piece, time_us: int) -> int:
    """Return the value that a piece heads for at a time, which may be its end."""
    if piece.end_us is None or piece.is_constant:
        return piece.start_value
    rise = (piece.end_value - piece.start_value) * (time_us - piece.start_us)
    return piece.start_value - -rise // (piece.end_us - piece.start_us)


def _count(curve: Curve, until_us: int) -> int:
    """Return about how often a curve bends."""
    return len(curve.knots) * (1 if curve.period_us is None else until_us // curve.period_us + 1)


def _bends(curve: Curve, until_us: int) -> list[Bend]:
    bends = []
    amount = slope = last_us = 0
    for piece in curve.pieces(0, until_us):
        start_us = max(0, piece.start_us)
        held = amount + slope * (start_us - last_us)
        steeper = 0
        if piece.end_us is not None and not piece.is_constant:
            rise = (piece.end_value - piece.start_value) << FRACTION_BITS
            steeper = -(-rise // (piece.end_us - piece.start_us))
        amount = (piece.start_value << FRACTION_BITS) + steeper * (start_us - piece.start_us)
        bends.append((start_us, amount - held, steeper - slope))
        slope, last_us = steeper, start_us
    bends.append((until_us, 0, 0))
    return bends


def _walk(bends: Iterable[Bend]) -> int:
    """Return the highest amount on the way, on either side of every step."""
    highest = amount = slope = last_us = 0
    for time_us, more, steeper in bends:
        if time_us != last_us:
            amount += slope * (time_us - last_us)
            last_us = time_us
            highest = max(highest, amount)
        amount += more
        slope += steeper
        highest = max(highest, amount)
    return highest


def _extent(bends: Iterable[Bend]) -> tuple[int, int, int]:
    """Return the highest amount on the way, when it is first reached, and the lowest."""
    highest = when_us = amount = slope = last_us = 0
    lowest: int | None = None
    for time_us, moved in groupby(bends, key=itemgetter(0)):
        amount += slope * (time_us - last_us)
        # What holds just before a step counts, too, except before the beginning.
        ahead = [amount] if time_us else []
        for _, more, steeper in moved:
            amount += more
            slope += steeper
        last_us = time_us
        for held in (*ahead, amount):
            if held > highest:
                highest, when_us = held, time_us
            lowest = held if lowest is None else min(lowest, held)
    return highest, when_us, lowest or 0
