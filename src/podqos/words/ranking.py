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
    RankKey.NO_STATISTICS: "no statistics",
    RankKey.OVER_REQUEST: "over its request, next isn't",
    RankKey.TIER_USAGE: "proportionally further over its request",
    RankKey.NAME: "tie, by name",
}


def key_words(key: RankKey | None) -> str:
    """Return a criterion of the order of eviction in a few words."""
    if key is None:
        return "–"
    return "larger usage minus request" if key is RankKey.EXCESS else key.value


def why_evicted_first(one: RankedPod, other: RankedPod, resource: str) -> str:
    """Return why the kubelet evicts a pod before the next."""
    match one.before_next_by:
        case RankKey.PRIORITY:
            return f"priority {one.priority}, next {other.priority}"
        case RankKey.EXCESS:
            return f"{_excess(one, resource)} its request, next {_excess(other, resource)}"
        case RankKey.USAGE:
            return f"uses {amount(one.usage, resource)}, next {amount(other.usage, resource)}"
        case RankKey.QOS_CLASS:
            return f"{one.qos_class}, next {other.qos_class}"
        case RankKey.TIER:
            return f"{_TIERS[one.tier]}, next {_TIERS[other.tier]}"
        case RankKey.TIER_USAGE if one.tier is Tier.BEST_EFFORT:
            return "uses more"
        case key:
            return _EVICTED_FIRST.get(key, "tie, in input order")


def _excess(ranked: RankedPod, resource: str) -> str:
    excess = ranked.excess_nanos // NANOS
    if excess > 0:
        return f"{amount(excess, resource)} over"
    return f"{amount(-excess, resource)} under" if excess else "at"


def why_killed_first(one: KilledContainer, other: KilledContainer) -> str:
    """Return why the kernel kills a container before the next."""
    used = f"{mebibytes(one.worst.used_pages * PAGE_BYTES)} vs {mebibytes(other.worst.used_pages * PAGE_BYTES)}"
    scores = f"oom_score_adj {one.score.value} vs {other.score.value}"
    match one.before_next_by:
        case KillKey.MEMORY:
            return used if one.score.value == other.score.value else f"{used} outweighs {scores}"
        case KillKey.ADJUSTMENT:
            return scores if one.worst.used_pages == other.worst.used_pages else f"{scores} outweighs {used}"
        case KillKey.BOTH:
            return f"{scores} and {used}"
        case _:
            return "tie, scanned later"


def amount(number: int, resource: str) -> str:
    """Return an amount of a resource as text."""
    return mebibytes(number) if resource in {MEMORY, EPHEMERAL_STORAGE} else str(number)


def scheduled(number: int, resource: str) -> str:
    """Return an amount in the scheduler's unit, in which cpu is in thousandths."""
    return f"{number}m" if resource == CPU else amount(number, resource)
