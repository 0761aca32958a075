"""The actors of a scenario: which there are, and what they are told. A scenario without any costs nothing."""

from __future__ import annotations

from collections.abc import Iterable

from podqos.agent.journal import Entry
from podqos.sim.cluster.actors.cluster_autoscaler import ClusterAutoscalerActor
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
        targets = ((autoscaler, by_target.get(autoscaler.workload)) for autoscaler in scenario.autoscalers)
        scaled = [(autoscaler, controller) for autoscaler, controller in targets if controller is not None]
        workloads = {id(kept): kept.workload for _, kept in scaled}.values()
        self._measuring = Measuring(cluster, workloads) if scaled else None
        self._horizontal = [
            HorizontalActor(cluster, autoscaler, controller, self._measuring)
            for autoscaler, controller in scaled
            if self._measuring is not None
        ]
        if scenario.cluster_autoscaler is not None:
            ClusterAutoscalerActor(cluster, scenario.cluster_autoscaler)

    def saw(self, entry: Entry) -> None:
        """Take note of an entry that a node has written."""
        if self._measuring is not None:
            self._measuring.saw(entry)
