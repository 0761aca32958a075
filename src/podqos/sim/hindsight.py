"""What would have changed the kills of a recorded run: other manifests, or a kubelet that acts in time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import By, Entry, is_kill
from podqos.agent.reasons import OOMKill, OOMLevel, UnderPressure
from podqos.agent.shutdown import stop_seconds
from podqos.eviction.pods import hard_grace_seconds
from podqos.eviction.ranking import rank
from podqos.eviction.signals import Signal
from podqos.model.effective import pod_requests
from podqos.model.quantity import ZERO
from podqos.model.resources import MEMORY
from podqos.model.time_units import SECOND_US
from podqos.orders.counterfactual import Counterfactual
from podqos.orders.trials import KernelMoment, kernel_counterfactuals, kubelet_counterfactuals, kubelet_place
from podqos.sim.record import MOST_DECISIONS, Moment, NodeRecord, RecordedNode
from podqos.sim.scenario.scenario import LOOP_INTERVAL_US
from podqos.sim.series import part_way

_MIB = 1 << 20
_LOOKS_BETWEEN = 8
"""At how many times between two recorded moments it is asked which pod the kubelet would evict."""


class KubeletInTime(Struct, frozen=True, gc=False):
    """The hard threshold with which the kubelet would have acted before the kernel had to."""

    threshold_bytes: int
    growth_bytes_per_second: int
    """How fast memory fell before the kill; zero or less where reclaim kept up with it."""
    evicted: tuple[str, ...]
    """The pods it would have evicted, depending on when it looks."""


class DeathHindsight(Struct, frozen=True, gc=False):
    """A kill or an eviction with its place in both orders, and what would have changed it."""

    entry: Entry
    kernel_place: int | None = None
    kubelet_place: int | None = None
    counterfactuals: tuple[Counterfactual, ...] = ()
    in_time: KubeletInTime | None = None


def hindsights(entries: Sequence[Entry], nodes: Mapping[str, RecordedNode]) -> Iterator[DeathHindsight]:
    """Yield the first kills on the recorded nodes, in the order of the journal."""
    seen = {name: deque(node.record.kills) for name, node in nodes.items()}
    found = (entry for entry in entries if entry.node in nodes and is_kill(entry))
    for entry in islice(found, MOST_DECISIONS):
        assert entry.pod is not None
        node, left = nodes[entry.node], seen[entry.node]
        if not isinstance(entry.because, OOMKill):
            yield _by_kubelet(entry, entry.pod, node)
        elif left and left[0].now_us == entry.time_us:
            yield _by_kernel(entry, entry.pod, left.popleft(), node)
        else:
            yield DeathHindsight(entry)


def _briefly(entry: Entry) -> DeathHindsight:
    return DeathHindsight(entry, kubelet_place=1 if isinstance(entry.because, UnderPressure) else None)


def _by_kubelet(entry: Entry, pod: str, node: RecordedNode) -> DeathHindsight:
    moment = node.record.evictions.get(entry.time_us)
    if moment is None or entry.by is not By.KUBELET:
        return _briefly(entry)
    uid = node.record.pods[pod].metadata.uid
    found = kubelet_counterfactuals(moment, uid, node.surroundings(pod))
    return replace(_briefly(entry), counterfactuals=found)


def _by_kernel(entry: Entry, pod: str, seen: KernelMoment, node: RecordedNode) -> DeathHindsight:
    uid = node.record.pods[pod].metadata.uid
    found = kernel_counterfactuals(seen, (uid, entry.container or ""), node.surroundings(pod))
    place = kubelet_place(seen.snapshot, node.ranking, uid)
    if found is None or found.place != 1:
        return DeathHindsight(entry, kubelet_place=place)
    assert isinstance(entry.because, OOMKill)
    in_time = _in_time(node, entry.time_us) if entry.because.level is OOMLevel.NODE else None
    return DeathHindsight(entry, 1, place, found.counterfactuals, in_time)


# ---- a threshold that the kubelet would have met in time -------------------------------------------------------------


def _in_time(node: RecordedNode, time_us: int) -> KubeletInTime | None:
    """Return the threshold that would have made the kubelet act before a kill, wherever its loop was.

    It is met throughout the last interval in which a pass is early enough, by what was left in this run, page cache
    reclaimed or not. It must not be met from the beginning, and must leave room for what the pods request. Which pod
    the kubelet evicts is asked all along, because it may look at any time.
    """
    record, settings = node.record, node.settings
    moments = record.moments[: bisect_left(record.moments, time_us, key=_time_us) + 1]
    pods = [used.pod for used in node.snapshot(moments[-1]).pods]
    grace_seconds = max((stop_seconds(hard_grace_seconds(pod, settings.agent.profile)) for pod in pods), default=0)
    until_us = time_us - grace_seconds * SECOND_US - settings.spec.statistics_age_us
    since_us = until_us - LOOP_INTERVAL_US
    if since_us < moments[0].time_us:
        return None
    # One setting makes a threshold for the machine and one for what pods may use: either will do.
    signals = [signal for signal in (Signal.MEMORY, Signal.ALLOCATABLE_MEMORY) if signal in moments[-1].left]
    most_left = min(_most_left(moments, signal, since_us, until_us) for signal in signals)
    needed = (most_left // _MIB + 1) * _MIB

    def is_met(moment: Moment) -> bool:
        return any(moment.left[signal].available < needed for signal in signals)

    before = bisect_right(moments, since_us, key=_time_us) - 1
    first = next((place for place in range(before, -1, -1) if not is_met(moments[place])), None)
    if first is None or any(_is_cut(record, one, other) for one, other in pairwise(moments[first:])):
        return None
    known = [
        threshold.amount for threshold in record.thresholds if threshold.signal is Signal.MEMORY and threshold.hard
    ]
    allocatable = settings.agent.allocatable[MEMORY].value + max(known, default=0) - needed
    if sum(pod_requests(pod).get(MEMORY, ZERO).value for pod in pods) > allocatable:
        return None
    first_of = (_first_evicted(node, moment) for moment in _all_along(moments[first:]))
    evicted = dict.fromkeys(key for key in first_of if key is not None)
    lost_bytes = _left_at(moments, Signal.MEMORY, since_us) - moments[-1].left[Signal.MEMORY].available
    growth = lost_bytes * SECOND_US // (time_us - since_us)
    return KubeletInTime(needed, growth, tuple(evicted)) if evicted else None


def _first_evicted(node: RecordedNode, moment: Moment) -> str | None:
    """Return the key of the pod that the kubelet would evict first at a moment; None if none may be evicted."""
    seen = node.record.snapshot(moment)
    order = rank([used.pod for used in seen.pods], seen.stats, node.ranking)
    return next((ranked.pod.key for ranked in order if ranked.spared is None), None)


def _is_cut(record: NodeRecord, one: Moment, other: Moment) -> bool:
    """Whether memory was freed by anything but reclaim, such as an earlier kill: what follows is another story."""
    return other.time_us in record.pinned and other.available_bytes > one.available_bytes


def _most_left(moments: Sequence[Moment], signal: Signal, since_us: int, until_us: int) -> int:
    """Return the most that was left at any time from one to another."""
    inside = (moment.left[signal].available for moment in moments if since_us < moment.time_us < until_us)
    return max(_left_at(moments, signal, since_us), _left_at(moments, signal, until_us), *inside)


def _left_at(moments: Sequence[Moment], signal: Signal, time_us: int) -> int:
    """Return what was left at a time: between two moments everything is linear."""
    place = bisect_right(moments, time_us, key=_time_us) - 1
    one, other = moments[place], moments[min(place + 1, len(moments) - 1)]
    left, change = one.left[signal].available, other.left[signal].available - one.left[signal].available
    return left if one is other else left - -change * (time_us - one.time_us) // (other.time_us - one.time_us)


def _time_us(moment: Moment) -> int:
    return moment.time_us


def _all_along(moments: Sequence[Moment]) -> Iterator[Moment]:
    for one, other in pairwise(moments):
        yield one
        if [*one.pods] == [*other.pods]:
            yield from (part_way(one, other, step, _LOOKS_BETWEEN) for step in range(1, _LOOKS_BETWEEN))
    yield moments[-1]
