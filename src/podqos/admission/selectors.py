"""What the API server rejects about how a controller selects its pods.

No pod can be made by an object that is rejected. Paths are those of the object.

Source: Kubernetes v1.36 pkg/apis/apps/validation/validation.go (ValidateDeploymentSpec, ValidateReplicaSetSpec,
ValidateStatefulSetSpec, ValidateDaemonSetSpec), pkg/apis/core/validation/validation.go (ValidatePodTemplateSpecForRC),
staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go (LabelSelectorAsSelector).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from podqos.admission.constraints import selector_errors
from podqos.admission.field_errors import FieldError, invalid, invalid_null, required
from podqos.manifest.plain import Plain
from podqos.model.selector import LabelSelector

_NOT_MATCHING = "`selector` does not match template `labels`"
# ReplicaSets are rejected in the words for Deployments.
_CALLED = {"StatefulSet": "statefulset", "DaemonSet": "daemonset"}
_OF_INVALID = {"Deployment": "invalid label selector", "ReplicaSet": "invalid label selector", "StatefulSet": ""}


class Selection:
    """A selector and the labels of a template, held against each other."""

    def __init__(self, kind: str, selector: LabelSelector | None, labels: Mapping[str, str] | None) -> None:
        self._kind = kind
        self._selector = selector
        self._labels = labels
        self._errors = tuple(selector_errors(selector, "spec.selector"))

    @property
    def errors(self) -> Iterator[FieldError]:
        """What is wrong with the selector itself."""
        if self._selector is None and self._kind != "DaemonSet":
            yield required("spec.selector")
        yield from self._errors
        if self._kind != "DaemonSet":
            yield from self.emptiness
        if self._errors and self._kind in _OF_INVALID:
            yield invalid("spec.selector", printed(self._selector), _OF_INVALID[self._kind])

    @property
    def emptiness(self) -> Iterator[FieldError]:
        """What is said of a selector that selects everything."""
        if self._selector is not None and self._selector.is_empty:
            words = f"empty selector is invalid for {_CALLED.get(self._kind, 'deployment')}"
            yield invalid("spec.selector", {}, words)

    @property
    def is_readable(self) -> bool:
        """Whether it can be held against labels; what cannot hides the errors of a template, except of a DaemonSet."""
        return not self._errors

    @property
    def mismatch(self) -> Iterator[FieldError]:
        """What is said of pods that are not selected; an absent selector selects none."""
        if not self.is_readable or (self._selector is not None and self._selector.matches(self._labels or {})):
            return
        yield mismatch(self._labels)


def mismatch(labels: Mapping[str, str] | None) -> FieldError:
    """Return the error about labels of a template that its own selector does not select."""
    path = "spec.template.metadata.labels"
    return invalid_null(path, _NOT_MATCHING) if labels is None else invalid(path, in_order(labels), _NOT_MATCHING)


def in_order(labels: Mapping[str, str]) -> dict[str, Plain]:
    """Return labels as Go prints a map: by key."""
    return dict(sorted(labels.items()))


def printed(selector: LabelSelector | None) -> Plain:
    """Return a selector as the API server prints it in an error about the whole of it."""
    if selector is None:
        return None
    shown: dict[str, Plain] = {}
    if selector.match_labels:
        shown["matchLabels"] = in_order(selector.match_labels)
    if selector.match_expressions:
        expressions: list[Plain] = []
        for requirement in selector.match_expressions:
            expression: dict[str, Plain] = {"key": requirement.key, "operator": requirement.operator}
            expressions.append(expression | ({"values": list(requirement.values)} if requirement.values else {}))
        shown["matchExpressions"] = expressions
    return shown
