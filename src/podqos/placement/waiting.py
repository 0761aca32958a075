"""Pods that wait for each other: required pod affinity that can never be met.

To the scheduler such pods are merely pending, each with the same message on every node. This module finds what they
wait for, whether such a pod exists at all, and where the waiting is circular.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.placement.filters import SchedulerCluster
from podqos.placement.outcome import Placement
from podqos.placement.pod_affinity import meets_all
from podqos.placement.pod_view import PodView


class AffinityWait(Struct, frozen=True, gc=False):
    """A pending pod that must be near to pods of which none has a place."""

    pod: str
    waits_for: tuple[str, ...]
    """Pending pods that match; empty means that no such pod exists."""
    circle: tuple[str, ...] = ()
    """Pods of which each waits for the next and the last for the first; empty if the pod is in no such circle."""


def affinity_waits(placement: Placement) -> tuple[AffinityWait, ...]:
    """Return the pending pods, one of each kind, that wait for pods that have no place either."""
    kinds = {group[0].key: group[0] for group in placement.alike()}
    graph = {
        key: tuple(other for other, candidate in kinds.items() if _would_do(view, candidate, placement.cluster))
        for key, view in kinds.items()
        if view.affinity and not _has_company(view, placement.cluster)
    }
    return tuple(AffinityWait(key, waits_for, _circle(key, graph)) for key, waits_for in graph.items())


def _would_do(view: PodView, candidate: PodView, cluster: SchedulerCluster) -> bool:
    return candidate is not view and meets_all(view, candidate, cluster.namespaces)


def _has_company(view: PodView, cluster: SchedulerCluster) -> bool:
    """Whether a pod that the pod must be near to has a place, or the pod may be the first of its kind."""
    if meets_all(view, view, cluster.namespaces):
        return True
    return any(meets_all(view, other, cluster.namespaces) for state in cluster.states for other in state.pods.values())


def _circle(start: str, graph: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the shortest way from a pod over those it waits for back to itself."""
    paths: list[tuple[str, ...]] = [(start,)]
    seen = {start}
    while paths:
        longer: list[tuple[str, ...]] = []
        for path in paths:
            for following in graph.get(path[-1], ()):
                if following == start:
                    return path
                if following not in seen:
                    seen.add(following)
                    longer.append((*path, following))
        paths = longer
    return ()
