"""PQ701–PQ705: what violates a policy of podqos (docs/reference/commands/policy.md).

The severity is the rule's: what would be refused is an error, what would be warned about a warning, what would only be
recorded an info. What an exemption covers is found all the same, and suppressed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.checks import examples
from podqos.advice.checks.check import ERROR, INFO, WARNING, Check, bundle_check, check
from podqos.advice.checks.check_identity import Example
from podqos.advice.checks.finding import (
    Choice,
    Effect,
    Fact,
    Finding,
    Patch,
    SuppressedBy,
    Suppression,
)
from podqos.advice.checks.references import QOS
from podqos.advice.checks.repair import patch_of
from podqos.advice.checks.sketch import Sketch, latest
from podqos.advice.checks.view import CheckContext, View
from podqos.amounts import shown_ratio
from podqos.model.pod import QOSClass
from podqos.policy.budgets import over_budget
from podqos.policy.judge import judge
from podqos.policy.model import Action
from podqos.policy.violation import Violation, Why
from podqos.policy.words import budget_message, message
from podqos.qos.edits import edits_to_guaranteed

SEVERITIES = {Action.DENY: ERROR, Action.WARN: WARNING, Action.AUDIT: INFO}
_DOCUMENT = "docs/reference/commands/policy.md"


class ViolatingAmounts(Struct, frozen=True, gc=False):
    """What a container, or the pod itself, has of one resource."""

    container: str
    resource: str
    request: str | None
    limit: str | None


class PolicyViolated(Fact, frozen=True, gc=False):
    """A demand of a policy that a pod does not meet."""

    policy: str
    rule: str
    action: Action
    why: Why
    actual: str
    wanted: str
    amounts: tuple[ViolatingAmounts, ...]
    text: str
    """All of it in words, as the webhook says it."""

    def sentence(self, _: str) -> str:
        """Return which rule of which policy, and what is wrong."""
        return self.text


def find_violations(view: View) -> None:
    """Find what the policies of podqos object to."""
    demands = view.context.demands
    if not demands:
        return
    judgement = judge(demands, view.judged, today=view.options.today, profile=view.options.profile)
    for violation in judgement.violations:
        view.add(_finding(view, violation, None))
    for exempted in judgement.exempted:
        view.add(_finding(view, exempted.violation, Suppression(SuppressedBy.POLICY, exempted.reason)))


def _finding(view: View, violation: Violation, exemption: Suppression | None) -> Finding:
    amounts = tuple(
        ViolatingAmounts(amount.container, amount.resource, _text(amount.request), _text(amount.limit))
        for amount in violation.amounts
    )
    stated = violation.policy, violation.rule, violation.action, violation.why, violation.actual, violation.wanted
    own = _CHECKS[violation.why]
    annotations = view.workload.metadata.annotations, view.pod.metadata.annotations
    facts = PolicyViolated(*stated, amounts, message(violation))
    finding = own.finding(view.subject, violation.path, facts, _patch(view, violation), annotations)
    return replace(
        finding,
        severity=SEVERITIES[violation.action],
        container=violation.container or None,
        suppression=exemption or finding.suppression,
    )


def _text(amount: object) -> str | None:
    return None if amount is None else str(amount)


def _patch(view: View, violation: Violation) -> Patch:
    match violation.why:
        case Why.CLASS_TOO_LOW if violation.wanted == QOSClass.GUARANTEED:
            edits = edits_to_guaranteed(view.pod, view.options.profile)
            if not edits:  # the manifest is in order; what is added to it is not
                return Patch.choose(Choice.INJECTOR_RESOURCES if view.options.inject else Choice.RESOURCES)
            return patch_of(edits, view, Choice.RESOURCES)
        case Why.NO_SUCH_CLASS:
            return Patch.choose(Choice.QOS_CLASS, [violation.path] if violation.path else [])
        case Why.NO_PRIORITY_CLASS | Why.PRIORITY_CLASS_NOT_ALLOWED | Why.PRIORITY_TOO_LOW | Why.PRIORITY_TOO_HIGH:
            return Patch.choose(Choice.PRIORITY_CLASS, [violation.path])
    if violation.why is Why.RATIO_TOO_HIGH:
        sides = (violation.path.replace(".limits", side) for side in (".requests", ".limits"))
        return Patch.choose(Choice.RESOURCES, list(sides))
    return Patch.choose(Choice.RESOURCES, [violation.path])


def _policy(require: str) -> str:
    return f"""\
apiVersion: podqos.dev/v1alpha1
kind: Policy
metadata: {{name: shop}}
spec:
  rules:
  - name: web
    match: {{names: [web]}}
    require: {{{require}}}
    action: Deny
