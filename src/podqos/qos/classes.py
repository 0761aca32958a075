"""The QoS class of a pod, and the facts that decided it.

The class follows from two facts: which cpu and memory limits are missing, and what requests and limits add up to over
the pod. So the facts *are* the reasons; ``report`` words them.

Source: Kubernetes v1.36 pkg/apis/core/v1/helper/qos/qos.go. A pod is used as given; the API server's defaulting
(requests from limits) comes before and is in ``admission.defaulting``. 1.37 compares container by container instead of
sums, which is the same for every pod whose requests are within its limits; no API server takes others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from podqos.model.effective import pod_level_is_set
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import ZERO, Format, Quantity
from podqos.model.resources import CPU, MEMORY, QOS_RESOURCES, ResourceList, ResourceRequirements


class ResourcePlace(Struct, frozen=True, gc=False):
    """Where resources stand in a pod: a container, or the pod itself."""

    path: str
    """``spec.containers[0]``, ``spec.initContainers[1]`` or ``spec``."""
    container: str
    """The container's name; empty for the pod itself."""

    @property
    def is_pod(self) -> bool:
        """Whether this is the pod itself."""
        return self.path == "spec"


class MissingLimit(Struct, frozen=True, gc=False):
    """A limit above zero that Guaranteed would need and that is not there."""

    place: ResourcePlace
    resource: str
    requested: Quantity | None


class Difference(Struct, frozen=True, gc=False):
    """A place whose request and limit differ."""

    place: ResourcePlace
    request: Quantity | None
    limit: Quantity | None


class Unequal(Struct, frozen=True, gc=False):
    """A resource whose requests and limits add up to different amounts over the pod."""

    resource: str
    requests: Quantity
    limits: Quantity
    differences: tuple[Difference, ...]


class Classification(Struct, frozen=True, gc=False):
    """The class of a pod with the facts that decided it; the facts are computed on demand."""

    qos_class: QOSClass
    pod: Pod
    profile: Profile

    @property
    def decided_by(self) -> Literal["containers", "pod"]:
        """Who decides: pod-level resources, where present, take the decision away from the containers."""
        return "pod" if _pod_decides(self.pod, self.profile) else "containers"

    @property
    def missing_limits(self) -> tuple[MissingLimit, ...]:
        """Every cpu and memory limit that Guaranteed would need and that is not there."""
        return tuple(
            MissingLimit(place, name, resources.requests.get(name))
            for place, resources in deciding_resources(self.pod, self.profile)
            for name in QOS_RESOURCES
            if not _nanos(resources.limits, name)
        )

    @property
    def unequal(self) -> tuple[Unequal, ...]:
        """The resources whose requests and limits add up to different amounts; empty for BestEffort."""
        if self.qos_class is QOSClass.BEST_EFFORT:
            return ()
        asked = list(deciding_resources(self.pod, self.profile))
        found = (_unequal(asked, name) for name in QOS_RESOURCES)
        return tuple(unequal for unequal in found if unequal.requests != unequal.limits)


def qos_class_of(pod: Pod, profile: Profile = LATEST) -> QOSClass:
    """Return the class the kubelet goes by: the one the API server recorded, if any, else the computed one."""
    return pod.status.qos_class or classify(pod, profile).qos_class


def classify(pod: Pod, profile: Profile = LATEST) -> Classification:
    """Return the class of ``pod`` exactly as written, with its reasons.

    Only amounts above zero count. Guaranteed needs both limits everywhere, and equal *sums* of requests and limits:
    containers are not compared one by one.
    """
    nothing_set = True
    limits_everywhere = True
    cpu_balance = memory_balance = 0  # limits less requests, in nanos
    for resources in _deciding(pod, profile):
        requests, limits = resources.requests, resources.limits
        if not requests and not limits:
            limits_everywhere = False
            continue
        cpu_limit, memory_limit = _nanos(limits, CPU), _nanos(limits, MEMORY)
        cpu_request, memory_request = _nanos(requests, CPU), _nanos(requests, MEMORY)
        if cpu_limit or memory_limit or cpu_request or memory_request:
            nothing_set = False
        if not cpu_limit or not memory_limit:
            limits_everywhere = False
        cpu_balance += cpu_limit - cpu_request
        memory_balance += memory_limit - memory_request

    if nothing_set:
        return Classification(QOSClass.BEST_EFFORT, pod, profile)
    if limits_everywhere and not cpu_balance and not memory_balance:
        return Classification(QOSClass.GUARANTEED, pod, profile)
    return Classification(QOSClass.BURSTABLE, pod, profile)


def _nanos(amounts: ResourceList, name: str) -> int:
    """Return an amount that counts for the class: none, zero and less all count as nothing."""
    amount = amounts.get(name)
    return amount.nanos if amount is not None and amount.nanos > 0 else 0


def _deciding(pod: Pod, profile: Profile) -> list[ResourceRequirements]:
    """Return the resources that decide the class.

    Ephemeral containers never count; init containers since 1.16; the pod's own resources, where present, count alone.
    """
    spec = pod.spec
    if spec.resources is not None and _pod_decides(pod, profile):
        return [spec.resources]
    resources = [container.resources for container in spec.containers]
    if spec.init_containers and profile.init_containers_decide_class:
        resources += [container.resources for container in spec.init_containers]
    return resources


def _pod_decides(pod: Pod, profile: Profile) -> bool:
    """Whether pod-level resources decide; since 1.37 they have to state something."""
    if not profile.pod_level_resources or pod.spec.resources is None:
        return False
    return profile.empty_pod_level_decides_class or pod_level_is_set(pod)


def deciding_resources(pod: Pod, profile: Profile = LATEST) -> Iterator[tuple[ResourcePlace, ResourceRequirements]]:
    """Yield the resources that decide the class, with their places."""
    decisive = _deciding(pod, profile)
    if decisive and decisive[0] is pod.spec.resources:
        yield ResourcePlace("spec", ""), decisive[0]
        return
    regular = len(pod.spec.containers)
    for index, (container, resources) in enumerate(
        zip((*pod.spec.containers, *pod.spec.init_containers), decisive, strict=False)
    ):
        is_regular = index < regular
        path = f"spec.containers[{index}]" if is_regular else f"spec.initContainers[{index - regular}]"
        yield ResourcePlace(path, container.name), resources


def _unequal(asked: list[tuple[ResourcePlace, ResourceRequirements]], name: str) -> Unequal:
    notation: Format = "BinarySI" if name == MEMORY else "DecimalSI"
    return Unequal(
        resource=name,
        requests=Quantity(sum(_nanos(resources.requests, name) for _, resources in asked), notation),
        limits=Quantity(sum(_nanos(resources.limits, name) for _, resources in asked), notation),
        differences=tuple(
            Difference(place, resources.requests.get(name), resources.limits.get(name))
            for place, resources in asked
            if resources.requests.get(name, ZERO) != resources.limits.get(name, ZERO)
        ),
    )


def class_per_resource(resources: ResourceRequirements) -> dict[str, QOSClass]:
    """Return the class of each of cpu and memory of one container on its own: the secondary view of OKD.

    ``0 < requests == limits`` is Guaranteed, nothing set is BestEffort, everything between is Burstable.
    """
    view: dict[str, QOSClass] = {}
    for name in QOS_RESOURCES:
        limit = resources.limits.get(name, ZERO)
        request = resources.requests.get(name, ZERO)
        if not request and not limit:
            view[name] = QOSClass.BEST_EFFORT
        elif request == limit:
            view[name] = QOSClass.GUARANTEED
        else:
            view[name] = QOSClass.BURSTABLE
    return view
