"""The order in which pods are evicted for a signal, with the numbers that decide each place.

Three named policies, each a list of criteria (``RankKey``) applied one after the other:

``kubelet``    what the kubelet does since 1.9: usage over request, then lower priority, then larger usage − request;
               for process ids lower priority, then more processes. The QoS class plays no part.
``qos-tiers``  BestEffort, Burstable over its request, Burstable within it, Guaranteed; inside a tier lower priority,
               then larger usage (BestEffort) or larger (usage − request)/request (Burstable over it), then name.
               Guaranteed pods are spared unless a hard threshold is met.
``qos-usage``  what the kubelet did up to 1.8: lower class, then larger usage − request of memory, or larger usage.

Order among equals: ``kubelet`` and ``qos-usage`` keep the order of the input. Upstream sorts with an algorithm that is
stable up to 12 pods only, so this is its own answer where it has one. ``qos-tiers`` ends with namespace and name.

Pods without statistics are evicted first: among all (memory and disk), among those of equal priority (process ids), of
equal class (``qos-usage``) or of equal tier and priority (``qos-tiers``, where such a Burstable pod counts as over its
request).

Sources: Kubernetes v1.36 and v1.8 pkg/kubelet/eviction/helpers.go; for ``qos-tiers`` see docs/internals/rules.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum, StrEnum
from fractions import Fraction
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction.pods import request_of, usage_of
from podqos.eviction.signals import INODES, PIDS, SIGNALS, Layout, RankKey, Signal
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import NANOS, ZERO, Quantity
from podqos.model.resources import EPHEMERAL_STORAGE, MEMORY
from podqos.model.stats import PodStats
from podqos.qos.classes import qos_class_of


class Policy(StrEnum):
    """How pods are ranked."""

    KUBELET = "kubelet"
    QOS_TIERS = "qos-tiers"
    QOS_USAGE = "qos-usage"


class Tier(IntEnum):
    """The tiers of ``qos-tiers``, evicted in this order."""

    BEST_EFFORT = 1
    BURSTABLE_OVER_REQUEST = 2
    BURSTABLE_WITHIN_REQUEST = 3
    GUARANTEED = 4


class Spared(StrEnum):
    """Why a pod is passed over."""

    CRITICAL = "critical"
    """Static, mirror, or of a system priority: never evicted."""
    GUARANTEED = "guaranteed"
    """``qos-tiers`` evicts Guaranteed pods under a hard threshold only."""


class Ranking(Struct, frozen=True, gc=False):
    """What pods are ranked for, and how."""

    signal: Signal
    layout: Layout = Layout.SINGLE
    policy: Policy | None = None
    """None is the policy of the Kubernetes version."""
    hard: bool = True
    """Whether the threshold that acts is a hard one."""
    profile: Profile = LATEST


class RankedPod(Struct, frozen=True, gc=False):
    """A pod in the order of eviction, with everything that put it there."""

    pod: Pod
    has_statistics: bool
    usage: int
    """Bytes, inodes or processes; 0 without statistics."""
    request: Quantity
    """What ``over_request`` compares with; nothing can be requested of inodes and process ids."""
    excess_nanos: int
    """usage − request in 10⁻⁹ units. For inodes upstream subtracts the ephemeral-storage request."""
    over_request: bool
    priority: int
    qos_class: QOSClass | None = None
    """Only where the policy asks for it."""
    tier: Tier | None = None
    spared: Spared | None = None
    before_next_by: RankKey | None = None
    """The first criterion in which the next pod differs; None for the last pod."""


def rank(pods: Iterable[Pod], stats: Mapping[str, PodStats], ranking: Ranking) -> tuple[RankedPod, ...]:
    """Return the pods, first to be evicted first. ``stats`` are by uid."""
    policy = ranking.policy or Policy(ranking.profile.eviction_ranking)
    keys = ranking_keys(ranking)
    functions = [_KEYS[key] for key in keys]
    measured = [_measure(pod, stats.get(pod.metadata.uid), ranking, policy) for pod in pods]
    decorated = [(tuple(function(entry) for function in functions), entry) for entry in measured]
    decorated.sort(key=_key_of)
    ordered: list[RankedPod] = []
    for (key, entry), (next_key, _) in pairwise(decorated):
        ordered.append(replace(entry, before_next_by=_first_difference(keys, key, next_key)))
    return (*ordered, *(entry for _, entry in decorated[-1:]))


def ranking_keys(ranking: Ranking) -> tuple[RankKey, ...]:
    """Return the criteria, first to last; what they leave equal keeps the order of the input."""
    policy = ranking.policy or Policy(ranking.profile.eviction_ranking)
    row = SIGNALS[ranking.signal]
    if policy is Policy.QOS_TIERS:
        return (RankKey.TIER, RankKey.PRIORITY, RankKey.NO_STATISTICS, RankKey.TIER_USAGE, RankKey.NAME)
    if policy is Policy.QOS_USAGE:
        last = RankKey.EXCESS if row.resource == MEMORY else RankKey.USAGE
        return (RankKey.QOS_CLASS, RankKey.NO_STATISTICS, last)
    if row.resource == PIDS and ranking.profile.pid_ranking != "priority-and-count":
        return (RankKey.PRIORITY,)
    return row.ranking


def eviction_key(ranked: RankedPod, ranking: Ranking) -> tuple[object, ...]:
    """Return what puts a pod where it is: the smaller goes first, and equal ones differ at most in name."""
    return tuple(_KEYS[key](ranked) for key in ranking_keys(ranking) if key is not RankKey.NAME)


def evicted_by(one: RankedPod, other: RankedPod, ranking: Ranking) -> RankKey:
    """Return the first criterion in which two pods of a ranking differ, neighbours or not."""
    keys = ranking_keys(ranking)
    return _first_difference(keys, tuple(_KEYS[key](one) for key in keys), tuple(_KEYS[key](other) for key in keys))


def can_rank(ranking: Ranking) -> bool:
    """Whether the Kubernetes version ranks pods for the signal at all: up to 1.13 it watched process ids only."""
    is_default = ranking.policy in {None, Policy.KUBELET}
    return not (is_default and ranking.signal is Signal.PID and ranking.profile.pid_ranking == "none")


def _measure(pod: Pod, stats: PodStats | None, ranking: Ranking, policy: Policy) -> RankedPod:
    row = SIGNALS[ranking.signal]
    usage = usage_of(pod, stats, row.resource, row.disk_use[ranking.layout]) if stats is not None else 0
    request = ZERO if row.resource == PIDS else request_of(pod, row.resource, ranking.profile)
    subtracted = request_of(pod, EPHEMERAL_STORAGE, ranking.profile) if row.resource == INODES else request
    usage_nanos = usage * NANOS
    over_request = stats is not None and usage_nanos > request.nanos
    qos_class = tier = None
    if policy is not Policy.KUBELET:
        qos_class = qos_class_of(pod, ranking.profile)
    if policy is Policy.QOS_TIERS:
        tier = _tier(qos_class, over_request=over_request or stats is None)
    return RankedPod(
        pod=pod,
        has_statistics=stats is not None,
        usage=usage,
        request=request,
        excess_nanos=usage_nanos - subtracted.nanos if stats is not None else 0,
        over_request=over_request,
        priority=pod.spec.priority or 0,
        qos_class=qos_class,
        tier=tier,
        spared=_spared(pod, tier, hard=ranking.hard),
    )


def _tier(qos_class: QOSClass | None, *, over_request: bool) -> Tier:
    if qos_class is QOSClass.BEST_EFFORT:
        return Tier.BEST_EFFORT
    if qos_class is QOSClass.GUARANTEED:
        return Tier.GUARANTEED
    return Tier.BURSTABLE_OVER_REQUEST if over_request else Tier.BURSTABLE_WITHIN_REQUEST


def _spared(pod: Pod, tier: Tier | None, *, hard: bool) -> Spared | None:
    if pod.is_critical:
        return Spared.CRITICAL
    return Spared.GUARANTEED if tier is Tier.GUARANTEED and not hard else None


def _tier_usage(entry: RankedPod) -> tuple[bool, Fraction]:
    """Order inside a tier: by usage, or by how far a pod is over its request; no request at all is infinitely far."""
    if entry.tier is Tier.BEST_EFFORT:
        return True, Fraction(-entry.usage)
    if entry.tier is not Tier.BURSTABLE_OVER_REQUEST:
        return True, Fraction(0)
    if not entry.request:
        return False, Fraction(0)
    return True, Fraction(-(entry.usage * NANOS - entry.request.nanos), entry.request.nanos)


_CLASS_ORDER = {QOSClass.BEST_EFFORT: 0, QOSClass.BURSTABLE: 1, QOSClass.GUARANTEED: 2, None: 3}

# What each criterion sorts by, ascending.
_KEYS: dict[RankKey, Callable[[RankedPod], object]] = {
    RankKey.NO_STATISTICS: lambda entry: entry.has_statistics,
    RankKey.OVER_REQUEST: lambda entry: not entry.over_request,
    RankKey.PRIORITY: lambda entry: entry.priority,
    RankKey.EXCESS: lambda entry: -entry.excess_nanos,
    RankKey.USAGE: lambda entry: -entry.usage,
    RankKey.QOS_CLASS: lambda entry: _CLASS_ORDER[entry.qos_class],
    RankKey.TIER: lambda entry: entry.tier,
    RankKey.TIER_USAGE: _tier_usage,
    RankKey.NAME: lambda entry: (entry.pod.metadata.namespace, entry.pod.metadata.name),
}


def _key_of(decorated: tuple[tuple[object, ...], RankedPod]) -> tuple[object, ...]:
    return decorated[0]


def _first_difference(keys: tuple[RankKey, ...], one: tuple[object, ...], other: tuple[object, ...]) -> RankKey:
    for key, a, b in zip(keys, one, other, strict=True):
        if a != b:
            return key
    return RankKey.INPUT_ORDER
