"""Differences between two versions of a pod that can affect its class or place in the kill orders.

Amounts are those of the pods as stored, so a default that a LimitRange fills in counts like one that was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

from podqos.model.pod import Container, Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import NO_RESOURCES, QOS_RESOURCES, ResourceRequirements


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
