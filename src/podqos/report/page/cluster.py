"""The cluster view: nodes as panels, pods as blocks in the order in which they go.

The shape is stable: fields are added, never renamed or removed; ``docs/schema/page.json`` follows these classes.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.model.assumption import Assumption
from podqos.model.pod import QOSClass
from podqos.report.cluster.overview import NodeOverview


class NodePanel(NodeOverview, frozen=True, rename="camel"):
    """A node: what it has, what pods take of it, how near it is to running out, and who goes first."""

    memory_bytes: int = 0
    """All of its memory."""
    used_bytes: int | None = None
    """By pods and system together: measured, or taken to be what pods request; null where there are no pods."""
    threshold_bytes: int = 0
    """The kubelet evicts once no more than this is available."""
    is_assumed: bool = False
    """Whether no such node is known: all pods are taken to run on one."""
    reversed_pairs: int = 0
    """How many pairs of pods kubelet and kernel take in opposite orders."""
    problem: str = ""
    """Why its pods are in no order; empty where they are."""


class PodBlock(Struct, frozen=True, gc=False, rename="camel"):
    """A pod, with what decides when it goes."""

    namespace: str
    name: str
    node: str
    """Empty where it has none, or where all pods are taken to run on one that is not named."""
    workload: str
    """``Deployment shop/web`` for a replica; empty for a pod of its own."""
    qos_class: QOSClass
    priority: int
    requested_bytes: int
    limit_bytes: int | None
    """Null where a container has no limit of memory."""
    used_bytes: int | None
    """Null where nothing is known."""
    oom_score_adj: int | None
    """Of the container that the kernel kills first; null on Windows, and where the pod is in no order."""
    eviction_place: int | None
    """On its node, 1 goes first; null where the pod is in no order."""
    kill_place: int | None
    """Among the pods of its node, by its first container."""
    spared: str | None
    """Why the kubelet does not evict it."""


class ClusterView(Struct, frozen=True, rename="camel"):
    """Everything that the cluster view shows."""

    name: str
    """Of the source."""
    kubernetes_version: str
    taken_at: str
    """When, in RFC 3339; empty where that is not known."""
    nodes: tuple[NodePanel, ...]
    """Least headroom first."""
    pods: tuple[PodBlock, ...]
    """Node by node, in the kubelet's order; those without a node last."""
    classes: dict[str, int]
    """Pods by class."""
    notes: tuple[str, ...] = ()
    """What is wrong with the source."""
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "ClusterView"
