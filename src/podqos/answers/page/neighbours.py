"""Whom a pod comes before and after in both kill orders, each with the reason as a clause with both sides in it.

The shape is stable: fields are added, never renamed or removed; ``docs/schema/page.json`` follows these classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from podqos.agent.journal import By
from podqos.answers.places import EvictionPlace, KillPlace, RankReport
from podqos.eviction.signals import RankKey
from podqos.survival.orders.orders import KillKey
from podqos.wording import mebibytes


class PlaceNeighbour(Struct, frozen=True, gc=False, rename="camel"):
    """The pod just before or just after another in a kill order."""

    by: By
    """Whose order: the kubelet's or the kernel's."""
    is_earlier: bool
    """Whether this neighbour is evicted or killed before the pod."""
    pod: str
    container: str
    """In the kernel's order; empty in the kubelet's."""
    text: str
    """Why that one comes first: ``it has priority 0, this pod 1000``."""


def neighbours_of(pod: str, report: RankReport) -> tuple[PlaceNeighbour, ...]:
    """Return whom a pod comes after and before: in the kubelet's order, and its first container in the kernel's."""
    return (*_of_evictions(pod, report.eviction_order), *_of_kills(pod, report.kill_order))


def _of_evictions(pod: str, order: Sequence[EvictionPlace]) -> Iterator[PlaceNeighbour]:
    own = next((place for place in order if place.pod == pod), None)
    if own is None or own.spared is not None:
        return
    if own.place > 1:
        earlier = order[own.place - 2]
        if earlier.spared is None:
            yield PlaceNeighbour(By.KUBELET, True, earlier.pod, "", _why_evicted(earlier, own, is_earlier=True))
    if own.place < len(order):
        later = order[own.place]
        if later.spared is None:
            yield PlaceNeighbour(By.KUBELET, False, later.pod, "", _why_evicted(own, later, is_earlier=False))


def _of_kills(pod: str, order: Sequence[KillPlace]) -> Iterator[PlaceNeighbour]:
    own = next((place for place in order if place.pod == pod), None)
    if own is None:
        return
    if own.place > 1:
        earlier = order[own.place - 2]
        yield PlaceNeighbour(
            By.KERNEL, True, earlier.pod, earlier.container, _why_killed(earlier, own, is_earlier=True)
        )
    if own.place < len(order):
        later = order[own.place]
        yield PlaceNeighbour(By.KERNEL, False, later.pod, later.container, _why_killed(own, later, is_earlier=False))


def _why_evicted(one: EvictionPlace, other: EvictionPlace, *, is_earlier: bool) -> str:
    """Return why one pod is evicted before another; of a pod and its neighbour, which is earlier or later."""
    first, second = ("that one", "this pod") if is_earlier else ("this pod", "that one")
    match one.before_next_by:
        case RankKey.NO_STATISTICS:
            return f"the kubelet has no statistics of {first}"
        case RankKey.OVER_REQUEST:
            return f"{first} uses more than it requests, {second} doesn't"
        case RankKey.PRIORITY:
            return f"{first} has priority {one.priority}, {second} {other.priority}"
        case RankKey.EXCESS if one.excess is not None and other.excess is not None:
            return f"{first} {_excess(one.excess)}, {second} {_excess(other.excess)}"
        case RankKey.USAGE | RankKey.TIER_USAGE if one.usage is not None and other.usage is not None:
            return f"{first} uses {mebibytes(one.usage)}, {second} {mebibytes(other.usage)}"
        case RankKey.QOS_CLASS | RankKey.TIER:
            return f"{first} is {one.qos_class}, {second} {other.qos_class}"
        case RankKey.NAME:
            return "a tie, decided by the names"
        case _:
            return "a tie, decided by the order in which the kubelet lists its pods"


def _excess(excess_bytes: int) -> str:
    if excess_bytes > 0:
        return f"is {mebibytes(excess_bytes)} over its request"
    return f"is {mebibytes(-excess_bytes)} under its request" if excess_bytes else "uses exactly its request"


def _why_killed(one: KillPlace, other: KillPlace, *, is_earlier: bool) -> str:
    """Return why one container is killed before another."""
    first, second = ("that one", "this pod") if is_earlier else ("this pod", "that one")
    memory = f"{first} uses {mebibytes(one.used_bytes)}, {second} {mebibytes(other.used_bytes)}"
    score = f"{first} has oom_score_adj {one.oom_score_adj}, {second} {other.oom_score_adj}"
    match one.before_next_by:
        case KillKey.MEMORY if one.oom_score_adj < other.oom_score_adj:
            return f"{memory}, which outweighs oom_score_adj {one.oom_score_adj} vs {other.oom_score_adj}"
        case KillKey.MEMORY:
            return memory
        case KillKey.ADJUSTMENT if one.used_bytes < other.used_bytes:
            used = f"{mebibytes(one.used_bytes)} vs {mebibytes(other.used_bytes)} in use"
            return f"{score}, which outweighs {used}"
        case KillKey.ADJUSTMENT:
            return score
        case KillKey.BOTH:
            return f"{score}, and {memory}"
        case _:
            return "a tie, decided by the order of processes"
