"""What the API server rejects about where a pod wants to run: node selector, affinity, spreading, scheduling gates.

``matchLabelKeys`` are merged into the label selectors before anything is checked, as the API server does when a pod is
created; what the scheduler then sees is the business of ``placement``.

Source: Kubernetes v1.36 pkg/apis/core/validation/validation.go (validateAffinity, validateSchedulingGates,
validateTopologySpreadConstraints), pkg/registry/core/pod/strategy.go (mutatePodAffinity,
mutateTopologySpreadConstraints), staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from podqos.admission.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from podqos.admission.names import (
    label_complaints,
    label_value_complaints,
    qualified_name_complaints,
    subdomain_complaints,
)
from podqos.model.scheduling import (
    FIELD_NAME,
    Affinity,
    NodeAffinity,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodSchedulingGate,
    TopologySpreadConstraint,
)
from podqos.model.selector import LabelSelector, LabelSelectorRequirement

Errors = Iterator[FieldError]
Labels = Mapping[str, str]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_UNKNOWN_OPERATOR = "not a valid selector operator"
_NOT_POSITIVE = "must be greater than zero"
_NO_SELECTOR = "must not be specified when labelSelector is not set"
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")


def label_errors(labels: Labels, path: str) -> Errors:
    """Check keys and values of labels, or of a selector that is written like labels."""
    for key, value in labels.items():
        yield from key_errors(key, path)
        yield from _value_errors(value, path)


def key_errors(key: str, path: str) -> Errors:
    """Check the key of a label."""
    for complaint in qualified_name_complaints(key):
        yield invalid(path, key, complaint)


def _value_errors(value: str, path: str) -> Errors:
    for complaint in label_value_complaints(value):
        yield invalid(path, value, complaint)


def affinity_errors(affinity: Affinity | None, labels: Labels) -> Errors:
    """Check all constraints on where a pod runs; ``labels`` are those whose values are still to be merged."""
    if affinity is None:
        return
    path = "spec.affinity"
    if affinity.node_affinity is not None:
        yield from _node_affinity_errors(affinity.node_affinity, f"{path}.nodeAffinity")
    for name, pods in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        if pods is not None:
            yield from _pod_affinity_errors(pods, labels, f"{path}.{name}")


def _node_affinity_errors(affinity: NodeAffinity, path: str) -> Errors:
    if affinity.required is not None:
        terms = f"{path}.{_REQUIRED}.nodeSelectorTerms"
        if not affinity.required.node_selector_terms:
            yield required(terms, "must have at least one node selector term")
        for index, term in enumerate(affinity.required.node_selector_terms):
            yield from _node_term_errors(term, f"{terms}[{index}]", check_values=True)
    for index, preferred in enumerate(affinity.preferred):
        place = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight_errors(preferred.weight, place)
        yield from _node_term_errors(preferred.preference, f"{place}.preference", check_values=False)


def _weight_errors(weight: int, path: str) -> Errors:
    if not 1 <= weight <= 100:
        yield invalid(f"{path}.weight", weight, "must be in the range 1-100")


def _node_term_errors(term: NodeSelectorTerm, path: str, *, check_values: bool) -> Errors:
    for number, requirement in enumerate(term.match_expressions):
        place = f"{path}.matchExpressions[{number}]"
        if requirement.operator not in {"Gt", "Lt"}:
            yield from _operator_errors(requirement, place)
        elif len(requirement.values) != 1:
            yield required(f"{place}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        yield from key_errors(requirement.key, f"{place}.key")
        for index, value in enumerate(requirement.values if check_values else ()):
            yield from _value_errors(value, f"{place}.values[{index}]")
    for number, requirement in enumerate(term.match_fields):
        yield from _field_errors(requirement, f"{path}.matchFields[{number}]")


def _field_errors(requirement: NodeSelectorRequirement, path: str) -> Errors:
    if requirement.operator not in {"In", "NotIn"}:
        yield invalid(f"{path}.operator", requirement.operator, _UNKNOWN_OPERATOR)
    elif len(requirement.values) != 1:
        words = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", words)
    if requirement.key != FIELD_NAME:
        yield invalid(f"{path}.key", requirement.key, "not a valid field selector key")
        return
    for index, value in enumerate(requirement.values):
        for complaint in subdomain_complaints(value):
            yield invalid(f"{path}.values[{index}]", value, complaint)


def _operator_errors(requirement: NodeSelectorRequirement | LabelSelectorRequirement, path: str) -> Errors:
    """Check that there are values if the operator needs them, and none otherwise."""
    if requirement.operator in {"In", "NotIn"}:
        if not requirement.values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif requirement.operator in {"Exists", "DoesNotExist"}:
        if requirement.values:
            yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    else:
        yield invalid(f"{path}.operator", requirement.operator, _UNKNOWN_OPERATOR)


def _pod_affinity_errors(affinity: PodAffinity, labels: Labels, path: str) -> Errors:
    for index, term in enumerate(affinity.required):
        yield from _pod_term_errors(term, labels, f"{path}.{_REQUIRED}[{index}]")
    for index, preferred in enumerate(affinity.preferred):
        place = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight_errors(preferred.weight, place)
        yield from _pod_term_errors(preferred.pod_affinity_term, labels, f"{place}.podAffinityTerm")


def _pod_term_errors(term: PodAffinityTerm, labels: Labels, path: str) -> Errors:
    merged = _merged(term.label_selector, "In", term.match_label_keys, labels)
    merged = _merged(merged, "NotIn", term.mismatch_label_keys, labels)
    yield from selector_errors(merged, f"{path}.labelSelector")
    yield from selector_errors(term.namespace_selector, f"{path}.namespaceSelector")
    for name in term.namespaces:
        for complaint in label_complaints(name):
            yield invalid(f"{path}.namespace", name, complaint)
    yield from _label_keys_errors(term.match_label_keys, term.mismatch_label_keys, merged, path)
    if not term.topology_key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from key_errors(term.topology_key, f"{path}.topologyKey")


def _merged(
    selector: LabelSelector | None, operator: str, keys: tuple[str, ...], labels: Labels
) -> LabelSelector | None:
    """Return the selector with a condition for each key that the pod itself has as a label."""
    added = tuple(LabelSelectorRequirement(key, operator, (labels[key],)) for key in keys if key in labels)
    if selector is None or not added:
        return selector
    return LabelSelector(selector.match_labels, selector.match_expressions + added)


def selector_errors(selector: LabelSelector | None, path: str) -> Errors:
    """Check a label selector."""
    if selector is None:
        return
    yield from label_errors(selector.match_labels, f"{path}.matchLabels")
    for index, requirement in enumerate(selector.match_expressions):
        place = f"{path}.matchExpressions[{index}]"
        yield from _operator_errors(requirement, place)
        yield from key_errors(requirement.key, f"{place}.key")
        for number, value in enumerate(requirement.values):
            yield from _value_errors(value, f"{place}.values[{number}]")


def _label_keys_errors(
    match: tuple[str, ...], mismatch: tuple[str, ...], merged: LabelSelector | None, path: str
) -> Errors:
    """Check the keys whose values come from the pod. ``merged`` is the selector with those of ``match`` in it."""
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and merged is None:
            yield forbidden(f"{path}.{name}", _NO_SELECTOR)
            continue
        for index, key in enumerate(keys):
            yield from key_errors(key, f"{path}.{name}[{index}]")
    if merged is not None:
        seen = set(merged.match_labels)
        places = {key: index for index, key in enumerate(match)}
        for requirement in merged.match_expressions:
            if requirement.key in places and requirement.key in seen:
                # The path is upstream's.
                words = "exists in both matchLabelKeys and labelSelector"
                yield invalid(f"{path}[{places[requirement.key]}]", requirement.key, words)
            seen.add(requirement.key)
    for index, key in enumerate(match):
        if key in mismatch:
            words = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid(f"{path}.matchLabelKeys[{index}]", key, words)


def gate_errors(gates: tuple[PodSchedulingGate, ...]) -> Errors:
    """Check the names of scheduling gates."""
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        path = f"spec.schedulingGates[{index}]"
        yield from key_errors(gate.name, path)
        if gate.name in seen:
            yield duplicate(path, gate.name)
        seen.add(gate.name)


def spread_errors(constraints: tuple[TopologySpreadConstraint, ...], labels: Labels) -> Errors:
    """Check the topology spread constraints; ``labels`` are those whose values are still to be merged."""
    later = Counter((constraint.topology_key, constraint.when_unsatisfiable) for constraint in constraints)
    for index, constraint in enumerate(constraints):
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        later[pair] -= 1
        path = f"spec.topologySpreadConstraints[{index}]"
        yield from _constraint_errors(constraint, path, is_repeated=later[pair] > 0)
        merged = _merged(constraint.label_selector, "In", constraint.match_label_keys, labels)
        yield from _label_keys_errors(constraint.match_label_keys, (), merged, path)
        yield from selector_errors(merged, f"{path}.labelSelector")


def _constraint_errors(constraint: TopologySpreadConstraint, path: str, *, is_repeated: bool) -> Errors:
    if constraint.max_skew <= 0:
        yield invalid(f"{path}.maxSkew", constraint.max_skew, _NOT_POSITIVE)
    if not constraint.topology_key:
        yield required(f"{path}.topologyKey", "can not be empty")
    if constraint.when_unsatisfiable not in _ACTIONS:
        yield not_supported(f"{path}.whenUnsatisfiable", constraint.when_unsatisfiable, _ACTIONS)
    if is_repeated:
        pair = f"{{{constraint.topology_key}, {constraint.when_unsatisfiable}}}"
        yield duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", pair)
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
