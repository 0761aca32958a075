"""``podqos blast``: the damage each leaking pod does to its neighbours, as text and CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter

from podqos.agent.journal import By
from podqos.model.pod import QOSClass
from podqos.model.resources import MEMORY
from podqos.naming import stated_with
from podqos.report.text.style import Style, columns, wrapped
from podqos.report.text.tables import Table
from podqos.sim.blast import Blast, BlastRadius
from podqos.wording import counted, listed
from podqos.words.durations import rounded
from podqos.words.ranking import amount

_SHOWN = 20
_WIDEST_MATRIX = 24
_SHOWN_EVICTED = 3
_SHOWN_VICTIMS = 3
_CSV: Mapping[str, Callable[[Blast], object]] = {
    **{name: attrgetter(name) for name in Blast.__struct_fields__[:6]},
    "others_killed": lambda blast: blast.pods_taken,
    "guaranteed_killed": lambda blast: sum(death.qos_class is QOSClass.GUARANTEED for death in blast.others),
    "critical_killed": lambda blast: sum(death.is_critical for death in blast.others),
    "first_other": lambda blast: next((death.pod for death in blast.others), None),
    "first_other_after_seconds": lambda blast: next((death.after_seconds for death in blast.others), None),
    "ends_after_seconds": lambda blast: blast.end and blast.end.after_seconds,
    "ended_by": lambda blast: blast.end and blast.end.by,
}


def table(report: BlastRadius, style: Style, *, everything: bool = False) -> list[str]:
    """Return the most dangerous pods, and for a small node the impact matrix."""
    if not report.leaks:
        return wrapped(f"{report.headline} {_evicted_before(report)}", style, "")
    rates = {report.slow_bytes_per_second: "slow", report.fast_bytes_per_second: "fast"}
    harmful = [leak for leak in report.leaks if leak.others]
    slow, fast = _rate(report.slow_bytes_per_second), _rate(report.fast_bytes_per_second)
    where = "one node" if report.nodes == 1 else f"{report.nodes:,} nodes"
    is_of_system = all(leak.is_of_system for leak in report.leaks)
    what = "System daemons" if is_of_system else counted(report.pods, "pod")
    lines = wrapped(style.strong(report.headline), style, "")
    lines.append(f"{what} on {where}, {'each ' if report.pods > 1 else ''}leaking {slow} (slow) and {fast} (fast).")
    if report.evicted_before:
        lines += wrapped(_evicted_before(report), style, "")
    if not harmful:
        return lines
    shown = harmful if everything else style.shown(harmful, _SHOWN)
    title = "Victims" if is_of_system else "The most dangerous pods"
    lines += ["", style.strong(title)]
    headers = ("POD", "NODE", "CLASS", "LEAK", "OTHERS", "FIRST AFTER", "TAKES DOWN", "OUTCOME")
    lines += columns(headers, [_row(blast, rates, style) for blast in shown], style, "  ")
    if len(shown) < len(harmful):
        lines.append(f"  … and {len(harmful) - len(shown):,} more ({stated_with('all')})")
    names = list(dict.fromkeys(leak.pod for leak in report.leaks))
    if report.nodes == 1 and 1 < len(names) <= _WIDEST_MATRIX:
        lines += ["", *_matrix(report, rates, style)]
    return lines


def _evicted_before(report: BlastRadius) -> str:
    evicted = [f"{before.pod} on {before.node}" for before in report.evicted_before]
    more = len(evicted) - _SHOWN_EVICTED
    shown = listed(evicted if more <= 0 else [*evicted[:_SHOWN_EVICTED], f"{more:,} more"])
    begin = f" Leaks begin when {'it is' if len(evicted) == 1 else 'they are'} gone." if report.leaks else ""
    return f"Evicted without any leak: {shown}.{begin}"


def csv_table(report: BlastRadius) -> Table:
    """Return headings, and a row per pod and rate."""
    return _CSV, ([column(leak) for column in _CSV.values()] for leak in report.leaks)


def _row(each: Blast, rates: Mapping[int, str], style: Style) -> tuple[str, ...]:
    return (
        each.pod,
        each.node,
        "–" if each.qos_class is None else style.qos_class(each.qos_class),
        rates.get(each.rate_bytes_per_second, _rate(each.rate_bytes_per_second)),
        str(each.pods_taken),
        rounded(each.others[0].after_seconds),
        _takes(each, style),
        _ends(each),
    )


def _takes(each: Blast, style: Style) -> str:
    """Return the victims, in order; critical and Guaranteed pods stand out."""
    counts: dict[str, int] = {}
    for death in each.others:
        name = death.pod
        if death.is_critical or death.qos_class is QOSClass.GUARANTEED:
            name = style.alarm(f"{name} ({'critical' if death.is_critical else death.qos_class})")
        counts[name] = counts.get(name, 0) + 1
    names = [f"{name} ×{count}" if count > 1 else name for name, count in counts.items()]
    shown = style.shown(names, _SHOWN_VICTIMS)
    return ", ".join(shown) + (f" and {len(names) - len(shown)} more" if len(names) > len(shown) else "")


def _ends(each: Blast) -> str:
    if each.end is None:
        return "never"
    how = "OOM-killed" if each.end.by is By.KERNEL else "evicted"
    return f"{how} after {rounded(each.end.after_seconds)}"


def _matrix(report: BlastRadius, rates: Mapping[int, str], style: Style) -> list[str]:
    """Return the impact matrix: a row per pod that leaks, a column per pod that may die."""
    names = sorted({leak.pod for leak in report.leaks})
    by_pod: dict[str, dict[str, set[str]]] = {name: {} for name in names}
    for leak in report.leaks:
        for death in leak.others:
            by_pod[leak.pod].setdefault(death.pod, set()).add(rates.get(leak.rate_bytes_per_second, "?"))
    victims = report.victims
    rows = [
        (name, *(_cell(by_pod[name].get(victim, set()), is_self=name == victim) for victim in victims), "")
        for name in names
    ]
    legend = "s: at the slow rate, f: at the fast rate, ·: not at all"
    return [style.strong(f"Impact matrix ({legend})"), *columns(("LEAKS", *victims, ""), rows, style, "  ")]


def _cell(found: set[str], *, is_self: bool) -> str:
    if is_self:
        return "–"
    return "".join(letter for letter, name in (("s", "slow"), ("f", "fast")) if name in found) or "·"


def _rate(rate: int) -> str:
    return f"{amount(rate, MEMORY)}/s"
