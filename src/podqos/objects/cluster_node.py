"""One node of a cluster, with everything the cluster knows about it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from podqos.model.assumption import Assumption
from podqos.model.metrics import NodeMetrics, PodMetrics
from podqos.model.node import Node
from podqos.model.stats import Summary
from podqos.objects.kubelet_node import Kubelet
from podqos.objects.objects import Objects


class ClusterNode(Struct, frozen=True):
    """A node, its pods, and their usage."""

    node: Node
    objects: Objects
    """Its pods, and the objects that affect them."""
    kubelet: Kubelet | None
    """None if it did not report its settings."""
    summary: Summary | None
    """Usage measured by its kubelet; None if it did not answer."""
    pod_metrics: Mapping[str, PodMetrics] = {}
    """Usage of pods from metrics.k8s.io, by ``namespace/name``, if the kubelet did not answer."""
    node_metrics: NodeMetrics | None = None
    """The same for the node."""
    assumptions: tuple[Assumption, ...] = ()
    """What is assumed because a source of the cluster did not answer."""
