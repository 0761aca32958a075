"""Why a pod is the first to be evicted or OOM-killed, in plain words: a clause that follows "is evicted first:"."""

from __future__ import annotations

from msgspec import Struct

from podqos.eviction.signals import RankKey
from podqos.model.pod import QOSClass
from podqos.survival.orders.orders import KillKey
from podqos.wording import mebibytes


class FirstEvicted(Struct, frozen=True, gc=False):
    """The pod that is evicted first, for memory."""

    priority: int
    usage: int | None
    """Null without statistics."""
    request: int
    before_next_by: RankKey | None
    """None where there is no other pod to evict."""
    next_priority: int | None = None
    is_assumed: bool = False
    """Whether what it uses is assumed."""


class FirstKilled(Struct, frozen=True, gc=False):
    """The container that is OOM-killed first."""

    container: str
    """Empty where its pod has no other."""
    qos_class: QOSClass
    used_bytes: int
    oom_score_adj: int
    before_next_by: KillKey | None
    """None where there is no other container to kill."""
    next_used_bytes: int | None = None
    next_oom_score_adj: int | None = None
    is_assumed: bool = False


def first_then(evicted: str | None, killed: str | None) -> str:
    """Return who is first in both orders after an edit."""
    if evicted is not None and evicted == killed:
        return f"Then {evicted} is evicted and OOM-killed first."
    ways = [f"{pod} is {fate} first" for pod, fate in ((evicted, "evicted"), (killed, "OOM-killed")) if pod is not None]
    return f"Then {' and '.join(ways)}." if ways else ""


def why_first_evicted(first: FirstEvicted) -> str:
    """Return why the kubelet evicts a pod before all others."""
    standing = _over(first)
    match first.before_next_by:
        case None:
            return "it is the only pod the kubelet can evict"
        case RankKey.NO_STATISTICS:
            return "the kubelet has no statistics for it"
        case RankKey.OVER_REQUEST:
            return f"{standing}, and all others stay within their requests"
        case RankKey.PRIORITY:
            lower = f"its priority is {first.priority} (next pod: {first.next_priority})"
            return f"{standing}, and {lower}" if standing else lower
        case RankKey.EXCESS if first.usage is not None and first.usage <= first.request:
            return f"no pod exceeds its request, and it is the closest to doing so ({_left(first)} left)"
        case RankKey.EXCESS:
            return f"{standing}, the largest excess among pods of its priority"
        case RankKey.USAGE | RankKey.TIER_USAGE:
            return f"it uses the most memory, {mebibytes(first.usage or 0)}"
        case RankKey.QOS_CLASS | RankKey.TIER:
            return "its QoS class is the lowest"
        case _:
            tie = "tied with the next pod, so the order in which the kubelet lists them decides"
            within = (
                "all pods are assumed to stay within their requests"
                if first.is_assumed
                else "no pod exceeds its request"
            )
            return f"{standing}; {tie}" if standing else f"{within}; {tie}"


def _over(first: FirstEvicted) -> str:
    """Return by how much it uses more than it requests; empty where it does not."""
    if first.usage is None:
        return ""
    if not first.request:
        return "it requests no memory" if first.is_assumed else f"it uses {mebibytes(first.usage)} and requests none"
    excess = first.usage - first.request
    uses = "it is assumed to use" if first.is_assumed else "it uses"
    return f"{uses} {mebibytes(excess)} more than it requests" if excess > 0 else ""


def _left(first: FirstEvicted) -> str:
    return mebibytes(first.request - (first.usage or 0))


def why_first_killed(first: FirstKilled) -> str:
    """Return why the kernel kills a container before all others."""
    score = f"{first.container or 'it'} is {first.qos_class} with oom_score_adj {first.oom_score_adj}"
    after = "" if first.next_oom_score_adj is None else f" (next container: {first.next_oom_score_adj})"
    uses = f"{first.container or 'it'} {'is assumed to use' if first.is_assumed else 'uses'}"
    used = f"{uses} {mebibytes(first.used_bytes)}"
    more = "" if first.next_used_bytes is None else f" (next container: {mebibytes(first.next_used_bytes)})"
    match first.before_next_by:
        case None:
            return "it is the only container that can be killed"
        case KillKey.MEMORY:
            return f"{used}{more}"
        case KillKey.ADJUSTMENT:
            return f"{score}{after}"
        case KillKey.BOTH:
            return f"{score}{after}, and {used[0].lower()}{used[1:]}{more}"
        case KillKey.SCANNED_LATER:
            return f"{score}; tied with the next container, so the order of processes decides"
