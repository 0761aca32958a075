"""What ``podqos rank`` says of a node, as a value: the documented JSON shape, from which all other outputs follow.

The orders themselves come from ``survival``; here they are only gathered and worded. The shape is stable: fields are
added, never renamed or removed, and ``docs/schema/rank.json`` is made from these classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from podqos.eviction.ranking import Policy, RankedPod, Tier
from podqos.eviction.signals import SIGNALS, RankKey
from podqos.kernel.build import PAGE_BYTES
from podqos.model.pod import QOSClass
from podqos.model.quantity import NANOS
from podqos.model.resources import EPHEMERAL_STORAGE, MEMORY
from podqos.model.snapshot import Snapshot
from podqos.qos.oom import ComponentScore, component_scores
from podqos.report.text.components import ComponentReport, component_reports
from podqos.report.text.words import oom_rule
from podqos.survival.orders import KilledContainer, KillKey, Orders
from podqos.survival.outlook import Outlook
from podqos.wording import mebibytes


class NodeSummary(Struct, frozen=True, rename="camel"):
    """The node, and how much memory it has left for whom."""

    name: str
    memory_bytes: int
    swap_bytes: int
    available_bytes: int
    """``memory.available``, as the kubelet counts."""
    kernel_left_bytes: int
    """What the kernel can still hand out before it kills, with page cache reclaimed; below zero where that is past."""
    oom_cgroup: str
    """Where memory runs out first: ``/`` for the whole machine."""
    oom_total_bytes: int
    """What thousandths of oom_score_adj are of there."""


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
    """Why it is passed over: ``critical``, or ``guaranteed`` under qos-tiers and a soft threshold."""
    kernel_place: int
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


class DisagreementReport(Struct, frozen=True, rename="camel"):
    """Two neighbours of the kubelet's order whom the kernel takes the other way round."""

    evicted_first: str
    killed_first: str
    killed_by: KillKey
    evicted_by: RankKey | None
    spared: str | None
    """Why the kubelet never evicts the one that is killed first: ``critical`` or ``guaranteed``."""


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
    disagreements: tuple[DisagreementReport, ...]
    reversed_pairs: int
    """How many pairs of pods stand the other way round, neighbours or not; 0 if the orders agree."""
    components: tuple[ComponentReport, ...]
    """The processes of the node itself, which are in neither order."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "SurvivalOrders"


def rank_report(
    snapshot: Snapshot, orders: Orders, outlook: Outlook, components: Sequence[ComponentScore] = component_scores()
) -> RankReport:
    """Render both orders into the documented shape."""
    ranking = orders.ranking
    machine_bytes = snapshot.node.memory_bytes + snapshot.node.swap_bytes
    return RankReport(
        kubernetes_version=".".join(map(str, ranking.profile.version)),
        signal=ranking.signal,
        resource=SIGNALS[ranking.signal].resource,
        policy=ranking.policy or Policy(ranking.profile.eviction_ranking),
        hard=ranking.hard,
        node=NodeSummary(
            name=snapshot.node.name,
            memory_bytes=snapshot.node.memory_bytes,
            swap_bytes=snapshot.node.swap_bytes,
            available_bytes=outlook.available_bytes,
            kernel_left_bytes=outlook.first_oom.until_oom_bytes,
            oom_cgroup=orders.domain.path,
            oom_total_bytes=orders.domain.total_bytes,
        ),
        eviction_order=_eviction_order(orders),
        kill_order=_kill_order(orders, snapshot.node.memory_bytes, machine_bytes),
        disagreements=tuple(
            DisagreementReport(each.evicted_first, each.killed_first, each.killed_by, each.evicted_by, each.spared)
            for each in orders.disagreements
        ),
        reversed_pairs=orders.reversed_pairs,
        components=component_reports(components, machine_bytes),
    )


def _eviction_order(orders: Orders) -> tuple[EvictionPlace, ...]:
    resource = SIGNALS[orders.ranking.signal].resource
    kernel_places = {pod.metadata.uid: place for place, pod in enumerate(orders.kernel_pods, start=1)}
    classes = {killed.pod.metadata.uid: killed.qos_class for killed in orders.kernel}
    reasons = [_why_evicted_first(one, other, resource) for one, other in pairwise(orders.eviction)]
    return tuple(
        EvictionPlace(
            place=place,
            pod=ranked.pod.key,
            qos_class=classes[ranked.pod.metadata.uid],
            priority=ranked.priority,
            usage=ranked.usage if ranked.has_statistics else None,
            request=ranked.request.value,
            excess=ranked.excess_nanos // NANOS if ranked.has_statistics else None,
            over_request=ranked.over_request,
            spared=ranked.spared,
            kernel_place=kernel_places[ranked.pod.metadata.uid],
            before_next_by=ranked.before_next_by,
            reason=reason,
        )
        for place, (ranked, reason) in enumerate(zip(orders.eviction, (*reasons, ""), strict=False), start=1)
    )


def _kill_order(orders: Orders, node_memory_bytes: int, machine_bytes: int) -> tuple[KillPlace, ...]:
    eviction_places = {ranked.pod.metadata.uid: place for place, ranked in enumerate(orders.eviction, start=1)}
    reasons = [_why_killed_first(one, other) for one, other in pairwise(orders.kernel)]
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
            oom_reason=oom_rule(killed.score, node_memory_bytes),
            badness_bytes=killed.worst.points * PAGE_BYTES,
            oom_score=killed.shown_score(machine_bytes),
            eviction_place=eviction_places[killed.pod.metadata.uid],
            before_next_by=killed.before_next_by,
            margin_bytes=killed.margin_bytes,
            reason=reason,
        )
        for place, (killed, reason) in enumerate(zip(orders.kernel, (*reasons, ""), strict=False), start=1)
    )


_TIERS = {
    Tier.BEST_EFFORT: "BestEffort",
    Tier.BURSTABLE_OVER_REQUEST: "Burstable over its request",
    Tier.BURSTABLE_WITHIN_REQUEST: "Burstable within its request",
    Tier.GUARANTEED: "Guaranteed",
    None: "",
}


def _why_evicted_first(one: RankedPod, other: RankedPod, resource: str) -> str:
    match one.before_next_by:
        case RankKey.NO_STATISTICS:
            return "the kubelet has no statistics of it"
        case RankKey.OVER_REQUEST:
            return "over its request, the next is not"
        case RankKey.PRIORITY:
            return f"priority {one.priority}, the next {other.priority}"
        case RankKey.EXCESS:
            return f"{_excess(one, resource)}, the next {_excess(other, resource)}"
        case RankKey.USAGE:
            return f"uses {amount(one.usage, resource)}, the next {amount(other.usage, resource)}"
        case RankKey.QOS_CLASS:
            return f"{one.qos_class}, the next {other.qos_class}"
        case RankKey.TIER:
            return f"{_TIERS[one.tier]}, the next {_TIERS[other.tier]}"
        case RankKey.TIER_USAGE:
            return "uses more" if one.tier is Tier.BEST_EFFORT else "further over its request, in proportion"
        case RankKey.NAME:
            return "equal but for the name"
        case _:
            return "equal; in the order given"


def _excess(ranked: RankedPod, resource: str) -> str:
    excess = ranked.excess_nanos // NANOS
    if excess > 0:
        return f"{amount(excess, resource)} over"
    return f"{amount(-excess, resource)} below" if excess else "at its request"


def _why_killed_first(one: KilledContainer, other: KilledContainer) -> str:
    used = f"{mebibytes(one.worst.used_pages * PAGE_BYTES)} against {mebibytes(other.worst.used_pages * PAGE_BYTES)}"
    scores = f"oom_score_adj {one.score.value} against {other.score.value}"
    match one.before_next_by:
        case KillKey.MEMORY:
            return used if one.score.value == other.score.value else f"{used} outweighs {scores}"
        case KillKey.ADJUSTMENT:
            return scores if one.worst.used_pages == other.worst.used_pages else f"{scores} outweighs {used}"
        case KillKey.BOTH:
            return f"{scores}, {used}"
        case _:
            return "equal; scanned later"


def amount(number: int, resource: str) -> str:
    """Return an amount of a resource for people."""
    return mebibytes(number) if resource in {MEMORY, EPHEMERAL_STORAGE} else str(number)
