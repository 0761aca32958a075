"""From shapes and samples to curves."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from operator import eq
from random import Random
from typing import TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InputError
from podqos.manifest.fields import suggestion
from podqos.manifest.plain import Plain
from podqos.manifest.samples import PrometheusSeries, SampleRow, read_amount
from podqos.manifest.samples import read_samples as read_file
from podqos.manifest.times import TIME_COLUMNS, read_time
from podqos.model.quantity import Quantity
from podqos.sim.engine.curve import MANY_KNOTS, MOST_KEPT, ZERO, Clock, Curve, Knot, Knots, kept


class Series(Struct, frozen=True, gc=False):
    """One series of samples, in the order of time."""

    labels: Mapping[str, str]
    points: tuple[tuple[int, Quantity], ...]
    """Time in microseconds, amount."""


_Point = tuple[str, Plain, Plain]
"""Position, time, value."""


def read_samples(
    source: str, data: bytes, *, column: str | None = None, match: Mapping[str, str] | None = None
) -> tuple[Series, ...]:
    """Return the selected series of a file, at least one; ``source`` is its name in messages.

    ``column`` names the values of a table. ``match`` selects among the series of Prometheus by labels, whose values
    may be patterns such as ``analytics-*``.
    """
    found = read_file(source, data)
    return _matching(source, found, match or {}) if isinstance(found, tuple) else (_table(source, found, column),)


def _table(source: str, rows: Iterable[SampleRow], column: str | None) -> Series:
    """Return one column; empty fields were not measured."""
    points: list[_Point] = []
    time_column = ""
    for row in rows:
        if not time_column:
            time_column = next((name for name in TIME_COLUMNS if name in row.columns), next(iter(row.columns), ""))
            column = _value_column(row, time_column, column)
        assert column is not None
        if row.fields.get(column) not in {None, ""}:
            points.append((row.where, row.fields.get(time_column), row.fields[column]))
    return Series({}, _points(source, points))


def _value_column(row: SampleRow, time_column: str, column: str | None) -> str:
    names = [name for name in row.columns if name != time_column]
    if column is None and len(names) == 1:
        return names[0]
    if column is None:
        raise InputError("there are several columns", where=row.heading, fix=f"say which: column: {' or '.join(names)}")
    if column not in names:
        raise InputError(f'unknown column "{column}"', where=row.heading, fix=suggestion(column, names))
    return column


def _matching(source: str, every: Iterable[PrometheusSeries], match: Mapping[str, str]) -> tuple[Series, ...]:
    every = sorted(every, key=lambda series: sorted(series.metric.items()))
    found = [series for series in every if _matches(series.metric, match)]
    if not found:
        labels = {name for series in every for name in series.metric}
        fix = f"{len(every)} series have the labels {', '.join(sorted(labels))}"
        raise InputError("no series matches", where=source, fix=fix)
    series = []
    for prometheus_series in found:
        where = f"{source}: {prometheus_series.metric}"
        series.append(
            Series(
                prometheus_series.metric,
                _points(where, [(where, time, text) for time, text in prometheus_series.values]),
            )
        )
    return tuple(series)


def _matches(labels: Mapping[str, str], match: Mapping[str, str]) -> bool:
    return all(fnmatchcase(labels.get(name, ""), pattern) for name, pattern in match.items())


def _points(source: str, raw: list[_Point]) -> tuple[tuple[int, Quantity], ...]:
    if not raw:
        raise InputError("no samples", where=source, fix="the file needs at least one")
    origin_us: int | None = None
    points: list[tuple[int, Quantity]] = []
    for where, time, value in raw:
        try:
            time_us, is_date = read_time(time)
            origin_us = (time_us if is_date else 0) if origin_us is None else origin_us
            point = time_us - origin_us, read_amount(value)
        except InputError as error:
            raise InputError(error.what, where=where, fix=error.fix) from None
        if points and point[0] <= points[-1][0]:
            raise InputError("the time is not later than the previous sample's", where=where, fix="sort by time")
        points.append(point)
    return tuple(points)


# Half a cosine from its crest to its trough, in 24ths of the period: how much of the swing is left, of 10,000.
_COSINE = (10_000, 9_830, 9_330, 8_536, 7_500, 6_294, 5_000, 3_706, 2_500, 1_464, 670, 170, 0)
_RANDOM_BITS = 32


class WaveForm(StrEnum):
    """How a wave goes from its low to its high and back."""

    SINE = "sine"
    """Smoothly, in 24 straight pieces."""
    TRIANGLE = "triangle"
    SAW = "saw"
    """Up linearly and down at once."""
    SQUARE = "square"
    """High for ``share`` of the period, then low."""


def steps(points: Sequence[Knot]) -> Curve:
    """Return the curve that keeps each value until the next point in time."""
    if _is_tidy(points):
        twice = [value for value in points.values for _ in range(2)]
        times_us = [time_us for time_us in points.times_us for _ in range(2)]
        knots_of_steps = Knots(array("q", times_us[1:]), array("q", twice[:-1]))
        return Curve(knots_of_steps if len(knots_of_steps) >= MANY_KNOTS else tuple(knots_of_steps))
    knots: list[Knot] = []
    for time_us, value in points:
        if knots:
            knots.append((time_us, knots[-1][1]))
        knots.append((time_us, value))
    return _tidy(knots)


def line(points: Sequence[Knot]) -> Curve:
    """Return the curve that goes straight from point to point."""
    return _tidy(points)


def ramp(amount: int, over_us: int, at_us: int = 0) -> Curve:
    """Return growth from zero to an amount within a time; ``over_us`` of zero is a step."""
    return _tidy([(at_us, 0), (at_us + over_us, amount)])


def leak(amount: int, per_us: int, at_us: int = 0, *, up_to: int | None = None, until_us: int) -> Curve:
    """Return growth at a rate, for as long as a run lasts or until a ceiling is reached.

    The rate is kept exactly: the line ends after a whole number of periods.
    """
    assert amount > 0 < per_us
    if up_to is not None:
        # The first whole microsecond at which the ceiling is reached.
        end_us = at_us + -(-up_to * per_us // amount)
        return _tidy([(at_us, 0), (end_us, up_to)], Clock.CONTAINER)
    periods = max(1, -(-(until_us - at_us) // per_us))
    return _tidy([(at_us, 0), (at_us + periods * per_us, periods * amount)], Clock.CONTAINER)


def wave(form: WaveForm, low: int, high: int, period_us: int, *, peak_us: int = 0, share: int = 50) -> Curve:
    """Return a repeating curve. ``peak_us`` is when it is highest (a square: when it becomes high).

    ``share`` is how much of the period a square is high, in percent.
    """
    match form:
        case WaveForm.SINE:
            knots = _cosine(low, high, period_us)
        case WaveForm.TRIANGLE:
            knots = [(0, high), (period_us // 2, low), (period_us, high)]
        case WaveForm.SAW:
            knots = [(0, high), (0, low), (period_us, high)]
        case WaveForm.SQUARE:
            fall_us = period_us * share // 100
            knots = [(0, high), (fall_us, high), (fall_us, low), (period_us, low)]
    return _later(Curve(tuple(knots), period_us), peak_us)


def _cosine(low: int, high: int, period_us: int) -> list[Knot]:
    down = [(period_us * index // 24, low + (high - low) * left // 10_000) for index, left in enumerate(_COSINE)]
    return down + [(period_us - time_us, value) for time_us, value in reversed(down[:-1])]


def random_values(
    seed: str, low: int, high: int, step: int | None = None, *, every_us: int, until_us: int
) -> Sequence[Knot]:
    """Return points in equal distances between low and high, each at most ``step`` away from the one before."""
    times_us = range(0, until_us + every_us, every_us)
    drawn = _random_words(seed, len(times_us))
    if step is None:
        span = high - low + 1
        values = [low + (span * word >> _RANDOM_BITS) for word in drawn]
    else:
        values = [low + ((high - low + 1) * drawn[0] >> _RANDOM_BITS)]
        last = values[0]
        for word in drawn[1:]:
            least, most = max(low, last - step), min(high, last + step)
            last = least + ((most - least + 1) * word >> _RANDOM_BITS)
            values.append(last)
    if max(-low, high) > MOST_KEPT:
        return list(zip(times_us, values, strict=True))
    return Knots(times_us, array("q", values))


def _random_words(seed: str, count: int) -> array[int]:
    """Return so many times 32 random bits at once; the generator fills a long number from its lowest bits upwards."""
    bits = Random(seed).getrandbits(_RANDOM_BITS * count)  # noqa: S311 - repeatable on purpose
    words = array("I")
    words.frombytes(bits.to_bytes(_RANDOM_BITS // 8 * count, sys.byteorder))
    return words if sys.byteorder == "little" else words[::-1]


def total(curves: Iterable[Curve]) -> Curve:
    """Return the sum of curves without periods. One that counts from the start of its container makes all do so.

    At the knots it is exact; between them it may be off by less than one for each curve.
    """
    several = [curve for curve in curves if not (curve.is_constant and curve.knots[0][1] == 0)]
    if not several:
        return ZERO
    if len(several) == 1:
        return several[0]
    assert all(curve.period_us is None for curve in several)
    knots: list[Knot] = []
    for time_us in sorted({time_us for curve in several for time_us, _ in curve.knots}):
        knots.append((time_us, sum(_before(curve, time_us) for curve in several)))
        knots.append((time_us, sum(curve.at(time_us) for curve in several)))
    clocks = {curve.clock for curve in several}
    return _tidy(knots, Clock.CONTAINER if Clock.CONTAINER in clocks else Clock.SCENARIO)


def raised(curve: Curve, amount: int) -> Curve:
    """Return a curve that is higher by an amount everywhere."""
    if amount == 0:
        return curve
    return replace(curve, knots=kept([(time_us, value + amount) for time_us, value in curve.knots]))


def delayed(curve: Curve, by_us: int) -> Curve:
    """Return a curve that happens later; one that repeats is only shifted."""
    if by_us == 0:
        return curve
    if curve.period_us is not None:
        return _later(curve, by_us)
    return replace(curve, knots=kept([(time_us + by_us, value) for time_us, value in curve.knots]))


def _before(curve: Curve, time_us: int) -> int:
    """Return what a curve heads for just before a time."""
    piece = curve.piece(time_us - 1)
    return piece.end_value if piece.end_us == time_us else curve.at(time_us)


def _later(curve: Curve, by_us: int) -> Curve:
    """Shift a repeating curve: what was at 0 is at ``by_us``."""
    period_us = curve.period_us
    assert period_us is not None
    by_us %= period_us
    if by_us == 0:
        return curve
    knots: list[Knot] = []
    for piece in curve.pieces(period_us - by_us, 2 * period_us - by_us - 1):
        assert piece.end_us is not None
        begin_us = max(piece.start_us, period_us - by_us)
        end_us = min(piece.end_us, 2 * period_us - by_us)
        last = piece.end_value if end_us == piece.end_us else piece.at(end_us)
        knots += [(begin_us - period_us + by_us, piece.at(begin_us)), (end_us - period_us + by_us, last)]
    return replace(_tidy(knots), period_us=period_us, clock=curve.clock)


def _tidy(points: Sequence[Knot], clock: Clock = Clock.SCENARIO) -> Curve:
    """Return the curve through points, without those that change nothing."""
    if _is_tidy(points):
        return Curve(points if len(points) >= MANY_KNOTS else tuple(points), clock=clock)
    knots: list[Knot] = []
    for knot in points:
        if knots and knots[-1] == knot:
            continue
        if len(knots) >= 2 and (knots[-2][1] == knots[-1][1] == knot[1] or knots[-2][0] == knots[-1][0] == knot[0]):
            knots.pop()
        knots.append(knot)
    while len(knots) > 1 and knots[-1][1] == knots[-2][1]:
        knots.pop()
    return Curve(kept(knots), clock=clock)


def _is_tidy(points: Sequence[Knot]) -> TypeGuard[Knots]:
    """Whether points are columns of equal distances in which every one counts, as most random ones are."""
    if not isinstance(points, Knots) or not isinstance(points.times_us, range):
        return False
    values = points.values
    return not any(map(eq, values, values[1:]))
