"""One recorded node as series for pictures: memory, CPU and whatever else ran short, conditions, both orders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import Entry
from podqos.agent.reasons import ConditionStatus
from podqos.eviction.ranking import Ranking
from podqos.eviction.signals import SIGNALS, NodeCondition, Signal
from podqos.model.pod import QOSClass
from podqos.model.resources import MEMORY
from podqos.model.snapshot import ContainerUsage, Snapshot
from podqos.report.ranking import EvictionPlace, KillPlace, amount, rank_report
from podqos.report.run_view import (
    ConditionSpan,
    EvictionRank,
    KernelRank,
    NodeView,
    OrdersView,
    PodSeries,
    SignalSeries,
    ThresholdView,
)
from podqos.sim.node_settings import NodeSettings
from podqos.sim.recording import FilesystemMoment, Moment, NodeRecord
from podqos.survival.orders import both_orders
from podqos.survival.outlook import outlook
from podqos.survival.rescue import Surroundings

_MOST_RANKS = 12_000
"""How many places of both orders a node's picture holds; moments are left out beyond that."""
_STEPS_BETWEEN = 8
"""Into how many parts a piece between two recorded moments is cut for their orders."""
_NS_PER_SECOND = 1_000_000_000


class ShownNode(Struct, frozen=True):
    """A node, its settings, and what was recorded of it."""

    record: NodeRecord
    settings: NodeSettings
    pods: Mapping[str, int]
    """By key: their places in the run's list."""
    classes: Mapping[str, QOSClass]
    """The same: their classes."""
    workloads: Mapping[str, str]
    """The same: what they come from."""

    def ranking(self, signal: Signal, *, hard: bool) -> Ranking:
        """Return how this kubelet ranks."""
        eviction = self.settings.agent.eviction
        return Ranking(signal, self.settings.layout, eviction.policy, hard, eviction.profile)

    def qos_class(self, pod: str) -> QOSClass | None:
        """Return the class of a pod."""
        return self.classes.get(pod)

    def surroundings(self, pod: str) -> Surroundings:
        """Return what a change of a pod's manifest has to respect on this node."""
        name = self.workloads[pod]
        alike = frozenset(each.metadata.uid for key, each in self.record.pods.items() if self.workloads[key] == name)
        return Surroundings(self.settings.agent.known_plans.allocatable, alike)

    def snapshot(self, moment: Moment) -> Snapshot:
        """Return the pods of which anything runs at a moment: the others are nobody's to kill."""
        snapshot = self.record.snapshot(moment)
        return replace(snapshot, pods=tuple(used for used in snapshot.pods if used.containers))


def node_view(node: ShownNode, entries: Iterable[Entry], kill_times: set[int]) -> NodeView:
    """Draw up a node; ``entries`` are at least those of this node."""
    record, moments = node.record, node.record.moments
    return NodeView(
        name=record.name,
        memory_bytes=record.memory_bytes,
        swap_bytes=record.swap_bytes,
        cpu_milli=record.cpu_milli,
        kernel_min_bytes=node.settings.machine.watermarks.min_bytes,
        pods_limit_bytes=_pods_limit(node),
        thresholds=tuple(_thresholds(node)),
        times_us=tuple(moment.time_us for moment in moments),
        available_bytes=tuple(max(0, moment.available_bytes) for moment in moments),
        free_bytes=tuple(max(0, moment.free_bytes) for moment in moments),
        system_bytes=tuple(moment.system_bytes for moment in moments),
        pods=tuple(_pod_series(moments, node.pods)),
        signals=tuple(_signals(node)),
        conditions=tuple(_conditions(entries, record.name)),
        orders=tuple(_orders(node, kill_times)),
    )


def _pods_limit(node: ShownNode) -> int | None:
    cgroups = node.settings.agent.cgroups
    limit = cgroups.node_allocatable.get(MEMORY) if cgroups.enforce_node_allocatable else None
    return None if limit is None else limit.value


# ---- thresholds and conditions ---------------------------------------------------------------------------------------


def _thresholds(node: ShownNode) -> Iterator[ThresholdView]:
    graces = {
        (each.signal, each.is_hard): each.grace_period_ns // _NS_PER_SECOND
        for each in node.settings.agent.eviction.thresholds
    }
    for each in node.record.thresholds:
        grace = graces[each.signal, each.hard]
        least = amount(each.amount, SIGNALS[each.signal].resource)
        statement = f"{each.signal} < {least}" + ("" if each.hard else f" for {grace} s")
        yield ThresholdView(each.signal, each.hard, each.amount, grace, statement)


