"""Samples of what containers used over time, from tables and from series of Prometheus, pod by pod.

``manifest.usage_tables`` reads the forms of tables. Series are recognised by the name of their metric::

    container_memory_working_set_bytes                      memory
    container_cpu_usage_seconds_total                       cpu: what was used between two samples
    container_oom_events_total                              OOM kills
    kube_pod_container_status_last_terminated_reason        OOM kills, where reason is OOMKilled
    kube_pod_container_status_restarts_total                restarts
    kube_pod_container_resource_limits                      the limit of memory, where resource is memory

A result without a name, such as of ``rate(container_cpu_usage_seconds_total[5m])``, is what the caller says it is.

Two Prometheus servers that scrape the same pod give two series for it: of two samples of one time the larger counts.
Two metrics tell of OOM kills, and neither of all: the counter may vanish with its container before it is scraped, and
of the last reason only the last is known. The larger number counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from podqos.errors import InputError
from podqos.manifest.plain import Plain
from podqos.manifest.samples import PrometheusSeries, SampleRow, plain_nanos, read_amount
from podqos.manifest.times import read_time
from podqos.manifest.usage_tables import is_measured, read_usage_table
from podqos.model.quantity import NANOS, Quantity
from podqos.model.time_units import SECOND_US

Measure = Literal["memory", "cpu", "oomKills", "oomReason", "restarts", "limit"]

COLUMNS = ("time", "namespace", "pod", "container", "node", "memory", "cpu", "oomKills", "restarts")
STARTUP_SECONDS = 600
"""How long after a start memory counts as that of the start."""

_METRICS: dict[str, Measure] = {
    "container_memory_working_set_bytes": "memory",
    "container_memory_usage_bytes": "memory",
    "container_cpu_usage_seconds_total": "cpu",
    "container_oom_events_total": "oomKills",
    "kube_pod_container_status_last_terminated_reason": "oomReason",
    "kube_pod_container_status_restarts_total": "restarts",
    "kube_pod_container_resource_limits": "limit",
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
    is_recommendation: bool = False
    """Whether this is what a VerticalPodAutoscaler recommends, and nothing was measured."""
    startup_peak_bytes: int | None = None
    """The most memory within ``STARTUP_SECONDS`` of a start that was measured; None where none was."""
    oom_limit_bytes: int | None = None
    """The highest limit under which it was OOM-killed; None where that is unknown, which means the limit of today."""
    oom_kill_times_us: tuple[int, ...] = ()
    """When it was OOM-killed, as far as that is known: between this sample and the one before or after it."""


_Point = tuple[int | None, int]
"""Time in microseconds where it is known, and an amount."""


class _Bag(Struct):
    """Samples of a container being collected."""

    where: str
    node: str = ""
    memory: list[_Point] = []
    """In bytes."""
    cpu: list[_Point] = []
    """In thousandths of a core."""
    oom_kills: int = 0
    oom_times_us: list[int] = []
    """Of these, those that have a time."""
    oom_reason: list[_Point] = []
    """1 while the last container ended in an OOM kill."""
    restarts: list[_Point] = []
    """As counted up to then."""
    limit: list[_Point] = []
    """Of memory, in bytes."""


class _Bags:
    """The samples of all containers, being collected."""

    def __init__(self) -> None:
        self._bags: dict[tuple[str, str], _Bag] = {}
        self._are_dates: bool | None = None
        self._times: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._read: dict[float, int] = {}

    def of(self, pod: str, container: str, where: str) -> _Bag:
        """Return where the samples of a container belong."""
        return self._bags.setdefault((pod, container), _Bag(where))

    def time_us(self, value: Plain, where: str) -> int:
        """Return a time; dates and times from some beginning do not mix."""
        known = self._read.get(value) if isinstance(value, float) else None
        return self._new_time_us(value, where) if known is None else known

    def _new_time_us(self, value: Plain, where: str) -> int:
        try:
            time_us, is_date = read_time(value)
        except InputError as error:
            raise InputError(error.what, where=where, fix=error.fix) from None
        if self._are_dates is None:
            self._are_dates = is_date
        elif self._are_dates is not is_date:
            what = "absolute and relative times are mixed"
            raise InputError(what, where=where, fix="use dates or Unix seconds in every row")
        if isinstance(value, float):
            self._read[value] = time_us  # series of one query have the same times
        return time_us

    def collected(self, source: str) -> tuple[ContainerSamples, ...]:
        """Return what was collected, a value per pod and container."""
        begin_us = min(
            (time_us for bag in self._bags.values() for time_us, _ in bag.memory[:1] if time_us is not None), default=0
        )
        every = (self._samples(*names, bag, begin_us) for names, bag in self._bags.items())
        telling = tuple(
            samples
            for samples in every
            if samples.memory_bytes or samples.cpu_milli or samples.oom_kills or samples.restarts
        )
        if not telling:
            raise InputError("no samples", where=source, fix=f"the columns are {', '.join(COLUMNS)}")
        return telling

    def _samples(self, pod: str, container: str, bag: _Bag, begin_us: int) -> ContainerSamples:
        memory, cpu, restarts = _in_order(bag.memory), _in_order(bag.cpu), _in_order(bag.restarts)
        kills = _kills_by_reason(_in_order(bag.oom_reason), restarts)
        oom_kills = max(bag.oom_kills, sum(kills.values()))
        by_reason = [time_us for time_us in kills if time_us is not None]
        killed_us = by_reason if sum(kills.values()) > bag.oom_kills else bag.oom_times_us
        return ContainerSamples(
            pod=pod,
            container=container,
            memory_bytes=tuple(amount for _, amount in memory),
            cpu_milli=tuple(amount for _, amount in cpu),
            oom_kills=oom_kills,
            where=bag.where,
            node=bag.node,
            memory_times_us=self._times_of(memory),
            cpu_times_us=self._times_of(cpu),
            are_dates=self._are_dates is not False,
            restarts=_increase([amount for _, amount in restarts]),
            startup_peak_bytes=_startup_peak(memory, restarts, begin_us),
            oom_limit_bytes=_limit_at(kills, _in_order(bag.limit)) if oom_kills else None,
            oom_kill_times_us=tuple(sorted(set(killed_us))),
        )

    def _times_of(self, points: list[_Point]) -> tuple[int, ...]:
        """Return the times of samples; those of pods that were measured together are kept once."""
        times_us = tuple(time_us for time_us, _ in points if time_us is not None)
        return self._times.setdefault(times_us, times_us) if len(times_us) == len(points) else ()


def read_samples(source: str, data: bytes, unnamed: Measure = "memory") -> tuple[ContainerSamples, ...]:
    """Read a file of samples; ``unnamed`` is what a Prometheus result without a name holds."""
    table = read_usage_table(source, data, COLUMNS)
    if isinstance(table, tuple):
        return samples_in(source, table, unnamed)
    bags = _Bags()
    for row in table:
        _take_row(row, bags)
    return bags.collected(source)


def samples_in(source: str, found: Iterable[PrometheusSeries], unnamed: Measure) -> tuple[ContainerSamples, ...]:
    """Return the samples in series of Prometheus; ``unnamed`` is what those without a name hold."""
    return samples_of(source, [(unnamed, found)])


def samples_of(
    source: str, measured: Iterable[tuple[Measure, Iterable[PrometheusSeries]]]
) -> tuple[ContainerSamples, ...]:
    """Return the samples in several results of Prometheus, with what the unnamed series of each hold."""
    bags = _Bags()
    for unnamed, found in measured:
        for index, series in enumerate(found):
            _take_series(series, bags, f"{source}: result[{index}]", unnamed)
    return bags.collected(source)


def _take_row(row: SampleRow, bags: _Bags) -> None:
    fields, where = row.fields, row.where
    pod, container, node = fields.get("pod"), fields.get("container", ""), fields.get("node", "")
    if not isinstance(pod, str) or not pod or not isinstance(container, str):
        raise InputError("the row has no pod", where=where, fix="write the name of the pod or its workload")
    bag = bags.of(pod, container, where)
    bag.node = bag.node or str(node)
    time_us = bags.time_us(fields["time"], where) if "time" in fields else None
    measured = ("memory", "cpu", "oomKills", "restarts")
    amounts = {name: _amount(fields[name], where) for name in measured if is_measured(fields.get(name, ""))}
    if "memory" in amounts:
        bag.memory.append((time_us, amounts["memory"].value))
    if "cpu" in amounts:
        bag.cpu.append((time_us, amounts["cpu"].milli_value))
    if "oomKills" in amounts:
        bag.oom_kills += amounts["oomKills"].value
        if time_us is not None and amounts["oomKills"].value:
            bag.oom_times_us.append(time_us)
    if "restarts" in amounts:
        bag.restarts.append((time_us, amounts["restarts"].value))


def _amount(value: Plain, where: str) -> Quantity:
    try:
        return read_amount(value)
    except InputError as error:
        raise InputError(error.what, where=where, fix=error.fix) from None


def _nanos(text: str, where: str) -> int:
    nanos = plain_nanos(text)
    return _amount(text, where).nanos if nanos is None else nanos


def _take_series(series: PrometheusSeries, bags: _Bags, where: str, unnamed: Measure) -> None:
    labels = series.metric
    name = labels.get("__name__", "")
    measure = _METRICS.get(name) if name else unnamed
    if measure is None:
        fix = f"known metrics: {', '.join(_METRICS)}"
        raise InputError(f"unknown metric {name}", where=where, fix=fix)
    pod = labels.get("pod", labels.get("pod_name", ""))
    container = labels.get("container", labels.get("container_name", ""))
    if not pod:
        raise InputError("the series has no pod label", where=where, fix="keep pod and container in the query's result")
    if container in _NO_CONTAINERS and "container" in labels:
        return
    if labels.get("reason", "OOMKilled") != "OOMKilled" or labels.get("resource", "memory") != "memory":
        return
    namespace = labels.get("namespace", "")
    bag = bags.of(f"{namespace}/{pod}" if namespace else pod, container, where)
    bag.node = bag.node or labels.get("node", "")
    # Whole units as measured: nothing is rounded up to a value that was not reached.
    nanos = [(bags.time_us(time, where), _nanos(text, where)) for time, text in series.values if is_measured(text)]
    if measure == "cpu":
        cores = _rates(nanos) if name else nanos
        bag.cpu += [(time_us, amount * 1000 // NANOS) for time_us, amount in cores]
    elif measure == "oomKills":
        bag.oom_kills += _increase([amount for _, amount in nanos]) // NANOS
        bag.oom_times_us += (after_us for (_, before), (after_us, after) in pairwise(nanos) if after > before)
    else:
        points = {"memory": bag.memory, "restarts": bag.restarts, "oomReason": bag.oom_reason, "limit": bag.limit}
        points[measure] += [(time_us, amount // NANOS) for time_us, amount in nanos]


def _increase(amounts: list[int]) -> int:
    """Return by how much a counter rose; a counter that falls was reset."""
    return sum(after - before if after >= before else after for before, after in pairwise(amounts))


def _rates(counted: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield what was used between two samples of a counter of seconds, in billionths of a core."""
    for (before_us, before), (after_us, after) in pairwise(counted):
        if after_us > before_us:
            yield after_us, _increase([before, after]) * SECOND_US // (after_us - before_us)


