"""What actors know of the cluster, and do to it, beyond what controllers do."""

from __future__ import annotations

from typing import Protocol

from podqos.agent.journal import Entry
from podqos.sim.cluster.controllers.controller import ControlledCluster
from podqos.sim.cluster.evictions import BudgetedCluster
from podqos.sim.cluster.services import Services


class ActedCluster(ControlledCluster, BudgetedCluster, Protocol):
    """A cluster whose nodes come and go."""

    services: Services | None
    """What answers requests, if anything does."""

    def write(self, entry: Entry) -> None:
        """Write a journal entry."""
