"""What a forecast says: who acts first and when, what it would take, and what to do instead."""

from __future__ import annotations

from fractions import Fraction

from podqos.agent.journal import By
from podqos.agent.reasons import OOMLevel
from podqos.model.resources import MEMORY
from podqos.survival.forecast.forecast import (
    SYSTEM,
    GrowthCourse,
    GrowthForecast,
    Impractical,
    Instead,
    NeededSettings,
    RaceEnd,
)
from podqos.wording import counted, listed
from podqos.words.durations import duration, percent, rounded
from podqos.words.ranking import amount

_DISPLACED_SHOWN = 3
_TENTH_OF_A_MEBIBYTE = 2**20 // 10
_OWN = frozenset({OOMLevel.CONTAINER, OOMLevel.POD})


def rate_text(bytes_per_second: int) -> str:
    """Return a growth rate; below a tenth of a MiB in KiB, which a slow leak has."""
    if 0 < bytes_per_second < _TENTH_OF_A_MEBIBYTE:
        return f"{bytes_per_second / 2**10:.3g}Ki/s"
    return f"{amount(bytes_per_second, MEMORY)}/s"


def growth_text(growth: GrowthForecast) -> str:
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


def _end_text(outcome: RaceEnd, growth: GrowthForecast) -> str:
    who = "it" if outcome.pod == growth.pod else outcome.pod
    when = span(outcome.earliest_seconds, outcome.latest_seconds)
    act = "the kubelet evicts" if outcome.by is By.KUBELET else "the kernel kills"
    if growth.out_of_memory in _OWN and outcome.ends_growth and outcome.by is By.KERNEL:
        return f"{act} {who} {when}, at its own memory limit"
    instead = "" if outcome.ends_growth else " instead, and the growth continues"
    return f"{act} {who} {when}{instead}"


def outcome_text(outcome: RaceEnd) -> str:
    """Return what happens, to whom and when."""
    after = "and the growth continues" if not outcome.ends_growth else "which stops the growth"
    when = f"{span(outcome.earliest_seconds, outcome.latest_seconds)}, {after}"
    if outcome.by is By.KUBELET:
        return f"the kubelet evicts {outcome.pod} for {outcome.signal} ({outcome.threshold_type}) {when}"
    score = f"oom_score_adj {outcome.oom_score_adj}"
    return f"the kernel kills {outcome.pod} ({outcome.container}, {score}) {when}"


def needed_text(needed: NeededSettings) -> str:
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
        soft, grace = amount(needed.soft_threshold_bytes, MEMORY), needed.soft_grace_seconds
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


def _displaced_text(needed: NeededSettings) -> str:
    """Return what the hard threshold costs: it is taken from what pods may request."""
    if not needed.takes_bytes:
        return ""
    verb = "This reduces" if needed.impractical is None else "It would reduce"
    taken = f" {verb} allocatable by {amount(needed.takes_bytes, MEMORY)}"
    if not needed.displaced:
        return f"{taken}; all pods still fit."
    shown, more = needed.displaced[:_DISPLACED_SHOWN], len(needed.displaced) - _DISPLACED_SHOWN
    pods = listed([*shown, counted(more, "more pod")] if more > 0 else shown)
    return f"{taken}; {pods} no longer fit{'s' if len(needed.displaced) == 1 else ''}."


def _threshold(needed: NeededSettings) -> str:
    assert needed.eviction_hard_bytes is not None
    return f"memory.available<{amount(needed.eviction_hard_bytes, MEMORY)}"


def _instead_text(instead: Instead) -> str:
    ways = []
    if instead.limit_bytes is not None:
        own = " and a request (without one, the limit becomes the request)" if instead.becomes_request else ""
        ways.append(f"give the container a memory limit of at most {amount(instead.limit_bytes, MEMORY)}{own}")
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


def race_text(growth: GrowthCourse) -> str:
    """Return when thresholds are crossed, and when memory runs out."""
    end = f"{_WHERE[growth.out_of_memory]} after {rounded(growth.out_of_memory_after_seconds)}"
    if not growth.thresholds:
        return f"{_reclaim_text(growth)}{end}. No memory threshold is set."
    crossed = [
        f"{one.signal} crosses its {one.type} threshold of {amount(one.amount, MEMORY)} "
        f"after {rounded(one.crossed_after_seconds)}. "
        for one in growth.thresholds
        if one.crossed_after_seconds <= growth.out_of_memory_after_seconds
    ]
    if not crossed:
        return f"{_reclaim_text(growth)}{end}, before any threshold is crossed."
    return f"{_reclaim_text(growth)}{''.join(crossed)}{end}."


def _reclaim_text(growth: GrowthCourse) -> str:
    gains = []
    if growth.reclaimed_bytes:
        gains.append(f"reclaims {amount(growth.reclaimed_bytes, MEMORY)} of page cache")
    if growth.swapped_bytes:
        gains.append(f"swaps {amount(growth.swapped_bytes, MEMORY)} out")
    return f"The kernel first {' and '.join(gains)}. " if gains else ""


def span(first_seconds: Fraction, last_seconds: Fraction) -> str:
    """Return when something happens."""
    first, last = rounded(first_seconds), rounded(last_seconds)
    if not last_seconds:
        return "immediately"
    return f"after {first}" if first == last else f"after {first} to {last}"
