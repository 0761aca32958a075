"""What pods used over time, as monitoring recorded it: read, put in order, thinned out.

CSV (or a JSON list) has a row per sample: ``time``, ``pod``, ``memory``, ``cpu``, and any of ``namespace``,
``container``, ``node``; without the column ``pod`` it is about one pod. From Prometheus it is the answer to a range
query, whose series have the labels ``namespace``, ``pod``, ``container`` and perhaps ``node``.

Monitoring is never clean. Samples may come in any order; of two at one time the larger counts; what is no number
(``NaN``) is left out; a counter that falls was reset. All of that is counted, to be told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise

from msgspec import Struct

from podqos.advice.sizing.coverage import gaps_us, usual_step_us
from podqos.errors import InputError
from podqos.manifest.plain import Plain
from podqos.manifest.samples import PrometheusSeries, SampleRow, read_amount
from podqos.manifest.times import TIME_COLUMNS, read_time
from podqos.manifest.usage_tables import is_measured, read_usage_table
from podqos.model.quantity import NANOS
from podqos.model.time_units import SECOND_US

COLUMNS = (*TIME_COLUMNS, "namespace", "pod", "container", "node", "memory", "cpu")
# Sums over a whole pod, and the container that only holds the network.
_NO_CONTAINERS = ("", "POD")
_NANOS_PER_MILLI = 1_000_000

Point = tuple[int, int]
"""Time in microseconds; bytes, or thousandths of a core."""


class Measure(StrEnum):
    """What was measured."""

    MEMORY = "memory"
    CPU = "cpu"


# By name of the metric: what it measures, and which is taken where there are several, the lowest first.
_METRICS = {
    "container_memory_working_set_bytes": (Measure.MEMORY, 0),
    "container_memory_rss": (Measure.MEMORY, 1),
    "container_memory_usage_bytes": (Measure.MEMORY, 2),
    "container_cpu_usage_seconds_total": (Measure.CPU, 0),
}


class Irregular(StrEnum):
    """What monitoring got wrong, and what was made of it."""

    NO_NUMBER = "not a number, left out"
    TWICE = "duplicate times, of which the larger value counts"
    UNORDERED = "out of order, sorted"
    RESET = "counter resets"
    GAP = "after a gap, interpolated"


class Replayed(Struct, frozen=True):
    """What became of recorded usage in a scenario."""

    pods: int
    workloads: int
    unmatched: Mapping[str, str]
    """By recorded pod, and container: why it is left out."""
    samples: int
    kept: int
    irregular: Mapping[Irregular, int]
    without_samples: tuple[str, ...]
    """Workloads of which no pod was recorded; they do not run."""
    unplaced: int
    """Pods whose node is not known; the scheduler places them."""


class Samples(Struct):
    """The samples of one container and measure, being collected."""

    where: str
    is_counter: bool = False
    points: list[Point] = []
    """In billionths of a unit."""


class RecordedPod(Struct):
    """What is known of a pod."""

    namespace: str
    name: str
    where: str
    node: str = ""
    series: dict[tuple[str, Measure, int], Samples] = {}
    """By container, measure, and how much the metric is wanted."""

    @property
    def key(self) -> str:
        """``namespace/name``, or a name."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class RecordedUsage:
    """The usage of all pods, from any number of files."""

    def __init__(self) -> None:
        self.pods: dict[tuple[str, str], RecordedPod] = {}
        self.irregular: Counter[Irregular] = Counter()
        self._are_dates: bool | None = None

    def take(self, source: str, data: bytes, pod: str = "", measure: Measure | None = None) -> None:
        """Read a file. ``pod`` is the one it is about where it names none, ``measure`` what unnamed series are."""
        found = read_usage_table(source, data, COLUMNS)
        if isinstance(found, tuple):
            self.take_series(source, found, measure)
        else:
            for row in found:
                self._take_row(row, pod)
        if not self.pods:
            raise InputError("no samples", where=source, fix=f"the columns are {', '.join(COLUMNS)}")

    def take_series(self, source: str, found: Iterable[PrometheusSeries], measure: Measure | None) -> None:
        """Take series of Prometheus; ``measure`` is what those without a name are."""
        for index, series in enumerate(found):
            self._take_series(series, source + f": result[{index}]", measure)

    def _take_row(self, row: SampleRow, pod: str) -> None:
        time_column = next((name for name in TIME_COLUMNS if name in row.columns), "")
        if not time_column:
            fix = "name it time; `kubectl top` shows one moment only"
            raise InputError("no time column", where=row.heading, fix=fix)
        texts = {name: str(row.fields.get(name, "")) for name in ("namespace", "pod", "container", "node")}
        name = texts["pod"] or (pod if "pod" not in row.columns else "")
        if not name:
            raise InputError("the row has no pod", where=row.where, fix="write namespace/name into the column pod")
        namespace, _, name = name.rpartition("/")
        found = self._pod(texts["namespace"] or namespace, name, texts["node"], row.where)
        for measure in Measure:
            if measure in row.fields:
                key = texts["container"], measure, 0
                samples = found.series.setdefault(key, Samples(row.where))
                self._add(samples, row.fields.get(time_column), row.fields[measure], row.where)

    def _take_series(self, series: PrometheusSeries, where: str, measure: Measure | None) -> None:
        labels = series.metric
        name = labels.get("__name__", "")
        known = _METRICS.get(name) if measure is None else (measure, 0)
        if known is None:
            fix = f"known metrics: {', '.join(_METRICS)}"
            raise InputError(f"unknown metric {name}" if name else "the series has no name", where=where, fix=fix)
        container = labels.get("container", labels.get("container_name", ""))
        if container in _NO_CONTAINERS and ("container" in labels or "container_name" in labels):
            return
        pod = labels.get("pod", labels.get("pod_name", ""))
        if not pod:
            raise InputError("the series has no pod label", where=where, fix="keep pod and container in the result")
        found = self._pod(labels.get("namespace", ""), pod, labels.get("node", ""), where)
        is_counter = known[0] is Measure.CPU and name.endswith("_total")
        # A container that was started again has a series of its own, and continues the one before.
        samples = found.series.setdefault((container, *known), Samples(where, is_counter))
        for time, text in series.values:
            self._add(samples, time, text, where)

    def _pod(self, namespace: str, name: str, node: str, where: str) -> RecordedPod:
        pod = self.pods.setdefault((namespace, name), RecordedPod(namespace, name, where))
        pod.node = pod.node or node
        return pod

    def _add(self, samples: Samples, time: Plain, value: Plain, where: str) -> None:
        try:
            time_us, is_date = read_time(time)
            if not is_measured(value):
                self.irregular[Irregular.NO_NUMBER] += 1
                return
            nanos = read_amount(value).nanos
        except InputError as error:
            raise InputError(error.what, where=where, fix=error.fix) from None
        if self._are_dates is None:
            self._are_dates = is_date
        elif self._are_dates is not is_date:
            what = "absolute and relative times are mixed"
            raise InputError(what, where=where, fix="use dates or Unix seconds in every row")
        if samples.points and time_us < samples.points[-1][0]:
            self.irregular[Irregular.UNORDERED] += 1
        samples.points.append((time_us, nanos))

    # ---- in order ------------------------------------------------------------------------------------------------

    def measured(self, pod: RecordedPod) -> Iterator[tuple[str, Measure, list[Point], bool]]:
        """Yield container, measure, samples in order of time, and whether each holds until the next."""
        taken: set[tuple[str, Measure]] = set()
        for (container, measure, _), samples in sorted(pod.series.items()):
            if (container, measure) in taken or not samples.points:
                continue
            ordered = self._in_order(samples.points)
            if samples.is_counter:
                ordered = list(self._rates(ordered))
            unit = NANOS if measure is Measure.MEMORY else _NANOS_PER_MILLI
            points = [(time_us, nanos // unit) for time_us, nanos in ordered]
            if points:
                taken.add((container, measure))
                times_us = [time_us for time_us, _ in points]
                self.irregular[Irregular.GAP] += len(gaps_us(times_us, usual_step_us(times_us)))
                yield container, measure, points, samples.is_counter

    def _in_order(self, points: list[Point]) -> list[Point]:
        by_time: dict[int, int] = {}
        for time_us, value in points:
            by_time[time_us] = max(value, by_time.get(time_us, value))
        self.irregular[Irregular.TWICE] += len(points) - len(by_time)
        return sorted(by_time.items())

    def _rates(self, counts: Sequence[Point]) -> Iterator[Point]:
        """Yield what was used from each sample of a counter to the next."""
        for (before_us, before), (after_us, after) in pairwise(counts):
            if after < before:
                self.irregular[Irregular.RESET] += 1
            used = after - before if after >= before else after
            yield before_us, used * SECOND_US // (after_us - before_us)


def thinned(points: Sequence[Point], most_off: int, *, hold: bool) -> list[Point]:
    """Return the samples without which the curve would be off by more than that somewhere; 0 keeps it exactly.

    Held values are compared with the last one kept. Otherwise a straight line goes on from a sample as long as it
    passes all others on its way closely enough.
    """
    if hold:
        return list(_changes(points, most_off))
    kept, last = list(points[:1]), points[0]
    begin_us, begin = last
    # The slopes of lines that pass all samples since then: rise and time of the flattest and the steepest.
    low, low_us, high, high_us = 0, 0, 0, 0
    for time_us, value in points[1:]:
        rise, span_us = value - begin, time_us - begin_us
        if low_us and (rise * low_us < low * span_us or rise * high_us > high * span_us):
            kept.append(last)
            begin_us, begin = last
            low_us = high_us = 0
            rise, span_us = value - begin, time_us - begin_us
        if not low_us or (rise - most_off) * low_us > low * span_us:
            low, low_us = rise - most_off, span_us
        if not high_us or (rise + most_off) * high_us < high * span_us:
            high, high_us = rise + most_off, span_us
        last = time_us, value
    return kept if kept[-1] == last else [*kept, last]


def _changes(points: Sequence[Point], most_off: int) -> Iterator[Point]:
    kept: int | None = None
    for time_us, value in points:
        if kept is None or abs(value - kept) > most_off:
            kept = value
            yield time_us, value
