"""A pod as the scheduler sees it: everything that does not depend on a node, computed once.

Pods of one workload ask for the same and so share one ``Shape``; a ``PodView`` adds who the pod is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from podqos.model.pod import Pod, PodSpec, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.scheduling import PodAffinityTerm, PreferredNodes, TopologySpreadConstraint
from podqos.model.selector import LabelSelector, LabelSelectorRequirement
from podqos.model.service import Service
from podqos.placement.declared_features import required_features
from podqos.placement.default_spread import default_constraints
from podqos.placement.demand import Demand, demand_of, held_by
from podqos.placement.host_ports import HostPort, host_ports
from podqos.placement.image_locality import image_count, images_of
from podqos.placement.node_affinity import named_nodes, required_terms
from podqos.qos.classes import classify

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
PREEMPT_NEVER = "Never"

Likeness = tuple[int, str, int]
WeightedTerm = tuple[int, PodAffinityTerm]
"""Weights below zero keep pods apart."""
# What a required affinity of a pod that is there counts for (hardPodAffinityWeight of the default profile).
_WEIGHT_OF_REQUIRED = 1


class Shape:
    """What the pods of one workload require."""

    __slots__ = (
        "affinity",
        "anti_affinity",
        "demand",
        "demand_key",
        "features",
        "image_count",
        "images",
        "key",
        "named_nodes",
        "ports",
        "preferred",
        "preferred_nodes",
        "qos_class",
        "soft_spread",
        "spec",
        "spread",
    )

    def __init__(self, pod: Pod, profile: Profile = LATEST) -> None:
        spec = pod.spec
        self.spec: PodSpec = spec
        self.demand: Demand = demand_of(pod, profile)
        self.qos_class: QOSClass = classify(pod, profile).qos_class
        self.named_nodes: frozenset[str] | None = named_nodes(spec)
        self.ports: tuple[HostPort, ...] = host_ports(spec)
        self.images: tuple[str, ...] = images_of(spec, profile)
        self.image_count: int = image_count(spec, profile)
        self.features: frozenset[str] = required_features(spec, profile)
        self.spread = _constraints(spec, DO_NOT_SCHEDULE)
        self.soft_spread = _constraints(spec, SCHEDULE_ANYWAY)
        affinity = spec.affinity
        near = affinity.pod_affinity if affinity is not None else None
        away = affinity.pod_anti_affinity if affinity is not None else None
        self.affinity: tuple[PodAffinityTerm, ...] = near.required if near is not None else ()
        self.anti_affinity: tuple[PodAffinityTerm, ...] = away.required if away is not None else ()
        self.preferred: tuple[WeightedTerm, ...] = (
            *((pods.weight, pods.pod_affinity_term) for pods in (near.preferred if near is not None else ())),
            *((-pods.weight, pods.pod_affinity_term) for pods in (away.preferred if away is not None else ())),
        )
        nodes = affinity.node_affinity if affinity is not None else None
        self.preferred_nodes: tuple[PreferredNodes, ...] = nodes.preferred if nodes is not None else ()
        self.demand_key: object = (
            frozenset(self.demand.requested.items()),
            self.demand.scored_cpu_milli,
            self.demand.scored_memory_bytes,
            self.demand.asking_cpu_milli,
            self.demand.asking_memory_bytes,
        )
        """Equal for equal demands."""
        self.key: object = (
            self.demand_key,
            self.qos_class,
            self.ports,
            spec.tolerations,
            frozenset(spec.node_selector.items()),
            msgspec.json.encode((affinity, spec.topology_spread_constraints))
            if affinity is not None or spec.topology_spread_constraints
            else None,
            self.images,
            self.image_count,
            self.features,
            spec.priority,
            spec.preemption_policy,
        )
        """Equal for pods with the same requirements."""

    @property
    def goes_by_labels_anywhere(self) -> bool:
        """Whether no node is ruled out by its labels or name."""
        return not self.spec.node_selector and required_terms(self.spec) is None


class PodView:
    """One pod: who it is, and its shape."""

    __slots__ = (
        "affinity",
        "anti_affinity",
        "attraction",
        "held",
        "key",
        "labels",
        "namespace",
        "pod",
        "preferred",
        "priority",
        "shape",
        "soft_spread",
        "spread",
    )

    def __init__(
        self,
        pod: Pod,
        shape: Shape,
        labels: Mapping[str, str] | None = None,
        defaults: tuple[TopologySpreadConstraint, ...] = (),
        held: Demand | None = None,
    ) -> None:
        """``defaults`` are the constraints for pods that state none."""
        self.pod = pod
        self.shape = shape
        self.held: Demand = shape.demand if held is None else held
        """What it takes from the node it is on: more than it asks for while a resize to less is not done."""
        self.key: str = pod.key
        self.namespace: str = pod.metadata.namespace_or_default
        self.labels: Mapping[str, str] = pod.metadata.labels if labels is None else labels
        self.priority: int = pod.spec.priority or 0
        self.affinity: tuple[PodAffinityTerm, ...] = ()
        self.anti_affinity: tuple[PodAffinityTerm, ...] = ()
        self.preferred: tuple[WeightedTerm, ...] = ()
        self.attraction: tuple[WeightedTerm, ...] = ()
        """How the pod, once placed, affects the placement of others."""
        if shape.spec.affinity is not None:
            self._read_affinity(shape)
        self.spread: tuple[LabelSelector | None, ...] = ()
        self.soft_spread = defaults
        """Its spread constraints, each with the pods it counts."""
        if shape.spec.topology_spread_constraints:
            self._read_spread(shape)

    def _read_affinity(self, shape: Shape) -> None:
        labels = self.labels
        self.affinity = tuple(_with_label_keys(term, labels) for term in shape.affinity)
        self.anti_affinity = tuple(_with_label_keys(term, labels) for term in shape.anti_affinity)
        self.preferred = tuple((weight, _with_label_keys(term, labels)) for weight, term in shape.preferred)
        self.attraction = (*self.preferred, *((_WEIGHT_OF_REQUIRED, term) for term in self.affinity))

    def _read_spread(self, shape: Shape) -> None:
        self.spread = tuple(_spread_selector(constraint, self.labels) for constraint in shape.spread)
        self.soft_spread = tuple(
            replace(constraint, label_selector=_spread_selector(constraint, self.labels))
            for constraint in shape.soft_spread
        )

    @property
    def likeness(self) -> Likeness:
        """Equal for pods that every node treats alike: those of one workload."""
        return id(self.shape), self.namespace, id(self.labels)

    @property
    def is_spread_by_default(self) -> bool:
        """Whether the constraints are the scheduler's own, for which nodes need not have every label."""
        return not self.shape.spec.topology_spread_constraints

    @property
    def depends_on_pods(self) -> bool:
        """Whether more pods elsewhere could make this one fit."""
        return bool(self.affinity or self.spread)

    @property
    def is_terminating(self) -> bool:
        """Whether the pod is terminating; it still holds its resources."""
        return bool(self.pod.metadata.deletion_timestamp)

    @property
    def may_preempt(self) -> bool:
        """Whether the pod may preempt others."""
        return self.pod.spec.preemption_policy != PREEMPT_NEVER

    @property
    def importance(self) -> tuple[int, str, str]:
        """Sort key, most important first: priority, then the longer running, then the name.

        A pod that has not started counts as started now (pkg/scheduler/util/utils.go: MoreImportantPod).
        """
        return -self.priority, self.started, self.key

    @property
    def started(self) -> str:
        """When the pod started, in a form that sorts; the API server writes UTC times of one length."""
        return self.pod.status.start_time or _NOW


