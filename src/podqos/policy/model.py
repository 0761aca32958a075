"""The policy language: ``kind: Policy`` of ``podqos.dev/v1alpha1``.

The names and shapes here are those of the file, and its published schema is made from them. The same ``PolicySpec`` is
``policy`` in ``.podqos.yaml``: there is one language.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

from podqos.model.pod import QOSClass
from podqos.model.selector import LabelSelector, LabelSelectorRequirement

API_VERSION: Literal["podqos.dev/v1alpha1"] = "podqos.dev/v1alpha1"
KIND: Literal["Policy"] = "Policy"

Globs = tuple[str, ...]
"""Patterns with ``*``, ``?`` and ``[…]``; a ``*`` also crosses slashes."""


def says(text: str) -> Meta:
    """Return the description of a field in the schema, for editors."""
    return Meta(description=text)


Times = Annotated[float, Meta(gt=0)]
Ratio = Annotated[float, Meta(ge=1)]


class Action(StrEnum):
    """The action for an object that violates a rule; the strictest first."""

    DENY = "Deny"
    WARN = "Warn"
    AUDIT = "Audit"

    @property
    def rank(self) -> int:
        """0 for the strictest."""
        return _RANKS[self]


_RANKS = {action: rank for rank, action in enumerate(Action)}


class Operator(StrEnum):
    """The operator of a label condition."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class SelectorRequirement(LabelSelectorRequirement, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One condition on one label."""

    key: Annotated[str, says("the label")]
    operator: Annotated[Operator, says("In and NotIn compare with values; Exists and DoesNotExist take none")]
    values: Annotated[tuple[str, ...], says("for In and NotIn")] = ()


