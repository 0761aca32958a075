"""``podqos check`` as text: findings by file, with line and column, reason, consequence and fix."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from podqos.advice.checks.gate import CheckSummary
from podqos.report.check.value import CheckReport, FindingReport
from podqos.report.text.style import Style, labelled
from podqos.wording import counted


def table(report: CheckReport, style: Style) -> Iterator[str]:
    """Yield the lines of the whole report."""
    for source, items in groupby(report.items, key=lambda item: item.source):
        yield style.strong(_shown(source))
        for item in items:
            yield from finding_lines(item, style)
        yield ""
    yield from summary_lines(report, style)


def finding_lines(item: FindingReport, style: Style) -> Iterator[str]:
    """Yield one finding: a headline, and below it reason, consequence and patch."""
    container = f", container {item.container}" if item.container else ""
    place = f"{item.line}:{item.column}"
    severity = style.severity(item.severity) + " " * (7 - len(item.severity))
    yield f"  {place:<7} {severity}  {item.check} {item.check_name}: {_shown(item.subject + container)}"
    if item.suppression is not None:
        reason = item.suppression.reason or "no reason given"
        yield from _labelled("left", f"suppressed by {item.suppression.by}: {reason}", style)
    yield from _labelled("why", item.reason, style)
    yield from _labelled("so", item.consequence, style)
    yield from _labelled("fix", item.patch.text, style)


def _labelled(label: str, text: str, style: Style) -> list[str]:
    return labelled(label, map(_shown, filter(None, text.split("\n"))), style, 4, 5)


def _shown(text: str) -> str:
    """Return a text that quotes the input, without control characters for the terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def summary_lines(report: CheckReport, style: Style) -> Iterator[str]:
    """Yield the counts, and how to get more."""
    summary = report.summary
    checked = f"{counted(summary.objects, 'object')} in {counted(summary.files, 'file')}"
    if summary.findings:
        parts = [
            f"{count:,} {style.severity(name)}{'' if count == 1 else 's'}"
            for name, count in (("error", summary.errors), ("warning", summary.warnings), ("info", summary.infos))
            if count
        ]
        yield f"{counted(summary.findings, 'finding')} ({', '.join(parts)}) about {checked}"
    else:
        yield f"no findings about {checked}"
    yield from (f"  {line}" for line in left_out(summary))
    fixable = sum(item.patch.is_applied and item.suppression is None for item in report.items)
    if fixable:
        yield f"  {counted(fixable, 'finding')} {'is' if fixable == 1 else 'are'} fixable with --fix (--diff shows how)"
    checks = sorted({item.check for item in report.items})
    if checks:
        yield style.faint(f"  podqos check --explain {checks[0]} explains a check")


def left_out(summary: CheckSummary) -> Iterator[str]:
    """Yield what was left out of the findings, and why."""
    if summary.suppressed:
        yield f"{summary.suppressed} suppressed by annotation or configuration (--show-suppressed shows them)"
    if summary.in_baseline:
        yield f"{summary.in_baseline} known from the baseline"
    if summary.below_min_severity:
        yield f"{summary.below_min_severity} hidden by --min-severity"