_NOW = "~"  # sorts behind every time


class Views:
    """Makes views. Pods that ask for the same share one shape, pods with the same labels share those."""

    def __init__(self, profile: Profile = LATEST, services: Iterable[Service] = ()) -> None:
        self._profile = profile
        self._services = tuple(services)
        self._defaults: dict[object, tuple[TopologySpreadConstraint, ...]] = {}
        self._by_spec: dict[int, tuple[PodSpec, Shape]] = {}
        self._shapes: dict[object, Shape] = {}
        self._labels: dict[object, Mapping[str, str]] = {}

    def of(self, pod: Pod) -> PodView:
        """Return the view of one pod."""
        labels = self._labels.setdefault(frozenset(pod.metadata.labels.items()), pod.metadata.labels)
        shape = self._shape(pod)
        held = held_by(pod, shape.demand, self._profile)
        return PodView(pod, shape, labels, self._defaults_of(pod, labels), held)

    def _defaults_of(self, pod: Pod, labels: Mapping[str, str]) -> tuple[TopologySpreadConstraint, ...]:
        metadata = pod.metadata
        if not metadata.owner_references and not self._services:
            return ()
        key = id(labels), metadata.namespace, metadata.owner_references
        if key not in self._defaults:
            self._defaults[key] = default_constraints(metadata, self._services)
        return self._defaults[key]

    def _shape(self, pod: Pod) -> Shape:
        # Replicas made from one template share the very object; holding on to it keeps its identity its own.
        known = self._by_spec.get(id(pod.spec))
        if known is None:
            shape = Shape(pod, self._profile)
            known = self._by_spec[id(pod.spec)] = pod.spec, self._shapes.setdefault(shape.key, shape)
        return known[1]


def _constraints(spec: PodSpec, action: str) -> tuple[TopologySpreadConstraint, ...]:
    return tuple(
        constraint for constraint in spec.topology_spread_constraints if constraint.when_unsatisfiable == action
    )


def _with_label_keys(term: PodAffinityTerm, labels: Mapping[str, str]) -> PodAffinityTerm:
    """Write ``matchLabelKeys`` and ``mismatchLabelKeys`` into the selector, as the API server does (KEP-3633)."""
    if term.label_selector is None or not (term.match_label_keys or term.mismatch_label_keys):
        return term
    added = (
        *(LabelSelectorRequirement(key, "In", (labels[key],)) for key in term.match_label_keys if key in labels),
        *(LabelSelectorRequirement(key, "NotIn", (labels[key],)) for key in term.mismatch_label_keys if key in labels),
    )
    selector = LabelSelector(term.label_selector.match_labels, (*term.label_selector.match_expressions, *added))
    return PodAffinityTerm(term.topology_key, selector, term.namespaces, term.namespace_selector)


def _spread_selector(constraint: TopologySpreadConstraint, labels: Mapping[str, str]) -> LabelSelector | None:
    """Return which pods a constraint counts, with ``matchLabelKeys`` (KEP-3243)."""
    selector = constraint.label_selector
    if selector is None or not constraint.match_label_keys:
        return selector
    added = tuple(
        LabelSelectorRequirement(key, "In", (labels[key],)) for key in constraint.match_label_keys if key in labels
    )
    return LabelSelector(selector.match_labels, (*selector.match_expressions, *added))
