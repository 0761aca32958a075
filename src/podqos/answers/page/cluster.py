"""The cluster view: nodes as panels, pods as blocks in the order in which they go.

The shape is stable: fields are added, never renamed or removed; ``docs/schema/page.json`` follows these classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import TypeVar

from msgspec import Struct

from podqos.agent.journal import By
from podqos.answers.node_figures import NodeOverview
from podqos.answers.page.guard import GuardPanel
from podqos.model.assumption import Assumption
from podqos.model.pod import QOSClass


class NodePanel(NodeOverview, frozen=True, rename="camel"):
    """A node: what it has, what pods take of it, how near it is to running out, and which pod is next."""

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
    active_cache_bytes: int = 0
    """Page cache that counts as used, although the kernel can reclaim it."""
    inactive_cache_bytes: int = 0
    """Page cache that does not count as used."""


class TileKind(StrEnum):
    """How a figure is to be taken."""

    CALM = ""
    WARNED = "warned"
    ALARM = "alarm"


class ClusterTile(Struct, frozen=True):
    """A figure on top of the view."""

    value: str
    name: str
    """What it counts."""
    note: str
    """What it leaves out or means."""
    kind: TileKind


class NextDeath(Struct, frozen=True, gc=False, rename="camel"):
    """The next pod to die on a node, as far as slow growth decides who acts first."""

    node: str
    pod: str
    by: By
    headroom_bytes: int
    """Until the kubelet evicts, or the kernel kills; negative where that is due."""
    explanation: str
    """Why it: a clause that follows "is evicted first:" or "is OOM-killed first:"."""
    is_assumed: bool = False
    """Whether what it uses is assumed."""
    qos_class: QOSClass | None = None


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
    tiles: tuple[ClusterTile, ...] = ()
    """The figures of the whole cluster."""
    notes: tuple[str, ...] = ()
    """What is wrong with the source."""
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""
    guard: GuardPanel | None = None
    """The guard that this is seen through."""
    next_deaths: tuple[NextDeath, ...] = ()
    """The next to die, on the ten nodes with the least headroom; the first is on the node that the answer is about."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "ClusterView"


Run = tuple[int, ...]
"""A part of a list as it was: where it begins, and how many follow each other."""


class ClusterChange(Struct, frozen=True, rename="camel"):
    """What makes one cluster view of another: its lists in parts, each new or a run of the list as it was."""

    name: str
    kubernetes_version: str
    taken_at: str
    nodes: tuple[NodePanel | Run, ...]
    pods: tuple[PodBlock | Run, ...]
    classes: dict[str, int]
    tiles: tuple[ClusterTile, ...]
    notes: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    guard: GuardPanel | None
    next_deaths: tuple[NextDeath, ...] = ()


Item = TypeVar("Item", NodePanel, PodBlock)


def change(before: ClusterView, after: ClusterView) -> ClusterChange:
    """Return what makes one view of another."""
    return ClusterChange(
        after.name,
        after.kubernetes_version,
        after.taken_at,
        tuple(_parts(before.nodes, after.nodes, attrgetter("name"))),
        tuple(_parts(before.pods, after.pods, attrgetter("node", "namespace", "name"))),
        after.classes,
        after.tiles,
        after.notes,
        after.assumptions,
        after.guard,
        after.next_deaths,
    )


def _parts(before: Sequence[Item], after: Sequence[Item], key: Callable[[Item], object]) -> Iterator[Item | Run]:
    """Yield the parts of a list. Of two with the same key, what is not as the one that is found counts as new."""
    places = {key(node_panel): place for place, node_panel in enumerate(before)}
    start = end = 0
    for node_panel in after:
        place = end if end < len(before) and before[end] is node_panel else places.get(key(node_panel))
        if place is not None and before[place] == node_panel:
            if place != end:
                yield from _run(start, end)
                start = place
            end = place + 1
        else:
            yield from _run(start, end)
            start = end = 0 if place is None else place + 1
            yield node_panel
    yield from _run(start, end)


def _run(start: int, end: int) -> Iterator[Run]:
    if end > start:
        yield start, end - start
