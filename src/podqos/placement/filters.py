"""Filters nodes for one pod: every filter in the scheduler's order.

The scheduler stops at the first filter that rejects a node; its messages and its choice of nodes for preemption go by
that one. ``answers`` continues and returns all obstacles. What depends on pods elsewhere is counted once for the pods
of one workload, and again only for the nodes that have changed.

*Spread constraints*: the pods that one counts are added up per value of its topology key, over the nodes that take
part. A node is good if its sum, with the new pod, exceeds the smallest sum by at most ``maxSkew``.

*Pod affinity* works both ways: a pod keeps away from those its own terms name, and from those whose terms name it.

*Nominations*: a node is asked twice where pods no less important are nominated to it: as if they ran there, and without
them, because an affinity to them is not met yet. What is nominated to other nodes does not count, not even for rules
about zones.

Source: Kubernetes v1.36.4 pkg/scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods,
addGENominatedPods), pkg/scheduler/backend/queue/nominator.go, pkg/scheduler/framework/preemption/executor.go
(getLowerPriorityNominatedPods), pkg/scheduler/framework/plugins/noderesources/fit.go (fitsRequest),
plugins/podtopologyspread/{common,filtering,scoring}.go, plugins/interpodaffinity/{filtering,scoring}.go; KEP-895,
KEP-3022 (minDomains), KEP-3094 (inclusion policies), KEP-3243 (matchLabelKeys).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TypeVar

import msgspec

from podqos.model.node import PODS
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from podqos.model.scheduling import PodAffinityTerm, TopologySpreadConstraint
from podqos.model.selector import LabelSelector, selects
from podqos.placement.node_rules import (
    UNSCHEDULABLE,
    ImageStates,
    first_untolerated,
    image_states,
    is_tolerated,
    matches,
    mismatch,
    refusing_condition,
)
from podqos.placement.pods import Demand, Likeness, PodView, SchedulerNode, Shape
from podqos.placement.reasons import (
    AffinityUnmet,
    AntiAffinityViolated,
    ExistingAntiAffinity,
    FeaturesNotDeclared,
    Insufficient,
    MissingTopologyLabel,
    NamesConflict,
    NotNamed,
    PortTaken,
    Reason,
    Reasons,
    SkewTooLarge,
    UnderPressure,
    Unschedulable,
    UntoleratedTaint,
)

T = TypeVar("T")

HONOR = "Honor"
# The API server puts this label on every namespace (pkg/registry/core/namespace/strategy.go).
_NAME_LABEL = "kubernetes.io/metadata.name"
# The order in which the scheduler names what is missing; other resources follow by name.
_FIRST = (CPU, MEMORY, EPHEMERAL_STORAGE)
# What is counted for this many pairs of workload and node is kept.
_KEPT = 1_000_000

Domain = tuple[str, str]
"""A part of the topology: the key of a node label and its value."""


# ---- what the node has left ------------------------------------------------------------------------------------------


def insufficient(demand: Demand, state: SchedulerNode) -> tuple[Insufficient, ...]:
    """Return the resources that are insufficient for one more pod: by requests alone, never by class."""
    return lacking(demand.requested, state.requested, state.allocatable, len(state.pods), state.allowed_pods)


def lacking(
    requested: Mapping[str, int], used: Mapping[str, int], allocatable: Mapping[str, int], pods: int, allowed_pods: int
) -> tuple[Insufficient, ...]:
    """Return the same from plain figures: the pod's requests, the requests on the node, and allocatable."""
    missing = []
    if pods + 1 > allowed_pods:
        missing.append(Insufficient(PODS, 1, pods, allowed_pods))
    for name, amount in requested.items():
        # A node may be overfull of a resource; that does not concern a pod that asks for none of it.
        if amount > 0 and amount > allocatable.get(name, 0) - used.get(name, 0):
            missing.append(Insufficient(name, amount, used.get(name, 0), allocatable.get(name, 0)))
    if len(missing) > 1:
        missing.sort(key=_order)
    return tuple(missing)


def _order(reason: Insufficient) -> tuple[int, str]:
    if reason.resource == PODS:
        return -1, ""
    return (_FIRST.index(reason.resource), "") if reason.resource in _FIRST else (len(_FIRST), reason.resource)


