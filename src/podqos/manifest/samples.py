"""Usage samples: a table (CSV, a JSON list, `kubectl top`), or the response of a range query.

CSV has a heading; a JSON list has objects, or pairs of time and value. Prometheus answers ``/api/v1/query_range`` with
a series per set of labels. Which columns and labels mean what is for the caller to say, who reads the file, too.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from io import StringIO

import msgspec
from msgspec import Struct

from podqos.errors import InputError, InvalidQuantity
from podqos.manifest.amounts import decode_hook
from podqos.manifest.decode import PLAIN_DECODER
from podqos.manifest.plain import Plain
from podqos.model.quantity import NANOS, Quantity

# the columns of `kubectl top pods`, with --containers, -A and --show-swap; NAME is the pod where there is no POD
_TOP = {"NAMESPACE": "namespace", "POD": "pod", "CPU(cores)": "cpu", "MEMORY(bytes)": "memory", "SWAP(bytes)": "swap"}
# The same without headings, by number of columns. Four may also be a namespace and a pod; containers are likelier.
_BARE_TOP = {
    3: ["NAME", "CPU(cores)", "MEMORY(bytes)"],
    4: ["POD", "NAME", "CPU(cores)", "MEMORY(bytes)"],
    5: ["NAMESPACE", "POD", "NAME", "CPU(cores)", "MEMORY(bytes)"],
}
_SPELLED = {name.upper(): name for name in (*_TOP, "NAME")}
_EITHER = 4
# How controllers name pods: web-7d8b9c4f5-x2k9p, db-0. Random letters are no vowels (apimachinery's util/rand), so that
# istio-proxy is not one of them.
_OF_CONTROLLER = re.compile(r"-(?:[bcdfghjklmnpqrstvwxz2456789]{5}|[0-9]+)$")
_BARE_TOP_LINE = re.compile(r"[^,;]*\s(\d+m|<unknown>)\s+(\d+[KMG]i|<unknown>)\s*", re.ASCII)
_FORMATS = "give CSV, JSON or a Prometheus result"
_AMOUNTS = "write quantities as in manifests: 250m, 100Mi"
_MOST_DIGITS = 18
_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?")


class SampleRow(Struct, frozen=True):
    """A row of a table. Empty CSV cells were not measured, and are left out."""

    fields: Mapping[str, Plain]
    where: str
    columns: tuple[str, ...] = ()
    """All columns the row can have; for a CSV, those of its heading."""
    heading: str = ""
    """Where those are written."""


class PrometheusSeries(Struct, frozen=True):
    """One series of a query."""

    metric: dict[str, str] = {}
    values: tuple[tuple[float, str], ...] = ()
    """Seconds since 1970, and a number as text."""
    value: tuple[float, str] | None = None
    """The one of an instant query."""


class _Matrix(Struct, frozen=True, rename="camel"):
    result_type: str = "missing"
    result: tuple[PrometheusSeries, ...] = ()


class _Answer(Struct, frozen=True, rename="camel"):
    status: str = "success"
    data: _Matrix = _Matrix()
    error: str = ""
    warnings: tuple[str, ...] = ()
    is_partial: bool = False
    """Said by VictoriaMetrics."""


class Matrix(Struct, frozen=True):
    """The response of a range query."""

    series: tuple[PrometheusSeries, ...]
    warnings: tuple[str, ...] = ()
    """The server's warnings, such as missing data."""


def read_samples(source: str, data: bytes) -> Iterator[SampleRow] | tuple[PrometheusSeries, ...]:
    """Return the rows of a table, or the series of Prometheus; ``source`` is the name to report the file under."""
    text = data.decode("utf-8-sig", errors="replace")
    if is_top(text) or is_bare_top(text):
        return top_rows(source, text)
    if text.lstrip()[:1] not in {"{", "["}:
        return csv_rows(source, text)
    if text.lstrip()[0] == "{":
        return read_matrix(source, text).series
    try:
        return _json_rows(source, PLAIN_DECODER.decode(text))
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", where=source, fix=_FORMATS) from None


def read_matrix(source: str, data: bytes | str, *, takes_moment: bool = False) -> Matrix:
    """Return the answer to a range query, or to an instant query where one moment is enough (``takes_moment``)."""
    try:
        return _matrix(source, msgspec.json.decode(data, type=_Answer), takes_moment=takes_moment)
    except msgspec.ValidationError as error:
        fix = "give the response of /api/v1/query_range, or a list of samples"
        raise InputError(f"not a Prometheus response: {error}", where=source, fix=fix) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not a Prometheus response: not JSON: {error}", where=source, fix=_FORMATS) from None


def csv_rows(source: str, text: str, delimiter: str = ",", skipped: int = 0) -> Iterator[SampleRow]:
    """Yield the rows of a CSV, their values without spaces around them; ``skipped`` lines come before the text."""
    reader = csv.DictReader(StringIO(text, newline=None), delimiter=delimiter, skipinitialspace=True)
    try:
        columns = reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
        heading = f"{source}:{reader.line_num + skipped}"
        for fields in reader:
            where = f"{source}:{reader.line_num + skipped}"
            surplus = fields.pop(None, ())  # what DictReader calls cells beyond the heading
            if any(text.strip() for text in surplus) or None in fields.values():
                fix = f"the heading has {len(columns)} columns"
                raise InputError("the row has more or fewer columns than the heading", where=where, fix=fix)
            given = {name: text.strip() for name, text in fields.items() if text.strip()}
            if given:
                yield SampleRow(given, where, tuple(columns), heading)
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", where=f"{source}:{reader.line_num}", fix="export it again") from None


