"""``podqos rehearse``: what was predicted beside what the kernel did, as a documented value and as text.

The value is stable: fields are added, never renamed or removed; ``docs/schema/rehearse.json`` is made from these
classes.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from podqos.agent.journal import By
from podqos.model.time_units import SECOND_US
from podqos.report.text.style import Style, columns, wrapped
from podqos.survival.comparison import Comparison, Explanation, Row, Verdict, Victim

_VERDICTS = {
    Verdict.SAME: "same",
    Verdict.OTHER_HAND: "same pod, other hand",
    Verdict.MOVED: "other place in the order",
    Verdict.ONLY_EXPECTED: "did not happen",
    Verdict.ONLY_HAPPENED: "was not predicted",
}
_EXPLANATIONS = {
    Explanation.CLOSE_CALL: "the kernel's choice hung on less memory than figures are exact to",
    Explanation.CLOSE_IN_TIME: "two fell so close together that either can be first",
    Explanation.OTHER_SCORE: "the machine did not allow the planned oom_score_adj",
}


class VictimReport(Struct, frozen=True, rename="camel"):
    """Somebody who was evicted or killed."""

    at_seconds: float
    by: By
    pod: str
    container: str | None
    cause: str | None


class ComparedVictim(Struct, frozen=True, rename="camel"):
    """One victim, predicted, real, or both."""

    predicted: VictimReport | None
    real: VictimReport | None
    verdict: Verdict
    explanation: str | None
    """Why they differ; null where they do not, or nothing says why."""


class RehearsalReport(Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos rehearse -o json``."""

    scenario: str
    scale: str
    same_victims: bool
    same_order: bool
    flagged: int
    """Differences that nothing explains."""
    victims: tuple[ComparedVictim, ...]
    left_out: tuple[str, ...]
    """What of the scenario has no real counterpart here."""
    notes: tuple[str, ...]
    """What the machine did not allow."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "Rehearsal"


def rehearsal_report(
    comparison: Comparison, *, scenario: str, scale: str, left_out: Sequence[str], notes: Sequence[str]
) -> RehearsalReport:
    """Render a comparison into the documented shape."""
    return RehearsalReport(
        scenario=scenario,
        scale=scale,
        same_victims=comparison.same_victims,
        same_order=comparison.same_order,
        flagged=len(comparison.flagged),
        victims=tuple(map(_row, comparison.rows)),
        left_out=tuple(left_out),
        notes=tuple(notes),
    )


def table(report: RehearsalReport, style: Style) -> list[str]:
    """Return both journals side by side, and the verdict."""
    lines = [style.strong(f"{report.scenario}, {report.scale} of its memory")]
    rows = [
        (
            *_cells(each.predicted),
            *_cells(each.real),
            _VERDICTS[each.verdict] + (f": {each.explanation}" if each.explanation else ""),
        )
        for each in report.victims
    ]
    if rows:
        lines += columns(("PREDICTED", "BY", "WHO", "REAL", "BY", "WHO", ""), rows, style, "  ")
    lines += ["", _verdict(report, style)]
    if report.left_out:
        lines.append(f"Not rehearsed: {', '.join(report.left_out)}.")
    for note in report.notes:
        lines += wrapped(style.faint(note), style, "  ")
    return lines


def _row(row: Row) -> ComparedVictim:
    explanation = None if row.explanation is None else _EXPLANATIONS[row.explanation]
    return ComparedVictim(_victim(row.expected), _victim(row.happened), row.verdict, explanation)


def _victim(victim: Victim | None) -> VictimReport | None:
    if victim is None:
        return None
    cause = None if victim.cause is None else victim.cause.value
    return VictimReport(victim.time_us / SECOND_US, victim.by, victim.pod, victim.container, cause)


def _cells(victim: VictimReport | None) -> tuple[str, str, str]:
    return ("–", "", "") if victim is None else (f"{victim.at_seconds:.2f} s", str(victim.by), victim.pod)


def _verdict(report: RehearsalReport, style: Style) -> str:
    if not report.victims:
        return "Nobody was predicted to die, and nobody did."
    if report.same_victims and report.same_order:
        return "The kernel did as predicted: the same victims in the same order."
    if not report.flagged:
        return "There are differences, and each of them is explained."
    what = "difference" if report.flagged == 1 else "differences"
    return style.alarm(f"{report.flagged} {what} that nothing explains.")
