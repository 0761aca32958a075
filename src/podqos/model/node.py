"""Nodes in the shape of the Kubernetes API (core/v1), as frozen values; only what some decision reads."""

from __future__ import annotations

from msgspec import Struct

from podqos.model.pod import ObjectMeta
from podqos.model.resources import ResourceList

# The resource that counts pods.
PODS = "pods"

LABEL_HOSTNAME = "kubernetes.io/hostname"
LABEL_OS = "kubernetes.io/os"
LABEL_ZONE = "topology.kubernetes.io/zone"
TAINT_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
TAINT_NOT_READY = "node.kubernetes.io/not-ready"
TAINT_UNREACHABLE = "node.kubernetes.io/unreachable"
TAINT_MEMORY_PRESSURE = "node.kubernetes.io/memory-pressure"
TAINT_DISK_PRESSURE = "node.kubernetes.io/disk-pressure"
TAINT_PID_PRESSURE = "node.kubernetes.io/pid-pressure"
TAINT_NETWORK_UNAVAILABLE = "node.kubernetes.io/network-unavailable"

LEAST_NODE_BYTES = 1 << 20
MOST_NODE_BYTES = 1 << 52
"""What a processor of 64 bits can address, which is more than any node has."""


class Taint(Struct, frozen=True, gc=False):
    """A reason to keep pods away unless they tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""
    """NoSchedule, PreferNoSchedule or NoExecute."""


class NodeCondition(Struct, frozen=True, gc=False, rename="camel"):
    """A condition of the node."""

    type: str = ""
    status: str = ""
    """True, False or Unknown."""
    last_transition_time: str | None = None


class NodeSpec(Struct, frozen=True, gc=False):
    """The spec of a node."""

    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class ContainerImage(Struct, frozen=True, gc=False, rename="camel"):
    """An image that a node has, under all its names."""

    names: tuple[str, ...] | None = ()
    """The kubelet sends null for an image without any."""
    size_bytes: int = 0


class NodeSystemInfo(Struct, frozen=True, gc=False, rename="camel"):
    """What runs on a node."""

    kubelet_version: str = ""
    """Such as ``v1.36.4``."""
    container_runtime_version: str = ""
    """Such as ``containerd://1.6.20``."""


class NodeStatus(Struct, frozen=True, gc=False, rename="camel"):
    """The status of a node."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    """The part of the capacity that pods may request; see ``placement.allocatable``."""
    conditions: tuple[NodeCondition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()
    """Features of its kubelet that a pod may need (1.36)."""
    node_info: NodeSystemInfo = NodeSystemInfo()


class Node(Struct, frozen=True, gc=False):
    """A machine that runs pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        """The name by which pods are bound to it."""
        return self.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        """The labels that selectors and topologies read."""
        return self.metadata.labels
