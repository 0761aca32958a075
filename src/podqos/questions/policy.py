"""``podqos policy``: what policies of podqos object to among objects (``test``), and what CEL says of them (``cel``).

The judging is that of ``check`` (PQ701 to PQ705), so that both say the same. What only a linter is told does not count
here: an annotation that suppresses findings keeps no pod from being refused. The shape of the values is stable: fields
are added, never renamed or removed.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from enum import StrEnum
from itertools import groupby
from typing import Any, Literal
from xml.etree.ElementTree import Element

from msgspec import Struct

from podqos.admission.field_errors import FieldError
from podqos.admission.refusal import Refusal
from podqos.admission.relevance import rejected
from podqos.admission.validation import validate_resources
from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.demands import POLICY_CHECKS, PolicyOverBudget, PolicyViolated
from podqos.advice.checks.finding import SuppressedBy
from podqos.advice.checks.gate import Gate
from podqos.amounts import counted, listed
from podqos.controls import one_line
from podqos.errors import InputError
from podqos.manifest.encoding import MANIFEST_WIDTH, manifest_yaml
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
from podqos.policy.admission_policies import AdmissionPolicies, Left, NotExpressed, Printed
from podqos.policy.model import Action, Policy
from podqos.policy.subject import identities
from podqos.questions.check import Checked
from podqos.text.junit import document, element
from podqos.text.style import Style, wrapped
from podqos.text.tables import Table

EXPECT_ANNOTATION = "podqos.dev/expect"
"""What a test expects of an object: ``deny``, ``warn``, ``audit`` or ``allow``, and which rules it violates."""
_SEPARATORS = re.compile(r"[\s,]+")
_WORDS = {Action.DENY: "rejected", Action.WARN: "warned about", Action.AUDIT: "recorded"}

# ---- the answer ------------------------------------------------------------------------------------------------------


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
    def rule(self) -> str:
        """The rule that is violated; empty for a budget."""
        return self.facts.rule if isinstance(self.facts, PolicyViolated) else ""


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
    def outcome(self) -> str:
        """What becomes of it, as an expectation says it."""
        return "allow" if self.action is None else self.action.lower()

    @property
    def is_met(self) -> bool | None:
        """Whether it is as expected; None where nothing is."""
        if self.expected is None:
            return None
        rules = {violation.rule for violation in self.violations}
        return self.outcome == self.expected and rules.issuperset(self.expected_rules)

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


def judge_policies(
    objects: Objects,
    policies: Iterable[Policy] = (),
    *,
    profile: Profile = LATEST,
    today: date | None = None,
    fail_on: FailOn = FailOn.DENY,
    spread: Spread = one_by_one,
) -> PolicyReport:
    """Return what the policies among the objects, and those given besides, object to; what is wrong is a problem.

    ``today`` is the day on which exemptions may have expired; without it, none has. ``fail_on`` is from which action on
    a violation makes the report fail. ``spread`` may judge objects on several cores.
    """
    given = tuple(policies)
    named = [*given, *(policy.policy for policy in objects.own_policies)]
    if not named:
        fix = "give a file with kind: Policy, apiVersion: podqos.dev/v1alpha1; docs/how-to/policy.md has one"
        raise InputError("no policy", where=naming("files"), fix=fix)
    for found in objects.workloads:
        # What a policy says of a pod does not depend on what the API server says of it.
        if not found.workload.is_live:
            errors = rejected(found.workload, validate_resources(found.workload.pod), objects.written(found))
            objects.tolerate(found, errors)
            refusal = never_admitted(found, objects, profile) if found.workload.pod_path else None
            if refusal is not None and not _is_said(refusal, found.workload, errors):
                objects.warn(found, f"its pods can never be admitted: {refusal.message}")
    options = CheckOptions(profile=profile, demands=given, today=today, only=POLICY_CHECKS, compare_up_to=-1)
    report = Checked(objects, options, Gate(show_suppressed=True), spread=spread).report
    violations: dict[tuple[str, ...], list[ViolationReport]] = {}
    budgets: list[ViolationReport] = []
    for item in report.items:
        facts, suppression = item.facts, item.suppression
        assert isinstance(facts, PolicyViolated | PolicyOverBudget)
        exemption = suppression.reason if suppression is not None and suppression.by is SuppressedBy.POLICY else None
        place = item.source, item.line, item.column, item.path, item.container
        violation = ViolationReport(facts.action, *place, facts, exemption)
        if isinstance(facts, PolicyOverBudget):
            budgets.append(violation)
        else:
            violations.setdefault((item.source, item.kind, item.namespace, item.name), []).append(violation)
    chosen = [found for found in objects.workloads if objects.takes(found)]
    items = list(_judged(objects, chosen, violations, {rule.name for policy in named for rule in policy.spec.rules}))
    actions = Counter(item.action for item in items)
    summary = PolicySummary(
        objects=len(chosen),
        denied=actions[Action.DENY],
        warned=actions[Action.WARN],
        audited=actions[Action.AUDIT],
        exempt=sum(item.is_exempt for item in items),
        expectations=sum(item.expected is not None for item in items),
        unmet=sum(item.is_met is False for item in items),
    )
    return PolicyReport(
        items=tuple(items),
        budgets=tuple(budgets),
        summary=summary,
        verdict=verdict(summary, len(budgets)),
        policies=tuple(policy.name for policy in named),
        kubernetes_version=report.kubernetes_version,
        fail_on=fail_on,
        notes=report.notes,
        assumptions=tuple(assumption for assumption in report.assumptions if assumption != NODE_MEMORY),
    )


def _is_said(refusal: Refusal, workload: Workload, errors: Sequence[FieldError]) -> bool:
    """Whether what is wrong with the pods is wrong with the object as well."""
    said = {(error.path, error.words) for error in errors}
    return bool(refusal.field_errors) and all(
        (workload.at(error.path), error.words) in said for error in refusal.field_errors
    )


def _judged(
    objects: Objects,
    workloads: Iterable[FoundWorkload],
    violations: dict[tuple[str, ...], list[ViolationReport]],
    rules: set[str],
) -> Iterator[JudgedObject]:
    for found in workloads:
        workload, metadata = found.workload, found.workload.metadata
        name, source = metadata.name or metadata.generate_name, objects.source_name(found)
        own = sorted(
            violations.get((source, workload.kind, metadata.namespace, name), ()),
            key=lambda report: (report.exemption is not None, report.action.rank),
        )
        expected, expected_rules = _expectation(objects, found, rules)
        if not own and expected is None:
            continue
        actions = [report.action for report in own if report.exemption is None]
        made_by = identities(workload)[-1] if workload.is_stored else ""
        yield JudgedObject(
            *(workload.kind, metadata.namespace, name, source, *objects.position(found)),
            action=min(actions, key=lambda action: action.rank, default=None),
            violations=tuple(own),
            owner=made_by.replace("/", " ", 1),
            expected=expected,
            expected_rules=expected_rules,
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


# ---- as text ---------------------------------------------------------------------------------------------------------

_PAINTED = {Action.DENY: "error", Action.WARN: "warning", Action.AUDIT: "info"}
_RULES_NAMED = 3


def text(report: PolicyReport, style: Style) -> Iterator[str]:
    """Yield the verdict, expectations that are not met, budgets, then objects, the strictest first."""
    rules = dict.fromkeys(
        f"{violation.facts.policy}/{violation.rule}"
        for item in report.items
        if item.action is Action.DENY
        for violation in item.violations
        if violation.action is Action.DENY and violation.exemption is None
    )
    rejected_by = f"; rejected by {listed([*rules])}" if 1 <= len(rules) <= _RULES_NAMED else ""
    yield from wrapped(style.strong(f"{report.verdict}{rejected_by}."), style, "  ", "")
    for over in report.budgets:
        yield from ("", *_violation(over, style))
    unmet = [item for item in report.items if item.is_met is False]
    if unmet:
        yield from ("", style.alarm("not as expected"))
    for item in unmet:
        of_rules = f" by {', '.join(item.expected_rules)}" if item.expected_rules else ""
        violated = sorted({violation.rule for violation in item.violations if violation.rule})
        by = f" by {', '.join(violated)}" if violated else ""
        where = f"{item.source}:{item.line}:{item.column}: " if item.line else ""
        said = f"{where}{item.subject}: expected {item.expected}{of_rules}, found {item.outcome}{by}"
        yield from wrapped(said, style, "    ", "  ")
    for action in (*Action, None):
        alike: dict[tuple[object, ...], list[JudgedObject]] = {}  # pods of one controller that violate the same
        for item in report.items:
            if item.action is action and item.violations:
                is_owned = bool(item.owner) and not item.line
                own = item.owner if is_owned else f"{item.kind} {item.name}"
                messages = tuple(violation.message for violation in item.violations)
                alike.setdefault((item.namespace, own, messages, "" if is_owned else item.source), []).append(item)
        for same in alike.values():
            item = same[0]
            subject = item.subject
            if len(same) > 1:
                kind, _, name = item.owner.partition(" ")
                subject = f"{kind} {item.namespace}/{name} ({counted(len(same), 'pod')})"
            word = "exempt"
            if action is not None:
                word = style.severity(_PAINTED[action]).replace(_PAINTED[action], _WORDS[action])
            yield from ("", f"{style.strong(subject)}: {word}{' (as expected)' if item.is_met else ''}")
            for violation in item.violations:
                yield from _violation(violation, style)


def _violation(violation: ViolationReport, style: Style) -> Iterator[str]:
    place = f"{violation.source}:{violation.line}:{violation.column}" if violation.line else violation.path
    yield f"  {place}: {violation.action}"
    yield from wrapped(violation.message, style, "    ")
    if violation.exemption is not None:
        yield from wrapped(f"exempt: {violation.exemption}", style, "    ")


def csv_rows(report: PolicyReport) -> Table:
    """Return a row per violation."""
    headings = ("kind", "namespace", "name", "source", "line", "action", "policy", "rule", "exemption", "message")
    return headings, (
        (
            *(item.kind, item.namespace, item.name, item.source, item.line, violation.action, violation.facts.policy),
            *(violation.rule, violation.exemption, violation.message),
        )
        for item in report.items
        for violation in item.violations
    )


def junit(report: PolicyReport) -> str:
    """Return JUnit's document: a file, or a cluster, is a test suite, an object a test case.

    What is not as expected fails, and so does what fails without an expectation.
    """
    suites: dict[str, list[Element]] = {}
    for item in report.items:
        where = {"file": item.source, "line": str(item.line)} if item.line else {}
        name = "allow" if item.expected is None else item.expected.value
        case = element("testcase", classname=item.subject, name=name, **where)
        messages = "\n".join(violation.message for violation in item.violations)
        fails = report.fail_on.fails(item.action) if item.is_met is None else not item.is_met
        if fails:
            said = f"expected {name}, found {item.outcome}"
            case.append(element("failure", messages, type=item.outcome, message=said))
        elif item.is_exempt and item.expected is None:
            case.append(element("skipped", message=f"exempt: {item.violations[0].exemption}"))
        elif messages:
            case.append(element("system-out", messages))
        suites.setdefault(item.source, []).append(case)
    for over in report.budgets:
        assert isinstance(over.facts, PolicyOverBudget)
        name = " ".join(filter(None, (over.facts.budget, over.facts.side, over.facts.group)))
        case = element("testcase", classname=f"Policy {over.facts.policy}", name=name)
        case.append(element("failure" if report.fail_on.fails(over.action) else "system-out", over.message))
        suites.setdefault(over.source, []).append(case)
    return document("podqos policy test", suites)


# ---- as CEL ----------------------------------------------------------------------------------------------------------

_LEFT = {
    Left.BUDGET: "the API server does not know the sum over all pods; podqos policy test checks {of}",
    Left.LIMIT_RANGE: (
        "the effect of LimitRanges and mutation on a template's pods: templates are checked as written, their pods "
        "as stored ({of})"
    ),
    Left.TEMPLATE_PRIORITY: (
        "the value of a template's priority class, and the default class where none is named: only pods are checked "
        "({of})"
    ),
    Left.TEMPLATE_POD_LIMITS: "pod-level limits of a template that are derived from its containers ({of})",
    Left.EXPIRY: "expiry: print the policies again after {detail}, the last day of {of}",
    Left.EXPIRED: "expired on {detail}, so left out: {of}",
    Left.KIND: "objects of kind {detail}: only Kubernetes' own pods, workloads and CronJobs are checked ({of})",
    Left.RESIZE: "in-place resizes, which keep the class but may change requests and limits ({of})",
    Left.MUTATION: "setting missing limits, which needs MutatingAdmissionPolicy (1.34 or newer) ({of})",
    Left.MUTATION_OFF: (
        "setting missing limits: before 1.36 the API server must be started with "
        "--feature-gates=MutatingAdmissionPolicy=true and "
        "--runtime-config=admissionregistration.k8s.io/v1beta1=true ({of})"
    ),
}
_ABOUT = {
    "pods": "pods that violate it are",
    "workloads": "workloads whose pods would violate it are",
    "cronjobs": "CronJobs whose pods would violate it are",
    "namespaces": "namespaces that require a nonexistent class are",
}


class NotExpressedReport(Struct, frozen=True, rename="camel"):
    """Something of a policy that the objects do not say."""

    what: Left
    of: tuple[str, ...]
    """The rules or budgets, or the reasons of exemptions."""
    detail: str
    """The kind or day that is meant, where it is one."""
    message: str


class AdmissionPolicyList(Struct, frozen=True, rename="camel"):
    """Objects to apply; a list that kubectl takes as it is."""

    items: tuple[dict[str, Any], ...]
    not_expressed: tuple[NotExpressedReport, ...]
    api_version: Literal["v1"] = "v1"
    kind: Literal["List"] = "List"


def as_list(found: AdmissionPolicies) -> AdmissionPolicyList:
    """Return the value that ``-o json`` prints."""
    left = tuple(
        NotExpressedReport(expressed.what, expressed.of, expressed.detail, not_expressed(expressed))
        for expressed in found.not_expressed
    )
    return AdmissionPolicyList(tuple(printed.value for printed in found.objects), left)


def not_expressed(left: NotExpressed) -> str:
    """Return in words what is left to others."""
    noun = {Left.BUDGET: "budget", Left.EXPIRY: "the exemption", Left.EXPIRED: "the exemption"}.get(left.what, "rule")
    names = [f'"{name}"' for name in left.of]
    of = f"{noun}{'s' if len(names) > 1 else ''} {listed(names)}"
    return one_line(_LEFT[left.what].format(of=of, detail=left.detail))


def documents(found: AdmissionPolicies) -> Iterator[str]:
    """Yield the objects as YAML, each with a comment on what it is for; what they do not say comes first."""
    if found.objects:
        yield "# Admission policies made by podqos policy cel. To remove all of them:"
    for kind in dict.fromkeys(f"{printed.value['kind']}".removesuffix("Binding").lower() for printed in found.objects):
        kinds = f"{kind.removesuffix('y')}ies,{kind}bindings"
        yield f"#   kubectl delete {kinds} -l app.kubernetes.io/managed-by=podqos"
    for left in found.not_expressed:
        said = f"Not expressed here: {not_expressed(left)}."
        yield from textwrap.wrap(said, MANIFEST_WIDTH, initial_indent="# ", subsequent_indent="#   ")
    for _, group in groupby(found.objects, key=lambda printed: printed.value["metadata"]):  # a policy and its binding
        for index, printed in enumerate(group):
            yield "---"
            if index == 0:
                yield f"# Rule {one_line(printed.rule)}: {_about(printed)}."
            yield from manifest_yaml(printed.value).splitlines()


def _about(printed: Printed) -> str:
    if printed.value["kind"] == "MutatingAdmissionPolicy":
        return "pods that must be Guaranteed get their missing limits"
    return f"{_ABOUT[printed.about]} {_WORDS[printed.action]}"
