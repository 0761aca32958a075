"""Terse snapshots for the rows of tables."""

from __future__ import annotations

from msgspec.structs import replace

from podqos.eviction.ranking import Policy, Ranking
from podqos.eviction.signals import Signal
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity
from podqos.model.snapshot import NodeUsage, Snapshot
from podqos.orders.orders import Orders, both_orders
from podqos.orders.pods import NodePod
from podqos.orders.usage import UsageRow, from_usage
from podqos.qos.cgroup_settings import CgroupSettings

MI, GI = 1 << 20, 1 << 30


def using(pod: Pod, memory: str, **columns: object) -> tuple[Pod, UsageRow]:
    """Make a pod of one container that uses so much."""
    amounts = {name: Quantity.parse(value) if isinstance(value, str) else value for name, value in columns.items()}
    return pod, UsageRow(pod.key, memory=Quantity.parse(memory), **amounts)


def snapshot(*used: tuple[Pod, UsageRow | None], memory_bytes: int = 64 * GI, **node: int) -> Snapshot:
    """Make a node with pods, each with its row."""
    pods = [NodePod(pod, pod.key) for pod, _ in used]
    rows = [row for _, row in used if row is not None]
    return from_usage(pods, rows, replace(NodeUsage(memory_bytes), **node))


def settings(node: Snapshot, **fields: object) -> CgroupSettings:
    """Make the cgroup settings of a node."""
    return CgroupSettings(node_memory_bytes=node.node.memory_bytes, node_swap_bytes=node.node.swap_bytes, **fields)


def orders(
    node: Snapshot, policy: Policy = Policy.KUBELET, signal: Signal = Signal.MEMORY, *, hard: bool = True
) -> Orders:
    """Rank a node's pods twice."""
    return both_orders(node, Ranking(signal, policy=policy, hard=hard), settings(node))


def evicted(found: Orders) -> list[str]:
    """Return the names in the kubelet's order."""
    return [ranked.pod.metadata.name for ranked in found.eviction]


def killed(found: Orders) -> list[str]:
    """Return the names in the kernel's order."""
    return [pod.metadata.name for pod in found.kernel_pods]
