"""The figures on top of the cluster view, in words.

A figure that leaves something out says so, and none looks calm that is not: a sum of limits says nothing about pods
without a limit, and what is assumed was not measured.
"""

from __future__ import annotations

from collections.abc import Sequence

from podqos.answers.node_figures import NextVictim
from podqos.answers.page.cluster import ClusterTile, NodePanel, PodBlock, TileKind
from podqos.wording import counted

_NEARLY_ONE = 1.05
"""Up to here, one decimal would hide that there is more than one."""
_LEAST = 0.05
"""Below that, one decimal would read as none at all."""
_MI, _GI, _TI = 1 << 20, 1 << 30, 1 << 40


def cluster_tiles(nodes: Sequence[NodePanel], pods: Sequence[PodBlock]) -> tuple[ClusterTile, ...]:
    """Return the figures of a cluster."""
    tiles = [_nodes(nodes), _pods(nodes, pods), _evicting(nodes), _requested(nodes, pods), _limits(nodes, pods)]
    return tuple(tile for tile in (*tiles, _first_victims(nodes)) if tile is not None)


def _nodes(nodes: Sequence[NodePanel]) -> ClusterTile:
    troubled = sum(bool(node.conditions) for node in nodes)
    unranked = sum(node.pods > 0 and node.next_evicted is None and node.next_killed is None for node in nodes)
    notes = [
        f"{troubled:,} with conditions" if troubled else "",
        f"{unranked:,} without a kill order" if unranked else "",
    ]
    is_assumed = any(node.is_assumed for node in nodes)
    name = f"{_noun(len(nodes), 'node')}{' (assumed)' if is_assumed else ''}"
    return ClusterTile(
        f"{len(nodes):,}", name, _joined(notes), TileKind.WARNED if troubled or unranked else TileKind.CALM
    )


def _pods(nodes: Sequence[NodePanel], pods: Sequence[PodBlock]) -> ClusterTile:
    crowded = [node for node in nodes if node.most_pods is not None and node.pods > node.most_pods]
    is_placed = any(node.is_assumed for node in nodes)
    waiting = 0 if is_placed else sum(not pod.node for pod in pods)
    best_effort = sum(pod.qos_class == "BestEffort" for pod in pods)
    notes = [
        f"{waiting:,} not scheduled" if waiting else "",
        f"{best_effort:,} BestEffort" if best_effort or not (crowded or waiting) else "",
    ]
    kind = TileKind.WARNED if waiting else TileKind.CALM
    if crowded:
        [node, *others] = crowded
        over = f"{node.name or 'the node'} has {node.pods:,}, but can run only {node.most_pods:,}"
        notes.insert(0, f"{len(crowded):,} nodes have more than they can run" if others else over)
        kind = TileKind.ALARM
    return ClusterTile(f"{len(pods):,}", _noun(len(pods), "pod"), _joined(notes), kind)


def _evicting(nodes: Sequence[NodePanel]) -> ClusterTile | None:
    known = [node for node in nodes if node.headroom_bytes is not None]
    if not any(node.pods for node in nodes):
        return None
    if not known:
        return ClusterTile("–", "nodes evicting", "usage is not known", TileKind.WARNED)
    past = [node for node in known if (node.headroom_bytes or 0) < 0]
    assumed = sum(not node.is_measured for node in past or known)
    unknown = sum(node.pods > 0 for node in nodes if node.headroom_bytes is None)
    notes = [
        "past the eviction threshold" if past else "",
        ("usage is assumed" if assumed == len(past or known) else f"usage of {assumed:,} is assumed")
        if assumed
        else "",
        f"{unknown:,} not known" if unknown else "",
    ]
    kind = TileKind.ALARM if past else TileKind.WARNED if unknown else TileKind.CALM
    name = f"{_noun(len(past), 'node')} {'evicting' if assumed < len(past) or not past else 'over the threshold'}"
    return ClusterTile(f"{len(past):,}", name, _joined(notes), kind)


def _requested(nodes: Sequence[NodePanel], pods: Sequence[PodBlock]) -> ClusterTile | None:
    allocatable = sum(node.memory.allocatable for node in nodes)
    if allocatable <= 0:
        return None
    share = sum(node.memory.requests for node in nodes) / allocatable
    without = sum(pod.requested_bytes == 0 for pod in pods)
    beyond = [node for node in nodes if node.memory.allocatable and node.memory.requests > node.memory.allocatable]
    notes = [
        f"of {_about(allocatable)} allocatable",
        f"{without:,} of {counted(len(pods), 'pod')} {'requests' if without == 1 else 'request'} none"
        if without
        else "",
    ]
    if beyond:
        those = "does not fit" if len(nodes) == 1 else f"does not fit on {counted(len(beyond), 'node')}"
        notes.insert(1, those)
    kind = TileKind.ALARM if beyond else TileKind.CALM
    return ClusterTile(f"{round(share * 100)} %", "memory requested", _joined(notes), kind)


def _limits(nodes: Sequence[NodePanel], pods: Sequence[PodBlock]) -> ClusterTile | None:
    allocatable = sum(node.memory.allocatable for node in nodes)
    without = sum(pod.limit_bytes is None for pod in pods)
    if not without and (allocatable <= 0 or not pods):
        return None
    ratio = sum(node.memory.limits for node in nodes) / allocatable if allocatable > 0 else 0.0
    times = "<0.1×" if 0 < ratio < _LEAST else f"{ratio:.2f}×" if 1 < ratio < _NEARLY_ONE else f"{ratio:.1f}×"
    if not without:
        over = "overcommitted" if ratio > 1 else "not overcommitted"
        return ClusterTile(times, "memory limits", over, TileKind.WARNED if ratio > 1 else TileKind.CALM)
    note = f"of {len(pods):,}{f'; limits of the others: {times} allocatable' if allocatable > 0 else ''}"
    if without == len(pods):
        note = "nothing but the node's memory stops them"
    name = "pod without a memory limit" if without == 1 else "pods without a memory limit"
    return ClusterTile(f"{without:,}", name, note, TileKind.WARNED)


def _first_victims(nodes: Sequence[NodePanel]) -> ClusterTile | None:
    ranked = [node for node in nodes if node.next_evicted is not None or node.next_killed is not None]
    if not ranked:
        return None
    differ = [node for node in ranked if _first(node.next_evicted) != _first(node.next_killed)]
    if len(ranked) > 1:
        note = "kubelet and kernel choose different pods" if differ else "kubelet and kernel choose the same pod"
        name = f"of {counted(len(ranked), 'node')}: evicted and OOM-killed first differ"
        return ClusterTile(f"{len(differ):,}", name, note, TileKind.CALM)
    if differ:
        return ClusterTile("2", "first victims", "kubelet and kernel choose different pods", TileKind.CALM)
    note = "the orders differ further down" if ranked[0].reversed_pairs else "kubelet and kernel agree"
    return ClusterTile("1", "first victim", note, TileKind.CALM)


def _first(victim: NextVictim | None) -> str:
    return "" if victim is None else victim.pod


def _noun(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"


def _joined(notes: Sequence[str]) -> str:
    return ", ".join(filter(None, notes))


def _about(count: int) -> str:
    """Return about how much: 19.5Gi."""
    unit, name = (_TI, "Ti") if count >= _TI else (_GI, "Gi") if count >= _GI else (_MI, "Mi")
    value = round(count / unit) if unit == _MI else round(count / unit, 1)
    return f"{value:g}{name}"
