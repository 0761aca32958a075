"""What containers used over time, from the files that monitoring gives: CSV, JSON, or Prometheus' range queries.

CSV has a heading and a row per sample: ``pod``, and any of ``time``, ``container``, ``memory``, ``cpu``, ``oomKills``;
amounts as in manifests. JSON is a list of objects with the same names. Of Prometheus it is the answer to
``query_range`` (a matrix), told by the name of the metric::

    container_memory_working_set_bytes                      memory
    container_cpu_usage_seconds_total                       cpu: what was used between two samples
    container_oom_events_total                              OOM kills
    kube_pod_container_status_last_terminated_reason        OOM kills, where reason is OOMKilled

A result without a name, such as of ``rate(container_cpu_usage_seconds_total[5m])``, is what the caller says it is.
Samples of all pods of a workload are one collection: what they were is of interest, not when.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from io import StringIO
from itertools import pairwise
from typing import Literal

import msgspec
from msgspec import Struct

from podqos.errors import InputError, InvalidQuantity
from podqos.manifest.amounts import decode_hook
from podqos.manifest.decode import PLAIN_DECODER
from podqos.manifest.fields import suggestion
from podqos.manifest.plain import Plain

Measure = Literal["memory", "cpu", "oomKills"]

COLUMNS = ("time", "pod", "container", "memory", "cpu", "oomKills")

_METRICS: dict[str, Measure] = {
    "container_memory_working_set_bytes": "memory",
    "container_memory_usage_bytes": "memory",
    "container_cpu_usage_seconds_total": "cpu",
    "container_oom_events_total": "oomKills",
    "kube_pod_container_status_last_terminated_reason": "oomKills",
}
# Sums over a whole pod, and the container that only holds the network: no container of anybody's manifest.
_NO_CONTAINERS = ("", "POD")


class Samples(Struct, frozen=True):
    """What the containers of one name in one pod used."""

    pod: str
    """``namespace/name`` or a name; of a pod or of its workload."""
    container: str = ""
    """Empty where the pod has but one."""
    memory_bytes: tuple[int, ...] = ()
    cpu_milli: tuple[int, ...] = ()
    oom_kills: int = 0
    where: str = ""


class _Bag(Struct):
    """Samples in the making."""

    where: str
    memory_bytes: list[int] = []
    cpu_milli: list[int] = []
    oom_kills: int = 0


_Bags = dict[tuple[str, str], _Bag]


def read_samples(source: str, data: bytes, unnamed: Measure = "memory") -> tuple[Samples, ...]:
    """Read a file of samples; ``unnamed`` is what a Prometheus result without a name holds."""
    text = data.decode(errors="replace").lstrip("\ufeff")
    bags: _Bags = {}
    if text.lstrip()[:1] in {"{", "["}:
        try:
            value = PLAIN_DECODER.decode(text.encode())
        except msgspec.DecodeError as error:
            raise InputError(f"not JSON: {error}", where=source, fix="give CSV, JSON or Prometheus' answer") from error
        _take_json(value, bags, source, unnamed)
    else:
        for fields, where in _csv_rows(source, text):
            _take_row(fields, bags, where)
    if not bags:
        raise InputError("no samples in it", where=source, fix=f"the columns are {', '.join(COLUMNS)}")
    return tuple(
        Samples(pod, container, tuple(bag.memory_bytes), tuple(bag.cpu_milli), bag.oom_kills, bag.where)
        for (pod, container), bag in bags.items()
    )


# ---- rows --------------------------------------------------------------------------------------------------------


def _csv_rows(source: str, text: str) -> Iterator[tuple[dict[str, Plain], str]]:
    reader = csv.DictReader(StringIO(text), skipinitialspace=True)
    reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
    for fields in reader:
        where = f"{source}:{reader.line_num}"
        if None in fields or None in fields.values():
            fix = f"the heading has {len(reader.fieldnames)} columns"
            raise InputError("the row has more or fewer columns than the heading", where=where, fix=fix)
        yield {name: value.strip() for name, value in fields.items() if value.strip()}, where


def _take_row(fields: dict[str, Plain], bags: _Bags, where: str) -> None:
    for name in fields:
        if name not in COLUMNS:
            raise InputError(f"there is no column {name!r}", where=where, fix=suggestion(name, COLUMNS))
    pod, container = fields.get("pod"), fields.get("container", "")
    if not isinstance(pod, str) or not pod or not isinstance(container, str):
        raise InputError("the row says no pod", where=where, fix="write its name, or that of its workload")
    bag = bags.setdefault((pod, container), _Bag(where))
    if "memory" in fields:
        bag.memory_bytes.append(_units(fields["memory"], where, milli=False))
    if "cpu" in fields:
        bag.cpu_milli.append(_units(fields["cpu"], where, milli=True))
    if "oomKills" in fields:
        bag.oom_kills += _units(fields["oomKills"], where, milli=False)


def _units(value: Plain, where: str, *, milli: bool) -> int:
    try:
        amount = decode_hook(object, value)
    except InvalidQuantity as error:
        raise InputError(error.what, where=where, fix="amounts are written as in manifests: 250m, 100Mi") from error
    if amount.sign < 0:
        raise InputError(f"{value} is below zero", where=where, fix="leave it out")
    return amount.milli_value if milli else amount.value


# ---- JSON and Prometheus -----------------------------------------------------------------------------------------


def _take_json(value: Plain, bags: _Bags, source: str, unnamed: Measure) -> None:
    if isinstance(value, list):
        for index, row in enumerate(value):
            where = f"{source}: [{index}]"
            if not isinstance(row, dict):
                raise InputError("a sample must be an object", where=where, fix='write {"pod": "a", "memory": "1Gi"}')
            _take_row(row, bags, where)
        return
    try:
        answer = msgspec.convert(value, _Answer, strict=False)
    except msgspec.ValidationError as error:
        fix = "give the answer of /api/v1/query_range, or a list of samples"
        raise InputError(f"not an answer of Prometheus: {error}", where=source, fix=fix) from error
    if answer.status != "success":
        raise InputError(f"Prometheus says {answer.status}: {answer.error}", where=source, fix="repeat the query")
    if answer.data.result_type != "matrix":
        what = f"the result is a {answer.data.result_type}"
        raise InputError(what, where=source, fix="ask /api/v1/query_range, which answers with a matrix")
    for index, series in enumerate(answer.data.result):
        _take_series(series, bags, f"{source}: result[{index}]", unnamed)


class _Series(Struct, frozen=True):
    metric: dict[str, str]
    values: tuple[tuple[float, str], ...] = ()


class _Data(Struct, frozen=True, rename="camel"):
    result_type: str = ""
    result: tuple[_Series, ...] = ()


class _Answer(Struct, frozen=True):
    status: str
    data: _Data = _Data()
    error: str = ""


def _take_series(series: _Series, bags: _Bags, where: str, unnamed: Measure) -> None:
    labels = series.metric
    name = labels.get("__name__", "")
    measure = _METRICS.get(name) if name else unnamed
    if measure is None:
        fix = f"known are {', '.join(_METRICS)}"
        raise InputError(f"nothing is known about the metric {name}", where=where, fix=fix)
    pod = labels.get("pod", labels.get("pod_name", ""))
    container = labels.get("container", labels.get("container_name", ""))
    if not pod:
        raise InputError("the series has no label pod", where=where, fix="keep pod and container in the query's result")
    if container in _NO_CONTAINERS and "container" in labels:
        return
    if name.startswith("kube_pod_container_status") and labels.get("reason") != "OOMKilled":
        return
    namespace = labels.get("namespace", "")
    bag = bags.setdefault((f"{namespace}/{pod}" if namespace else pod, container), _Bag(where))
    numbers = [_number(text, where) for _, text in series.values]
    if measure == "memory":
        bag.memory_bytes += [int(number) for number in numbers]
    elif measure == "oomKills":
        is_counter = name == "container_oom_events_total"
        bag.oom_kills += int(_increase(numbers)) if is_counter else int(max(numbers, default=Decimal(0)) > 0)
    elif name:
        bag.cpu_milli += list(_rates(series, numbers))
    else:
        bag.cpu_milli += [int(number * 1000) for number in numbers]


def _number(text: str, where: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or number < 0:
        raise InputError(f"{text!r} is not an amount", where=where, fix="leave such samples out of the query")
    return number


def _increase(numbers: list[Decimal]) -> Decimal:
    """Return by how much a counter rose; one that falls was reset and began anew."""
    steps = pairwise(numbers)
    return sum((after - before if after >= before else after for before, after in steps), Decimal(0))


def _rates(series: _Series, numbers: list[Decimal]) -> Iterator[int]:
    """Yield what was used between two samples of a counter, in thousandths of a core."""
    for index in range(1, len(numbers)):
        seconds = Decimal(repr(series.values[index][0])) - Decimal(repr(series.values[index - 1][0]))
        if seconds > 0:
            yield int(_increase(numbers[index - 1 : index + 1]) * 1000 / seconds)
