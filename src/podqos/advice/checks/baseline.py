"""Known findings: what a team found on its first day and fixes later.

A finding is recognised by its fingerprint, made of what stays the same while a file is edited: the check, the
object, the container by name and the field. Lines, files and amounts are left out. Two findings may share a
fingerprint (the same object in two overlays), so entries are counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.checks.finding import Finding, SuppressedBy, Suppression

_CONTAINER_INDEX = re.compile(r"((?:c|initC|ephemeralC)ontainers)\[\d+\]")
_DIGITS = 16

ObjectKey = tuple[str, str, str]
"""Kind, namespace and name."""


class BaselineEntry(Struct, frozen=True, order=True, rename="camel", forbid_unknown_fields=True):
    """One known finding, in the words of a reviewer; only the fingerprint is compared."""

    check: str
    kind: str
    namespace: str
    name: str
    container: str
    path: str
    fingerprint: str
    count: int = 1

    @property
    def object_key(self) -> ObjectKey:
        """The object it is about."""
        return self.kind, self.namespace, self.name


class Baseline(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The content of a baseline file."""

    findings: tuple[BaselineEntry, ...] = ()
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "CheckBaseline"


class Compared(Struct, frozen=True):
    """Findings beside a baseline."""

    findings: tuple[Finding, ...]
    """All of them; those that are known are marked so."""
    stale: tuple[BaselineEntry, ...]
    """Entries about objects that were checked and no longer have the finding; ``count`` is how many are gone."""


def fingerprint(finding: Finding) -> str:
    """Return what identifies a finding from one run to the next."""
    return _entry(finding).fingerprint


def stable_path(finding: Finding) -> str:
    """Return the field's path; a container goes by its name, because containers are moved around."""
    if finding.container is None:
        return finding.path
    return _CONTAINER_INDEX.sub(lambda matched: f"{matched[1]}[{finding.container}]", finding.path)


def baseline_of(findings: Iterable[Finding]) -> Baseline:
    """Return the baseline in which all of these are known."""
    counts: Counter[BaselineEntry] = Counter(map(_entry, findings))
    return Baseline(tuple(replace(entry, count=count) for entry, count in sorted(counts.items())))


def compare(findings: Sequence[Finding], baseline: Baseline, checked: Collection[ObjectKey]) -> Compared:
    """Mark the findings that are known, and find the entries that no longer are."""
    if not baseline.findings:
        return Compared(tuple(findings), ())
    left = Counter({entry.fingerprint: entry.count for entry in baseline.findings})
    marked = []
    for finding in findings:
        key = fingerprint(finding)
        if finding.suppression is None and left[key] > 0:
            left[key] -= 1
            finding = replace(finding, suppression=Suppression(SuppressedBy.BASELINE))  # noqa: PLW2901 - the same, marked
        marked.append(finding)
    gone = [entry for entry in baseline.findings if left[entry.fingerprint] > 0]
    stale = tuple(
        replace(entry, count=left[entry.fingerprint]) for entry in sorted(gone) if entry.object_key in checked
    )
    return Compared(tuple(marked), stale)


def _entry(finding: Finding) -> BaselineEntry:
    subject, container = finding.subject, finding.container or ""
    parts = (finding.check, subject.kind, subject.namespace, subject.name, container, stable_path(finding))
    return BaselineEntry(*parts, fingerprint=sha256("\0".join(parts).encode()).hexdigest()[:_DIGITS])
