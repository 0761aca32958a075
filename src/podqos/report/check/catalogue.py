"""The checks themselves: ``podqos check --list`` and ``--explain``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct

from podqos.advice.checks.check import Check
from podqos.advice.checks.finding import FindingSeverity
from podqos.naming import stated_with
from podqos.report.text.style import Style, columns, wrapped

GoodExample: TypeAlias = Callable[[Check], str]
"""Returns the good example of a check: the bad one with the finding's patch."""


class CheckDescription(Struct, frozen=True):
    """One check."""

    id: str
    name: str
    severity: FindingSeverity
    title: str
    why: str
    fix: str
    bad: str
    """A manifest that has the finding."""
    good: str
    """The same manifest without the finding."""
    references: tuple[str, ...]


class CheckList(Struct, frozen=True, rename="camel"):
    """The output of ``podqos check --list -o json``."""

    items: tuple[CheckDescription, ...]
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "CheckList"


def check_list(checks: Iterable[Check], good: GoodExample) -> CheckList:
    """Return the checks in the documented shape."""
    return CheckList(
        tuple(
            CheckDescription(
                *(check.id, check.name, check.severity, check.title, check.why, check.fix),
                bad=check.example.text,
                good=good(check),
                references=check.references,
            )
            for check in checks
        )
    )


def table(checks: Iterable[Check], style: Style) -> list[str]:
    """Return one line per check."""
    rows = [(check.id, style.severity(check.severity), check.name, check.title) for check in checks]
    return columns(("ID", "SEVERITY", "NAME", "WHAT IT FINDS"), rows, style)


def page(check: Check, good: GoodExample, style: Style) -> Iterator[str]:
    """Yield everything about one check."""
    yield f"{style.strong(f'{check.id} {check.name}')} ({style.severity(check.severity)}): {check.title}"
    for heading, text in (("Why it matters", check.why), ("How to fix it", check.fix)):
        yield from ("", style.strong(heading))
        yield from wrapped(text, style, "  ")
    options = "".join(f" {stated_with('inject', name)}" for name in check.example.inject)
    for heading, text in (("Instead of", check.example.text), ("Write", good(check))):
        yield from ("", style.strong(heading + (f" (with{options})" if options else "")))
        yield from (f"  {line}" for line in text.strip().splitlines())
    if check.references:
        yield from ("", style.strong("References"), *(f"  {reference}" for reference in check.references))