# ---- what the node itself says ---------------------------------------------------------------------------------------


def static_reasons(shape: Shape, state: SchedulerNode, profile: Profile) -> Iterator[Reason]:
    """Yield why the node itself rejects the pod, whatever runs there; at most one reason per filter."""
    tolerations = shape.spec.tolerations
    if shape.named_nodes is not None and state.name not in shape.named_nodes:
        yield NotNamed() if shape.named_nodes else NamesConflict()
    if state.node.spec.unschedulable and not is_tolerated(UNSCHEDULABLE, tolerations):
        yield Unschedulable()
    taint = first_untolerated(state.taints, tolerations)
    if taint is not None:
        yield UntoleratedTaint(taint)
    elif not profile.conditions_become_taints:
        condition = refusing_condition(state.node, shape.qos_class, profile)
        if condition is not None:
            yield UnderPressure(condition)
    yield from mismatch(shape.spec, state.node)


def not_declared(shape: Shape, state: SchedulerNode) -> Reasons:
    """Return the features that the pod needs and the node does not declare; the scheduler asks this last."""
    missing = shape.features - {*state.node.status.declared_features} if shape.features else ()
    return (FeaturesNotDeclared(tuple(sorted(missing))),) if missing else ()


def port_taken(shape: Shape, state: SchedulerNode) -> Reasons:
    """Return the first port of the pod that another one holds on the node."""
    if not shape.ports:
        return ()
    in_use = [port for other in state.pods.values() for port in other.shape.ports]
    for port in shape.ports:
        if any(port.conflicts_with(other) for other in in_use):
            return (PortTaken(port.port, port.protocol, port.host_ip),)
    return ()


# ---- spread constraints ----------------------------------------------------------------------------------------------


class Counted:
    """The pods that spread constraints of a workload with one selector count."""

    def __init__(self, selector: LabelSelector | None, namespace: str) -> None:
        self._selector = selector
        self._namespace = namespace
        self._known: set[Likeness] = set()
        self._counted: list[Likeness] = []

    def on(self, state: SchedulerNode) -> int:
        """Return how many of them are on a node."""
        likenesses = state.likenesses
        if not self._known.issuperset(likenesses):
            new = [other for other in likenesses if other not in self._known]
            self._known.update(new)
            self._counted += [other for other in new if counts(self._selector, self._namespace, other)]
        if len(self._counted) == 1:
            return likenesses.get(self._counted[0], 0)
        return sum(likenesses.get(other, 0) for other in self._counted)


class Spread:
    """One spread constraint of a workload: how many of the pods it counts are where."""

    def __init__(
        self,
        constraint: TopologySpreadConstraint,
        likeness: Likeness,
        cluster: SchedulerCluster,
        others: tuple[TopologySpreadConstraint, ...],
    ) -> None:
        """``others`` are all constraints of the pod with the same action: without a label for each, no part."""
        self.constraint = constraint
        self._likeness = likeness
        is_default = likeness.is_spread_by_default
        key = constraint.topology_key
        keys = () if is_default else tuple(each.topology_key for each in others)

        def value(state: SchedulerNode) -> str | None:
            has_labels = all(each in state.labels for each in keys)
            return state.labels.get(key, "") if has_labels and takes_part(constraint, likeness, state) else None

        policies = constraint.node_affinity_policy, constraint.node_taints_policy
        self._values = cluster.of_each_node(("spread", key, keys, policies, likeness.shape.node_key), value)
        self.per_node = [0] * len(self._values)
        self.sums: dict[str, int] = dict.fromkeys((each for each in self._values if each is not None), 0)
        """By the label's value, over the nodes that take part; nodes without it are of one value together."""

    def update(self, index: int, number: int) -> None:
        """Take over how many pods are counted on a node."""
        value = self._values[index]
        if value is not None:
            self.sums[value] += number - self.per_node[index]
        self.per_node[index] = number

    def reckon(self, index: int, other: Likeness, change: int) -> None:
        """Reckon with a pod that would come to (1) or leave (-1) a node."""
        value = self._values[index]
        # Unlike above, even pods on their way out and those that an empty selector means: as upstream.
        if (
            value is not None
            and other.namespace == self._likeness.namespace
            and selects(self.constraint.label_selector, other.labels)
        ):
            self.sums[value] += change

    def against(self, state: SchedulerNode) -> Reasons:
        """Return why the node would make the spread too uneven; nothing if it would not."""
        constraint = self.constraint
        value = state.labels.get(constraint.topology_key)
        if value is None:
            return (MissingTopologyLabel(constraint.topology_key),)
        matching = self.sums.get(value, 0)
        # Zero while there are fewer values than ``minDomains``.
        minimum = 0 if len(self.sums) < (constraint.min_domains or 1) else min(self.sums.values())
        itself = 1 if selects(constraint.label_selector, self._likeness.labels) else 0
        if matching + itself - minimum > constraint.max_skew:
            return (SkewTooLarge(constraint.topology_key, value, matching, minimum, constraint.max_skew),)
        return ()


