"""What the containers of a pod used over time, with the moments at which they were killed or evicted."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from msgspec import Struct

from podqos.advice.sizing.coverage import GAP_STEPS, usual_step_us
from podqos.advice.sizing.matching import container_of, owner_of
from podqos.advice.sizing.samples import ContainerSamples
from podqos.agent.journal import By
from podqos.amounts import mebibytes
from podqos.logs.said import seconds_of
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.model.time_units import DAY_US, MINUTE_US, SECOND_US
from podqos.naming import stated_with
from podqos.orders.drift import Identity
from podqos.questions.autopsy import Autopsy
from podqos.questions.autopsy_death import Manner

_MOST_TICKS = 6
_FEW_DEATHS = 3
_HOUR_US = 60 * MINUTE_US
_STEPS_US = (
    *(seconds * SECOND_US for seconds in (1, 2, 5, 10, 15, 30)),
    *(minutes * MINUTE_US for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * _HOUR_US for hours in (1, 2, 3, 6, 12)),
    *(days * DAY_US for days in (1, 2, 7, 14, 28, 91, 365)),
)


class Clock(Struct, frozen=True):
    """How the times of samples are written, as exactly as their span asks for."""

    are_dates: bool
    """Whether times count from 1970; otherwise from some beginning."""
    span_us: int

    def text(self, time_us: int) -> str:
        """Return a time: ``14:03``, with seconds in a short span, with the day in a long one."""
        has_seconds = self.span_us < _HOUR_US
        if not self.are_dates:
            hours, rest = divmod(time_us // SECOND_US, 3600)
            return f"{hours}:{rest // 60:02}:{rest % 60:02}" if has_seconds else f"{hours}:{rest // 60:02}"
        time = datetime.fromtimestamp(time_us / SECOND_US, UTC)
        clock = f"{time:%H:%M:%S}" if has_seconds else f"{time:%H:%M}"
        return f"{time:%b} {time.day} {clock}" if self.span_us >= DAY_US else clock

    def ticks(self, start_us: int, end_us: int) -> Iterator[tuple[int, str]]:
        """Yield some round times, and how they are written."""
        step_us = next((step for step in _STEPS_US if (end_us - start_us) // step < _MOST_TICKS), _STEPS_US[-1])
        first_us = -(-start_us // step_us) * step_us
        for time_us in range(first_us, end_us + 1, step_us):
            is_day = self.are_dates and step_us >= DAY_US
            yield time_us, self.text(time_us).rpartition(" ")[0] if is_day else self.text(time_us)


def peak_text(peak_bytes: int, at: str, limit_bytes: int | None, request_bytes: int | None) -> str:
    """Return ``peak 1.9Gi at 14:02, 95 % of the limit (2Gi)``; without a limit, compared with the request."""
    text = f"peak {_about(peak_bytes)} at {at}"
    if limit_bytes:
        return f"{text}, {_percent(peak_bytes, limit_bytes)} of the limit ({mebibytes(limit_bytes)})"
    if request_bytes:
        share = _percent(peak_bytes, request_bytes)
        return f"{text}, {share} of the request ({mebibytes(request_bytes)}), no limit"
    return f"{text}, no request and no limit"


def death_text(at: str, *, is_eviction: bool) -> str:
    """Return ``OOM-killed at 14:03``."""
    return f"{'evicted' if is_eviction else 'OOM-killed'} at {at}"


def deaths_texts(times: Sequence[str], *, is_eviction: bool) -> list[str]:
    """Return each of a few deaths; of many, how often, and when the first and the last were."""
    if len(times) <= _FEW_DEATHS:
        return [death_text(at, is_eviction=is_eviction) for at in times]
    what = "evicted" if is_eviction else "OOM-killed"
    return [f"{what} {len(times):,} times, first at {times[0]}, last at {times[-1]}"]


def how_to_get_samples(*, is_cluster: bool, is_scenario: bool) -> str:
    """Return how the page gets usage over time, where it has none."""
    if is_scenario:
        return "Not recorded. The Run view shows the usage of a simulated run over time."
    files = "this snapshot" if is_cluster else "these files"
    return (
        f"Not known. Open {files} together with a table of time, pod, container and memory (CSV, or a Prometheus "
        f"range query as JSON), or start podqos ui with {stated_with('prometheus')} URL."
    )


def _about(amount: int) -> str:
    """Return an amount for reading at a glance: ``1.9Gi``."""
    size, unit = (2**30, "Gi") if amount >= 2**30 else (2**20, "Mi")
    return f"{amount / size:.1f}".removesuffix(".0") + unit


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole
    return f"{share:.0f} %" if share < 99.5 or share >= 100 else "99 %"


MOST_POINTS = 240
"""Of a line; of longer ones the lowest and the highest of each part are kept."""
_MOST_LINES = 8
_MOST_CHARTS = 8
_MOST_DEATHS = 50
_NEAR_US = 10 * MINUTE_US
"""A death so soon after the last sample belongs to it: who is dead is not measured."""


class UsagePoint(Struct, frozen=True, gc=False, rename="camel"):
    """A sample."""

    seconds: float
    """Since 1970, or since some beginning."""
    bytes: int
    is_after_gap: bool = False
    """Whether samples before it are missing, so that no line leads to it."""


class UsageDeath(Struct, frozen=True, gc=False, rename="camel"):
    """The moment of an OOM kill or an eviction."""

    seconds: float
    by: By
    text: str
    """``OOM-killed at 14:03``."""
    container: str = ""
    """Empty: all of them."""


class UsageLine(Struct, frozen=True, gc=False, rename="camel"):
    """What one container of one recorded pod used."""

    pod: str
    points: tuple[UsagePoint, ...]
    samples: int
    """How many were measured."""
    peak_bytes: int
    text: str
    """The peak, when it was and how much of the limit."""


class UsageChart(Struct, frozen=True, gc=False, rename="camel"):
    """What a container used, in all recorded pods."""

    container: str
    request_bytes: int | None
    limit_bytes: int | None
    lines: tuple[UsageLine, ...]
    """That with the highest peak first."""
    deaths: tuple[UsageDeath, ...]
    """Of very many, the last."""
    text: str
    """The highest peak and all deaths, in words."""
    lines_left_out: int = 0


class UsageTick(Struct, frozen=True, gc=False):
    """A label of the time axis."""

    seconds: float
    label: str


class UsageHistory(Struct, frozen=True, rename="camel"):
    """Usage over time; without charts nothing is known, and ``how`` says how to get it."""

    charts: tuple[UsageChart, ...] = ()
    start_seconds: float = 0
    end_seconds: float = 0
    ticks: tuple[UsageTick, ...] = ()
    axis: str = ""
    """What the times are: ``UTC``, or as recorded."""
    whose: str = ""
    """Whose samples they are, where not the pod's own: those of its workload's pods."""
    how: str = ""


class SampleIndex:
    """The samples of a source by pod, and by the workload that their pods belong to by their names."""

    def __init__(self, samples: Iterable[ContainerSamples], workloads: Iterable[Identity]) -> None:
        self._workloads = tuple(workloads)
        self._by_pod: dict[str, list[ContainerSamples]] = {}
        for sample in samples:
            if is_over_time(sample):
                self._by_pod.setdefault(sample.pod, []).append(sample)

    def of(self, pod: Pod, workload: Identity | None) -> tuple[Sequence[ContainerSamples], str]:
        """Return the samples of a pod, or those of its workload's pods and what that is called."""
        own = self._by_pod.get(pod.key) or self._by_pod.get(pod.key.rpartition("/")[2])
        if own or workload is None:
            return own or (), ""
        # Another workload may have a longer name that the pod's name begins with, too.
        named = (name for name in self._by_pod if name.rpartition("/")[2].startswith(workload.name))
        owned = [name for name in named if owner_of(name, self._workloads) == workload]
        return [sample for name in owned for sample in self._by_pod[name]], str(workload)


