"""Where the pods of a node stand in both orders, by pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from podqos.answers.page.pod import PodStanding
from podqos.answers.places import EvictionPlace, KillPlace, RankReport, eviction_places, kill_places
from podqos.model.snapshot import NodeUsage
from podqos.survival.orders.orders import Orders

Place = TypeVar("Place", EvictionPlace, KillPlace)


class Places(Struct):
    """Where the pods of a node stand, by ``namespace/name``."""

    evicted: Mapping[str, EvictionPlace]
    kills: Mapping[str, list[KillPlace]]
    """The containers of each pod; pods in the order in which the kernel takes them."""
    killed: Mapping[str, int]

    @staticmethod
    def of(report: RankReport) -> Places:
        """Return the places of a report by pod."""
        return Places._by_pod(report.eviction_order, report.kill_order)

    @staticmethod
    def of_orders(orders: Orders, node: NodeUsage) -> Places:
        """Return the places in both orders of a node by pod."""
        return Places._by_pod(eviction_places(orders), kill_places(orders, node))

    @staticmethod
    def _by_pod(eviction_order: Iterable[EvictionPlace], kill_order: Iterable[KillPlace]) -> Places:
        kills: dict[str, list[KillPlace]] = {}
        for kill_place in kill_order:
            kills.setdefault(kill_place.pod, []).append(kill_place)
        killed = {pod: place for place, pod in enumerate(kills, 1)}
        return Places({place.pod: place for place in eviction_order}, kills, killed)

    def standing(self, pod: str) -> PodStanding | None:
        """Return where a pod stands."""
        evicted = self.evicted.get(pod)
        if evicted is None:
            return None
        first = next(iter(self.kills.get(pod, ())), None)
        return PodStanding(
            qos_class=evicted.qos_class,
            oom_score_adj=None if first is None else first.oom_score_adj,
            eviction_place=evicted.place,
            kill_place=self.killed.get(pod),
            pods=len(self.evicted),
            spared=evicted.spared,
        )


def turn(now: PodStanding, after: PodStanding) -> tuple[int, int]:
    """Return by how much a pod goes later than now, in the kubelet's order and in the kernel's; below zero: sooner."""
    if now.spared or after.spared:
        evicted = bool(after.spared) - bool(now.spared)
    else:
        evicted = _later(now.eviction_place, after.eviction_place)
    return evicted, _later(now.kill_place, after.kill_place)


def is_safer(now: PodStanding, after: PodStanding) -> bool:
    """Whether a pod goes later in one order, and sooner in none."""
    turned = turn(now, after)
    return min(turned) >= 0 and max(turned) > 0


def _later(now: int | None, after: int | None) -> int:
    return 0 if now is None or after is None else after - now


def before(place: Place | None, order: Sequence[Place]) -> Place | None:
    """Return what goes just before; places begin with 1."""
    return None if place is None or place.place < 2 else order[place.place - 2]
