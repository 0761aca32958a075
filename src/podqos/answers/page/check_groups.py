"""The findings of the page, grouped by check: errors first, and one fix for all of a group where there is one.

The shape is stable: fields are added, never renamed or removed; ``docs/schema/page.json`` follows these classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from podqos.advice.checks.finding import FindingSeverity
from podqos.answers.page.check_item import CheckItem
from podqos.wording import counted

_NAMED = 2
_ORDER = (FindingSeverity.ERROR, FindingSeverity.WARNING, FindingSeverity.INFO)


class CheckGroup(Struct, frozen=True, rename="camel"):
    """All findings of one check."""

    check: str
    check_name: str
    severity: FindingSeverity
    """Of the most severe."""
    title: str
    items: tuple[int, ...]
    """Which findings, as indexes of ``CheckView.items``: most severe first, then in the order of the files."""
    objects: int
    """How many objects have such a finding."""
    subjects: str
    """These in words: ``Deployment shop/web, Pod shop/shell and 42 more``."""
    reason: str
    """Where it is the same for all; otherwise empty."""
    consequence: str
    """The same."""
    patch: str
    """The lines that the fixes of all have in common; otherwise empty."""
    fixable: int
    """For how many findings one request for this check tries a fix."""
    fix: str
    """That request in words, such as ``Fix all 44``; empty where nothing can be fixed."""


def check_groups(items: Sequence[CheckItem]) -> tuple[CheckGroup, ...]:
    """Return the findings by check: the most severe first, then the most frequent."""
    by_check: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        by_check.setdefault(item.check, []).append(index)
    groups = [_group(items, indexes) for indexes in by_check.values()]
    return tuple(sorted(groups, key=lambda group: (_ORDER.index(group.severity), -len(group.items), group.check)))


def _group(items: Sequence[CheckItem], indexes: list[int]) -> CheckGroup:
    own = sorted(indexes, key=lambda index: _ORDER.index(items[index].severity))
    first = items[own[0]]
    subjects = list(dict.fromkeys(items[index].subject for index in own))
    fixable = sum(items[index].can_be_fixed for index in own)
    return CheckGroup(
        check=first.check,
        check_name=first.check_name,
        severity=first.severity,
        title=first.title,
        items=tuple(own),
        objects=len(subjects),
        subjects=_named(subjects),
        reason=_shared(items[index].reason for index in own),
        consequence=_shared(items[index].consequence for index in own),
        patch=_shared_lines([items[index].patch for index in own]),
        fixable=fixable,
        fix=_fix(fixable, len(own)),
    )


def _shared(texts: Iterable[str]) -> str:
    different = set(texts)
    return different.pop() if len(different) == 1 else ""


def _shared_lines(texts: Sequence[str]) -> str:
    common = set.intersection(*(set(text.splitlines()) for text in texts))
    return "\n".join(line for line in texts[0].splitlines() if line in common)


def _named(subjects: Sequence[str]) -> str:
    more = len(subjects) - _NAMED
    if more > 0:
        return f"{', '.join(subjects[:_NAMED])} and {more:,} more"
    return " and ".join(subjects)


def _fix(fixable: int, findings: int) -> str:
    if fixable == 0:
        return ""
    if findings == 1:
        return "Fix it"
    return f"Fix all {findings:,}" if fixable == findings else f"Fix {fixable:,} of {counted(findings, 'finding')}"
