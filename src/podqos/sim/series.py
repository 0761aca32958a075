"""A recorded node as columns of numbers, for charts: what its pods use, what ran short, which conditions it reported.

The numbers of a series belong to the node's moments, one each. Between two of them everything is linear. The shapes are
part of what ``podqos simulate -o json`` prints: fields are added, never renamed or removed. A ``reason`` is in words,
which ``report`` adds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import Entry
from podqos.agent.reasons import ConditionStatus
from podqos.eviction.signals import NodeCondition, Signal
from podqos.model.snapshot import ContainerUsage
from podqos.sim.record import Moment, NodeRecord, PodMoment, ThresholdLine

Column = tuple[int, ...]
Gaps = tuple[int | None, ...]

_MOST_RANKS = 12_000
"""How many places of both orders a node's picture holds; moments are left out beyond that."""
_STEPS_BETWEEN = 8
"""Into how many parts a piece between two recorded moments is cut for their orders."""


class PodSeries(Struct, frozen=True, rename="camel"):
    """What a pod uses."""

    pod: int
    """Its place in the list of the run's pods."""
    anon_bytes: Gaps
    """With what it wrote into volumes in memory."""
    active_file_bytes: Gaps
    inactive_file_bytes: Gaps
    cpu_wanted_milli: Gaps
    cpu_granted_milli: Gaps


class WorkloadCpuSeries(Struct, frozen=True, rename="camel"):
    """What the pods of a workload on a node want of the CPU and get, together."""

    workload: str
    """``namespace/name``."""
    wanted_milli: Column
    granted_milli: Column


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


class EvictionRank(Struct, frozen=True, rename="camel"):
    """A pod in the kubelet's order at a moment."""

    pod: int
    usage: int | None
    request: int
    priority: int
    over_request: bool
    spared: str | None
    reason: str
    """Why it stands before the next."""


class KernelRank(Struct, frozen=True, rename="camel"):
    """A container in the kernel's order at a moment."""

    pod: int
    container: str
    used_bytes: int
    """Of its worst process."""
    oom_score_adj: int
    badness_bytes: int
    reason: str


class OrdersView(Struct, frozen=True, rename="camel"):
    """The order in which kubelet and kernel would have taken pods at a moment."""

    time_us: int
    available_bytes: int
    kernel_left_bytes: int
    """Until the kernel has to kill, with page cache reclaimed."""
    kubelet: tuple[EvictionRank, ...]
    kernel: tuple[KernelRank, ...]
    reversed_pairs: int
    """About how many pairs of pods the two disagree."""


def pod_series(moments: Sequence[Moment], places: Mapping[str, int]) -> Iterator[PodSeries]:
    """Yield what pods use, in the order of ``places``, which says where each is in the run's list."""
    for key, place in sorted(places.items(), key=lambda item: item[1]):
        used = [moment.pods.get(key) for moment in moments]
        yield PodSeries(place, *zip(*map(_figures, used), strict=True))


def workload_cpu(pods: Iterable[PodSeries], workloads: Mapping[int, str]) -> Iterator[WorkloadCpuSeries]:
    """Yield the CPU of workloads that did not get all they wanted; ``workloads`` are by the places of their pods."""
    together: dict[str, list[PodSeries]] = {}
    for pod in pods:
        together.setdefault(workloads[pod.pod], []).append(pod)
    for workload, own in together.items():
        wanted, granted = _sums([pod.cpu_wanted_milli for pod in own]), _sums([pod.cpu_granted_milli for pod in own])
        if any(more > less for more, less in zip(wanted, granted, strict=True)):
            yield WorkloadCpuSeries(workload, wanted, granted)


def _sums(parts: Sequence[Gaps]) -> Column:
    return tuple(sum(value or 0 for value in values) for values in zip(*parts, strict=True))


def _figures(pod: PodMoment | None) -> tuple[int | None, ...]:
    """Return a pod's part of each of its series; nothing where none of its containers runs."""
    if pod is None or not pod.containers:
        return (None,) * 5
    anon = pod.kept_bytes + sum(container.anon_bytes + container.tmpfs_bytes for container in pod.containers)
    active = sum(container.active_file_bytes for container in pod.containers)
    inactive = sum(container.inactive_file_bytes for container in pod.containers)
    return anon, active, inactive, pod.cpu_wanted_milli, pod.cpu_granted_milli


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
        if is_noticeable(signal, min(left), max(left), capacity, record.thresholds):
            yield SignalSeries(signal, capacity, left)


def is_noticeable(signal: Signal, least: int, most: int, capacity: int, thresholds: Sequence[ThresholdLine]) -> bool:
    """Whether what is left of something changes noticeably, or comes near a threshold."""
    marks = [threshold.amount for threshold in thresholds if threshold.signal is signal]
    return most - least > capacity // 50 or any(least < 2 * mark for mark in marks)


# ---- both orders -----------------------------------------------------------------------------------------------------


def moments_of_orders(moments: Sequence[Moment], kill_times: set[int]) -> list[Moment]:
    """Return the moments whose orders are kept: those of kills, and as many others as there is room for."""
    finer = [moment for one, other in pairwise(moments) for moment in (one, *_between(one, other))] + list(moments[-1:])
    most = max(40, _MOST_RANKS // max((1, *(2 * len(moment.pods) for moment in finer))))
    step = max(1, -(-len(finer) // most))
    return [moment for index, moment in enumerate(finer) if index % step == 0 or moment.time_us in kill_times]


def _between(one: Moment, other: Moment) -> Iterator[Moment]:
    """Yield moments on the way from one to the other, if memory changes: what is linear can be read off anywhere."""
    changed = abs(one.available_bytes - other.available_bytes)
    same = [*one.pods] == [*other.pods]
    if not same or changed * 200 < one.available_bytes or other.time_us - one.time_us < _STEPS_BETWEEN:
        return
    for step in range(1, _STEPS_BETWEEN):
        yield part_way(one, other, step, _STEPS_BETWEEN)


def part_way(one: Moment, other: Moment, step: int, steps: int) -> Moment:
    """Return how a node looks on the way from one moment to the next, so many steps of ``steps`` after the one."""

    def way(start: int, end: int) -> int:
        return start + (end - start) * step // steps

    def container(start: ContainerUsage, end: ContainerUsage) -> ContainerUsage:
        return replace(
            start,
            anon_bytes=way(start.anon_bytes, end.anon_bytes),
            active_file_bytes=way(start.active_file_bytes, end.active_file_bytes),
            inactive_file_bytes=way(start.inactive_file_bytes, end.inactive_file_bytes),
            swap_bytes=way(start.swap_bytes, end.swap_bytes),
            tmpfs_bytes=way(start.tmpfs_bytes, end.tmpfs_bytes),
        )

    pods = {
        key: replace(used, containers=tuple(map(container, used.containers, other.pods[key].containers)))
        for key, used in one.pods.items()
    }
    return replace(
        one, time_us=way(one.time_us, other.time_us), system_bytes=way(one.system_bytes, other.system_bytes), pods=pods
    )
