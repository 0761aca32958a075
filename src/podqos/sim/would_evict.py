"""Whom the kubelet would evict for memory right now: asked at every kernel kill, so it has to be quick.

The ranking is ``eviction.ranking``'s. For the kubelet's own policy the first two places are found in one pass over cached
requests and priorities instead; a property test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from podqos.agent.reasons import WouldEvict
from podqos.eviction.ranking import Policy, Ranking, rank
from podqos.eviction.signals import SIGNALS, RankKey, Signal
from podqos.eviction.usage import request_of
from podqos.model.pod import Pod
from podqos.model.profile import Profile
from podqos.model.quantity import NANOS
from podqos.model.resources import MEMORY
from podqos.model.stats import MemoryStats, PodStats


class MemoryRequests:
    """The memory requests that ranking holds usage against, in nano-units, worked out once per pod spec."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._known: dict[int, tuple[Pod, int, int]] = {}

    def of(self, pod: Pod) -> tuple[int, int]:
        """Return the request in nano-units and in whole ones, rounded up."""
        known = self._known.get(id(pod.spec))
        if known is None:
            request = request_of(pod, MEMORY, self._profile)
            known = self._known[id(pod.spec)] = pod, request.nanos, request.value
        return known[1], known[2]


def would_evict(
    pods: Iterable[Pod],
    working_set_bytes: Mapping[str, int],
    requests: MemoryRequests,
    ranking: Ranking,
    *,
    threshold_met: bool,
) -> WouldEvict | None:
    """Return the first of ``pods`` (the active ones, in the order of the node's list) that may be evicted.

    ``working_set_bytes`` are by uid; a pod that is missing has no statistics. None if nobody may be evicted.
    """
    policy = ranking.policy or Policy(ranking.profile.eviction_ranking)
    if policy is not Policy.KUBELET:
        return _by_ranking(pods, working_set_bytes, ranking, threshold_met=threshold_met)
    keyed = []
    for index, pod in enumerate(pods):
        usage = working_set_bytes.get(pod.metadata.uid)
        priority = pod.spec.priority or 0
        if usage is None:
            keyed.append((False, True, priority, 0, index, pod))
        else:
            excess = usage * NANOS - requests.of(pod)[0]
            keyed.append((True, excess <= 0, priority, -excess, index, pod))
    keyed.sort()
    for place, (has_statistics, within, priority, _, _, pod) in enumerate(keyed):
        if not pod.is_critical:
            following = keyed[place + 1] if place + 1 < len(keyed) else None
            return WouldEvict(
                pod=pod.key,
                usage=working_set_bytes.get(pod.metadata.uid, 0),
                request=requests.of(pod)[1],
                over_request=has_statistics and not within,
                priority=priority,
                next_pod=None if following is None else following[5].key,
                before_next_by=None if following is None else _first_difference(keyed[place], following),
                threshold_met=threshold_met,
            )
    return None


# What the parts of a key stand for.
_KEYS = SIGNALS[Signal.MEMORY].ranking


def _first_difference(one: tuple[object, ...], other: tuple[object, ...]) -> RankKey:
    for key, a, b in zip(_KEYS, one, other, strict=False):
        if a != b:
            return key
    return RankKey.INPUT_ORDER


def _by_ranking(
    pods: Iterable[Pod], working_set_bytes: Mapping[str, int], ranking: Ranking, *, threshold_met: bool
) -> WouldEvict | None:
    stats = {
        uid: PodStats(memory=MemoryStats(working_set_bytes=size_bytes)) for uid, size_bytes in working_set_bytes.items()
    }
    ranked = rank(pods, stats, ranking)
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
