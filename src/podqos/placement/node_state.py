"""A node with the pods that are on it: the running sums the scheduler keeps.

This is the one mutable thing in ``placement``. It only keeps books; it decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from podqos.errors import InvalidManifest
from podqos.model.node import PODS, Node, Taint
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import CPU, MEMORY
from podqos.placement.demand import Amounts, counted
from podqos.placement.pod_view import PodView
from podqos.placement.taints import taints_of


class SchedulerNode:
    """One node and its pods."""

    __slots__ = (
        "allocatable",
        "allowed_pods",
        "attracting",
        "cpu_milli",
        "images",
        "labels",
        "memory_bytes",
        "name",
        "node",
        "pods",
        "requested",
        "scored_cpu_milli",
        "scored_memory_bytes",
        "shunning",
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
        self.shunning: dict[str, PodView] = {}
        """Those with a required anti-affinity, which may keep any other pod away."""
        self.attracting: dict[str, PodView] = {}
        """Those with a preference about, or an affinity to, other pods, which may draw any of them here."""
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
        if view.anti_affinity:
            self.shunning[view.key] = view
        if view.attraction:
            self.attracting[view.key] = view
        self._count(view, 1)

    def remove(self, view: PodView) -> None:
        """Take a pod off the node."""
        del self.pods[view.key]
        self.shunning.pop(view.key, None)
        self.attracting.pop(view.key, None)
        self._count(view, -1)

    def _count(self, view: PodView, sign: int) -> None:
        self.version += 1
        demand = view.held
        requested = self.requested
        for name, amount in demand.requested.items():
            requested[name] = requested.get(name, 0) + sign * amount
        self.scored_cpu_milli += sign * demand.scored_cpu_milli
        self.scored_memory_bytes += sign * demand.scored_memory_bytes
