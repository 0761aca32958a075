"""A recorded node as columns of numbers, for charts: what its pods use, what ran short, which conditions it reported.

A series has one number per recorded moment of the node; between two moments everything is linear.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from podqos.agent.journal import Entry
from podqos.agent.reasons import ConditionStatus
from podqos.eviction.signals import NodeCondition, Signal
from podqos.sim.node.recording import Moment, NodeRecord, PodMoment

Column = tuple[int, ...]
Gaps = tuple[int | None, ...]


class PodSeries(Struct, frozen=True, rename="camel"):
    """What a pod uses."""

    pod: int
    """Its place in the list of the run's pods."""
    anon_bytes: Gaps
    active_file_bytes: Gaps
    inactive_file_bytes: Gaps
    cpu_wanted_milli: Gaps
    cpu_granted_milli: Gaps


class SignalSeries(Struct, frozen=True, rename="camel"):
    """What is left of a resource other than memory: disk, inodes, process ids."""

    signal: Signal
    capacity: int
    left: Column


class ConditionSpan(Struct, frozen=True, rename="camel"):
    """The time during which the node reported a condition; ``end_us`` is null where it still did at the end."""

    condition: NodeCondition
    start_us: int
    end_us: int | None


def pod_series(moments: Sequence[Moment], places: Mapping[str, int]) -> Iterator[PodSeries]:
    """Yield what pods use, in the order of ``places``, which says where each is in the run's list."""
    for key, place in sorted(places.items(), key=lambda item: item[1]):
        used = [moment.pods.get(key) for moment in moments]
        yield PodSeries(place, *zip(*map(_figures, used), strict=True))


def _figures(pod: PodMoment | None) -> tuple[int | None, ...]:
    """Return a pod's part of each of its series; nothing where none of its containers runs."""
    if pod is None or not pod.containers:
        return (None,) * 5
    memory = ("anon_bytes", "active_file_bytes", "inactive_file_bytes")
    sums = (sum(getattr(container, kind) for container in pod.containers) for kind in memory)
    return *sums, pod.cpu_wanted_milli, pod.cpu_granted_milli


def condition_spans(entries: Iterable[Entry], node: str) -> Iterator[ConditionSpan]:
    """Yield the times during which a node reported a condition."""
    open_since: dict[NodeCondition, int] = {}
    for entry in entries:
        if entry.node != node or not isinstance(entry.because, ConditionStatus):
            continue
        condition = entry.because.condition
        if entry.because.holds:
            open_since.setdefault(condition, entry.time_us)
        elif condition in open_since:
            yield ConditionSpan(condition, open_since.pop(condition), entry.time_us)
    for condition, start_us in open_since.items():
        yield ConditionSpan(condition, start_us, None)


_IMAGEFS = (Signal.IMAGEFS, Signal.IMAGEFS_INODES)


def signal_series(record: NodeRecord) -> Iterator[SignalSeries]:
    """Yield what is left of everything but memory, where it changes noticeably or comes near a threshold."""
    imagefs = () if record.spec.imagefs is None else _IMAGEFS
    for signal in (Signal.NODEFS, Signal.NODEFS_INODES, *imagefs, Signal.PID) if record.moments else ():
        capacity = record.moments[0].left[signal].capacity
        left = tuple(max(0, moment.left[signal].available) for moment in record.moments)
        marks = [each.amount for each in record.thresholds if each.signal is signal]
        if max(left) - min(left) > capacity // 50 or any(min(left) < 2 * mark for mark in marks):
            yield SignalSeries(signal, capacity, left)
