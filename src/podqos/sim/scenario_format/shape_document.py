"""Shapes, durations and amounts as a scenario file has them: what is written, before seed and duration are known."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InputError
from podqos.manifest.amounts import decode_hook
from podqos.manifest.plain import FieldPath, Plain
from podqos.manifest.times import parse_duration_us
from podqos.model.quantity import ZERO, Quantity
from podqos.sim.engine.curve import Clock, Curve, Knots
from podqos.sim.scenario_format import shapes
from podqos.sim.scenario_format.shape_text import EXAMPLES, Term, Unit, parse_shape, shape_curve
from podqos.sim.scenario_format.shapes import Series, WaveForm

if TYPE_CHECKING:
    from podqos.manifest.examine import Examination


class Part(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Base of all parts: fields are in camel case, and unknown ones are rejected."""


Model = TypeVar("Model")

REJECTED = Curve(((0, 0),))
"""Stands for a demand whose problem has been reported."""

# This many replicas get random curves of their own; further ones share them in turn.
MOST_VARIANTS = 100
# More than this is a typo.
MOST_AMOUNT = 1 << 60
MOST_POINTS = 100_000


class Duration(int):
    """Microseconds, written as ``1.5s``, ``10m`` or ``7d``."""


class CpuTime(int):
    """Microseconds of one core, written as ``60 cpu-s`` or ``2 cpu-h``."""


