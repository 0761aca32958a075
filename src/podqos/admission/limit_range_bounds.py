"""LimitRange bounds: what a namespace does not allow, once defaults are filled in.

Nothing is changed here; the defaults are in ``limit_range``.

Source: Kubernetes v1.36 plugin/pkg/admission/limitranger/admission.go (PodValidateLimitFunc,
PersistentVolumeClaimValidateLimitFunc). Upstream walks maps in random order; here bounds come min, max, ratio, and by
the names of the resources.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from msgspec import Struct

from podqos.admission.limit_range import CONTAINER, POD
from podqos.admission.refusal import Denied, joined
from podqos.model.effective import sum_of_containers
from podqos.model.pod import Pod
from podqos.model.policy import LimitRange, LimitRangeItem
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import QOS_RESOURCES, ResourceRequirements

# Above this many units upstream compares whole units, because thousandths would not fit 64 bits.
_MAX_VALUE = 2**63 - 1
_MAX_MILLI_VALUE = _MAX_VALUE // 1000


class LimitRangeBound(StrEnum):
    """Which bound was broken."""

    MIN = "min"
    MAX = "max"
    MAX_LIMIT_REQUEST_RATIO = "maxLimitRequestRatio"


class Fault(StrEnum):
    """What breaks it."""

    NO_REQUEST = "no request"
    NO_LIMIT = "no limit"
    REQUEST = "request"
    LIMIT = "limit"
    RATIO = "ratio"


class BoundSubject(Struct, frozen=True, gc=False):
    """What is checked against the bounds of which LimitRange."""

    limit_range: str
    type: str
    """``Container``, ``Pod`` or ``PersistentVolumeClaim``."""
    container: str = ""


class BoundViolation(Struct, frozen=True, gc=False):
    """A bound that a container, a pod or a claim breaks."""

    subject: BoundSubject
    bound: LimitRangeBound
    resource: str
    allowed: Quantity
    fault: Fault
    found: Quantity | None = None
    ratio: float | None = None

    def __str__(self) -> str:
        """Return the API server's message."""
        kind = self.subject.type
        if self.bound is LimitRangeBound.MAX_LIMIT_REQUEST_RATIO:
            because = f"provided ratio is {self.ratio:f}" if self.ratio is not None else self._missing()
            return f"{self.resource} max limit to request ratio per {kind} is {self.allowed}, but {because}"
        usage = f"{self.bound}imum {self.resource} usage per {kind} is {self.allowed}"
        if self.found is None:
            return f"{usage}.  {self.fault.capitalize()} is specified"
        return f"{usage}, but {self.fault} is {self.found}"

    def _missing(self) -> str:
        return f"{self.fault} is specified or {self.fault.removeprefix('no ')} is 0"


def violations(pod: Pod, limit_range: LimitRange) -> tuple[BoundViolation, ...]:
    """Return every bound of ``limit_range`` that the pod or one of its containers breaks."""
    found: list[BoundViolation] = []
    name = limit_range.metadata.name
    for item in limit_range.spec.limits:
        if item.type == CONTAINER:
            for container in (*pod.spec.containers, *pod.spec.init_containers):
                found += _broken(item, BoundSubject(name, CONTAINER, container.name), container.resources)
        elif item.type == POD:
            found += _broken(item, BoundSubject(name, POD), _pod_sums(pod))
    return tuple(found)


class LimitRangeDenied(Denied, frozen=True, gc=False):
    """The rejection of a LimitRange, with the violated bounds."""

    violations: tuple[BoundViolation, ...] = ()


def first_denial(pod: Pod, limit_ranges: Sequence[LimitRange]) -> LimitRangeDenied | None:
    """Return the rejection of the first violated LimitRange, as the API server does."""
    for limit_range in limit_ranges:
        found = violations(pod, limit_range)
        if found:
            return LimitRangeDenied(joined(str(violation) for violation in found), found)
    return None


