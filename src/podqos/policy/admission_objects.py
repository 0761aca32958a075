"""Building blocks of admission policies: which objects have pods where, names, rules, selectors."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from podqos.manifest.plain import Plain
from podqos.model.selector import LabelSelector
from podqos.policy import cel
from podqos.policy.matching import named
from podqos.policy.model import Action, Match

_NAMESPACE_NAME = "kubernetes.io/metadata.name"
_LONGEST_NAME = 253


class Shape(Struct, frozen=True):
    """Objects with their pods at the same path."""

    name: str
    resources: dict[str, tuple[str, str]]
    """API group and resource by kind."""
    pod: str
    """Path from the object to the pod or its template, in CEL."""

    @property
    def is_template(self) -> bool:
        """Whether it is a template for pods yet to be created."""
        return bool(self.pod)

    def pod_of(self, root: str) -> str:
        """Return where the pod is in ``object`` or ``oldObject``."""
        return root + self.pod


PODS = Shape("pods", {"Pod": ("", "pods")}, "")
WORKLOADS = Shape(
    "workloads",
    {
        "Deployment": ("apps", "deployments"),
        "StatefulSet": ("apps", "statefulsets"),
        "DaemonSet": ("apps", "daemonsets"),
        "ReplicaSet": ("apps", "replicasets"),
        "Job": ("batch", "jobs"),
        "ReplicationController": ("", "replicationcontrollers"),
    },
    ".spec.template",
)
CRON_JOBS = Shape("cronjobs", {"CronJob": ("batch", "cronjobs")}, ".spec.jobTemplate.spec.template")
SHAPES = (PODS, WORKLOADS, CRON_JOBS)


def kinds(match: Match, shape: Shape) -> list[str]:
    """Return the kinds of a shape that a rule applies to."""
    return [kind for kind in shape.resources if not match.kinds or named(match.kinds, (kind,))]


def resource_rules(match: Match, shape: Shape) -> list[Plain]:
    """Return which resources and operations a policy matches."""
    operations = ("CREATE", "UPDATE") if shape.is_template else ("CREATE",)
    groups: dict[str, list[str]] = {}
    for kind in kinds(match, shape):
        group, resource = shape.resources[kind]
        groups.setdefault(group, []).append(resource)
    return [resource_rule(group, operations, resources) for group, resources in groups.items()]


def resource_rule(group: str, operations: Sequence[str], resources: Sequence[str]) -> Plain:
    """Return one rule of ``matchConstraints``."""
    return {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": [*operations],
        "resources": [*resources],
        "scope": "*",  # as the server adds it, so that applying again is no change
    }


def match_resources(match: Match, shape: Shape) -> dict[str, Plain]:
    """Return which namespaces, and which pods by label, a binding matches."""
    found: dict[str, Plain] = {}
    exact = match.namespaces if not any(map(cel.is_wild, match.namespaces)) else ()
    selector = match.namespace_selector
    if exact or selector is not None:
        requirement: Plain = {"key": _NAMESPACE_NAME, "operator": "In", "values": [*exact]}
        found["namespaceSelector"] = _selector(selector or LabelSelector(), [requirement] if exact else [])
    if match.object_selector is not None and not shape.is_template:
        found["objectSelector"] = _selector(match.object_selector, [])
    return found


def _selector(selector: LabelSelector, more: Sequence[Plain]) -> Plain:
    expressions: list[Plain] = [
        {
            "key": expression.key,
            "operator": str(expression.operator),
            **({"values": [*expression.values]} if expression.values else {}),
        }
        for expression in selector.match_expressions
    ]
    labels: Mapping[str, str] = selector.match_labels
    found: dict[str, Plain] = {"matchLabels": dict(labels), "matchExpressions": [*expressions, *more]}
    return {key: value for key, value in found.items() if value}


def object_name(policy: str, rule: str, about: str) -> str:
    """Return the name of a policy and its binding, unique to the rule and stable."""
    name = f"podqos.{policy}.{rule}.{about}"
    if name.count(".") == 3 and len(name) <= _LONGEST_NAME:  # else two rules could have one name
        return name
    mark = hashlib.sha256(f"{policy} {rule}".encode()).hexdigest()[:8]
    stem = f"{policy}-{rule}".replace(".", "-")
    return f"podqos.{stem[: _LONGEST_NAME - len(f'podqos.-{mark}.{about}')]}-{mark}.{about}"


def shortened(name: str, longest: int) -> str:
    """Return a name, shortened with a hash if it is too long."""
    return name if len(name) <= longest else f"{name[: longest - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def condition(name: str, expression: str) -> Plain:
    """Return one of ``matchConditions``."""
    return {"name": name, "expression": expression}


def actions(action: Action) -> list[Plain]:
    """Return ``validationActions``: every action is also audited."""
    return [str(action)] if action is Action.AUDIT else [str(action), str(Action.AUDIT)]


def needed(variables: Iterable[tuple[str, str]], users: Sequence[Plain]) -> list[Plain]:
    """Return the variables that are used, in order of dependency."""
    text = str(users)
    found: list[Plain] = []
    for name, expression in reversed([*variables]):
        if re.search(rf"\bvariables\.{name}\b", text):
            text += f" {expression}"
            found.append({"name": name, "expression": expression})
    return found[::-1]
