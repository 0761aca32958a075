"""``podqos rehearse``: what was predicted beside what the kernel did, as text."""

from __future__ import annotations

from podqos.report.text.style import Style, columns, wrapped
from podqos.survival.comparison import Explanation, Rehearsal, Verdict, Victim

_VERDICTS = {
    Verdict.SAME: "same",
    Verdict.OTHER_HAND: "same pod, other killer",
    Verdict.MOVED: "different place in the order",
    Verdict.ONLY_EXPECTED: "did not happen",
    Verdict.ONLY_HAPPENED: "was not predicted",
}

_EXPLANATIONS = {
    Explanation.CLOSE_CALL: "the kernel's choice depended on less memory than the figures' precision",
    Explanation.CLOSE_IN_TIME: "two were so close in time that either could be first",
    Explanation.OTHER_SCORE: "this machine did not allow the planned oom_score_adj",
}


def table(report: Rehearsal, style: Style) -> list[str]:
    """Return the verdict, and both journals side by side."""
    lines = [_verdict(report, style), "", style.strong(f"{report.scenario}, {report.scale} of its memory")]
    rows = [
        (
            *_cells(victim.predicted),
            *_cells(victim.real),
            _VERDICTS[victim.verdict] + (f": {_EXPLANATIONS[victim.explanation]}" if victim.explanation else ""),
        )
        for victim in report.victims
    ]
    if rows:
        lines += columns(("PREDICTED", "BY", "VICTIM", "REAL", "BY", "VICTIM", ""), rows, style, "  ")
    if report.left_out or report.notes:
        lines.append("")
    if report.left_out:
        lines.append(f"Not rehearsed: {', '.join(report.left_out)}.")
    for note in report.notes:
        lines += wrapped(style.faint(note), style, "  ")
    return lines


def _cells(victim: Victim | None) -> tuple[str, str, str]:
    return ("–", "", "") if victim is None else (f"{victim.at_seconds:.2f} s", str(victim.by), victim.pod)


def _verdict(report: Rehearsal, style: Style) -> str:
    if not report.victims:
        return "No pod was predicted to die, and none did."
    if report.same_victims and report.same_order:
        return "The kernel did as predicted: the same victims in the same order."
    if not report.flagged:
        return "Some outcomes differ; every difference is explained."
    what = "difference" if report.flagged == 1 else "differences"
    return style.alarm(f"{report.flagged} unexplained {what}.")
