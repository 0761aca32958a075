"""Pods and resources in the shape of the conformance vectors, shared by the families that hold pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from podqos.manifest.decode import convert
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity

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
    result: dict[str, object] = {
        "containers": {container.name: plain(container.resources, write) for container in pod.spec.containers},
        "initContainers": {container.name: plain(container.resources, write) for container in pod.spec.init_containers},
    }
    if pod.spec.resources is not None:
        result["pod"] = plain(pod.spec.resources, write)
    return result


def plain(value: object, write: Write = Quantity.canonical) -> object:
    """Return a structure of ours as the answer that it is, by default with canonical amounts.

    ``str`` writes amounts as an API server stores them: ``+1`` and ``007`` stay as they are.
    """
    return msgspec.to_builtins(value, enc_hook=write)
