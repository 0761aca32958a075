"""Records a run for charts: the state of every node at the moments at which something happened.

Between two moments of a node everything is linear. An event has two, before and after it, so that a kill is a step. For
evictions and kernel kills the input of the decision is kept as well, so that it can be repeated with changes. Where
there are too many moments, every second one is dropped, except those with a journal entry, and new ones keep a
distance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from podqos.agent.journal import Entry, Kind
from podqos.agent.state import AgentState, Resting
from podqos.eviction.observation import SignalObservation
from podqos.eviction.signals import Signal
from podqos.model.pod import Pod
from podqos.model.snapshot import ContainerUsage, PodUsage, Snapshot
from podqos.model.stats import MemoryStats, PodReference, PodStats
from podqos.model.time_units import SECOND_NS
from podqos.sim.node.decisions import (
    MOST_DECISIONS,
    container_usage,
    machine_usage,
    seen_by_kernel,
    seen_by_kubelet,
)
from podqos.sim.node.memory_group import MemoryGroup
from podqos.sim.node.node import SimNode
from podqos.sim.node.pods import SimContainer, SimPod
from podqos.sim.node.resources import NodeResources, left_of
from podqos.sim.node.statistics import working_set_bytes
from podqos.sim.scenario.scenario import LOOP_INTERVAL_US, MachineSpec
from podqos.survival.counterfactual.kernel import KernelMoment
from podqos.survival.counterfactual.kubelet import KubeletMoment

_DERIVED = (Signal.CONTAINERFS, Signal.CONTAINERFS_INODES)
"""What is configured for these does not count: they follow other filesystems."""
_MOST_LOOKS = 5000
"""So many times the rhythm of a kubelet's looks may change; what is later is not kept."""


class ThresholdLine(Struct, frozen=True, gc=False, rename="camel"):
    """An eviction threshold of a node's kubelet."""

    signal: Signal
    hard: bool
    amount: int
    """It is met when less than this is left: bytes, inodes or processes."""
    grace_period_seconds: int
    statement: str
    """As configured: ``memory.available < 100Mi``. Reports fill it in."""


class PodMoment(Struct, frozen=True, gc=False):
    """A pod at a moment."""

    containers: tuple[ContainerUsage, ...]
    cpu_wanted_milli: int = 0
    cpu_granted_milli: int = 0
    kept_bytes: int = 0
    """What containers that have ended left in volumes in memory."""


class Moment(Struct, frozen=True, gc=False):
    """A node at a moment."""

    time_us: int
    free_bytes: int
    available_bytes: int
    """As the kubelet counts: total less working set."""
    system_bytes: int
    """Working set outside of pods."""
    pods: dict[str, PodMoment]
    """By key, those that run."""
    left: dict[Signal, SignalObservation]


