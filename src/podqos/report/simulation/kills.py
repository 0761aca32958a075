"""The kills of a run: why each happened, where the victim stood in both orders, and what would have saved it."""

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
from podqos.report.simulation.counterfactual_words import kubelet_in_time, saving
from podqos.report.simulation.journal_words import is_kill, reasons, subject, verb
from podqos.report.simulation.node_series import ShownNode, part_way
from podqos.report.simulation.view import Kill, Saving
from podqos.sim.node.recording import MOST_DECISIONS, Moment
from podqos.survival.counterfactual import Counterfactual
from podqos.survival.kernel_counterfactual import KernelMoment, KernelPlace, kernel_counterfactuals
from podqos.survival.kubelet_counterfactual import kubelet_counterfactuals, kubelet_place
from podqos.survival.outlook import outlook
from podqos.survival.race import Race, winning_threshold_bytes

MOST_KILLS = MOST_DECISIONS
"""A page with more of them would be read by nobody; the journal has all."""
_MIB = 1 << 20
_MOST_FALLS = 50
_LOOKS_BETWEEN = 8
"""At how many times between two recorded moments it is asked whom the kubelet would evict."""


def kills(entries: Sequence[Entry], nodes: Mapping[str, ShownNode]) -> Iterator[Kill]:
    """Yield the first kills on the nodes that are shown, in the order of the journal."""
    for entry, seen in _with_what_was_seen(entries, nodes):
        assert entry.pod is not None
        yield _kill(entry, entry.pod, nodes[entry.node], seen)


def counterfactuals(
    entries: Sequence[Entry], nodes: Mapping[str, ShownNode]
) -> Iterator[tuple[Entry, tuple[Counterfactual, ...]]]:
    """Yield the same kills, each with what would have changed it, as values."""
    for entry, seen in _with_what_was_seen(entries, nodes):
        node = nodes[entry.node]
        if isinstance(entry.because, OOMKill):
            found = None if seen is None else _by_kernel(entry, seen, node)
            yield entry, () if found is None else found.counterfactuals
        else:
            yield entry, _by_kubelet(entry, node)


def _with_what_was_seen(
    entries: Sequence[Entry], nodes: Mapping[str, ShownNode]
) -> Iterator[tuple[Entry, KernelMoment | None]]:
    """Yield the kills with what the kernel saw before them; None for the kubelet's, and where nothing was recorded."""
    seen = {name: deque(node.record.kills) for name, node in nodes.items()}
    found = (entry for entry in entries if entry.node in nodes and is_kill(entry))
    for entry in islice(found, MOST_KILLS):
        left = seen[entry.node]
        is_next = isinstance(entry.because, OOMKill) and left and left[0].now_us == entry.time_us
        yield entry, left.popleft() if is_next else None


def _kill(entry: Entry, pod: str, node: ShownNode, seen: KernelMoment | None) -> Kill:
    because = entry.because
    kernel_at: int | None = None
    kubelet_at: int | None = None
    savings: tuple[Saving, ...] = ()
    if isinstance(because, UnderPressure):
        kubelet_at = 1
    if isinstance(because, OOMKill) and seen is not None:
        uid = node.record.pods[pod].metadata.uid
        kubelet_at = kubelet_place(seen.snapshot, node.ranking(Signal.MEMORY, hard=True), uid)
        found = _by_kernel(entry, seen, node)
        if found is not None and found.place == 1:
            in_time = _in_time(entry, pod, node) if because.level is OOMLevel.NODE else ()
            kernel_at, savings = 1, (*(saving(each, By.KERNEL) for each in found.counterfactuals), *in_time)
    elif entry.by is By.KUBELET:
        savings = tuple(saving(each, By.KUBELET) for each in _by_kubelet(entry, node))
    would_evict = because.would_evict if isinstance(because, OOMKill) else None
    return Kill(
        time_us=entry.time_us,
        node=entry.node,
        by=entry.by or By.KUBELET,
        pod=pod,
        qos_class=node.qos_class(pod),
        container=entry.container,
        title=f"{subject(entry)} {verb(entry)}",
        reasons=reasons(entry),
        because=because,
        kernel_place=kernel_at,
        kubelet_place=kubelet_at,
        would_evict=None if would_evict is None else would_evict.pod,
        savings=savings,
    )


def _by_kubelet(entry: Entry, node: ShownNode) -> tuple[Counterfactual, ...]:
    moment = node.record.evictions.get(entry.time_us)
    if moment is None or entry.pod is None:
        return ()
    uid = node.record.pods[entry.pod].metadata.uid
    return kubelet_counterfactuals(moment, uid, node.surroundings(entry.pod))


def _by_kernel(entry: Entry, seen: KernelMoment, node: ShownNode) -> KernelPlace | None:
    assert entry.pod is not None
    victim = node.record.pods[entry.pod].metadata.uid, entry.container or ""
    return kernel_counterfactuals(seen, victim, node.surroundings(entry.pod))


# ---- a threshold that the kubelet would have met in time -------------------------------------------------------------


def _in_time(entry: Entry, pod: str, node: ShownNode) -> Iterator[Saving]:
    """Yield the threshold that would have made the kubelet act first, if memory fell steadily before the kill.

    It must not be met before the fall begins, and must leave room for what the pods request. Whom the kubelet evicts
    is asked all along the fall, because it may look at any time of it.
    """
    fall = next((each for each in islice(_falls(entry.time_us, node), _MOST_FALLS) if each.is_long_enough), None)
    if fall is None:
        return
    pods = [used.pod for used in node.record.snapshot(fall.moments[0]).pods]
    known = [each.amount for each in node.record.thresholds if each.signal is Signal.MEMORY and each.hard]
    allocatable = node.settings.agent.allocatable[MEMORY].value + max(known, default=0) - fall.needed_bytes
    if sum(pod_requests(each)[MEMORY].value for each in pods if MEMORY in pod_requests(each)) > allocatable:
        return
    ranking = node.ranking(Signal.MEMORY, hard=True)
    evicted: dict[str, None] = {}
    for moment in _all_along(fall.moments):
        seen = node.record.snapshot(moment)
        order = rank([used.pod for used in seen.pods], seen.stats, ranking)
        evicted |= dict.fromkeys([each.pod.key for each in order if each.spared is None][:1])
    if evicted:
        yield kubelet_in_time(fall.needed_bytes, fall.growth_bytes_per_second, tuple(evicted), pod)


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


def _falls(time_us: int, node: ShownNode) -> Iterator[_Fall]:
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
