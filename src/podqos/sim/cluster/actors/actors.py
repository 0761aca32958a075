"""The actors of a scenario: which there are, and what they are told. A scenario without any costs nothing."""

from __future__ import annotations

from collections.abc import Iterable

from podqos.agent.journal import Entry
from podqos.model.pod import Pod
from podqos.sim.cluster.actors.cluster_autoscaler import ClusterAutoscalerActor
from podqos.sim.cluster.actors.horizontal import HorizontalActor
from podqos.sim.cluster.actors.measuring import Measuring
from podqos.sim.cluster.actors.port import ActedCluster
from podqos.sim.cluster.actors.vertical import VerticalActor
from podqos.sim.cluster.controllers.controller import Controller
from podqos.sim.cluster.controllers.sets import SetController
from podqos.sim.scenario.scenario import ScenarioWorkload


class Actors:
    """All autoscalers of a scenario."""

    def __init__(self, cluster: ActedCluster, controllers: Iterable[Controller]) -> None:
        scenario = cluster.scenario
        by_target = {
            (controller.workload.namespace, controller.workload.kind, controller.workload.name): controller
            for controller in controllers
            if isinstance(controller, SetController)
        }
        horizontal = [(known, by_target.get(known.workload)) for known in scenario.autoscalers]
        vertical = [(known, by_target.get(known.workload)) for known in scenario.vertical_autoscalers]
        kept = [controller for _, controller in (*horizontal, *vertical) if controller is not None]
        self._measuring = measuring = Measuring(
            cluster, {id(controller): controller.workload for controller in kept}.values()
        )
        for autoscaler, controller in horizontal:
            if controller is not None:
                HorizontalActor(cluster, autoscaler, controller, measuring)
        self._vertical = {
            id(controller.workload): VerticalActor(cluster, autoscaler, controller, measuring)
            for autoscaler, controller in vertical
            if controller is not None
        }
        """By workload."""
        if scenario.cluster_autoscaler is not None:
            ClusterAutoscalerActor(cluster, scenario.cluster_autoscaler)

    def saw(self, entry: Entry) -> None:
        """Take note of an entry that a node has written."""
        self._measuring.saw(entry)
        for actor in self._vertical.values():
            actor.saw(entry)

    def admitted(self, pod: Pod, workload: ScenarioWorkload) -> Pod:
        """Return a pod that is created as it is stored."""
        actor = self._vertical.get(id(workload))
        return pod if actor is None else actor.admitted(pod)
