"""Read what containers used over time from monitoring exports: CSV, JSON, or Prometheus range queries.

CSV has a heading and a row per sample: ``pod``, and any of ``time``, ``container``, ``memory``, ``cpu``, ``oomKills``;
amounts as in manifests. JSON is a list of objects with the same names. From Prometheus it is the output of
``query_range`` (a matrix), recognised by the name of the metric::

    container_memory_working_set_bytes                      memory
    container_cpu_usage_seconds_total                       cpu: what was used between two samples
    container_oom_events_total                              OOM kills
    kube_pod_container_status_last_terminated_reason        OOM kills, where reason is OOMKilled

A result without a name, such as of ``rate(container_cpu_usage_seconds_total[5m])``, is what the caller says it is.
The samples of all pods of a workload are pooled: their values matter, not their times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from podqos.errors import InputError
from podqos.manifest.fields import suggestion
from podqos.manifest.plain import Plain
from podqos.manifest.samples import PrometheusSeries, SampleRow, read_amount
from podqos.manifest.samples import read_samples as read_file
from podqos.model.quantity import NANOS, Quantity

Measure = Literal["memory", "cpu", "oomKills"]

COLUMNS = ("time", "pod", "container", "memory", "cpu", "oomKills")

_METRICS: dict[str, Measure] = {
    "container_memory_working_set_bytes": "memory",
    "container_memory_usage_bytes": "memory",
    "container_cpu_usage_seconds_total": "cpu",
    "container_oom_events_total": "oomKills",
    "kube_pod_container_status_last_terminated_reason": "oomKills",
}
# Sums over a whole pod, and the container that only holds the network: neither is in a manifest.
_NO_CONTAINERS = ("", "POD")


class ContainerSamples(Struct, frozen=True):
    """What the containers of one name in one pod used."""

    pod: str
    """``namespace/name`` or a name; of a pod or of its workload."""
    container: str = ""
    """Empty if the pod has only one."""
    memory_bytes: tuple[int, ...] = ()
    cpu_milli: tuple[int, ...] = ()
    oom_kills: int = 0
    where: str = ""
    node: str = ""
    """Where the pod ran; empty where the samples do not tell."""
    memory_times_us: tuple[int, ...] = ()
    """The time of each memory sample, in order; empty where the samples have no times."""
    cpu_times_us: tuple[int, ...] = ()
    are_dates: bool = True
    """Whether times count from 1970; otherwise from some beginning."""
    restarts: int = 0
    """How often the container was started again while it was measured."""
    startup_peak_bytes: int | None = None
    """The most memory within ``STARTUP_SECONDS`` of a start that was measured; None where none was."""
    oom_limit_bytes: int | None = None
    """The highest limit under which it was OOM-killed; None where that is unknown, which means the limit of today."""


class _Bag(Struct):
    """Samples being collected."""

    where: str
    memory_bytes: list[int] = []
    cpu_milli: list[int] = []
    oom_kills: int = 0


_Bags = dict[tuple[str, str], _Bag]


def read_samples(source: str, data: bytes, unnamed: Measure = "memory") -> tuple[ContainerSamples, ...]:
    """Read a file of samples; ``unnamed`` is what a Prometheus result without a name holds."""
    found = read_file(source, data)
    if isinstance(found, tuple):
        return samples_in(source, found, unnamed)
    bags: _Bags = {}
    for row in found:
        _take_row(row, bags)
    return _collected(source, bags)


def samples_in(source: str, found: Iterable[PrometheusSeries], unnamed: Measure) -> tuple[ContainerSamples, ...]:
    """Return the samples in series of Prometheus; ``unnamed`` is what those without a name hold."""
    bags: _Bags = {}
    for index, series in enumerate(found):
        _take_series(series, bags, f"{source}: result[{index}]", unnamed)
    return _collected(source, bags)


def _collected(source: str, bags: _Bags) -> tuple[ContainerSamples, ...]:
    if not bags:
        raise InputError("no samples in it", where=source, fix=f"the columns are {', '.join(COLUMNS)}")
    return tuple(
        ContainerSamples(pod, container, tuple(bag.memory_bytes), tuple(bag.cpu_milli), bag.oom_kills, bag.where)
        for (pod, container), bag in bags.items()
    )


def _take_row(row: SampleRow, bags: _Bags) -> None:
    fields, where = row.fields, row.where
    for name in fields:
        if name not in COLUMNS:
            raise InputError(f"unknown column {name!r}", where=row.heading, fix=suggestion(name, COLUMNS))
    pod, container = fields.get("pod"), fields.get("container", "")
    if not isinstance(pod, str) or not pod or not isinstance(container, str):
        raise InputError("the row names no pod", where=where, fix="write its name, or that of its workload")
    bag = bags.setdefault((pod, container), _Bag(where))
    amounts = {name: _amount(fields[name], where) for name in ("memory", "cpu", "oomKills") if name in fields}
    if "memory" in amounts:
        bag.memory_bytes.append(amounts["memory"].value)
    if "cpu" in amounts:
        bag.cpu_milli.append(amounts["cpu"].milli_value)
    if "oomKills" in amounts:
        bag.oom_kills += amounts["oomKills"].value


def _amount(value: Plain, where: str) -> Quantity:
    try:
        return read_amount(value)
    except InputError as error:
        raise InputError(error.what, where=where, fix=error.fix) from None


def _take_series(series: PrometheusSeries, bags: _Bags, where: str, unnamed: Measure) -> None:
    labels = series.metric
    name = labels.get("__name__", "")
    measure = _METRICS.get(name) if name else unnamed
    if measure is None:
        fix = f"known are {', '.join(_METRICS)}"
        raise InputError(f"unknown metric {name}", where=where, fix=fix)
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
    # Whole units as measured: nothing is rounded up to a value that was not reached.
    numbers = [Fraction(_amount(text, where).nanos, NANOS) for _, text in series.values]
    if measure == "memory":
        bag.memory_bytes += [int(number) for number in numbers]
    elif measure == "oomKills":
        is_counter = name == "container_oom_events_total"
        bag.oom_kills += int(_increase(numbers)) if is_counter else int(max(numbers, default=0) > 0)
    elif name:
        bag.cpu_milli += list(_rates(series, numbers))
    else:
        bag.cpu_milli += [int(number * 1000) for number in numbers]


def _increase(numbers: list[Fraction]) -> Fraction:
    """Return by how much a counter rose; a counter that falls was reset."""
    steps = pairwise(numbers)
    return sum((after - before if after >= before else after for before, after in steps), Fraction(0))


def _rates(series: PrometheusSeries, numbers: list[Fraction]) -> Iterator[int]:
    """Yield what was used between two samples of a counter, in thousandths of a core."""
    for index in range(1, len(numbers)):
        seconds = Fraction(repr(series.values[index][0])) - Fraction(repr(series.values[index - 1][0]))
        if seconds > 0:
            yield int(_increase(numbers[index - 1 : index + 1]) * 1000 / seconds)
