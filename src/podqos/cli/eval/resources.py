"""Pods and resources in the shape of the conformance vectors, shared by the families that hold pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from podqos.manifest.decode import convert
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceList, ResourceRequirements

T = TypeVar("T")
Write = Callable[[Quantity], str]


def pod_of(value: object) -> Pod:
    """Read a pod of a line's input."""
    return convert(value, Pod)


def list_of(kind: type[T], values: object) -> tuple[T, ...]:
    """Read a list of objects of a line's input; absent is empty."""
    return convert(values or [], tuple[kind, ...])  # type: ignore[valid-type]


def resources_by_name(pod: Pod, write: Write = Quantity.canonical) -> dict[str, object]:
    """Return the resources of every container by name, and of the pod where it has its own."""
    spec = pod.spec
    result: dict[str, object] = {
        "containers": {container.name: requirements(container.resources, write) for container in spec.containers},
        "initContainers": {
            container.name: requirements(container.resources, write) for container in spec.init_containers
        },
    }
    if spec.resources is not None:
        result["pod"] = requirements(spec.resources, write)
    return result


def stored_resources_by_name(pod: Pod) -> dict[str, object]:
    """Return the same in the spelling that an API server stores: ``+1`` and ``007`` stay as they are."""
    return resources_by_name(pod, str)


def requirements(resources: ResourceRequirements, write: Write = Quantity.canonical) -> dict[str, object]:
    """Return requests and limits, by default with canonical amounts."""
    return {"requests": amounts(resources.requests, write), "limits": amounts(resources.limits, write)}


def amounts(resources: ResourceList, write: Write = Quantity.canonical) -> dict[str, str]:
    """Return a resource list, by default with canonical amounts."""
    return {name: write(amount) for name, amount in sorted(resources.items())}
