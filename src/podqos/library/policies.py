"""What policies of podqos object to among objects: ``podqos policy test``.

The judging is that of ``check`` (PQ701 to PQ705), so that both say the same. What only a linter is told does not count
here: an annotation that suppresses findings keeps no pod from being refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date

from podqos.admission.relevance import rejected
from podqos.admission.validation import validate_resources
from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.demands import POLICY_CHECKS, PolicyOverBudget, PolicyViolated
from podqos.advice.checks.finding import SuppressedBy
from podqos.advice.checks.gate import Gate
from podqos.answers.findings import FindingReport
from podqos.answers.policies import (
    Expectation,
    FailOn,
    JudgedObject,
    PolicyReport,
    PolicySummary,
    ViolationReport,
    verdict,
)
from podqos.errors import InputError
from podqos.library.check import run_checks
from podqos.manifest.fields import suggestion
from podqos.model.profile import LATEST, Profile
from podqos.objects.assumptions import NODE_MEMORY
from podqos.objects.objects import FoundWorkload, Objects, Progress
from podqos.policy.model import Action, Policy
from podqos.policy.subject import identities

EXPECT_ANNOTATION = "podqos.dev/expect"
"""What a test expects of an object: ``deny``, ``warn``, ``audit`` or ``allow``, and which rules it violates."""
_SEPARATORS = re.compile(r"[\s,]+")


def judge_policies(
    objects: Objects,
    policies: Iterable[Policy] = (),
    *,
    profile: Profile = LATEST,
    today: date | None = None,
    inject: Iterable[str] = (),
    fail_on: FailOn = FailOn.DENY,
    progress: Progress | None = None,
) -> PolicyReport:
    """Return what the policies among the objects, and those given besides, object to; what is wrong is a problem.

    ``today`` is the day on which exemptions may have expired; without it, none has. ``inject`` names injectors that add
    containers to every pod.
    """
    given = tuple(policies)
    named = [*given, *(each.policy for each in objects.own_policies)]
    if not named:
        fix = "give a file with kind: Policy, apiVersion: podqos.dev/v1alpha1; docs/policy.md has an example"
        raise InputError("no policy", where="-f", fix=fix)
    options = CheckOptions(
        profile=profile,
        demands=given,
        today=today,
        inject=tuple(inject),
        only=POLICY_CHECKS,
        compare_up_to=-1,
    )
    for found in objects.workloads:
        # What a policy says of a pod does not depend on what the API server says of it.
        if not found.workload.is_live:
            objects.tolerate(found, rejected(found.workload, validate_resources(found.workload.pod)))
    checked = run_checks(objects, options, Gate(show_suppressed=True), progress=progress)
    report = checked.report
    violations: dict[tuple[str, str, str, str], list[ViolationReport]] = {}
    budgets: list[ViolationReport] = []
    for item in report.items:
        violation = _violation(item)
        if isinstance(violation.facts, PolicyOverBudget):
            budgets.append(violation)
        else:
            violations.setdefault((item.source, item.kind, item.namespace, item.name), []).append(violation)
    chosen = [found for found in objects.workloads if objects.takes(found)]
    items = list(_judged(objects, chosen, violations, {rule.name for each in named for rule in each.spec.rules}))
    summary = _summary(len(chosen), items)
    return PolicyReport(
        items=tuple(items),
        budgets=tuple(budgets),
        summary=summary,
        verdict=verdict(summary, len(budgets)),
        policies=tuple(each.name for each in named),
        kubernetes_version=report.kubernetes_version,
        fail_on=fail_on,
        notes=report.notes,
        assumptions=tuple(each for each in report.assumptions if each != NODE_MEMORY),
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
            key=lambda each: (each.exemption is not None, each.action.rank),
        )
        expected, expected_rules = _expectation(objects, found, rules)
        if not own and expected is None:
            continue
        action = min((each.action for each in own if each.exemption is None), key=lambda each: each.rank, default=None)
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