def is_over_time(sample: ContainerSamples) -> bool:
    """Whether there are at least two samples of memory, each with its time."""
    return len(sample.memory_times_us) == len(sample.memory_bytes) > 1


def usage_history(samples: Sequence[ContainerSamples], pod: Pod, autopsy: Autopsy) -> UsageHistory:
    """Return what the containers of a pod used over time; empty where no sample is about one of them."""
    by_container: dict[str, list[ContainerSamples]] = {}
    for sample in samples:
        container = container_of(sample.container, pod)
        if container is not None:
            by_container.setdefault(container, []).append(sample)
    every = [sample for own in by_container.values() for sample in own]
    if not every:
        return UsageHistory()
    start_us = min(sample.memory_times_us[0] for sample in every)
    last_us = max(sample.memory_times_us[-1] for sample in every)
    clock = Clock(all(sample.are_dates for sample in every), last_us - start_us)
    step_us = usual_step_us(every[0].memory_times_us)
    pods = {pod.key, *(sample.pod for sample in every)}
    known = [
        death
        for death in (_deaths(autopsy, pods, clock, start_us) if clock.are_dates else ())
        if start_us <= death.seconds * SECOND_US <= last_us + max(_NEAR_US, GAP_STEPS * step_us)
    ]
    charts = tuple(
        _chart(container, own, pod, _with_sampled(known, container, own, clock))
        for container, own in list(by_container.items())[:_MOST_CHARTS]
    )
    deaths_us = (round(death.seconds * SECOND_US) for chart in charts for death in chart.deaths)
    end_us = max(last_us, *deaths_us, last_us)
    return UsageHistory(
        charts=charts,
        start_seconds=start_us / SECOND_US,
        end_seconds=end_us / SECOND_US,
        ticks=tuple(UsageTick(time_us / SECOND_US, label) for time_us, label in clock.ticks(start_us, end_us)),
        axis="UTC" if clock.are_dates else "as recorded",
    )


