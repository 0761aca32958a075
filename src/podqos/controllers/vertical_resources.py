"""What a VerticalPodAutoscaler makes of a container's resources.

Requests become the recommendation, between ``minAllowed`` and ``maxAllowed``. A limit keeps its proportion to the
request, unless only requests are controlled: then it stays, and the request does not exceed it.

Source: kubernetes/autoscaler vertical-pod-autoscaler/pkg/utils/vpa (capping.go, limit_and_request_scaling.go).
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from podqos.model.autoscaling import OFF, ContainerRecommendation, ContainerResourcePolicy, VerticalPodAutoscaler
from podqos.model.pod import Container, Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import QOS_RESOURCES, ResourceList

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


def capped(found: ContainerRecommendation, policy: ContainerResourcePolicy) -> ContainerRecommendation:
    """Return a recommendation within the bounds of a policy (``applyVPAPolicy``)."""

    def bounded(amounts: ResourceList) -> ResourceList:
        return {name: _bounded(amount, name, policy) for name, amount in amounts.items() if name in policy.resources}

    return replace(
        found,
        target=bounded(found.target),
        lower_bound=bounded(found.lower_bound),
        upper_bound=bounded(found.upper_bound),
    )


def _bounded(amount: Quantity, resource: str, policy: ContainerResourcePolicy) -> Quantity:
    least, most = policy.min_allowed.get(resource), policy.max_allowed.get(resource)
    if least is not None and amount < least:
        amount = least
    return most if most is not None and amount > most else amount


def recommended(pod: Pod, autoscaler: VerticalPodAutoscaler) -> dict[str, ContainerRecommendation]:
    """Return the recommendations for the containers of a pod that an autoscaler changes, within its policy."""
    known = {found.container_name: found for found in autoscaler.recommendations}
    return {
        container.name: capped(known[container.name], autoscaler.policy_for(container.name))
        for container in pod.spec.containers
        if container.name in known and autoscaler.changes(container.name)
    }


def with_recommendations(pod: Pod, autoscaler: VerticalPodAutoscaler) -> Pod:
    """Return a pod as an autoscaler wants it; limits keep the proportion that they have in it."""
    targets = {name: found.target for name, found in recommended(pod, autoscaler).items()}
    containers = tuple(
        with_requests(container, autoscaler.policy_for(container.name), targets[container.name].get)
        if container.name in targets
        else container
        for container in pod.spec.containers
    )
    return pod if containers == pod.spec.containers else replace(pod, spec=replace(pod.spec, containers=containers))
