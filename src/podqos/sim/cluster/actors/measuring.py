"""What autoscalers see of pods: usage as metrics-server measures it, and the status of each pod.

The model: metrics-server measures all nodes at the same moments, every 15 s from the start of the scenario, and its
values are visible after a stated delay, by default at once. CPU is what containers were granted, so that usage never
exceeds a limit. Pods that are there from the start have run, and been ready, for long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podqos.agent.journal import Entry, Kind
from podqos.agent.state import PodRecord
from podqos.controllers.metrics_server import Point, Stored
from podqos.controllers.replica_calculator import MeasuredPod, PodMetric, PodPhase
from podqos.model.effective import pod_requests
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import is_pod_level
from podqos.sim.cluster.actors.port import ActedCluster
from podqos.sim.engine.event_queue import CLUSTER, EventPriority
from podqos.sim.scenario.scenario import ScenarioWorkload

LONG_AGO_US = -(1 << 50)
"""When pods were started that are there from the start."""
_STATUS = frozenset({"Admitted", "Started", "Exited", "Restarted", "OOMKilled", "ReadinessChanged", "Unhealthy"})
"""Kinds of entries after which a pod may be ready, or no longer."""


class Measuring:
    """The metrics and the status of the pods of some workloads."""

    def __init__(self, cluster: ActedCluster, workloads: Iterable[ScenarioWorkload]) -> None:
        self._cluster = cluster
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
        for workload in self._workloads:
            self._cluster.fleet.wake_all_with(workload)
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
        node = self._cluster.fleet.awake.get(name)
        running = None if node is None else node.world.pods.get(pod.metadata.uid)
        if node is None or running is None:
            return
        node.world.rouse()
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
        services = self._cluster.services
        rates = {} if services is None else services.requests_milli(f"{workload.namespace}/{workload.name}")
        window_us = self._options.metrics_resolution_us
        return [
            MeasuredPod(
                name=pod.key,
                phase=self._phase(pod, name),
                metric=PodMetric(rates[pod.metadata.uid], now_us, window_us) if pod.metadata.uid in rates else None,
            )
            for pod, name in self._cluster.pods_of(workload)
        ]

    def _pod(self, pod: Pod, name: str | None, resource: str, container: str, stored: Stored) -> MeasuredPod:
        key = pod.key
        is_ready, changed_us = self._ready.get(key, (False, 0))
        return MeasuredPod(
            name=key,
            phase=self._phase(pod, name),
            request_milli=request_milli(pod, resource, container),
            metric=stored.metric(key, resource, container),
            started_us=self._started_us.get(key),
            is_ready=is_ready,
            ready_changed_us=changed_us,
        )

    def _phase(self, pod: Pod, name: str | None) -> PodPhase:
        if self._cluster.is_deleted(pod):
            return PodPhase.ENDING
        if name is None:
            return PodPhase.PENDING
        if not self._cluster.fleet.is_present(name):
            return PodPhase.RUNNING
        record = self._cluster.record_of(pod.metadata.uid)
        return PodPhase.PENDING if record is None or record.is_pending else PodPhase.RUNNING


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
