"""Label selectors: which objects a rule applies to.

An absent selector selects nothing, an empty one everything; every rule that carries a selector relies on that.

Source: Kubernetes v1.36 staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go (LabelSelectorAsSelector) and
pkg/labels/selector.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class LabelSelectorRequirement(Struct, frozen=True, gc=False):
    """One condition on one label."""

    key: str = ""
    operator: str = ""
    """In, NotIn, Exists or DoesNotExist."""
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether ``labels`` meet the condition. An unknown operator matches nothing."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
        return False


class LabelSelector(Struct, frozen=True, gc=False, rename="camel"):
    """All of its conditions together."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it has no condition and so selects everything."""
        return not self.match_labels and not self.match_expressions

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether ``labels`` meet every condition."""
        for key, value in self.match_labels.items():
            if labels.get(key) != value:
                return False
        return all(requirement.matches(labels) for requirement in self.match_expressions)


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether ``selector`` matches these labels."""
    return selector is not None and selector.matches(labels)
