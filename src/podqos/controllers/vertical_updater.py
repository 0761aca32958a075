"""Which pods the VerticalPodAutoscaler's updater changes, in what order, and how many at a time.

Source: kubernetes/autoscaler vertical-pod-autoscaler-1.7.1 pkg/updater/priority (update_priority_calculator.go,
priority_processor.go), pkg/updater/restriction (pods_restriction_factory.go, pods_eviction_restriction.go) and
pkg/updater/config/config.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.model.autoscaling import ContainerRecommendation
from podqos.model.pod import Pod
from podqos.model.time_units import MINUTE_US

INTERVAL_US = MINUTE_US
"""``--updater-interval``."""
MIN_REPLICAS = 2
"""``--min-replicas``."""
_TOLERANCE = 0.5
"""``--eviction-tolerance``."""
_LEAST_CHANGE = 0.1
"""``--pod-update-threshold``."""
_LIFETIME_US = 12 * 60 * MINUTE_US
"""``--in-recommendation-bounds-eviction-lifetime-threshold``."""
DEFERRED_US = 5 * MINUTE_US
"""After so long a deferred resize in place is given up (``DeferredResizeUpdateTimeout``)."""
QUICK_OOM_US = 10 * MINUTE_US
"""``--evict-after-oom-threshold``."""


class WhyUpdated(StrEnum):
    """Why a pod is changed."""

    OUT_OF_RANGE = "OutsideRecommendedRange"
    """A request is below the lower bound or above the upper bound."""
    QUICK_OOM = "QuickOOM"
    """A container was OOM-killed within ten minutes of its start."""
    LONG_LIVED = "LongLived"
    """It is twelve hours old, and the recommendation differs by at least 10 %."""


class UpdatedPod(Struct, frozen=True):
    """A pod of an autoscaled workload."""

    uid: str
    pod: Pod
    recommended: Mapping[str, ContainerRecommendation]
    age_us: int
    is_pending: bool = False
    had_quick_oom: bool = False


class Update(Struct, frozen=True):
    """A pod that is to be changed."""

    uid: str
    why: WhyUpdated
    grows: bool
    """Whether any request is to be larger."""
    change: float
    """By how much of them requests change in total; 0.5 is half."""


def updates(pods: Iterable[UpdatedPod]) -> list[Update]:
    """Return the pods to change, those that grow first, then by the size of the change (``GetSortedPods``)."""
    wanted = [update for pod in pods if (update := _update(pod)) is not None]
    return sorted(wanted, key=lambda update: (not update.grows, -update.change))


def _update(pod: UpdatedPod) -> Update | None:
    is_outside, grows = False, False
    requested: dict[str, int] = {}
    recommended: dict[str, int] = {}
    for container in pod.pod.spec.containers:
        found = pod.recommended.get(container.name)
        for resource, target in ({} if found is None else found.target).items():
            assert found is not None
            recommended[resource] = recommended.get(resource, 0) + target.milli_value
            request = container.resources.requests.get(resource)
            if request is None:
                is_outside = grows = True
                continue
            requested[resource] = requested.get(resource, 0) + request.milli_value
            grows = grows or target.milli_value > request.milli_value
            lower, upper = found.lower_bound.get(resource), found.upper_bound.get(resource)
            is_outside = (
                is_outside or (lower is not None and request < lower) or (upper is not None and request > upper)
            )
    change = 0.0
    for resource, total in recommended.items():
        asked = max(float(requested.get(resource, 0)), 1.0)
        change += abs(asked - total) / asked
    if is_outside:
        return Update(pod.uid, WhyUpdated.OUT_OF_RANGE, grows, change)
    if pod.had_quick_oom:
        return Update(pod.uid, WhyUpdated.QUICK_OOM, grows, change) if change else None
    if pod.age_us >= _LIFETIME_US and change >= _LEAST_CHANGE:
        return Update(pod.uid, WhyUpdated.LONG_LIVED, grows, change)
    return None


class Group(Struct, frozen=True):
    """The pods of one workload, and how many of them are being changed (``singleGroupStats``)."""

    configured: int
    """The replicas it is set to."""
    running: int
    changed: int = 0

    @property
    def may_change(self) -> bool:
        """Whether another running pod may be disrupted (``isPodDisruptable``)."""
        tolerance = int(self.configured * _TOLERANCE)
        alive = self.running - self.changed
        is_whole = self.configured == self.running and tolerance == 0 and self.changed == 0
        return alive > self.configured - tolerance or is_whole

    def with_change(self) -> Group:
        """Return the group with one more pod that is being changed."""
        return replace(self, changed=self.changed + 1)


def may_update(pods: Sequence[UpdatedPod], least: int | None) -> bool:
    """Whether a workload has enough live pods for any to be changed."""
    return len(pods) >= (MIN_REPLICAS if least is None else least)
