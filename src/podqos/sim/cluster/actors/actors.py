"""The actors of a scenario: which there are, and what they are told. A scenario without any costs nothing."""

from __future__ import annotations

from collections.abc import Iterable

from podqos.agent.journal import Entry
from podqos.sim.cluster.actors.horizontal import HorizontalActor
from podqos.sim.cluster.actors.measuring import Measuring
from podqos.sim.cluster.actors.port import ActedCluster
from podqos.sim.cluster.controllers.controller import Controller
from podqos.sim.cluster.controllers.sets import SetController


class Actors:
    """All autoscalers of a scenario."""

    def __init__(self, cluster: ActedCluster, controllers: Iterable[Controller]) -> None:
        scenario = cluster.scenario
        by_target = {
            (controller.workload.namespace, controller.workload.kind, controller.workload.name): controller
            for controller in controllers
            if isinstance(controller, SetController)
        }
        kept = [(known, by_target[known.workload]) for known in scenario.autoscalers if known.workload in by_target]
        self._measuring = Measuring(cluster, [controller.workload for _, controller in kept])
        for autoscaler, controller in kept:
            HorizontalActor(cluster, autoscaler, controller, self._measuring)

    def saw(self, entry: Entry) -> None:
        """Take note of an entry that a node has written."""
        self._measuring.saw(entry)
