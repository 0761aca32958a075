"""Put both orders of a node together for ``podqos rank``, with the reason for each place in words."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from msgspec.structs import replace

from podqos.eviction.ranking import Policy, RankedPod, Tier
from podqos.eviction.signals import SIGNALS, RankKey
from podqos.kernel.build import PAGE_BYTES
from podqos.model.assumption import Assumption
from podqos.model.quantity import NANOS
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from podqos.model.snapshot import Snapshot
from podqos.qos.oom import KUBELET_OOM_SCORE_ADJ
from podqos.survival.components import components
from podqos.survival.orders import KilledContainer, KillKey, Orders
from podqos.survival.outlook import Outlook
from podqos.survival.places import (
    EvictionPlace,
    KillPlace,
    RankReport,
    eviction_places,
    idle_containers,
    kill_places,
    node_summary,
)
from podqos.wording import mebibytes
from podqos.words.qos import oom_rule


def rank_report(
    snapshot: Snapshot,
    orders: Orders,
    outlook: Outlook,
    kubelet_oom_score_adj: int = KUBELET_OOM_SCORE_ADJ,
    assumptions: tuple[Assumption, ...] = (),
) -> RankReport:
    """Render both orders into the documented shape."""
    ranking = orders.ranking
    machine_bytes = snapshot.node.memory_bytes + snapshot.node.swap_bytes
    return RankReport(
        kubernetes_version=ranking.profile.version_text,
        signal=ranking.signal,
        resource=SIGNALS[ranking.signal].resource,
        policy=ranking.policy or Policy(ranking.profile.eviction_ranking),
        hard=ranking.hard,
        node=node_summary(snapshot.node, outlook),
        eviction_order=_eviction_order(orders),
        kill_order=_kill_order(orders, snapshot.node.memory_bytes, machine_bytes),
        disagreements=orders.disagreements,
        reversed_pairs=orders.reversed_pairs,
        components=components(kubelet_oom_score_adj, machine_bytes),
        assumptions=assumptions,
        without_process=idle_containers(snapshot),
    )


def _eviction_order(orders: Orders) -> tuple[EvictionPlace, ...]:
    resource = SIGNALS[orders.ranking.signal].resource
    reasons = [_why_evicted_first(one, other, resource) for one, other in pairwise(orders.eviction)]
    places = zip(eviction_places(orders), (*reasons, ""), strict=False)
    return tuple(replace(place, reason=reason) for place, reason in places)


def _kill_order(orders: Orders, node_memory_bytes: int, machine_bytes: int) -> tuple[KillPlace, ...]:
    reasons = [_why_killed_first(one, other) for one, other in pairwise(orders.kernel)]
    places = zip(kill_places(orders, machine_bytes), orders.kernel, (*reasons, ""), strict=False)
    return tuple(
        replace(place, oom_reason=oom_rule(killed.score, node_memory_bytes), reason=reason)
        for place, killed, reason in places
    )


_TIERS = {
    Tier.BEST_EFFORT: "BestEffort",
    Tier.BURSTABLE_OVER_REQUEST: "Burstable over its request",
    Tier.BURSTABLE_WITHIN_REQUEST: "Burstable within its request",
    Tier.GUARANTEED: "Guaranteed",
    None: "",
}


_EVICTED_FIRST: Mapping[RankKey | None, str] = {
    RankKey.NO_STATISTICS: "the kubelet has no statistics for it",
    RankKey.OVER_REQUEST: "over its request, the next is not",
    RankKey.TIER_USAGE: "further over its request, in proportion",
    RankKey.NAME: "equal but for the name",
}


def _why_evicted_first(one: RankedPod, other: RankedPod, resource: str) -> str:
    match one.before_next_by:
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
        case RankKey.TIER_USAGE if one.tier is Tier.BEST_EFFORT:
            return "uses more"
        case key:
            return _EVICTED_FIRST.get(key, "equal; in the order given")


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
    """Return an amount of a resource as text."""
    return mebibytes(number) if resource in {MEMORY, EPHEMERAL_STORAGE} else str(number)


def scheduled(number: int, resource: str) -> str:
    """Return an amount in the scheduler's unit, in which cpu is in thousandths."""
    return f"{number}m" if resource == CPU else amount(number, resource)
