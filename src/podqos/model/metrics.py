"""Usage from metrics.k8s.io, in its own shape, as frozen values. Memory is the working set.

Source: Kubernetes v1.36 staging/src/k8s.io/metrics/pkg/apis/metrics/v1beta1/types.go.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.model.pod import ObjectMeta
from podqos.model.resources import ResourceList


class ContainerMetrics(Struct, frozen=True, gc=False):
    """The usage of one container."""

    name: str = ""
    usage: ResourceList = {}


class PodMetrics(Struct, frozen=True, gc=False):
    """The usage of a pod's containers."""

    metadata: ObjectMeta = ObjectMeta()
    timestamp: str = ""
    window: str = ""
    """The time span it is averaged over."""
    containers: tuple[ContainerMetrics, ...] = ()


class NodeMetrics(Struct, frozen=True, gc=False):
    """The usage of a node, pods and system together."""

    metadata: ObjectMeta = ObjectMeta()
    timestamp: str = ""
    window: str = ""
    """The time span it is averaged over."""
    usage: ResourceList = {}
