"""Measured demand: a column of a table, or Prometheus series, as amounts over time.

Times are seconds, durations, times of a day or dates; dates and seconds since 1970 are counted from the first sample.
The caller knows the unit; ``manifest.samples`` parses the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from msgspec import Struct

from podqos.errors import InputError
from podqos.manifest.fields import suggestion
from podqos.manifest.plain import Plain
from podqos.manifest.samples import PrometheusSeries, SampleRow, read_amount
from podqos.manifest.samples import read_samples as read_file
from podqos.manifest.times import TIME_COLUMNS, read_time
from podqos.model.quantity import Quantity


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
