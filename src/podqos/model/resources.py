"""Resource lists and requirements: the ``requests`` and ``limits`` of a manifest, and arithmetic over them.

A resource that is not listed is absent, which is not the same as zero; the functions that decide what absence
means say so. Effective amounts of a whole pod are in ``effective``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from podqos.model.quantity import Quantity

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
HUGEPAGES_PREFIX = "hugepages-"

# The two resources that decide the QoS class (pkg/apis/core/v1/helper/qos/qos.go).
QOS_RESOURCES = (CPU, MEMORY)

ResourceList = dict[str, Quantity]


class ResourceClaim(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A reference to one of the pod's resource claims."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """The resources of a container, or of a pod as a whole.

    Unknown fields are rejected on every input path: ``request:`` for ``requests:`` would otherwise make a pod
    BestEffort without a word.
    """

    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: tuple[ResourceClaim, ...] = ()


NO_RESOURCES = ResourceRequirements()


def is_hugepages(name: str) -> bool:
    """Whether ``name`` is a huge page resource, such as ``hugepages-2Mi``."""
    return name.startswith(HUGEPAGES_PREFIX)


def is_pod_level(name: str) -> bool:
    """Whether the resource may be set for a pod as a whole (cpu, memory, huge pages)."""
    return name in QOS_RESOURCES or is_hugepages(name)


def is_native(name: str) -> bool:
    """Whether the resource is Kubernetes' own (no domain, or one of kubernetes.io)."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Whether the resource is an extended one, such as ``nvidia.com/gpu``."""
    return not is_native(name) and not name.startswith("requests.")


def is_overcommit_allowed(name: str) -> bool:
    """Whether limits may exceed requests: of Kubernetes' own resources, all but huge pages."""
    return is_native(name) and not is_hugepages(name)


def sum_of(lists: Iterable[Mapping[str, Quantity]]) -> ResourceList:
    """Add resource lists name by name."""
    total: ResourceList = {}
    for resources in lists:
        for name, amount in resources.items():
            known = total.get(name)
            total[name] = amount if known is None else known + amount
    return total


def largest_of(lists: Iterable[Mapping[str, Quantity]]) -> ResourceList:
    """Return the largest amount of every name."""
    largest: ResourceList = {}
    for resources in lists:
        for name, amount in resources.items():
            known = largest.get(name)
            if known is None or amount > known:
                largest[name] = amount
    return largest
