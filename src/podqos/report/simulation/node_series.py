"""One recorded node with all that is shown of it: its series, its thresholds in words, both orders over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import Entry
from podqos.eviction.ranking import Ranking
from podqos.eviction.signals import SIGNALS, Signal
from podqos.model.pod import QOSClass
from podqos.model.resources import MEMORY
from podqos.model.snapshot import ContainerUsage, Snapshot
from podqos.report.simulation.view import EvictionRank, KernelRank, NodeView, OrdersView
from podqos.report.survival.ranking import amount, rank_report
from podqos.sim.node.recording import Moment, NodeRecord, ThresholdLine
from podqos.sim.node.settings import SimNodeSettings
from podqos.sim.series import condition_spans, pod_series, signal_series
from podqos.survival.counterfactual import Surroundings
from podqos.survival.orders import both_orders
from podqos.survival.outlook import outlook
from podqos.survival.places import EvictionPlace, KillPlace

Rank = TypeVar("Rank", EvictionRank, KernelRank)

_MOST_RANKS = 12_000
"""How many places of both orders a node's picture holds; moments are left out beyond that."""
_STEPS_BETWEEN = 8
"""Into how many parts a piece between two recorded moments is cut for their orders."""


class ShownNode(Struct, frozen=True):
    """A node, its settings, and what was recorded of it."""

    record: NodeRecord
    settings: SimNodeSettings
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
        memory_bytes=record.spec.memory_bytes,
        swap_bytes=record.spec.swap_bytes,
        cpu_milli=record.spec.cpu_milli,
        kernel_min_bytes=node.settings.machine.watermarks.min_bytes,
        pods_limit_bytes=_pods_limit(node),
        thresholds=tuple(map(_worded, record.thresholds)),
        times_us=tuple(moment.time_us for moment in moments),
        available_bytes=tuple(max(0, moment.available_bytes) for moment in moments),
        free_bytes=tuple(max(0, moment.free_bytes) for moment in moments),
        system_bytes=tuple(moment.system_bytes for moment in moments),
        pods=tuple(pod_series(moments, node.pods)),
        signals=tuple(signal_series(record)),
        conditions=tuple(condition_spans(entries, record.name)),
        orders=tuple(_orders(node, kill_times)),
    )


def _pods_limit(node: ShownNode) -> int | None:
    cgroups = node.settings.agent.cgroups
    limit = cgroups.node_allocatable.get(MEMORY) if cgroups.enforce_node_allocatable else None
    return None if limit is None else limit.value


def _worded(line: ThresholdLine) -> ThresholdLine:
    least = amount(line.amount, SIGNALS[line.signal].resource)
    grace = "" if line.hard else f" for {line.grace_period_seconds} s"
    return replace(line, statement=f"{line.signal} < {least}{grace}")


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
            kubelet=tuple(_rank(EvictionRank, each, places) for each in report.eviction_order),
            kernel=tuple(_rank(KernelRank, each, places) for each in report.kill_order),
            reversed_pairs=report.reversed_pairs,
        )


def _rank(kind: type[Rank], place: EvictionPlace | KillPlace, places: Mapping[str, int]) -> Rank:
    """Return a place in an order without what the run's list of pods says."""
    return kind(places[place.pod], *(getattr(place, field) for field in kind.__struct_fields__[1:]))


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
