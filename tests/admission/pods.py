"""Terse pods for the rows of tables: ``container("a", requests="cpu=1", limits="cpu=2,memory=1Gi")``."""

from __future__ import annotations

from podqos.model.pod import Container, Pod, PodSpec
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceList, ResourceRequirements


def amounts(text: str) -> ResourceList:
    """Read ``cpu=1,memory=1Gi``."""
    pairs = (pair.split("=") for pair in text.split(",") if pair)
    return {name: Quantity.parse(amount) for name, amount in pairs}


def resources(requests: str = "", limits: str = "") -> ResourceRequirements:
    """Make requests and limits."""
    return ResourceRequirements(requests=amounts(requests), limits=amounts(limits))


def container(name: str = "main", *, requests: str = "", limits: str = "", restart_policy: str = "") -> Container:
    """Make a container."""
    return Container(name=name, image="app:1", resources=resources(requests, limits), restart_policy=restart_policy)


def pod(*containers: Container, init: tuple[Container, ...] = (), **spec: object) -> Pod:
    """Make a pod of containers."""
    return Pod(spec=PodSpec(containers=containers, init_containers=init, **spec))
