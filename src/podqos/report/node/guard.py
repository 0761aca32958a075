"""A guard against kernel and kubelet, in words: the report, and what is to be said of one pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import EvictionReport, OOMLevel
from podqos.model.time_units import SECOND_US
from podqos.report.text.style import Style, columns, wrapped
from podqos.survival.shadow import (
    ExplainedDecision,
    GuardDecision,
    GuardedDeath,
    GuardedNode,
    GuardExplanation,
    GuardReport,
    Tally,
    Verdict,
)
from podqos.wording import counted, listed
from podqos.words.durations import span
from podqos.words.journal import cause, reasons, saving_words

_DID = {By.KERNEL: "The kernel killed", By.KUBELET: "The kubelet evicted"}
_VERDICTS = {
    Verdict.OTHER: "for {n} the guard would have evicted another pod first",
    Verdict.SAME: "for {n} the guard had chosen the same pod",
    Verdict.LATE: "for {n} the guard was too late",
    Verdict.UNFORESEEN: "{n} died with no threshold crossed",
    Verdict.OWN_LIMIT: "{n} reached {their} own limit",
    Verdict.NOT_WATCHING: "{n} died while no guard watched",
}
_STAGES = {"held_us": "held", "killed_us": "killed", "gone_us": "gone", "answered_us": "API server answered"}


# ---- the report ------------------------------------------------------------------------------------------------------


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


# ---- one pod ---------------------------------------------------------------------------------------------------------


def explanation_lines(explained: GuardExplanation, style: Style) -> list[str]:
    """Return what is known of one pod: the last decision first, in full."""
    lines: list[str] = []
    for number, decision in enumerate(reversed(explained.decisions)):
        if number:
            lines.append("")
        lines += _decision_lines(decision, style)
    if explained.deaths:
        lines += ["", style.strong("what the kernel and the kubelet did")] if lines else []
        lines += [f"  {_death_words(death, explained.pod)}" for death in explained.deaths]
    return lines


def _decision_lines(each: ExplainedDecision, style: Style) -> Iterator[str]:
    decision = each.decision
    how = "evicted by the guard" if decision.enforced else f"would have been evicted ({decision.because.held_back})"
    again = ""
    if each.times > 1 and each.last_us is not None:
        again = f"; the same {counted(each.times, 'time')} until {at(each.last_us)}"
    yield style.strong(f"{at(decision.time_us)} UTC, node {decision.node}: {decision.pod} {how}{again}")
    for sentence in (*reasons(_entry(decision)), *_saved(each), *_done(each.report)):
        yield from wrapped(sentence, style, "  ", "  ")


def _saved(each: ExplainedDecision) -> Iterator[str]:
    if each.saved_by is None:
        return
    if not each.saved_by:
        yield "No change to the pod alone would have saved it."
        return
    changes = [f"{saving_words(saving)}{_instead(saving.instead)}" for saving in each.saved_by]
    yield f"What would have saved it: {'; '.join(changes)}."


def _instead(pod: str | None) -> str:
    return f" ({pod} is evicted instead)" if pod else ""


def _done(report: EvictionReport | None) -> Iterator[str]:
    if report is None:
        return
    if report.noticed_us is not None:
        since = report.noticed_us
        steps = [
            f"{words} after {span(time_us - since)}"
            for name, words in _STAGES.items()
            if (time_us := getattr(report, name)) is not None
        ]
        if steps:
            faults = "" if report.major_faults is None else f"; {counted(report.major_faults, 'major fault')}"
            yield f"From crossing: {', '.join(steps)}{faults}."
    why = f": {report.why}" if report.why else ""
    yield f"API server: {report.outcome}{why}."


def _death_words(death: GuardedDeath, pod: str) -> str:
    who = "it" if death.pod == pod else death.pod
    did = {By.KERNEL: "the kernel killed", By.KUBELET: "the kubelet evicted"}[death.by]
    decision, margin = death.decision, death.margin_us
    if decision is None or margin is None:
        return f"{at(death.time_us)} UTC: {did} {who}; {_choice(death)}"
    chosen = "it" if decision.pod == death.pod == pod else decision.pod
    chose = "evicted" if decision.enforced else "would have evicted"
    when = f"{span(-margin)} too late" if margin < 0 else f"{span(margin)} before"
    return f"{at(death.time_us)} UTC: {did} {who}; the guard {chose} {chosen} {when}"


# ---- both ------------------------------------------------------------------------------------------------------------


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
