"""What would have changed the kills of a recorded run: other manifests, or a kubelet that acts in time."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise

from msgspec import Struct

from podqos.agent.journal import By, Entry
from podqos.agent.reasons import OOMKill, OOMLevel, UnderPressure
from podqos.eviction.grace import hard_grace_seconds
from podqos.eviction.ranking import rank
from podqos.eviction.signals import Signal
from podqos.model.effective import pod_requests
from podqos.model.resources import MEMORY
from podqos.model.time_units import SECOND_US
from podqos.sim.node.recording import MOST_DECISIONS, Moment
from podqos.sim.recorded_node import RecordedNode
from podqos.sim.series import part_way
from podqos.survival.comparison import is_kill
from podqos.survival.counterfactual import Counterfactual
from podqos.survival.kernel_counterfactual import KernelMoment, kernel_counterfactuals
from podqos.survival.kubelet_counterfactual import kubelet_counterfactuals, kubelet_place
from podqos.survival.outlook import outlook
from podqos.survival.race import Race, winning_threshold_bytes

_MIB = 1 << 20
_MOST_FALLS = 50
_LOOKS_BETWEEN = 8
"""At how many times between two recorded moments it is asked which pod the kubelet would evict."""


class KubeletInTime(Struct, frozen=True, gc=False):
    """The hard threshold with which the kubelet would have acted before the kernel had to."""

    threshold_bytes: int
    growth_bytes_per_second: int
    evicted: tuple[str, ...]
    """The pods it would have evicted, depending on when it looks."""


class Hindsight(Struct, frozen=True, gc=False):
    """A kill or an eviction with its place in both orders, and what would have changed it."""

    entry: Entry
    kernel_place: int | None = None
    kubelet_place: int | None = None
    counterfactuals: tuple[Counterfactual, ...] = ()
    in_time: KubeletInTime | None = None


def hindsights(entries: Sequence[Entry], nodes: Mapping[str, RecordedNode]) -> Iterator[Hindsight]:
    """Yield the first kills on the recorded nodes, in the order of the journal."""
    seen = {name: deque(node.record.kills) for name, node in nodes.items()}
    found = (entry for entry in entries if entry.node in nodes and is_kill(entry))
    for entry in islice(found, MOST_DECISIONS):
        assert entry.pod is not None
        node, left = nodes[entry.node], seen[entry.node]
        if not isinstance(entry.because, OOMKill):
            yield _by_kubelet(entry, entry.pod, node)
        elif left and left[0].now_us == entry.time_us:
            yield _by_kernel(entry, entry.pod, entry.because.level, left.popleft(), node)
        else:
            yield Hindsight(entry)


def _by_kubelet(entry: Entry, pod: str, node: RecordedNode) -> Hindsight:
    moment = node.record.evictions.get(entry.time_us)
    place = 1 if isinstance(entry.because, UnderPressure) else None
    if moment is None or entry.by is not By.KUBELET:
        return Hindsight(entry, kubelet_place=place)
    uid = node.record.pods[pod].metadata.uid
    found = kubelet_counterfactuals(moment, uid, node.surroundings(pod))
    return Hindsight(entry, kubelet_place=place, counterfactuals=found)


def _by_kernel(entry: Entry, pod: str, level: OOMLevel, seen: KernelMoment, node: RecordedNode) -> Hindsight:
    uid = node.record.pods[pod].metadata.uid
    found = kernel_counterfactuals(seen, (uid, entry.container or ""), node.surroundings(pod))
    place = kubelet_place(seen.snapshot, node.ranking, uid)
    if found is None or found.place != 1:
        return Hindsight(entry, kubelet_place=place)
    in_time = _in_time(entry.time_us, node) if level is OOMLevel.NODE else None
    return Hindsight(entry, 1, place, found.counterfactuals, in_time)


# ---- a threshold that the kubelet would have met in time -------------------------------------------------------------


def _in_time(time_us: int, node: RecordedNode) -> KubeletInTime | None:
    """Return the threshold that would have made the kubelet act first, if memory fell steadily before the kill.

    It must not be met before the fall begins, and must leave room for what the pods request. Which pod the kubelet
    evicts is asked all along the fall, because it may look at any time of it.
    """
    fall = next((each for each in islice(_falls(time_us, node), _MOST_FALLS) if each.is_long_enough), None)
    if fall is None:
        return None
    pods = [used.pod for used in node.record.snapshot(fall.moments[0]).pods]
    known = [each.amount for each in node.record.thresholds if each.signal is Signal.MEMORY and each.hard]
    allocatable = node.settings.agent.allocatable[MEMORY].value + max(known, default=0) - fall.needed_bytes
    if sum(pod_requests(each)[MEMORY].value for each in pods if MEMORY in pod_requests(each)) > allocatable:
        return None
    evicted: dict[str, None] = {}
    for moment in _all_along(fall.moments):
        seen = node.record.snapshot(moment)
        order = rank([used.pod for used in seen.pods], seen.stats, node.ranking)
        evicted |= dict.fromkeys([each.pod.key for each in order if each.spared is None][:1])
    return KubeletInTime(fall.needed_bytes, fall.growth_bytes_per_second, tuple(evicted)) if evicted else None


class _Fall(Struct, frozen=True, gc=False):
    """Memory that falls until a kill, and the threshold with which the kubelet would have been in time."""

    moments: Sequence[Moment]
    available_bytes: int
    """When it began."""
    growth_bytes_per_second: int
    """The fastest loss."""
    needed_bytes: int

    @property
    def is_long_enough(self) -> bool:
        """Whether the threshold is crossed in the course of it."""
        return self.needed_bytes < self.available_bytes


def _falls(time_us: int, node: RecordedNode) -> Iterator[_Fall]:
    """Yield ever longer falls that end with a kill, as long as memory fell, and not at once."""
    moments, settings = node.record.moments, node.settings
    profile = settings.agent.profile
    at = bisect_left(moments, time_us, key=lambda moment: moment.time_us)
    if at == len(moments) or moments[at].time_us > time_us:
        at -= 1
    growth = 0
    for first in range(at - 1, -1, -1):
        one, other = moments[first], moments[first + 1]
        lost_bytes, took_us = one.available_bytes - other.available_bytes, other.time_us - one.time_us
        if lost_bytes < 0 or (lost_bytes and not took_us):
            return
        growth = max(growth, -(-lost_bytes * SECOND_US // took_us) if took_us else 0)
        if not growth:
            continue
        snapshot = node.snapshot(one)
        left = outlook(snapshot, settings.agent.cgroups, profile)
        grace = max((hard_grace_seconds(used.pod, profile) for used in snapshot.pods), default=0)
        race = Race(
            available_bytes=left.available_bytes,
            until_oom_bytes=left.machine.until_oom_bytes,
            threshold_bytes=0,
            growth_bytes_per_second=growth,
            statistics_age_us=settings.spec.statistics_age_us,
            reaction_us=grace * SECOND_US,
        )
        needed = -(-winning_threshold_bytes(race) // _MIB) * _MIB
        yield _Fall(moments[first : at + 1], left.available_bytes, growth, needed)


def _all_along(moments: Sequence[Moment]) -> Iterator[Moment]:
    for one, other in pairwise(moments):
        yield one
        if [*one.pods] == [*other.pods]:
            yield from (part_way(one, other, step, _LOOKS_BETWEEN) for step in range(1, _LOOKS_BETWEEN))
    yield moments[-1]
