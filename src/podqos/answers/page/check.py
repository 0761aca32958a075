"""What ``podqos check`` finds, and the fixes as a diff.

The shape is stable: fields are added, never renamed or removed; ``docs/schema/page.json`` follows these classes.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.advice.checks.finding import Patch
from podqos.advice.checks.gate import CheckSummary
from podqos.advice.fixes.fixing import Fixes
from podqos.answers.findings import CheckReport
from podqos.answers.page.check_groups import CheckGroup, check_groups
from podqos.answers.page.check_item import CheckItem
from podqos.answers.replacements import unified
from podqos.model.assumption import Assumption
from podqos.words.edits import reason_words
from podqos.words.fixes import patch_lines

_NOT_TRIED = "With this many objects, a fix is tried only when you ask for it."


class CheckView(Struct, frozen=True, rename="camel"):
    """Everything that was found, in the order of the files."""

    items: tuple[CheckItem, ...]
    summary: CheckSummary
    verdict: str
    """The worst in a sentence; empty where nothing was found."""
    can_fix: bool
    """Whether there are files to fix; of a cluster there are patches."""
    notes: tuple[str, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    groups: tuple[CheckGroup, ...] = ()
    """The same by check: errors first."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "CheckView"


class FixRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is asked."""

    checks: tuple[str, ...] = ()
    """The checks whose findings to fix, such as ``PQ101``; none: all that ``check --fix`` fixes."""


class FixedText(Struct, frozen=True):
    """A file that changes."""

    name: str
    diff: str
    """Unified; ``patch -p0`` takes it."""
    text: str
    """The whole file as it is then."""
    findings: tuple[str, ...]
    """What is fixed."""


class FixView(Struct, frozen=True, rename="camel"):
    """What is answered."""

    files: tuple[FixedText, ...]
    refused: tuple[str, ...]
    """What is not fixed, and why."""
    patches: tuple[str, ...]
    """Of a cluster: commands of kubectl, or patches where it would refuse them."""
    remaining: int
    """Findings that are left."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "FixView"


def check_view(report: CheckReport, *, can_fix: bool) -> CheckView:
    """Return a report as the page shows it."""
    items = tuple(
        CheckItem(
            check=item.check,
            check_name=item.check_name,
            severity=item.severity,
            title=item.title,
            subject=item.subject,
            namespace=item.namespace,
            container=item.container,
            place=item.place,
            reason=item.reason,
            consequence=item.consequence,
            patch=_patch_text(item.patch),
            is_fixed=item.patch.is_applied,
            on_request=item.patch.on_request,
            fingerprint=item.fingerprint,
            can_be_fixed=item.patch.is_complete,
            also=item.also_text,
        )
        for item in report.items
    )
    verdict = "" if report.verdict is None else report.verdict.text
    return CheckView(items, report.summary, verdict, can_fix, report.notes, report.assumptions, check_groups(items))


def _patch_text(patch: Patch) -> str:
    if patch.is_complete and not patch.is_tried:
        return _NOT_TRIED
    return "\n".join(patch_lines(patch)).removeprefix("fix: ")


def fix_view(fixes: Fixes, remaining: int) -> FixView:
    """Return what was fixed as the page shows it."""
    files = tuple(
        FixedText(
            file.source,
            "".join(f"{line}\n" for line in unified(file)),
            file.after.decode(errors="replace"),
            tuple(f"{finding.check} {finding.subject.kind} {finding.subject.key}" for finding in file.findings),
        )
        for file in fixes.files
    )
    refused = tuple(
        f"{fix.finding.check} {refused.subject.kind} {refused.subject.key}: {reason_words(fix.why)}"
        for refused in fixes.refused
        for fix in refused.fixes
    )
    return FixView(files, refused, (), remaining)
