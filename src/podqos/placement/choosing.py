"""Chooses the node for a pod: the readable way, one node after another.

``columnar`` does the same for large clusters; a property test holds the two equal.
"""

from __future__ import annotations

from typing import Protocol

from podqos.placement.filters import Filters, SchedulerCluster
from podqos.placement.node_state import SchedulerNode
from podqos.placement.pod_view import PodView
from podqos.placement.score import Choice, node_scores, totals


class Chooser(Protocol):
    """Finds the best node for one pod after another."""

    def choose(self, view: PodView) -> Choice | None:
        """Return the best node, or None if no node is feasible."""

    def count(self, state: SchedulerNode, view: PodView, change: int) -> None:
        """Note that a pod was added to (1) or removed from (-1) a node."""


class OneByOne:
    """Asks every filter about every node and takes the best score, first by name among equals.

    A node that rejected a pod is not asked again by the next pod of the same workload, as long as it stays as it is.
    """

    def __init__(self, cluster: SchedulerCluster, *, explains: bool = False) -> None:
        """With ``explains``, every choice includes the scores."""
        self._cluster = cluster
        self._explains = explains
        self._alike: PodView | None = None
        self._refused: dict[str, int] = {}
        """By name the versions of nodes that refuse pods like that one."""

    def choose(self, view: PodView) -> Choice | None:
        """Return the best node, or None if no node is feasible."""
        feasible = self._feasible(view)
        if not feasible:
            return None
        if self._explains:
            scores = tuple(node_scores(view, feasible, self._cluster))
            highest = max(range(len(scores)), key=lambda index: scores[index].total)
            return Choice(feasible[highest], scores)
        return Choice(self._best(view, feasible)[0])

    def best(self, view: PodView) -> list[SchedulerNode]:
        """Return the nodes with the highest score, by name; the real scheduler picks one of them at random."""
        return self._best(view, self._feasible(view))

    def count(self, state: SchedulerNode, view: PodView, change: int) -> None:
        """Do nothing: the nodes themselves track changes."""

    def _feasible(self, view: PodView) -> list[SchedulerNode]:
        filters = Filters(view, self._cluster)
        candidates = self._cluster.candidates(view)
        if not filters.is_local or candidates is not self._cluster.states:
            return [state for state in candidates if not filters.first_reasons(state)]
        if self._alike is None or self._alike.likeness != view.likeness:
            self._alike, self._refused = view, {}
        refused, own = self._refused, self._cluster.nominations.node_of(view)
        feasible = []
        for state in candidates:
            # The room that is kept on a node for the pod itself is not available to the others of its workload.
            if refused.get(state.name) == state.version and state.name != own:
                continue
            if filters.first_reasons(state):
                refused[state.name] = state.version
            else:
                feasible.append(state)
        return feasible

    def _best(self, view: PodView, feasible: list[SchedulerNode]) -> list[SchedulerNode]:
        if len(feasible) <= 1:
            return feasible
        points = totals(view, feasible, self._cluster)
        highest = max(points)
        return [state for state, point in zip(feasible, points, strict=True) if point == highest]


# From this many questions (pods × nodes) on, setting up columns pays, and scores are too many to read.
_MANY = 20_000


def best_chooser(pods: int, cluster: SchedulerCluster) -> Chooser:
    """Return the quicker of the two for this many pods; without numpy there is only one."""
    if pods * len(cluster.states) < _MANY:
        return OneByOne(cluster, explains=True)
    try:
        from podqos.placement.columnar import Columnar
        from podqos.placement.columns import is_exact
    except ImportError:
        return OneByOne(cluster)
    return Columnar(cluster) if is_exact(cluster) else OneByOne(cluster)
