"""Usage over time in words: peaks, deaths, times, and how to get samples where there are none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from podqos.model.time_units import DAY_US, MINUTE_US, SECOND_US
from podqos.naming import stated_with
from podqos.wording import mebibytes

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
