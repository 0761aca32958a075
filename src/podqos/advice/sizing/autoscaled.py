"""How many replicas a HorizontalPodAutoscaler makes of a workload whose requests change.

A target in percent of the request is a target in percent of what is advised now: half the request, twice the replicas.
The controller computes ``ceil(replicas × utilization / target)``, leaves the number alone within a tolerance of 10 %,
and takes the highest of all metrics (Kubernetes v1.36 pkg/controller/podautoscaler/replica_calculator.go). Without
known usage the workload is taken to be at its target now. Targets that are amounts do not depend on requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from msgspec import Struct

from podqos.model.autoscaling import HorizontalPodAutoscaler, ResourceMetric
from podqos.model.pod import Pod

_TOLERANCE = Fraction(1, 10)


class ReplicaChange(Struct, frozen=True, rename="camel"):
    """What an autoscaler makes of new requests."""

    autoscaler: str
    resource: str
    """The metric that decides."""
    target_percent: int
    replicas_before: int
    replicas: int
    is_at_most: bool
    """Whether it would want more than its maximum: pods then use more than the target."""
    same_target_percent: int
    """With this target the number of replicas stays."""


def replicas_after(
    autoscaler: HorizontalPodAutoscaler,
    replicas: int,
    before: Pod,
    after: Pod,
    used_milli: Mapping[str, Mapping[str, int]] | None = None,
) -> ReplicaChange | None:
    """Return how many replicas there will be; None where no target depends on requests that change.

    ``used_milli``: resource → container → what one pod uses on average, in thousandths of the unit.
    """
    changes = [
        change
        for metric in autoscaler.resource_metrics
        if (change := _by_metric(autoscaler, metric, replicas, (before, after), used_milli or {})) is not None
    ]
    return max(changes, key=lambda change: change.replicas, default=None)


def _by_metric(
    autoscaler: HorizontalPodAutoscaler,
    metric: ResourceMetric,
    replicas: int,
    pods: tuple[Pod, Pod],
    used_milli: Mapping[str, Mapping[str, int]],
) -> ReplicaChange | None:
    target = metric.utilization
    old, new = (_requested_milli(pod, metric) for pod in pods)
    if not target or not old or not new or old == new or replicas < 1:
        return None
    by_container = used_milli.get(metric.name, {})
    used = _sum(milli for name, milli in by_container.items() if metric.container in {"", name})
    # Without usage: it is at its target.
    ratio = Fraction(old, new) if used is None else Fraction(used * 100, new * target)
    wanted = replicas if abs(ratio - 1) <= _TOLERANCE else -(-replicas * ratio.numerator // ratio.denominator)
    most = max(autoscaler.spec.max_replicas, 1)
    bounded = min(max(wanted, autoscaler.spec.min_replicas), most)
    meta = autoscaler.metadata
    return ReplicaChange(
        autoscaler=f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name,
        resource=metric.name,
        target_percent=target,
        replicas_before=replicas,
        replicas=bounded,
        is_at_most=wanted > most,
        same_target_percent=max(1, round(Fraction(target * old, new))),
    )


def _requested_milli(pod: Pod, metric: ResourceMetric) -> int | None:
    """Return what the metric compares usage with; None where a container requests nothing, and the metric fails."""
    amounts = [
        container.resources.requests.get(metric.name) or container.resources.limits.get(metric.name)
        for container in pod.running_containers
        if metric.container in {"", container.name}
    ]
    if not amounts or not all(amounts):
        return None
    return _sum(amount.milli_value for amount in amounts if amount is not None)


def _sum(values: Iterable[int]) -> int | None:
    found = list(values)
    return sum(found) if found else None
