"""The resources of a pod and a node as the scheduler counts them: whole numbers, rounded up.

cpu counts in thousandths, everything else in whole units. A resource the scheduler knows nothing about is left out.

Source: Kubernetes v1.36 pkg/scheduler/framework/types.go (Resource, CalculateResource), pkg/scheduler/util and
pkg/scheduler/framework/plugins/noderesources/{fit,resource_allocation}.go (NewFit, calculatePodResourceRequest).
"""

from __future__ import annotations

from msgspec import Struct

from podqos.model.effective import as_charged, pod_requests, sum_of_containers
from podqos.model.pod import Container, Pod
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    ResourceList,
    is_extended,
    is_hugepages,
    is_pod_level,
)

Amounts = dict[str, int]

# What a container that requests nothing counts for when nodes are compared, never when they are checked
# (pkg/scheduler/util/pod_resources.go).
_UNSTATED: ResourceList = {CPU: Quantity.of_milli(100), MEMORY: Quantity.of_units(200 * 2**20)}


class Demand(Struct, frozen=True, gc=False):
    """The resources that one pod takes from a node."""

    requested: Amounts
    """Effective requests; what the node must have left."""
    scored_cpu_milli: int
    scored_memory_bytes: int
    """The same for scoring, for a pod on a node: something is assumed for containers that state nothing."""
    asking_cpu_milli: int
    asking_memory_bytes: int
    """The same for the pod to place, by containers and overhead alone: LeastAllocated is built without pod-level
    resources, and something is assumed even if another container states it."""


def demand_of(pod: Pod, profile: Profile = LATEST) -> Demand:
    """Return the resources of ``pod`` as scheduled, used as given (see ``admission.defaulting``)."""
    requests = pod_requests(pod, pod_level=profile.pod_level_resources)
    asking = _scored_requests(pod, _UNSTATED, pod_level=False)
    assumed = _assumed(pod, requests, profile)
    scored = _scored_requests(pod, assumed, pod_level=profile.pod_level_resources) if assumed else requests
    amounts = (
        each for found in (scored, asking) for each in (found.get(CPU, ZERO).milli_value, found.get(MEMORY, ZERO).value)
    )
    return Demand(counted(requests), *amounts)


def held_by(pod: Pod, demand: Demand, profile: Profile = LATEST) -> Demand:
    """Return what a pod counts for that is on a node; ``demand`` unless its status shows a resize that is not done."""
    if not profile.in_place_resize:
        return demand
    charged = as_charged(pod, pod_level_status=profile.pod_level_resize)
    return demand if charged is pod else demand_of(charged, profile)


def counted(resources: ResourceList) -> Amounts:
    """Return the amounts that take part in scheduling."""
    return {
        name: amount.milli_value if name == CPU else amount.value
        for name, amount in resources.items()
        if name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(name)
    }


def is_scalar(name: str) -> bool:
    """Whether the scheduler counts the resource in addition to cpu, memory and ephemeral storage."""
    return is_hugepages(name) or is_extended(name) or "kubernetes.io/" in name or name.startswith("attachable-volumes-")


def _assumed(pod: Pod, requests: ResourceList, profile: Profile) -> ResourceList:
    """Return what is assumed for containers that state nothing; pod-level requests speak for all of them."""
    own = pod.spec.resources
    if profile.pod_level_resources and own is not None and any(map(is_pod_level, own.requests)):
        return {name: amount for name, amount in _UNSTATED.items() if name not in requests}
    return _UNSTATED


def _scored_requests(pod: Pod, assumed: ResourceList, *, pod_level: bool) -> ResourceList:
    def requests_of(container: Container) -> ResourceList:
        return {**assumed, **container.resources.requests}

    total = sum_of_containers(pod, requests_of)
    own = pod.spec.resources
    for name in (CPU, MEMORY):
        if pod_level and own is not None and name in own.requests:
            total[name] = own.requests[name]
        if pod.spec.overhead and name in pod.spec.overhead:
            total[name] = total.get(name, ZERO) + pod.spec.overhead[name]
    return total
