"""``podqos drift`` as text: what it comes to, a line per workload that changed, then the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from podqos.answers.drift import DriftReport, WorkloadDrift
from podqos.naming import stated_with
from podqos.report.text.style import Style, columns, wrapped
from podqos.survival.drift.drift import DriftStatus, Standing
from podqos.wording import counted, mebibytes
from podqos.words.drift import overtakings_words

_HEADERS = ("WORKLOAD", "", "CLASS", "ADJ", "EVICTED #", "KILLED #", "PRIORITY")


def table(report: DriftReport, style: Style) -> list[str]:
    """Return what changed, and the basis of the comparison."""
    changed = report.changed
    if not changed:
        return [
            f"No workload changed class, score or place in a kill order ({len(report.workloads)} compared).",
            *_basis(report, style),
        ]
    rows = [_row(drift, style) for drift in changed]
    lines = [*map(style.strong, wrapped(summary(report), style, "")), "", *columns(_HEADERS, rows, style)]
    for workload in movers(report):
        lines += ["", style.strong(workload.workload)]
        lines += [line for reason in reasons_of(workload) for line in wrapped(reason, style, "  ")]
    return [*lines, "", *_basis(report, style)]


def summary(report: DriftReport) -> str:
    """Return the counts in a sentence."""
    counts = Counter(workload.status for workload in report.workloads)
    names = {
        DriftStatus.BELOW_USAGE: "with a memory limit below usage",
        DriftStatus.AHEAD: "worse in a kill order",
        DriftStatus.BACK: "better in a kill order",
    }
    parts = [f"{count} {names.get(status, status)}" for status in DriftStatus if (count := counts[status])]
    failing = [workload for workload in report.workloads if workload.fails]
    shifted = sum(workload.is_shifted for workload in failing)
    partly = sum(workload.status is DriftStatus.MIXED for workload in failing)
    verdict = (
        f"{counted(len(failing), 'workload')} {'is' if len(failing) == 1 else 'are'}" if failing else "No workload is"
    )
    worse = "partly worse off" if failing and partly == len(failing) else "worse off"
    hint = (
        f" Only because others became safer: {shifted} ({stated_with('allow_shifted')} ignores them)."
        if shifted
        else ""
    )
    return f"{verdict} {worse}.{hint} Of {len(report.workloads)} compared: {', '.join(parts)}."


def movers(report: DriftReport) -> list[WorkloadDrift]:
    """Return those that changed; their reasons also name the workloads that go earlier or later because of it."""
    return [drift for drift in report.changed if drift.differences]


def reasons_of(workload: WorkloadDrift) -> Iterator[str]:
    """Yield what changed in a workload, and the effect on others."""
    yield from (difference.text for difference in workload.differences)
    yield from (limit.sentence for limit in workload.below_usage)
    if workload.resize is not None:
        yield workload.resize.text
    yield from overtakings_words((*workload.moved_ahead, *workload.moved_back), workload.workload)


def basis(report: DriftReport) -> str:
    """Return the basis of the comparison."""
    usage = f"usage from {report.usage}" if report.usage else "no usage given, assumed to equal the old requests"
    injected = f"; injected: {', '.join(report.injectors)}" if report.injectors else ""
    return f"Node of {mebibytes(report.node_memory_bytes)}; {usage}{injected}."


def change(before: object, after: object) -> str:
    """Return a value before and after, or once if it did not change."""
    one, other = ("–" if each is None else str(each) for each in (before, after))
    return one if one == other else f"{one} → {other}"


def _basis(report: DriftReport, style: Style) -> list[str]:
    return [style.faint(line) for line in wrapped(basis(report), style, "")]


def _row(workload: WorkloadDrift, style: Style) -> tuple[str, ...]:
    status = style.alarm(status_word(workload)) if workload.fails else status_word(workload)
    classes = (standing and style.qos_class(standing.qos_class) for standing in (workload.before, workload.after))
    return workload.workload, status, change(*classes), *figures(workload)


def status_word(workload: WorkloadDrift) -> str:
    """Return what became of a workload, in a word."""
    return {DriftStatus.AHEAD: "worse", DriftStatus.BACK: "better"}.get(workload.status, str(workload.status))


def figures(workload: WorkloadDrift) -> Iterator[str]:
    """Yield what the columns after the class show: score, places in both orders, priority."""
    before, after = workload.before, workload.after
    yield change(worst_score(before), worst_score(after))
    for name in ("eviction_place", "kernel_place", "priority"):
        yield change(before and getattr(before, name), after and getattr(after, name))


def worst_score(standing: Standing | None) -> str | None:
    """Return the highest oom_score_adj, with its container if there are others."""
    if standing is None:
        return None
    worst = standing.worst
    alike = len({score.oom_score_adj for score in standing.scores}) == 1
    return str(worst.oom_score_adj) if alike else f"{worst.oom_score_adj} ({worst.container})"
