"""What metrics.k8s.io says about usage, in its own shape, as frozen values. Memory is the working set."""

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
    containers: tuple[ContainerMetrics, ...] = ()


class NodeMetrics(Struct, frozen=True, gc=False):
    """What a node uses, pods and system together."""

    metadata: ObjectMeta = ObjectMeta()
    timestamp: str = ""
    usage: ResourceList = {}
