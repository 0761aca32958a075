"""Two versions of a pod: what differs that can affect its class or place, and whether a running one can be resized.

Amounts are those of the pods as stored, so a default that a LimitRange fills in counts like one that was written. The
checks of a resize are those of ``admission.resize``. Whether the node has room is the kubelet's to say, and is not
judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.pod_validation import validate_pod
from podqos.admission.resize import BelowUsage, below_usage, validate_resize
from podqos.model.pod import Container, Pod, QOSClass
from podqos.model.profile import Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY, NO_RESOURCES, QOS_RESOURCES, ResourceRequirements
from podqos.model.snapshot import PodUsage
from podqos.qos.cgroup_values import memory_limits
from podqos.qos.classes import classify


class DifferenceKind(StrEnum):
    """What kind of thing changed."""

    CONTAINER_ADDED = "ContainerAdded"
    CONTAINER_REMOVED = "ContainerRemoved"
    AMOUNT = "Amount"
    POD_AMOUNT = "PodAmount"
    """Of the pod as a whole (``spec.resources``)."""
    POD_RESOURCES = "PodResources"
    """``spec.resources`` appeared or disappeared, which decides whether it or the containers determine the class."""
    OVERHEAD = "Overhead"
    PRIORITY = "Priority"
    RESTART_POLICY = "RestartPolicy"
    """An init container became a sidecar, or stopped being one."""


class PodChange(Struct, frozen=True, rename="camel"):
    """One thing that changed in the pods of a workload, as the API server stores them."""

    kind: DifferenceKind
    container: str
    """Empty for the pod as a whole."""
    field: str
    """``requests.memory`` and the like."""
    before: str | None
    after: str | None
    injected_by: str
    """The injector that added the container."""
    text: str = ""
    """The same in words."""


def differences(before: Pod, after: Pod, injected: Mapping[str, str] | None = None) -> tuple[PodChange, ...]:
    """Return everything that changed. ``injected`` are injectors by the containers they added to the new version."""
    return tuple(_differences(before, after, injected or {}))


def _differences(before: Pod, after: Pod, injected: Mapping[str, str]) -> Iterator[PodChange]:
    old, new = _containers(before), _containers(after)
    for name, container in new.items():
        if name not in old:
            yield _difference(DifferenceKind.CONTAINER_ADDED, name, injected_by=injected.get(name, ""))
        else:
            yield from _amounts(old[name].resources, container.resources, name)
            if old[name].is_sidecar != container.is_sidecar:
                was, became = old[name].restart_policy or None, container.restart_policy or None
                yield _difference(DifferenceKind.RESTART_POLICY, name, "restartPolicy", was, became)
    for name in old:
        if name not in new:
            yield _difference(DifferenceKind.CONTAINER_REMOVED, name)
    yield from _of_pod(before, after)


def _difference(
    kind: DifferenceKind, container: str, field: str = "", *values: str | None, injected_by: str = ""
) -> PodChange:
    before, after = values or (None, None)
    return PodChange(kind, container, field, before, after, injected_by)


def _of_pod(before: Pod, after: Pod) -> Iterator[PodChange]:
    was, became = before.spec.resources, after.spec.resources
    if (was is None) != (became is None):
        states = (None if requirements is None else "set" for requirements in (was, became))
        yield _difference(DifferenceKind.POD_RESOURCES, "", "resources", *states)
    yield from _amounts(was or NO_RESOURCES, became or NO_RESOURCES, "")
    for resource in QOS_RESOURCES:
        yield from _changed(
            DifferenceKind.OVERHEAD,
            "",
            f"overhead.{resource}",
            (before.spec.overhead or {}).get(resource),
            (after.spec.overhead or {}).get(resource),
        )
    if (before.spec.priority or 0) != (after.spec.priority or 0):
        old, new = str(before.spec.priority or 0), str(after.spec.priority or 0)
        yield _difference(DifferenceKind.PRIORITY, "", "priority", old, new)


def _containers(pod: Pod) -> dict[str, Container]:
    return {container.name: container for container in (*pod.spec.containers, *pod.spec.init_containers)}


def _amounts(was: ResourceRequirements, became: ResourceRequirements, container: str) -> Iterator[PodChange]:
    kind = DifferenceKind.AMOUNT if container else DifferenceKind.POD_AMOUNT
    for side in ("requests", "limits"):
        old, new = getattr(was, side), getattr(became, side)
        for resource in QOS_RESOURCES:
            yield from _changed(kind, container, f"{side}.{resource}", old.get(resource), new.get(resource))


def _changed(
    kind: DifferenceKind, container: str, field: str, before: Quantity | None, after: Quantity | None
) -> Iterator[PodChange]:
    if before != after:
        yield _difference(
            kind, container, field, *(None if quantity is None else str(quantity) for quantity in (before, after))
        )


class Resizing(StrEnum):
    """What it takes to give a running pod other resources."""

    IN_PLACE = "InPlace"
    """``kubectl patch --subresource resize``; no container restarts."""
    RESTART = "RestartContainer"
    """The same, and ``resizePolicy`` restarts containers."""
    BELOW_USAGE = "BelowUsage"
    """The kubelet keeps the old limit while a container uses no less than its new one."""
    REFUSED = "Refused"
    """The API server refuses the resize; only a new pod has the new resources."""


class ResizeCost(Struct, frozen=True, rename="camel"):
    """What it takes to give the running pods of a workload its new resources."""

    outcome: Resizing
    restarts: tuple[str, ...] = ()
    """Containers that restart."""
    reasons: tuple[str, ...] = ()
    """Why the API server refuses it."""
    keeps_scores: tuple[str, ...] = ()
    """Containers that keep the oom_score_adj of their earlier memory request until they restart."""
    text: str = ""
    """The same in words."""


def lowered_below_usage(
    before: Pod, after: Pod, measured: Iterable[PodUsage], profile: Profile
) -> tuple[BelowUsage, ...]:
    """Return the memory limits that the change sets below what is in use, each with the highest usage of these pods.

    What is killed in place of a refused resize is the same container, after its next restart or in a new pod.
    """
    old, new = memory_limits(before, profile), memory_limits(after, profile)
    names = [[container.name for container in pod.running_containers] for pod in (before, after)]
    renamed = dict(zip(*names, strict=True)) if len(names[0]) == len(names[1]) == 1 else {}
    worst: dict[str, BelowUsage] = {}
    for entry in measured:
        usage = {
            renamed.get(container.name, container.name): container.working_set_bytes
            for container in entry.containers
            if container.is_measured
        }
        old_limits = {renamed.get(name, name): limit for name, limit in old.items()}
        for found in below_usage(old_limits, new, usage | {"": sum(usage.values())}):
            if found.container not in worst or found.usage_bytes > worst[found.container].usage_bytes:
                worst[found.container] = found
    # The limit of the pod follows from those of its containers, or is told as theirs.
    return tuple(found for name, found in sorted(worst.items()) if name or len(worst) == 1)


def resizing(before: Pod, after: Pod, profile: Profile, too_low: tuple[BelowUsage, ...] = ()) -> ResizeCost | None:
    """Return what a resize to the resources of ``after`` takes; None where no resources change.

    ``too_low`` are its memory limits that are below what is in use.
    """
    pairs = tuple(_pairs(before, after))
    changed = [(old, new) for old, new in pairs if old.resources != new.resources]
    if not changed and before.spec.resources == after.spec.resources:
        return None
    reasons = tuple(dict.fromkeys(_refusals(before, after, profile)))
    if reasons:
        return ResizeCost(Resizing.REFUSED, reasons=reasons)
    restarts = tuple(new.name for old, new in changed if _restarts(old, new))
    if any(limit.container not in restarts for limit in too_low):
        return ResizeCost(Resizing.BELOW_USAGE)
    outcome = Resizing.RESTART if restarts else Resizing.IN_PLACE
    return ResizeCost(outcome, restarts, keeps_scores=keeps_scores(before, after, profile))


def keeps_scores(before: Pod, after: Pod, profile: Profile) -> tuple[str, ...]:
    """Return the containers whose score a resize makes older than their request: a resize writes cgroups only."""
    if classify(after, profile).qos_class is not QOSClass.BURSTABLE or after.is_node_critical:
        return ()
    is_pod_level = _memory_request(before.spec.resources) != _memory_request(after.spec.resources)
    return tuple(
        new.name
        for old, new in _pairs(before, after)
        if (is_pod_level or _memory_request(old.resources) != _memory_request(new.resources))
        and not _restarts(old, new)
    )


def _memory_request(resources: ResourceRequirements | None) -> Quantity | None:
    return None if resources is None else resources.requests.get(MEMORY)


def _pairs(before: Pod, after: Pod) -> Iterator[tuple[Container, Container]]:
    """Yield the containers that both versions have."""
    for was, became in (
        (before.spec.containers, after.spec.containers),
        (before.spec.init_containers, after.spec.init_containers),
    ):
        old = {container.name: container for container in was}
        yield from ((old[container.name], container) for container in became if container.name in old)


def _refusals(before: Pod, after: Pod, profile: Profile) -> Iterator[str]:
    if not profile.in_place_resize:
        yield "in-place resize is on by default since 1.33"
        return
    # The resize subresource takes the resources and ignores whatever else changed.
    resized = replace(
        before,
        spec=replace(
            before.spec,
            containers=_with_resources(before.spec.containers, after.spec.containers),
            init_containers=_with_resources(before.spec.init_containers, after.spec.init_containers),
            resources=after.spec.resources,
        ),
    )
    errors = list(validate_resize(before, resized, profile))
    # What is wrong with the older version, such as a missing image, is not what keeps its pods from being resized.
    already = validate_pod(before, is_stored=True) if errors else ()
    yield from (error.detail or error.words for error in errors if error not in already)


def _with_resources(old: tuple[Container, ...], new: tuple[Container, ...]) -> tuple[Container, ...]:
    resources = {container.name: container.resources for container in new}
    return tuple(
        replace(container, resources=resources[container.name]) if container.name in resources else container
        for container in old
    )


def _restarts(old: Container, new: Container) -> bool:
    return any(
        old.restarts_for(resource)
        for resource in QOS_RESOURCES
        if old.resources.requests.get(resource) != new.resources.requests.get(resource)
        or old.resources.limits.get(resource) != new.resources.limits.get(resource)
    )
