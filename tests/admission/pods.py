"""Terse pods and policies for the rows of tables: ``container("a", requests="cpu=1", limits="cpu=2,memory=1Gi")``."""

from __future__ import annotations

from podqos.model.pod import Container, ObjectMeta, Pod, PodSpec
from podqos.model.policy import (
    LimitRange,
    LimitRangeItem,
    LimitRangeSpec,
    PriorityClass,
    ResourceQuota,
    ResourceQuotaSpec,
    ResourceQuotaStatus,
)
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceList, ResourceRequirements


def amounts(text: str) -> ResourceList:
    """Read ``cpu=1,memory=1Gi``."""
    pairs = (pair.split("=") for pair in text.split(",") if pair)
    return {name: Quantity.parse(amount) for name, amount in pairs}


def resources(requests: str = "", limits: str = "") -> ResourceRequirements:
    """Make requests and limits."""
    return ResourceRequirements(requests=amounts(requests), limits=amounts(limits))


def container(
    name: str = "main", *, requests: str = "", limits: str = "", restart_policy: str | None = None
) -> Container:
    """Make a container."""
    return Container(name=name, image="app:1", resources=resources(requests, limits), restart_policy=restart_policy)


def pod(*containers: Container, init: tuple[Container, ...] = (), **spec: object) -> Pod:
    """Make a pod of containers."""
    return Pod(ObjectMeta("p"), PodSpec(containers=containers, init_containers=init, **spec))


def limit_range(name: str, *, type: str = "Container", **bounds: str) -> LimitRange:  # noqa: A002
    """Make a LimitRange of one item: ``limit_range("lr", max="cpu=2", default_request="cpu=1")``."""
    item = LimitRangeItem(type=type, **{field: amounts(text) for field, text in bounds.items()})
    return LimitRange(ObjectMeta(name), LimitRangeSpec((item,)))


def quota(name: str = "quota", hard: str = "", used: str | None = None, **spec: object) -> ResourceQuota:
    """Make a quota; without ``used`` nothing is used yet."""
    status = ResourceQuotaStatus() if used is None else ResourceQuotaStatus(amounts(hard), amounts(used))
    return ResourceQuota(ObjectMeta(name), ResourceQuotaSpec(amounts(hard), **spec), status)


def priority_class(name: str, value: int = 0, **fields: object) -> PriorityClass:
    """Make a priority class."""
    return PriorityClass(ObjectMeta(name), value, **fields)
