"""A policy as the API server's own objects: ValidatingAdmissionPolicy and MutatingAdmissionPolicy, with bindings.

Every rule becomes one policy per shape, because the fields an expression reads must exist: pods, workloads with a
template, CronJobs with a template of a template. One more checks the labels of namespaces that state a class.

- Pods are judged when they are created, as they will be stored: filled in, mutated, valid. Later nothing that matters
  can change but by a resize, which keeps the class.
- Templates are judged when they are created or changed, so that what is not changed can still be scaled or deleted.
  They are neither filled in nor mutated: what is rejected as a pod is only warned about as a template, unless told
  otherwise.
- What another object made is not judged as a template: it was, as that object.

What CEL cannot express is returned with the objects. Sources: Kubernetes v1.36
staging/src/k8s.io/api/admissionregistration/v1/types.go, apiserver/pkg/cel/environment/base.go (functions by version).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from enum import StrEnum
from itertools import chain

from msgspec import Struct

from podqos.manifest.plain import Plain
from podqos.model.pod import QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.policy import cel
from podqos.policy.admission_objects import (
    PODS,
    SHAPES,
    Shape,
    actions,
    condition,
    kinds,
    match_resources,
    needed,
    object_name,
    resource_rule,
    resource_rules,
    shortened,
)
from podqos.policy.filling_limits import filling_spec
from podqos.policy.matching import has_expired, named
from podqos.policy.model import Action, Match, Policy, Rule
from podqos.policy.rule_expressions import RuleExpressions, stated

GROUP = "admissionregistration.k8s.io"
MANAGED_BY = {"app.kubernetes.io/managed-by": "podqos"}
POLICY_LABEL = "podqos.dev/policy"
_LONGEST_LABEL = 63


class Left(StrEnum):
    """Why something is not expressed in CEL."""

    BUDGET = "Budget"
    """It needs nodes and all other pods."""
    LIMIT_RANGE = "LimitRange"
    """LimitRanges and mutation change a template's pods."""
    TEMPLATE_PRIORITY = "TemplatePriority"
    """The value of a priority class, and the default, are in other objects."""
    TEMPLATE_POD_LIMITS = "TemplatePodLimits"
    """Since 1.37 limits of a pod as a whole follow from its containers'."""
    EXPIRY = "Expiry"
    """Expressions cannot read the date."""
    EXPIRED = "Expired"
    KIND = "Kind"
    """Only Kubernetes' own pods, workloads and CronJobs are known by their resources."""
    RESIZE = "Resize"
    """A resize of a running pod is not validated."""
    MUTATION = "Mutation"
    """This version has no MutatingAdmissionPolicy."""
    MUTATION_OFF = "MutationOff"
    """It exists, but is off by default."""


class NotExpressed(Struct, frozen=True, rename="camel"):
    """Part of a policy that its objects do not express."""

    what: Left
    of: tuple[str, ...]
    """The rules or budgets, or the exemption's reason."""
    detail: str = ""
    """The kind or date, if it is about one."""


class Printed(Struct, frozen=True):
    """One object to apply."""

    rule: str
    action: Action
    about: str
    """The shape, or what is mutated."""
    value: dict[str, Plain]


class AdmissionPolicies(Struct, frozen=True):
    """The objects of a policy, and what they do not express."""

    objects: tuple[Printed, ...]
    not_expressed: tuple[NotExpressed, ...]


class Wish(Struct, frozen=True, kw_only=True):
    """How to render a policy."""

    profile: Profile = LATEST
    today: date | None = None
    """Exemptions that have expired by this date are left out; without a date, none."""
    templates: Action | None = None
    """The action for templates; None warns about templates whose pods would be rejected."""
    mutate: bool = False
    """Whether to fill in limits of pods that must be Guaranteed."""
    limits: dict[str, str] = {}
    """Limits for containers without request and limit; without these, such pods are left alone."""


_PLAIN = Wish()


def admission_policies(policies: Sequence[Policy], wish: Wish = _PLAIN) -> AdmissionPolicies:
    """Return everything to apply, the same for the same policies."""
    objects: list[Printed] = []
    left: dict[tuple[Left, str], list[str]] = {}
    for policy in policies:
        rules = [_RuleObjects(policy, rule, wish) for rule in policy.spec.rules]
        for what, of, detail in chain(_left_of_policy(policy, wish), *(rule.left() for rule in rules)):
            left.setdefault((what, detail), []).append(of)
        objects += chain.from_iterable(rule.objects() for rule in rules)
    not_expressed = (NotExpressed(what, tuple(dict.fromkeys(of)), detail) for (what, detail), of in left.items())
    return AdmissionPolicies(tuple(objects), tuple(not_expressed))


def _left_of_policy(policy: Policy, wish: Wish) -> Iterator[tuple[Left, str, str]]:
    for budget in policy.spec.budgets:
        yield Left.BUDGET, budget.name, ""
    for exemption in policy.spec.exemptions:
        if exemption.until is not None:
            is_over = wish.today is not None and has_expired(exemption, wish.today)
            yield Left.EXPIRED if is_over else Left.EXPIRY, exemption.reason, exemption.until


