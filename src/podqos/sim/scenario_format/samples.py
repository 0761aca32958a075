"""Measured demand: series of samples in CSV, in JSON, or as Prometheus answers a range query.

A table (CSV with a heading, or a JSON list of objects) has a column of times and one per series; a Prometheus answer
(``/api/v1/query_range``) has a series for each set of labels. Times are seconds, durations or dates; dates and seconds
since 1970 are counted from the first sample. Values are amounts as in manifests, or plain numbers.

Files are read by the caller. What the amounts are of is for the caller to say.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from fractions import Fraction
from io import StringIO

import msgspec
from msgspec import Struct

from podqos.errors import InputError
from podqos.manifest.fields import suggestion
from podqos.model.quantity import NANOS, Quantity
from podqos.model.time_units import SECOND_US
from podqos.sim.scenario_format.shape_text import parse_amount, parse_duration_us

_TIME_COLUMNS = ("time", "timestamp", "t")
# Seconds beyond this are a date, not a place in a scenario.
_DATES_FROM_SECONDS = 10**8
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?")


class Series(Struct, frozen=True, gc=False):
    """One series of samples, in the order of time."""

    labels: Mapping[str, str]
    points: tuple[tuple[int, Quantity], ...]
    """Time in microseconds, amount."""


def read_samples(
    source: str, data: bytes, *, column: str | None = None, match: Mapping[str, str] | None = None
) -> tuple[Series, ...]:
    """Return the series of a file that are asked for, at least one; ``source`` is the name to report it under.

    ``column`` names the values of a table. ``match`` selects among the series of Prometheus by labels, whose values
    may be patterns such as ``analytics-*``.
    """
    text = data.decode("utf-8-sig", errors="replace")
    if text.lstrip()[:1] not in {"{", "["}:
        return (_table(source, _csv_rows(source, text), column),)
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InputError(f"neither CSV nor JSON: {error}", where=source, fix="export it again") from None
    if isinstance(value, list):
        return (_table(source, _json_rows(source, value), column),)
    return _prometheus(source, value, match or {})


_Row = tuple[str, Mapping[str, object]]
"""Where it stands, and its fields."""


def _csv_rows(source: str, text: str) -> Iterator[_Row]:
    reader = csv.DictReader(StringIO(text), skipinitialspace=True)
    reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
    for fields in reader:
        where = f"{source}:{reader.line_num}"
        if None in fields or None in fields.values():
            fix = f"the heading has {len(reader.fieldnames)} columns"
            raise InputError("the row has more or fewer columns than the heading", where=where, fix=fix)
        yield where, {name: text.strip() for name, text in fields.items()}


def _json_rows(source: str, rows: list[object]) -> Iterator[_Row]:
    for index, row in enumerate(rows):
        where = f"{source}: [{index}]"
        if isinstance(row, dict):
            yield where, row
        elif isinstance(row, list) and len(row) == 2:
            yield where, {"time": row[0], "value": row[1]}
        else:
            raise InputError("must be an object, or a pair of time and value", where=where, fix="[[0, 1Gi], [10, 2Gi]]")


def _table(source: str, rows: Iterable[_Row], column: str | None) -> Series:
    """Return one column; what is empty in it was not measured."""
    points: list[tuple[str, object, object]] = []
    time_column = ""
    for where, fields in rows:
        if not points and not time_column:
            time_column = next((name for name in _TIME_COLUMNS if name in fields), next(iter(fields), ""))
            column = _value_column(where, fields, time_column, column)
        assert column is not None
        if fields.get(column) not in {None, ""}:
            points.append((where, fields.get(time_column), fields[column]))
    return Series({}, _points(source, points))


def _value_column(where: str, fields: Mapping[str, object], time_column: str, column: str | None) -> str:
    names = [name for name in fields if name != time_column]
    if column is None and len(names) == 1:
        return names[0]
    if column is None:
        raise InputError("there are several columns", where=where, fix=f"say which: column: {' or '.join(names)}")
    if column not in names:
        raise InputError(f'there is no column "{column}"', where=where, fix=suggestion(column, names))
    return column


class _Metric(Struct):
    metric: dict[str, str] = {}
    values: list[tuple[float, str]] = []


class _Data(Struct, rename="camel"):
    result_type: str = ""
    result: list[_Metric] = []


class _Answer(Struct):
    data: _Data
    status: str = "success"


def _prometheus(source: str, value: object, match: Mapping[str, str]) -> tuple[Series, ...]:
    try:
        answer = msgspec.convert(value, _Answer)
    except msgspec.ValidationError as error:
        fix = "save what /api/v1/query_range answers"
        raise InputError(f"no answer of Prometheus: {error}", where=source, fix=fix) from None
    if answer.status != "success" or answer.data.result_type != "matrix":
        what = f"status {answer.status}, result {answer.data.result_type or 'missing'}"
        raise InputError(what, where=source, fix="ask /api/v1/query_range, whose result is a matrix")
    found = [metric for metric in answer.data.result if _matches(metric.metric, match)]
    if not found:
        labels = {name for metric in answer.data.result for name in metric.metric}
        fix = f"{len(answer.data.result)} series have the labels {', '.join(sorted(labels))}"
        raise InputError("no series matches", where=source, fix=fix)
    found.sort(key=lambda metric: sorted(metric.metric.items()))
    series = []
    for metric in found:
        where = f"{source}: {metric.metric}"
        series.append(Series(metric.metric, _points(where, [(where, time, text) for time, text in metric.values])))
    return tuple(series)


def _matches(labels: Mapping[str, str], match: Mapping[str, str]) -> bool:
    return all(fnmatchcase(labels.get(name, ""), pattern) for name, pattern in match.items())


def _points(source: str, raw: list[tuple[str, object, object]]) -> tuple[tuple[int, Quantity], ...]:
    if not raw:
        raise InputError("there are no samples", where=source, fix="the file needs at least one")
    origin_us: int | None = None
    points: list[tuple[int, Quantity]] = []
    for where, time, value in raw:
        try:
            time_us, is_date = _time(time)
            origin_us = (time_us if is_date else 0) if origin_us is None else origin_us
            point = time_us - origin_us, _value(value)
        except InputError as error:
            raise InputError(error.what, where=where, fix=error.fix) from None
        if points and point[0] <= points[-1][0]:
            raise InputError("the time is not later than that of the sample before", where=where, fix="sort by time")
        points.append(point)
    return tuple(points)


def _time(value: object) -> tuple[int, bool]:
    """Return microseconds, and whether they count from 1970."""
    seconds = _number(value)
    if seconds is not None:
        return int(seconds * SECOND_US), seconds >= _DATES_FROM_SECONDS
    if isinstance(value, str) and "-" in value:
        try:
            date = datetime.fromisoformat(value)
        except ValueError:
            raise InputError(f'"{value}" is no date', fix="such as 2026-11-15T04:00:00Z") from None
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        return (date - _EPOCH) // _MICROSECOND, True
    return parse_duration_us(value), False


def _value(value: object) -> Quantity:
    """Return an amount; Prometheus writes numbers in ways that Kubernetes does not."""
    number = _number(value)
    if number is None:
        return parse_amount(value)
    if number < 0:
        raise InputError(f"{value} is below zero", fix="a demand is 0 or more")
    return Quantity(int(number * NANOS))


def _number(value: object) -> Fraction | None:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    written = str(value)
    return Fraction(written) if _NUMBER.fullmatch(written) else None
