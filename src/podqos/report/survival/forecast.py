"""``podqos forecast``: who acts first, how likely, and who dies in each case, as a documented value and as text.

The value is stable: fields are added, never renamed or removed; ``docs/schema/forecast.json`` is made from these
classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from msgspec import Struct

from podqos.agent.journal import By
from podqos.agent.reasons import OOMLevel
from podqos.model.resources import MEMORY
from podqos.model.time_units import SECOND_US
from podqos.report.survival.ranking import amount
from podqos.report.survival.thresholds import duration, threshold_value
from podqos.report.text.style import Style, columns, wrapped
from podqos.survival.forecast import Crossing, Eviction, Forecast, Needed, Outcome

_BAR = 30

CSV_COLUMNS = (
    "pod",
    "container",
    "rate_bytes_per_second",
    "by",
    "victim",
    "victim_container",
    "probability",
    "earliest_seconds",
    "latest_seconds",
    "ends_growth",
)


class ThresholdCrossing(Struct, frozen=True, rename="camel"):
    """A threshold on the way."""

    signal: str
    type: str
    value: str
    """As configured."""
    amount: int
    crossed_after_seconds: float
    window_seconds: float
    """From there to the kernel's kill, less all delays but the wait for a look; zero or less is too late."""


class OutcomeReport(Struct, frozen=True, rename="camel"):
    """One way it can go."""

    by: By
    pod: str
    container: str | None
    """Whom the kernel takes; an eviction takes the whole pod."""
    probability: float
    earliest_seconds: float
    latest_seconds: float
    ends_growth: bool
    """Whether the one that grows is the one that goes."""
    text: str


class NeededReport(Struct, frozen=True, rename="camel"):
    """Settings with which the kubelet is first as often as wanted."""

    probability: float
    eviction_hard_bytes: int
    attainable: bool
    """False where the node would be under pressure before anything grows."""
    soft_threshold_bytes: int | None
    soft_grace_seconds: float | None
    """The longest grace period of that threshold; null where even none is too long."""
    system_reserved_for_soft_bytes: int | None
    text: str


class GrowthReport(Struct, frozen=True, rename="camel"):
    """One container at one rate."""

    pod: str
    container: str
    rate_bytes_per_second: int
    out_of_memory: OOMLevel
    out_of_memory_path: str
    out_of_memory_after_seconds: float
    thresholds: tuple[ThresholdCrossing, ...]
    kubelet_first: float
    outcomes: tuple[OutcomeReport, ...]
    needed: NeededReport | None
    """Null where a limit of its own ends the growth."""


class CurvePoint(Struct, frozen=True, rename="camel"):
    """How likely the kubelet is first at a rate."""

    rate_bytes_per_second: int
    kubelet_first: float


