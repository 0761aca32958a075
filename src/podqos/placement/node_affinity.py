"""Which nodes a pod may run on, and which it prefers, by their labels and names: ``nodeSelector`` and node affinity.

Source: Kubernetes v1.36 staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go and
pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go (PreFilter, for nodes listed by name).
"""

from __future__ import annotations

from collections.abc import Iterator

from podqos.admission.field_errors import FieldError, invalid
from podqos.model.node import Node
from podqos.model.pod import Pod, PodSpec
from podqos.model.scheduling import (
    FIELD_NAME,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredNodes,
)
from podqos.placement.reasons import AffinityMismatch, Reasons, SelectorMismatch

_TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def required_terms(spec: PodSpec) -> NodeSelector | None:
    """Return the required node affinity, if there is any."""
    if spec.affinity is None or spec.affinity.node_affinity is None:
        return None
    return spec.affinity.node_affinity.required


def mismatch(spec: PodSpec, node: Node) -> Reasons:
    """Return why the node's labels or name do not suit the pod; nothing if they do."""
    for key, wanted in spec.node_selector.items():
        found = node.labels.get(key)
        if found != wanted:
            return (SelectorMismatch(key, wanted, found),)
    required = required_terms(spec)
    if required is None:
        return ()
    failed = []
    for term in required.node_selector_terms:
        if not term.match_expressions and not term.match_fields:
            continue
        lack = _first_failing(term, node)
        if lack is None:
            return ()
        failed.append(lack)
    return (AffinityMismatch(tuple(failed)),)


def matches(spec: PodSpec, node: Node) -> bool:
    """Whether the node's labels and name suit the pod."""
    return not mismatch(spec, node)


def named_nodes(spec: PodSpec) -> frozenset[str] | None:
    """Return the only nodes that come into question because every term lists names; None if not so.

    The scheduler then never looks at the others (as with the pods of a DaemonSet).
    """
    required = required_terms(spec)
    if required is None or not required.node_selector_terms:
        return None
    names: set[str] = set()
    for term in required.node_selector_terms:
        listed = [
            frozenset(requirement.values)
            for requirement in term.match_fields
            if requirement.key == FIELD_NAME and requirement.operator == "In"
        ]
        if not listed:
            return None
        names |= frozenset.intersection(*listed)
    return frozenset(names)


def preference(preferred: tuple[PreferredNodes, ...], node: Node) -> int:
    """Return the sum of the weights of the preferred terms that the node meets."""
    return sum(
        nodes.weight
        for nodes in preferred
        if (nodes.preference.match_expressions or nodes.preference.match_fields)
        and _first_failing(nodes.preference, node) is None
    )


def _first_failing(term: NodeSelectorTerm, node: Node) -> NodeSelectorRequirement | None:
    for requirement in term.match_expressions:
        if not _meets(requirement, node.labels.get(requirement.key)):
            return requirement
    for requirement in term.match_fields:
        if requirement.key != FIELD_NAME or not _meets(requirement, node.name):
            return requirement
    return None


def _meets(requirement: NodeSelectorRequirement, value: str | None) -> bool:
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement, value)
    return False


def _compares(requirement: NodeSelectorRequirement, value: str | None) -> bool:
    """Compare whole numbers; any other label never matches."""
    number = whole_number(value)
    bound = whole_number(requirement.values[0]) if len(requirement.values) == 1 else None
    if number is None or bound is None:
        return False
    return number > bound if requirement.operator == "Gt" else number < bound


def whole_number(text: str | None) -> int | None:
    """Return what Go's ParseInt makes of ``text``: plain digits with an optional sign, within 64 bits."""
    if text is None or not text.isascii() or not text.lstrip("+-").isdigit() or len(text) - len(text.lstrip("+-")) > 1:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def unmeetable_bounds(pod: Pod) -> Iterator[FieldError]:
    """Yield the bounds of ``Gt`` and ``Lt`` that are no numbers: the API server stores them, and no node meets them.

    Its own rules are in ``admission.constraints``.
    """
    required = required_terms(pod.spec)
    for index, term in enumerate(required.node_selector_terms if required is not None else ()):
        for number, requirement in enumerate(term.match_expressions):
            values = requirement.values
            if requirement.operator in {"Gt", "Lt"} and len(values) == 1 and whole_number(values[0]) is None:
                path = f"{_TERMS}[{index}].matchExpressions[{number}].values[0]"
                yield invalid(path, values[0], "for 'Gt', 'Lt' operators, the value must be an integer")