class Wave(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A periodic demand, such as day and night."""

    low: Quantity = ZERO
    high: Quantity = ZERO
    period: Duration | None = None
    form: WaveForm = WaveForm.SINE
    peak: Duration = Duration(0)
    """The time of its first peak."""
    share: int = 50
    """Of a square wave: how many percent of the period it is high."""


class RandomValues(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A random demand, by the scenario's seed. Each replica has its own."""

    low: Quantity = ZERO
    high: Quantity = ZERO
    every: Duration | None = None
    step: Quantity | None = None
    """The largest change from one value to the next; absent: any value between low and high."""
    hold: bool = False
    """Keep each value until the next, instead of moving towards it."""


class Samples(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A measured demand: CSV, JSON, or Prometheus' answer to a range query."""

    file: str = ""
    """Relative to the scenario."""
    column: str | None = None
    """Of a table: its column."""
    match: dict[str, str] = {}
    """Of Prometheus: labels of the series, with * as wildcard. Several series are for as many replicas."""
    hold: bool = False
    """Keep each value until the next, instead of moving towards it."""
    repeat: bool = False
    """Start over after the last sample."""


class ShapeDocument(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A demand over time. Exactly one of shape, steps, points, wave, random and samples."""

    shape: str | None = None
    """In one line: 2Gi, 8Gi over 2s, 512Mi + 64Mi per minute."""
    steps: dict[str, Quantity] | None = None
    """By time: the amount from then on."""
    points: dict[str, Quantity] | None = None
    """By time: amounts, with straight lines between them."""
    wave: Wave | None = None
    random: RandomValues | None = None
    samples: Samples | None = None
    base: Quantity = ZERO
    """Added to all amounts."""
    delay: Duration = Duration(0)
    """Added to all times."""
    clock: Clock | None = None
    """What times count from. Absent: rates, and lines, steps and points of a CronJob, from the start of the container,
    others from that of the scenario."""


class Shape(Struct, frozen=True):
    """A demand over time, read and checked."""

    terms: tuple[Term, ...] = ()
    """Of what is written in one line."""
    document: ShapeDocument = ShapeDocument()
    points: tuple[tuple[int, Quantity], ...] = ()
    """Its steps or points."""


Report = Callable[[FieldPath, str, str], None]
"""Takes what is wrong: where, what, how to fix it."""


class CurveSettings(Struct, frozen=True):
    """What making curves of shapes needs."""

    duration_us: int
    seed: int
    samples: Callable[[Samples], tuple[Series, ...]]
    """Reads a file of samples; raises ``InputError``."""
    report: Report
    clock: Clock | None = None
    """What lines, steps and points count from if they do not state it; None is as ``ShapeDocument`` says."""


def curves(
    shape: Shape, unit: Unit, setting: CurveSettings, name: str, path: FieldPath, *, replicas: int = 1
) -> tuple[Curve, ...]:
    """Return the curves of a shape, of which the replicas take turns; ``name`` seeds random ones.

    Where samples cannot be read or a curve falls below zero that is reported, and the demand is nothing.
    """
    try:
        made = _curves(shape, unit, setting, f"{name}/{path[-1]}", replicas)
        assert made, "samples have at least one series"
        moved = tuple(_moved(curve, shape.document, unit) for curve in made)
    except InputError as error:
        where = f"{error.where}: " if error.where else ""
        setting.report(path, f"{where}{error.what}", error.fix)
        return (REJECTED,)
    document = shape.document
    has_clock = any(part is not None for part in (document.clock, document.wave, document.random, document.samples))
    if setting.clock is None or has_clock:
        return moved
    return tuple(replace(curve, clock=setting.clock) for curve in moved)


def _moved(curve: Curve, document: ShapeDocument, unit: Unit) -> Curve:
    """Return a curve raised and delayed as a document says."""
    moved = shapes.delayed(shapes.raised(curve, unit.of(document.base)), int(document.delay))
    knots = moved.knots
    values = knots.values if isinstance(knots, Knots) else [value for _, value in knots]
    if min(values) < 0:
        raise InputError("the demand falls below zero", fix="subtract less")
    if max(values) > MOST_AMOUNT:
        raise InputError("the demand is more than any machine has", fix="check the unit")
    return moved if document.clock is None else replace(moved, clock=document.clock)


def _curves(shape: Shape, unit: Unit, setting: CurveSettings, name: str, replicas: int) -> Sequence[Curve]:
    document = shape.document
    if document.wave is not None:
        wave = document.wave
        assert wave.period is not None
        if setting.duration_us // wave.period > MOST_POINTS:
            raise InputError(
                f"{setting.duration_us // wave.period:,} periods", fix=f"at most {MOST_POINTS:,}: raise `period`"
            )
        low, high = unit.of(wave.low), unit.of(wave.high)
        return [shapes.wave(wave.form, low, high, int(wave.period), peak_us=int(wave.peak), share=wave.share)]
    if document.random is not None:
        variants = max(1, min(replicas, MOST_VARIANTS))
        return [_random(document.random, unit, setting, f"{name}/{index}") for index in range(variants)]
    if document.samples is not None:
        return [_sampled(document.samples, series, unit) for series in setting.samples(document.samples)]
    if shape.points:
        return [_drawn(shape.points, unit.of, hold=document.steps is not None)]
    return [shape_curve(shape.terms, unit, setting.duration_us)]


def _drawn(points: Sequence[tuple[int, Quantity]], of: Callable[[Quantity], int], *, hold: bool) -> Curve:
    return _through([(time_us, of(amount)) for time_us, amount in points], hold=hold)


def _through(points: Sequence[tuple[int, int]], *, hold: bool) -> Curve:
    return shapes.steps(points) if hold else shapes.line(points)


def _random(random: RandomValues, unit: Unit, setting: CurveSettings, name: str) -> Curve:
    assert random.every is not None
    seed, low, high = f"{setting.seed}/{name}", unit.of(random.low), unit.of(random.high)
    every_us, until_us = int(random.every), setting.duration_us
    if until_us // every_us > MOST_POINTS:
        raise InputError(f"{until_us // every_us:,} random values", fix=f"at most {MOST_POINTS:,}: raise `every`")
    step = None if random.step is None else unit.of(random.step)
    points = shapes.random_values(seed, low, high, step, every_us=every_us, until_us=until_us)
    return _through(points, hold=random.hold)


def _sampled(samples: Samples, series: Series, unit: Unit) -> Curve:
    curve = _drawn(series.points, unit.rounded, hold=samples.hold)
    last_us = series.points[-1][0]
    return replace(curve, period_us=last_us) if samples.repeat and last_us else curve


def converted(value: Plain, model: type[Model]) -> Model:
    """Convert a cleaned value to its model; durations and shapes in it are read already."""

    def hook(kind: type, item: object) -> object:
        return decode_hook(kind, item) if kind is Quantity else item

    return msgspec.convert(value, model, dec_hook=hook)


# ---- reading -----------------------------------------------------------------------------------------------------

_CPU_TIME = re.compile(r"(\d+(?:\.\d+)?) ?cpu-(ms|s|seconds?|m|minutes?|h|hours?)", re.ASCII)
_CPU_TIMES = "such as 60 cpu-s, 500 cpu-ms or 2 cpu-h"
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_KINDS = ("shape", "steps", "points", "wave", "random", "samples")


def read_duration(examination: Examination, value: Plain, path: FieldPath) -> Duration:
    """Read a duration, or report that it is invalid."""
    try:
        return Duration(parse_duration_us(value))
    except InputError as error:
        examination.report(path, error.what, error.fix)
        return Duration(0)


def read_cpu_time(examination: Examination, value: Plain, path: FieldPath) -> CpuTime:
    """Read an amount of CPU time, or report that it is invalid."""
    try:
        return _cpu_time(" ".join(str(getattr(value, "text", value)).split()))
    except InputError as error:
        examination.report(path, error.what, error.fix)
        return CpuTime(1)


def _cpu_time(written: str) -> CpuTime:
    matched = _CPU_TIME.fullmatch(written)
    if matched is None:
        number = _NUMBER.match(written)
        fix = _CPU_TIMES if number is None else f"write the unit: {number[0]} cpu-s"
        raise InputError(f'"{written}" is not an amount of CPU time', fix=fix)
    amount_us = parse_duration_us(matched[1] + (matched[2] if matched[2] == "ms" else matched[2][0]))
    if not amount_us:
        raise InputError(f"{written} is less than a microsecond", fix=f"leave it out, or write more, {_CPU_TIMES}")
    return CpuTime(amount_us)


def read_shape(examination: Examination, value: Plain, path: FieldPath) -> Shape:
    """Read a shape in either notation, or report that it is invalid."""
    if not isinstance(value, dict):
        return _read_line(examination, value, path)
    known = len(examination.findings)
    cleaned = examination.clean(value, ShapeDocument, path)
    given = [name for name in _KINDS if isinstance(cleaned, dict) and name in cleaned]
    if len(given) != 1:
        what = f"{' and '.join(given)} exclude each other" if given else "states no demand"
        examination.report(path, what, f"use one of {', '.join(_KINDS)}")
    if len(examination.findings) > known:
        return Shape()
    document = converted(cleaned, ShapeDocument)
    _check(examination, document, path)
    points = document.steps if document.points is None else document.points
    return Shape(
        () if document.shape is None else _read_line(examination, document.shape, (*path, "shape")).terms,
        document,
        () if points is None else _read_points(examination, points, (*path, given[0])),
    )


def _read_line(examination: Examination, value: Plain, path: FieldPath) -> Shape:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        examination.report(path, "must be a demand", EXAMPLES)
        return Shape()
    try:
        return Shape(terms=parse_shape(str(getattr(value, "text", value))))
    except InputError as error:
        examination.report(path, error.what, error.fix)
        return Shape()


def _read_points(
    examination: Examination, points: Mapping[str, Quantity], path: FieldPath
) -> tuple[tuple[int, Quantity], ...]:
    read: list[tuple[int, Quantity]] = []
    for time, amount in points.items():
        time_us = int(read_duration(examination, time, (*path, time)))
        if read and time_us <= read[-1][0]:
            examination.report((*path, time), "is not later than the previous time", "write them in order")
        read.append((time_us, amount))
    if not read:
        examination.report(path, "is empty", "write at least one time, such as {0s: 1Gi}")
    return tuple(read) or ((0, ZERO),)


def _check(examination: Examination, document: ShapeDocument, path: FieldPath) -> None:
    """Report inconsistent fields."""
    for name, part, beat in (("wave", document.wave, "period"), ("random", document.random, "every")):
        if part is None:
            continue
        if not getattr(part, beat):
            examination.report((*path, name, beat), "Required value", "such as 24h")
        if part.low > part.high:
            examination.report((*path, name, "low"), f"{part.low} is higher than high ({part.high})", "swap the two")
    if document.wave is not None and not 0 < document.wave.share < 100:
        examination.report((*path, "wave", "share"), "must lie between 0 and 100", "percent of the period")
    if document.samples is not None and not document.samples.file:
        examination.report((*path, "samples", "file"), "Required value", "name a CSV or JSON file")