def takes_part(constraint: TopologySpreadConstraint, likeness: Likeness, state: SchedulerNode) -> bool:
    """Whether the constraint's policies let the node take part."""
    spec = likeness.shape.spec
    if constraint.node_affinity_policy == HONOR and not matches(spec, state.node):
        return False
    return constraint.node_taints_policy != HONOR or first_untolerated(state.taints, spec.tolerations) is None


def counts(selector: LabelSelector | None, namespace: str, other: Likeness) -> bool:
    """Whether a constraint of a pod in ``namespace`` counts ``other``: not on its way out, and selected.

    An empty selector counts none, as upstream.
    """
    return (
        selector is not None
        and not selector.is_empty
        and other.namespace == namespace
        and not other.is_terminating
        and selector.matches(other.labels)
    )


# ---- pod affinity ----------------------------------------------------------------------------------------------------


class Namespaces:
    """The labels of namespaces, for terms that select by them."""

    def __init__(
        self,
        labels: Mapping[str, Mapping[str, str]] | None = None,
        *,
        selectors_leak: bool = LATEST.namespace_selectors_leak,
    ) -> None:
        self._labels = labels or {}
        self.selectors_leak = selectors_leak

    def labels_of(self, name: str) -> dict[str, str]:
        """Return the labels of a namespace; one that is unknown has only its name."""
        return {**self._labels.get(name, {}), _NAME_LABEL: name}


def speaks_of(term: PodAffinityTerm, owner: Likeness, other: Likeness, namespaces: Namespaces) -> bool:
    """Whether a term of the pod ``owner`` matches the pod ``other``."""
    if not selects(term.label_selector, other.labels):
        return False
    if term.namespaces or term.namespace_selector is not None:
        return other.namespace in term.namespaces or selects(
            term.namespace_selector, namespaces.labels_of(other.namespace)
        )
    return other.namespace == owner.namespace


def asks_for(term: PodAffinityTerm, owner: Likeness, other: Likeness, namespaces: Namespaces) -> bool:
    """Whether a term of the pod ``owner``, which is to be placed, matches the pod ``other``.

    Since 1.34 the scheduler also asks the namespace selector of such a term about a namespace without labels, which
    one that only excludes (``NotIn``, ``DoesNotExist``) takes for one of its own.
    """
    if namespaces.selectors_leak and selects(term.namespace_selector, {}):
        return selects(term.label_selector, other.labels)
    return speaks_of(term, owner, other, namespaces)


def meets_all(owner: Likeness, other: Likeness, namespaces: Namespaces) -> bool:
    """Whether ``other`` is a pod that ``owner`` must be near to: every affinity term matches it."""
    return bool(owner.affinity) and all(asks_for(term, owner, other, namespaces) for term in owner.affinity)