def _pod_sums(pod: Pod) -> ResourceRequirements:
    """Return what the containers add up to, replaced by the pod's own cpu and memory; overhead is left out."""
    requests = sum_of_containers(pod, lambda container: container.resources.requests)
    limits = sum_of_containers(pod, lambda container: container.resources.limits)
    own = pod.spec.resources
    if own is not None:
        requests |= {name: own.requests[name] for name in QOS_RESOURCES if name in own.requests}
        limits |= {name: own.limits[name] for name in QOS_RESOURCES if name in own.limits}
    return ResourceRequirements(requests, limits)


def _broken(item: LimitRangeItem, subject: BoundSubject, resources: ResourceRequirements) -> Iterator[BoundViolation]:
    for amounts, check in (
        (item.min, _below),
        (item.max, _above),
        (item.max_limit_request_ratio, _beyond_ratio),
    ):
        for name, bound in sorted(amounts.items()):
            violation = check(subject, name, bound, resources.requests.get(name), resources.limits.get(name))
            if violation is not None:
                yield violation


def _below(
    subject: BoundSubject, name: str, least: Quantity, request: Quantity | None, limit: Quantity | None
) -> BoundViolation | None:
    """Check a minimum: the request must be there and reach it; so must a limit, if there is one."""
    asked, ceiling, bound = _comparable(request, limit, least)
    if request is None:
        return BoundViolation(subject, LimitRangeBound.MIN, name, least, Fault.NO_REQUEST)
    if asked < bound:
        return BoundViolation(subject, LimitRangeBound.MIN, name, least, Fault.REQUEST, request)
    if limit is not None and ceiling < bound:
        return BoundViolation(subject, LimitRangeBound.MIN, name, least, Fault.LIMIT, limit)
    return None


def _above(
    subject: BoundSubject, name: str, most: Quantity, request: Quantity | None, limit: Quantity | None
) -> BoundViolation | None:
    """Check a maximum: the limit must be there and keep to it; so must the request."""
    asked, ceiling, bound = _comparable(request, limit, most)
    if limit is None:
        return BoundViolation(subject, LimitRangeBound.MAX, name, most, Fault.NO_LIMIT)
    if ceiling > bound:
        return BoundViolation(subject, LimitRangeBound.MAX, name, most, Fault.LIMIT, limit)
    if request is not None and asked > bound:
        return BoundViolation(subject, LimitRangeBound.MAX, name, most, Fault.REQUEST, request)
    return None


def _beyond_ratio(
    subject: BoundSubject, name: str, most: Quantity, request: Quantity | None, limit: Quantity | None
) -> BoundViolation | None:
    """Check a ratio: both must be there and not zero, and the limit at most so many times the request."""
    asked, ceiling, _ = _comparable(request, limit, most)
    if request is None or asked == 0:
        return BoundViolation(subject, LimitRangeBound.MAX_LIMIT_REQUEST_RATIO, name, most, Fault.NO_REQUEST)
    if limit is None or ceiling == 0:
        return BoundViolation(subject, LimitRangeBound.MAX_LIMIT_REQUEST_RATIO, name, most, Fault.NO_LIMIT)
    ratio = ceiling / asked  # in floating point, as upstream
    in_milli = most.value <= _MAX_MILLI_VALUE
    if (ratio * 1000 > most.milli_value) if in_milli else (ratio > most.value):
        return BoundViolation(subject, LimitRangeBound.MAX_LIMIT_REQUEST_RATIO, name, most, Fault.RATIO, limit, ratio)
    return None


def _comparable(request: Quantity | None, limit: Quantity | None, bound: Quantity) -> tuple[int, int, int]:
    """Return the amounts in thousandths, or in whole units where one is too large for that."""
    request, limit = request or ZERO, limit or ZERO
    if max(request.value, limit.value, bound.value) <= _MAX_MILLI_VALUE:
        return request.milli_value, limit.milli_value, bound.milli_value
    return min(request.value, _MAX_VALUE), min(limit.value, _MAX_VALUE), min(bound.value, _MAX_VALUE)
