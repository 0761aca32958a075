"""Topology spread constraints: how evenly pods of a kind must or should lie over a node label.

For every constraint the pods it counts are added up per value of its topology key, over the nodes that take part. A
node is good if its sum, with the new pod, exceeds the smallest sum by at most ``maxSkew``. With ``ScheduleAnyway`` the
nodes with the smaller sums are preferred; labels with few values count for less.

Source: Kubernetes v1.36 pkg/scheduler/framework/plugins/podtopologyspread/{common,filtering,scoring}.go; KEP-895,
KEP-3022 (minDomains), KEP-3094 (inclusion policies), KEP-3243 (matchLabelKeys).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from podqos.model.node import LABEL_HOSTNAME
from podqos.model.scheduling import TopologySpreadConstraint
from podqos.model.selector import LabelSelector, selects
from podqos.placement.node_affinity import matches
from podqos.placement.node_state import SchedulerNode
from podqos.placement.pod_view import PodView
from podqos.placement.reasons import MissingTopologyLabel, Reasons, SkewTooLarge
from podqos.placement.taints import first_untolerated

HONOR = "Honor"


class TopologySpread:
    """The constraints of one pod against the cluster as it is."""

    def __init__(self, view: PodView, states: Iterable[SchedulerNode]) -> None:
        self._view = view
        self._constraints = view.shape.spread
        self._selectors = view.spread
        self._sums: list[dict[str, int]] = [{} for _ in self._constraints]
        for state in states:
            for index in self._counting(state):
                sums, value = self._sums[index], state.labels[self._constraints[index].topology_key]
                sums[value] = sums.get(value, 0) + matching_pods(self._selectors[index], view.namespace, state)

    def against(self, state: SchedulerNode) -> Reasons:
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

    def count(self, state: SchedulerNode, other: PodView, change: int) -> None:
        """Reckon with a pod that comes to (1) or leaves (-1) a node."""
        for index in self._counting(state):
            # Unlike above, even pods on their way out and those that an empty selector means: as upstream.
            if other.namespace == self._view.namespace and selects(self._selectors[index], other.labels):
                self._sums[index][state.labels[self._constraints[index].topology_key]] += change

    def _counting(self, state: SchedulerNode) -> Iterable[int]:
        """Yield the constraints, by number, for which the node takes part."""
        if has_all_keys(self._constraints, state):
            for index, constraint in enumerate(self._constraints):
                if takes_part(constraint, self._view, state):
                    yield index


def crowdedness(
    view: PodView, feasible: Sequence[SchedulerNode], cluster: Iterable[SchedulerNode]
) -> list[int | None] | None:
    """Return how many of the pod's like are near each of the nodes, weighted over all constraints.

    None without any constraint; None for a node that lacks a label, unless the constraints are the scheduler's own.
    """
    constraints = view.soft_spread
    if not constraints:
        return None
    included = [state for state in feasible if view.is_spread_by_default or has_all_keys(constraints, state)]
    totals = dict.fromkeys((state.name for state in included), 0.0)
    for constraint in constraints:
        key, selector = constraint.topology_key, constraint.label_selector
        sums = _sums(view, constraint, included, cluster) if key != LABEL_HOSTNAME else {}
        weight = domain_weight(len(sums) if key != LABEL_HOSTNAME else len(included))
        for state in included:
            if key in state.labels:
                own = key == LABEL_HOSTNAME
                near = matching_pods(selector, view.namespace, state) if own else sums[state.labels[key]]
                totals[state.name] += near * weight + (constraint.max_skew - 1)
    return [math.floor(totals[state.name] + 0.5) if state.name in totals else None for state in feasible]


def domain_weight(domains: int) -> float:
    """Return what one pod counts for where a label has so many values: with more values, more."""
    return math.log(domains + 2)


def _sums(
    view: PodView, constraint: TopologySpreadConstraint, included: list[SchedulerNode], cluster: Iterable[SchedulerNode]
) -> dict[str, int]:
    """Return the number of counted pods per value of the label; nodes without it are of one value together."""
    key = constraint.topology_key
    sums = {state.labels.get(key, ""): 0 for state in included}
    for state in cluster:
        value = state.labels.get(key, "")
        if (
            value in sums
            and (view.is_spread_by_default or has_all_keys(view.soft_spread, state))
            and takes_part(constraint, view, state)
        ):
            sums[value] += matching_pods(constraint.label_selector, view.namespace, state)
    return sums


def has_all_keys(constraints: tuple[TopologySpreadConstraint, ...], state: SchedulerNode) -> bool:
    """Whether the node has a value for every constraint; without one of them it takes part in none."""
    return all(constraint.topology_key in state.labels for constraint in constraints)


def takes_part(constraint: TopologySpreadConstraint, view: PodView, state: SchedulerNode) -> bool:
    """Whether the constraint's policies let the node take part."""
    if constraint.node_affinity_policy == HONOR and not matches(view.shape.spec, state.node):
        return False
    return (
        constraint.node_taints_policy != HONOR or first_untolerated(state.taints, view.shape.spec.tolerations) is None
    )


def smallest(sums: dict[str, int], constraint: TopologySpreadConstraint) -> int:
    """Return the smallest sum, which is zero while there are fewer values than ``minDomains``."""
    return 0 if len(sums) < (constraint.min_domains or 1) else min(sums.values())


def matching_pods(selector: LabelSelector | None, namespace: str, state: SchedulerNode) -> int:
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
