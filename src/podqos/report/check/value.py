"""What ``podqos check`` says, as a value: the documented JSON shape, from which all other outputs follow.

The findings come from ``advice``; here they are worded and given their line and column. The shape is stable: fields are
added, never renamed or removed, and ``docs/schema/check.json`` is made from these classes.
"""

from __future__ import annotations

from typing import cast

from msgspec import Struct

from podqos.advice.checks.baseline import fingerprint
from podqos.advice.checks.catalogue import CHECKS, Facts
from podqos.advice.checks.configuration import FailOn
from podqos.advice.checks.finding import Consequence, Finding, Patch, Severity, Suppression
from podqos.manifest.problems import Position
from podqos.report.check.consequences import consequence


class FindingReport(Struct, frozen=True, rename="camel"):
    """One finding."""

    check: str
    """The id of the check, such as ``PQ101``."""
    check_name: str
    severity: Severity
    title: str
    kind: str
    namespace: str
    name: str
    container: str | None
    source: str
    line: int
    column: int
    path: str
    """The field at fault, from the object's root."""
    reason: str
    consequence: str
    """Who dies before whom because of it."""
    facts: Facts
    """The reason as data."""
    effects: Consequence
    """The consequence as data."""
    patch: Patch
    fingerprint: str
    """Stays the same when lines move; see the baseline."""
    suppression: Suppression | None

    @property
    def subject(self) -> str:
        """The object as people call it."""
        key = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {key}"


class CheckSummary(Struct, frozen=True, rename="camel"):
    """How much there is."""

    files: int
    objects: int
    """That were checked."""
    errors: int
    warnings: int
    infos: int
    suppressed: int
    """By annotation or configuration; not among the findings above."""
    in_baseline: int
    below_min_severity: int
    stale_baseline_entries: int = 0

    @property
    def findings(self) -> int:
        """Those that are reported."""
        return self.errors + self.warnings + self.infos


class CheckReport(Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos check -o json``."""

    items: tuple[FindingReport, ...]
    summary: CheckSummary
    kubernetes_version: str
    fail_on: FailOn
    notes: tuple[str, ...] = ()
    """Warnings about the input, and what was assumed where it leaves something out."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "CheckReport"


def finding_report(finding: Finding, position: Position) -> FindingReport:
    """Render one finding into the documented shape."""
    check = CHECKS[finding.check]
    subject = finding.subject
    return FindingReport(
        check=check.id,
        check_name=check.name,
        severity=finding.severity,
        title=check.title,
        kind=subject.kind,
        namespace=subject.namespace,
        name=subject.name,
        container=finding.container,
        source=subject.source,
        line=position[0],
        column=position[1],
        path=finding.path,
        reason=finding.facts.what(finding.container or ""),
        consequence=consequence(finding),
        facts=cast("Facts", finding.facts),
        effects=finding.consequence,
        patch=finding.patch,
        fingerprint=fingerprint(finding),
        suppression=finding.suppression,
    )
