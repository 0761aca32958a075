"""HorizontalPodAutoscalers of a simulated cluster: what they see of pods, and the replicas that they set.

``controllers.horizontal`` decides; this module provides the figures and carries it out. The model: metrics-server
measures all nodes at the same moments, every 15 s from the start of the scenario, and its values are visible after a
stated delay, by default at once. CPU is what containers were granted, so that usage never exceeds a limit. Pods that
are there from the start have run, and been ready, for long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import AutoscalerDecision
from podqos.agent.state import PodRecord
from podqos.controllers.horizontal import (
    SYNC_PERIOD_US,
    Decision,
    Limit,
    MeasuredPod,
    MetricOutcome,
    NoReplicas,
    PodMetric,
    Point,
    Question,
    Recommendation,
    Replicas,
    Stabilized,
    Stored,
    bounds_of,
    for_average,
    for_utilization,
    next_decision,
)
from podqos.model.autoscaling import HorizontalPodAutoscaler, OtherMetric, ResourceMetric
from podqos.model.effective import pod_requests
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, QOS_RESOURCES, is_pod_level
from podqos.sim.cluster.control_plane import ControlPlane, is_over
from podqos.sim.cluster.controllers import LONG_AGO_US, SetController
from podqos.sim.cluster.services import Services
from podqos.sim.engine.event_queue import CLUSTER, EventPriority
from podqos.sim.scenario.scenario import ScenarioWorkload


class Autoscalers:
    """All autoscalers of a scenario, which has some."""

    def __init__(self, cluster: ControlPlane, services: Services | None) -> None:
        by_target = {
            (controller.workload.namespace, controller.workload.kind, controller.workload.name): controller
            for controller in cluster.controllers.values()
            if isinstance(controller, SetController)
        }
        kept = [
            (known, by_target[known.workload]) for known in cluster.scenario.autoscalers if known.workload in by_target
        ]
        self._measuring = Measuring(cluster, services, [controller.workload for _, controller in kept])
        for autoscaler, controller in kept:
            HorizontalActor(cluster, autoscaler, controller, self._measuring)

    def saw(self, entry: Entry) -> None:
        """Take note of an entry that a node has written."""
        self._measuring.saw(entry)


_STATUS = frozenset({"Admitted", "Started", "Exited", "Restarted", "OOMKilled", "ReadinessChanged", "Unhealthy"})
"""Kinds of entries after which a pod may be ready, or no longer."""


class Measuring:
    """The metrics and the status of the pods of some workloads."""

    def __init__(self, cluster: ControlPlane, services: Services | None, workloads: Iterable[ScenarioWorkload]) -> None:
        self._cluster = cluster
        self._services = services
        self._workloads = tuple(workloads)
        self._options = cluster.scenario.options
        self._stored = Stored()
        self._visible: list[tuple[int, Stored]] = []
        """When measurements become visible, the oldest first."""
        self._started_us: dict[str, int] = {}
        """By key of a pod: when its kubelet accepted it."""
        self._ready: dict[str, tuple[bool, int]] = {}
        """By key of a pod: whether it is ready, and since when."""
        if self._workloads:
            cluster.queue.plan(0, CLUSTER, EventPriority.REST, self._begin)

    def _begin(self, now_us: int) -> None:
        self._measure(now_us)

    def _measure(self, now_us: int) -> None:
        options = self._options
        points = {pod.key: dict(self._points(pod, name, now_us)) for pod, name in self._pods()}
        self._stored = self._stored.with_points(
            {key: containers for key, containers in points.items() if containers}, options.metrics_resolution_us
        )
        self._visible.append((now_us + options.metrics_delay_us, self._stored))
        # Before autoscalers look at the same moment.
        next_us = now_us + options.metrics_resolution_us
        self._cluster.queue.plan(next_us, CLUSTER, EventPriority.KERNEL, self._measure)

    def _pods(self) -> Iterator[tuple[Pod, str]]:
        for workload in self._workloads:
            for pod, name in self._cluster.pods_of(workload):
                if name is not None:
                    yield pod, name

    def _points(self, pod: Pod, name: str, now_us: int) -> Iterator[tuple[str, Point]]:
        node = self._cluster.fleet.present.get(name)
        running = None if node is None else node.world.pods.get(pod.metadata.uid)
        if node is None or running is None:
            return
        for container in running.running:
            started_us = container.started_us or LONG_AGO_US
            used = 0 if container.cpu is None else node.world.cpu.used_milli_us(container, now_us)
            yield container.name, Point(now_us, started_us, used, container.working_set_bytes(now_us))

    def seen(self, now_us: int) -> Stored:
        """Return the newest measurements that are visible."""
        while len(self._visible) > 1 and self._visible[1][0] <= now_us:
            del self._visible[0]
        return self._visible[0][1] if self._visible and self._visible[0][0] <= now_us else Stored()

    # ---- the status of pods --------------------------------------------------------------------------------------

    def saw(self, entry: Entry) -> None:
        """Take note of an entry of the journal."""
        key = entry.pod
        if key is None or not self._workloads or entry.kind not in _STATUS:
            return
        now_us = entry.time_us or LONG_AGO_US
        if entry.kind is Kind.ADMITTED:
            self._started_us[key] = now_us
            self._ready[key] = False, now_us
        elif key in self._started_us:
            self._cluster.plan(entry.time_us, lambda _: self._look(key, now_us))

    def _look(self, key: str, now_us: int) -> None:
        record = self._record(key)
        is_ready = record is not None and record.is_ready
        if self._ready[key][0] != is_ready:
            self._ready[key] = is_ready, now_us

    def _record(self, key: str) -> PodRecord | None:
        uid = self._cluster.uid_of(key)
        return self._cluster.record_of(uid) if uid in self._cluster.pods else None

    def started_us(self, key: str) -> int | None:
        """Return when the kubelet of a pod accepted it."""
        return self._started_us.get(key)

    def pods(self, workload: ScenarioWorkload, resource: str, container: str, now_us: int) -> list[MeasuredPod]:
        """Return the pods of a workload with their usage of a resource, or that of one of their containers."""
        stored = self.seen(now_us)
        return [self._pod(pod, name, resource, container, stored) for pod, name in self._cluster.pods_of(workload)]

    def requested_pods(self, workload: ScenarioWorkload, now_us: int) -> list[MeasuredPod]:
        """Return the pods of a service with the requests that each gets a second."""
        services = self._services
        rates = {} if services is None else services.requests_milli(f"{workload.namespace}/{workload.name}")
        window_us = self._options.metrics_resolution_us
        return [
            MeasuredPod(
                name=pod.key,
                is_ending=self._cluster.is_deleted(pod),
                is_pending=self._is_pending(pod, name),
                metric=PodMetric(rates[pod.metadata.uid], now_us, window_us) if pod.metadata.uid in rates else None,
            )
            for pod, name in self._cluster.pods_of(workload)
        ]

    def _pod(self, pod: Pod, name: str | None, resource: str, container: str, stored: Stored) -> MeasuredPod:
        key = pod.key
        is_ready, changed_us = self._ready.get(key, (False, 0))
        return MeasuredPod(
            name=key,
            is_ending=self._cluster.is_deleted(pod),
            is_pending=self._is_pending(pod, name),
            request_milli=request_milli(pod, resource, container),
            metric=stored.metric(key, resource, container),
            started_us=self._started_us.get(key),
            is_ready=is_ready,
            ready_changed_us=changed_us,
        )

    def _is_pending(self, pod: Pod, name: str | None) -> bool:
        if name is None:
            return True
        if name not in self._cluster.fleet.present:
            return False
        record = self._cluster.record_of(pod.metadata.uid)
        return record is None or record.is_pending


def request_milli(pod: Pod, resource: str, container: str) -> int | None:
    """Return the request that usage is a percentage of; None if one is missing.

    Source: Kubernetes v1.36.4 pkg/controller/podautoscaler/replica_calculator.go (calculateRequests).
    """
    own = pod.spec.resources
    if not container and own is not None and any(map(is_pod_level, own.requests)):
        return _milli(pod_requests(pod).get(resource))
    total = 0
    for one in pod.running_containers:
        if container in {"", one.name}:
            milli = _milli(one.resources.requests.get(resource))
            if milli is None:
                return None
            total += milli
    return total


def _milli(amount: Quantity | None) -> int | None:
    return None if amount is None else amount.milli_value


_MILLI = 1000


class HorizontalActor:
    """One HorizontalPodAutoscaler."""

    def __init__(
        self,
        cluster: ControlPlane,
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
        self._past: tuple[Recommendation, ...] | None = None
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
        decision = next_decision(self._bounds, self._past, current, metrics, now_us)
        self._past = decision.past
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
