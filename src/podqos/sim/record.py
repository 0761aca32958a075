"""Records a run for words, pictures and what is asked afterwards: the state of every node at its moments.

Between two moments of a node everything is linear. While there are few, one is kept before and after whatever happens
there, so that a kill is a step; where that becomes too many, before and after each journal entry and at even times. For
evictions and kernel kills the input of the decision is kept as well, so that it can be repeated with changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from podqos.agent.journal import Entry, Kind, is_kill
from podqos.agent.state import AgentState, Resting
from podqos.eviction.ranking import Ranking
from podqos.eviction.signals import Signal, SignalObservation, observe
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.memcg import oom_total_pages
from podqos.model.pod import Pod, QOSClass
from podqos.model.snapshot import ContainerUsage, NodeUsage, PodUsage, Snapshot
from podqos.model.stats import MemoryStats, PodReference, PodStats
from podqos.model.time_units import SECOND_NS
from podqos.orders.counterfactual import Surroundings
from podqos.orders.memory import OOMDomain
from podqos.orders.trials import KernelMoment, KubeletMoment
from podqos.qos.classes import qos_class_of
from podqos.sim.engine.event_queue import EventPriority
from podqos.sim.node.memory import cuts
from podqos.sim.node.node import SimNode
from podqos.sim.node.pods import MemoryGroup, SimContainer, SimPod
from podqos.sim.node.resources import NodeResources, left_of
from podqos.sim.node.settings import SimNodeSettings, node_settings
from podqos.sim.node.statistics import pod_stats, working_set_bytes
from podqos.sim.scenario.replicas import workload_of
from podqos.sim.scenario.scenario import LOOP_INTERVAL_US, MachineSpec, Scenario

UNTOLD = frozenset({Kind.ADMITTED, Kind.PLACED, Kind.CLEANED_UP, Kind.STOPPED, Kind.EXITED})
"""What is in the journal and not in the words."""
FREEING = frozenset({Kind.OOM_KILLED, Kind.EVICTED, Kind.RECLAIMED})
"""What is left is told as it was before these."""
MOST_MOMENTS = 600
"""So many moments of a node are kept besides those of journal entries, and half as many even times."""
_MOST_PINNED = 4000
MOST_DECISIONS = 200
"""For this many evictions, and kills, of a node the input of the decision is kept."""
_DERIVED = (Signal.CONTAINERFS, Signal.CONTAINERFS_INODES)
"""What is configured for these does not count: they follow other filesystems."""
_MOST_LOOKS = 5000
"""So many times the rhythm of a kubelet's looks may change; what is later is not kept."""
_DECIDING = frozenset({EventPriority.KERNEL, EventPriority.LIFE, EventPriority.KUBELET})
"""What may make a journal entry."""


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
        """Return the node at a moment, as both kill orders want it (``orders``)."""
        node = machine_usage(self.spec, self.name, moment.system_bytes)
        return Snapshot(node, tuple(_usage(self.pods[key], pod) for key, pod in moment.pods.items()))


class Recorder:
    """Records a run of a scenario; ``only`` names the nodes to record, if not all."""

    def __init__(self, only: Iterable[str] | None = None, most_moments: int = MOST_MOMENTS) -> None:
        self._only = None if only is None else frozenset(only)
        self._most = most_moments
        self._records: dict[str, NodeRecord] = {}
        self._watches: dict[str, _Watch] = {}

    @property
    def nodes(self) -> dict[str, NodeRecord]:
        """What was recorded, by name of the node."""
        for watch in self._watches.values():
            watch.finish()
        return self._records

    def records(self, node: str) -> bool:
        """Whether a node is recorded."""
        return self._only is None or node in self._only

    def before(self, node: SimNode, now_us: int, priority: EventPriority, *, perhaps: bool = False) -> None:
        """Look at a node before something happens there, or perhaps only to others."""
        watch = self._watches.get(node.name)
        if watch is None or watch.node is not node:
            record = self._records.get(node.name)
            if record is None:
                lines = threshold_lines(node.world)
                record = self._records[node.name] = NodeRecord(node.name, node.settings.spec, lines)
            watch = self._watches[node.name] = _Watch(record, node, watch, self._most)
        watch.before(now_us, priority, perhaps=perhaps)

    def after(self, node: SimNode, now_us: int, written: Sequence[Entry]) -> None:
        """Note that something has happened to a node; ``written`` is what the journal got by it."""
        self._watches[node.name].after(now_us, written)


