"""An administrator's policies for pods: limit ranges, quotas, priority and runtime classes, the override.

Objects in the shape of the Kubernetes API (core/v1, scheduling.k8s.io/v1, node.k8s.io/v1), as frozen values. What they
do to a pod is in ``admission``.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from podqos.model.pod import ObjectMeta, Toleration
from podqos.model.resources import ResourceList


class LimitRangeItem(Struct, frozen=True, gc=False, rename="camel"):
    """Bounds and defaults for one kind of thing: ``Container``, ``Pod`` or ``PersistentVolumeClaim``."""

    type: str = ""
    max: ResourceList = {}
    min: ResourceList = {}
    default: ResourceList = {}
    """The limit of a container that states none."""
    default_request: ResourceList = {}
    max_limit_request_ratio: ResourceList = {}


class LimitRangeSpec(Struct, frozen=True, gc=False, rename="camel"):
    """The bounds of a namespace."""

    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(Struct, frozen=True, gc=False, rename="camel"):
    """Bounds and defaults for what is created in a namespace."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LimitRangeSpec = LimitRangeSpec()


class PriorityClass(Struct, frozen=True, gc=False, rename="camel"):
    """A name for a priority."""

    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


class ScopeRequirement(Struct, frozen=True, gc=False, rename="camel"):
    """One condition on the pods a quota counts."""

    scope_name: str = ""
    operator: str = ""
    """In, NotIn, Exists or DoesNotExist."""
    values: tuple[str, ...] = ()


class ScopeSelector(Struct, frozen=True, gc=False, rename="camel"):
    """All of its conditions together."""

    match_expressions: tuple[ScopeRequirement, ...] = ()


class ResourceQuotaSpec(Struct, frozen=True, gc=False, rename="camel"):
    """The limits of a quota, and the pods it counts."""

    hard: ResourceList = {}
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Struct, frozen=True, gc=False, rename="camel"):
    """The usage of a quota."""

    hard: ResourceList = {}
    used: ResourceList = {}


class ResourceQuota(Struct, frozen=True, gc=False, rename="camel"):
    """A ceiling on the total usage of a namespace."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class Overhead(Struct, frozen=True, gc=False, rename="camel"):
    """What a pod costs on top of its containers."""

    pod_fixed: ResourceList = {}


class RuntimeScheduling(Struct, frozen=True, gc=False, rename="camel"):
    """Where pods of a runtime class may run."""

    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()


class RuntimeClass(Struct, frozen=True, gc=False, rename="camel"):
    """A way of running containers, and its price."""

    metadata: ObjectMeta = ObjectMeta()
    handler: str = ""
    overhead: Overhead | None = None
    scheduling: RuntimeScheduling | None = None


class NamespaceStatus(Struct, frozen=True, gc=False):
    """Whether a namespace is terminating."""

    phase: str = ""


class Namespace(Struct, frozen=True, gc=False):
    """A namespace; labels and annotations switch the override on or off."""

    metadata: ObjectMeta = ObjectMeta()
    status: NamespaceStatus = NamespaceStatus()


class ClusterResourceOverride(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Requests as a percentage of limits, cluster-wide (OpenShift). Zero leaves an amount alone."""

    memory_request_to_limit_percent: int = 0
    cpu_request_to_limit_percent: int = 0
    limit_cpu_to_memory_percent: int = msgspec.field(default=0, name="limitCPUToMemoryPercent")
    """100 gives a core for each GiB of the memory limit."""
