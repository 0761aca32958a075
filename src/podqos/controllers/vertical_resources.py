"""What a VerticalPodAutoscaler makes of a container's resources.

Requests become the recommendation, between ``minAllowed`` and ``maxAllowed``. A limit keeps its proportion to the
request, unless only requests are controlled: then it stays, and the request does not exceed it.

Source: kubernetes/autoscaler vertical-pod-autoscaler/pkg/utils/vpa (capping.go, limit_and_request_scaling.go).
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from podqos.model.autoscaling import OFF, ContainerResourcePolicy
from podqos.model.pod import Container
from podqos.model.quantity import Quantity
from podqos.model.resources import QOS_RESOURCES

Amount = Callable[[str], Quantity | None]
"""The request to set of a resource; None leaves it as it is."""


def with_requests(container: Container, policy: ContainerResourcePolicy, amount_of: Amount) -> Container:
    """Return a container with other requests, and limits in proportion."""
    if policy.mode == OFF:
        return container
    stated = container.resources
    requests, limits = dict(stated.requests), dict(stated.limits)
    for resource in QOS_RESOURCES:
        amount = amount_of(resource) if resource in policy.resources else None
        if amount is None:
            continue
        was, limit = stated.requests.get(resource), stated.limits.get(resource)
        if policy.controlled_values == "RequestsOnly":
            amount = amount if limit is None else min(amount, limit)
        elif limit is not None:
            limits[resource] = _in_proportion(limit, was, amount)
        requests[resource] = amount
    return replace(container, resources=replace(stated, requests=requests, limits=limits))


def _in_proportion(limit: Quantity, request: Quantity | None, amount: Quantity) -> Quantity:
    """Return the limit that is to ``amount`` as it was to the request; without a request it is the amount itself."""
    if request is None or limit == request or not request.milli_value:
        return amount
    return Quantity.of_milli(limit.milli_value * amount.milli_value // request.milli_value, amount.format)
