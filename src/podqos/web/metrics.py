"""What the webhook did, in Prometheus' text format. No series per object: only names that a policy or podqos chose."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping

from podqos.advice.reviewing import Decision
from podqos.manifest.kinds import POD_HOLDERS
from podqos.report.cluster.metrics import sample

_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})

Labels = tuple[tuple[str, str], ...]


class Counter:
    """A number that grows, for each set of labels."""

    def __init__(self, name: str, about: str) -> None:
        self.name, self.about = name, about
        self._counts: dict[Labels, int] = {}

    def add(self, labels: Labels = (), count: int = 1) -> None:
        """Count."""
        self._counts[labels] = self._counts.get(labels, 0) + count

    def lines(self) -> Iterator[str]:
        """Yield it as text."""
        yield from family(self.name, "counter", self.about, ((dict(labels), n) for labels, n in self._counts.items()))


class Histogram:
    """How long something took, for each set of labels."""

    def __init__(self, name: str, about: str) -> None:
        self.name, self.about = name, about
        self._seen: dict[Labels, tuple[list[int], list[float]]] = {}

    def add(self, seconds: float, labels: Labels) -> None:
        """Count one."""
        seen = self._seen.get(labels)
        if seen is None:
            seen = self._seen[labels] = ([0] * (len(_BOUNDS) + 1), [0.0])
        seen[0][bisect_left(_BOUNDS, seconds)] += 1
        seen[1][0] += seconds

    def lines(self) -> Iterator[str]:
        """Yield it as text."""
        yield f"# HELP {self.name} {self.about}"
        yield f"# TYPE {self.name} histogram"
        for labels, (counts, [total]) in self._seen.items():
            so_far = 0
            for bound, count in zip((*map(repr, _BOUNDS), "+Inf"), counts, strict=True):
                so_far += count
                yield sample(f"{self.name}_bucket", {**dict(labels), "le": bound}, so_far)
            yield sample(f"{self.name}_sum", dict(labels), total)
            yield sample(f"{self.name}_count", dict(labels), so_far)


def family(name: str, kind: str, about: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    """Yield one metric."""
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        yield sample(name, labels, value)


def single(name: str, kind: str, about: str, value: float) -> Iterator[str]:
    """Yield a metric without labels."""
    yield from family(name, kind, about, [({}, value)])


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
