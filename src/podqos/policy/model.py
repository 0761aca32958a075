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
    """Return what the schema says about a field, for editors that show it."""
    return Meta(description=text)


Times = Annotated[float, Meta(gt=0)]
Ratio = Annotated[float, Meta(ge=1)]


class Action(StrEnum):
    """What becomes of an object that violates a rule; the strictest first."""

    DENY = "Deny"
    WARN = "Warn"
    AUDIT = "Audit"

    @property
    def rank(self) -> int:
        """0 for the strictest."""
        return _RANKS[self]


_RANKS = {action: rank for rank, action in enumerate(Action)}


class Operator(StrEnum):
    """How a selector's condition compares."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class SelectorRequirement(LabelSelectorRequirement, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One condition on one label."""

    key: Annotated[str, says("the label")]
    operator: Annotated[Operator, says("In and NotIn compare with values; Exists and DoesNotExist have none")]
    values: Annotated[tuple[str, ...], says("for In and NotIn")] = ()


class Selector(LabelSelector, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A label selector, as Kubernetes writes it: all of its conditions together."""

    match_labels: Annotated[dict[str, str], says("labels with exactly these values")] = {}  # noqa: RUF012 - of a frozen structure
    match_expressions: Annotated[tuple[SelectorRequirement, ...], says("conditions on labels")] = ()


class Match(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Which objects are meant: those that match every field given; without any, all."""

    namespaces: Annotated[Globs, says("names of namespaces: shop, team-*")] = ()
    namespace_selector: Annotated[Selector | None, says("labels of the namespace")] = None
    object_selector: Annotated[Selector | None, says("labels of the object, or of the pods it makes")] = None
    annotations: Annotated[
        dict[str, str],
        says("annotations of the object, or of the pods it makes, with these values; patterns may be used"),
    ] = {}
    kinds: Annotated[Globs, says("kinds: Pod, Deployment; without, all that have pods")] = ()
    names: Annotated[Globs, says("names of objects: web-*")] = ()


class Priority(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Rules about the priority of pods."""

    required: Annotated[bool, says("the pod has to have a priority class, its own or the global default")] = False
    classes: Annotated[Globs, says("the priority classes that are allowed: web, batch-*")] = ()
    forbidden_classes: Annotated[Globs, says("the priority classes that are not allowed: system-*")] = ()
    min: Annotated[int | None, says("the lowest priority allowed")] = None
    max: Annotated[int | None, says("the highest priority allowed")] = None


class Require(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What a rule demands of a pod as it will be stored: all of it."""

    min_class: Annotated[QOSClass | None, says("the QoS class the pod has to have at least")] = None
    max_class: Annotated[QOSClass | None, says("the QoS class the pod may have at most")] = None
    class_label: Annotated[
        str,
        says(
            "a label or annotation, such as podqos.dev/class, of the namespace, the object or its pods, whose value is "
            "the QoS class the pod has to have at least; where several state one, the strictest counts"
        ),
    ] = ""
    requests: Annotated[tuple[str, ...], says("resources every container has to request: cpu, memory")] = ()
    limits: Annotated[tuple[str, ...], says("resources every container has to limit: memory")] = ()
    max_limit_request_ratio: Annotated[
        dict[str, Ratio], says("how many times its request a limit may be, by resource: {memory: 1.5}")
    ] = {}
    priority: Annotated[Priority | None, says("rules about the priority")] = None


class Rule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is demanded of which objects, and what becomes of those that do not comply."""

    name: Annotated[str, says("by which exemptions, messages and findings name the rule")]
    match: Annotated[Match, says("which objects the rule is about; without, all that have pods")] = Match()
    require: Annotated[Require, says("what is demanded of their pods")]
    action: Annotated[Action, says("what becomes of a violation: it is refused, warned about, or only recorded")]
    message: Annotated[
        str, says("what to tell those who violate it, before the facts: whom to ask, where to read on")
    ] = ""


class Per(StrEnum):
    """What a budget is held against."""

    CLUSTER = "Cluster"
    NAMESPACE = "Namespace"
    NODE = "Node"


class Budget(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the requests and limits of pods may add up to."""

    name: Annotated[str, says("by which messages and findings name the budget")]
    match: Annotated[Match, says("whose pods count; without, all")] = Match()
    resource: Annotated[str, says("cpu, memory or another resource of nodes")]
    limits: Annotated[Times | None, says("what limits may add up to, in times what the nodes have allocatable")] = None
    requests: Annotated[Times | None, says("what requests may add up to, in times what the nodes have allocatable")] = (
        None
    )
    per: Annotated[
        Per,
        says("whose pods are added up: all, those of each namespace, or, where that is known, those of each node"),
    ] = Per.CLUSTER
    action: Annotated[Action, says("what becomes of a violation")] = Action.WARN

    @property
    def is_for_all(self) -> bool:
        """Whether it is about all pods together."""
        return self.match == Match() and self.per is Per.CLUSTER


class Exemption(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """What rules are not applied to: what matches every field given."""

    reason: Annotated[str, Meta(min_length=1, description="why, for readers of the file a year from now")]
    rules: Annotated[Globs, says("names of rules and budgets; without, all of this policy")] = ()
    namespaces: Annotated[Globs, says("names of namespaces: kube-system")] = ()
    namespace_selector: Annotated[Selector | None, says("labels of the namespace")] = None
    objects: Annotated[Globs, says("Kind/name: DaemonSet/cni-*; pods of such an object are exempt, too")] = ()
    containers: Annotated[Globs, says("names of containers: istio-proxy; the others are still judged")] = ()
    users: Annotated[Globs, says("who asks, known to the webhook alone: system:serviceaccount:ci:*")] = ()
    groups: Annotated[Globs, says("groups of who asks: system:nodes")] = ()
    until: Annotated[str | None, says("the last day on which it counts: 2027-01-31, in quotes")] = None


class PolicySpec(Struct, frozen=True, forbid_unknown_fields=True):
    """What is demanded."""

    rules: Annotated[tuple[Rule, ...], says("what is demanded of each pod")] = ()
    budgets: Annotated[tuple[Budget, ...], says("what is demanded of all pods together")] = ()
    exemptions: Annotated[tuple[Exemption, ...], says("what is not demanded of some")] = ()


class PolicyMeta(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Who a policy is."""

    name: Annotated[str, says("by which messages and findings name the policy")]
    labels: Annotated[dict[str, str], says("labels, for people")] = {}
    annotations: Annotated[dict[str, str], says("annotations, for people")] = {}


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
    """Return a policy that is written without its head."""
    return Policy(api_version=API_VERSION, kind=KIND, metadata=PolicyMeta(name=name), spec=spec)
