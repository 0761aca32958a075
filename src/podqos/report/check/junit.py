"""``podqos check -o junit``: the XML that CI servers show as test results.

A file is a test suite, a check of an object a test case. A finding at or above ``--fail-on`` fails its case, one below
passes with the finding as its output, a suppressed one is skipped; an object without findings is one case that passes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from msgspec import Struct

from podqos.advice.checks.finding import CheckedObject, FailOn
from podqos.report.check.value import CheckReport, FindingReport

# What XML 1.0 cannot hold, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class _Suite(Struct):
    """One file."""

    cases: list[str] = []
    failures: int = 0
    skipped: int = 0


def junit(report: CheckReport, checked: Sequence[CheckedObject]) -> str:
    """Return the document; ``checked`` is everything that was looked at."""
    suites: dict[str, _Suite] = {subject.source: _Suite() for subject in checked}
    found = set()
    for items in _cases(report.items):
        first = items[0]
        found.add((first.source, first.subject))
        suite = suites.setdefault(first.source, _Suite())
        suite.cases.append(_case(items, report.fail_on))
        suite.failures += _fails(items, report.fail_on)
        suite.skipped += _is_skipped(items)
    for subject in checked:
        name = f"{subject.kind} {subject.key}"
        if (subject.source, name) not in found:
            suites[subject.source].cases.append(f'    <testcase classname={_attribute(name)} name="no findings"/>')
    return "\n".join(_document(suites))


def _document(suites: Mapping[str, _Suite]) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuites name="podqos check" {_numbers(suites.values())}>'
    for source, suite in suites.items():
        yield f"  <testsuite name={_attribute(source)} {_numbers([suite])}>"
        yield from suite.cases
        yield "  </testsuite>"
    yield "</testsuites>"


def _numbers(suites: Iterable[_Suite]) -> str:
    suites = list(suites)
    tests = sum(len(suite.cases) for suite in suites)
    failures, skipped = sum(suite.failures for suite in suites), sum(suite.skipped for suite in suites)
    return f'tests="{tests}" failures="{failures}" errors="0" skipped="{skipped}"'


def _cases(items: Iterable[FindingReport]) -> Iterator[list[FindingReport]]:
    """Yield the findings of each check about each object, in the order of the first of them."""
    cases: dict[tuple[str, str, str, str, str], list[FindingReport]] = {}
    for item in items:
        cases.setdefault((item.source, item.kind, item.namespace, item.name, item.check), []).append(item)
    return iter(cases.values())


def _case(items: Sequence[FindingReport], fail_on: FailOn) -> str:
    first = items[0]
    name = f"{first.check} {first.check_name}"
    opening = f"    <testcase classname={_attribute(first.subject)} name={_attribute(name)}"
    opening += f' file={_attribute(first.source)} line="{first.line}">'
    text = _text("\n\n".join(map(_description, items)))
    if _is_skipped(items):
        suppression = first.suppression
        assert suppression is not None
        why = f"suppressed by {suppression.by}: {suppression.reason or 'no reason given'}"
        inner = f"<skipped message={_attribute(why)}/>"
    elif _fails(items, fail_on):
        inner = f"<failure type={_attribute(first.severity)} message={_attribute(first.title)}>{text}</failure>"
    else:
        inner = f"<system-out>{text}</system-out>"
    return f"{opening}\n      {inner}\n    </testcase>"


def _fails(items: Iterable[FindingReport], fail_on: FailOn) -> bool:
    return any(item.suppression is None and fail_on.fails(item.severity) for item in items)


def _is_skipped(items: Iterable[FindingReport]) -> bool:
    return all(item.suppression is not None for item in items)


def _description(item: FindingReport) -> str:
    lines = [f"{item.source}:{item.line}:{item.column}: {item.severity}: {item.path}", item.reason, item.consequence]
    lines += [f"fix: {item.patch.text}" if item.patch.text else ""]
    return "\n".join(filter(None, lines))


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def _attribute(text: str) -> str:
    return quoteattr(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))
