"""Pods and nodes as the scheduler sees them: what does not depend on a node, computed once, and the books of a node.

Resources are whole numbers, rounded up: cpu in thousandths, everything else in whole units; what the scheduler knows
nothing about is left out. Pods of one workload share a ``Likeness``: whatever a rule says of one holds for the others.

Spread constraints by default are for pods without constraints of their own, of a ReplicaSet, a ReplicationController
or a StatefulSet, and those that a Service selects. A controller is known by the pod's owner reference. What it selects
is not asked: the pods it makes have the labels of its template, which its selector, with the hash of the template,
tells from all others.

Source: Kubernetes v1.36 pkg/scheduler/framework/types.go (Resource, CalculateResource), pkg/scheduler/util,
pkg/scheduler/framework/plugins/noderesources/{fit,resource_allocation}.go (NewFit, calculatePodResourceRequest),
plugins/podtopologyspread/{plugin,common}.go (buildDefaultConstraints), plugins/helper/spread.go (DefaultSelector),
plugins/nodeports/node_ports.go and staging/src/k8s.io/kube-scheduler/framework/types.go (HostPortInfo).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InvalidManifest
from podqos.model.effective import as_charged, pod_requests, sum_of_containers
from podqos.model.node import LABEL_HOSTNAME, LABEL_ZONE, PODS, Node, Taint
from podqos.model.pod import Container, ObjectMeta, Pod, PodSpec, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    ResourceList,
    is_extended,
    is_hugepages,
    is_pod_level,
)
from podqos.model.scheduling import PodAffinityTerm, PreferredNodes, TopologySpreadConstraint
from podqos.model.selector import LabelSelector, LabelSelectorRequirement
from podqos.model.service import Service
from podqos.placement.node_rules import (
    image_count,
    images_of,
    named_nodes,
    required_features,
    taints_of,
)
from podqos.qos.classes import classify

Amounts = dict[str, int]

# What a container that requests nothing counts for when nodes are compared, never when they are checked
# (pkg/scheduler/util/pod_resources.go).
_UNSTATED: ResourceList = {CPU: Quantity.of_milli(100), MEMORY: Quantity.of_units(200 * 2**20)}


class Demand(Struct, frozen=True, gc=False):
    """The resources that one pod takes from a node."""

    requested: Amounts
    """Effective requests; what the node must have left."""
    scored_cpu_milli: int
    scored_memory_bytes: int
    """The same for scoring, for a pod on a node: something is assumed for containers that state nothing."""
    asking_cpu_milli: int
    asking_memory_bytes: int
    """The same for the pod to place, by containers and overhead alone: LeastAllocated is built without pod-level
    resources, and something is assumed even if another container states it."""


def demand_of(pod: Pod, profile: Profile = LATEST) -> Demand:
    """Return the resources of ``pod`` as scheduled, used as given (see ``admission.defaulting``)."""
    requests = pod_requests(pod, pod_level=profile.pod_level_resources)
    asking = _scored_requests(pod, _UNSTATED, pod_level=False)
    assumed = _assumed(pod, requests, profile)
    scored = _scored_requests(pod, assumed, pod_level=profile.pod_level_resources) if assumed else requests
    amounts = (
        each for found in (scored, asking) for each in (found.get(CPU, ZERO).milli_value, found.get(MEMORY, ZERO).value)
    )
    return Demand(counted(requests), *amounts)


def held_by(pod: Pod, demand: Demand, profile: Profile = LATEST) -> Demand:
    """Return what a pod counts for that is on a node; ``demand`` unless its status shows a resize that is not done."""
    if not profile.in_place_resize:
        return demand
    charged = as_charged(pod, pod_level_status=profile.pod_level_resize)
    return demand if charged is pod else demand_of(charged, profile)


def counted(resources: ResourceList) -> Amounts:
    """Return the amounts that take part in scheduling."""
    return {
        name: amount.milli_value if name == CPU else amount.value
        for name, amount in resources.items()
        if name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(name)
    }


def is_scalar(name: str) -> bool:
    """Whether the scheduler counts the resource in addition to cpu, memory and ephemeral storage."""
    return is_hugepages(name) or is_extended(name) or "kubernetes.io/" in name or name.startswith("attachable-volumes-")


def _assumed(pod: Pod, requests: ResourceList, profile: Profile) -> ResourceList:
    """Return what is assumed for containers that state nothing; pod-level requests speak for all of them."""
    own = pod.spec.resources
    if profile.pod_level_resources and own is not None and any(map(is_pod_level, own.requests)):
        return {name: amount for name, amount in _UNSTATED.items() if name not in requests}
    return _UNSTATED


def _scored_requests(pod: Pod, assumed: ResourceList, *, pod_level: bool) -> ResourceList:
    def requests_of(container: Container) -> ResourceList:
        return {**assumed, **container.resources.requests}

    total = sum_of_containers(pod, requests_of)
    own = pod.spec.resources
    for name in (CPU, MEMORY):
        if pod_level and own is not None and name in own.requests:
            total[name] = own.requests[name]
        if pod.spec.overhead and name in pod.spec.overhead:
            total[name] = total.get(name, ZERO) + pod.spec.overhead[name]
    return total


_EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - what an empty hostIP means, not something we bind to


class HostPort(Struct, frozen=True, gc=False):
    """One port of the node."""

    port: int
    protocol: str
    host_ip: str

    def conflicts_with(self, other: HostPort) -> bool:
        """Whether both cannot be on one node: same port and protocol, and an address in common."""
        return (
            self.port == other.port
            and self.protocol == other.protocol
            and (self.host_ip == other.host_ip or _EVERY_ADDRESS in (self.host_ip, other.host_ip))
        )


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Return the node's ports that a pod takes; init containers take some only if they keep running."""
    sidecars = (container for container in spec.init_containers if container.is_sidecar)
    taken = []
    for container in (*spec.containers, *sidecars):
        for port in container.ports:
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number > 0:
                taken.append(HostPort(number, port.protocol or "TCP", port.host_ip or _EVERY_ADDRESS))
    return tuple(taken)


