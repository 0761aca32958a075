"""Pods for which others were preempted and that do not run yet: their room on the node is kept for them.

Source: Kubernetes v1.36.4 pkg/scheduler/backend/queue/nominator.go, pkg/scheduler/framework/runtime/framework.go
(addGENominatedPods), pkg/scheduler/framework/preemption/executor.go (getLowerPriorityNominatedPods).
"""

from __future__ import annotations

from podqos.placement.pod_view import PodView


class Nominations:
    """Which pods are nominated to which nodes, by name; a pod to one at most."""

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
