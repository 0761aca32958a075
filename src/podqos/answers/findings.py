"""The output of ``podqos check`` as a value: the documented JSON shape, from which all other outputs follow.

The findings come from ``advice``; here they are worded and given their line and column. The shape is stable: fields are
added, never renamed or removed, and ``docs/schema/check.json`` is made from these classes.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from podqos.advice.checks.baseline import fingerprint
from podqos.advice.checks.catalogue import CHECKS, Facts
from podqos.advice.checks.finding import Consequence, FailOn, Finding, FindingSeverity, Patch, Suppression
from podqos.advice.checks.gate import CheckSummary
from podqos.manifest.problems import Position
from podqos.model.assumption import Assumption
from podqos.model.listing import Listing
from podqos.objects.purposes import Purpose
from podqos.wording import listed
from podqos.words.consequences import consequence

_ALSO_NAMED = 3


class AlsoFound(Struct, frozen=True, gc=False):
    """What a finding is about as well: a copy of the object in another file, or another object at the same place."""

    kind: str
    namespace: str
    name: str
    container: str | None
    source: str
    line: int
    column: int

    @property
    def subject(self) -> str:
        """Kind and name of the object."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class FindingReport(Struct, frozen=True, rename="camel"):
    """One finding."""

    check: str
    """The id of the check, such as ``PQ101``."""
    check_name: str
    severity: FindingSeverity
    title: str
    kind: str
    namespace: str
    name: str
    container: str | None
    source: str
    """The file, or the name of the cluster."""
    line: int
    """Zero where the object comes from a cluster; so is the column."""
    column: int
    path: str
    """The field at fault, from the object's root."""
    reason: str
    consequence: str
    """What it means for the kill order."""
    facts: Facts
    """The reason as data."""
    effects: Consequence
    """The consequence as data."""
    patch: Patch
    fingerprint: str
    """Stays the same when lines move; see the baseline."""
    suppression: Suppression | None
    also: tuple[AlsoFound, ...] = ()
    """What the same finding is about, too: it is counted once."""
    purpose: Purpose | None = None
    """Why its severity is lower than that of its check: the file is a test or an example, by its directory."""

    @property
    def also_text(self) -> str:
        """That in words; empty where there is nothing."""
        others = list(dict.fromkeys(self._other(other) for other in self.also))
        more = len(others) - _ALSO_NAMED
        return listed(others if more <= 0 else [*others[:_ALSO_NAMED], f"{more:,} more"])

    def _other(self, other: AlsoFound) -> str:
        if other.source != self.source:
            return f"{other.source}:{other.line}"
        if other.subject != self.subject or not other.container:
            return other.subject
        return f"container {other.container}"

    @property
    def subject(self) -> str:
        """Kind and name of the object."""
        key = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {key}"

    @property
    def place(self) -> str:
        """Where it is: file, line and column, or the field of an object of a cluster."""
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.path


class Fate(StrEnum):
    """What becomes of the pods of an object, worst first."""

    NOT_CREATED = "not-created"
    """There will be none."""
    FEWER = "fewer"
    """Not all of them will be there."""
    EARLIER = "earlier"
    """They are evicted or killed before pods that would otherwise go first."""
    DISK = "disk"
    """They are among the first to be evicted when the disk fills up."""
    BY_CLASS = "by-class"
    """They are evicted when their QoS class says."""
    SAFER = "safer"
    """They are better off than their manifest says."""
    NONE = "none"
    """No pod is worse off by itself."""


class CheckVerdict(Struct, frozen=True, rename="camel"):
    """The worst that was found."""

    text: str
    """All of it in one sentence."""
    fate: Fate
    severity: FindingSeverity
    check: str
    kind: str
    namespace: str
    name: str
    reason: str
    is_cause: bool
    """Whether the finding leads to this fate: without it, as it was tried, the pods would have another."""
    others: int
    """How many further objects have the same fate, by findings of any check."""
    fingerprint: str
    """Of the finding, which has the rest: the facts, the consequence, the patch."""


class CheckReport(Listing[FindingReport], Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos check -o json``."""

    items: tuple[FindingReport, ...]
    summary: CheckSummary
    kubernetes_version: str
    fail_on: FailOn
    notes: tuple[str, ...] = ()
    """Warnings about the input."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "CheckReport"
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""
    verdict: CheckVerdict | None = None
    """The worst of the findings that are not suppressed; null where there is none."""
    cluster: str = ""
    """The name of the cluster whose objects were checked; empty where they are of files."""

    def _listed(self) -> tuple[FindingReport, ...]:
        return self.items

    @property
    def fails(self) -> bool:
        """Whether a finding is as severe as ``fail_on`` says."""
        return any(item.suppression is None and self.fail_on.fails(item.severity) for item in self.items)


def finding_report(
    finding: Finding,
    source: str,
    position: Position,
    also: tuple[AlsoFound, ...] = (),
    purpose: Purpose | None = None,
) -> FindingReport:
    """Render one finding into the documented shape; ``purpose`` is that of its file, where it lowers the severity."""
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
        source=source,
        line=position[0],
        column=position[1],
        path=finding.path,
        reason=finding.facts.sentence(finding.container or ""),
        consequence=consequence(finding),
        facts=finding.facts,
        effects=finding.consequence,
        patch=finding.patch,
        fingerprint=fingerprint(finding),
        suppression=finding.suppression,
        also=also,
        purpose=purpose,
    )
