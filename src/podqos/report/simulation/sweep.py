"""``podqos simulate --vary``: the results of many runs, as text and CSV."""

from __future__ import annotations

from collections.abc import Sequence

from podqos.report.text.style import Style, columns
from podqos.report.text.tables import Table
from podqos.sim.sweep import Combination, Distribution, Sweep, WorkloadSurvival
from podqos.words.durations import percent, rounded
from podqos.words.outcome import share_words

_BAR = 20


def table(report: Sweep, style: Style) -> list[str]:
    """Return who acts first and how each workload fares, for each combination of values."""
    lines = [style.strong("Who acts first, and the first victim")]
    has_unplaced = any(combination.never_ran.most for combination in report.combinations)
    unplaced = ("NEVER RAN",) if has_unplaced else ()
    headers = (*report.parameters, "RUNS", "KERNEL", "KUBELET", "KILLS", "EVICTIONS", *unplaced, "FIRST VICTIM")
    rows = [_first_row(combination, has_unplaced=has_unplaced) for combination in report.combinations]
    lines += columns(headers, rows, style, "  ")
    for name in _workloads(report.combinations):
        lines += ["", style.strong(name)]
        own = [
            (combination.values, workload)
            for combination in report.combinations
            for workload in combination.workloads
            if workload.workload == name
        ]
        is_slowed = any(workload.least_share.least < 1 for _, workload in own)
        rows = [
            (
                *(*values, percent(workload.survived), "█" * round(workload.survived * _BAR) or "▏"),
                *_figures(workload),
                *(_shares(workload) if is_slowed else ()),
            )
            for values, workload in own
        ]
        shares = ("CPU SHARE (MEAN)", "CPU SHARE (LEAST)") if is_slowed else ()
        figures = ("KILLS", "EVICTIONS", "NEVER RAN", "DOWN (MEDIAN)", "DOWN (P95)", *shares)
        headers = (*report.parameters, "SURVIVES", "", *figures)
        lines += columns(headers, rows, style, "  ")
    return lines


def csv_table(report: Sweep) -> Table:
    """Return headings, and a row per combination of values and workload; the values come first."""
    kept = {
        "oom_kills": ("mean",),
        "evictions": ("mean",),
        "never_ran": ("mean",),
        "downtime_seconds": ("median", "p95", "most"),
        "mean_share": ("mean",),
        "least_share": ("least",),
    }
    figures = [(name, statistic) for name, statistics in kept.items() for statistic in statistics]
    headings = (*report.parameters, "runs", "workload", "survived", *map("_".join, figures))
    return headings, (
        (
            *(*combination.values, combination.runs, found.workload, found.survived),
            *(getattr(getattr(found, name), statistic) for name, statistic in figures),
        )
        for combination in report.combinations
        for found in combination.workloads
    )


def _first_row(each: Combination, *, has_unplaced: bool) -> tuple[str, ...]:
    victims = ", ".join(f"{name} {percent(share)}" for name, share in each.first_victims.items())
    return (
        *each.values,
        str(each.runs),
        percent(each.kernel_first),
        percent(each.kubelet_first),
        _range(each.oom_kills),
        _range(each.evictions),
        *((_range(each.never_ran),) if has_unplaced else ()),
        victims or "none",
    )


def _figures(found: WorkloadSurvival) -> tuple[str, ...]:
    down = found.downtime_seconds
    counts = (found.oom_kills, found.evictions, found.never_ran)
    return *map(_range, counts), rounded(down.median), rounded(down.p95)


def _shares(found: WorkloadSurvival) -> tuple[str, str]:
    return share_words(found.mean_share.mean), share_words(found.least_share.least)


def _workloads(combinations: Sequence[Combination]) -> list[str]:
    """Return the workloads to show: those affected at all, worst first."""
    worst: dict[str, float] = {}
    for combination in combinations:
        for found in combination.workloads:
            unharmed = min(found.survived, found.least_share.least)
            worst[found.workload] = min(worst.get(found.workload, 1.0), unharmed)
    return sorted((name for name, unharmed in worst.items() if unharmed < 1), key=lambda name: (worst[name], name))


def _range(figures: Distribution) -> str:
    return f"{figures.least:g}" if figures.least == figures.most else f"{figures.least:g}–{figures.most:g}"