class _Watch:
    """Watches one machine, from when it joins until it is lost."""

    def __init__(self, record: NodeRecord, node: SimNode, earlier: _Watch | None, most: int) -> None:
        self.node = node
        self.is_sampled: bool = earlier is not None and earlier.is_sampled
        """Whether moments are kept at even times, besides those of journal entries."""
        self._record = record
        self._most = most
        self._changed_us: int | None = None
        """When it has changed: its new state is recorded before the next event."""
        self._state: AgentState = node.state
        """The state of its agent before the current event."""
        self._wants = 0
        """How often services there had wanted other amounts of CPU before it."""
        self._perhaps: tuple[Moment, tuple[Pod, ...]] | None = None
        """How it looked before an event that may be about others, and its pods."""
        if earlier is not None:
            earlier.finish()
            # Just before it joins, so that moments of the time at which it does are taken as everywhere.
            if not record.moments or record.moments[-1].time_us < node.joined_us - 1:
                record.moments.append(_nothing(record, node.joined_us - 1))
        node.world.before_kill.append(self._before_kill)
        # While the first look is still ahead: the first event may be that look.
        _note_looks(record, node, node.now_us)

    def before(self, now_us: int, priority: EventPriority, *, perhaps: bool) -> None:
        """Look at the node before an event, or before one that is perhaps about others."""
        record, node = self._record, self.node
        self._keep_last()
        if self._changed_us is not None and self._changed_us < now_us:
            self._settle()
        self._state, self._wants = node.state, node.world.cpu.wants
        if self._changed_us is not None:
            return
        passed_us = now_us - record.moments[-1].time_us if record.moments else now_us + 1
        if not passed_us:
            return
        if self.is_sampled and passed_us < 2 * node.queue.until_us // self._most:
            if priority not in _DECIDING or len(record.pinned) > _MOST_PINNED:
                return
            perhaps = True
        if perhaps and now_us:
            self._perhaps = moment_of(node, now_us), _pods(node)
        else:
            self._add(moment_of(node, now_us), _pods(node))

    def after(self, now_us: int, written: Sequence[Entry]) -> None:
        """Note that an event has happened."""
        record, node = self._record, self.node
        _note_looks(record, node, now_us)
        is_told = any(entry.node in {node.name, ""} for entry in written)
        if self._perhaps is not None:
            changed = node.state is not self._state or node.world.cpu.wants != self._wants
            if not (is_told if self.is_sampled else changed):
                self._perhaps = None
                return
            self._keep_last()
        is_there = bool(record.moments) and record.moments[-1].time_us == now_us
        if is_there or (is_told and len(record.pinned) <= _MOST_PINNED):
            self._changed_us = now_us
            if is_told:
                record.pinned.add(now_us)
        evicted = any(entry.kind is Kind.EVICTED and entry.node == node.name for entry in written)
        if evicted and node.looks and len(record.evictions) < MOST_DECISIONS:
            _add_pods(record, self._state.active_pods)
            record.evictions[now_us] = seen_by_kubelet(node, self._state, now_us)

    def finish(self) -> None:
        """Keep what was last; at one moment machines are lost before the kubelet looks."""
        record, node = self._record, self.node
        self._keep_last()
        if self._changed_us is not None:
            self._settle()
        if node.lost_us is not None:
            _end_looks(record, node.lost_us if node.looked_us == node.lost_us else node.lost_us - 1)
            if record.moments and record.moments[-1].time_us <= node.lost_us and record.moments[-1].pods:
                record.moments.append(_nothing(record, node.lost_us))

    def _before_kill(self, group: MemoryGroup, _: SimContainer, now_us: int) -> None:
        record = self._record
        if len(record.kills) < MOST_DECISIONS:
            record.kills.append(seen_by_kernel(self.node, group, now_us))
            _add_pods(record, (used.pod for used in record.kills[-1].snapshot.pods))

    def _keep_last(self) -> None:
        """Keep how the node looked before an event after which it was not there."""
        if self._perhaps is not None:
            seen, self._perhaps = self._perhaps, None
            self._add(*seen)

    def _settle(self) -> None:
        """Look at the node after all that happened there at one time. Nothing has happened since: it looks the same."""
        time_us, self._changed_us = self._changed_us, None
        if time_us is not None and not self.node.is_lost:
            self._add(moment_of(self.node, time_us), _pods(self.node))

    def _add(self, moment: Moment, pods: Iterable[Pod]) -> None:
        record = self._record
        record.moments.append(moment)
        _add_pods(record, pods)
        if not self.is_sampled and len(record.moments) > self._most:
            self.is_sampled = True
            self._thin()

    def _thin(self) -> None:
        """Keep moments of journal entries, and of the others those that lie apart."""
        record, kept = self._record, list[Moment]()
        for moment in record.moments:
            apart_us = moment.time_us - kept[-1].time_us if kept else moment.time_us + 1
            is_pair = bool(kept) and not apart_us  # before and after what happened at one time
            if is_pair or moment.time_us in record.pinned or apart_us >= 2 * self.node.queue.until_us // self._most:
                kept.append(moment)
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


# ---- what kubelet and kernel decided on -----------------------------------------------------------------------------


def seen_by_kubelet(node: SimNode, before: AgentState, now_us: int) -> KubeletMoment:
    """Return the pass in which the kubelet has just evicted; ``before`` is what the agent remembered until then."""
    first, *second = map(observe, node.looks)
    return KubeletMoment(
        config=node.settings.agent.eviction,
        state=before.manager,
        now_us=now_us,
        observation=first,
        pods=before.active_pods,
        cleaned_up=second[0] if second else None,
    )


