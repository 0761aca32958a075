"""A score per namespace, worst first.

An object without errors and warnings counts 1, one with warnings ½, one with an error 0: the score is their mean, in
percent, rounded down. Counted are the objects that have pods, and others that have errors or warnings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from podqos.advice.checks.finding import CheckedObject, FindingSeverity
from podqos.answers.findings import CheckReport, CheckVerdict, FindingReport
from podqos.answers.verdict import badness
from podqos.model.assumption import Assumption


class NamespaceScore(Struct, frozen=True, rename="camel"):
    """How a namespace does."""

    namespace: str
    """Empty for what belongs to none."""
    score: int
    """From 0, every object has an error, to 100, none has errors or warnings."""
    objects: int
    """That have pods, errors or warnings."""
    with_errors: int
    """How many of them have errors."""
    with_warnings: int
    """How many of them have warnings and no errors."""
    errors: int
    warnings: int
    checks: dict[str, int]
    """How many errors and warnings there are, by check."""
    worst: str
    """The worst finding in a line; empty where there is none."""


class NamespaceScores(Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos check --all -o json``."""

    items: tuple[NamespaceScore, ...]
    """Worst first."""
    score: int
    """Of all objects together."""
    kubernetes_version: str
    cluster: str
    """The name of the cluster whose objects were checked; empty where they are of files."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "NamespaceScores"
    assumptions: tuple[Assumption, ...] = ()
    verdict: CheckVerdict | None = None
    """The worst of the findings; null where there is none."""


def namespace_scores(report: CheckReport, with_pods: Iterable[CheckedObject]) -> NamespaceScores:
    """Return the score of every namespace; ``with_pods`` are the objects that were checked and have pods."""
    worst: dict[str, dict[str, FindingSeverity]] = {}
    found: dict[str, list[FindingReport]] = {}
    for item in filter(counts, report.items):
        found.setdefault(item.namespace, []).append(item)
        of_objects = worst.setdefault(item.namespace, {})
        of_objects[item.subject] = min(of_objects.get(item.subject, item.severity), item.severity, key=_rank)
    for with_pod in with_pods:
        worst.setdefault(with_pod.namespace, {}).setdefault(f"{with_pod.kind} {with_pod.key}", FindingSeverity.INFO)
    items = [_score(name, list(severities.values()), found.get(name, [])) for name, severities in worst.items()]
    return NamespaceScores(
        items=tuple(sorted(items, key=lambda item: (item.score, -item.errors, -item.warnings, item.namespace))),
        score=_mean([severity for severities in worst.values() for severity in severities.values()]),
        kubernetes_version=report.kubernetes_version,
        cluster=report.cluster,
        assumptions=report.assumptions,
        verdict=report.verdict,
    )


def counts(item: FindingReport) -> bool:
    """Whether a finding counts: an error or a warning that is not suppressed."""
    return item.suppression is None and item.severity is not FindingSeverity.INFO


def _rank(severity: FindingSeverity) -> int:
    return severity.rank


def _score(namespace: str, severities: list[FindingSeverity], found: list[FindingReport]) -> NamespaceScore:
    objects, findings = Counter(severities), Counter(item.severity for item in found)
    worst = min(found, key=badness, default=None)
    return NamespaceScore(
        namespace=namespace,
        score=_mean(severities),
        objects=len(severities),
        with_errors=objects[FindingSeverity.ERROR],
        with_warnings=objects[FindingSeverity.WARNING],
        errors=findings[FindingSeverity.ERROR],
        warnings=findings[FindingSeverity.WARNING],
        checks=dict(sorted(Counter(item.check for item in found).items())),
        worst="" if worst is None else f"{worst.check} {worst.check_name}: {worst.subject}",
    )


def _mean(severities: list[FindingSeverity]) -> int:
    halves = {FindingSeverity.ERROR: 0, FindingSeverity.WARNING: 1, FindingSeverity.INFO: 2}
    return 50 * sum(halves[severity] for severity in severities) // len(severities) if severities else 100