class Selector(LabelSelector, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A label selector, as Kubernetes writes it: all of its conditions together."""

    match_labels: Annotated[dict[str, str], says("labels with exactly these values")] = {}  # noqa: RUF012 - of a frozen structure
    match_expressions: Annotated[tuple[SelectorRequirement, ...], says("label conditions")] = ()


class Match(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The objects a rule applies to: those that match every given field (default: all)."""

    namespaces: Annotated[Globs, says("names of namespaces: shop, team-*")] = ()
    namespace_selector: Annotated[Selector | None, says("labels of the namespace")] = None
    object_selector: Annotated[Selector | None, says("labels of the object, or of the pods it creates")] = None
    annotations: Annotated[
        dict[str, str],
        says("annotations of the object, or of the pods it creates, with these values or patterns"),
    ] = {}
    kinds: Annotated[Globs, says("kinds: Pod, Deployment (default: all kinds with pods)")] = ()
    names: Annotated[Globs, says("names of objects: web-*")] = ()


class Priority(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Requirements for the priority of pods."""

    required: Annotated[bool, says("the pod must have a priority class, its own or the global default")] = False
    classes: Annotated[Globs, says("allowed priority classes: web, batch-*")] = ()
    forbidden_classes: Annotated[Globs, says("forbidden priority classes: system-*")] = ()
    min: Annotated[int | None, says("lowest allowed priority")] = None
    max: Annotated[int | None, says("highest allowed priority")] = None


class Require(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The requirements of a rule for a pod as stored, all of which must be met."""

    min_class: Annotated[QOSClass | None, says("lowest allowed QoS class")] = None
    max_class: Annotated[QOSClass | None, says("highest allowed QoS class")] = None
    class_label: Annotated[
        str,
        says(
            "a label or annotation of the namespace, the object or its pods, such as podqos.dev/class, whose "
            "value is the lowest allowed QoS class; if several are set, the strictest applies"
        ),
    ] = ""
    requests: Annotated[tuple[str, ...], says("resources every container must request: cpu, memory")] = ()
    limits: Annotated[tuple[str, ...], says("resources every container must limit: memory")] = ()
    max_limit_request_ratio: Annotated[
        dict[str, Ratio], says("highest ratio of limit to request, by resource: {memory: 1.5}")
    ] = {}
    priority: Annotated[Priority | None, says("requirements for the priority")] = None


class Rule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Requirements for some objects, and the action for those that violate them."""

    name: Annotated[str, says("name of the rule in exemptions, messages and findings")]
    match: Annotated[Match, says("objects the rule applies to (default: all objects with pods)")] = Match()
    require: Annotated[Require, says("requirements for their pods")]
    action: Annotated[Action, says("what happens on a violation: reject, warn, or only record it")]
    message: Annotated[str, says("text printed first on a violation: whom to ask, where to read more")] = ""


class Per(StrEnum):
    """What a budget adds up."""

    CLUSTER = "Cluster"
    NAMESPACE = "Namespace"
    NODE = "Node"


class Budget(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The highest sum of requests and limits of pods."""

    name: Annotated[str, says("name of the budget in messages and findings")]
    match: Annotated[Match, says("objects whose pods count (default: all)")] = Match()
    resource: Annotated[str, says("cpu, memory or another resource of nodes")]
    limits: Annotated[Times | None, says("highest sum of limits, as a multiple of the nodes' allocatable")] = None
    requests: Annotated[Times | None, says("highest sum of requests, as a multiple of the nodes' allocatable")] = None
    per: Annotated[
        Per,
        says("which pods are added up: all, per namespace, or per node (if known)"),
    ] = Per.CLUSTER
    action: Annotated[Action, says("what happens on a violation")] = Action.WARN

    @property
    def is_for_all(self) -> bool:
        """Whether it adds up all pods."""
        return self.match == Match() and self.per is Per.CLUSTER


class Exemption(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """An exemption from rules, for whatever matches every given field."""

    reason: Annotated[str, Meta(min_length=1, description="the reason, for whoever reads this file in a year")]
    rules: Annotated[Globs, says("names of rules and budgets (default: all of this policy)")] = ()
    namespaces: Annotated[Globs, says("names of namespaces: kube-system")] = ()
    namespace_selector: Annotated[Selector | None, says("labels of the namespace")] = None
    objects: Annotated[Globs, says("Kind/name: DaemonSet/cni-*; also exempts the pods of these objects")] = ()
    containers: Annotated[Globs, says("names of containers: istio-proxy; other containers are still validated")] = ()
    users: Annotated[Globs, says("requesting users, which only the webhook knows: system:serviceaccount:ci:*")] = ()
    groups: Annotated[Globs, says("groups of the requesting user: system:nodes")] = ()
    until: Annotated[str | None, says("last day of the exemption, in quotes: 2027-01-31")] = None


class PolicySpec(Struct, frozen=True, forbid_unknown_fields=True):
    """Rules, budgets and exemptions."""

    rules: Annotated[tuple[Rule, ...], says("requirements for each pod")] = ()
    budgets: Annotated[tuple[Budget, ...], says("requirements for all pods together")] = ()
    exemptions: Annotated[tuple[Exemption, ...], says("exemptions from the requirements")] = ()


class PolicyMeta(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The metadata of a policy."""

    name: Annotated[str, says("name of the policy in messages and findings")]
    labels: Annotated[dict[str, str], says("labels, for your own use")] = {}
    annotations: Annotated[dict[str, str], says("annotations, for your own use")] = {}


class Policy(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """A policy file."""

    api_version: Annotated[Literal["podqos.dev/v1alpha1"], says("the version of the language")]
    kind: Annotated[Literal["Policy"], says("always Policy")]
    metadata: PolicyMeta
    spec: PolicySpec

    @property
    def name(self) -> str:
        """Its name."""
        return self.metadata.name

    @property
    def reads_namespaces(self) -> bool:
        """Whether labels or annotations of namespaces decide something."""
        spec = self.spec
        selectors = [
            *(rule.match.namespace_selector for rule in spec.rules),
            *(budget.match.namespace_selector for budget in spec.budgets),
            *(exemption.namespace_selector for exemption in spec.exemptions),
        ]
        return any(selector is not None for selector in selectors) or any(
            rule.require.class_label for rule in spec.rules
        )


def policy_of(name: str, spec: PolicySpec) -> Policy:
    """Return a policy that is written without apiVersion, kind and metadata."""
    return Policy(api_version=API_VERSION, kind=KIND, metadata=PolicyMeta(name=name), spec=spec)