def seen_by_kernel(node: SimNode, group: MemoryGroup, now_us: int) -> KernelMoment:
    """Return how the kernel sees a node whose pods, or some of them, are out of memory."""
    world, memory = node.world, node.world.memory
    lacking = cuts(memory.members(group), group, now_us)
    pods = tuple(
        PodUsage(
            pod.pod,
            _stats(pod, now_us, sum(lacking.get(container.path, 0) for container in pod.running)),
            tuple(container_usage(container, now_us, lacking.get(container.path, 0)) for container in pod.running),
        )
        for pod in world.pods.values()
        if not pod.is_gone
    )
    usage = machine_usage(
        node.settings.spec, node.name, memory.system_working_set_bytes(now_us) - memory.seen_huge_bytes
    )
    withheld = {
        (pod.uid, container.name): lacking[container.path]
        for pod in world.pods.values()
        for container in pod.running
        if container.path in lacking
    }
    agent = node.settings.agent
    return KernelMoment(
        Snapshot(usage, pods),
        agent.cgroups,
        OOMDomain(oom_total_pages(memory.machine, group.settings) * PAGE_BYTES, group.path),
        agent.profile,
        group.excess_bytes(now_us),
        withheld,
        now_us,
    )


def _stats(pod: SimPod, now_us: int, cut_bytes: int) -> PodStats:
    """Return the figures of a pod without what it wanted at last and did not get."""
    stats = pod_stats(pod, now_us)
    memory = stats.memory
    if not cut_bytes or memory is None or memory.working_set_bytes is None:
        return stats
    return replace(stats, memory=replace(memory, working_set_bytes=memory.working_set_bytes - cut_bytes))


def machine_usage(spec: MachineSpec, name: str, system_bytes: int) -> NodeUsage:
    """Return the machine of a node at a moment."""
    return NodeUsage(spec.memory_bytes, spec.swap_bytes, name, system_bytes, sum(spec.hugepages.values()))


def container_usage(container: SimContainer, now_us: int, cut_bytes: int = 0) -> ContainerUsage:
    """Return what a container uses, without what it wanted at last and did not get."""
    active, inactive = container.active_file, container.inactive_file
    return ContainerUsage(
        name=container.name,
        anon_bytes=max(0, container.anon_bytes(now_us) - cut_bytes),
        active_file_bytes=0 if active is None else active.at(now_us),
        inactive_file_bytes=0 if inactive is None else inactive.at(now_us),
        swap_bytes=container.swap_bytes(),
        tmpfs_bytes=container.tmpfs_bytes(now_us),
        processes=container.process_count(now_us),
        oom_score_adj=container.plan.oom_score_adj,
    )


# ---- afterwards ------------------------------------------------------------------------------------------------------


class RecordedNode(Struct, frozen=True):
    """A node, its settings, and what was recorded of it."""

    record: NodeRecord
    settings: SimNodeSettings
    workloads: Mapping[str, str]
    """What its pods come from, by key."""

    @property
    def ranking(self) -> Ranking:
        """How its kubelet ranks for a hard threshold of memory."""
        eviction = self.settings.agent.eviction
        return Ranking(Signal.MEMORY, self.settings.layout, eviction.policy, hard=True, profile=eviction.profile)

    def qos_class(self, pod: str) -> QOSClass:
        """Return the class of a pod."""
        return qos_class_of(self.record.pods[pod], self.settings.agent.profile)

    def surroundings(self, pod: str) -> Surroundings:
        """Return what a change of a pod's manifest has to respect on this node."""
        name = self.workloads[pod]
        alike = frozenset(pod.metadata.uid for key, pod in self.record.pods.items() if self.workloads[key] == name)
        return Surroundings(self.settings.agent.known_plans.allocatable, alike)

    def snapshot(self, moment: Moment) -> Snapshot:
        """Return the pods of which anything runs at a moment: the others cannot be killed."""
        snapshot = self.record.snapshot(moment)
        return replace(snapshot, pods=tuple(used for used in snapshot.pods if used.containers))


def recorded_nodes(scenario: Scenario, records: Mapping[str, NodeRecord]) -> dict[str, RecordedNode]:
    """Return the nodes by name, in the order of ``records``."""
    workloads = {f"{workload.namespace}/{workload.name}": None for workload in scenario.workloads}
    settings: dict[str, SimNodeSettings] = {}
    for group in scenario.nodes:
        names = [name for name in map(group.name_of, range(group.count)) if name in records]
        if names:
            settings |= dict.fromkeys(names, node_settings(group.spec, scenario.profile, scenario.policy))
    return {
        name: RecordedNode(
            _from_its_start(record), settings[name], {key: workload_of(key, workloads) or key for key in record.pods}
        )
        for name, record in records.items()
    }


def deadliest_nodes(entries: Iterable[Entry]) -> list[str]:
    """Return the nodes with kills or evictions, most of them first."""
    counts = Counter(entry.node for entry in entries if is_kill(entry))
    return sorted(counts, key=lambda name: (-counts[name], name))


def _from_its_start(record: NodeRecord) -> NodeRecord:
    """Return a record in which the pods that are there from the beginning are no step."""
    beginning = sum(moment.time_us == 0 for moment in record.moments)
    return replace(record, moments=record.moments[max(0, beginning - 1) :])
