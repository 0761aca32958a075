"""One node of a cluster, with all that the cluster says about it."""

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
    """A node, its pods, and what measures them."""

    node: Node
    objects: Objects
    """Its pods, and what decides about them."""
    kubelet: Kubelet | None
    """None where it did not tell its settings."""
    summary: Summary | None
    """What its kubelet measured; None where it did not answer."""
    pod_metrics: Mapping[str, PodMetrics] = {}
    """What metrics.k8s.io says about pods, by ``namespace/name``, where the kubelet did not answer."""
    node_metrics: NodeMetrics | None = None
    """The same of the node."""
    assumptions: tuple[Assumption, ...] = ()
    """What is assumed because a source of the cluster did not answer."""
