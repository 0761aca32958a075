"""How the growth of one container ends: who acts first, how likely, on which pod, and what it would take.

``orders.growing`` decides, exactly, for every phase of the kubelet's loop; here that becomes the value that ``podqos
forecast`` publishes, with its words. Which threshold would be enough is found by asking again with another one.
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
from podqos.amounts import counted, duration, listed, mebibytes, percent, rounded
from podqos.eviction.signals import Signal
from podqos.kernel.cgroup import ROOT, parent_path
from podqos.kernel.memcg import Kind
from podqos.model.effective import pod_requests
from podqos.model.pod import Pod
from podqos.model.quantity import ZERO
from podqos.model.resources import MEMORY
from podqos.model.time_units import SECOND_US
from podqos.orders.growing import SYSTEM, GrowingNode, GrowthLevel
from podqos.orders.plain_node import least_hard_bytes
from podqos.qos.cgroup_paths import node_path

_MIB = 1 << 20
_TENTH_OF_A_MEBIBYTE = _MIB // 10
_USUAL_SHARE = Fraction(1, 4)
"""A hard threshold above this share of the machine is called impractical."""
_DISPLACED_SHOWN = 3
_OWN = frozenset({OOMLevel.CONTAINER, OOMLevel.POD})


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


class ForecastOutcome(Struct, frozen=True, gc=False, rename="camel"):
    """One possible outcome."""

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
    text: str
    """The same in words."""
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


class Needed(Struct, frozen=True, gc=False, rename="camel"):
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
    text: str
    """The same in words."""
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


class Forecast(Struct, frozen=True, gc=False, rename="camel"):
    """The forecast for one container at one growth rate."""

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
    outcomes: tuple[ForecastOutcome, ...]
    """By time; the probabilities add up to one."""
    needed: Needed | None
    """Null where a limit of its own ends the growth."""
    text: str = ""
    """How it ends, as one sentence."""


# ---- the rule --------------------------------------------------------------------------------------------------------


def forecast_growth(node: GrowingNode, rate: int, *, wanted: Fraction = Fraction(99, 100)) -> Forecast:
    """Return how a growth of ``rate`` bytes per second ends."""
    assert rate > 0
    course, level, taken = node.course, _oom_level(node), dict.fromkeys(Kind, 0)
    for step in course.steps:
        for each in step.taken:
            taken[each.kind] += each.size_bytes
    outcomes = tuple(_outcomes(node, rate))
    found = Forecast(
        pod=SYSTEM if node.grower is None else node.grower.pod.key,
        container=node.growth.container,
        rate_bytes_per_second=rate,
        out_of_memory=level,
        out_of_memory_path=course.room.path,
        out_of_memory_after_seconds=Fraction(node.until_oom_bytes, rate),
        reclaimed_bytes=taken[Kind.ACTIVE_FILE] + taken[Kind.INACTIVE_FILE],
        swapped_bytes=taken[Kind.ANON],
        thresholds=tuple(_crossing(node, threshold, rate) for threshold in node.levels),
        kubelet_first=sum((outcome.probability for outcome in outcomes if outcome.by is By.KUBELET), start=Fraction(0)),
        outcomes=outcomes,
        needed=None if level in _OWN else _needed(node, rate, wanted),
    )
    return replace(found, text=_growth_text(found))


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


def _outcomes(node: GrowingNode, rate: int) -> Iterator[ForecastOutcome]:
    """Yield one outcome for all phases with the same result."""
    interval = node.watch.interval_us * rate
    found: dict[tuple[str, str, str], ForecastOutcome] = {}
    lost = interval
    for act in node.acts(rate):
        lost -= act.end - act.begin
        uid = act.victim.pod.metadata.uid
        outcome = ForecastOutcome(
            by=By.KUBELET,
            pod=act.victim.pod.key,
            container=None,
            probability=Fraction(act.end - act.begin, interval),
            earliest_seconds=Fraction(act.first, SECOND_US * rate),
            latest_seconds=Fraction(act.last, SECOND_US * rate),
            ends_growth=uid == node.growth.uid,
            signal=act.level.signal,
            threshold_type=act.level.type,
            text="",
        )
        key = (act.level.signal, act.level.type, uid)
        found[key] = _together(found[key], outcome) if key in found else outcome
    for outcome in sorted(found.values(), key=lambda outcome: (outcome.earliest_seconds, outcome.latest_seconds)):
        yield replace(outcome, text=_outcome_text(outcome))
    if lost:
        killed, oom_seconds = node.killed(), Fraction(node.until_oom_bytes, rate)
        end = ForecastOutcome(
            by=By.KERNEL,
            pod=killed.pod.key,
            container=killed.usage.name,
            probability=Fraction(lost, interval),
            earliest_seconds=oom_seconds,
            latest_seconds=oom_seconds,
            ends_growth=(killed.pod.metadata.uid, killed.usage.name) == (node.growth.uid, node.growth.container),
            oom_score_adj=killed.score.value,
            text="",
        )
        yield replace(end, text=_outcome_text(end))


def _together(one: ForecastOutcome, other: ForecastOutcome) -> ForecastOutcome:
    return replace(
        one,
        probability=one.probability + other.probability,
        earliest_seconds=min(one.earliest_seconds, other.earliest_seconds),
        latest_seconds=max(one.latest_seconds, other.latest_seconds),
    )


# ---- what would be needed --------------------------------------------------------------------------------------------


def _needed(node: GrowingNode, rate: int, wanted: Fraction) -> Needed:
    hard = least_hard_bytes(node, rate, wanted)
    impractical = _impractical(node, hard)
    soft = next((level for level in node.levels if not level.is_hard), None)
    needed = Needed(
        probability=wanted,
        eviction_hard_bytes=hard,
        attainable=hard is not None and impractical is not Impractical.PRESSURE,
        soft_threshold_bytes=None if soft is None else soft.amount,
        soft_grace_seconds=None if soft is None else _soft_grace_seconds(node, rate, wanted, soft),
        system_reserved_for_soft_bytes=None if soft is None else soft.amount,
        text="",
        impractical=impractical,
        instead=None if impractical is None else _instead(node),
        allocatable_bytes=None if hard is None else max(0, _unreserved_bytes(node) - hard),
        takes_bytes=0 if hard is None else max(0, min(hard, _unreserved_bytes(node)) - _hard_bytes(node)),
        displaced=() if hard is None else tuple(_displaced(node, hard)),
    )
    return replace(needed, text=_needed_text(needed))


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


# ---- in words --------------------------------------------------------------------------------------------------------


def rate_text(bytes_per_second: int) -> str:
    """Return a growth rate; below a tenth of a MiB in KiB, which a slow leak has."""
    if 0 < bytes_per_second < _TENTH_OF_A_MEBIBYTE:
        return f"{bytes_per_second / 2**10:.3g}Ki/s"
    return f"{mebibytes(bytes_per_second)}/s"


def _growth_text(growth: Forecast) -> str:
    """Return how a growth ends, as one sentence: who acts first, on which pod, and when."""
    rate = rate_text(growth.rate_bytes_per_second)
    subject = "the system daemons grow" if growth.pod == SYSTEM else f"{growth.pod} grows"
    ends = [_end_text(outcome, growth) for outcome in growth.outcomes]
    if not ends:
        return f"If {subject} by {rate}, nothing is evicted or killed."
    if len(ends) == 1:
        return f"If {subject} by {rate}, {ends[0]}."
    shares = (
        f"{_share(outcome.probability)} of the time {end}" for outcome, end in zip(growth.outcomes, ends, strict=True)
    )
    return f"If {subject} by {rate}: {', '.join(shares)}."


def _share(share: Fraction) -> str:
    """Return a share of the time for reading at a glance: neither 0 % nor 100 % unless it is."""
    value = round(share * 100)
    if value in {0, 100} and share not in {0, 1}:
        return "less than 1 %" if value == 0 else "more than 99 %"
    return f"{value} %"


def _end_text(outcome: ForecastOutcome, growth: Forecast) -> str:
    who = "it" if outcome.pod == growth.pod else outcome.pod
    when = span(outcome.earliest_seconds, outcome.latest_seconds)
    act = "the kubelet evicts" if outcome.by is By.KUBELET else "the kernel kills"
    if growth.out_of_memory in _OWN and outcome.ends_growth and outcome.by is By.KERNEL:
        return f"{act} {who} {when}, at its own memory limit"
    instead = "" if outcome.ends_growth else " instead, and the growth continues"
    return f"{act} {who} {when}{instead}"


def _outcome_text(outcome: ForecastOutcome) -> str:
    """Return what happens, to whom and when."""
    after = "and the growth continues" if not outcome.ends_growth else "which stops the growth"
    when = f"{span(outcome.earliest_seconds, outcome.latest_seconds)}, {after}"
    if outcome.by is By.KUBELET:
        return f"the kubelet evicts {outcome.pod} for {outcome.signal} ({outcome.threshold_type}) {when}"
    score = f"oom_score_adj {outcome.oom_score_adj}"
    return f"the kernel kills {outcome.pod} ({outcome.container}, {score}) {when}"


def _needed_text(needed: Needed) -> str:
    """Return with which settings the kubelet would be first, and what to do where they are impractical."""
    chance = percent(needed.probability)
    if needed.impractical is None and not needed.takes_bytes:  # it has no less now
        text = f"evictionHard {_threshold(needed)} would be enough for the kubelet to act first {chance} of the time."
    elif needed.impractical is None:
        text = f"For the kubelet to act first {chance} of the time, set evictionHard {_threshold(needed)}."
    elif needed.eviction_hard_bytes is None:
        text = f"No evictionHard lets the kubelet act first {chance} of the time: {_IMPRACTICAL[needed.impractical]}."
    else:
        text = (
            f"To act first {chance} of the time, the kubelet would need evictionHard {_threshold(needed)}, which is "
            f"impractical: {_IMPRACTICAL[needed.impractical]}."
        )
    text += _displaced_text(needed)
    if needed.instead is not None:
        text += _instead_text(needed.instead)
    if needed.soft_threshold_bytes is not None:
        soft, grace = mebibytes(needed.soft_threshold_bytes), needed.soft_grace_seconds
        text += (
            f" The soft threshold of {soft} comes too late even without a grace period."
            if grace is None
            else f" The soft threshold of {soft} can have a grace period of up to {duration(grace)} if systemReserved "
            f"covers {soft}."
        )
    return text


_IMPRACTICAL = {
    Impractical.SPARED: "the kubelet never evicts these pods",
    Impractical.TOO_LATE: "at this rate memory runs out between two checks",
    Impractical.PRESSURE: "less is available now, so the node would be under pressure immediately",
    Impractical.REQUESTS: "pods request more than it leaves",
    Impractical.SHARE: "it reserves more than a quarter of the machine",
}


def _displaced_text(needed: Needed) -> str:
    """Return what the hard threshold costs: it is taken from what pods may request."""
    if not needed.takes_bytes:
        return ""
    verb = "This reduces" if needed.impractical is None else "It would reduce"
    taken = f" {verb} allocatable by {mebibytes(needed.takes_bytes)}"
    if not needed.displaced:
        return f"{taken}; all pods still fit."
    shown, more = needed.displaced[:_DISPLACED_SHOWN], len(needed.displaced) - _DISPLACED_SHOWN
    pods = listed([*shown, counted(more, "more pod")] if more > 0 else shown)
    return f"{taken}; {pods} no longer fit{'s' if len(needed.displaced) == 1 else ''}."


def _threshold(needed: Needed) -> str:
    assert needed.eviction_hard_bytes is not None
    return f"memory.available<{mebibytes(needed.eviction_hard_bytes)}"


def _instead_text(instead: Instead) -> str:
    ways = []
    if instead.limit_bytes is not None:
        own = " and a request (without one, the limit becomes the request)" if instead.becomes_request else ""
        ways.append(f"give the container a memory limit of at most {mebibytes(instead.limit_bytes)}{own}")
    if instead.fast_path:
        ways.append("run podqos node, whose fast path evicts as soon as a threshold is crossed")
    return f" Instead, {', or '.join(ways)}." if ways else ""


_WHERE = {
    OOMLevel.CONTAINER: "The container reaches its own limit",
    OOMLevel.POD: "The pod reaches its own limit",
    OOMLevel.CLASS: "The class reaches its limit",
    OOMLevel.KUBEPODS: "The pods together reach their limit",
    OOMLevel.NODE: "The machine runs out of memory",
}


def race_text(growth: Forecast) -> str:
    """Return when thresholds are crossed, and when memory runs out."""
    end = f"{_WHERE[growth.out_of_memory]} after {rounded(growth.out_of_memory_after_seconds)}"
    if not growth.thresholds:
        return f"{_reclaim_text(growth)}{end}. No memory threshold is set."
    crossed = [
        f"{one.signal} crosses its {one.type} threshold of {mebibytes(one.amount)} "
        f"after {rounded(one.crossed_after_seconds)}. "
        for one in growth.thresholds
        if one.crossed_after_seconds <= growth.out_of_memory_after_seconds
    ]
    if not crossed:
        return f"{_reclaim_text(growth)}{end}, before any threshold is crossed."
    return f"{_reclaim_text(growth)}{''.join(crossed)}{end}."


def _reclaim_text(growth: Forecast) -> str:
    gains = []
    if growth.reclaimed_bytes:
        gains.append(f"reclaims {mebibytes(growth.reclaimed_bytes)} of page cache")
    if growth.swapped_bytes:
        gains.append(f"swaps {mebibytes(growth.swapped_bytes)} out")
    return f"The kernel first {' and '.join(gains)}. " if gains else ""


def span(first_seconds: Fraction, last_seconds: Fraction) -> str:
    """Return when something happens."""
    first, last = rounded(first_seconds), rounded(last_seconds)
    if not last_seconds:
        return "immediately"
    return f"after {first}" if first == last else f"after {first} to {last}"
