"""The output of ``podqos policy test`` as a value: the documented JSON shape, from which all other outputs follow.

The shape is stable: fields are added, never renamed or removed.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from podqos.advice.checks.demands import PolicyOverBudget, PolicyViolated
from podqos.model.assumption import Assumption
from podqos.model.listing import Listing
from podqos.policy.model import Action
from podqos.wording import counted


class Expectation(StrEnum):
    """What a test expects of an object."""

    DENY = "deny"
    WARN = "warn"
    AUDIT = "audit"
    ALLOW = "allow"


class FailOn(StrEnum):
    """From which action on a violation makes a test fail."""

    DENY = "deny"
    WARN = "warn"
    AUDIT = "audit"
    NEVER = "never"

    def fails(self, action: Action | None) -> bool:
        """Whether this action makes it fail."""
        return self is not FailOn.NEVER and action is not None and action.rank <= Action(self.title()).rank


class ViolationReport(Struct, frozen=True, rename="camel"):
    """One demand that is not met."""

    action: Action
    source: str
    """The file, or the name of the cluster."""
    line: int
    """Zero where the object comes from a cluster; so is the column."""
    column: int
    path: str
    """The field at fault, from the object's root."""
    container: str | None
    facts: PolicyViolated | PolicyOverBudget
    exemption: str | None = None
    """Why it is exempt; null where it is not."""

    @property
    def message(self) -> str:
        """What is wrong, as the webhook says it."""
        return self.facts.text

    @property
    def place(self) -> str:
        """Where it is: file, line and column, or the field of an object of a cluster."""
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.path


class JudgedObject(Struct, frozen=True, rename="camel"):
    """An object of which there is something to say."""

    kind: str
    namespace: str
    name: str
    source: str
    line: int
    column: int
    action: Action | None
    """The strictest of what becomes of it; null where it is allowed without a word."""
    violations: tuple[ViolationReport, ...]
    """Those that are exempt included."""
    owner: str = ""
    """Of a pod of a cluster: what made it, such as ``Deployment web``."""
    expected: Expectation | None = None
    expected_rules: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """Kind and name of the object."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def is_met(self) -> bool | None:
        """Whether it is as expected; None where nothing is."""
        if self.expected is None:
            return None
        action = Expectation.ALLOW if self.action is None else Expectation(self.action.lower())
        rules = {each.facts.rule for each in self.violations if isinstance(each.facts, PolicyViolated)}
        return action is self.expected and rules.issuperset(self.expected_rules)

    @property
    def is_exempt(self) -> bool:
        """Whether exemptions cover all that it violates."""
        return bool(self.violations) and all(each.exemption is not None for each in self.violations)


class PolicySummary(Struct, frozen=True, rename="camel"):
    """How many objects there are of each kind."""

    objects: int
    """That were judged."""
    denied: int
    warned: int
    audited: int
    exempt: int
    """That violate something and are exempt from all of it."""
    expectations: int
    unmet: int
    """Expectations that are not met."""


class PolicyReport(Listing[JudgedObject], Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos policy test -o json``."""

    items: tuple[JudgedObject, ...]
    """The objects that violate something or have an expectation."""
    budgets: tuple[ViolationReport, ...]
    """The budgets that all objects together exceed."""
    summary: PolicySummary
    verdict: str
    """All of it in one sentence."""
    policies: tuple[str, ...]
    """What was judged by."""
    kubernetes_version: str
    fail_on: FailOn
    notes: tuple[str, ...] = ()
    """Warnings about the input."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "PolicyReport"
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""

    def _listed(self) -> tuple[JudgedObject, ...]:
        return self.items

    @property
    def fails(self) -> bool:
        """Whether an expectation is not met, or an object without one is judged as ``fail_on`` says."""
        return (
            self.summary.unmet > 0
            or any(item.expected is None and self.fail_on.fails(item.action) for item in self.items)
            or any(self.fail_on.fails(over.action) for over in self.budgets)
        )


def verdict(summary: PolicySummary, budgets: int) -> str:
    """Return all of it in one sentence."""
    counts = (
        (summary.denied, "would be refused"),
        (summary.warned, "warned about"),
        (summary.audited, "recorded"),
        (summary.exempt, "exempt"),
    )
    parts = [f"{count:,} {words}" for count, words in counts if count]
    text = f"{counted(summary.objects, 'object')}: {', '.join(parts) or 'none violates anything'}"
    if budgets:
        text += f"; {counted(budgets, 'budget')} exceeded"
    if summary.unmet:
        return f"{summary.unmet} of {counted(summary.expectations, 'expectation')} not met; {text}"
    if summary.expectations:
        all_of_them = "the" if summary.expectations == 1 else "all"
        return f"{all_of_them} {counted(summary.expectations, 'expectation')} met; {text}"
    return text