class _RuleObjects:
    """Converts one rule to objects."""

    def __init__(self, policy: Policy, rule: Rule, wish: Wish) -> None:
        self._policy = policy
        self._rule = rule
        self._require = rule.require
        self._wish = wish
        self._profile = wish.profile
        self._said = RuleExpressions(policy, rule, wish.profile, wish.today)

    def objects(self) -> Iterator[Printed]:
        """Yield the objects of the rule."""
        for shape in SHAPES:
            if kinds(self._rule.match, shape) and (validations := list(self._said.validations(shape))):
                yield from self._validating(shape, validations)
        if self._require.class_label:
            yield from self._of_namespaces()
        if self._mutates and self._profile.mutating_admission_policies is not None:
            filling = filling_spec(self._rule, self._said, self._wish.limits)
            yield from self._bound("Mutating", PODS, filling, action=self._rule.action)

    def left(self) -> Iterator[tuple[Left, str, str]]:
        """Yield what the objects do not express, of which rule, and the kind or date concerned."""
        rule, require = self._rule.name, self._require
        has_templates = any(shape.is_template and kinds(self._rule.match, shape) for shape in SHAPES)
        known = [kind for shape in SHAPES for kind in shape.resources]
        for glob in self._rule.match.kinds:
            if not any(named((glob,), (kind,)) for kind in known):
                yield Left.KIND, rule, glob
        if has_templates and (
            self._said.is_about_class or require.requests or require.limits or require.max_limit_request_ratio
        ):
            yield Left.LIMIT_RANGE, rule, ""
            if self._profile.pod_level_defaults_last:
                yield Left.TEMPLATE_POD_LIMITS, rule, ""
        priority = require.priority
        asks = priority is not None and (
            priority.required or priority.classes or priority.min is not None or priority.max is not None
        )
        if has_templates and asks:
            yield Left.TEMPLATE_PRIORITY, rule, ""
        if kinds(self._rule.match, PODS) and (require.requests or require.limits or require.max_limit_request_ratio):
            yield Left.RESIZE, rule, ""
        if self._mutates and self._profile.mutating_admission_policies != "v1":
            is_there = self._profile.mutating_admission_policies is not None
            yield Left.MUTATION_OFF if is_there else Left.MUTATION, rule, ""

    # ---- objects -----------------------------------------------------------------------------------------------------

    def _validating(self, shape: Shape, validations: list[Plain]) -> Iterator[Printed]:
        spec: dict[str, Plain] = {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": resource_rules(self._rule.match, shape)},
            "matchConditions": self._said.conditions(shape),
            "variables": needed(self._said.variables(shape), validations),
            "validations": validations,
        }
        yield from self._bound("Validating", shape, spec, action=self._action(shape))

    def _of_namespaces(self) -> Iterator[Printed]:
        """Yield the validation of class labels on namespaces: a typo would require nothing."""
        rule, key = self._rule, self._require.class_label
        now, before = stated("object", key), stated("oldObject", key)
        conditions = [condition("changed", cel.any_of(("request.operation == 'CREATE'", f"{now} != {before}")))]
        if any(map(cel.is_wild, rule.match.namespaces)):
            conditions.append(condition("namespaces", cel.fits("object.metadata.name", rule.match.namespaces)))
        shape = Shape("namespaces", {"Namespace": ("", "namespaces")}, "")
        spec: dict[str, Plain] = {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [resource_rule("", ("CREATE", "UPDATE"), ("namespaces",))]},
            "matchConditions": conditions,
            "validations": [self._said.no_such_class(now, may_be_exempt=False)],
        }
        only_namespace = Match(namespaces=rule.match.namespaces, namespace_selector=rule.match.namespace_selector)
        yield from self._bound("Validating", shape, spec, action=rule.action, match=only_namespace)

    def _bound(
        self, kind: str, shape: Shape, spec: dict[str, Plain], *, action: Action, match: Match | None = None
    ) -> Iterator[Printed]:
        """Yield a policy and its binding, which selects namespaces and pods."""
        version = "v1" if kind == "Validating" else self._profile.mutating_admission_policies
        about = shape.name if kind == "Validating" else f"{shape.name}-limits"
        name = object_name(self._policy.name, self._rule.name, about)
        metadata: dict[str, Plain] = {
            "name": name,
            "labels": {**MANAGED_BY, POLICY_LABEL: shortened(self._policy.name, _LONGEST_LABEL)},
        }
        matched = match_resources(match or self._rule.match, shape)
        bound: dict[str, Plain] = {"policyName": name, "matchResources": matched}
        if kind == "Validating":
            bound["validationActions"] = actions(action)
        for suffix, content in (("", spec), ("Binding", bound)):
            value: dict[str, Plain] = {
                "apiVersion": f"{GROUP}/{version}",
                "kind": f"{kind}AdmissionPolicy{suffix}",
                "metadata": metadata,
                "spec": {key: each for key, each in content.items() if each not in ([], {})},
            }
            yield Printed(self._rule.name, action, about, value)

    def _action(self, shape: Shape) -> Action:
        """Return the action for a violation: a template gets a warning if its pods are rejected anyway."""
        action = self._rule.action
        if not shape.is_template or action is Action.AUDIT:
            return action
        if self._wish.templates is not None:
            return max(action, self._wish.templates, key=lambda action: action.rank)
        return Action.WARN if kinds(self._rule.match, PODS) else action

    @property
    def _mutates(self) -> bool:
        """Whether to fill in limits: pods without a requirement to be Guaranteed are left alone."""
        must_be = self._require.min_class is QOSClass.GUARANTEED or bool(self._require.class_label)
        return self._wish.mutate and must_be and bool(kinds(self._rule.match, PODS))