class Neighbours:
    """The pods that matter to a workload: their number per topology domain, never zero."""

    def __init__(self, likeness: Likeness, cluster: SchedulerCluster) -> None:
        self._likeness = likeness
        self._namespaces = cluster.namespaces
        self._near: dict[Domain, int] = {}
        """Pods that meet all affinity terms."""
        self._away: dict[Domain, int] = {}
        """Pods that match an anti-affinity term."""
        self._shunning: dict[Domain, int] = {}
        """Pods with an anti-affinity term that matches this one."""
        self._drawn: dict[Domain, int] = {}
        """The weights of preferences: its own, those of the pods that are there, and their required affinity."""
        self.asks = bool(likeness.affinity or likeness.anti_affinity or likeness.preferred)
        self._terms: dict[Likeness, tuple[tuple[dict[Domain, int], str, int], ...]] = {}
        self.given: dict[int, list[tuple[dict[Domain, int], Domain, int]]] = {}
        """By node, what its pods count for."""

    @property
    def is_empty(self) -> bool:
        """Whether no affinity applies: neither the pod nor any other pod states a term about it."""
        return not (self._likeness.affinity or self._likeness.anti_affinity or self._shunning)

    def update(self, index: int, state: SchedulerNode) -> None:
        """Count the pods of a node that has changed."""
        for counted, domain, number in self.given.pop(index, ()):
            _add(counted, domain, -number)
        others = state.likenesses if self.asks else state.caring
        if others:
            given = [each for other, number in others.items() for each in self._counted(state, other, number)]
            for counted, domain, number in given:
                _add(counted, domain, number)
            if given:
                self.given[index] = given

    def reckon(self, state: SchedulerNode, other: Likeness, change: int) -> None:
        """Reckon with a pod that would come to (1) or leave (-1) a node."""
        for counted, domain, number in self._counted(state, other, change):
            _add(counted, domain, number)

    def _counted(
        self, state: SchedulerNode, other: Likeness, number: int
    ) -> Iterator[tuple[dict[Domain, int], Domain, int]]:
        """Yield what so many pods on a node count for."""
        terms = self._terms.get(other)
        if terms is None:
            terms = self._terms[other] = tuple(self._terms_about(other))
        for counted, key, weight in terms:
            value = state.labels.get(key)
            if value is not None:
                yield counted, (key, value), weight * number

    def _terms_about(self, other: Likeness) -> Iterator[tuple[dict[Domain, int], str, int]]:
        own, namespaces = self._likeness, self._namespaces
        for term in other.anti_affinity:
            if speaks_of(term, other, own, namespaces):
                yield self._shunning, term.topology_key, 1
        for term in own.anti_affinity:
            if asks_for(term, own, other, namespaces):
                yield self._away, term.topology_key, 1
        if meets_all(own, other, namespaces):
            for term in own.affinity:
                yield self._near, term.topology_key, 1
        for weight, term in own.preferred:
            if asks_for(term, own, other, namespaces):
                yield self._drawn, term.topology_key, weight
        for weight, term in other.attraction:
            if speaks_of(term, other, own, namespaces):
                yield self._drawn, term.topology_key, weight

    def against(self, state: SchedulerNode) -> Reasons:
        """Return why the pod's neighbours on the node rule it out; nothing if they do not."""
        unmet = self._unmet(state)
        if unmet is not None:
            return (unmet,)
        for term in self._likeness.anti_affinity:
            value = state.labels.get(term.topology_key)
            if value is not None and (term.topology_key, value) in self._away:
                return (AntiAffinityViolated(term.topology_key, value),)
        if self._shunning:
            for key, value in state.labels.items():
                if (key, value) in self._shunning:
                    return (ExistingAntiAffinity(key, value),)
        return ()

    def attraction(self, states: Iterable[SchedulerNode]) -> list[int] | None:
        """Return the total weight of preferences for each of the nodes; None if there are none."""
        weights = self._drawn
        if not weights:
            return None
        keys = {key for key, _ in weights}
        return [
            sum(weights.get((key, state.labels[key]), 0) for key in keys if key in state.labels) for state in states
        ]

    def _unmet(self, state: SchedulerNode) -> AffinityUnmet | None:
        """Return the first affinity term that the node does not satisfy.

        The first pod of a group that wants to be together may go anywhere: if no pod in the whole cluster meets the
        terms and the pod meets them itself, a node only needs the labels.
        """
        own = self._likeness
        lonely: AffinityUnmet | None = None
        for term in own.affinity:
            value = state.labels.get(term.topology_key)
            if value is None:
                return AffinityUnmet(term.topology_key, None)
            if lonely is None and (term.topology_key, value) not in self._near:
                lonely = AffinityUnmet(term.topology_key, value)
        if lonely is not None and not self._near and meets_all(own, own, self._namespaces):
            return None
        return lonely