def _chart(container: str, samples: Sequence[ContainerSamples], pod: Pod, deaths: Sequence[UsageDeath]) -> UsageChart:
    request, limit = _memory(pod, container)
    span_us = max(sample.memory_times_us[-1] for sample in samples) - min(
        sample.memory_times_us[0] for sample in samples
    )
    clock = Clock(all(sample.are_dates for sample in samples), span_us)
    lines = sorted(
        (_line(sample, clock, request, limit) for sample in samples), key=lambda line: (-line.peak_bytes, line.pod)
    )
    sentences = [lines[0].text]
    for by in (By.KERNEL, By.KUBELET):
        times = [clock.text(round(death.seconds * SECOND_US)) for death in deaths if death.by is by]
        sentences += deaths_texts(times, is_eviction=by is By.KUBELET)
    return UsageChart(
        container=container,
        request_bytes=request,
        limit_bytes=limit,
        lines=tuple(lines[:_MOST_LINES]),
        deaths=tuple(deaths[-_MOST_DEATHS:]),
        text=" ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences),
        lines_left_out=max(0, len(lines) - _MOST_LINES),
    )


def _line(sample: ContainerSamples, clock: Clock, request: int | None, limit: int | None) -> UsageLine:
    points = list(zip(sample.memory_times_us, sample.memory_bytes, strict=True))
    # Of several as high, the last one: what follows it may have been its end.
    peak_us, peak_bytes = max(points, key=lambda point: (point[1], point[0]))
    return UsageLine(
        pod=sample.pod,
        points=tuple(_points(points, GAP_STEPS * usual_step_us(sample.memory_times_us))),
        samples=len(points),
        peak_bytes=peak_bytes,
        text=peak_text(peak_bytes, clock.text(peak_us), limit, request),
    )


def _points(points: Sequence[tuple[int, int]], most_us: int) -> Iterator[UsagePoint]:
    """Yield the points that are drawn; samples further apart than ``most_us`` have a gap between them."""
    gaps_us = [after for (before, _), (after, _) in pairwise(points) if after - before > most_us]
    passed = 0
    for time_us, amount in thinned(points, MOST_POINTS):
        now = bisect_right(gaps_us, time_us)
        yield UsagePoint(time_us / SECOND_US, amount, now > passed)
        passed = now


def thinned(points: Sequence[tuple[int, int]], most: int) -> Sequence[tuple[int, int]]:
    """Return at most so many points: the ends, and of each part the lowest and the highest."""
    if len(points) <= most:
        return points
    size = -(-len(points) // (most // 2 - 1))
    chosen = {0, len(points) - 1}
    for begin in range(0, len(points), size):
        part = range(begin, min(begin + size, len(points)))
        chosen |= {min(part, key=lambda index: points[index][1]), max(part, key=lambda index: points[index][1])}
    return [points[index] for index in sorted(chosen)]


def _memory(pod: Pod, container: str) -> tuple[int | None, int | None]:
    """Return request and limit of a container."""
    for one in (*pod.spec.containers, *pod.spec.init_containers):
        if one.name == container:
            return _value(one.resources.requests.get(MEMORY)), _value(one.resources.limits.get(MEMORY))
    return None, None


def _value(amount: Quantity | None) -> int | None:
    return None if amount is None else amount.value


# ---- deaths ----------------------------------------------------------------------------------------------------------


def _deaths(autopsy: Autopsy, pods: Collection[str], clock: Clock, near_us: int) -> list[UsageDeath]:
    """Return the OOM kills and evictions of pods that logs, Events, journals and statuses date; each once."""
    near = near_us / SECOND_US
    by = {Manner.OOM_KILL: By.KERNEL, Manner.EVICTION: By.KUBELET}
    dated = [
        (death.when, by[death.manner], death.container)
        for death in autopsy.deaths
        if death.pod in pods and death.manner in by
    ]
    found: list[UsageDeath] = []
    for at, who, container in dated:
        seconds = seconds_of(at, near)
        if seconds is not None:
            text = death_text(clock.text(round(seconds * SECOND_US)), is_eviction=who is By.KUBELET)
            found.append(UsageDeath(seconds, who, text, container))
    return sorted(found, key=lambda death: death.seconds)


def _with_sampled(
    known: Sequence[UsageDeath], container: str, samples: Sequence[ContainerSamples], clock: Clock
) -> list[UsageDeath]:
    """Return the deaths of a container, with the OOM kills that the samples alone tell of."""
    own = [death for death in known if death.container in {"", container}]
    return sorted((*own, *_sampled(own, container, samples, clock)), key=lambda death: death.seconds)


def _sampled(
    known: Sequence[UsageDeath], container: str, samples: Sequence[ContainerSamples], clock: Clock
) -> Iterator[UsageDeath]:
    for sample in samples:
        near_us = max(MINUTE_US, 2 * usual_step_us(sample.memory_times_us))
        for time_us in sample.oom_kill_times_us:
            # A counter is scraped after the kill that a log dates exactly.
            if all(abs(death.seconds * SECOND_US - time_us) > near_us for death in known):
                text = death_text(clock.text(time_us), is_eviction=False)
                yield UsageDeath(time_us / SECOND_US, By.KERNEL, text, container)
