"""``podqos check -o junit``: the XML that CI servers show as test results.

A file, or a cluster, is a test suite, a check of an object a test case. A finding at or above ``--fail-on`` fails its
case, one below passes with the finding as its output, a suppressed one is skipped; an object without findings is one
case that passes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from xml.etree.ElementTree import Element, indent, tostring

from podqos.advice.checks.finding import CheckedObject, FailOn
from podqos.report.check.value import CheckReport, FindingReport

# What XML 1.0 cannot hold, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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
            files[subject.source].append(_element("testcase", classname=name, name="no findings"))
    root = _element("testsuites", name="podqos check", **_numbers([case for cases in files.values() for case in cases]))
    for source, cases in files.items():
        suite = _element("testsuite", name=source, **_numbers(cases))
        suite.extend(cases)
        root.append(suite)
    indent(root)
    # A ">" of the input is escaped.
    text = tostring(root, encoding="unicode").replace(" />", "/>")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'


def _numbers(cases: Sequence[Element]) -> dict[str, str]:
    kinds = Counter(child.tag for case in cases for child in case)
    counts = {"tests": len(cases), "failures": kinds["failure"], "errors": 0, "skipped": kinds["skipped"]}
    return {name: str(count) for name, count in counts.items()}


def _case(items: Sequence[FindingReport], fail_on: FailOn) -> Element:
    """Return what a check found about an object."""
    first = items[0]
    name = f"{first.check} {first.check_name}"
    where = {"file": first.source, "line": str(first.line)} if first.line else {}
    case = _element("testcase", classname=first.subject, name=name, **where)
    text = "\n\n".join(map(_description, items))
    shown = [item for item in items if item.suppression is None]
    if not shown and first.suppression is not None:
        why = f"suppressed by {first.suppression.by}: {first.suppression.reason or 'no reason given'}"
        case.append(_element("skipped", message=why))
    elif any(fail_on.fails(item.severity) for item in shown):
        case.append(_element("failure", text, type=first.severity, message=first.title))
    else:
        case.append(_element("system-out", text))
    return case


def _description(item: FindingReport) -> str:
    place = f"{item.place}: {item.severity}: {item.path}" if item.line else f"{item.severity}: {item.path}"
    lines = [place, item.reason, item.consequence]
    return "\n".join(filter(None, [*lines, f"fix: {item.patch.text}" if item.patch.text else ""]))


def _element(tag: str, text: str | None = None, **attributes: str) -> Element:
    element = Element(tag, {name: _clean(value) for name, value in attributes.items()})
    element.text = None if text is None else _clean(text)
    return element


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
