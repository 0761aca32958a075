"""Changes to a pod that its owner could make: another request, limit or priority, or Guaranteed.

Nothing is decided here: ``kubelet_counterfactual`` and ``kernel_counterfactual`` try whether a change would have
helped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec.structs import replace

from podqos.model.effective import pod_level_is_set
from podqos.model.pod import Container, EmptyDir, Pod, PodSpec, Volume
from podqos.model.profile import Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, QOS_RESOURCES, ResourceRequirements, is_pod_level
from podqos.qos.classes import deciding_resources
from podqos.qos.edits import Edit

MIB = 1 << 20
SOME_CPU = Quantity.parse("100m")
"""For a container that states nothing about CPU; what it needs is not known here."""


def holder_of(pod: Pod, container: str, resource: str, profile: Profile) -> str | None:
    """Return whose request counts: the container's, or None for the pod's own, which overrides it once set."""
    alone = profile.pod_level_resources and pod_level_is_set(pod) and is_pod_level(resource)
    return None if alone else container


def resources_of(pod: Pod, container: str | None) -> ResourceRequirements:
    """Return what a container states, or with None the pod itself."""
    spec = pod.spec
    if container is None:
        assert spec.resources is not None
        return spec.resources
    every = (*spec.containers, *spec.init_containers, *spec.ephemeral_containers)
    return next(each.resources for each in every if each.name == container)


def with_request(pod: Pod, container: str | None, resource: str, amount: int) -> Pod:
    """Return the pod with another request of a container, or with None of the pod itself."""
    return _stating(pod, container, lambda old: replace(old, requests=old.requests | {resource: _bytes(amount)}))


def with_limit(pod: Pod, container: str | None, resource: str, amount: int) -> Pod:
    """Return the pod with another limit of a container, or with None of the pod itself."""
    return _stating(pod, container, lambda old: replace(old, limits=old.limits | {resource: _bytes(amount)}))


def with_size_limit(pod: Pod, name: str, amount: int) -> Pod:
    """Return the pod with another size limit of an emptyDir."""

    def sized(volume: Volume) -> Volume:
        if volume.name != name:
            return volume
        directory = volume.empty_dir or EmptyDir()
        return replace(volume, empty_dir=replace(directory, size_limit=_bytes(amount)))

    return replace(pod, spec=replace(pod.spec, volumes=tuple(map(sized, pod.spec.volumes))))


def with_priority(pod: Pod, priority: int) -> Pod:
    """Return the pod with another priority."""
    return replace(pod, spec=replace(pod.spec, priority=priority))


def guaranteed(pod: Pod, used: Mapping[str, int], profile: Profile) -> Pod:
    """Return the pod with limits equal to requests.

    Memory is what is stated, the limit before the request, and never less than its containers use with some headroom:
    a limit of what is in use kills at the next allocation.
    """
    spec = pod.spec
    if spec.resources is not None and holder_of(pod, "", MEMORY, profile) is None:
        return _of(pod, replace(spec, resources=_equal(spec.resources, sum(used.values()))))
    most = max(used.values(), default=0)

    def container(each: Container) -> Container:
        stated = MEMORY in each.resources.limits or MEMORY in each.resources.requests
        return replace(each, resources=_equal(each.resources, used.get(each.name, 0 if stated else most)))

    return _of(pod, each_container(spec, container))


def _equal(resources: ResourceRequirements, used_bytes: int) -> ResourceRequirements:
    both = {name: resources.limits.get(name) or resources.requests.get(name) for name in QOS_RESOURCES}
    least = in_mebibytes(with_headroom(used_bytes))
    stated = both[MEMORY]
    equal = {CPU: both[CPU] or SOME_CPU, MEMORY: least if stated is None or stated < least else stated}
    return replace(resources, requests=resources.requests | equal, limits=resources.limits | equal)


def edits_for(pod: Pod, used: Mapping[str, int], profile: Profile) -> tuple[Edit, ...]:
    """Return the lines that make the pod Guaranteed as ``guaranteed`` does, once the API server has defaulted it.

    A request that is left out follows its limit. Of a CPU about which nothing is stated the value has to be chosen.
    """
    made = dict(deciding_resources(guaranteed(pod, used, profile), profile))
    edits: list[Edit] = []
    for place, stated in deciding_resources(pod, profile):
        for name in QOS_RESOURCES:
            value = made[place].limits[name]
            limit, request = stated.limits.get(name), stated.requests.get(name)
            is_unknown = name == CPU and not limit and not request
            written = None if is_unknown else value
            if not limit or limit != value:
                edits.append(Edit(f"{place.path}.resources.limits.{name}", written, limit))
            # The request of a pod as a whole would become what its containers request.
            is_left_out = request is None and not place.is_pod
            if not is_left_out and request != value:
                edits.append(Edit(f"{place.path}.resources.requests.{name}", written, request))
    return tuple(edits)


def edits_between(before: Pod, after: Pod) -> tuple[Edit, ...]:
    """Return the lines in which the resources of a changed pod, and the sizes of its volumes, differ."""
    old, new = dict(_lines(before)), dict(_lines(after))
    return tuple(Edit(path, value, old.get(path)) for path, value in new.items() if value != old.get(path))


def _lines(pod: Pod) -> Iterator[tuple[str, Quantity]]:
    spec = pod.spec
    places = [(f"spec.containers[{at}]", container.resources) for at, container in enumerate(spec.containers)]
    places += ((f"spec.initContainers[{at}]", container.resources) for at, container in enumerate(spec.init_containers))
    places += () if spec.resources is None else (("spec", spec.resources),)
    for path, stated in places:
        for which, amounts in (("limits", stated.limits), ("requests", stated.requests)):
            yield from ((f"{path}.resources.{which}.{name}", amount) for name, amount in amounts.items())
    for at, volume in enumerate(spec.volumes):
        if volume.empty_dir is not None and volume.empty_dir.size_limit is not None:
            yield f"spec.volumes[{at}].emptyDir.sizeLimit", volume.empty_dir.size_limit


HEADROOM_PERCENT = 20
"""How much more than what is in use a memory limit has to be, to be offered: use is never the same twice."""


def with_headroom(used_bytes: int) -> int:
    """Return the least memory limit for what uses this much."""
    return -(-used_bytes * (100 + HEADROOM_PERCENT) // 100)


def _bytes(amount: int) -> Quantity:
    return Quantity.of_units(amount, "BinarySI")


def in_mebibytes(amount: int) -> Quantity:
    """Return an amount of memory that is at least this much, in whole mebibytes."""
    return _bytes(max(1, -(-amount // MIB)) * MIB)


def _stating(pod: Pod, container: str | None, change: Callable[[ResourceRequirements], ResourceRequirements]) -> Pod:
    spec = pod.spec
    if container is None:
        assert spec.resources is not None
        return _of(pod, replace(spec, resources=change(spec.resources)))

    def stating(each: Container) -> Container:
        return replace(each, resources=change(each.resources)) if each.name == container else each

    return _of(pod, each_container(spec, stating))


def each_container(spec: PodSpec, change: Callable[[Container], Container]) -> PodSpec:
    """Return a spec with all its containers changed."""
    containers, inits = (tuple(map(change, given)) for given in (spec.containers, spec.init_containers))
    return replace(spec, containers=containers, init_containers=inits)


def _of(pod: Pod, spec: PodSpec) -> Pod:
    """Return the pod with a spec. The class that the API server recorded was that of the old one."""
    return replace(pod, spec=spec, status=replace(pod.status, qos_class=None))
