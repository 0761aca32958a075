"""A node of a cluster with its pods, and what the node has, as far as its snapshot tells."""

from __future__ import annotations

from difflib import get_close_matches

from msgspec import Struct

from podqos.answers.node_options import NodePodsOptions
from podqos.answers.node_state import NodeState, cluster_node_state
from podqos.errors import InvalidArgument
from podqos.eviction.observation import observe
from podqos.eviction.signals import Signal
from podqos.model.assumption import Assumption
from podqos.model.profile import Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY
from podqos.objects.assumptions import KUBELET_SETTINGS
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.objects.kubelet_node import Kubelet
from podqos.objects.selection import Selection
from podqos.survival.node.snapshots import swap_of
from podqos.wording import counted


def cluster_state(
    cluster: ClusterSnapshot,
    node: str | None = None,
    *,
    node_memory_bytes: int | None = None,
    system_memory_bytes: int | None = None,
    profile: Profile | None = None,
    selection: Selection | None = None,
) -> NodeState:
    """Return a node of a cluster with its pods; ``node`` may be left out where there is only one.

    Usage is what its kubelet measured, else what metrics.k8s.io says, else what pods request. An answer is about the
    pods of ``selection``.
    """
    options = NodePodsOptions(
        node_memory_bytes=node_memory_bytes,
        system_memory_bytes=system_memory_bytes,
        profile=profile or cluster.profile,
    )
    return cluster_node_state(cluster.at(node_named(cluster, node), selection), options)


class NodeCapacities(Struct, frozen=True):
    """What a node of a cluster has, and its kubelet."""

    kubelet: Kubelet | None
    memory_bytes: int | None
    cpu: Quantity | None
    capacities: dict[Signal, int]
    swap_bytes: int | None
    """None where its kubelet does not tell."""
    assumptions: tuple[Assumption, ...] = ()
    """What is not known of them."""


def node_capacities(cluster: ClusterSnapshot, node: str) -> NodeCapacities:
    """Return what a node of a cluster has, as far as node and kubelet tell."""
    name = node_named(cluster, node)
    capacity, summary = cluster.nodes[name].status.capacity, cluster.summary(name)
    return NodeCapacities(
        cluster.kubelet(name),
        capacity[MEMORY].value if MEMORY in capacity else None,
        capacity.get(CPU),
        {}
        if summary is None
        else {signal: observation.capacity for signal, observation in observe(summary).signals.items()},
        None if summary is None else swap_of(summary),
        (*cluster.assumptions, *((KUBELET_SETTINGS,) if cluster.kubelet(name) is None else ())),
    )


def node_named(cluster: ClusterSnapshot, node: str | None) -> str:
    """Return the name of a node of a cluster, which may be left out where there is only one."""
    names = sorted(cluster.nodes)
    if node is None and len(names) == 1:
        return names[0]
    if node is None:
        fix = f"name one: {', '.join(names[:5])}{', …' if len(names) > 5 else ''}"
        raise InvalidArgument(f"the cluster has {counted(len(names), 'node')}", fix=fix)
    if node not in cluster.nodes:
        close = get_close_matches(node, names, 1)
        fix = f"did you mean {close[0]}?" if close else f"one of: {', '.join(names[:5])}"
        raise InvalidArgument(f"no such node: {node}", fix=fix)
    return node