def first_taken(wanted: tuple[HostPort, ...], used: Iterable[HostPort]) -> HostPort | None:
    """Return the first wanted port that is in use."""
    in_use = tuple(used)
    for port in wanted:
        if any(port.conflicts_with(other) for other in in_use):
            return port
    return None


_CONSTRAINTS = (
    TopologySpreadConstraint(3, LABEL_HOSTNAME, "ScheduleAnyway"),
    TopologySpreadConstraint(5, LABEL_ZONE, "ScheduleAnyway"),
)
_CONTROLLERS = (("apps/v1", "ReplicaSet"), ("v1", "ReplicationController"), ("apps/v1", "StatefulSet"))
_TEMPLATE_HASH = "pod-template-hash"
# Labels that a StatefulSet gives to each of its pods; its selector does not name them.
_OF_ONE_POD = ("statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "controller-revision-hash")


def default_constraints(pod: ObjectMeta, services: Iterable[Service] = ()) -> tuple[TopologySpreadConstraint, ...]:
    """Return the constraints with the pods they count; none if no selector matches similar pods."""
    selector = _like(pod, services)
    return (
        () if selector.is_empty else tuple(replace(constraint, label_selector=selector) for constraint in _CONSTRAINTS)
    )


def _like(pod: ObjectMeta, services: Iterable[Service]) -> LabelSelector:
    """Return which pods of the namespace count as similar to the pod."""
    labels: dict[str, str] = {}
    for service in services:
        if service.selects(pod.namespace, pod.labels):
            labels |= service.spec.selector
    if not pod.labels or not any(
        owner.controller and (owner.api_version, owner.kind) in _CONTROLLERS for owner in pod.owner_references
    ):
        return LabelSelector(labels)
    labels |= {key: value for key, value in pod.labels.items() if key not in _OF_ONE_POD}
    # A pod that is not made yet has no hash, and those that are there belong to another template.
    unmade = () if _TEMPLATE_HASH in labels else (LabelSelectorRequirement(_TEMPLATE_HASH, "DoesNotExist"),)
    return LabelSelector(labels, unmade)


DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
PREEMPT_NEVER = "Never"

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
        "features",
        "image_count",
        "images",
        "key",
        "named_nodes",
        "node_key",
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
        self.node_key: object = (
            self.qos_class,
            spec.tolerations,
            frozenset(spec.node_selector.items()),
            nodes,
            self.features,
        )
        """Equal for pods to which every node, empty, is the same."""
        demand = self.demand
        self.key: object = (
            frozenset(demand.requested.items()),
            demand.scored_cpu_milli,
            demand.scored_memory_bytes,
            demand.asking_cpu_milli,
            demand.asking_memory_bytes,
            self.node_key,
            self.ports,
            msgspec.json.encode((affinity, spec.topology_spread_constraints))
            if affinity is not None or spec.topology_spread_constraints
            else None,
            self.images,
            self.image_count,
            spec.priority,
            spec.preemption_policy,
        )
        """Equal for pods with the same requirements."""


class Likeness:
    """What every rule treats alike: the pods of one workload. It is one object, told from others by identity."""

    __slots__ = (
        "affinity",
        "anti_affinity",
        "attraction",
        "is_terminating",
        "labels",
        "namespace",
        "preferred",
        "shape",
        "soft_spread",
        "spread",
    )

    def __init__(
        self, pod: Pod, shape: Shape, defaults: tuple[TopologySpreadConstraint, ...], *, is_terminating: bool
    ) -> None:
        """``defaults`` are the spread constraints for pods that state none."""
        self.shape = shape
        self.namespace: str = pod.metadata.namespace_or_default
        self.labels: Mapping[str, str] = pod.metadata.labels
        self.is_terminating = is_terminating
        """Whether the pods are on their way out; they still hold their resources."""
        labels = self.labels
        self.affinity = tuple(_with_label_keys(term, labels) for term in shape.affinity)
        self.anti_affinity = tuple(_with_label_keys(term, labels) for term in shape.anti_affinity)
        self.preferred: tuple[WeightedTerm, ...] = tuple(
            (weight, _with_label_keys(term, labels)) for weight, term in shape.preferred
        )
        self.attraction = (*self.preferred, *((_WEIGHT_OF_REQUIRED, term) for term in self.affinity))
        """How such a pod, once placed, affects the placement of others."""
        self.spread = _with_selectors(shape.spread, labels)
        self.soft_spread = _with_selectors(shape.soft_spread, labels)
        if not shape.spec.topology_spread_constraints:
            self.soft_spread = defaults

    @property
    def is_spread_by_default(self) -> bool:
        """Whether the constraints are the scheduler's own, for which nodes need not have every label."""
        return not self.shape.spec.topology_spread_constraints

    @property
    def depends_on_pods(self) -> bool:
        """Whether more pods elsewhere could make such a pod fit."""
        return bool(self.affinity or self.spread)


class PodView:
    """One pod, and what it is like."""

    __slots__ = ("held", "key", "likeness", "pod", "priority")

    def __init__(self, pod: Pod, likeness: Likeness, held: Demand) -> None:
        self.pod = pod
        self.likeness = likeness
        self.held = held
        """What it takes from the node it is on: more than it asks for while a resize to less is not done."""
        self.key: str = pod.key
        self.priority: int = pod.spec.priority or 0

    @property
    def shape(self) -> Shape:
        """What it requires."""
        return self.likeness.shape

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
    """Makes views. Pods that are alike get one likeness, those that ask for the same one shape."""

    def __init__(self, profile: Profile = LATEST, services: Iterable[Service] = ()) -> None:
        self._profile = profile
        self._services = tuple(services)
        self._by_spec: dict[int, tuple[PodSpec, Shape]] = {}
        self._shapes: dict[object, Shape] = {}
        self._likenesses: dict[object, Likeness] = {}

    def of(self, pod: Pod) -> PodView:
        """Return the view of one pod."""
        metadata = pod.metadata
        shape = self._shape(pod)
        is_terminating = bool(metadata.deletion_timestamp)
        labels = frozenset(metadata.labels.items())
        key = shape, metadata.namespace_or_default, labels, metadata.owner_references, is_terminating
        likeness = self._likenesses.get(key)
        if likeness is None:
            defaults = default_constraints(metadata, self._services)
            # Of controllers it only matters whether their pods are spread.
            same = shape, metadata.namespace_or_default, labels, msgspec.json.encode(defaults), is_terminating
            made = Likeness(pod, shape, defaults, is_terminating=is_terminating)
            likeness = self._likenesses[key] = self._likenesses.setdefault(same, made)
        return PodView(pod, likeness, held_by(pod, shape.demand, self._profile))

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


def _with_selectors(
    constraints: tuple[TopologySpreadConstraint, ...], labels: Mapping[str, str]
) -> tuple[TopologySpreadConstraint, ...]:
    """Write ``matchLabelKeys`` into the selectors of constraints (KEP-3243)."""
    return tuple(
        replace(
            each,
            label_selector=LabelSelector(
                each.label_selector.match_labels,
                (
                    *each.label_selector.match_expressions,
                    *(
                        LabelSelectorRequirement(key, "In", (labels[key],))
                        for key in each.match_label_keys
                        if key in labels
                    ),
                ),
            ),
        )
        if each.label_selector is not None and each.match_label_keys
        else each
        for each in constraints
    )


class SchedulerNode:
    """One node and its pods: the running sums that the scheduler keeps. It decides nothing."""

    __slots__ = (
        "allocatable",
        "allowed_pods",
        "caring",
        "cpu_milli",
        "images",
        "labels",
        "likenesses",
        "memory_bytes",
        "name",
        "node",
        "pods",
        "requested",
        "scored_cpu_milli",
        "scored_memory_bytes",
        "taints",
        "version",
    )

    def __init__(self, node: Node, profile: Profile = LATEST) -> None:
        if not node.name:
            raise InvalidManifest("a Node without a name", where="metadata.name", fix="give it a name")
        self.name: str = node.name
        self.version = 0
        """Changes with every pod that comes or goes, and with what the node offers."""
        self.offer(node, profile)
        self.pods: dict[str, PodView] = {}
        self.likenesses: dict[Likeness, int] = {}
        """How many pods it has of each kind."""
        self.caring: dict[Likeness, int] = {}
        """Those among them with a term about other pods, which may keep any away or draw it here."""
        self.images: frozenset[str] = frozenset(name for image in node.status.images for name in image.names or ())
        self.requested: Amounts = {}
        self.scored_cpu_milli = 0
        self.scored_memory_bytes = 0

    def offer(self, node: Node, profile: Profile) -> None:
        """Take over what the node says about itself; its pods stay."""
        self.node = node
        self.labels: Mapping[str, str] = node.labels
        self.taints: tuple[Taint, ...] = taints_of(node, profile)
        self.allocatable: Amounts = counted(node.status.allocatable)
        self.cpu_milli: int = self.allocatable.get(CPU, 0)
        self.memory_bytes: int = self.allocatable.get(MEMORY, 0)
        allowed = node.status.allocatable.get(PODS)
        self.allowed_pods: int = allowed.value if allowed is not None else 0
        self.version += 1

    def add(self, view: PodView) -> None:
        """Put a pod on the node."""
        assert view.key not in self.pods, f"{view.key} is already on {self.name}"
        self.pods[view.key] = view
        self._count(view, 1)

    def remove(self, view: PodView) -> None:
        """Take a pod off the node."""
        del self.pods[view.key]
        self._count(view, -1)

    def _count(self, view: PodView, sign: int) -> None:
        self.version += 1
        likeness = view.likeness
        cares = bool(likeness.attraction or likeness.anti_affinity)
        for counted in (self.likenesses, self.caring)[: 1 + cares]:
            counted[likeness] = counted.get(likeness, 0) + sign
            if not counted[likeness]:
                del counted[likeness]
        demand = view.held
        requested = self.requested
        for name, amount in demand.requested.items():
            requested[name] = requested.get(name, 0) + sign * amount
        self.scored_cpu_milli += sign * demand.scored_cpu_milli
        self.scored_memory_bytes += sign * demand.scored_memory_bytes
