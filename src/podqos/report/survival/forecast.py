"""``podqos forecast`` as text and CSV: who acts first, how likely that is, and which pod dies in each case."""

from __future__ import annotations

from fractions import Fraction
from operator import attrgetter

from podqos.agent.journal import By
from podqos.answers.forecast import Forecast, ForecastOutcome, ForecastReport
from podqos.report.text.style import Style, columns, wrapped
from podqos.report.text.tables import Table
from podqos.wording import listed
from podqos.words.durations import percent
from podqos.words.forecast import race_text, rate_text

_BAR = 30

_GROWTH = ("pod", "container", "rate_bytes_per_second")
_OUTCOME = ("by", "pod", "container", "probability", "earliest_seconds", "latest_seconds", "ends_growth")


def table(report: ForecastReport, style: Style) -> list[str]:
    """Return a paragraph per rate, and the curve."""
    answer = headline(report)
    lines = [*wrapped(answer, style, "  ", ""), ""] if answer else []
    for growth in report.growths:
        rate = rate_text(growth.rate_bytes_per_second)
        lines += [style.strong(f"{subject(growth)} by {rate}")]
        lines += wrapped(race_text(growth), style, "  ")
        for outcome in growth.outcomes:
            lines += wrapped(outcome.text, style, " " * 11, f"  {percent(outcome.probability):>7}  ")
        if growth.needed is not None:
            lines += wrapped(growth.needed.text, style, "  ")
        lines.append("")
    if any(point.kubelet_first for point in report.curve):
        lines.append(style.strong("Chance that the kubelet acts first, by growth rate"))
        lines += columns(
            ("GROWTH", "KUBELET", ""),
            [
                (
                    rate_text(point.rate_bytes_per_second),
                    percent(point.kubelet_first),
                    "█" * round(point.kubelet_first * _BAR) or "▏",
                )
                for point in report.curve
            ],
            style,
            "  ",
        )
    return lines


def headline(report: ForecastReport) -> str | None:
    """Return who acts first and which pod dies, at each rate; None where there is nothing to say."""
    groups: dict[str, list[str]] = {}
    for growth in report.growths:
        rate = rate_text(growth.rate_bytes_per_second)
        groups.setdefault(_likeliest(growth), []).append(rate)
    if not groups:
        return None
    growing = _growing(report.growths[0])
    if len(groups) == 1:
        (act,) = groups
        return f"If {growing}, {act}."
    return f"If {growing}: {'; '.join(f'at {listed(rates)} {act}' for act, rates in groups.items())}."


def _growing(growth: Forecast) -> str:
    return f"{growth.pod} ({growth.container}) leaks" if growth.container else "system daemons leak"


def _likeliest(growth: Forecast) -> str:
    if not growth.outcomes:
        return "nothing is evicted or killed"
    outcome = max(growth.outcomes, key=lambda candidate: candidate.probability)
    act = _act(outcome, growth)
    return act if outcome.probability == 1 else f"most likely {act}"


def _act(outcome: ForecastOutcome, growth: Forecast) -> str:
    who = "it" if outcome.ends_growth and outcome.pod == growth.pod else outcome.pod
    if outcome.by is By.KUBELET:
        return f"the kubelet evicts {who} before the kernel kills"
    before = " at its own memory limit" if growth.needed is None and who == "it" else " before the kubelet evicts"
    return f"the kernel kills {who}{before}"


def subject(growth: Forecast) -> str:
    """Return what grows, with its verb."""
    return f"{growth.pod} ({growth.container}) grows" if growth.container else "System daemons grow"


def csv_table(report: ForecastReport) -> Table:
    """Return headings, and a row per outcome."""
    pairs = ((growth, outcome) for growth in report.growths for outcome in growth.outcomes)
    by, *victim = _OUTCOME
    return (*_GROWTH, by, "victim", "victim_container", *victim[2:]), (
        [
            float(value) if isinstance(value, Fraction) else value
            for value in (*attrgetter(*_GROWTH)(growth), *attrgetter(*_OUTCOME)(outcome))
        ]
        for growth, outcome in pairs
    )
