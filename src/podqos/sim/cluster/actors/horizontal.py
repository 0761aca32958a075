"""A HorizontalPodAutoscaler of a simulated cluster: measures every 15 s, and sets the replicas of its workload.

``controllers.horizontal`` decides; this module provides the figures and carries it out.
"""

from __future__ import annotations

from msgspec.structs import replace

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import AutoscalerDecision
from podqos.controllers.horizontal import (
    SYNC_PERIOD_US,
    Decision,
    Limit,
    Memory,
    MetricOutcome,
    Stabilized,
    bounds_of,
    sync,
)
from podqos.controllers.replica_calculator import NoReplicas, Question, Replicas, for_average, for_utilization
from podqos.model.autoscaling import HorizontalPodAutoscaler, OtherMetric, ResourceMetric
from podqos.model.resources import CPU, QOS_RESOURCES
from podqos.sim.cluster.actors.measuring import Measuring
from podqos.sim.cluster.actors.port import ActedCluster
from podqos.sim.cluster.controllers.controller import is_over
from podqos.sim.cluster.controllers.sets import SetController

_MILLI = 1000


class HorizontalActor:
    """One HorizontalPodAutoscaler."""

    def __init__(
        self,
        cluster: ActedCluster,
        autoscaler: HorizontalPodAutoscaler,
        controller: SetController,
        measuring: Measuring,
    ) -> None:
        self._cluster = cluster
        self._autoscaler = autoscaler
        self._controller = controller
        self._measuring = measuring
        self._bounds = bounds_of(autoscaler)
        self._metrics = tuple(metric for metric in autoscaler.resource_metrics if metric.name in QOS_RESOURCES)
        self._memory = Memory()
        self._status: tuple[object, ...] = ()
        """What kept it from what its metrics ask for at its last sync."""
        cluster.plan(controller.workload.arrives_us + SYNC_PERIOD_US, self._sync)

    def _sync(self, now_us: int) -> None:
        controller = self._controller
        if is_over(controller.workload, now_us):
            return
        current = controller.replicas
        metrics = [self._outcome(metric, current, now_us) for metric in self._metrics]
        metrics += [self._requests(metric, current, now_us) for metric in self._autoscaler.request_metrics]
        decision = sync(self._bounds, self._memory, current, metrics, now_us)
        self._memory = decision.memory
        self._note(decision, current, now_us)
        if decision.desired != current:
            controller.scale(decision.desired, now_us)
        self._cluster.plan(now_us + SYNC_PERIOD_US, self._sync)

    def _outcome(self, metric: ResourceMetric, current: int, now_us: int) -> MetricOutcome:
        workload = self._controller.workload
        name = f"{metric.name} of {metric.container}" if metric.container else metric.name
        known = {container.name for container in workload.pod.running_containers}
        if metric.container and metric.container not in known:
            return MetricOutcome(name, NoReplicas.NO_CONTAINER)
        pods = self._measuring.pods(workload, metric.name, metric.container, now_us)
        asked = Question(pods, current, metric.name, self._bounds.tolerances, now_us)
        if metric.utilization is not None:
            return MetricOutcome(name, for_utilization(asked, metric.utilization))
        if metric.value is not None:
            return MetricOutcome(name, for_average(asked, metric.value.milli_value))
        return MetricOutcome(name, NoReplicas.NO_METRICS)

    def _requests(self, metric: OtherMetric, current: int, now_us: int) -> MetricOutcome:
        """Return what the requests that each pod gets ask for: a metric of pods, without a resource."""
        assert metric.target.average_value is not None
        pods = self._measuring.requested_pods(self._controller.workload, now_us)
        asked = Question(pods, current, "", self._bounds.tolerances, now_us)
        return MetricOutcome(metric.metric.name, for_average(asked, metric.target.average_value.milli_value))

    def _note(self, decision: Decision, current: int, now_us: int) -> None:
        """Write what was decided, and once what keeps the autoscaler from more."""
        failed = None if decision.failed is None else (decision.failed.name, decision.failed.outcome)
        status = decision.limit, decision.stabilized, failed, decision.disabled
        is_held = status != (Limit.NOTHING, Stabilized.NO, None, False)
        if decision.desired != current or (is_held and status != self._status):
            kind = Kind.HELD if decision.desired == current else Kind.SCALED
            self._cluster.write(Entry(now_us, "", kind, None, None, By.CONTROLLER, self._because(decision, current)))
        self._status = status

    def _because(self, decision: Decision, current: int) -> AutoscalerDecision:
        metadata, workload = self._autoscaler.metadata, self._controller.workload
        because = AutoscalerDecision(
            autoscaler=f"{metadata.namespace}/{metadata.name}",
            workload=f"{workload.namespace}/{workload.name}",
            current=current,
            desired=decision.desired,
            proposed=decision.proposed,
            limited_by="" if decision.limit is Limit.NOTHING else decision.limit.value,
            stabilized="" if decision.stabilized is Stabilized.NO else decision.stabilized.value,
            recommended=decision.recommended,
        )
        return replace(because, **self._figures(decision.metric or decision.failed))

    def _figures(self, metric: MetricOutcome | None) -> dict[str, object]:
        if metric is None:
            return {}
        for other in self._autoscaler.request_metrics:
            if other.metric.name == metric.name and other.target.average_value is not None:
                target_milli = other.target.average_value.milli_value
                return {"metric": metric.name, "target": target_milli // _MILLI, **_found(metric, "")}
        stated = next(
            stated for stated in self._metrics if metric.name in {stated.name, f"{stated.name} of {stated.container}"}
        )
        target = stated.utilization if stated.value is None else _whole(stated.value.milli_value, stated.name)
        figures: dict[str, object] = {"metric": metric.name, "target": target, "percent": stated.value is None}
        return {**figures, **_found(metric, stated.name)}


def _found(metric: MetricOutcome, resource: str) -> dict[str, object]:
    """Return what was measured, or why nothing was."""
    found = metric.outcome
    if not isinstance(found, Replicas):
        return {"failed": found.value}
    usage = _whole(found.usage_milli, resource) if found.utilization is None else found.utilization
    return {"usage": usage, "missing": found.missing, "unready": found.unready}


def _whole(milli: int, resource: str) -> int:
    """Return an amount as journals have it: millicores, or whole bytes."""
    return milli if resource == CPU else milli // _MILLI
