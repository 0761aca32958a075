"""The HorizontalPodAutoscaler: from what its metrics ask for to the replicas it sets.

Recent recommendations stabilize the number, policies limit how fast it changes, and it stays within its bounds.

Source: Kubernetes v1.36.4 pkg/controller/podautoscaler/horizontal.go; defaults: pkg/apis/autoscaling/v2/defaults.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from podqos.controllers.replica_calculator import NoReplicas, Replicas, Tolerances
from podqos.model.autoscaling import HorizontalPodAutoscaler, HPAScalingPolicy, HPAScalingRules
from podqos.model.quantity import NANOS
from podqos.model.time_units import SECOND_US

SYNC_PERIOD_US = 15 * SECOND_US
"""``--horizontal-pod-autoscaler-sync-period``. Up to 1.36 a new autoscaler waits for as long before its first sync."""
DOWNSCALE_STABILIZATION_SECONDS = 300
"""``--horizontal-pod-autoscaler-downscale-stabilization``."""

_SCALE_UP_FACTOR = 2.0
_SCALE_UP_MINIMUM = 4.0
_PERCENT = "Percent"
_DEFAULT_UP = (HPAScalingPolicy("Pods", 4, 15), HPAScalingPolicy(_PERCENT, 100, 15))
_DEFAULT_DOWN = (HPAScalingPolicy(_PERCENT, 100, 15),)
_MOST = 2**31 - 1


class SelectPolicy(StrEnum):
    """Which of several policies counts."""

    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


class Rules(Struct, frozen=True):
    """How fast replicas change in one direction, with all defaults."""

    policies: tuple[HPAScalingPolicy, ...]
    select: SelectPolicy
    stabilization_us: int

    @property
    def longest_period_us(self) -> int:
        """The longest period of a policy (``getLongestPolicyPeriod``)."""
        return max((policy.period_seconds for policy in self.policies), default=0) * SECOND_US


class Behavior(Struct, frozen=True):
    """How fast replicas change."""

    up: Rules
    down: Rules


class Bounds(Struct, frozen=True):
    """What an autoscaler may do."""

    minimum: int
    maximum: int
    behavior: Behavior | None
    """None where the object states none: then replicas at most double at each sync, or go up to 4."""
    tolerances: Tolerances


def bounds_of(autoscaler: HorizontalPodAutoscaler) -> Bounds:
    """Return what an autoscaler may do (``SetDefaults_HorizontalPodAutoscaler``, ``tolerancesForHpa``)."""
    spec = autoscaler.spec
    tolerances, behavior = Tolerances(), None
    if spec.behavior is not None:
        up, down = spec.behavior.scale_up, spec.behavior.scale_down
        behavior = Behavior(_rules(up, _DEFAULT_UP, 0), _rules(down, _DEFAULT_DOWN, DOWNSCALE_STABILIZATION_SECONDS))
        if up is not None and up.tolerance is not None:
            tolerances = replace(tolerances, scale_up=up.tolerance.nanos / NANOS)
        if down is not None and down.tolerance is not None:
            tolerances = replace(tolerances, scale_down=down.tolerance.nanos / NANOS)
    return Bounds(spec.min_replicas, spec.max_replicas, behavior, tolerances)


def _rules(stated: HPAScalingRules | None, policies: tuple[HPAScalingPolicy, ...], seconds: int) -> Rules:
    """Return rules with their defaults (``copyHPAScalingRules``)."""
    stated = stated or HPAScalingRules()
    window = seconds if stated.stabilization_window_seconds is None else stated.stabilization_window_seconds
    return Rules(
        policies if stated.policies is None else stated.policies,
        SelectPolicy(stated.select_policy or SelectPolicy.MAX),
        window * SECOND_US,
    )


class Stamped(Struct, frozen=True, gc=False):
    """A recommendation, or by how much replicas were changed, and when."""

    replicas: int
    time_us: int


class Memory(Struct, frozen=True):
    """What the controller remembers of one autoscaler."""

    recommendations: tuple[Stamped, ...] | None = None
    """None before the first sync."""
    ups: tuple[Stamped, ...] = ()
    downs: tuple[Stamped, ...] = ()


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
    memory: Memory
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


def sync(bounds: Bounds, memory: Memory, current: int, metrics: Sequence[MetricOutcome], now_us: int) -> Decision:
    """Decide how many replicas a workload has from now on (``reconcileAutoscaler``)."""
    if memory.recommendations is None:
        memory = replace(memory, recommendations=(Stamped(current, now_us),))
    if current == 0:
        return Decision(0, memory, disabled=True)
    if current > bounds.maximum:
        return _set(bounds, Decision(bounds.maximum, memory, limit=Limit.TOO_MANY), current, now_us)
    if current < bounds.minimum:
        return _set(bounds, Decision(bounds.minimum, memory, limit=Limit.TOO_FEW), current, now_us)
    chosen, failed = _highest(metrics, current)
    if chosen is None:
        return Decision(current, memory, failed=failed)
    assert isinstance(chosen.outcome, Replicas)
    proposed = chosen.outcome.replicas
    normalized = _normalized(bounds, memory, current, proposed, now_us)
    return _set(bounds, replace(normalized, metric=chosen, proposed=proposed), current, now_us)


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


def _normalized(bounds: Bounds, memory: Memory, current: int, proposed: int, now_us: int) -> Decision:
    if bounds.behavior is None:
        return _by_default(bounds, memory, current, proposed, now_us)
    return _by_behavior(bounds, memory, current, proposed, now_us)


def _by_default(bounds: Bounds, memory: Memory, current: int, proposed: int, now_us: int) -> Decision:
    """Apply the highest recommendation of the last 300 s (``normalizeDesiredReplicas``)."""
    cutoff_us = now_us - DOWNSCALE_STABILIZATION_SECONDS * SECOND_US
    recent = [past for past in memory.recommendations or () if past.time_us >= cutoff_us]
    recommended = max([proposed, *(past.replicas for past in recent)])
    memory = replace(memory, recommendations=(*recent, Stamped(proposed, now_us)))
    stabilized = Stabilized.NO if recommended == proposed else Stabilized.DOWN
    up_limit = int(max(_SCALE_UP_FACTOR * current, _SCALE_UP_MINIMUM))
    most, why = (up_limit, Limit.SCALE_UP) if bounds.maximum > up_limit else (bounds.maximum, Limit.TOO_MANY)
    desired, limit = recommended, Limit.NOTHING
    if recommended < bounds.minimum:
        desired, limit = bounds.minimum, Limit.TOO_FEW
    elif recommended > most:
        desired, limit = most, why
    return Decision(desired, memory, recommended=recommended, stabilized=stabilized, limit=limit)


def _by_behavior(bounds: Bounds, memory: Memory, current: int, proposed: int, now_us: int) -> Decision:
    """Apply recent recommendations, then the policies (``normalizeDesiredReplicasWithBehaviors``)."""
    behavior = bounds.behavior
    assert behavior is not None
    up_us, down_us = now_us - behavior.up.stabilization_us, now_us - behavior.down.stabilization_us
    past = memory.recommendations or ()
    least = min([proposed, *(stamp.replicas for stamp in past if stamp.time_us > up_us)])
    most = max([proposed, *(stamp.replicas for stamp in past if stamp.time_us > down_us)])
    recommended = min(max(current, least), most)
    kept = tuple(stamp for stamp in past if stamp.time_us >= min(up_us, down_us))
    memory = replace(memory, recommendations=(*kept, Stamped(proposed, now_us)))
    stabilized = Stabilized.NO
    if recommended != proposed:
        stabilized = Stabilized.UP if proposed >= current else Stabilized.DOWN
    desired, limit = _limited(bounds, memory, current, recommended, now_us)
    return Decision(desired, memory, recommended=recommended, stabilized=stabilized, limit=limit)


def _limited(bounds: Bounds, memory: Memory, current: int, recommended: int, now_us: int) -> tuple[int, Limit]:
    """Limit how fast replicas change (``convertDesiredReplicasWithBehaviorRate``)."""
    behavior = bounds.behavior
    assert behavior is not None
    if recommended > current:
        up_limit = max(current, _up_limit(behavior.up, memory, current, now_us))
        most, why = (up_limit, Limit.SCALE_UP) if bounds.maximum > up_limit else (bounds.maximum, Limit.TOO_MANY)
        if recommended > most:
            return most, why
    elif recommended < current:
        down_limit = min(current, _down_limit(behavior.down, memory, current, now_us))
        least, why = (down_limit, Limit.SCALE_DOWN) if bounds.minimum < down_limit else (bounds.minimum, Limit.TOO_FEW)
        if recommended < least:
            return least, why
    return recommended, Limit.NOTHING


def _up_limit(rules: Rules, memory: Memory, current: int, now_us: int) -> int:
    """Return the most replicas that policies allow (``calculateScaleUpLimitWithScalingRules``)."""
    if rules.select is SelectPolicy.DISABLED:
        return current
    allowed = []
    for policy in rules.policies:
        first = _at_start(policy, memory, current, now_us)
        allowed.append(ceil(first * (1 + policy.value / 100)) if policy.type == _PERCENT else first + policy.value)
    if rules.select is SelectPolicy.MIN:
        return min(allowed, default=_MOST)
    return max(allowed, default=-_MOST)


def _down_limit(rules: Rules, memory: Memory, current: int, now_us: int) -> int:
    """Return the fewest replicas that policies allow (``calculateScaleDownLimitWithBehaviors``)."""
    if rules.select is SelectPolicy.DISABLED:
        return current
    allowed = []
    for policy in rules.policies:
        first = _at_start(policy, memory, current, now_us)
        allowed.append(int(first * (1 - policy.value / 100)) if policy.type == _PERCENT else first - policy.value)
    if rules.select is SelectPolicy.MIN:
        return max(allowed, default=-_MOST)
    return min(allowed, default=_MOST)


def _at_start(policy: HPAScalingPolicy, memory: Memory, current: int, now_us: int) -> int:
    """Return how many replicas there were when the period of a policy began."""
    since_us = now_us - policy.period_seconds * SECOND_US
    return current - _changed(memory.ups, since_us) + _changed(memory.downs, since_us)


def _changed(stamps: Iterable[Stamped], since_us: int) -> int:
    """Return the changes after a time (``getReplicasChangePerPeriod``)."""
    return sum(stamp.replicas for stamp in stamps if stamp.time_us > since_us)


def _set(bounds: Bounds, decision: Decision, current: int, now_us: int) -> Decision:
    """Remember by how much replicas change, as long as a policy asks for it (``storeScaleEvent``)."""
    change = decision.desired - current
    behavior, memory = bounds.behavior, decision.memory
    if behavior is None or change == 0:
        return decision
    rules, before = (behavior.up, memory.ups) if change > 0 else (behavior.down, memory.downs)
    kept = tuple(stamp for stamp in before if stamp.time_us >= now_us - rules.longest_period_us)
    stamps = (*kept, Stamped(abs(change), now_us))
    return replace(decision, memory=replace(memory, ups=stamps) if change > 0 else replace(memory, downs=stamps))
