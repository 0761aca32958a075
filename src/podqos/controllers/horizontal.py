"""The HorizontalPodAutoscaler: from what pods use to the replicas that it sets.

*Metrics*: metrics-server keeps the last two measurements of each container. CPU is the average between the two, memory
the working set at the last. A container that has just started has a metric once it has run for ten seconds; a pod has
one once all its containers do.

*Arithmetic*: usage over target times pods, unless that is within the tolerance. Values are thousandths, as upstream
counts them: millicores, and thousandths of a byte; ratios are floating-point numbers, so that rounding is the same.

*Decision*: recent recommendations stabilize the number, which at most doubles at each sync (or goes up to 4) and stays
within its bounds. Policies of how fast replicas change are left out, but for ``Disabled``.

Source: Kubernetes v1.36.4 pkg/controller/podautoscaler/horizontal.go, replica_calculator.go, metrics/utilization.go;
defaults: pkg/apis/autoscaling/v2/defaults.go; kubernetes-sigs/metrics-server pkg/storage/pod.go (Store, GetMetrics) and
pkg/storage/types.go (resourceUsage).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from podqos.model.autoscaling import HorizontalPodAutoscaler, HPAScalingRules
from podqos.model.quantity import NANOS
from podqos.model.resources import CPU
from podqos.model.time_units import SECOND_US

SYNC_PERIOD_US = 15 * SECOND_US
"""``--horizontal-pod-autoscaler-sync-period``. Up to 1.36 a new autoscaler waits for as long before its first sync."""
RESOLUTION_US = 15 * SECOND_US
"""``--metric-resolution`` of the manifests that metrics-server is installed with."""
DOWNSCALE_STABILIZATION_SECONDS = 300
"""``--horizontal-pod-autoscaler-downscale-stabilization``."""
CPU_INITIALIZATION_US = 300 * SECOND_US
"""``--horizontal-pod-autoscaler-cpu-initialization-period``."""
INITIAL_READINESS_DELAY_US = 30 * SECOND_US
"""``--horizontal-pod-autoscaler-initial-readiness-delay``."""
DEFAULT_TOLERANCE = 0.1
"""``--horizontal-pod-autoscaler-tolerance``."""
_FRESH_US = 10 * SECOND_US
"""A container younger than this has no metric yet."""
_MILLI = 1000
_ALL_PERCENT = 100
_DISABLED = "Disabled"


# ---- metrics ---------------------------------------------------------------------------------------------------------


class Point(Struct, frozen=True, gc=False):
    """One measurement of a container."""

    time_us: int
    started_us: int
    cpu_milli_us: int
    """All that it got since it was started: thousandths of a core, times microseconds."""
    working_set_bytes: int


class PodMetric(Struct, frozen=True, gc=False):
    """The usage of a pod, or of one of its containers, as the metrics API reports it."""

    milli: int
    time_us: int
    """When it was measured last."""
    window_us: int
    """Over how long it is an average."""


Points = Mapping[str, Mapping[str, Point]]
"""By pod and container."""


class Stored(Struct, frozen=True):
    """The last measurement of all containers, and the one before."""

    last: Points = {}
    before: Points = {}

    def with_points(self, points: Points, resolution_us: int = RESOLUTION_US) -> Stored:
        """Add a measurement of all containers that run (``Store``)."""
        before: dict[str, dict[str, Point]] = {}
        for pod, containers in points.items():
            earlier = self.last.get(pod, {})
            for name, point in containers.items():
                if _FRESH_US <= point.time_us - point.started_us < resolution_us:
                    first = Point(point.started_us, point.started_us, 0, point.working_set_bytes)
                    before.setdefault(pod, {})[name] = first
                elif name in earlier and point.started_us < earlier[name].time_us < point.time_us:
                    before.setdefault(pod, {})[name] = earlier[name]
        return Stored(points, before)

    def metric(self, pod: str, resource: str, container: str = "") -> PodMetric | None:
        """Return the usage of a pod, or of one of its containers; None if it has none yet (``GetMetrics``)."""
        last, before = self.last.get(pod), self.before.get(pod)
        if not last or before is None or any(name not in before for name in last):
            return None
        if container and container not in last:
            return None
        first = min(last, key=lambda name: (last[name].time_us, name))
        milli = 0
        for name in (container,) if container else tuple(last):
            now, then = last[name], before[name]
            if resource == CPU:  # rounded up, as a quantity is
                milli += -(-(now.cpu_milli_us - then.cpu_milli_us) // (now.time_us - then.time_us))
            else:
                milli += now.working_set_bytes * _MILLI
        return PodMetric(milli, last[first].time_us, last[first].time_us - before[first].time_us)


# ---- what a metric asks for ------------------------------------------------------------------------------------------


class MeasuredPod(Struct, frozen=True, gc=False, kw_only=True):
    """A pod of the workload that is scaled; those that are about to end do not count."""

    name: str
    is_ending: bool = False
    is_pending: bool = False
    request_milli: int | None = None
    """None where a container that counts has no request."""
    metric: PodMetric | None = None
    started_us: int | None = None
    """When the kubelet accepted the pod (``status.startTime``)."""
    is_ready: bool = True
    ready_changed_us: int = 0
    """When it last became ready or unready."""

    def is_unready(self, resource: str, now_us: int) -> bool:
        """Whether its metric does not count: CPU usage may still be the work of starting up (``groupPods``)."""
        if self.is_pending:
            return True
        if self.metric is None or resource != CPU:
            return False
        if self.started_us is None:
            return True
        if self.started_us + CPU_INITIALIZATION_US > now_us:
            return not self.is_ready or self.metric.time_us < self.ready_changed_us + self.metric.window_us
        return not self.is_ready and self.started_us + INITIAL_READINESS_DELAY_US > self.ready_changed_us


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
    counted = _counting(asked)
    if isinstance(counted, NoReplicas):
        return counted
    if any(pod.request_milli is None for pod in asked.pods):
        return NoReplicas.NO_REQUEST
    requests = {pod.name: pod.request_milli or 0 for pod in asked.pods}

    def percent(values: Mapping[str, int]) -> int:
        return sum(values.values()) * _ALL_PERCENT // sum(requests[name] for name in values)

    if not sum(requests[name] for name in counted):
        return NoReplicas.NO_METRICS
    fallback = max(_ALL_PERCENT, target_percent)
    decided = _decided(
        asked,
        counted,
        lambda name: requests[name] * fallback // _ALL_PERCENT,
        lambda values: percent(values) / target_percent,
    )
    return replace(decided, utilization=percent(counted))


def for_average(asked: Question, target_milli: int) -> Replicas | NoReplicas:
    """Return the replicas for an amount per pod (``calcPlainMetricReplicas``).

    Where fewer replicas are wanted, a pod without a metric counts as using the target.
    """
    counted = _counting(asked)
    if isinstance(counted, NoReplicas):
        return counted
    return _decided(asked, counted, lambda _: target_milli, lambda values: _average(values) / target_milli)


def _counting(asked: Question) -> dict[str, int] | NoReplicas:
    """Return the metrics of the pods that count."""
    if not any(pod.metric is not None for pod in asked.pods):
        return NoReplicas.NO_METRICS if asked.pods else NoReplicas.NO_PODS
    counted = {
        pod.name: pod.metric.milli
        for pod in asked.pods
        if pod.metric is not None and not pod.is_ending and not pod.is_unready(asked.resource, asked.now_us)
    }
    return counted or NoReplicas.NOT_READY


def _average(values: Mapping[str, int]) -> int:
    return sum(values.values()) // len(values)


def _decided(
    asked: Question,
    metrics: Mapping[str, int],
    assumed: Callable[[str], int],
    ratio_of: Callable[[Mapping[str, int]], float],
) -> Replicas:
    """Return the replicas for the ratio of usage to target, first without and then with pods that have no metric yet.

    Where more are wanted, pods without a metric and pods that are not ready count as using nothing, so that a start-up
    does not cause another. What they would turn into the opposite changes nothing.
    """
    there = [pod for pod in asked.pods if not pod.is_ending]
    unready = [pod.name for pod in there if pod.is_unready(asked.resource, asked.now_us)]
    missing = [pod.name for pod in there if pod.metric is None and not pod.is_pending]
    unchanged = Replicas(asked.current, _average(metrics), missing=len(missing), unready=len(unready))
    ratio = ratio_of(metrics)
    with_unready = bool(unready) and ratio > 1.0
    if not with_unready and not missing:
        if asked.tolerances.are_within(ratio):
            return unchanged
        return replace(unchanged, replicas=ceil(ratio * len(metrics)))
    values = dict(metrics)
    if ratio < 1.0:
        values |= {name: assumed(name) for name in missing}
    elif ratio > 1.0:
        values |= dict.fromkeys(missing, 0)
    if with_unready:
        values |= dict.fromkeys(unready, 0)
    again = ratio_of(values)
    if asked.tolerances.are_within(again) or (ratio < 1.0 < again) or (again < 1.0 < ratio):
        return unchanged
    replicas = ceil(again * len(values))
    if (again < 1.0 and replicas > asked.current) or (again > 1.0 and replicas < asked.current):
        return unchanged
    return replace(unchanged, replicas=replicas)


# ---- the decision ----------------------------------------------------------------------------------------------------


class Bounds(Struct, frozen=True):
    """What an autoscaler may do."""

    minimum: int
    maximum: int
    tolerances: Tolerances
    has_behavior: bool
    """Whether the object states a behavior; then windows hold for both directions, and end a sync earlier."""
    up_window_us: int
    down_window_us: int
    may_scale_up: bool = True
    may_scale_down: bool = True


def bounds_of(autoscaler: HorizontalPodAutoscaler) -> Bounds:
    """Return what an autoscaler may do (``SetDefaults_HorizontalPodAutoscaler``, ``tolerancesForHpa``)."""
    spec = autoscaler.spec
    up, down = HPAScalingRules(), HPAScalingRules()
    if spec.behavior is not None:
        up, down = spec.behavior.scale_up or up, spec.behavior.scale_down or down

    def window_us(rules: HPAScalingRules, default: int) -> int:
        stated = rules.stabilization_window_seconds
        return (default if stated is None else stated) * SECOND_US

    def tolerance(rules: HPAScalingRules) -> float:
        return DEFAULT_TOLERANCE if rules.tolerance is None else rules.tolerance.nanos / NANOS

    return Bounds(
        spec.min_replicas,
        spec.max_replicas,
        Tolerances(tolerance(down), tolerance(up)),
        spec.behavior is not None,
        window_us(up, 0),
        window_us(down, DOWNSCALE_STABILIZATION_SECONDS),
        up.select_policy != _DISABLED,
        down.select_policy != _DISABLED,
    )


class Recommendation(Struct, frozen=True, gc=False):
    """What the metrics asked for at a time."""

    replicas: int
    time_us: int


class MetricOutcome(Struct, frozen=True):
    """What one metric of an autoscaler asks for."""

    name: str
    """Such as ``cpu``, or ``cpu of web`` for a container."""
    outcome: Replicas | NoReplicas


class Limit(StrEnum):
    """What keeps replicas from the stabilized recommendation: the reason of ``ScalingLimited``."""

    NOTHING = "DesiredWithinRange"
    SCALE_UP = "ScaleUpLimit"
    SCALE_DOWN = "ScaleDownLimit"
    TOO_MANY = "TooManyReplicas"
    TOO_FEW = "TooFewReplicas"


class Stabilized(StrEnum):
    """Whether recent recommendations were applied instead: the reason of ``AbleToScale``."""

    NO = "ReadyForNewScale"
    UP = "ScaleUpStabilized"
    DOWN = "ScaleDownStabilized"


class Decision(Struct, frozen=True):
    """The result of a sync."""

    desired: int
    past: tuple[Recommendation, ...]
    """What is remembered for the next."""
    metric: MetricOutcome | None = None
    """The metric that asked for most; None where the bounds alone decided, or nothing could be decided."""
    proposed: int | None = None
    """What that metric asked for."""
    recommended: int | None = None
    """The same after stabilization."""
    stabilized: Stabilized = Stabilized.NO
    limit: Limit = Limit.NOTHING
    disabled: bool = False
    """The workload is set to 0 replicas: the autoscaler leaves it alone."""
    failed: MetricOutcome | None = None
    """The first metric without a result, where that keeps the autoscaler from a decision."""


def next_decision(
    bounds: Bounds,
    past: Sequence[Recommendation] | None,
    current: int,
    metrics: Sequence[MetricOutcome],
    now_us: int,
) -> Decision:
    """Decide how many replicas a workload has from now on (``reconcileAutoscaler``). ``past`` is None at first."""
    known = (Recommendation(current, now_us),) if past is None else tuple(past)
    if current == 0:
        return Decision(0, known, disabled=True)
    if current > bounds.maximum:
        return Decision(bounds.maximum, known, limit=Limit.TOO_MANY)
    if current < bounds.minimum:
        return Decision(bounds.minimum, known, limit=Limit.TOO_FEW)
    chosen, failed = _highest(metrics, current)
    if chosen is None:
        return Decision(current, known, failed=failed)
    assert isinstance(chosen.outcome, Replicas)
    proposed = chosen.outcome.replicas
    up_us, down_us = now_us - bounds.up_window_us, now_us - bounds.down_window_us
    # Without a behavior, one of just then counts.
    recent = [each for each in known if each.time_us >= down_us + bounds.has_behavior]
    most = max([proposed, *(each.replicas for each in recent)])
    least = min([proposed, *(each.replicas for each in known if each.time_us > up_us)])
    recommended = min(max(current, least), most) if bounds.has_behavior else most
    stabilized = Stabilized.NO
    if recommended != proposed:
        stabilized = Stabilized.UP if bounds.has_behavior and proposed >= current else Stabilized.DOWN
    kept = (each for each in known if each.time_us >= min(up_us, down_us))
    desired, limit = _limited(bounds, current, recommended)
    return Decision(
        desired, (*kept, Recommendation(proposed, now_us)), chosen, proposed, recommended, stabilized, limit
    )


def _highest(metrics: Sequence[MetricOutcome], current: int) -> tuple[MetricOutcome | None, MetricOutcome | None]:
    """Return the metric that asks for most, or the first that failed (``computeReplicasForMetrics``).

    A failed metric keeps an autoscaler from removing pods, not from adding some.
    """
    failed = [metric for metric in metrics if isinstance(metric.outcome, NoReplicas)]
    chosen, most = None, 0
    for metric in metrics:
        if isinstance(metric.outcome, Replicas) and (most == 0 or metric.outcome.replicas > most):
            chosen, most = metric, metric.outcome.replicas
    if chosen is None or (failed and most < current):
        return None, failed[0] if failed else None
    return chosen, None


def _limited(bounds: Bounds, current: int, recommended: int) -> tuple[int, Limit]:
    """Limit how fast replicas change, by the default policies, and keep them within the bounds."""
    up_limit = max(2 * current, current + 4 if bounds.has_behavior else 4) if bounds.may_scale_up else current
    most, why = (up_limit, Limit.SCALE_UP) if bounds.maximum > up_limit else (bounds.maximum, Limit.TOO_MANY)
    if recommended > most:
        return most, why
    down_limit = 0 if bounds.may_scale_down else current
    least, why = (down_limit, Limit.SCALE_DOWN) if bounds.minimum < down_limit else (bounds.minimum, Limit.TOO_FEW)
    return (least, why) if recommended < least else (recommended, Limit.NOTHING)