def _conditions(entries: Iterable[Entry], node: str) -> Iterator[ConditionSpan]:
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


# ---- series ----------------------------------------------------------------------------------------------------------


class _Columns:
    """The series of one pod while they grow."""

    def __init__(self, length: int) -> None:
        self.anon: list[int | None] = [None] * length
        self.active_file: list[int | None] = [None] * length
        self.inactive_file: list[int | None] = [None] * length
        self.cpu_wanted: list[int | None] = [None] * length
        self.cpu_granted: list[int | None] = [None] * length


def _pod_series(moments: Sequence[Moment], places: Mapping[str, int]) -> Iterator[PodSeries]:
    columns = {place: _Columns(len(moments)) for place in sorted(places.values())}
    for index, moment in enumerate(moments):
        for key, used in moment.pods.items():
            if used.containers:
                column = columns[places[key]]
                column.anon[index] = used.anon_bytes
                column.active_file[index] = used.active_file_bytes
                column.inactive_file[index] = used.inactive_file_bytes
                column.cpu_wanted[index] = used.cpu_wanted_milli
                column.cpu_granted[index] = used.cpu_granted_milli
    for place, column in columns.items():
        yield PodSeries(
            pod=place,
            anon_bytes=tuple(column.anon),
            active_file_bytes=tuple(column.active_file),
            inactive_file_bytes=tuple(column.inactive_file),
            cpu_wanted_milli=tuple(column.cpu_wanted),
            cpu_granted_milli=tuple(column.cpu_granted),
        )


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


def _signals(node: ShownNode) -> Iterator[SignalSeries]:
    """Yield what is left of everything but memory, where that matters: it moves, and it comes near a threshold."""
    record = node.record
    has_imagefs = node.settings.spec.imagefs is not None
    for signal, left_at in _LEFT.items():
        if not record.moments or (signal in {Signal.IMAGEFS, Signal.IMAGEFS_INODES} and not has_imagefs):
            continue
        capacity, _ = left_at(record.moments[0], record)
        left = tuple(max(0, left_at(moment, record)[1]) for moment in record.moments)
        marks = [each.amount for each in record.thresholds if each.signal is signal]
        if max(left) - min(left) > capacity // 50 or any(min(left) < 2 * mark for mark in marks):
            yield SignalSeries(signal, capacity, left)


# ---- both orders -----------------------------------------------------------------------------------------------------


def _orders(node: ShownNode, kill_times: set[int]) -> Iterator[OrdersView]:
    agent, places = node.settings.agent, node.pods
    ranking = node.ranking(Signal.MEMORY, hard=True)
    for moment in _spread(node.record.moments, kill_times):
        snapshot = node.snapshot(moment)
        if not snapshot.pods:
            continue
        seen = outlook(snapshot, agent.cgroups, agent.profile)
        report = rank_report(snapshot, both_orders(snapshot, ranking, agent.cgroups, seen.domain), seen)
        yield OrdersView(
            time_us=moment.time_us,
            available_bytes=report.node.available_bytes,
            kernel_left_bytes=report.node.kernel_left_bytes,
            kubelet=tuple(_eviction_rank(each, places) for each in report.eviction_order),
            kernel=tuple(_kernel_rank(each, places) for each in report.kill_order),
            reversed_pairs=report.reversed_pairs,
        )


def _eviction_rank(place: EvictionPlace, places: Mapping[str, int]) -> EvictionRank:
    return EvictionRank(
        pod=places[place.pod],
        usage=place.usage,
        request=place.request,
        priority=place.priority,
        over_request=place.over_request,
        spared=place.spared,
        reason=place.reason,
    )


def _kernel_rank(place: KillPlace, places: Mapping[str, int]) -> KernelRank:
    return KernelRank(
        pod=places[place.pod],
        container=place.container,
        used_bytes=place.used_bytes,
        oom_score_adj=place.oom_score_adj,
        badness_bytes=place.badness_bytes,
        reason=place.reason,
    )


def _spread(moments: Sequence[Moment], kill_times: set[int]) -> list[Moment]:
    """Return the moments whose orders are kept: those of kills, and as many others as there is room for."""
    finer = [each for one, other in pairwise(moments) for each in (one, *_between(one, other))] + list(moments[-1:])
    most = max(40, _MOST_RANKS // max(1, *(2 * len(moment.pods) for moment in finer)))
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
        )

    pods = {
        key: replace(used, containers=tuple(map(container, used.containers, other.pods[key].containers)))
        for key, used in one.pods.items()
    }
    return replace(
        one, time_us=way(one.time_us, other.time_us), system_bytes=way(one.system_bytes, other.system_bytes), pods=pods
    )
