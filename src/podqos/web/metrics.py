"""What the webhook did, in Prometheus' text format. No series per object: only names that a policy or podqos chose."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.advice.reviewing import Decision
from podqos.exposition import Counter, Histogram
from podqos.manifest.kinds import POD_HOLDERS

_OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})


class Metrics:
    """Everything that is counted."""

    def __init__(self) -> None:
        self.reviews = Counter("podqos_webhook_reviews_total", "Reviews answered.")
        self.seconds = Histogram("podqos_webhook_review_seconds", "How long a decision took.")
        self.violations = Counter("podqos_webhook_violations_total", "Violations of policies, by rule.")
        self.findings = Counter("podqos_webhook_findings_total", "What podqos check finds, by check.")
        self.mutated = Counter("podqos_webhook_mutated_total", "Pods that were changed.")
        self.errors = Counter("podqos_webhook_errors_total", "Requests that got no decision, by reason.")
        self.reloads = Counter(
            "podqos_webhook_reloads_total", "Files that were read again, and whether they were in order."
        )

    def count(self, decision: Decision, seconds: float) -> None:
        """Count a decision."""
        request = decision.request
        kind = request.kind.kind if request.kind.kind in POD_HOLDERS else "other"
        operation = request.operation if request.operation in _OPERATIONS else "other"
        labels = (("webhook", decision.door.value), ("operation", operation), ("kind", kind))
        self.reviews.add((*labels, ("allowed", "true" if decision.allowed else "false")))
        self.seconds.add(seconds, labels[:1])
        for violation in decision.judgement.violations:
            rule = (("policy", violation.policy), ("rule", violation.rule), ("action", violation.action.value))
            self.violations.add(rule)
        for finding in decision.findings:
            self.findings.add((("check", finding.check),))
        if decision.patch:
            self.mutated.add()

    def lines(self) -> Iterator[str]:
        """Yield all of it as text."""
        for each in (
            self.reviews, self.seconds, self.violations, self.findings, self.mutated, self.errors, self.reloads,
        ):  # fmt: skip
            yield from each.lines()
