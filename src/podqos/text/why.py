"""Why one pod is evicted or killed before another: as a cell of a table, of a pod alone, and as a sentence.

The keys say what decided (``eviction.ranking``, ``orders.killed_by``), places have the numbers. Every command that says
why A goes before B says it here.
"""

from __future__ import annotations

from podqos.amounts import amount, mebibytes
from podqos.eviction.signals import RankKey
from podqos.model.pod import QOSClass
from podqos.model.resources import MEMORY
from podqos.orders.orders import EvictionPlace, KillKey, KillPlace

# A cell of the row that goes first; and what is said about a pod alone, where the next one's figures are not told.
_EVICTED: dict[RankKey, tuple[str, str]] = {
    RankKey.NO_STATISTICS: ("no statistics", "this pod has no statistics"),
    RankKey.OVER_REQUEST: ("over its request, next isn't", "only this pod is over its request"),
    RankKey.PRIORITY: ("priority {one.priority}, next {other.priority}", "this pod has a lower priority"),
    RankKey.EXCESS: ("{excess} its request, next {next_excess}", "this pod exceeds its request by more"),
    RankKey.USAGE: ("uses {used}, next {next_used}", "this pod uses more"),
    RankKey.QOS_CLASS: ("{one.qos_class}, next {other.qos_class}", "this pod has a lower QoS class"),
    RankKey.TIER: ("{tier}, next {next_tier}", "this pod is in a lower tier"),
    RankKey.TIER_USAGE: ("proportionally further over its request", "this pod uses more within the tier"),
    RankKey.NAME: ("tie, by name", "this pod's name sorts first"),
    RankKey.INPUT_ORDER: ("tie, in input order", "this pod came first in the input"),
}


def evicted_by_key(key: RankKey, *, over: bool) -> str:
    """Return why a pod, over its request or not, is evicted before the next, where the other's figures are not told."""
    return "this pod is closer to its request" if key is RankKey.EXCESS and not over else _EVICTED[key][1]


def why_evicted(one: EvictionPlace, other: EvictionPlace, resource: str = MEMORY) -> str:
    """Return why the kubelet evicts a pod before the next."""
    key = one.before_next_by or RankKey.INPUT_ORDER
    if key is RankKey.TIER_USAGE and one.qos_class is QOSClass.BEST_EFFORT:
        return "uses more"
    return _EVICTED[key][0].format(
        one=one,
        other=other,
        excess=_excess(one, resource),
        next_excess=_excess(other, resource),
        used=amount(one.usage or 0, resource),
        next_used=amount(other.usage or 0, resource),
        tier=_tier(one),
        next_tier=_tier(other),
    )


def _excess(place: EvictionPlace, resource: str) -> str:
    excess = place.excess or 0
    if excess > 0:
        return f"{amount(excess, resource)} over"
    return f"{amount(-excess, resource)} under" if excess else "at"


def _tier(place: EvictionPlace) -> str:
    if place.qos_class is not QOSClass.BURSTABLE:
        return str(place.qos_class)
    return f"Burstable {'over' if place.over_request else 'within'} its request"


def why_killed(one: KillPlace, other: KillPlace) -> str:
    """Return why the kernel kills a container before the next."""
    used = f"{mebibytes(one.used_bytes)} vs {mebibytes(other.used_bytes)}"
    scores = f"oom_score_adj {one.oom_score_adj} vs {other.oom_score_adj}"
    match one.before_next_by:
        case KillKey.MEMORY:
            return used if one.oom_score_adj == other.oom_score_adj else f"{used} outweighs {scores}"
        case KillKey.ADJUSTMENT:
            return scores if one.used_bytes == other.used_bytes else f"{scores} outweighs {used}"
        case KillKey.BOTH:
            return f"{scores} and {used}"
        case _:
            return "tie, scanned later"


# ---- the first of an order, as a clause that follows "is evicted first:" or "is OOM-killed first:" -------------------


def why_first_evicted(first: EvictionPlace, following: EvictionPlace | None, *, is_assumed: bool = False) -> str:
    """Return why the kubelet evicts a pod before all others, for memory; ``is_assumed``: what it uses is."""
    standing = _over_request(first, is_assumed=is_assumed)
    match first.before_next_by if following is not None else None:
        case None:
            return "it is the only pod the kubelet can evict"
        case RankKey.NO_STATISTICS:
            return "the kubelet has no statistics for it"
        case RankKey.OVER_REQUEST:
            return f"{standing}, and all others stay within their requests"
        case RankKey.PRIORITY if following is not None:
            lower = f"its priority is {first.priority} (next pod: {following.priority})"
            return f"{standing}, and {lower}" if standing else lower
        case RankKey.EXCESS if first.usage is not None and first.usage <= first.request:
            left = mebibytes(first.request - first.usage)
            return f"no pod exceeds its request, and it is the closest to doing so ({left} left)"
        case RankKey.EXCESS:
            return f"{standing}, the largest excess among pods of its priority"
        case RankKey.USAGE | RankKey.TIER_USAGE:
            return f"it uses the most memory, {mebibytes(first.usage or 0)}"
        case RankKey.QOS_CLASS | RankKey.TIER:
            return "its QoS class is the lowest"
        case _:
            tie = "tied with the next pod, so the order in which the kubelet lists them decides"
            assumed = "all pods are assumed to stay within their requests"
            return f"{standing or (assumed if is_assumed else 'no pod exceeds its request')}; {tie}"


def _over_request(first: EvictionPlace, *, is_assumed: bool) -> str:
    """Return by how much it uses more than it requests; empty where it does not."""
    if first.usage is None:
        return ""
    if not first.request:
        return "it requests no memory" if is_assumed else f"it uses {mebibytes(first.usage)} and requests none"
    excess = first.usage - first.request
    uses = "it is assumed to use" if is_assumed else "it uses"
    return f"{uses} {mebibytes(excess)} more than it requests" if excess > 0 else ""


def why_first_killed(
    first: KillPlace, following: KillPlace | None, container: str = "", *, is_assumed: bool = False
) -> str:
    """Return why the kernel kills a container before all others; it is named where its pod has several."""
    if following is None:
        return "it is the only container that can be killed"
    who = container or "it"
    score = f"{who} is {first.qos_class} with oom_score_adj {first.oom_score_adj}"
    scored = f"{score} (next container: {following.oom_score_adj})"
    uses = f"{who} {'is assumed to use' if is_assumed else 'uses'} {mebibytes(first.used_bytes)}"
    used = f"{uses} (next container: {mebibytes(following.used_bytes)})"
    match first.before_next_by:
        case KillKey.MEMORY:
            return used
        case KillKey.ADJUSTMENT:
            return scored
        case KillKey.BOTH:
            return f"{scored}, and {used}"
        case _:
            return f"{score}; tied with the next container, so the order of processes decides"


def first_then(evicted: str | None, killed: str | None) -> str:
    """Return who is first in both orders after an edit."""
    if evicted is not None and evicted == killed:
        return f"Then {evicted} is evicted and OOM-killed first."
    ways = [f"{pod} is {fate} first" for pod, fate in ((evicted, "evicted"), (killed, "OOM-killed")) if pod is not None]
    return f"Then {' and '.join(ways)}." if ways else ""