def _in_order(points: list[_Point]) -> list[_Point]:
    """Return samples in order of time, of several at one time the largest; without times as they are."""
    if not points or any(time_us is None for time_us, _ in points):
        return points
    largest: dict[int | None, int] = {}
    for time_us, amount in points:
        if amount > largest.get(time_us, -1):
            largest[time_us] = amount
    return sorted(largest.items(), key=lambda point: point[0] or 0)


def _kills_by_reason(reasons: list[_Point], restarts: list[_Point]) -> dict[int | None, int]:
    """Count OOM kills, by the time before, from why containers ended: every restart after which that is the reason.

    Where that was the reason all along, it is one kill of an unknown time.
    """
    killed_us = {time_us for time_us, is_killed in reasons if is_killed}
    kills: dict[int | None, int] = {
        before_us: after - before
        for (before_us, before), (time_us, after) in pairwise(restarts)
        if after > before and time_us is not None and time_us in killed_us
    }
    return kills or ({None: 1} if killed_us else {})


def _limit_at(kills: dict[int | None, int], limits: list[_Point]) -> int | None:
    """Return the highest limit at the times of kills; of all where the times are not known."""
    at_kills = [amount for time_us, amount in limits if time_us in kills]
    return max(at_kills or (amount for _, amount in limits), default=None)


def _startup_peak(memory: list[_Point], restarts: list[_Point], begin_us: int) -> int | None:
    """Return the most memory soon after starts that were measured: of pods that came later, and of restarts."""
    if not memory or memory[0][0] is None:
        return None
    window_us = STARTUP_SECONDS * SECOND_US
    first_us = memory[0][0]
    starts_us = [first_us] if first_us > begin_us + window_us else []
    starts_us += [
        before_us for (before_us, before), (_, after) in pairwise(restarts) if before_us is not None and after > before
    ]
    amounts = [
        amount
        for time_us, amount in memory
        if time_us is not None and any(start_us <= time_us <= start_us + window_us for start_us in starts_us)
    ]
    return max(amounts, default=None)
