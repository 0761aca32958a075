"""What metrics.k8s.io says about usage, in its own shape, as frozen values. Memory is the working set.

Source: Kubernetes v1.36 staging/src/k8s.io/metrics/pkg/apis/metrics/v1beta1/types.go.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.model.pod import ObjectMeta
from podqos.model.resources import ResourceList


class ContainerMetrics(Struct, frozen=True, gc=False):
    """What one container uses."""

    name: str = ""
    usage: ResourceList = {}


class PodMetrics(Struct, frozen=True, gc=False):
    """What the containers of a pod use."""

    metadata: ObjectMeta = ObjectMeta()
    timestamp: str = ""
    window: str = ""
    """How long before that it is the average of."""
    containers: tuple[ContainerMetrics, ...] = ()


class NodeMetrics(Struct, frozen=True, gc=False):
    """What a node uses, pods and system together."""

    metadata: ObjectMeta = ObjectMeta()
    timestamp: str = ""
    window: str = ""
    """How long before that it is the average of."""
    usage: ResourceList = {}
