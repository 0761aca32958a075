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


class PodCondition(Struct, frozen=True, gc=False):
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
    message = f"The node was low on resource: {shortage.resource}. "
    if profile.eviction_message_amounts:
        message += f"Threshold quantity: {shortage.threshold}, available: {shortage.available}. "
    if stats is None:
        return EvictionText(message)
    annotations: dict[str, str] = {}
    pod_request = _pod_level_memory_request(pod, stats, shortage.resource, profile)
    if pod_request is not None:
        used = _bytes(memory_bytes(stats.memory))
        message += _larger_consumption("Pod", pod.metadata.name, used, pod_request, shortage.resource)
        annotations |= {"offending_pod": pod.metadata.name, "offending_pod_usage": used}
    offenders = tuple(_containers_over_request(pod, stats, shortage.resource))
    for name, used, request in offenders:
        message += (
            _larger_consumption("Container", name, used, request, shortage.resource)
            if profile.eviction_message_amounts
            else f"Container {name} was using {used}, which exceeds its request of {request.canonical()}. "
        )
    annotations |= {
        "offending_containers": ",".join(name for name, _, _ in offenders),
        "offending_containers_usage": ",".join(used for _, used, _ in offenders),
        "starved_resource": shortage.resource,
    }
    return EvictionText(message, annotations)


def local_storage_text(excess: LocalStorageExcess) -> EvictionText:
    """Return what a pod carries that exceeded a limit of its own."""
    limit = excess.limit.canonical()
    if excess.kind is LocalStorageLimit.EMPTY_DIR:
        return EvictionText(f'Usage of EmptyDir volume "{excess.name}" exceeds the limit "{limit}". ')
    if excess.kind is LocalStorageLimit.POD:
        return EvictionText(f"Pod ephemeral local storage usage exceeds the total limit of containers {limit}. ")
    return EvictionText(f'Container {excess.name} exceeded its local ephemeral storage limit "{limit}". ')


def disruption_condition(message: str) -> PodCondition:
    """Return the condition of a pod that the node itself gave up."""
    return PodCondition("DisruptionTarget", "True", "TerminationByKubelet", message)


def node_condition_text(conditions: Iterable[NodeCondition]) -> str:
    """Return why a new pod is not admitted. Upstream lists several conditions in no order; here they are sorted."""
    return f"The node had condition: [{' '.join(sorted(conditions))}]. "


def _larger_consumption(kind: str, name: str, used: str, request: Quantity, resource: str) -> str:
    return f"{kind} {name} was using {used}, request is {request.canonical()}, has larger consumption of {resource}. "


def _pod_level_memory_request(pod: Pod, stats: PodStats, resource: str, profile: Profile) -> Quantity | None:
    """Return the pod-level request to quote, if any: quoted even where the pod is below it."""
    if resource != MEMORY or not profile.pod_level_resources or stats.memory is None or not pod_level_is_set(pod):
        return None
    assert pod.spec.resources is not None
    return pod.spec.resources.requests.get(MEMORY)


def _containers_over_request(pod: Pod, stats: PodStats, resource: str) -> Iterable[tuple[str, str, Quantity]]:
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
            yield measured.name, _bytes(used), request


def _container_bytes(container: ContainerStats, resource: str) -> int | None:
    if resource == MEMORY:
        return container.memory.working_set_bytes if container.memory is not None else None
    if resource == EPHEMERAL_STORAGE and container.rootfs is not None and container.logs is not None:
        rootfs, logs = container.rootfs.used_bytes, container.logs.used_bytes
        return rootfs + logs if rootfs is not None and logs is not None else None
    return None


def _bytes(amount: int) -> str:
    return Quantity.of_units(amount, "BinarySI").canonical()
