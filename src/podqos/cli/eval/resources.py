"""Pods and resources in the shape of the conformance vectors, shared by the families that hold pods."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from podqos.model.pod import Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceList, ResourceRequirements

T = TypeVar("T")


def pod_of(value: object) -> Pod:
    """Read a pod of a line's input."""
    return msgspec.convert(value, Pod, dec_hook=_quantity, strict=True)


def list_of(kind: type[T], values: object) -> tuple[T, ...]:
    """Read a list of objects of a line's input; absent is empty."""
    return msgspec.convert(values or (), tuple[kind, ...], dec_hook=_quantity)  # type: ignore[valid-type]


def _quantity(kind: type, value: object) -> Quantity:
    assert kind is Quantity
    return Quantity.from_json(str(value))


def resources_by_name(pod: Pod) -> dict[str, object]:
    """Return the resources of every container by name, and of the pod where it has its own."""
    result: dict[str, object] = {
        "containers": {container.name: requirements(container.resources) for container in pod.spec.containers},
        "initContainers": {container.name: requirements(container.resources) for container in pod.spec.init_containers},
    }
    if pod.spec.resources is not None:
        result["pod"] = requirements(pod.spec.resources)
    return result


def requirements(resources: ResourceRequirements) -> dict[str, object]:
    """Return requests and limits with canonical amounts."""
    return {"requests": amounts(resources.requests), "limits": amounts(resources.limits)}


def amounts(resources: ResourceList) -> dict[str, str]:
    """Return a resource list with canonical amounts."""
    return {name: amount.canonical() for name, amount in sorted(resources.items())}
