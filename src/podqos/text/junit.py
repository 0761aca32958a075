"""JUnit's XML, which CI servers show as test results."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element, indent, tostring

# What XML 1.0 cannot hold, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def document(name: str, suites: Mapping[str, Sequence[Element]]) -> str:
    """Return the document with the test cases of each suite."""
    root = element("testsuites", name=name, **_numbers([case for cases in suites.values() for case in cases]))
    for suite_name, cases in suites.items():
        suite = element("testsuite", name=suite_name, **_numbers(cases))
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


def element(tag: str, text: str | None = None, **attributes: str) -> Element:
    """Return an element; what XML cannot hold is replaced."""
    made = Element(tag, {name: _clean(value) for name, value in attributes.items()})
    made.text = None if text is None else _clean(text)
    return made


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
