"""How many replicas a metric asks for: the arithmetic of the HorizontalPodAutoscaler.

Values are thousandths, as upstream counts them: millicores, and thousandths of a byte. Ratios are floating-point
numbers like upstream's, so that rounding is the same.

Source: Kubernetes v1.36.4 pkg/controller/podautoscaler/replica_calculator.go and metrics/utilization.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from podqos.model.resources import CPU
from podqos.model.time_units import SECOND_US

CPU_INITIALIZATION_US = 300 * SECOND_US
"""``--horizontal-pod-autoscaler-cpu-initialization-period``."""
INITIAL_READINESS_DELAY_US = 30 * SECOND_US
"""``--horizontal-pod-autoscaler-initial-readiness-delay``."""
DEFAULT_TOLERANCE = 0.1
"""``--horizontal-pod-autoscaler-tolerance``."""

_ALL_PERCENT = 100


class PodMetric(Struct, frozen=True, gc=False):
    """The usage of a pod, or of one of its containers, as the metrics API reports it."""

    milli: int
    time_us: int
    """When it was measured last."""
    window_us: int
    """Over how long it is an average."""


class PodPhase(StrEnum):
    """How far a pod has come, as far as an autoscaler is concerned."""

    ENDING = "Ending"
    """Deleted or failed: it does not count."""
    PENDING = "Pending"
    RUNNING = "Running"


class MeasuredPod(Struct, frozen=True, gc=False, kw_only=True):
    """A pod of the workload that is scaled."""

    name: str
    phase: PodPhase = PodPhase.RUNNING
    request_milli: int | None = None
    """None where a container that counts has no request."""
    metric: PodMetric | None = None
    started_us: int | None = None
    """When the kubelet accepted the pod (``status.startTime``)."""
    is_ready: bool = True
    ready_changed_us: int = 0
    """When it last became ready or unready."""


class Tolerances(Struct, frozen=True, gc=False):
    """How far usage may be from the target without any change."""

    scale_down: float = DEFAULT_TOLERANCE
    scale_up: float = DEFAULT_TOLERANCE

    def are_within(self, ratio: float) -> bool:
        """Whether a ratio of usage to target changes nothing (``isWithin``)."""
        return 1.0 - self.scale_down <= ratio <= 1.0 + self.scale_up


class NoReplicas(StrEnum):
    """Why a metric gives no number of replicas."""

    NO_METRICS = "NoMetrics"
    """No pod has one."""
    NO_PODS = "NoPods"
    NOT_READY = "NotReady"
    """Only pods that do not count yet have one."""
    NO_REQUEST = "NoRequest"
    """A percentage of requests is the target, and a container has no request."""
    NO_CONTAINER = "NoContainer"
    """The pod has no container of that name."""
    NOT_SIMULATED = "NotSimulated"
    """Nothing in a simulation has this metric."""


class Replicas(Struct, frozen=True, gc=False):
    """What a metric asks for."""

    replicas: int
    usage_milli: int
    """The average of those that count."""
    utilization: int | None = None
    """The same in percent of requests, where the target is a percentage."""
    missing: int = 0
    """How many pods have no metric; they count as if they did not change the decision."""
    unready: int = 0
    """How many pods are not ready yet."""
    is_within_tolerance: bool = False


class Grouped(Struct, frozen=True):
    """The pods of a workload by what their metrics are worth (``groupPods``)."""

    ready: tuple[str, ...]
    unready: tuple[str, ...]
    missing: tuple[str, ...]


def grouped(pods: Iterable[MeasuredPod], resource: str, now_us: int) -> Grouped:
    """Tell which metrics count. Those of pods that are about to end never do."""
    ready, unready, missing = [], [], []
    for pod in pods:
        if pod.phase is PodPhase.ENDING:
            continue
        if pod.phase is PodPhase.PENDING:
            unready.append(pod.name)
        elif pod.metric is None:
            missing.append(pod.name)
        elif resource == CPU and _is_unready(pod, pod.metric, now_us):
            unready.append(pod.name)
        else:
            ready.append(pod.name)
    return Grouped(tuple(ready), tuple(unready), tuple(missing))


def _is_unready(pod: MeasuredPod, metric: PodMetric, now_us: int) -> bool:
    """Whether the CPU usage of a pod is ignored: it may still be the work of starting up."""
    if pod.started_us is None:
        return True
    if pod.started_us + CPU_INITIALIZATION_US > now_us:
        return not pod.is_ready or metric.time_us < pod.ready_changed_us + metric.window_us
    return not pod.is_ready and pod.started_us + INITIAL_READINESS_DELAY_US > pod.ready_changed_us


class Question(Struct, frozen=True):
    """What an autoscaler asks about one metric."""

    pods: Sequence[MeasuredPod]
    current: int
    """The replicas that the workload is set to."""
    resource: str
    """Empty where the metric is not a resource."""
    tolerances: Tolerances
    now_us: int


def for_utilization(asked: Question, target_percent: int) -> Replicas | NoReplicas:
    """Return the replicas for a percentage of requests (``GetResourceReplicas``).

    Where fewer replicas are wanted, a pod without a metric counts as using its whole request, or the target if that is
    more.
    """
    counted = _counted(asked)
    if isinstance(counted, NoReplicas):
        return counted
    if any(pod.request_milli is None for pod in asked.pods):
        return NoReplicas.NO_REQUEST
    requests = {pod.name: pod.request_milli or 0 for pod in asked.pods}

    def percent(values: Mapping[str, int]) -> int:
        return sum(values.values()) * _ALL_PERCENT // sum(requests[name] for name in values)

    if not sum(requests[name] for name in counted.metrics):
        return NoReplicas.NO_METRICS
    fallback = max(_ALL_PERCENT, target_percent)
    assumed = {name: requests[name] * fallback // _ALL_PERCENT for name in counted.groups.missing}
    decided = _decided(asked, counted, assumed, lambda values: percent(values) / target_percent)
    return replace(decided, utilization=percent(counted.metrics))


def for_average(asked: Question, target_milli: int) -> Replicas | NoReplicas:
    """Return the replicas for an amount per pod (``calcPlainMetricReplicas``).

    Where fewer replicas are wanted, a pod without a metric counts as using the target.
    """
    counted = _counted(asked)
    if isinstance(counted, NoReplicas):
        return counted
    assumed = dict.fromkeys(counted.groups.missing, target_milli)
    return _decided(asked, counted, assumed, lambda values: _average(values) / target_milli)


class _Counted(Struct, frozen=True):
    groups: Grouped
    metrics: Mapping[str, int]
    """Of the pods that count."""


def _counted(asked: Question) -> _Counted | NoReplicas:
    """Return the pods by group, and the metrics of those that count."""
    if not any(pod.metric is not None for pod in asked.pods):
        return NoReplicas.NO_METRICS if asked.pods else NoReplicas.NO_PODS
    groups = grouped(asked.pods, asked.resource, asked.now_us)
    ready = frozenset(groups.ready)
    metrics = {pod.name: pod.metric.milli for pod in asked.pods if pod.metric is not None and pod.name in ready}
    return _Counted(groups, metrics) if metrics else NoReplicas.NOT_READY


def _average(values: Mapping[str, int]) -> int:
    return sum(values.values()) // len(values)


def _decided(
    asked: Question, counted: _Counted, assumed: Mapping[str, int], ratio_of: Callable[[Mapping[str, int]], float]
) -> Replicas:
    """Return the replicas for the ratio of usage to target, first without and then with pods that have no metric yet.

    Where more are wanted, pods without a metric and pods that are not ready count as using nothing, so that a start-up
    does not cause another. What they would turn into the opposite changes nothing.
    """
    groups, metrics, current = counted.groups, counted.metrics, asked.current
    unchanged = Replicas(
        current, _average(metrics), missing=len(groups.missing), unready=len(groups.unready), is_within_tolerance=True
    )
    ratio = ratio_of(metrics)
    with_unready = bool(groups.unready) and ratio > 1.0
    if not with_unready and not groups.missing:
        if asked.tolerances.are_within(ratio):
            return unchanged
        return replace(unchanged, replicas=ceil(ratio * len(groups.ready)), is_within_tolerance=False)
    values = dict(metrics)
    if ratio < 1.0:
        values |= assumed
    elif ratio > 1.0:
        values |= dict.fromkeys(groups.missing, 0)
    if with_unready:
        values |= dict.fromkeys(groups.unready, 0)
    again = ratio_of(values)
    if asked.tolerances.are_within(again) or (ratio < 1.0 < again) or (again < 1.0 < ratio):
        return unchanged
    replicas = ceil(again * len(values))
    if (again < 1.0 and replicas > current) or (again > 1.0 and replicas < current):
        return unchanged
    return replace(unchanged, replicas=replicas, is_within_tolerance=False)