def is_top(text: str) -> bool:
    """Whether a text is what `kubectl top` prints."""
    return "MEMORY(BYTES)" in text.lstrip().partition("\n")[0].upper().split()


def is_bare_top(text: str) -> bool:
    """Whether a text is what `kubectl top pods --no-headers` prints."""
    line = text.lstrip().partition("\n")[0]
    return _BARE_TOP_LINE.fullmatch(line) is not None and len(line.split()) in _BARE_TOP


def top_rows(source: str, text: str) -> Iterator[SampleRow]:
    """Yield what `kubectl top pods` prints, with --containers or without, as rows of pod, container, cpu and memory.

    What was printed several times into one file counts as several samples.
    """
    lines = [(number, line.split()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    first = lines[0][1]
    heading = [_SPELLED.get(name.upper(), name) for name in first] if is_top(text) else _bare_heading(lines)
    columns = [_TOP.get(name, "container" if "POD" in heading else "pod") for name in heading]
    if not {*heading} <= {*_TOP, "NAME"}:
        fix = "give the output of `kubectl top pods --containers`"
        raise InputError("this is not usage of pods", where=f"{source}:{lines[0][0]}", fix=fix)
    is_total = False
    for number, words in lines:
        where = f"{source}:{number}"
        if words == first and is_top(text):
            is_total = False
            continue
        is_total = is_total or words[0].startswith("____")  # --sum: the line below is the total
        if is_total:
            continue
        if len(words) != len(columns):
            raise InputError("the row has more or fewer columns than the heading", where=where, fix="print it again")
        fields = {name: word for name, word in zip(columns, words, strict=True) if word != "<unknown>"}
        namespace = fields.pop("namespace", "")
        fields["pod"] = f"{namespace}/{fields['pod']}" if namespace else fields["pod"]
        yield SampleRow(fields, where, tuple(columns), f"{source}:{lines[0][0]}")


def _bare_heading(lines: Sequence[tuple[int, list[str]]]) -> list[str]:
    """Return the headings of a table without any. Of four columns the names tell whether the second are pods."""
    count = len(lines[0][1])
    rows = [words for _, words in lines if len(words) == _EITHER]
    first, second = (all(_OF_CONTROLLER.search(words[place]) for words in rows) for place in (0, 1))
    return ["NAMESPACE", *_BARE_TOP[3]] if count == _EITHER and second and not first else _BARE_TOP[count]


def read_amount(value: Plain) -> Quantity:
    """Return an amount that is not below zero, as Kubernetes or Prometheus writes it, exact to the nano unit."""
    nanos = plain_nanos(value)
    if nanos is not None:
        return Quantity(nanos)
    number = read_number(value)
    try:
        amount = decode_hook(Quantity, value) if number is None else Quantity(int(number * NANOS))
    except InvalidQuantity as error:
        raise InputError(f"{value!r} is not a valid quantity: {error.what}", fix=error.fix or _AMOUNTS) from None
    if amount.sign < 0:
        raise InputError(f"{value} is below zero", fix="remove it")
    return amount


def plain_nanos(value: Plain) -> int | None:
    """Return a plain decimal in billionths, rounded down: by far the most amounts are so. None for any other."""
    if not isinstance(value, str) or not value.isascii():
        return None
    whole, point, part = value.partition(".")
    if not whole.isdigit() or len(whole) > _MOST_DIGITS or (point and not part.isdigit()):
        return None
    return int(whole) * NANOS + (int(part[:9].ljust(9, "0")) if part else 0)


def read_number(value: Plain) -> Fraction | None:
    """Return a plain number; None for anything else, such as ``10Mi``."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    written = str(getattr(value, "text", value))
    return Fraction(written) if _NUMBER.fullmatch(written) else None


def _json_rows(source: str, rows: list[Plain]) -> Iterator[SampleRow]:
    for index, row in enumerate(rows):
        where = f"{source}: [{index}]"
        fields = {"time": row[0], "value": row[1]} if isinstance(row, list) and len(row) == 2 else row
        if not isinstance(fields, dict):
            what, fix = "a sample must be an object, or a pair of time and value", '[{"pod": "a", "memory": "1Gi"}]'
            raise InputError(what, where=where, fix=fix)
        yield SampleRow(fields, where, tuple(fields), where)


def _matrix(source: str, answer: _Answer, *, takes_moment: bool) -> Matrix:
    if answer.status != "success":
        raise InputError(f"Prometheus returned {answer.status}: {answer.error}", where=source, fix="repeat the query")
    if answer.data.result_type != "matrix" and not (takes_moment and answer.data.result_type == "vector"):
        what = f"the result is a {answer.data.result_type}"
        raise InputError(what, where=source, fix="query /api/v1/query_range, which returns a matrix")
    partial = ("the response is partial",) if answer.is_partial else ()
    series = tuple(
        one if one.value is None else PrometheusSeries(one.metric, (one.value,)) for one in answer.data.result
    )
    return Matrix(series, (*answer.warnings, *partial))
