"""Whether what a pod asks of its place makes sense at all, before any node is looked at.

Source: Kubernetes v1.36 pkg/apis/core/validation/validation.go (validateAffinity and
validateTopologySpreadConstraints) and staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation. One thing is checked
that the API server lets through: a bound of ``Gt`` or ``Lt`` that is no number, which no node can ever meet.
"""

from __future__ import annotations

from collections.abc import Iterator

from podqos.admission.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from podqos.model.pod import Pod
from podqos.model.scheduling import (
    NodeSelector,
    NodeSelectorRequirement,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from podqos.model.selector import LabelSelector
from podqos.placement.node_affinity import FIELD_NAME, whole_number

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_UNKNOWN_OPERATOR = "not a valid selector operator"
_NOT_POSITIVE = "must be greater than zero"
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")


def validate_constraints(pod: Pod) -> tuple[FieldError, ...]:
    """Return every error in the affinity and spread constraints of a pod."""
    return (*_affinity_errors(pod), *_spread_errors(pod.spec.topology_spread_constraints))


def _affinity_errors(pod: Pod) -> Iterator[FieldError]:
    affinity = pod.spec.affinity
    if affinity is None:
        return
    path = "spec.affinity"
    if affinity.node_affinity is not None and affinity.node_affinity.required is not None:
        yield from _node_selector_errors(affinity.node_affinity.required, f"{path}.nodeAffinity.{_REQUIRED}")
    for name, pods in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        yield from _terms_errors(pods, f"{path}.{name}.{_REQUIRED}")


def _node_selector_errors(selector: NodeSelector, path: str) -> Iterator[FieldError]:
    if not selector.node_selector_terms:
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(selector.node_selector_terms):
        place = f"{path}.nodeSelectorTerms[{index}]"
        for number, requirement in enumerate(term.match_expressions):
            yield from _expression_errors(requirement, f"{place}.matchExpressions[{number}]")
        for number, requirement in enumerate(term.match_fields):
            yield from _field_errors(requirement, f"{place}.matchFields[{number}]")


def _expression_errors(requirement: NodeSelectorRequirement, path: str) -> Iterator[FieldError]:
    if requirement.operator not in ("Gt", "Lt"):
        yield from _values_errors(requirement.operator, requirement.values, path)
    elif len(requirement.values) != 1:
        yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    elif whole_number(requirement.values[0]) is None:
        words = "for 'Gt', 'Lt' operators, the value must be an integer"
        yield invalid(f"{path}.values[0]", requirement.values[0], words)


def _field_errors(requirement: NodeSelectorRequirement, path: str) -> Iterator[FieldError]:
    if requirement.operator not in ("In", "NotIn"):
        yield invalid(f"{path}.operator", requirement.operator, _UNKNOWN_OPERATOR)
    elif len(requirement.values) != 1:
        words = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", words)
    if requirement.key != FIELD_NAME:
        yield invalid(f"{path}.key", requirement.key, "not a valid field selector key")


def _values_errors(operator: str, values: tuple[str, ...], path: str) -> Iterator[FieldError]:
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    else:
        yield invalid(f"{path}.operator", operator, _UNKNOWN_OPERATOR)


def _terms_errors(pods: PodAffinity | None, path: str) -> Iterator[FieldError]:
    for index, term in enumerate(pods.required if pods is not None else ()):
        yield from _term_errors(term, f"{path}[{index}]")


def _term_errors(term: PodAffinityTerm, path: str) -> Iterator[FieldError]:
    yield from _selector_errors(term.label_selector, f"{path}.labelSelector")
    yield from _selector_errors(term.namespace_selector, f"{path}.namespaceSelector")
    for name, keys in (("matchLabelKeys", term.match_label_keys), ("mismatchLabelKeys", term.mismatch_label_keys)):
        if keys and term.label_selector is None:
            yield forbidden(f"{path}.{name}", "must not be specified when labelSelector is not set")
    if not term.topology_key:
        yield required(f"{path}.topologyKey", "can not be empty")


def _selector_errors(selector: LabelSelector | None, path: str) -> Iterator[FieldError]:
    for index, requirement in enumerate(selector.match_expressions if selector is not None else ()):
        yield from _values_errors(requirement.operator, requirement.values, f"{path}.matchExpressions[{index}]")


def _spread_errors(constraints: tuple[TopologySpreadConstraint, ...]) -> Iterator[FieldError]:
    seen = set()
    for index, constraint in enumerate(constraints):
        path = f"spec.topologySpreadConstraints[{index}]"
        yield from _constraint_errors(constraint, path)
        pair = f"{{{constraint.topology_key}, {constraint.when_unsatisfiable}}}"
        if pair in seen:
            yield duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", pair)
        seen.add(pair)


def _constraint_errors(constraint: TopologySpreadConstraint, path: str) -> Iterator[FieldError]:
    if constraint.max_skew <= 0:
        yield invalid(f"{path}.maxSkew", constraint.max_skew, _NOT_POSITIVE)
    if not constraint.topology_key:
        yield required(f"{path}.topologyKey", "can not be empty")
    if constraint.when_unsatisfiable not in _ACTIONS:
        yield not_supported(f"{path}.whenUnsatisfiable", constraint.when_unsatisfiable, _ACTIONS)
    if constraint.min_domains is not None:
        if constraint.min_domains <= 0:
            yield invalid(f"{path}.minDomains", constraint.min_domains, _NOT_POSITIVE)
        if constraint.when_unsatisfiable != _ACTIONS[0]:
            words = f"can only use minDomains if whenUnsatisfiable={_ACTIONS[0]}, not {constraint.when_unsatisfiable}"
            yield invalid(f"{path}.minDomains", constraint.min_domains, words)
    policies = (
        ("nodeAffinityPolicy", constraint.node_affinity_policy),
        ("nodeTaintsPolicy", constraint.node_taints_policy),
    )
    for name, policy in policies:
        if policy not in _POLICIES:
            yield not_supported(f"{path}.{name}", policy, _POLICIES)
    if constraint.match_label_keys and constraint.label_selector is None:
        yield forbidden(f"{path}.matchLabelKeys", "must not be specified when labelSelector is not set")
    yield from _selector_errors(constraint.label_selector, f"{path}.labelSelector")
