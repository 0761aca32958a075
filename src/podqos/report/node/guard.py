"""A guard against kernel and kubelet, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import OOMLevel
from podqos.model.time_units import SECOND_US
from podqos.report.text.style import Style, columns, wrapped
from podqos.survival.shadow import (
    GuardDecision,
    GuardedDeath,
    GuardedNode,
    GuardReport,
    Tally,
    Verdict,
)
from podqos.wording import counted, listed
from podqos.words.durations import span
from podqos.words.journal import cause

_DID = {By.KERNEL: "The kernel killed", By.KUBELET: "The kubelet evicted"}
_VERDICTS = {
    Verdict.OTHER: "for {n} the guard would have evicted another pod first",
    Verdict.SAME: "for {n} the guard had chosen the same pod",
    Verdict.LATE: "for {n} the guard was too late",
    Verdict.UNFORESEEN: "{n} died with no threshold crossed",
    Verdict.OWN_LIMIT: "{n} reached {their} own limit",
    Verdict.NOT_WATCHING: "{n} died while no guard watched",
}


def report_lines(report: GuardReport, style: Style) -> list[str]:
    """Return the report."""
    lines = [_node(node) for node in report.nodes] or ["the journal is empty"]
    lines += ["", *wrapped(" ".join(_sentences(report)), style, "", "")]
    if report.deaths:
        rows = [_row(death) for death in report.deaths]
        lines += ["", *columns(("AT (UTC)", "BY", "POD", "THE GUARD", "BEFORE", "FIGURES"), rows, style)]
    if report.unneeded:
        rows = [(at(decision.time_us), decision.pod, _figures(decision)) for decision in report.unneeded]
        lines += ["", style.strong("False alarms: pressure passed without a death")]
        lines += columns(("AT (UTC)", "POD", "FIGURES"), rows, style)
    return lines


def _node(node: GuardedNode) -> str:
    mode = "enforces" if node.enforces else "shadow"
    return f"node {node.node}, {mode}, {at(node.first_us)} to {at(node.last_us)} UTC"


def _sentences(report: GuardReport) -> Iterator[str]:
    for tally in report.tallies:
        if tally.pods:
            yield _told(tally)
    if not report.deaths:
        yield "No OOM kills and no evictions by the kubelet in this time."
    margins = sorted(death.margin_us or 0 for death in report.deaths if death.verdict in {Verdict.SAME, Verdict.OTHER})
    if margins:
        first, median, last = (span(margins[place]) for place in (0, len(margins) // 2, -1))
        many = f", median {median}" if len(margins) > 2 else ""
        yield f"It was {first} ahead{many}." if first == last else f"It was {first} to {last} ahead{many}."
    if report.evicted:
        yield f"The guard itself evicted {counted(len(report.evicted), 'pod')}."
    if report.unneeded:
        alarms = counted(len(report.unneeded), "false alarm")
        yield f"{alarms}: it chose a pod, but the pressure passed without a death."


def _told(tally: Tally) -> str:
    parts = [
        words.format(n=count, their="its" if count == 1 else "their")
        for verdict, words in _VERDICTS.items()
        if (count := tally.verdicts.get(verdict, 0))
    ]
    return f"{_DID[tally.by]} {counted(tally.pods, 'pod')}: {listed(parts)}."


def _row(death: GuardedDeath) -> tuple[str, ...]:
    decision = death.decision
    margin = death.margin_us
    before = "–" if margin is None else f"−{span(-margin)}" if margin < 0 else span(margin)
    figures = _figures(decision) if decision is not None else _level(death)
    return at(death.time_us), death.by.value, death.pod, _choice(death), before, figures


def _choice(death: GuardedDeath) -> str:
    decision = death.decision
    match death.verdict:
        case Verdict.SAME | Verdict.OTHER | Verdict.LATE if decision is not None:
            who = "the same" if decision.pod == death.pod else decision.pod
            did = "evicted" if decision.enforced else "would evict"
            return f"{did} {who}{', too late' if death.verdict is Verdict.LATE else ''}"
        case Verdict.OWN_LIMIT:
            return "its own limit"
        case Verdict.NOT_WATCHING:
            return "not watching"
        case _:
            return "no threshold crossed"


def _level(death: GuardedDeath) -> str:
    levels = {
        OOMLevel.CONTAINER: "container's limit",
        OOMLevel.POD: "pod's limit",
        OOMLevel.CLASS: "limit of its class",
        OOMLevel.KUBEPODS: "limit of all pods",
        OOMLevel.NODE: "machine's memory",
    }
    return "–" if death.level is None else levels[death.level]


def _figures(decision: GuardDecision) -> str:
    return cause(_entry(decision))


def _entry(decision: GuardDecision) -> Entry:
    kind = Kind.EVICTED if decision.enforced else Kind.WOULD_EVICT
    return Entry(decision.time_us, decision.node, kind, decision.pod, None, By.GUARD, decision.because)


def at(time_us: int) -> str:
    """Return a time of a journal."""
    text = datetime.fromtimestamp(time_us / SECOND_US, UTC).isoformat(sep=" ", timespec="milliseconds")
    return text.removesuffix("+00:00")


def csv_rows(report: GuardReport) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
    """Return the deaths as a table for programs."""
    head = ("time_us", "node", "by", "pod", "verdict", "guard_pod", "margin_us", "enforced")
    rows = (
        (
            death.time_us, death.node, death.by.value, death.pod, death.verdict.value,
            death.decision.pod if death.decision else "", death.margin_us,
            death.decision.enforced if death.decision else "",
        )
        for death in report.deaths
    )  # fmt: skip
    return head, rows