"""


@check("PQ701", "policy-class", ERROR, QOS, _DOCUMENT, effect=Effect.NONE, rule=find_violations, fix_on_request=True)
def policy_class() -> Example:
    """PQ701: A pod does not have the QoS class that a policy requires.

    Where the policy is enforced, the API server rejects the pod or warns about it, depending on the policy. Where it is
    not, the pod is evicted or OOM-killed earlier or later than the cluster's owner intended.

    Fix: If Guaranteed is required, give every container CPU and memory limits and equal requests; if Burstable is
    required, at least one request.
    """
    return Example(examples.documents(_policy("minClass: Guaranteed"), examples.web(*examples.USUAL)))


@check("PQ702", "policy-resources", ERROR, _DOCUMENT, effect=Effect.NONE, rule=find_violations)
def policy_resources() -> Example:
    """PQ702: A container lacks a request or limit that a policy requires.

    Where the policy is enforced, the API server rejects the pod or warns about it, depending on the policy. A missing
    request defaults to the limit.

    Fix: Set it.
    """
    return Example(
        examples.documents(
            _policy("limits: [nvidia.com/gpu]"), examples.pod(examples.container("web", *examples.USUAL))
        ),
        chosen={"spec.containers[0].resources.limits[nvidia.com/gpu]": "1"},
    )


@check("PQ703", "policy-ratio", ERROR, _DOCUMENT, effect=Effect.NONE, rule=find_violations)
def policy_ratio() -> Example:
    """PQ703: The ratio of limit to request is higher than a policy allows.

    Where the policy is enforced, the API server rejects the pod or warns about it, depending on the policy. What is
    allowed but not reserved is missing when all pods use it at once.

    Fix: Raise the request, or lower the limit.
    """
    return Example(
        examples.documents(_policy("maxLimitRequestRatio: {memory: 1.5}"), examples.web(*examples.USUAL)),
        chosen={"spec.containers[0].resources.requests.memory": "800Mi"},
    )


@check("PQ704", "policy-priority", ERROR, _DOCUMENT, effect=Effect.NONE, rule=find_violations)
def policy_priority() -> Example:
    """PQ704: A pod has a priority that a policy does not allow.

    Where the policy is enforced, the API server rejects the pod or warns about it, depending on the policy. Priority
    decides which pods are preempted, and in which order pods are evicted.

    Fix: Choose a priority class that the policy allows.
    """
    return Example(
        examples.documents(
            _policy("priority: {classes: [batch-*]}"), examples.PRIORITY_CLASSES, examples.web(*examples.USUAL)
        ),
        chosen={"spec.priorityClassName": "batch-processing"},
    )


_CHECKS: dict[Why, Check] = {
    Why.CLASS_TOO_LOW: policy_class,
    Why.CLASS_TOO_HIGH: policy_class,
    Why.NO_SUCH_CLASS: policy_class,
    Why.NO_REQUEST: policy_resources,
    Why.NO_LIMIT: policy_resources,
    Why.RATIO_TOO_HIGH: policy_ratio,
    Why.NO_PRIORITY_CLASS: policy_priority,
    Why.PRIORITY_CLASS_NOT_ALLOWED: policy_priority,
    Why.PRIORITY_TOO_LOW: policy_priority,
    Why.PRIORITY_TOO_HIGH: policy_priority,
}

# ---- PQ705 -------------------------------------------------------------------------------------------------------


class PolicyOverBudget(Fact, frozen=True, gc=False):
    """A budget of a policy that all pods together exceed."""

    policy: str
    budget: str
    action: Action
    resource: str
    side: str
    group: str
    """The namespace or node that exceeds it; empty for the cluster."""
    total: str
    allocatable: str
    ratio: float
    allowed: float
    largest: tuple[str, ...]
    text: str
    """All of it in words."""

    def sentence(self, _: str) -> str:
        """Return which budget of which policy, and by how much."""
        return self.text


def find_over_budget(context: CheckContext, sketches: Sequence[Sketch]) -> Iterator[Finding]:
    """Yield the budgets of policies that all workloads together exceed."""
    if not any(sketch.charges for sketch in sketches):
        return
    sketches = latest(sketches)
    by_name = {f"{sketch.subject.kind} {sketch.subject.key}": sketch for sketch in sketches}
    surroundings = context.surroundings
    for over in over_budget((charge for sketch in sketches for charge in sketch.charges), surroundings.nodes):
        budget = over.budget
        facts = PolicyOverBudget(
            over.policy, budget.name, budget.action, budget.resource, over.side, over.group, str(over.total),
            str(over.allocatable), shown_ratio(over.ratio), float(over.allowed), over.largest, budget_message(over),
        )  # fmt: skip
        choice = Choice.SMALLER_LIMITS if over.side == "limits" else Choice.SMALLER_REQUESTS
        subject, path = surroundings.subject("Policy", over.policy), f"spec.budgets[{over.index}].{over.side}"
        if not subject.source:  # the policy is not among what is checked
            largest = by_name[over.largest[0]]
            subject, path = largest.subject, largest.at("spec.containers[0].resources")
        finding = policy_budget.finding(subject, path, facts, Patch.choose(choice))
        yield replace(finding, severity=SEVERITIES[budget.action])


@bundle_check(
    "PQ705",
    "policy-budget",
    WARNING,
    _DOCUMENT,
    "docs/reference/commands/place.md",
    effect=Effect.NONE,
    rule=find_over_budget,
)
def policy_budget() -> Example:
    """PQ705: The pods together exceed a policy's budget.

    Neither the API server nor the scheduler adds up limits. When pods use their limits, some get less CPU, and for
    memory some have to die.

    Fix: Lower the requests or limits of the largest workloads, or add nodes.
    """
    policy = """\
apiVersion: podqos.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  budgets:
  - {name: memory, resource: memory, requests: 0.3}
"""
    limits = 'cpu: "1", memory: 2Gi, ephemeral-storage: 1Gi'
    return Example(
        examples.documents(policy, examples.node(), examples.deployment(2, "cpu: 500m, memory: 2Gi", limits)),
        good=examples.documents(policy, examples.node(), examples.deployment(2, "cpu: 500m, memory: 1Gi", limits)),
    )


POLICY_CHECKS = frozenset({each.id for each in (*_CHECKS.values(), policy_budget)})
"""The ids of the checks that go by policies of podqos."""
