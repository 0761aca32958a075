"""Changes to a pod that its owner could make: another request, limit or priority, or Guaranteed.

Nothing is decided here: ``kubelet_counterfactual`` and ``kernel_counterfactual`` try whether a change would have
helped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from podqos.model.effective import pod_level_is_set
from podqos.model.pod import Container, EmptyDir, Pod, PodSpec, Volume
from podqos.model.profile import Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, QOS_RESOURCES, ResourceRequirements, is_pod_level
from podqos.qos.edits import Edit, edits_to_guaranteed

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


def with_limit(pod: Pod, container: str, resource: str, amount: int) -> Pod:
    """Return the pod with another limit of a container."""
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


def guaranteed(pod: Pod, used: Mapping[str, int]) -> Pod:
    """Return the pod with limits equal to requests; where neither is stated, as much memory as its containers use."""
    most = max(used.values(), default=0)

    def equal(resources: ResourceRequirements, used_bytes: int) -> ResourceRequirements:
        unknown = {CPU: SOME_CPU, MEMORY: in_mebibytes(used_bytes)}
        both = {
            name: resources.limits.get(name) or resources.requests.get(name) or unknown[name] for name in QOS_RESOURCES
        }
        return replace(resources, requests=resources.requests | both, limits=resources.limits | both)

    def container(each: Container) -> Container:
        return replace(each, resources=equal(each.resources, used.get(each.name, most)))

    spec = pod.spec
    own = None if spec.resources is None else equal(spec.resources, sum(used.values()))
    return _of(pod, replace(each_container(spec, container), resources=own))


def edits_for(pod: Pod, used: Mapping[str, int], profile: Profile) -> tuple[Edit, ...]:
    """Return the lines that make the pod Guaranteed, with the memory that ``guaranteed`` chose where none is stated."""

    def sized(each: Container) -> Container:
        stated = each.resources
        if each.name not in used or stated.limits.get(MEMORY) or stated.requests.get(MEMORY):
            return each
        chosen = {MEMORY: in_mebibytes(used[each.name])}
        return replace(each, resources=replace(stated, requests=stated.requests | chosen))

    if pod.spec.resources is not None:
        return edits_to_guaranteed(pod, profile)
    return edits_to_guaranteed(replace(pod, spec=each_container(pod.spec, sized)), profile)


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
