"""What policies of podqos object to among objects: ``podqos policy test``.

The judging is that of ``check`` (PQ701 to PQ705), so that both say the same. What only a linter is told does not count
here: an annotation that suppresses findings keeps no pod from being refused. The shape of the values is stable: fields
are added, never renamed or removed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from enum import StrEnum
from typing import TypedDict

from msgspec import Struct

from podqos.admission.field_errors import FieldError
from podqos.admission.refusal import Refusal
from podqos.admission.relevance import rejected
from podqos.admission.validation import validate_resources
from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.demands import POLICY_CHECKS, PolicyOverBudget, PolicyViolated
from podqos.advice.checks.finding import SuppressedBy
from podqos.advice.checks.gate import Gate
from podqos.answers.check import Checked, CheckRequest
from podqos.answers.findings import FindingReport
from podqos.errors import InputError
from podqos.manifest.fields import suggestion
from podqos.model.assumption import Assumption
from podqos.model.listing import Listing
from podqos.model.pod import Workload
from podqos.model.profile import LATEST, Profile
from podqos.naming import naming
from podqos.objects.admitting import never_admitted
from podqos.objects.assumptions import NODE_MEMORY
from podqos.objects.objects import FoundWorkload, Objects
from podqos.objects.spreading import Spread, one_by_one
from podqos.policy.model import Action, Policy
from podqos.policy.subject import identities
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
        rules = {violation.facts.rule for violation in self.violations if isinstance(violation.facts, PolicyViolated)}
        return action is self.expected and rules.issuperset(self.expected_rules)

    @property
    def is_exempt(self) -> bool:
        """Whether exemptions cover all that it violates."""
        return bool(self.violations) and all(violation.exemption is not None for violation in self.violations)


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
        (summary.denied, "would be rejected"),
        (summary.warned, "warned about"),
        (summary.audited, "recorded"),
        (summary.exempt, "exempt"),
    )
    parts = [f"{count:,} {words}" for count, words in counts if count]
    text = f"{counted(summary.objects, 'object')}: {', '.join(parts) or 'no violations'}"
    if budgets:
        text += f"; {counted(budgets, 'budget')} exceeded"
    if summary.unmet:
        return f"{summary.unmet} of {counted(summary.expectations, 'expectation')} not met; {text}"
    if summary.expectations:
        all_of_them = "the" if summary.expectations == 1 else "all"
        return f"{all_of_them} {counted(summary.expectations, 'expectation')} met; {text}"
    return text


EXPECT_ANNOTATION = "podqos.dev/expect"
"""What a test expects of an object: ``deny``, ``warn``, ``audit`` or ``allow``, and which rules it violates."""
_SEPARATORS = re.compile(r"[\s,]+")


class PolicyRequest(Struct, frozen=True, kw_only=True):
    """What objects are judged by, besides the policies among them."""

    policies: Iterable[Policy] = ()
    profile: Profile = LATEST
    today: date | None = None
    """The day on which exemptions may have expired; None: none has."""
    inject: Iterable[str] = ()
    """Injectors that add containers to every pod."""
    fail_on: FailOn = FailOn.DENY


class PolicyKeywords(TypedDict, total=False):
    """``PolicyRequest`` as keyword arguments; the policies are an argument of their own."""

    profile: Profile
    today: date | None
    inject: Iterable[str]
    fail_on: FailOn


def judge_policies(objects: Objects, request: PolicyRequest, spread: Spread = one_by_one) -> PolicyReport:
    """Return what the policies among the objects, and those given besides, object to; what is wrong is a problem.

    ``spread`` may judge objects on several cores.
    """
    given = tuple(request.policies)
    named = [*given, *(policy.policy for policy in objects.own_policies)]
    if not named:
        fix = "give a file with kind: Policy, apiVersion: podqos.dev/v1alpha1; docs/how-to/policy.md has one"
        raise InputError("no policy", where=naming("files"), fix=fix)
    options = CheckOptions(
        profile=request.profile,
        demands=given,
        today=request.today,
        inject=tuple(request.inject),
        only=POLICY_CHECKS,
        compare_up_to=-1,
    )
    for found in objects.workloads:
        # What a policy says of a pod does not depend on what the API server says of it.
        if not found.workload.is_live:
            errors = rejected(found.workload, validate_resources(found.workload.pod), objects.written(found))
            objects.tolerate(found, errors)
            refusal = never_admitted(found, objects, request.profile) if found.workload.pod_path else None
            if refusal is not None and not _is_said(refusal, found.workload, errors):
                objects.warn(found, f"its pods can never be admitted: {refusal.message}")
    gate = Gate(show_suppressed=True)
    report = Checked(CheckRequest(objects=objects, options=options, gate=gate), spread).report
    violations: dict[tuple[str, str, str, str], list[ViolationReport]] = {}
    budgets: list[ViolationReport] = []
    for item in report.items:
        violation = _violation(item)
        if isinstance(violation.facts, PolicyOverBudget):
            budgets.append(violation)
        else:
            violations.setdefault((item.source, item.kind, item.namespace, item.name), []).append(violation)
    chosen = [found for found in objects.workloads if objects.takes(found)]
    items = list(_judged(objects, chosen, violations, {rule.name for policy in named for rule in policy.spec.rules}))
    summary = _summary(len(chosen), items)
    return PolicyReport(
        items=tuple(items),
        budgets=tuple(budgets),
        summary=summary,
        verdict=verdict(summary, len(budgets)),
        policies=tuple(policy.name for policy in named),
        kubernetes_version=report.kubernetes_version,
        fail_on=request.fail_on,
        notes=report.notes,
        assumptions=tuple(assumption for assumption in report.assumptions if assumption != NODE_MEMORY),
    )


def _is_said(refusal: Refusal, workload: Workload, errors: Sequence[FieldError]) -> bool:
    """Whether what is wrong with the pods is wrong with the object as well."""
    said = {(error.path, error.words) for error in errors}
    return bool(refusal.field_errors) and all(
        (workload.at(error.path), error.words) in said for error in refusal.field_errors
    )


def _violation(item: FindingReport) -> ViolationReport:
    assert isinstance(item.facts, PolicyViolated | PolicyOverBudget)
    suppression = item.suppression
    exemption = suppression.reason if suppression is not None and suppression.by is SuppressedBy.POLICY else None
    place = item.source, item.line, item.column, item.path, item.container
    return ViolationReport(item.facts.action, *place, item.facts, exemption)


def _judged(
    objects: Objects,
    workloads: Iterable[FoundWorkload],
    violations: dict[tuple[str, str, str, str], list[ViolationReport]],
    rules: set[str],
) -> Iterator[JudgedObject]:
    for found in workloads:
        workload, metadata = found.workload, found.workload.metadata
        name = metadata.name or metadata.generate_name
        source = objects.source_name(found)
        own = sorted(
            violations.get((source, workload.kind, metadata.namespace, name), ()),
            key=lambda report: (report.exemption is not None, report.action.rank),
        )
        expected, expected_rules = _expectation(objects, found, rules)
        if not own and expected is None:
            continue
        action = min(
            (report.action for report in own if report.exemption is None), key=lambda action: action.rank, default=None
        )
        made_by = identities(workload)[-1] if workload.is_stored else ""
        line, column = objects.position(found)
        yield JudgedObject(
            workload.kind,
            metadata.namespace,
            name,
            source,
            line,
            column,
            action,
            tuple(own),
            made_by.replace("/", " ", 1),
            expected,
            expected_rules,
        )


def _expectation(objects: Objects, found: FoundWorkload, rules: set[str]) -> tuple[Expectation | None, tuple[str, ...]]:
    """Return what an object's annotation expects; what it cannot is noted."""
    text = found.workload.metadata.annotations.get(EXPECT_ANNOTATION)
    if text is None:
        return None, ()
    field = f"metadata.annotations[{EXPECT_ANNOTATION}]"
    first, *named = [each for each in _SEPARATORS.split(text) if each] or [""]
    if first not in set(Expectation):
        what = f'must begin with one of {", ".join(Expectation)}, not "{first}"'
        objects.refuse(found, what, "write deny, or deny and names of rules", field)
        return None, ()
    for name in named:
        if name not in rules:
            objects.refuse(found, f'no rule "{name}"', suggestion(name, rules), field)
    return Expectation(first), tuple(named)


def _summary(judged: int, items: list[JudgedObject]) -> PolicySummary:
    actions = Counter(item.action for item in items)
    return PolicySummary(
        objects=judged,
        denied=actions[Action.DENY],
        warned=actions[Action.WARN],
        audited=actions[Action.AUDIT],
        exempt=sum(item.is_exempt for item in items),
        expectations=sum(item.expected is not None for item in items),
        unmet=sum(item.is_met is False for item in items),
    )
