"""The race between kernel and kubelet for one growing container: how likely each acts first, and which pod dies.

``growing`` has the model: what the kernel reclaims and when it kills, and at which phases of its loop the kubelet acts
first. Here that becomes outcomes with exact probabilities, and the settings with which the kubelet would be first.

An eviction does not necessarily end the growth: the first pod in the ranking need not be the growing one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from enum import StrEnum
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import By
from podqos.agent.reasons import OOMLevel
from podqos.agent.state import MemoryNotification
from podqos.eviction.signals import Signal
from podqos.kernel.cgroup import ROOT, parent_path
from podqos.kernel.memcg import Kind
from podqos.model.effective import pod_requests
from podqos.model.pod import Pod
from podqos.model.quantity import ZERO
from podqos.model.resources import MEMORY
from podqos.model.time_units import SECOND_US
from podqos.qos.cgroup_paths import node_path
from podqos.survival.forecast.growing import GrowingNode, GrowthLevel

SYSTEM = "system"
"""What grows where it is no pod: the daemons of the machine."""
_MIB = 1 << 20
_USUAL_SHARE = Fraction(1, 4)
"""A hard threshold above this share of the machine is called impractical."""


class Crossing(Struct, frozen=True, gc=False, rename="camel"):
    """A threshold, and when the growth crosses it."""

    signal: Signal
    type: str
    value: str
    """As configured."""
    amount: int
    crossed_after_seconds: Fraction
    """For the first time."""
    window_seconds: Fraction
    """From there to the kernel's kill, minus all delays but the wait for a pass; zero or less is too late. Reclaim can
    clear the threshold in between."""


class RaceEnd(Struct, frozen=True, gc=False):
    """One possible end of the race."""

    by: By
    pod: str
    container: str | None
    """The container that the kernel kills; an eviction ends the whole pod."""
    probability: Fraction
    earliest_seconds: Fraction
    """Since the growth began."""
    latest_seconds: Fraction
    ends_growth: bool
    """Whether the growing container is the victim."""
    signal: Signal | None = None
    """Of an eviction: the threshold that acts."""
    threshold_type: str | None = None
    oom_score_adj: int | None = None
    """Of a kill."""


class Impractical(StrEnum):
    """Why a threshold would not be set, the worst first."""

    SPARED = "all pods are spared"
    TOO_LATE = "none acts in time"
    PRESSURE = "met before anything grows"
    REQUESTS = "leaves pods less than they request"
    SHARE = "withholds more than a quarter of the machine"


class Instead(Struct, frozen=True, gc=False, rename="camel"):
    """What holds a growth that a threshold does not."""

    limit_bytes: int | None
    """The highest memory limit of the growing container with which it reaches no threshold, and nothing but itself;
    null where it is too late for that."""
    fast_path: bool
    """Whether podqos' node agent, which is told when a threshold is met, would be first with the thresholds as they
    are; false if it is that agent."""
    becomes_request: bool = False
    """Whether the container requests no memory, so that a limit alone would become its request."""


class NeededSettings(Struct, frozen=True, gc=False):
    """Settings with which the kubelet acts first with the wanted probability."""

    probability: Fraction
    eviction_hard_bytes: int | None
    """In whole MiB. The setting also makes the threshold of allocatableMemory.available, where that is enforced. Null
    where none is enough."""
    attainable: bool
    """False where there is none, or the node would be under pressure before anything grows."""
    soft_threshold_bytes: int | None
    """The configured soft threshold, if any."""
    soft_grace_seconds: float | None
    """The longest grace period of that threshold; null where even zero is too long."""
    system_reserved_for_soft_bytes: int | None
    """So that pods within their requests never meet it."""
    impractical: Impractical | None = None
    """Why the hard threshold would not be set; null where it is a usual one."""
    instead: Instead | None = None
    """What to do where it is impractical."""
    allocatable_bytes: int | None = None
    """What pods may request with that hard threshold; null where there is none."""
    takes_bytes: int = 0
    """By how much that is less than now."""
    displaced: tuple[str, ...] = ()
    """Pods that would no longer fit, as ``namespace/name``: a kubelet that is restarted admits them again, oldest
    first; where their age is not known, by priority, as they are scheduled. Everything else here is with all pods where
    they are."""


class GrowthCourse(Struct, frozen=True, gc=False, rename="camel"):
    """How a container grows at one rate, and how likely the kubelet acts before the kernel."""

    pod: str
    """``namespace/name``; ``system`` where the daemons of the machine grow."""
    container: str
    """Empty where the daemons do."""
    rate_bytes_per_second: int
    out_of_memory: OOMLevel
    """Where the kernel runs out of memory for it."""
    out_of_memory_path: str
    out_of_memory_after_seconds: Fraction
    reclaimed_bytes: int
    """Page cache that the kernel takes back before it kills."""
    swapped_bytes: int
    """What it swaps out before."""
    thresholds: tuple[Crossing, ...]
    kubelet_first: Fraction


class GrowthForecast(GrowthCourse, frozen=True, gc=False):
    """How the growth ends, and what it would take for the kubelet to act first."""

    outcomes: tuple[RaceEnd, ...]
    """By time; the probabilities add up to one."""
    needed: NeededSettings | None
    """Null where a limit of its own ends the growth."""


def forecast(node: GrowingNode, rate: int, *, wanted: Fraction = Fraction(99, 100)) -> GrowthForecast:
    """Return how a growth of ``rate`` bytes per second ends."""
    assert rate > 0
    course = node.course
    level = _oom_level(node)
    outcomes = tuple(_outcomes(node, rate))
    taken = dict.fromkeys(Kind, 0)
    for step in course.steps:
        for each in step.taken:
            taken[each.kind] += each.size_bytes
    return GrowthForecast(
        pod=SYSTEM if node.grower is None else node.grower.pod.key,
        container=node.growth.container,
        rate_bytes_per_second=rate,
        out_of_memory=level,
        out_of_memory_path=course.room.path,
        out_of_memory_after_seconds=Fraction(node.until_oom_bytes, rate),
        reclaimed_bytes=taken[Kind.ACTIVE_FILE] + taken[Kind.INACTIVE_FILE],
        swapped_bytes=taken[Kind.ANON],
        thresholds=tuple(_crossing(node, level, rate) for level in node.levels),
        kubelet_first=sum((outcome.probability for outcome in outcomes if outcome.by is By.KUBELET), start=Fraction(0)),
        outcomes=outcomes,
        needed=None if level in {OOMLevel.CONTAINER, OOMLevel.POD} else _needed(node, rate, wanted),
    )


def _crossing(node: GrowingNode, level: GrowthLevel, rate: int) -> Crossing:
    watch = node.watch
    crossed = Fraction(node.crossed_bytes(level), rate)
    # A grace period takes whole intervals.
    grace_us = -(-level.grace_us // watch.interval_us) * watch.interval_us
    delay = Fraction(watch.statistics_age_us + grace_us + watch.reaction_us, SECOND_US)
    return Crossing(
        signal=level.signal,
        type=level.type,
        value=level.value,
        amount=level.amount,
        crossed_after_seconds=crossed,
        window_seconds=Fraction(node.until_oom_bytes, rate) - crossed - delay,
    )


def _outcomes(node: GrowingNode, rate: int) -> Iterator[RaceEnd]:
    """Yield one outcome for all phases with the same result."""
    interval = node.watch.interval_us * rate
    found: dict[tuple[str, str, str], RaceEnd] = {}
    lost = interval
    for act in node.acts(rate):
        lost -= act.end - act.begin
        uid = act.victim.pod.metadata.uid
        outcome = RaceEnd(
            by=By.KUBELET,
            pod=act.victim.pod.key,
            container=None,
            probability=Fraction(act.end - act.begin, interval),
            earliest_seconds=Fraction(act.first, SECOND_US * rate),
            latest_seconds=Fraction(act.last, SECOND_US * rate),
            ends_growth=uid == node.growth.uid,
            signal=act.level.signal,
            threshold_type=act.level.type,
        )
        key = (act.level.signal, act.level.type, uid)
        found[key] = _together(found[key], outcome) if key in found else outcome
    yield from sorted(found.values(), key=lambda outcome: (outcome.earliest_seconds, outcome.latest_seconds))
    if lost:
        killed, oom_seconds = node.killed(), Fraction(node.until_oom_bytes, rate)
        yield RaceEnd(
            by=By.KERNEL,
            pod=killed.pod.key,
            container=killed.usage.name,
            probability=Fraction(lost, interval),
            earliest_seconds=oom_seconds,
            latest_seconds=oom_seconds,
            ends_growth=(killed.pod.metadata.uid, killed.usage.name) == (node.growth.uid, node.growth.container),
            oom_score_adj=killed.score.value,
        )


def _together(one: RaceEnd, other: RaceEnd) -> RaceEnd:
    return replace(
        one,
        probability=one.probability + other.probability,
        earliest_seconds=min(one.earliest_seconds, other.earliest_seconds),
        latest_seconds=max(one.latest_seconds, other.latest_seconds),
    )


# ---- what would be needed -----------------------------------------------------------------------------------------


def _needed(node: GrowingNode, rate: int, wanted: Fraction) -> NeededSettings:
    hard = least_hard_bytes(node, rate, wanted)
    impractical = _impractical(node, hard)
    soft = next((level for level in node.levels if not level.is_hard), None)
    return NeededSettings(
        probability=wanted,
        eviction_hard_bytes=hard,
        attainable=hard is not None and impractical is not Impractical.PRESSURE,
        soft_threshold_bytes=None if soft is None else soft.amount,
        soft_grace_seconds=None if soft is None else _soft_grace_seconds(node, rate, wanted, soft),
        system_reserved_for_soft_bytes=None if soft is None else soft.amount,
        impractical=impractical,
        instead=None if impractical is None else _instead(node),
        allocatable_bytes=None if hard is None else max(0, _unreserved_bytes(node) - hard),
        takes_bytes=0 if hard is None else max(0, min(hard, _unreserved_bytes(node)) - _hard_bytes(node)),
        displaced=() if hard is None else tuple(_displaced(node, hard)),
    )


def least_hard_bytes(node: GrowingNode, rate: int, wanted: Fraction) -> int | None:
    """Return the least hard threshold in whole MiB that is enough by itself; None where none is.

    ``wanted`` is how likely the kubelet is to act first. A higher threshold never makes that worse.
    """
    most = node.snapshot.node.memory_bytes // _MIB
    soft = [level for level in node.levels if not level.is_hard]

    def first(mebibytes: int) -> Fraction:
        hard = node.hard_levels(mebibytes * _MIB)
        alone = node.kubelet_first(rate, hard)
        # Soft thresholds stay as they are set, and one that evicts in vain can stand in the way.
        return min(alone, node.kubelet_first(rate, (*hard, *soft))) if soft and alone >= wanted else alone

    found = bisect_left(range(most + 1), wanted, key=first)
    return None if found > most else found * _MIB


def _soft_grace_seconds(node: GrowingNode, rate: int, wanted: Fraction, soft: GrowthLevel) -> float | None:
    """Return the longest grace period with which a soft threshold is enough by itself: whole intervals."""
    interval_us = node.watch.interval_us
    most = node.until_oom_bytes * SECOND_US // (rate * interval_us) + 1
    too_many = bisect_left(
        range(most),
        True,
        key=lambda passes: node.kubelet_first(rate, [replace(soft, grace_us=passes * interval_us)]) < wanted,
    )
    return None if not too_many else (too_many - 1) * interval_us / SECOND_US


def _impractical(node: GrowingNode, hard: int | None) -> Impractical | None:
    if hard is None:
        return Impractical.TOO_LATE if node.evicts[True] else Impractical.SPARED
    if any(hard >= available for available in node.available.values()):
        return Impractical.PRESSURE
    if next(_displaced(node, hard), None) is not None:
        return Impractical.REQUESTS
    return Impractical.SHARE if hard > node.snapshot.node.memory_bytes * _USUAL_SHARE else None


def _hard_bytes(node: GrowingNode) -> int:
    """Return the hard threshold as it is."""
    thresholds = node.watch.exhaustion.thresholds
    return max(
        (threshold.amount or 0 for threshold in thresholds if threshold.is_hard and threshold.signal is Signal.MEMORY),
        default=0,
    )


def _unreserved_bytes(node: GrowingNode) -> int:
    """Return what pods may request and the hard threshold takes from: huge pages are no part of it."""
    unreserved, machine = node.settings.node_allocatable.get(MEMORY), node.snapshot.node
    most = (machine.memory_bytes if unreserved is None else unreserved.value) - machine.hugepages_bytes
    stated = node.watch.requestable_bytes
    return most if stated is None else min(most, stated + _hard_bytes(node))


def _displaced(node: GrowingNode, hard: int) -> Iterator[str]:
    """Yield the pods that do not fit with a hard threshold, in the order in which they are admitted.

    Source: Kubernetes v1.36 pkg/kubelet/kubelet.go (HandlePodAdditions: by creation time),
    pkg/scheduler/framework/plugins/queuesort/priority_sort.go.
    """
    left = _unreserved_bytes(node) - hard
    pods = [entry.pod for entry in node.snapshot.pods]
    if any(pod.metadata.creation_timestamp for pod in pods):
        pods.sort(key=lambda pod: pod.metadata.creation_timestamp or "")
    else:
        pods.sort(key=lambda pod: -(pod.spec.priority or 0))
    for pod in pods:
        asked = pod_requests(pod).get(MEMORY, ZERO).value
        if asked <= left:
            left -= asked
        elif asked:
            yield pod.key


def _instead(node: GrowingNode) -> Instead:
    first = min([node.until_oom_bytes, *map(node.crossed_bytes, node.levels)])
    usages = () if node.grower is None else node.grower.containers
    held = [usage.anon_bytes + usage.page_table_bytes for usage in usages if usage.name == node.growth.container]
    limits = [(each + first) // _MIB * _MIB for each in held]
    is_told = node.watch.notification is MemoryNotification.FAST_PATH
    return Instead(
        limit_bytes=next((limit for limit, each in zip(limits, held, strict=True) if limit > each), None),
        fast_path=not is_told
        and node.evicts[True]
        and any(0 < node.crossed_bytes(level) < node.until_oom_bytes for level in node.levels if level.is_hard),
        becomes_request=node.grower is not None and _requests_none(node.grower.pod, node.growth.container),
    )


def _requests_none(pod: Pod, container: str | None) -> bool:
    """Whether a container requests no memory: the API server makes a limit its request."""
    return any(each.name == container and MEMORY not in each.resources.requests for each in pod.spec.containers)


def _oom_level(node: GrowingNode) -> OOMLevel:
    path = node.course.room.path
    if path == ROOT:
        return OOMLevel.NODE
    if path == node.path:
        return OOMLevel.CONTAINER
    if path == parent_path(node.path):
        return OOMLevel.POD
    return OOMLevel.KUBEPODS if path == node_path(node.settings) else OOMLevel.CLASS
