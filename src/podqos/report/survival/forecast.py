"""``podqos forecast`` as text and CSV: who acts first, how likely that is, and which pod dies in each case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from operator import attrgetter

from podqos.agent.journal import By
from podqos.answers.forecast import DeathOrder, Forecast, ForecastOutcome, ForecastReport, Growing, GrowingTogether
from podqos.report.text.style import Style, columns, wrapped
from podqos.report.text.tables import Table
from podqos.wording import counted, listed
from podqos.words.durations import percent
from podqos.words.forecast import race_text, rate_text, span

_BAR = 30

_GROWTH = ("pod", "container", "rate_bytes_per_second")
_OF_SEVERAL = (
    "growing", "probability", "place", "by", "victim", "victim_container", "earliest_seconds", "latest_seconds", "times"
)  # fmt: skip
_OUTCOME = ("by", "pod", "container", "probability", "earliest_seconds", "latest_seconds", "ends_growth")


def table(report: ForecastReport, style: Style) -> list[str]:
    """Return a paragraph per rate, and the curve."""
    answer = headline(report)
    lines = [*wrapped(answer, style, "  ", ""), ""] if answer else []
    for together in report.together:
        lines += [*_together(together, style), ""]
    if report.together:
        lines += wrapped(_simulated(), style, "  ", "")
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


def _together(together: GrowingTogether, style: Style) -> list[str]:
    """Return who dies in which order while several grow at once."""
    rates: dict[str, list[str]] = {}
    for each in together.growing:
        rates.setdefault(rate_text(each.rate_bytes_per_second), []).append(_name(each))
    who = "; ".join(f"{_names(of)} {'grows' if len(of) == 1 else 'grow'} by {rate}" for rate, of in rates.items())
    lines = wrapped(style.strong(who), style, "  ", "")
    for place, death in enumerate(together.orders[0].deaths, 1):
        again = f" ({death.times} times in all, as it starts again)" if death.times > 1 else ""
        text = f"{span(death.earliest_seconds, death.latest_seconds)}: {death.text}{again}"
        lines += wrapped(text, style, "      ", f"  {place:>2}  ")
    died = {(death.pod, death.container) for death in together.orders[0].deaths}
    left = [each for each in together.growing if not died & {(each.pod, each.container), (each.pod, None)}]
    alive = [_name(each) for each in left if each.container]
    if alive:
        lines += wrapped(f"{_names(alive)} {'runs' if len(alive) == 1 else 'run'} on", style, "      ")
    if len(together.orders) > 1:
        share = percent(together.orders[0].probability)
        lines.append(f"  {share} of the time, depending on when the kubelet checks. Otherwise:")
        for order in together.orders[1:]:
            lines += wrapped(_fates(order, len(order.deaths)), style, " " * 11, f"  {percent(order.probability):>7}  ")
    return lines


def _name(growing: Growing) -> str:
    return f"{growing.pod} ({growing.container})" if growing.container else "everything outside pods"


def _names(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return listed([*names[:_SHOWN], counted(more, "more container")] if more > 0 else names)


def _fates(order: DeathOrder, shown: int = 4) -> str:
    """Return who dies in which order, with as many as are shown."""
    told = [f"{death.pod} is {_FATES[death.by]}" for death in order.deaths[:shown]]
    more = [f"{len(order.deaths) - shown} more"] if len(order.deaths) > shown else []
    return ", then ".join([*told, *more]) or "nothing is evicted or killed"


def _orders(every: Sequence[GrowingTogether]) -> str:
    """Return in which order pods most likely die, by the rate that is not always the same."""
    first, last = every[0].growing, every[-1].growing
    varied = next((place for place, each in enumerate(first) if each != last[place]), 0)
    said: dict[str, list[str]] = {}
    for together in every:
        fates = f"{'most likely ' if len(together.orders) > 1 else ''}{_fates(together.orders[0])}"
        said.setdefault(fates, []).append(rate_text(together.growing[varied].rate_bytes_per_second))
    who = f"{_names([_name(each) for each in first])} leak"
    if len(said) == 1:
        return f"If {who}, {next(iter(said))}."
    return f"If {who}: {'; '.join(f'at {listed(rates)} {fates}' for fates, rates in said.items())}."


_FATES = {By.KERNEL: "OOM-killed", By.KUBELET: "evicted"}
_SHOWN = 4


def headline(report: ForecastReport) -> str | None:
    """Return who acts first and which pod dies, at each rate; None where there is nothing to say."""
    if report.together:
        return _orders(report.together)
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
    """Return headings, and a row per outcome, or per death of several that grow."""
    if report.together:
        return _OF_SEVERAL, (row for together in report.together for row in _rows(together))
    pairs = ((growth, outcome) for growth in report.growths for outcome in growth.outcomes)
    by, *victim = _OUTCOME
    return (*_GROWTH, by, "victim", "victim_container", *victim[2:]), (
        [
            float(value) if isinstance(value, Fraction) else value
            for value in (*attrgetter(*_GROWTH)(growth), *attrgetter(*_OUTCOME)(outcome))
        ]
        for growth, outcome in pairs
    )


def _rows(together: GrowingTogether) -> Iterator[tuple[object, ...]]:
    growing = " ".join(f"{each.pod}:{each.container}={each.rate_bytes_per_second}" for each in together.growing)
    for order in together.orders:
        for place, death in enumerate(order.deaths, 1):
            times = float(death.earliest_seconds), float(death.latest_seconds), death.times
            yield growing, float(order.probability), place, death.by, death.pod, death.container, *times


def _simulated() -> str:
    from podqos.sim.blast import MOST_KILLS  # only the answer about several leaks loads the simulator

    return (
        "Simulated from ten moments between two checks of the kubelet, until each that grows has died once, or one "
        f"{MOST_KILLS} times: a killed container starts again and grows again. The settings with which the kubelet "
        "acts first are computed for one leak."
    )