class ForecastReport(Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos forecast -o json``."""

    kubernetes_version: str
    node_memory_bytes: int
    interval_seconds: float
    growths: tuple[GrowthReport, ...]
    curve: tuple[CurvePoint, ...]
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "Forecast"


def forecast_report(
    forecasts: Sequence[Forecast],
    curve: Sequence[Forecast],
    *,
    kubernetes_version: str,
    node_memory_bytes: int,
    interval_us: int,
) -> ForecastReport:
    """Render forecasts into the documented shape; ``curve`` is one container at many rates."""
    return ForecastReport(
        kubernetes_version=kubernetes_version,
        node_memory_bytes=node_memory_bytes,
        interval_seconds=interval_us / SECOND_US,
        growths=tuple(map(_growth, forecasts)),
        curve=tuple(CurvePoint(each.growth.bytes_per_second, float(each.kubelet_first)) for each in curve),
    )


def table(report: ForecastReport, style: Style) -> list[str]:
    """Return a paragraph per rate, and the curve."""
    lines: list[str] = []
    for each in report.growths:
        rate = f"{amount(each.rate_bytes_per_second, MEMORY)}/s"
        lines += [style.strong(f"{each.pod} ({each.container}) grows by {rate}")]
        lines += wrapped(_race_text(each), style, "  ")
        lines += [
            f"  {_percent(outcome.probability):>7}  {line}" if not index else f"           {line}"
            for outcome in each.outcomes
            for index, line in enumerate(wrapped(outcome.text, style, ""))
        ]
        if each.needed is not None:
            lines += wrapped(each.needed.text, style, "  ")
        lines.append("")
    if any(point.kubelet_first for point in report.curve):
        lines.append(style.strong("How likely the kubelet is first, by growth"))
        lines += columns(
            ("GROWTH", "KUBELET", ""),
            [
                (
                    f"{amount(point.rate_bytes_per_second, MEMORY)}/s",
                    _percent(point.kubelet_first),
                    "█" * round(point.kubelet_first * _BAR) or "▏",
                )
                for point in report.curve
            ],
            style,
            "  ",
        )
    return lines


def csv_rows(report: ForecastReport) -> Iterator[tuple[str | int | float | bool | None, ...]]:
    """Yield a row per outcome."""
    for each in report.growths:
        for outcome in each.outcomes:
            yield (
                each.pod,
                each.container,
                each.rate_bytes_per_second,
                outcome.by.value,
                outcome.pod,
                outcome.container,
                outcome.probability,
                outcome.earliest_seconds,
                outcome.latest_seconds,
                outcome.ends_growth,
            )


def _growth(forecast: Forecast) -> GrowthReport:
    return GrowthReport(
        pod=forecast.grower.pod.key,
        container=forecast.growth.container,
        rate_bytes_per_second=forecast.growth.bytes_per_second,
        out_of_memory=forecast.level,
        out_of_memory_path=forecast.room.path,
        out_of_memory_after_seconds=_seconds(forecast.oom_us),
        thresholds=tuple(map(_crossing, forecast.crossings)),
        kubelet_first=float(forecast.kubelet_first),
        outcomes=tuple(map(_outcome, forecast.outcomes)),
        needed=None if forecast.needed is None else _needed(forecast.needed),
    )


def _crossing(crossing: Crossing) -> ThresholdCrossing:
    facts = crossing.facts
    assert facts.amount is not None
    return ThresholdCrossing(
        signal=facts.threshold.signal,
        type="hard" if facts.threshold.is_hard else "soft",
        value=threshold_value(facts.threshold.value),
        amount=facts.amount,
        crossed_after_seconds=_seconds(crossing.crossed_us),
        window_seconds=_seconds(crossing.window_us),
    )


def _outcome(outcome: Outcome) -> OutcomeReport:
    what = outcome.what
    after = "and the growth goes on" if not what.ends_growth else "which ends it"
    if isinstance(what, Eviction):
        threshold = what.crossing.facts.threshold
        kind = "hard" if threshold.is_hard else "soft"
        text = (
            f"the kubelet evicts {what.victim.pod.key} for {threshold.signal} ({kind}) "
            f"{_span(outcome.first_us, outcome.last_us)}, {after}"
        )
        by, key, container = By.KUBELET, what.victim.pod.key, None
    else:
        killed = what.victim
        by, key, container = By.KERNEL, killed.pod.key, killed.usage.name
        score = f"oom_score_adj {killed.score.value}"
        text = f"the kernel kills {key} ({container}, {score}) {_span(outcome.first_us, outcome.last_us)}, {after}"
    return OutcomeReport(
        by=by,
        pod=key,
        container=container,
        probability=float(outcome.probability),
        earliest_seconds=_seconds(outcome.first_us),
        latest_seconds=_seconds(outcome.last_us),
        ends_growth=what.ends_growth,
        text=text,
    )


def _needed(needed: Needed) -> NeededReport:
    chance = _percent(float(needed.probability))
    threshold = amount(needed.hard_threshold_bytes, MEMORY)
    text = f"To be first {chance} of the time the kubelet needs evictionHard memory.available<{threshold}"
    if not needed.attainable:
        text += ": more than is available now, so nothing this fast can be caught by looking"
    if needed.soft_threshold_bytes is not None:
        soft = amount(needed.soft_threshold_bytes, MEMORY)
        grace = needed.soft_grace_us
        text += (
            f"; the soft threshold of {soft} is too late even without a grace period"
            if grace is None
            else f"; the soft threshold of {soft} may have a grace period of up to {duration(grace / SECOND_US)}, and "
            f"systemReserved has to hold {soft} for it"
        )
    return NeededReport(
        probability=float(needed.probability),
        eviction_hard_bytes=needed.hard_threshold_bytes,
        attainable=needed.attainable,
        soft_threshold_bytes=needed.soft_threshold_bytes,
        soft_grace_seconds=None if needed.soft_grace_us is None else needed.soft_grace_us / SECOND_US,
        system_reserved_for_soft_bytes=needed.soft_reservation_bytes,
        text=text + ".",
    )


_WHERE = {
    OOMLevel.CONTAINER: "The container reaches its own limit",
    OOMLevel.POD: "The pod reaches its own limit",
    OOMLevel.CLASS: "The class reaches its limit",
    OOMLevel.KUBEPODS: "All pods together reach what they may use",
    OOMLevel.NODE: "The machine runs out of memory",
}


def _race_text(growth: GrowthReport) -> str:
    text = f"{_WHERE[growth.out_of_memory]} after {_time(growth.out_of_memory_after_seconds)}"
    if all(each.crossed_after_seconds > growth.out_of_memory_after_seconds for each in growth.thresholds):
        return f"{text}, before any threshold of the node is met."
    crossed = [
        f"{each.signal} ({each.type}) is below {amount(each.amount, MEMORY)} after {_time(each.crossed_after_seconds)}"
        for each in growth.thresholds
    ]
    return f"{text}; {'; '.join(crossed) or 'no threshold watches memory'}."


def _span(first_us: Fraction, last_us: Fraction) -> str:
    first, last = _time(_seconds(first_us)), _time(_seconds(last_us))
    return f"after {first}" if first == last else f"after {first} to {last}"


def _seconds(time_us: Fraction) -> float:
    return float(time_us / SECOND_US)


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 100 else duration(round(seconds))


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"
