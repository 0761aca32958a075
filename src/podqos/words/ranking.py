"""The reason for each place in a kill order, and amounts, in words."""

from __future__ import annotations

from collections.abc import Mapping

from podqos.eviction.ranking import RankedPod, Tier
from podqos.eviction.signals import RankKey
from podqos.kernel.build import PAGE_BYTES
from podqos.model.quantity import NANOS
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from podqos.survival.orders.orders import KilledContainer, KillKey
from podqos.wording import mebibytes

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


def why_evicted_first(one: RankedPod, other: RankedPod, resource: str) -> str:
    """Return why the kubelet evicts a pod before the next."""
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


def why_killed_first(one: KilledContainer, other: KilledContainer) -> str:
    """Return why the kernel kills a container before the next."""
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
