"""Keep sizes within what a namespace and a VerticalPodAutoscaler allow, and say what that costs.

LimitRanges of type Container have a least and a most for requests and limits, and a largest ratio of limit to request
(Kubernetes v1.36 plugin/pkg/admission/limitranger). A VPA that changes a container keeps its requests between
``minAllowed`` and ``maxAllowed``, whatever is written. A size that a bound cuts below the need is not advised as
enough: ``is_below_need``. What a quota has left is of all pods together, so nothing is cut for it; it is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from fractions import Fraction

from msgspec import Struct

from podqos.model.autoscaling import VerticalPodAutoscaler
from podqos.model.policy import LimitRange, ResourceQuota
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import CPU, MEMORY, QOS_RESOURCES, ResourceList, ResourceRequirements


class Bound(StrEnum):
    """What an amount was held to."""

    LEAST = "Least"
    MOST = "Most"
    RATIO = "Ratio"
    """The limit may be no more than so many times the request, which was raised."""
    DEFAULT = "Default"
    """A container without a limit would get one below its request, so that the limit is written."""


class BoundedAmount(Struct, frozen=True, rename="camel"):
    """An amount that is not what usage asks for."""

    field: str
    """``requests.memory`` and the like."""
    by: str
    """``LimitRange shop/limits``."""
    bound: Bound
    wanted: Quantity
    amount: Quantity
    is_below_need: bool = False
    """Whether the container was measured to need more."""


class Bounded(Struct, frozen=True):
    """Amounts within all bounds."""

    resources: ResourceRequirements
    changes: tuple[BoundedAmount, ...] = ()


class QuotaShortfall(Struct, frozen=True, rename="camel"):
    """What a quota has not got left."""

    quota: str
    resource: str
    """As the quota names it: ``requests.memory``."""
    added: Quantity
    left: Quantity


def bounded(
    resources: ResourceRequirements,
    limit_ranges: Iterable[LimitRange],
    autoscaler: VerticalPodAutoscaler | None = None,
    container: str = "",
) -> Bounded:
    """Return the amounts of a container within bounds, and what they changed."""
    amounts = _Amounts(resources)
    for limit_range in limit_ranges:
        by = f"LimitRange {_name(limit_range.metadata.namespace, limit_range.metadata.name)}"
        for item in limit_range.spec.limits:
            if item.type == "Container":
                amounts.hold_default(by, item.default or item.max)
                amounts.hold(by, item.min, item.max)
                amounts.hold_ratio(by, item.max_limit_request_ratio)
    if autoscaler is not None and autoscaler.changes(container):
        policy = autoscaler.policy_for(container)
        by = f"VerticalPodAutoscaler {_name(autoscaler.metadata.namespace, autoscaler.metadata.name)}"
        amounts.hold_requests(by, policy.min_allowed, policy.max_allowed)
    return Bounded(amounts.resources(), tuple(amounts.changes))


def quota_shortfalls(quotas: Iterable[ResourceQuota], added: Mapping[str, Quantity]) -> tuple[QuotaShortfall, ...]:
    """Return which quotas have not enough left; ``added`` is what all pods request more, by the quota's names.

    What is used is in a quota's status; one without counts as unused.
    """
    found = []
    for quota in quotas:
        for resource, hard in quota.spec.hard.items():
            # A quota may say memory for requests.memory.
            more = added.get(f"requests.{resource}" if resource in QOS_RESOURCES else resource)
            left = max(ZERO, hard - quota.status.used.get(resource, ZERO))
            if more is not None and more > ZERO and more > left:
                found.append(QuotaShortfall(_name(quota.metadata.namespace, quota.metadata.name), resource, more, left))
    return tuple(found)


class _Amounts:
    """Requests and limits that are being held to bounds."""

    def __init__(self, resources: ResourceRequirements) -> None:
        self._given = resources
        self._lists = {"requests": dict(resources.requests), "limits": dict(resources.limits)}
        self.changes: list[BoundedAmount] = []

    def resources(self) -> ResourceRequirements:
        return ResourceRequirements(self._lists["requests"], self._lists["limits"], self._given.claims)

    def hold_default(self, by: str, default: ResourceList) -> None:
        """State the limits that would be filled in and be too low; the most is the default where none is stated."""
        requests, limits = self._lists["requests"], self._lists["limits"]
        for name in (CPU, MEMORY):
            if name in requests and name not in limits and name in default and default[name] < requests[name]:
                limits[name] = requests[name]
                change = BoundedAmount(f"limits.{name}", by, Bound.DEFAULT, default[name], requests[name])
                self.changes.append(change)

    def hold(self, by: str, least: ResourceList, most: ResourceList) -> None:
        """Hold limits, and requests below them."""
        for side in ("limits", "requests"):
            for name in (CPU, MEMORY):
                self._set(by, (side, name), least.get(name), most.get(name))

    def hold_requests(self, by: str, least: ResourceList, most: ResourceList) -> None:
        for name in (CPU, MEMORY):
            self._set(by, ("requests", name), least.get(name), most.get(name))
            request, limit = self._lists["requests"].get(name), self._lists["limits"].get(name)
            was_equal = self._given.requests.get(name) == self._given.limits.get(name)
            if request is not None and limit is not None and (request > limit or (was_equal and request != limit)):
                # VPA keeps the ratio of limit and request.
                self._change(by, ("limits", name), Bound.LEAST if request > limit else Bound.MOST, request)

    def hold_ratio(self, by: str, ratios: ResourceList) -> None:
        for name, ratio in ratios.items():
            request, limit = self._lists["requests"].get(name), self._lists["limits"].get(name)
            if request is None or limit is None or limit.nanos * 10**9 <= request.nanos * ratio.nanos:
                continue
            least = Fraction(limit.nanos * 10**9, ratio.nanos)
            self._change(by, ("requests", name), Bound.RATIO, _rounded_up(least, limit, name))

    def _set(self, by: str, place: tuple[str, str], least: Quantity | None, most: Quantity | None) -> None:
        side, name = place
        amount = self._lists[side].get(name)
        if amount is None:
            return
        if least is not None and amount < least:
            self._change(by, place, Bound.LEAST, least)
        elif most is not None and amount > most:
            self._change(by, place, Bound.MOST, most)

    def _change(self, by: str, place: tuple[str, str], bound: Bound, amount: Quantity) -> None:
        side, name = place
        wanted = self._lists[side][name]
        self._lists[side][name] = amount
        is_below_need = bound is Bound.MOST and name == MEMORY and side == "limits"
        self.changes.append(BoundedAmount(f"{side}.{name}", by, bound, wanted, amount, is_below_need))


def _rounded_up(nanos: Fraction, like: Quantity, name: str) -> Quantity:
    unit = 10**6 if name == CPU else (1 << 20) * 10**9
    rounded = -(-nanos // unit) * unit
    amount = Quantity.of_milli(rounded // 10**6) if name == CPU else Quantity.of_units(rounded // 10**9, "BinarySI")
    return min(amount, like)


def _name(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name
