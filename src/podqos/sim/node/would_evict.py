"""Which pod the kubelet would evict for memory right now: asked at every kernel kill, so it must be fast.

The ranking is ``eviction.ranking``'s. For the kubelet's own policy the first places are found in one pass over cached
requests and priorities instead; a property test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from podqos.agent.reasons import WouldEvict
from podqos.eviction.ranking import Policy, Ranking, rank
from podqos.eviction.signals import SIGNALS, RankKey, Signal
from podqos.eviction.usage import request_of
from podqos.model.pod import Pod
from podqos.model.profile import Profile
from podqos.model.quantity import NANOS, Quantity
from podqos.model.resources import MEMORY
from podqos.model.stats import MemoryStats, PodStats
from podqos.sim.engine.gauge import FRACTION_BITS
from podqos.sim.node.pods import SimPod

NOTHING_DENIED: Mapping[str, int] = MappingProxyType({})


class MemoryRequests:
    """The memory requests that ranking compares usage with, computed once per pod spec."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._known: dict[int, tuple[Pod, Quantity]] = {}

    def of(self, pod: Pod) -> Quantity:
        """Return the request that usage is compared with."""
        known = self._known.get(id(pod.spec))
        if known is None:
            known = self._known[id(pod.spec)] = pod, request_of(pod, MEMORY, self._profile)
        return known[1]


def would_evict(
    pods: Collection[SimPod],
    time_us: int,
    ranking: Ranking,
    *,
    threshold_met: bool,
    denied: Mapping[str, int] = NOTHING_DENIED,
) -> WouldEvict | None:
    """Return the first of ``pods`` (in the order of their admission) that may be evicted, if any.

    ``denied`` is what pods, by uid, ask for at this moment and do not get.
    """
    policy = ranking.policy or Policy(ranking.profile.eviction_ranking)
    if policy is not Policy.KUBELET or denied:
        stats = {
            pod.uid: PodStats(
                memory=MemoryStats(working_set_bytes=pod.working_set_bytes(time_us) - denied.get(pod.uid, 0))
            )
            for pod in pods
        }
        return _by_ranking([pod for pod in pods if not pod.is_gone], stats, ranking, threshold_met=threshold_met)
    # Pods over their request come first: if there are two of them, the others need not be considered.
    over = [
        pod
        for pod in pods
        if (held := pod.working_set).base + held.slope * (time_us - held.since_us) >= pod.over_request_fine
        and not pod.is_gone
    ]
    found = _first(over, time_us)
    if found is None or found[1] is None:
        found = _first((pod for pod in pods if not pod.is_gone), time_us)
    if found is None:
        return None
    key, following = found
    within, priority, excess, _, pod = key
    return WouldEvict(
        pod=pod.key,
        usage=(pod.request_nanos - excess) // NANOS,
        request=-(-pod.request_nanos // NANOS),
        over_request=not within,
        priority=priority,
        next_pod=None if following is None else following[4].key,
        before_next_by=None if following is None else _first_difference(key, following),
        threshold_met=threshold_met,
    )


_Key = tuple[bool, int, int, int, SimPod]
"""Whether it is within its request, its priority, by how much it is below its request, its place, the pod."""


def _first(pods: Iterable[SimPod], time_us: int) -> tuple[_Key, _Key | None] | None:
    """Return the first pod that may be evicted, and the next one; None if there is none."""
    keyed: list[_Key] = []
    for index, pod in enumerate(pods):
        held = pod.working_set
        size_bytes = (held.base + held.slope * (time_us - held.since_us)) >> FRACTION_BITS
        excess = size_bytes * NANOS - pod.request_nanos
        keyed.append((excess <= 0, pod.priority, -excess, index, pod))
    keyed.sort()
    for place, key in enumerate(keyed):
        if not key[4].is_critical:
            return key, keyed[place + 1] if place + 1 < len(keyed) else None
    return None


def place_of(
    victim: SimPod, pods: Collection[SimPod], time_us: int, ranking: Ranking, denied: Mapping[str, int]
) -> int | None:
    """Return the place of a pod among those that may be evicted; None if it may not.

    ``denied`` is what containers, by path, ask for at this moment and do not get.
    """
    if victim.is_critical or victim.is_gone:
        return None

    def used_bytes(pod: SimPod) -> int:
        size_bytes = pod.working_set_bytes(time_us)
        return size_bytes - sum(denied.get(container.path, 0) for container in pod.running) if denied else size_bytes

    there = [pod for pod in pods if not pod.is_gone]
    if (ranking.policy or Policy(ranking.profile.eviction_ranking)) is not Policy.KUBELET:
        stats = {pod.uid: PodStats(memory=MemoryStats(working_set_bytes=used_bytes(pod))) for pod in there}
        order = rank((pod.pod for pod in there), stats, ranking)
        evictable = [ranked.pod.metadata.uid for ranked in order if ranked.spared is None]
        return evictable.index(victim.uid) + 1 if victim.uid in evictable else None
    keyed = []
    own = None
    for index, pod in enumerate(there):
        if not pod.is_critical:
            excess = used_bytes(pod) * NANOS - pod.request_nanos
            keyed.append((excess <= 0, pod.priority, -excess, index))
            if pod is victim:
                own = keyed[-1]
    return None if own is None else 1 + sum([key < own for key in keyed])


# The criteria that the parts of a key belong to.
_KEYS = SIGNALS[Signal.MEMORY].ranking[1:]


def _first_difference(one: tuple[object, ...], other: tuple[object, ...]) -> RankKey:
    for key, a, b in zip(_KEYS, one, other, strict=False):
        if a != b:
            return key
    return RankKey.INPUT_ORDER


def _by_ranking(
    pods: Iterable[SimPod], stats: Mapping[str, PodStats], ranking: Ranking, *, threshold_met: bool
) -> WouldEvict | None:
    ranked = rank((pod.pod for pod in pods), stats, ranking)
    for place, entry in enumerate(ranked):
        if entry.spared is None:
            following = ranked[place + 1] if place + 1 < len(ranked) else None
            return WouldEvict(
                pod=entry.pod.key,
                usage=entry.usage,
                request=entry.request.value,
                over_request=entry.over_request,
                priority=entry.priority,
                next_pod=None if following is None else following.pod.key,
                before_next_by=entry.before_next_by,
                threshold_met=threshold_met,
            )
    return None