class LookSpan(Struct, frozen=True, gc=False, rename="camel"):
    """Looks of the kubelet's eviction loop at regular intervals: from ``first_us`` to ``last_us``, every ``every_us``.

    One that found nothing to do is among them, whether or not the simulation had to carry it out.
    """

    first_us: int
    last_us: int
    every_us: int = LOOP_INTERVAL_US

    def reaching(self, time_us: int) -> LookSpan:
        """Return those up to a time."""
        return replace(self, last_us=self.first_us + (time_us - self.first_us) // self.every_us * self.every_us)

    def has(self, time_us: int) -> bool:
        """Whether a look at this time is one of them, or would be a later one."""
        return time_us >= self.first_us and (time_us - self.first_us) % self.every_us == 0


class NodeRecord(Struct):
    """A node over time."""

    name: str
    spec: MachineSpec
    thresholds: tuple[ThresholdLine, ...]
    pods: dict[str, Pod] = field(default_factory=dict)
    """By key: all that ever ran here."""
    moments: list[Moment] = field(default_factory=list)
    pinned: set[int] = field(default_factory=set)
    """Times at which something was written into the journal."""
    is_thinned: bool = False
    evictions: dict[int, KubeletMoment] = field(default_factory=dict)
    """By time: the passes in which the kubelet evicted."""
    kills: list[KernelMoment] = field(default_factory=list)
    """One for each kill by the kernel, in their order."""
    looks: list[LookSpan] = field(default_factory=list)
    """When the kubelet looked; the last of them goes on."""
    is_looking: bool = False
    """Whether the last one does."""
    looked_us: int = -1
    """When it looked last, as far as that is noted."""

    def looks_until(self, end_us: int) -> tuple[LookSpan, ...]:
        """Return when the kubelet looked up to a time."""
        closed, last = self.looks[:-1], self.looks[-1:]
        going_on = (
            [look_span.reaching(end_us) for look_span in last if look_span.first_us <= end_us]
            if self.is_looking
            else last
        )
        return (*closed, *going_on)

    def snapshot(self, moment: Moment) -> Snapshot:
        """Return the node at a moment, as both kill orders want it (``survival.orders``)."""
        node = machine_usage(self.spec, self.name, moment.system_bytes)
        return Snapshot(node, tuple(_usage(self.pods[key], pod) for key, pod in moment.pods.items()))


class Recorder:
    """Records a run. ``most_moments`` bounds what is kept per node; ``only`` names the nodes to record, if not all."""

    def __init__(self, most_moments: int = 2000, only: Iterable[str] | None = None) -> None:
        self._only = None if only is None else frozenset(only)
        self._records: dict[str, NodeRecord] = {}
        self._most = most_moments
        self._changed: dict[str, tuple[SimNode, int]] = {}
        """Nodes that have changed, and when: their new state is recorded before the next event."""
        self._states: dict[str, AgentState] = {}
        """By node: the state of its agent before the current event."""
        self._wants: dict[str, int] = {}
        """By node: how often services there had wanted other amounts of CPU before it."""
        self._perhaps: dict[str, tuple[Moment, tuple[Pod, ...]]] = {}
        """By node: how it looked before an event that may be about others, and its pods."""
        self._machines: dict[str, SimNode] = {}
        """By name: the node; another one where a lost one joins again."""

    @property
    def nodes(self) -> dict[str, NodeRecord]:
        """What was recorded, by name of the node."""
        for name in tuple(self._perhaps):
            self._keep_last(name)
        for name in tuple(self._changed):
            self._settle(name)
        for name, node in self._machines.items():
            _end_of_lost(self._records[name], node)
        return self._records

    def records(self, node: str) -> bool:
        """Whether a node is recorded; nodes on which nothing happens are simulated only for that."""
        return self._only is None or node in self._only

    def before(self, node: SimNode, now_us: int, *, perhaps: bool = False) -> None:
        """Look at a node before something happens there, or perhaps only to others."""
        record = self._record(node)
        self._keep_last(node.name)
        if self._machines.get(node.name) is not node:
            self._follow_looks(record, node, now_us)
        changed = self._changed.get(node.name)
        if changed is not None and changed[1] < now_us:
            self._settle(node.name)
        if node.name not in self._changed and not self._is_soon(record, now_us):
            if perhaps and now_us:
                self._perhaps[node.name] = moment_of(node, now_us), _pods(node)
            else:
                self._take(record, node, now_us)
        self._states[node.name] = node.state
        self._wants[node.name] = node.world.cpu.wants

    def _follow_looks(self, record: NodeRecord, node: SimNode, now_us: int) -> None:
        """Note the first look of a machine that has just come while it is still ahead.

        Its first event may be that look, or one of the cluster that is about others: neither may change the spans.
        """
        earlier = self._machines.get(node.name)
        if earlier is not None:
            _end_of_lost(record, earlier)
            # Just before it joins, so that moments of the time at which it does are taken as everywhere.
            if not record.moments or record.moments[-1].time_us < node.joined_us - 1:
                record.moments.append(_nothing(record, node.joined_us - 1))
        self._machines[node.name] = node
        node.world.before_kill.append(partial(self._before_kill, node))
        _note_looks(record, node, now_us)

    def _before_kill(self, node: SimNode, group: MemoryGroup, _: SimContainer, now_us: int) -> None:
        record = self._record(node)
        if len(record.kills) < MOST_DECISIONS:
            record.kills.append(seen_by_kernel(node, group, now_us))
            _add_pods(record, (used.pod for used in record.kills[-1].snapshot.pods))

    def after(self, node: SimNode, now_us: int, written: Sequence[Entry]) -> None:
        """Note that something has happened to a node; ``written`` is what the journal got by it."""
        record = self._record(node)
        _note_looks(record, node, now_us)
        seen = self._perhaps.pop(node.name, None)
        if seen is not None:
            if node.state is self._states[node.name] and node.world.cpu.wants == self._wants[node.name]:
                return
            self._add(record, *seen)
        if record.moments and record.moments[-1].time_us == now_us:
            self._changed[node.name] = node, now_us
            if any(entry.node in {node.name, ""} for entry in written):
                record.pinned.add(now_us)
        evicted = any(entry.kind is Kind.EVICTED and entry.node == node.name for entry in written)
        before = self._states.get(node.name)
        if evicted and before is not None and node.looks and len(record.evictions) < MOST_DECISIONS:
            _add_pods(record, before.active_pods)
            record.evictions[now_us] = seen_by_kubelet(node, before, now_us)

    def _keep_last(self, name: str) -> None:
        """Keep how a node looked before an event after which it was not there."""
        seen = self._perhaps.pop(name, None)
        if seen is not None:
            self._add(self._records[name], *seen)

    def _is_soon(self, record: NodeRecord, now_us: int) -> bool:
        """Whether there is a moment of this time, or one so close before that it would be thinned out again."""
        if not record.moments:
            return False
        passed_us = now_us - record.moments[-1].time_us
        return passed_us == 0 or (record.is_thinned and passed_us < now_us // self._most)

    def _settle(self, name: str) -> None:
        """Look at a node after all that happened there at one time. Nothing has happened since: it looks the same."""
        node, time_us = self._changed.pop(name)
        if not node.is_lost:
            self._take(self._records[name], node, time_us)

    def _take(self, record: NodeRecord, node: SimNode, time_us: int) -> None:
        self._add(record, moment_of(node, time_us), _pods(node))

    def _add(self, record: NodeRecord, moment: Moment, pods: Iterable[Pod]) -> None:
        record.moments.append(moment)
        _add_pods(record, pods)
        if len(record.moments) > self._most:
            self._thin(record)

    def _record(self, node: SimNode) -> NodeRecord:
        record = self._records.get(node.name)
        if record is None:
            record = self._records[node.name] = NodeRecord(node.name, node.settings.spec, threshold_lines(node.world))
        return record

    def _thin(self, record: NodeRecord) -> None:
        record.is_thinned = True
        kept = [
            moment for number, moment in enumerate(record.moments) if number % 2 == 0 or moment.time_us in record.pinned
        ]
        if len(kept) > self._most * 3 // 4:
            kept = kept[::2]
        record.moments = kept


def _note_looks(record: NodeRecord, node: SimNode, now_us: int) -> None:
    """Note when the kubelet looks next, if that is not where its regular looks lead, and a look between them."""
    looks, loop = record.looks, node.state.loop
    next_us = loop.wake_us if isinstance(loop, Resting) else None
    if record.is_looking and (next_us is None or not looks[-1].has(next_us)):
        _end_looks(record, now_us)
    if len(looks) > _MOST_LOOKS:
        return
    if node.looked_us > record.looked_us:
        record.looked_us = node.looked_us
        if not any(look.has(now_us) for look in looks[-1:]):
            # Notified between two regular looks.
            looks.insert(len(looks) - record.is_looking, LookSpan(now_us, now_us))
    if next_us is not None and not record.is_looking:
        record.is_looking = True
        looks.append(LookSpan(next_us, next_us))


def _end_of_lost(record: NodeRecord, node: SimNode) -> None:
    """Note that nothing runs on a lost machine; at one moment machines are lost before the kubelet looks."""
    if node.lost_us is None:
        return
    _end_looks(record, node.lost_us if node.looked_us == node.lost_us else node.lost_us - 1)
    if record.moments and record.moments[-1].time_us <= node.lost_us and record.moments[-1].pods:
        record.moments.append(_nothing(record, node.lost_us))


def _nothing(record: NodeRecord, time_us: int) -> Moment:
    """Return a machine on which nothing runs."""
    total_bytes = record.spec.memory_bytes
    left = record.moments[-1].left if record.moments else {}
    return Moment(time_us, total_bytes, total_bytes, system_bytes=0, pods={}, left=left)


def _end_looks(record: NodeRecord, now_us: int) -> None:
    """Note that the kubelet no longer looks when it regularly would."""
    if record.is_looking:
        record.is_looking = False
        last = record.looks.pop()
        if last.first_us <= now_us:
            record.looks.append(last.reaching(now_us))


def _pods(node: SimNode) -> tuple[Pod, ...]:
    return tuple(pod.pod for pod in node.world.pods.values())


def _add_pods(record: NodeRecord, pods: Iterable[Pod]) -> None:
    """Keep pods; one can start and be killed between two moments."""
    for pod in pods:
        record.pods.setdefault(pod.key, pod)


def moment_of(node: SimNode, now_us: int) -> Moment:
    """Return how a node looks now."""
    world, memory = node.world, node.world.memory
    granted = world.cpu.granted_milli(now_us)
    return Moment(
        time_us=now_us,
        free_bytes=memory.free_bytes(now_us),
        available_bytes=memory.machine.total_bytes - working_set_bytes(world, now_us),
        system_bytes=memory.system_working_set_bytes(now_us) - memory.seen_huge_bytes,
        pods={pod.key: _pod(pod, granted, now_us) for pod in world.pods.values() if not pod.is_gone},
        left=left_of(world.signals(), now_us),
    )


def threshold_lines(world: NodeResources) -> tuple[ThresholdLine, ...]:
    """Return the eviction thresholds of a node's kubelet."""
    signals = world.signals()
    return tuple(
        ThresholdLine(
            threshold.signal,
            threshold.is_hard,
            threshold.amount(signals[threshold.signal][1]).value,
            threshold.grace_period_ns // SECOND_NS,
            statement="",
        )
        for threshold in world.settings.agent.eviction.thresholds
        if threshold.signal in signals and threshold.signal not in _DERIVED
    )


def _pod(pod: SimPod, granted: dict[str, int], now_us: int) -> PodMoment:
    running = tuple(pod.running)
    return PodMoment(
        containers=tuple(container_usage(container, now_us) for container in running),
        cpu_wanted_milli=sum(container.cpu.at(now_us) for container in running if container.cpu is not None),
        cpu_granted_milli=sum(granted.get(container.path, 0) for container in running),
        kept_bytes=pod.kept_bytes(now_us),
    )


def working_set_of(pod: PodMoment) -> int:
    """Return what the kubelet counts for a pod at a moment."""
    return pod.kept_bytes + sum([container.working_set_bytes for container in pod.containers])


def _usage(pod: Pod, moment: PodMoment) -> PodUsage:
    working_set = working_set_of(moment)
    metadata = pod.metadata
    reference = PodReference(metadata.name, metadata.namespace, metadata.uid)
    stats = PodStats(reference, memory=MemoryStats(working_set_bytes=working_set))
    return PodUsage(pod, stats, moment.containers)
