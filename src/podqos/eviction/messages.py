"""What an evicted pod carries: message, event annotations, condition.

These texts are part of Kubernetes' interface (people and tools search for them), so they are upstream's to the letter,
trailing blank included. Explanations in podqos' own words are made in ``report``.

Source: Kubernetes v1.36 pkg/kubelet/eviction/helpers.go (evictionMessage); up to 1.25 without amounts.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from podqos.eviction.local_storage import LocalStorageExcess, LocalStorageLimit
from podqos.eviction.signals import NodeCondition
from podqos.eviction.usage import memory_bytes
from podqos.model.effective import pod_level_is_set
from podqos.model.pod import Pod
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import NANOS, ZERO, Quantity
from podqos.model.resources import EPHEMERAL_STORAGE, MEMORY
from podqos.model.stats import ContainerStats, PodStats

REASON = "Evicted"
PHASE = "Failed"
CONDITION, BY_KUBELET = "DisruptionTarget", "TerminationByKubelet"
"""The condition of an evicted pod, and its reason if its node ended it. It outlives a reason of the status: a pod whose
containers exit with code 0 on SIGTERM ends as ``Succeeded``, without one.
"""
MADE_ROOM = "Pod was preempted by Kubelet to accommodate a critical pod."
NODE_SHUT_DOWN = "Pod was terminated in response to imminent node shutdown."
"""The other messages of that condition (pkg/kubelet/preemption, pkg/kubelet/nodeshutdown)."""

GUARD_COMPONENT = "podqos-guard"
"""Reports the Events of ``podqos guard``: nothing else in them differs from the kubelet's."""
GUARD_ANNOTATION = "podqos.dev/evicted-at"
"""Marks a pod that the guard evicts; changes with every eviction."""

# Each wording once: rendered here, and read back by ``message_reading``.
NODE_WAS_LOW = "The node was low on resource: {resource}. "
THRESHOLD_MET = "Threshold quantity: {threshold}, available: {available}. "
POD_USED = "Pod {pod} was using {used}, request is {request}, has larger consumption of {resource}. "
CONTAINER_USED = "Container {container} was using {used}, request is {request}, has larger consumption of {resource}. "
CONTAINER_USED_OLD = "Container {container} was using {used}, which exceeds its request of {request}. "
EMPTY_DIR_EXCEEDED = 'Usage of EmptyDir volume "{name}" exceeds the limit "{limit}". '
POD_STORAGE_EXCEEDED = "Pod ephemeral local storage usage exceeds the total limit of containers {limit}. "
CONTAINER_STORAGE_EXCEEDED = 'Container {name} exceeded its local ephemeral storage limit "{limit}". '
NODE_HAD_CONDITION = "The node had condition: [{conditions}]. "

STORAGE_EXCEEDED = {
    LocalStorageLimit.EMPTY_DIR: EMPTY_DIR_EXCEEDED,
    LocalStorageLimit.POD: POD_STORAGE_EXCEEDED,
    LocalStorageLimit.CONTAINER: CONTAINER_STORAGE_EXCEEDED,
}


class EvictedCondition(Struct, frozen=True, gc=False):
    """The condition an evicted pod gets."""

    type: str
    status: str
    reason: str
    message: str


class Shortage(Struct, frozen=True, gc=False):
    """What the node is short of: the numbers a message quotes."""

    resource: str
    threshold: Quantity
    available: Quantity


class EvictionText(Struct, frozen=True, gc=False):
    """Message and annotations of an eviction."""

    message: str
    annotations: dict[str, str] = {}


def pressure_text(shortage: Shortage, pod: Pod, stats: PodStats | None, profile: Profile = LATEST) -> EvictionText:
    """Return what a pod carries that was evicted because the node was short of something."""
    resource = shortage.resource
    message = NODE_WAS_LOW.format(resource=resource)
    if profile.eviction_message_amounts:
        message += THRESHOLD_MET.format(threshold=shortage.threshold, available=shortage.available)
    if stats is None:
        return EvictionText(message)
    annotations: dict[str, str] = {}
    pod_request = _pod_level_memory_request(pod, stats, resource, profile)
    if pod_request is not None:
        used = _bytes(memory_bytes(stats.memory))
        request = pod_request.canonical()
        message += POD_USED.format(pod=pod.metadata.name, used=used, request=request, resource=resource)
        annotations |= {"offending_pod": pod.metadata.name, "offending_pod_usage": used}
    offenders = tuple(_containers_over_request(pod, stats, resource))
    wording = CONTAINER_USED if profile.eviction_message_amounts else CONTAINER_USED_OLD
    for name, used, request in offenders:
        message += wording.format(container=name, used=used, request=request, resource=resource)
    annotations |= {
        "offending_containers": ",".join(name for name, _, _ in offenders),
        "offending_containers_usage": ",".join(used for _, used, _ in offenders),
        "starved_resource": resource,
    }
    return EvictionText(message, annotations)


def local_storage_text(excess: LocalStorageExcess) -> EvictionText:
    """Return what a pod carries that exceeded a limit of its own."""
    return EvictionText(STORAGE_EXCEEDED[excess.kind].format(name=excess.name, limit=excess.limit.canonical()))


def disruption_condition(message: str) -> EvictedCondition:
    """Return the condition of a pod that the node itself gave up."""
    return EvictedCondition(CONDITION, "True", BY_KUBELET, message)


def node_condition_text(conditions: Iterable[NodeCondition]) -> str:
    """Return why a new pod is not admitted. Upstream lists several conditions in no order; here they are sorted."""
    return NODE_HAD_CONDITION.format(conditions=" ".join(sorted(conditions)))


def _pod_level_memory_request(pod: Pod, stats: PodStats, resource: str, profile: Profile) -> Quantity | None:
    """Return the pod-level request to quote, if any: quoted even where the pod is below it."""
    if resource != MEMORY or not profile.pod_level_resources or stats.memory is None or not pod_level_is_set(pod):
        return None
    assert pod.spec.resources is not None
    return pod.spec.resources.requests.get(MEMORY)


def _containers_over_request(pod: Pod, stats: PodStats, resource: str) -> Iterable[tuple[str, str, str]]:
    """Yield name, usage and request of the containers above their own request, in the order of the statistics.

    Ephemeral containers cannot request anything and would always be to blame, so they are left out.
    """
    requests: dict[str, Quantity] = {}
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        requests.setdefault(container.name, container.resources.requests.get(resource, ZERO))
    for measured in stats.containers or ():
        request = requests.get(measured.name)
        used = _container_bytes(measured, resource)
        if request is not None and used is not None and used * NANOS > request.nanos:
            yield measured.name, _bytes(used), request.canonical()


def _container_bytes(container: ContainerStats, resource: str) -> int | None:
    if resource == MEMORY:
        return container.memory.working_set_bytes if container.memory is not None else None
    if resource == EPHEMERAL_STORAGE and container.rootfs is not None and container.logs is not None:
        rootfs, logs = container.rootfs.used_bytes, container.logs.used_bytes
        return rootfs + logs if rootfs is not None and logs is not None else None
    return None


def _bytes(amount: int) -> str:
    return Quantity.of_units(amount, "BinarySI").canonical()
