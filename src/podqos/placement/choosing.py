"""Chooses the node for a pod: the readable way, one node after the other.

``columnar`` does the same for large clusters; a property test holds the two equal.
"""

from __future__ import annotations

from typing import Protocol

from podqos.placement.filters import Cluster, Filters
from podqos.placement.node_state import NodeState
from podqos.placement.pod_view import PodView
from podqos.placement.score import totals


class Chooser(Protocol):
    """Finds the best node for one pod after the other."""

    def choose(self, view: PodView) -> NodeState | None:
        """Return the node to take, or nothing if no node will do."""

    def count(self, state: NodeState, view: PodView, change: int) -> None:
        """Learn that a pod has come to (1) or left (-1) a node."""


class OneByOne:
    """Asks every filter about every node and takes the best score, first by name among equals."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def choose(self, view: PodView) -> NodeState | None:
        """Return the node to take, or nothing if no node will do."""
        return next(iter(self.best(view)), None)

    def best(self, view: PodView) -> list[NodeState]:
        """Return the nodes with the highest score, by name; the real scheduler picks one of them at random."""
        filters = Filters(view, self._cluster)
        feasible = [state for state in self._cluster.states if not filters.first_reasons(state)]
        if len(feasible) <= 1:
            return feasible
        points = totals(view, feasible, self._cluster)
        highest = max(points)
        return [state for state, each in zip(feasible, points, strict=True) if each == highest]

    def count(self, state: NodeState, view: PodView, change: int) -> None:
        """Learn nothing: every choice looks at the whole cluster anew."""


# From this many questions (pods × nodes) on, setting up columns pays.
_MANY = 20_000


def best_chooser(pods: int, cluster: Cluster) -> Chooser:
    """Return the quicker of the two for this many pods; without numpy there is only one."""
    if pods * len(cluster.states) < _MANY:
        return OneByOne(cluster)
    try:
        from podqos.placement.columnar import Columnar
        from podqos.placement.columns import is_exact
    except ImportError:
        return OneByOne(cluster)
    return Columnar(cluster) if is_exact(cluster) else OneByOne(cluster)
