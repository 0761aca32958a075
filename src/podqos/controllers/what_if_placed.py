"""A copy of the cluster in which an autoscaler tries out where pods would go; the scheduler's own filters decide.

A pod goes to the first node that takes it, counted from the one after the last that took one: the scheduler's scores do
not matter to the cluster autoscaler.

Source: kubernetes/autoscaler cluster-autoscaler-1.36.1 cluster-autoscaler/simulator/clustersnapshot (predicate
/plugin_runner.go: RunFiltersUntilPassingNode, LastIndexOrderMapping).
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from podqos.model.profile import LATEST, Profile
from podqos.placement.filters import Filters, SchedulerCluster
from podqos.placement.node_state import SchedulerNode
from podqos.placement.pod_affinity import Namespaces
from podqos.placement.pod_view import PodView


class Trial:
    """Nodes with pods, to be changed at will."""

    def __init__(self, states: Iterable[SchedulerNode], profile: Profile = LATEST) -> None:
        self._profile = profile
        self._namespaces = Namespaces(selectors_leak=profile.namespace_selectors_leak)
        self.nodes = {state.name: state for state in states}
        self._cluster: SchedulerCluster | None = None
        self._next = 0
        """Which node is asked first."""

    def copy(self) -> Trial:
        """Return the same cluster, to be changed without changing this one."""
        return Trial(map(self.copy_of, self.nodes.values()), self._profile)

    def copy_of(self, state: SchedulerNode) -> SchedulerNode:
        """Return a node with its pods, to be changed without changing the original."""
        made = SchedulerNode(state.node, self._profile)
        for view in state.pods.values():
            made.add(view)
        return made

    def add_node(self, state: SchedulerNode) -> None:
        """Add a node."""
        self.nodes[state.name] = state
        self._cluster = None

    def remove_node(self, name: str) -> None:
        """Remove a node with its pods."""
        del self.nodes[name]
        self._cluster = None

    def fits(self, view: PodView, name: str) -> bool:
        """Whether a node takes a pod."""
        return not self._filters(view).first_reasons(self.nodes[name])

    def put(self, view: PodView, name: str) -> bool:
        """Put a pod on a node if that takes it."""
        if not self.fits(view, name):
            return False
        self.nodes[name].add(view)
        return True

    def first_fit(self, view: PodView, names: Container[str]) -> str | None:
        """Put a pod on the next of some nodes that takes it; return that."""
        filters, known = self._filters(view), list(self.nodes)
        for index in range(len(known)):
            at = (self._next + index) % len(known)
            name = known[at]
            if name in names and not filters.first_reasons(self.nodes[name]):
                self.nodes[name].add(view)
                self._next = at + 1
                return name
        return None

    def _filters(self, view: PodView) -> Filters:
        if self._cluster is None:
            self._cluster = SchedulerCluster(self.nodes.values(), self._namespaces, self._profile)
        return Filters(view, self._cluster)
