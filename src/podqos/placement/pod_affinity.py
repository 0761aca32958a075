"""Pod affinity and anti-affinity: which pods must, should or must not share a part of the topology.

Anti-affinity works both ways: a pod keeps away from those its own terms name, and from those whose terms name it. So
do preferences.

Source: Kubernetes v1.36 pkg/scheduler/framework/plugins/interpodaffinity/{filtering,scoring}.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from podqos.model.profile import LATEST
from podqos.model.scheduling import PodAffinityTerm
from podqos.model.selector import selects
from podqos.placement.node_state import SchedulerNode
from podqos.placement.pod_view import PodView
from podqos.placement.reasons import AffinityUnmet, AntiAffinityViolated, ExistingAntiAffinity, Reasons

# The API server puts this label on every namespace (pkg/registry/core/namespace/strategy.go).
_NAME_LABEL = "kubernetes.io/metadata.name"

# A part of the topology: the key of a node label and its value.
Domain = tuple[str, str]


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


def speaks_of(term: PodAffinityTerm, owner: PodView, other: PodView, namespaces: Namespaces) -> bool:
    """Whether a term of the pod ``owner`` matches the pod ``other``."""
    if not selects(term.label_selector, other.labels):
        return False
    if term.namespaces or term.namespace_selector is not None:
        return other.namespace in term.namespaces or selects(
            term.namespace_selector, namespaces.labels_of(other.namespace)
        )
    return other.namespace == owner.namespace


def asks_for(term: PodAffinityTerm, owner: PodView, other: PodView, namespaces: Namespaces) -> bool:
    """Whether a term of the pod ``owner``, which is to be placed, matches the pod ``other``.

    Since 1.34 the scheduler also asks the namespace selector of such a term about a namespace without labels, which
    one that only excludes (``NotIn``, ``DoesNotExist``) takes for one of its own.
    """
    if namespaces.selectors_leak and selects(term.namespace_selector, {}):
        return selects(term.label_selector, other.labels)
    return speaks_of(term, owner, other, namespaces)


def meets_all(owner: PodView, other: PodView, namespaces: Namespaces) -> bool:
    """Whether ``other`` is a pod that ``owner`` must be near to: every affinity term matches it."""
    return bool(owner.affinity) and all(asks_for(term, owner, other, namespaces) for term in owner.affinity)


def attraction(
    view: PodView, feasible: Sequence[SchedulerNode], cluster: Iterable[SchedulerNode], namespaces: Namespaces
) -> list[int] | None:
    """Return the total weight of preferences for each of the nodes; None if there are none.

    Its own preferred terms count, and so do those of the pods that are there, and their required affinity.
    """
    weights: dict[Domain, int] = {}
    for state in cluster:
        for other in (state.pods if view.preferred else state.attracting).values():
            for weight, term in view.preferred:
                if asks_for(term, view, other, namespaces):
                    _add(weights, term, state, weight)
            for weight, term in other.attraction:
                if speaks_of(term, other, view, namespaces):
                    _add(weights, term, state, weight)
    if not weights:
        return None
    keys = {key for key, _ in weights}
    return [
        sum(weights.get((key, state.labels.get(key, "")), 0) for key in keys if key in state.labels)
        for state in feasible
    ]


class Neighbours:
    """The pods that matter to one pod: their number per topology domain, never zero."""

    def __init__(self, view: PodView, states: Iterable[SchedulerNode], namespaces: Namespaces) -> None:
        self._view = view
        self._namespaces = namespaces
        self._near: dict[Domain, int] = {}
        """Pods that meet all affinity terms."""
        self._away: dict[Domain, int] = {}
        """Pods that match an anti-affinity term."""
        self._shunning: dict[Domain, int] = {}
        """Pods with an anti-affinity term that matches this one."""
        asks = bool(view.affinity or view.anti_affinity)
        for state in states:
            for other in (state.pods if asks else state.shunning).values():
                self.count(state, other, 1)

    @property
    def is_empty(self) -> bool:
        """Whether no affinity applies: neither the pod nor any other pod states a term about it."""
        return not (self._view.affinity or self._view.anti_affinity or self._shunning)

    def count(self, state: SchedulerNode, other: PodView, change: int) -> None:
        """Count a pod that is added to (1) or removed from (-1) a node."""
        view, namespaces = self._view, self._namespaces
        for term in other.anti_affinity:
            if speaks_of(term, other, view, namespaces):
                _add(self._shunning, term, state, change)
        for term in view.anti_affinity:
            if asks_for(term, view, other, namespaces):
                _add(self._away, term, state, change)
        if meets_all(view, other, namespaces):
            for term in view.affinity:
                _add(self._near, term, state, change)

    def against(self, state: SchedulerNode) -> Reasons:
        """Return why the pod's neighbours on the node rule it out; nothing if they do not."""
        view = self._view
        unmet = self._unmet(state)
        if unmet is not None:
            return (unmet,)
        for term in view.anti_affinity:
            value = state.labels.get(term.topology_key)
            if value is not None and (term.topology_key, value) in self._away:
                return (AntiAffinityViolated(term.topology_key, value),)
        if self._shunning:
            for key, value in state.labels.items():
                if (key, value) in self._shunning:
                    return (ExistingAntiAffinity(key, value),)
        return ()

    def _unmet(self, state: SchedulerNode) -> AffinityUnmet | None:
        """Return the first affinity term that the node does not satisfy.

        The first pod of a group that wants to be together may go anywhere: if no pod in the whole cluster meets the
        terms and the pod meets them itself, a node only needs the labels.
        """
        lonely: AffinityUnmet | None = None
        for term in self._view.affinity:
            value = state.labels.get(term.topology_key)
            if value is None:
                return AffinityUnmet(term.topology_key, None)
            if lonely is None and (term.topology_key, value) not in self._near:
                lonely = AffinityUnmet(term.topology_key, value)
        if lonely is not None and not self._near and meets_all(self._view, self._view, self._namespaces):
            return None
        return lonely


def _add(counts: dict[Domain, int], term: PodAffinityTerm, state: SchedulerNode, change: int) -> None:
    value = state.labels.get(term.topology_key)
    if value is not None:
        domain = (term.topology_key, value)
        counts[domain] = counts.get(domain, 0) + change
        if not counts[domain]:
            del counts[domain]
