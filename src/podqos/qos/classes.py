"""The QoS class of a pod, and the facts that decided it.

One pass over the containers finds three facts: which cpu and memory limits are missing, and what requests and
limits add up to over the pod. The class follows from them and from nothing else, so the facts *are* the reasons;
wording them is the business of ``report``.

Source: Kubernetes v1.36 pkg/apis/core/v1/helper/qos/qos.go. A pod is used as given; the API server's defaulting
(requests from limits) comes before and is in ``admission.defaulting``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from podqos.model.effective import sum_of_containers
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import ZERO, Format, Quantity
from podqos.model.resources import CPU, MEMORY, QOS_RESOURCES, ResourceRequirements


class Place(Struct, frozen=True, gc=False):
    """Where resources stand in a pod: a container, or the pod itself."""

    path: str
    """``spec.containers[0]``, ``spec.initContainers[1]`` or ``spec``."""
    container: str
    """The container's name; empty for the pod itself."""

    @property
    def is_pod(self) -> bool:
        """Whether this is the pod itself."""
        return self.path == "spec"


class Missing(Struct, frozen=True, gc=False):
    """A limit above zero that Guaranteed would need and that is not there."""

    place: Place
    resource: str
    requested: Quantity | None


class Difference(Struct, frozen=True, gc=False):
    """A place whose request and limit differ."""

    place: Place
    request: Quantity | None
    limit: Quantity | None


class Unequal(Struct, frozen=True, gc=False):
    """A resource whose requests and limits add up to different amounts over the pod."""

    resource: str
    requests: Quantity
    limits: Quantity
    differences: tuple[Difference, ...]


class Classification(Struct, frozen=True, gc=False):
    """The class of a pod with the facts that decided it."""

    qos_class: QOSClass
    decided_by: Literal["containers", "pod"]
    """Pod-level resources, where present, take the decision away from the containers."""
    missing_limits: tuple[Missing, ...] = ()
    unequal: tuple[Unequal, ...] = ()


def classify(pod: Pod, profile: Profile = LATEST) -> Classification:
    """Return the class of ``pod`` exactly as written, with its reasons."""
    decided_by: Literal["containers", "pod"] = "containers"
    if profile.pod_level_resources and pod.spec.resources is not None:
        decided_by = "pod"

    nothing_set = True
    missing: list[Missing] = []
    request_sums = {CPU: 0, MEMORY: 0}
    limit_sums = {CPU: 0, MEMORY: 0}
    for place, resources in deciding_resources(pod, profile):
        requests, limits = resources.requests, resources.limits
        for name in QOS_RESOURCES:
            request = requests.get(name)
            limit = limits.get(name)
            if request is not None and request.nanos > 0:
                nothing_set = False
                request_sums[name] += request.nanos
            if limit is not None and limit.nanos > 0:
                nothing_set = False
                limit_sums[name] += limit.nanos
            else:
                missing.append(Missing(place, name, request))

    if nothing_set:
        return Classification(QOSClass.BEST_EFFORT, decided_by, tuple(missing))
    if not missing and request_sums == limit_sums:
        return Classification(QOSClass.GUARANTEED, decided_by)
    unequal = tuple(
        _unequal(pod, name, request_sums[name], limit_sums[name], profile)
        for name in QOS_RESOURCES
        if request_sums[name] != limit_sums[name]
    )
    return Classification(QOSClass.BURSTABLE, decided_by, tuple(missing), unequal)


def deciding_resources(pod: Pod, profile: Profile = LATEST) -> Iterator[tuple[Place, ResourceRequirements]]:
    """Yield the resources that decide the class, with their places.

    Ephemeral containers never count; init containers since 1.16; the pod's own resources, where present, count alone.
    """
    spec = pod.spec
    if profile.pod_level_resources and spec.resources is not None:
        yield Place("spec", ""), spec.resources
        return
    for index, container in enumerate(spec.containers):
        yield Place(f"spec.containers[{index}]", container.name), container.resources
    if profile.init_containers_decide_class:
        for index, container in enumerate(spec.init_containers):
            yield Place(f"spec.initContainers[{index}]", container.name), container.resources


def _unequal(pod: Pod, name: str, request_nanos: int, limit_nanos: int, profile: Profile) -> Unequal:
    notation: Format = "BinarySI" if name == MEMORY else "DecimalSI"
    differences = tuple(
        Difference(place, resources.requests.get(name), resources.limits.get(name))
        for place, resources in deciding_resources(pod, profile)
        if resources.requests.get(name, ZERO) != resources.limits.get(name, ZERO)
    )
    return Unequal(name, Quantity(request_nanos, notation), Quantity(limit_nanos, notation), differences)


class Edit(Struct, frozen=True, gc=False):
    """One line of a manifest to write: ``path`` becomes ``value``; no value means one has to be chosen."""

    path: str
    value: Quantity | None
    replaces: Quantity | None = None


def edits_to_guaranteed(pod: Pod, profile: Profile = LATEST) -> tuple[Edit, ...]:
    """Return the fewest lines that make the pod Guaranteed once the API server has defaulted it.

    A limit alone is enough, because the request follows it. Where request and limit differ the request is raised:
    that changes what is reserved, never what the container may use.
    """
    edits: list[Edit] = []
    # A pod-level request that is left out becomes what the containers request together.
    implied = sum_of_containers(pod, lambda container: container.resources.limits | container.resources.requests)
    for place, resources in deciding_resources(pod, profile):
        for name in QOS_RESOURCES:
            limit = resources.limits.get(name)
            written = resources.requests.get(name)
            request = implied.get(name) if written is None and place.is_pod else written
            if not limit:
                value = request or None
                edits.append(Edit(f"{place.path}.resources.limits.{name}", value, limit))
                if request is not None and not request:
                    # A zero would stay and differ from any limit.
                    edits.append(Edit(f"{place.path}.resources.requests.{name}", value, written))
            elif request is not None and request != limit:
                edits.append(Edit(f"{place.path}.resources.requests.{name}", limit, written))
    return tuple(edits)


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
