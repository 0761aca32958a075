"""``podqos check -o junit``: the XML that CI servers show as test results.

A file, or a cluster, is a test suite, a check of an object a test case. A finding at or above ``--fail-on`` fails its
case, one below passes with the finding as its output, a suppressed one is skipped; an object without findings is one
case that passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from podqos.advice.checks.finding import CheckedObject, FailOn
from podqos.answers.findings import CheckReport, FindingReport
from podqos.objects.files import file_behind
from podqos.report.text.junit import document, element
from podqos.words.fixes import patch_lines


def junit(report: CheckReport, checked: Sequence[CheckedObject]) -> str:
    """Return the document; ``checked`` are all objects that were checked."""
    found: dict[tuple[str, str], dict[str, list[FindingReport]]] = {}
    for item in report.items:
        found.setdefault((item.source, item.subject), {}).setdefault(item.check, []).append(item)
    files: dict[str, list[Element]] = {subject.source: [] for subject in checked}
    for (source, _), checks in found.items():
        files.setdefault(source, []).extend(_case(items, report.fail_on) for items in checks.values())
    for subject in checked:
        name = f"{subject.kind} {subject.key}"
        if (subject.source, name) not in found:
            files[subject.source].append(element("testcase", classname=name, name="no findings"))
    return document("podqos check", files)


def _case(items: Sequence[FindingReport], fail_on: FailOn) -> Element:
    """Return what a check found about an object."""
    first = items[0]
    name = f"{first.check} {first.check_name}"
    rendered = file_behind(first.source)
    where = {"file": first.source, "line": str(first.line)} if first.line else {}
    where = where if rendered is None else {"file": rendered}
    case = element("testcase", classname=first.subject, name=name, **where)
    text = "\n\n".join(map(_description, items))
    shown = [item for item in items if item.suppression is None]
    if not shown and first.suppression is not None:
        why = f"suppressed by {first.suppression.by}: {first.suppression.reason or 'no reason given'}"
        case.append(element("skipped", message=why))
    elif any(fail_on.fails(item.severity) for item in shown):
        case.append(element("failure", text, type=first.severity, message=first.title))
    else:
        case.append(element("system-out", text))
    return case


def _description(item: FindingReport) -> str:
    place = f"{item.place}: {item.severity}: {item.path}" if item.line else f"{item.severity}: {item.path}"
    also = f"also: {item.also_text}" if item.also else ""
    lines = [place, item.reason, item.consequence, also]
    return "\n".join(filter(None, [*lines, *patch_lines(item.patch)]))