def _add(counted: dict[Domain, int], domain: Domain, change: int) -> None:
    counted[domain] = counted.get(domain, 0) + change
    if not counted[domain]:
        del counted[domain]


# ---- nominations -----------------------------------------------------------------------------------------------------


class Nominations:
    """Pods for which others were preempted and that do not run yet: their room on a node, one at most, is kept."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, PodView]] = {}
        self._nodes: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def node_of(self, view: PodView) -> str | None:
        """Return the node that a pod is nominated to."""
        return self._nodes.get(view.key)

    def beside(self, view: PodView, node: str) -> list[PodView]:
        """Return the other pods nominated to a node that ``view`` must not take the room from: no less important."""
        if not self._nodes:
            return []
        others = self._pods.get(node, {}).values()
        return [other for other in others if other.priority >= view.priority and other.key != view.key]

    def lower(self, priority: int, node: str) -> list[PodView]:
        """Return the pods nominated to a node that are less important."""
        return [other for other in self._pods.get(node, {}).values() if other.priority < priority]

    def add(self, view: PodView, node: str) -> None:
        """Nominate a pod to a node, and to no other."""
        self.remove(view.key)
        self._nodes[view.key] = node
        self._pods.setdefault(node, {})[view.key] = view

    def remove(self, key: str) -> str | None:
        """Drop a pod's nomination; return to which node it was."""
        node = self._nodes.pop(key, None)
        if node is not None:
            del self._pods[node][key]
        return node

    def remove_node(self, node: str) -> None:
        """Drop all nominations to a node."""
        for key in self._pods.pop(node, {}):
            del self._nodes[key]


# ---- all filters -----------------------------------------------------------------------------------------------------


class Books:
    """What is counted all over the cluster for the pods of one workload."""

    def __init__(self, likeness: Likeness, cluster: SchedulerCluster) -> None:
        self.hard = [Spread(each, likeness, cluster, likeness.spread) for each in likeness.spread]
        self.soft = [Spread(each, likeness, cluster, likeness.soft_spread) for each in likeness.soft_spread]
        self.neighbours = Neighbours(likeness, cluster)
        by_selector: dict[bytes, tuple[Counted, list[Spread]]] = {}
        for spread in (*self.hard, *self.soft):
            selector = spread.constraint.label_selector
            key = msgspec.json.encode(selector)
            if key not in by_selector:
                by_selector[key] = Counted(selector, likeness.namespace), []
            by_selector[key][1].append(spread)
        self._counted = tuple(by_selector.values())
        never = [-1] * len(cluster.states)
        self._versions = never
        self.judged = [*never]
        """The versions of the nodes that ``schedule`` has judged, and what it gave them."""
        self.fit = [*never]
        """For what is left; -1 where the pod cannot run."""
        self.balance = [*never]

    def update(self, states: Sequence[SchedulerNode]) -> None:
        """Count again what has changed."""
        versions, asks, given = self._versions, self.neighbours.asks, self.neighbours.given
        for index, state in enumerate(states):
            if versions[index] != state.version:
                versions[index] = state.version
                for counted, spreads in self._counted:
                    number = counted.on(state)
                    for spread in spreads:
                        if spread.per_node[index] != number:
                            spread.update(index, number)
                if asks or state.caring or index in given:
                    self.neighbours.update(index, state)


