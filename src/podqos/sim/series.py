"""A recorded node as columns of numbers, for pictures: what its pods use, what ran short, which conditions it reported.

The numbers of a series belong to the node's moments, one each. Between two of them everything is linear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from podqos.agent.journal import Entry
from podqos.agent.reasons import ConditionStatus
from podqos.eviction.signals import NodeCondition, Signal
from podqos.sim.node.recording import FilesystemMoment, Moment, NodeRecord, PodMoment

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
    """What is left of something else than memory: disk, inodes, process ids."""

    signal: Signal
    capacity: int
    left: Column


class ConditionSpan(Struct, frozen=True, rename="camel"):
    """While the node reported a condition; ``end_us`` is null where it still did at the end."""

    condition: NodeCondition
    start_us: int
    end_us: int | None


def pod_series(moments: Sequence[Moment], places: Mapping[str, int]) -> Iterator[PodSeries]:
    """Yield what pods use, in the order of ``places``, which says where each is in the run's list."""
    for key, place in sorted(places.items(), key=lambda item: item[1]):
        used = [pod if (pod := moment.pods.get(key)) is not None and pod.containers else None for moment in moments]

        def column(field: str, used: Sequence[PodMoment | None] = used) -> Gaps:
            return tuple(None if pod is None else getattr(pod, field) for pod in used)

        yield PodSeries(place, *map(column, PodSeries.__struct_fields__[1:]))


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


_LEFT: Mapping[Signal, Callable[[Moment, NodeRecord], tuple[int, int]]] = {
    Signal.NODEFS: lambda moment, _: _bytes_left(moment.nodefs),
    Signal.NODEFS_INODES: lambda moment, _: _inodes_left(moment.nodefs),
    Signal.IMAGEFS: lambda moment, _: _bytes_left(moment.imagefs),
    Signal.IMAGEFS_INODES: lambda moment, _: _inodes_left(moment.imagefs),
    Signal.PID: lambda moment, record: (record.max_pids, record.max_pids - moment.processes),
}
"""Of what is counted besides memory: how much there is, and how much of it is left."""


def _bytes_left(filesystem: FilesystemMoment) -> tuple[int, int]:
    return filesystem.capacity_bytes, filesystem.capacity_bytes - filesystem.used_bytes


def _inodes_left(filesystem: FilesystemMoment) -> tuple[int, int]:
    return filesystem.inodes, filesystem.inodes - filesystem.inodes_used


def signal_series(record: NodeRecord, *, has_imagefs: bool) -> Iterator[SignalSeries]:
    """Yield what is left of everything but memory, where that matters: it moves, and it comes near a threshold."""
    for signal, left_at in _LEFT.items():
        if not record.moments or (signal in {Signal.IMAGEFS, Signal.IMAGEFS_INODES} and not has_imagefs):
            continue
        capacity, _ = left_at(record.moments[0], record)
        left = tuple(max(0, left_at(moment, record)[1]) for moment in record.moments)
        marks = [each.amount for each in record.thresholds if each.signal is signal]
        if max(left) - min(left) > capacity // 50 or any(min(left) < 2 * mark for mark in marks):
            yield SignalSeries(signal, capacity, left)
