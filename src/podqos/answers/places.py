"""Both orders as output: a row per pod and per container, with every number that decided and why in words.

The shapes are stable: fields are added, never renamed or removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TypeVar

from msgspec import Struct

from podqos.agent.journal import By
from podqos.eviction.ranking import Policy
from podqos.eviction.signals import SIGNALS, RankKey, Signal
from podqos.kernel.build import PAGE_BYTES
from podqos.model.assumption import Assumption
from podqos.model.pod import QOSClass
from podqos.model.quantity import NANOS
from podqos.model.snapshot import NodeUsage, Snapshot
from podqos.qos.classes import qos_class_of
from podqos.qos.oom import KUBELET_OOM_SCORE_ADJ
from podqos.survival.node.components import ComponentReport, components
from podqos.survival.node.pods import without_process
from podqos.survival.orders.headroom import Headroom
from podqos.survival.orders.orders import Disagreement, KillKey, Orders
from podqos.survival.orders.outlook import Outlook
from podqos.words.counterfactual import Saving
from podqos.words.qos import oom_rule
from podqos.words.ranking import why_evicted_first, why_killed_first

Place = TypeVar("Place")


class NodeSummary(Struct, frozen=True, rename="camel"):
    """The node, and how much memory is left for kubelet and kernel."""

    name: str
    memory_bytes: int
    swap_bytes: int
    available_bytes: int
    """``memory.available``, as the kubelet counts."""
    kernel_left_bytes: int
    """What the kernel can still allocate before it kills, with page cache reclaimed; negative where it is past that."""
    oom_cgroup: str
    """Where memory runs out first: ``/`` for the whole machine."""
    oom_total_bytes: int
    """What thousandths of oom_score_adj are of there."""
    headroom: Headroom | None = None
    """What is left until the kubelet evicts, by the signal with least; null where it has no threshold of memory."""
    kernel_first: bool = False
    """Whether the kernel kills before any threshold is met, however slowly memory grows."""
    pods_memory_bytes: int | None = None
    """What all pods may use together, the capacity of ``allocatableMemory.available``; null where not enforced."""
    pods_available_bytes: int | None = None
    """``allocatableMemory.available``, as the kubelet counts."""


class EvictionPlace(Struct, frozen=True, rename="camel"):
    """A pod in the kubelet's order."""

    place: int
    pod: str
    qos_class: QOSClass
    priority: int
    usage: int | None
    """Bytes, inodes or processes; null without statistics."""
    request: int
    excess: int | None
    """usage − request."""
    over_request: bool
    spared: str | None
    """Why it is skipped: ``critical``, or ``guaranteed`` under qos-tiers and a soft threshold."""
    kernel_place: int | None
    """Null for a pod none of whose containers runs: there is no process to kill."""
    before_next_by: RankKey | None
    reason: str
    """Why it stands before the next."""


class KillPlace(Struct, frozen=True, rename="camel"):
    """A container in the kernel's order, by its worst process."""

    place: int
    pod: str
    container: str
    qos_class: QOSClass
    is_measured: bool
    processes: int
    used_bytes: int
    """Of the worst process."""
    oom_score_adj: int
    oom_reason: str
    badness_bytes: int
    oom_score: int
    """What ``/proc/PID/oom_score`` shows."""
    eviction_place: int
    before_next_by: KillKey | None
    margin_bytes: int | None
    """How much more the next would have to use to be killed first."""
    reason: str
    """Why it stands before the next."""
    share_points: float
    """The memory of the worst process in the kernel's thousandths of what ran out."""
    points: float
    """``sharePoints`` and ``oomScoreAdj`` together: the badness in those thousandths."""


class IdleContainer(Struct, frozen=True, rename="camel"):
    """A container without a process: the kernel's order does not have it, the kubelet's counts what its pod uses."""

    pod: str
    container: str
    reason: str
    """What its node says, such as CrashLoopBackOff; empty where it has not started yet."""


class PodRemedies(Struct, frozen=True, rename="camel"):
    """What saves a pod from the kubelet, or from the kernel; each way was tried."""

    by: By
    pod: str
    container: str | None
    """Which the kernel kills."""
    place: int
    remedies: tuple[Saving, ...]
    """Lines of the manifest first, then what it could use less; also what was tried and does not help."""
    unknown: str = ""
    """Why there are no amounts among them: what the pod uses is not known; empty where it is."""


class RankedWorkload(Struct, frozen=True, rename="camel"):
    """A workload in both orders. Places count pods, as in ``evictionOrder``."""

    kind: str
    """Pod for a pod that no controller has made."""
    name: str
    """``namespace/name``."""
    pods: int
    """How many of them the node runs."""
    qos_classes: tuple[QOSClass, ...]
    """One, unless its pods differ."""
    first_evicted: int | None
    """The place of the first pod to be evicted; null where the kubelet spares all of them."""
    last_evicted: int | None
    first_killed: int | None
    """The place of the first pod to be OOM-killed; null where none has a process."""
    last_killed: int | None
    spared: str | None
    """Why the kubelet evicts none of them."""


