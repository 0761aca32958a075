"""What actors know of the cluster, and do to it, beyond what controllers do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from podqos.admission.refusal import Refusal
from podqos.agent.journal import Entry
from podqos.model.pod import Pod
from podqos.sim.cluster.controllers.controller import ControlledCluster
from podqos.sim.cluster.evictions import BudgetedCluster
from podqos.sim.cluster.services import Services


class ActedCluster(ControlledCluster, BudgetedCluster, Protocol):
    """A cluster whose nodes come and go."""

    services: Services | None
    """What answers requests, if anything does."""

    def write(self, entry: Entry) -> None:
        """Write a journal entry."""

    def pods_on(self, name: str) -> Iterable[tuple[str, Pod]]:
        """Return the pods on a node, by uid, in the order of creation."""

    def remove(self, uid: str, why: str, grace_seconds: int | None = None) -> None:
        """Delete a pod, by default with its own grace period; a pending one is gone at once."""

    def resize_refusal(self, uid: str, pod: Pod) -> Refusal | None:
        """Return why the API server rejects a resize because of the pod's node; None if it does not."""

    def resize(self, uid: str, pod: Pod) -> None:
        """Change the resources of a pod in the API; its kubelet resizes it in place when it can."""

    def join(self, name: str) -> None:
        """Let a node join."""

    def remove_node(self, name: str) -> None:
        """Remove a machine with what is left on it; nothing of that is replaced."""