class SchedulerCluster:
    """The nodes with their pods, by name, and what else the filters need. What the nodes offer does not change."""

    def __init__(
        self,
        states: Iterable[SchedulerNode],
        namespaces: Namespaces | None = None,
        profile: Profile = LATEST,
        nominations: Nominations | None = None,
    ) -> None:
        self.states = sorted(states, key=lambda state: state.name)
        self.index = {state.name: index for index, state in enumerate(self.states)}
        self.namespaces = namespaces or Namespaces()
        self.profile = profile
        self.nominations = Nominations() if nominations is None else nominations
        self._books: dict[Likeness, Books] = {}
        self._of_each_node: dict[object, list[object]] = {}

    def candidates(self, view: PodView) -> Sequence[int]:
        """Return the numbers of the nodes that the filters are asked about: those that the pod names, if it names any.

        So does the scheduler (``PreFilterResult.NodeNames``): the pods of a DaemonSet cost as much as their number.
        """
        named = view.shape.named_nodes
        if named is None:
            return range(len(self.states))
        return sorted(self.index[name] for name in named if name in self.index)

    def books(self, likeness: Likeness) -> Books:
        """Return what is counted for pods like this one, up to date."""
        books = self._books.pop(likeness, None) or Books(likeness, self)
        books.update(self.states)
        if len(self._books) * len(self.states) >= _KEPT:
            del self._books[next(iter(self._books))]
        self._books[likeness] = books
        return books

    def of_each_node(self, key: object, value: Callable[[SchedulerNode], T]) -> list[T]:
        """Return what a question about the nodes themselves, told from others by ``key``, is answered for each."""
        found = self._of_each_node.get(key)
        if found is None:
            found = self._of_each_node[key] = [value(state) for state in self.states]
        return found  # type: ignore[return-value] # a key stands for one question

    @cached_property
    def image_states(self) -> ImageStates:
        """What is known of the images that any node has."""
        return image_states(state.node for state in self.states)


class Filters:
    """The filters for one pod, in a cluster as it is now."""

    def __init__(self, view: PodView, cluster: SchedulerCluster) -> None:
        self._view = view
        self._cluster = cluster
        self.books = cluster.books(view.likeness)

    @property
    def is_local(self) -> bool:
        """Whether a node is filtered independently of pods on other nodes."""
        return not self.books.hard and self.books.neighbours.is_empty

    def first_reasons(self, state: SchedulerNode) -> Reasons:
        """Return what the first filter that rejects the node says; nothing if the pod may go there."""
        others = self._cluster.nominations.beside(self._view, state.name)
        if others:
            with self._as_if_running(state, others):
                refused = self._first(state)
            if refused:
                return refused
        return self._first(state)

    def answers(self, state: SchedulerNode) -> Iterator[Reasons]:
        """Yield why filters reject the node, in the scheduler's order."""
        shape = self._view.shape
        for reason in static_reasons(shape, state, self._cluster.profile):
            yield (reason,)
            if isinstance(reason, NotNamed | NamesConflict):
                return  # The scheduler does not look at such a node any further.
        yield from self._answers_by_pods(state)
        yield not_declared(shape, state)

    def by_pods_elsewhere(self, state: SchedulerNode) -> Iterator[Reasons]:
        """Yield why pods that may be on other nodes rule out the node."""
        if self.books.hard:
            # One answer for all constraints: that of the first.
            yield next(filter(None, (spread.against(state) for spread in self.books.hard)), ())
        yield self.books.neighbours.against(state)

    def is_crowded_out(self, state: SchedulerNode) -> bool:
        """Whether a node that would take the pod if it were empty has no room because of its pods."""
        others = self._cluster.nominations.beside(self._view, state.name)
        if others:
            with self._as_if_running(state, others):
                is_crowded = any(self._answers_by_pods(state))
            if is_crowded:
                return True
        return any(self._answers_by_pods(state))

    def reckon(self, state: SchedulerNode, other: PodView, change: int) -> None:
        """Reckon with a pod that would come to (1) or leave (-1) a node; to be taken back."""
        for spread in self.books.hard:
            spread.reckon(self._cluster.index[state.name], other.likeness, change)
        self.books.neighbours.reckon(state, other.likeness, change)

    def _first(self, state: SchedulerNode) -> Reasons:
        return next(filter(None, self.answers(state)), ())

    @contextmanager
    def _as_if_running(self, state: SchedulerNode, others: list[PodView]) -> Iterator[None]:
        """Count pods temporarily as if they ran on a node."""
        version = state.version
        for other in others:
            state.add(other)
            self.reckon(state, other, 1)
        try:
            yield
        finally:
            for other in others:
                state.remove(other)
                self.reckon(state, other, -1)
            state.version = version

    def _answers_by_pods(self, state: SchedulerNode) -> Iterator[Reasons]:
        shape = self._view.shape
        yield port_taken(shape, state)
        yield insufficient(shape.demand, state)
        yield from self.by_pods_elsewhere(state)