class RankReport(Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos rank -o json``."""

    kubernetes_version: str
    signal: str
    resource: str
    """What ``usage`` and ``request`` are of: memory, ephemeral-storage, inodes or pids."""
    policy: Policy
    hard: bool
    node: NodeSummary
    eviction_order: tuple[EvictionPlace, ...]
    kill_order: tuple[KillPlace, ...]
    disagreements: tuple[Disagreement, ...]
    reversed_pairs: int
    """How many pairs of pods the two orders rank differently, neighbours or not; 0 if they agree."""
    components: tuple[ComponentReport, ...]
    """The processes of the node itself, which are in neither order."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "SurvivalOrders"
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""
    without_process: tuple[IdleContainer, ...] = ()
    """What the kernel could not kill: it has not started, waits to be started again, or has ended."""
    problem: str = ""
    """What contradicts itself: pods of a cluster that are assumed to use more than their node has."""
    remedies: tuple[PodRemedies, ...] = ()
    """What saves the pod that is first in each order."""
    workloads: tuple[RankedWorkload, ...] = ()
    """The workloads in the order in which they lose a pod to the kubelet."""


def idle_containers(snapshot: Snapshot) -> tuple[IdleContainer, ...]:
    """Return the containers without a process."""
    return tuple(
        IdleContainer(entry.pod.key, usage.name, without_process(entry.pod).get(usage.name, ""))
        for entry in snapshot.pods
        for usage in entry.containers
        if not usage.processes
    )


def node_summary(node: NodeUsage, outlook: Outlook) -> NodeSummary:
    """Return what is left of a node."""
    first_oom_bytes = outlook.first_oom.until_oom_bytes
    return NodeSummary(
        name=node.name,
        memory_bytes=node.memory_bytes,
        swap_bytes=node.swap_bytes,
        available_bytes=outlook.available_bytes,
        kernel_left_bytes=first_oom_bytes,
        oom_cgroup=outlook.domain.path,
        oom_total_bytes=outlook.domain.total_bytes,
        headroom=outlook.headroom,
        kernel_first=outlook.headroom is None or first_oom_bytes <= outlook.headroom.headroom_bytes,
        pods_memory_bytes=outlook.pods_limit_bytes,
        pods_available_bytes=outlook.available.get(Signal.ALLOCATABLE_MEMORY),
    )


def eviction_places(orders: Orders) -> tuple[EvictionPlace, ...]:
    """Return the kubelet's order."""
    kernel_places = {pod.metadata.uid: place for place, pod in enumerate(orders.kernel_pods, start=1)}
    resource = SIGNALS[orders.ranking.signal].resource
    return tuple(
        EvictionPlace(
            place=place,
            pod=ranked.pod.key,
            qos_class=ranked.qos_class or qos_class_of(ranked.pod, orders.ranking.profile),
            priority=ranked.priority,
            usage=ranked.usage if ranked.has_statistics else None,
            request=ranked.request.value,
            excess=ranked.excess_nanos // NANOS if ranked.has_statistics else None,
            over_request=ranked.over_request,
            spared=ranked.spared,
            kernel_place=kernel_places.get(ranked.pod.metadata.uid),
            before_next_by=ranked.before_next_by,
            reason="" if following is None else why_evicted_first(ranked, following, resource),
        )
        for place, (ranked, following) in enumerate(_with_next(orders.eviction), start=1)
    )


def kill_places(orders: Orders, node: NodeUsage) -> tuple[KillPlace, ...]:
    """Return the kernel's order on a node."""
    places = {ranked.pod.metadata.uid: place for place, ranked in enumerate(orders.eviction, start=1)}
    # The kernel's own thousandth, a whole number of pages: only so does the sum order as the badness does.
    point_pages = max(1, orders.domain.total_bytes // PAGE_BYTES // 1000)
    return tuple(
        KillPlace(
            place=place,
            pod=killed.pod.key,
            container=killed.usage.name,
            qos_class=killed.qos_class,
            is_measured=killed.usage.is_measured,
            processes=killed.usage.processes,
            used_bytes=killed.worst.used_pages * PAGE_BYTES,
            oom_score_adj=killed.score.value,
            oom_reason=oom_rule(killed.score, node.memory_bytes),
            badness_bytes=killed.worst.points * PAGE_BYTES,
            oom_score=killed.shown_score(node.memory_bytes + node.swap_bytes),
            eviction_place=places[killed.pod.metadata.uid],
            before_next_by=killed.before_next_by,
            margin_bytes=killed.margin_bytes,
            reason="" if following is None else why_killed_first(killed, following),
            share_points=_tenths(killed.worst.used_pages, point_pages) / 10,
            points=_tenths(killed.worst.points, point_pages) / 10,
        )
        for place, (killed, following) in enumerate(_with_next(orders.kernel), start=1)
    )


def _with_next(places: Sequence[Place]) -> Iterator[tuple[Place, Place | None]]:
    """Yield each with the one after it; None after the last."""
    return zip_longest(places, places[1:])


def _tenths(pages: int, point_pages: int) -> int:
    """Return pages in tenths of points, rounded; whole points more are exactly ten tenths more."""
    return (20 * pages + point_pages) // (2 * point_pages)


def rank_report(
    snapshot: Snapshot,
    orders: Orders,
    outlook: Outlook,
    kubelet_oom_score_adj: int = KUBELET_OOM_SCORE_ADJ,
    assumptions: tuple[Assumption, ...] = (),
) -> RankReport:
    """Return both orders of all pods of a node."""
    ranking, node = orders.ranking, snapshot.node
    return RankReport(
        kubernetes_version=ranking.profile.version_text,
        signal=ranking.signal,
        resource=SIGNALS[ranking.signal].resource,
        policy=ranking.policy or Policy(ranking.profile.eviction_ranking),
        hard=ranking.hard,
        node=node_summary(node, outlook),
        eviction_order=eviction_places(orders),
        kill_order=kill_places(orders, node),
        disagreements=orders.disagreements,
        reversed_pairs=orders.reversed_pairs,
        components=components(kubelet_oom_score_adj, node.memory_bytes + node.swap_bytes),
        assumptions=assumptions,
        without_process=idle_containers(snapshot),
    )
