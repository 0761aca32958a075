"""Which findings are reported, which make a build fail, and how many there are of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from podqos.advice.checks.baseline import Baseline
from podqos.advice.checks.configuration import Ignore
from podqos.advice.checks.finding import FailOn, Finding, FindingSeverity, SuppressedBy


class Gate(Struct, frozen=True, kw_only=True):
    """What is reported, and what fails."""

    min_severity: FindingSeverity = FindingSeverity.INFO
    """Findings below are not reported."""
    fail_on: FailOn = FailOn.WARNING
    ignore: tuple[Ignore, ...] = ()
    """Findings to ignore."""
    folder: str = ""
    """The directory from which the paths of ``ignore`` count."""
    baseline: Baseline = Baseline()
    """Findings that are known."""
    show_suppressed: bool = False
    """Whether what is ignored or known is reported as well, and marked."""

    def is_severe(self, finding: Finding) -> bool:
        """Whether a finding is not hidden by --min-severity."""
        return finding.severity.rank <= self.min_severity.rank

    def is_open(self, finding: Finding) -> bool:
        """Whether it counts: it is neither suppressed nor hidden."""
        return finding.suppression is None and self.is_severe(finding)

    def is_reported(self, finding: Finding) -> bool:
        """Whether it is reported."""
        return self.is_severe(finding) and (finding.suppression is None or self.show_suppressed)


class CheckSummary(Struct, frozen=True, rename="camel"):
    """How many findings there are."""

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
    copies: int = 0
    """Workloads that are in other files as well: each counts once, and so do its findings."""
    unread: int = 0
    """Files of which something could not be read, and so was not checked."""
    lowered: int = 0
    """Infos that would be errors or warnings if they were not in directories of tests and examples."""

    @property
    def findings(self) -> int:
        """Those that are reported."""
        return self.errors + self.warnings + self.infos


def summarize(findings: Sequence[Finding], gate: Gate, told: Iterable[FindingSeverity]) -> CheckSummary:
    """Count what was found; ``told`` has the severity of each finding that is reported and not suppressed."""
    left = Counter(finding.suppression.by for finding in findings if finding.suppression is not None)
    counts = Counter(told)
    return CheckSummary(
        files=0,
        objects=0,
        errors=counts[FindingSeverity.ERROR],
        warnings=counts[FindingSeverity.WARNING],
        infos=counts[FindingSeverity.INFO],
        suppressed=left[SuppressedBy.ANNOTATION] + left[SuppressedBy.CONFIGURATION],
        in_baseline=left[SuppressedBy.BASELINE],
        below_min_severity=sum(finding.suppression is None and not gate.is_severe(finding) for finding in findings),
    )
