"""Topology spread constraints that forbid (``DoNotSchedule``): how evenly pods of a kind must lie over a node label.

For every constraint the pods it counts are added up per value of its topology key, over the nodes that take part. A
node is good if its sum, with the new pod, exceeds the smallest sum by at most ``maxSkew``.

Source: Kubernetes v1.36 pkg/scheduler/framework/plugins/podtopologyspread/{common,filtering}.go; KEP-895, KEP-3022
(minDomains), KEP-3094 (inclusion policies), KEP-3243 (matchLabelKeys).
"""

from __future__ import annotations

from collections.abc import Iterable

from podqos.model.scheduling import TopologySpreadConstraint
from podqos.model.selector import LabelSelector, selects
from podqos.placement.node_affinity import matches
from podqos.placement.node_state import NodeState
from podqos.placement.pod_view import PodView
from podqos.placement.reasons import MissingTopologyLabel, Reasons, SkewTooLarge
from podqos.placement.taints import first_untolerated

HONOR = "Honor"


class Spread:
    """The constraints of one pod against the cluster as it is."""

    def __init__(self, view: PodView, states: Iterable[NodeState]) -> None:
        self._view = view
        self._constraints = view.shape.spread
        self._selectors = view.spread
        self._sums: list[dict[str, int]] = [{} for _ in self._constraints]
        for state in states:
            for index in self._counting(state):
                sums, value = self._sums[index], state.labels[self._constraints[index].topology_key]
                sums[value] = sums.get(value, 0) + matching_pods(self._selectors[index], view.namespace, state)

    def against(self, state: NodeState) -> Reasons:
        """Return why the node would make the spread too uneven; nothing if it would not."""
        for constraint, selector, sums in zip(self._constraints, self._selectors, self._sums, strict=True):
            value = state.labels.get(constraint.topology_key)
            if value is None:
                return (MissingTopologyLabel(constraint.topology_key),)
            matching = sums.get(value, 0)
            minimum = smallest(sums, constraint)
            itself = 1 if selects(selector, self._view.labels) else 0
            if matching + itself - minimum > constraint.max_skew:
                return (SkewTooLarge(constraint.topology_key, value, matching, minimum, constraint.max_skew),)
        return ()

    def count(self, state: NodeState, other: PodView, change: int) -> None:
        """Reckon with a pod that comes to (1) or leaves (-1) a node."""
        for index in self._counting(state):
            if counts(self._selectors[index], self._view.namespace, other):
                self._sums[index][state.labels[self._constraints[index].topology_key]] += change

    def _counting(self, state: NodeState) -> Iterable[int]:
        """Yield the constraints, by number, for which the node takes part."""
        if has_all_keys(self._constraints, state):
            for index, constraint in enumerate(self._constraints):
                if takes_part(constraint, self._view, state):
                    yield index


def has_all_keys(constraints: tuple[TopologySpreadConstraint, ...], state: NodeState) -> bool:
    """Whether the node has a value for every constraint; without one of them it takes part in none."""
    return all(constraint.topology_key in state.labels for constraint in constraints)


def takes_part(constraint: TopologySpreadConstraint, view: PodView, state: NodeState) -> bool:
    """Whether the constraint's policies let the node take part."""
    if constraint.node_affinity_policy == HONOR and not matches(view.shape.spec, state.node):
        return False
    return (
        constraint.node_taints_policy != HONOR or first_untolerated(state.taints, view.shape.spec.tolerations) is None
    )


def smallest(sums: dict[str, int], constraint: TopologySpreadConstraint) -> int:
    """Return the smallest sum, which is zero while there are fewer values than ``minDomains``."""
    return 0 if len(sums) < (constraint.min_domains or 1) else min(sums.values())


def matching_pods(selector: LabelSelector | None, namespace: str, state: NodeState) -> int:
    """Return how many pods of the node a constraint counts. An empty selector counts none, as upstream."""
    return sum(counts(selector, namespace, other) for other in state.pods.values())


def counts(selector: LabelSelector | None, namespace: str, other: PodView) -> bool:
    """Whether a constraint of a pod in ``namespace`` counts ``other``: not on its way out, and selected."""
    return (
        selector is not None
        and not selector.is_empty
        and other.namespace == namespace
        and not other.is_terminating
        and selector.matches(other.labels)
    )
