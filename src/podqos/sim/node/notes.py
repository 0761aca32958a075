"""Notes for words about a run: what was left at the times of the journal, what was decided on, how close it came.

They cost little next to the run itself. Between two events of a node everything is linear, so that how it looked after
an event is read off before the next one, if the event made news. What sleeps (``engine.columns``) stays asleep: its
part is added when the notes are read. Of each workload's first victim on a node all that was decided on is kept, of
later ones their place; and where memory is about to run out, the last moments before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct, field

from podqos.agent.journal import Entry, Kind
from podqos.agent.reasons import OOMLevel
from podqos.agent.state import AgentState
from podqos.eviction.observation import SignalObservation
from podqos.eviction.signals import Signal
from podqos.model.pod import Pod
from podqos.model.snapshot import ContainerUsage
from podqos.model.time_units import SECOND_US
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.gauge import FRACTION_BITS, Gauge
from podqos.sim.node.decisions import MOST_DECISIONS, seen_by_kernel, seen_by_kubelet
from podqos.sim.node.memory_group import MemoryGroup
from podqos.sim.node.node import SimNode
from podqos.sim.node.pods import SimContainer, SimPod
from podqos.sim.node.recording import Moment, PodMoment, ThresholdLine, threshold_lines
from podqos.sim.node.resources import NodeResources, left_of
from podqos.sim.scenario.scenario import MachineSpec
from podqos.survival.counterfactual.kernel import KernelMoment
from podqos.survival.counterfactual.kubelet import KubeletMoment

UNTOLD = frozenset({Kind.ADMITTED, Kind.PLACED, Kind.CLEANED_UP, Kind.STOPPED, Kind.EXITED})
"""What is in the journal and not in the words."""
FREEING = frozenset({Kind.OOM_KILLED, Kind.EVICTED, Kind.RECLAIMED})
"""What is left is told as it was before these."""
_IMAGEFS = (Signal.IMAGEFS, Signal.IMAGEFS_INODES)
_SIGNALS = (Signal.MEMORY, Signal.NODEFS, Signal.NODEFS_INODES, *_IMAGEFS, Signal.PID)
_MOST_READINGS = 5000
_AHEAD_US = 30 * SECOND_US
"""Memory that would run out so soon is about to."""
_MARGIN_BITS = 8
"""So does what is within this part of all memory, as a power of two."""
_WINDOW_US = 30 * SECOND_US
"""How long moments before the kernel has to kill are kept."""
_FIRST_PAIRS, _MORE_PAIRS = 32, 16
"""So many pairs of moments are kept before memory runs out, and so many more for each workload that it takes."""


class LaterKill(Struct, frozen=True, gc=False):
    """A kill by the kernel whose pod's workload had a victim on the node before."""

    now_us: int
    kubelet_place: int | None


class FirstKill(Struct, frozen=True, gc=False):
    """A workload's first kill by the kernel on a node."""

    seen: KernelMoment
    before: tuple[Moment, ...]
    """How the node got there, where it was the machine that ran out: moments without gaps, the last just before it.

    None where it came all of a sudden."""

    @property
    def now_us(self) -> int:
        """When it was."""
        return self.seen.now_us


class Extent(Struct, frozen=True, gc=False):
    """The least and the most that was left of something."""

    least: int
    least_us: int
    most: int


class MemoryReach(Struct, frozen=True, gc=False):
    """How close a node came to running out of memory."""

    node: str
    available: Extent
    threshold_bytes: int
    """With less, the kubelet evicts or the kernel kills."""
    memory_bytes: int
    """All that it has."""


def memory_threshold(thresholds: Iterable[ThresholdLine], kernel_min_bytes: int) -> int:
    """Return with how much memory left the first of kubelet and kernel acts."""
    marks = (threshold.amount for threshold in thresholds if threshold.signal is Signal.MEMORY)
    return max((kernel_min_bytes, *marks))


class NodeNotes(Struct):
    """What is noted of a node. The columns have a number for each of ``times_us``."""

    name: str
    spec: MachineSpec
    thresholds: tuple[ThresholdLine, ...]
    times_us: Sequence[int] = ()
    left: Mapping[Signal, Sequence[int]] = {}
    capacity: Mapping[Signal, int] = {}
    extents: Mapping[Signal, Extent] = {}
    cpu_wanted_milli: Sequence[int] = ()
    cpu_granted_milli: Sequence[int] = ()
    pods: dict[str, Pod] = field(default_factory=dict)
    """By key: those that decisions were about."""
    evictions: dict[int, KubeletMoment] = field(default_factory=dict)
    kills: list[FirstKill | LaterKill] = field(default_factory=list)
    """In their order."""


class _Glimpse(Struct, frozen=True, gc=False):
    """What eviction ranks by, of a node at a time: much less than a moment, and enough to know which pod is first."""

    time_us: int
    left: dict[Signal, SignalObservation]
    pods: list[tuple[SimPod, int, list[tuple[str, int, int, int]]]]
    """With what ended containers left in memory, and of each that runs: private memory, active files, tmpfs."""

    def moment(self) -> Moment:
        """Return it as a moment; what was not looked at is zero."""
        available = self.left[Signal.MEMORY].available
        pods = {
            pod.key: PodMoment(
                tuple(
                    ContainerUsage(name, anon_bytes=anon, active_file_bytes=active, tmpfs_bytes=tmpfs)
                    for name, anon, active, tmpfs in running
                ),
                kept_bytes=kept,
            )
            for pod, kept, running in self.pods
        }
        return Moment(self.time_us, available, available, 0, pods, self.left)


def _glimpse(world: NodeResources, time_us: int) -> _Glimpse:
    pods = []
    for pod in world.pods.values():
        if not pod.is_gone:
            running = [
                (
                    container.name,
                    0 if container.anon is None else container.anon.at(time_us),
                    0 if container.active_file is None else container.active_file.at(time_us),
                    container.tmpfs_bytes(time_us) if container.tmpfs else 0,
                )
                for container in pod.containers.values()
                if container.is_running
            ]
            pods.append((pod, pod.kept_bytes(time_us) if pod.kept else 0, running))
    return _Glimpse(time_us, left_of(world.memory_gauges(), time_us), pods)


class _Reading(Struct, frozen=True, gc=False):
    """What was in use at a time, in 2⁻⁴⁰ units, besides what was asleep."""

    time_us: int
    used: tuple[int, ...]
    asleep: tuple[Allocation, ...]
    bent_us: int
    """Up to when that counts as having bent."""
    system_milli: int
    granted_milli: int | None
    """CPU that pods got, where they did not get all they wanted."""


def noted_signals(spec: MachineSpec) -> tuple[Signal, ...]:
    """Return the signals of which something is noted."""
    return tuple(signal for signal in _SIGNALS if signal not in _IMAGEFS or spec.imagefs is not None)


class NoteTaker:
    """Takes notes of a run. ``workload_of`` names the workload of a pod."""

    def __init__(self, workload_of: Callable[[str], str]) -> None:
        self._workload_of = workload_of
        self._following: dict[str, _Following] = {}
        self._everywhere: list[int] = []
        """When there was news that concerns no node."""
        self.of_idle: Callable[[str], NodeNotes | None] = lambda _: None
        """What is noted of nodes that were not simulated."""
        self.idle_reaches: Callable[[], Iterable[MemoryReach] | None] = tuple
        """How close the closest of them came; None where that is too much to work out."""

    def before(self, node: SimNode, now_us: int) -> None:
        """Look at a node before something happens there."""
        following = self._following.get(node.name)
        if following is None or following.node is not node:
            following = self._follow(node, following)
        if now_us > following.now_us:
            following.reach(now_us)
        following.state = node.state

    def after(self, now_us: int, written: Iterable[Entry]) -> None:
        """Note what the journal got by an event; what a node that woke did before has been noted."""
        for entry in written:
            if entry.kind in UNTOLD or entry.time_us != now_us:
                continue
            if not entry.node:
                if self._everywhere[-1:] != [now_us]:
                    self._everywhere.append(now_us)
                continue
            following = self._following.get(entry.node)
            if following is not None and following.now_us == now_us:
                following.tell(entry.kind)
                if entry.kind is Kind.EVICTED and entry.pod is not None:
                    following.evicted(entry.pod, self._workload_of(entry.pod))

    def close(self, nodes: Iterable[SimNode], end_us: int) -> None:
        """Look at the nodes at the end."""
        for node in nodes:
            self.before(node, end_us)
        for following in self._following.values():
            following.is_told = True
            following.read_news()

    def memory_reaches(self) -> Iterable[MemoryReach]:
        """Return how close nodes came to running out of memory; nothing where not all are known."""
        of_idle = self.idle_reaches()
        if of_idle is None:
            return ()
        return (*of_idle, *(following.memory_reach() for following in self._following.values()))

    def notes(self, name: str, *, with_cpu: bool = True) -> NodeNotes | None:
        """Return what is noted of a node, of CPU only where that is wanted; None if it never ran."""
        following = self._following.get(name)
        return self.of_idle(name) if following is None else following.read(with_cpu=with_cpu)

    def _follow(self, node: SimNode, earlier: _Following | None) -> _Following:
        made = self._following[node.name] = _Following(node, self._everywhere, earlier)
        node.world.before_kill.append(partial(self._before_kill, made))
        return made

    def _before_kill(self, following: _Following, group: MemoryGroup, victim: SimContainer, _: int) -> None:
        following.before_kill(group, victim, self._workload_of(victim.pod.key))


class _Kept:
    """What is kept of a node, also where it is lost and joins again."""

    __slots__ = ("least", "most", "notes", "readings", "victims")

    def __init__(self, notes: NodeNotes, signals: int) -> None:
        self.notes = notes
        self.readings: list[_Reading] = []
        self.victims: set[str] = set()
        """The workloads that had a victim."""
        self.most = [(-1, 0)] * signals
        """By signal: the most that was in use, and when."""
        self.least = [1 << 200] * signals


class _Following:
    """A node, followed from event to event since it joined."""

    __slots__ = (
        "_capacity",
        "_columns",
        "_everywhere",
        "_first",
        "_full",
        "_gauges",
        "_has_read_before",
        "_least",
        "_most",
        "_pairs_left",
        "_recent",
        "_seen",
        "_seen_asleep",
        "_signals",
        "_told",
        "_usage",
        "is_told",
        "kept",
        "node",
        "now_us",
        "state",
    )

    def __init__(self, node: SimNode, everywhere: list[int], earlier: _Following | None) -> None:
        world = node.world
        self.node = node
        self.now_us = node.joined_us
        self.state: AgentState = node.state
        self.is_told = False
        """Whether there was news at the current time."""
        gauges = world.signals()
        spec = node.settings.spec
        self._signals = tuple(signal for signal in noted_signals(spec) if signal in gauges)
        self._capacity = [gauges[signal][1] for signal in self._signals]
        self._gauges = (*(gauges[signal][0] for signal in self._signals), world.cpu.wanted)
        self._first = [gauge.fine(max(self.now_us, gauge.since_us)) for gauge in self._gauges]
        """What was in use when it joined: all that is known of one that is lost at once."""
        self._columns = node.columns
        self._usage = world.memory.usage
        total = world.memory.machine.total_bytes
        self._full = (total - world.memory.machine.watermarks.min_bytes - (total >> _MARGIN_BITS)) << FRACTION_BITS
        self._everywhere = everywhere
        self._told = bisect_left(everywhere, self.now_us)
        """How much of that has been read."""
        self._recent: list[_Glimpse] = []
        self._pairs_left = _FIRST_PAIRS
        """How many times two moments may still be kept."""
        self._has_read_before = False
        self._seen: tuple[int, ...] = ()
        self._seen_asleep: tuple[Allocation, ...] = ()
        if earlier is None:
            self.kept = _Kept(NodeNotes(node.name, spec, threshold_lines(world)), len(self._signals))
        else:
            self.kept = earlier.kept
        self._most, self._least = self.kept.most, self.kept.least

    # ---- from event to event -------------------------------------------------------------------------------------

    def reach(self, now_us: int) -> None:
        """Get to the next event of the node: since the last one everything was linear."""
        since_us = self.now_us
        if self.is_told or self._told < len(self._everywhere):
            self.read_news(now_us)
        most, least, seen = self._most, self._least, []
        columns = self._columns
        asleep = () if columns is None else columns.asleep
        for index, gauge in enumerate(self._gauges):
            slope = gauge.slope
            end = gauge.base + slope * (now_us - gauge.since_us)
            seen.append(end)
            if index == len(most) or (asleep and gauge.headroom is not None):
                continue
            start = end - slope * (now_us - max(since_us, gauge.since_us))
            if slope > 0:
                if end > most[index][0]:
                    most[index] = end, now_us
                least[index] = min(least[index], start)
            else:
                if start > most[index][0]:
                    most[index] = start, since_us
                least[index] = min(least[index], end)
        if asleep:
            self._look_at_sleepers(since_us, now_us)
        elif self._usage.headroom is None:
            self._look_ahead(since_us, now_us)
        self.now_us = now_us
        self._seen, self._seen_asleep = tuple(seen), asleep
        self._has_read_before = False

    def _look_at_sleepers(self, since_us: int, now_us: int) -> None:
        """Note how far sums got while parts of them slept: at the beginnings of columns."""
        columns, most, least = self._columns, self._most, self._least
        assert columns is not None
        for index in range(len(most)):
            gauge = self._gauges[index]
            if gauge.headroom is None:
                continue
            extent = columns.extent(gauge, since_us, now_us)
            if extent is None:
                continue
            most_us, highest, least_us, lowest = extent
            if gauge.fine(most_us) + (highest << FRACTION_BITS) > most[index][0]:
                used = self._exactly(index, most_us)
                if used > most[index][0]:
                    most[index] = used, most_us
            if gauge.fine(least_us) + (lowest << FRACTION_BITS) < least[index]:
                least[index] = min(least[index], self._exactly(index, least_us))

    def _exactly(self, index: int, time_us: int) -> int:
        gauge, columns = self._gauges[index], self._columns
        assert columns is not None
        return gauge.fine(time_us) + sum(
            part.unseen(time_us, time_us) for part in columns.asleep if gauge in part.gauges
        )

    def _look_ahead(self, since_us: int, now_us: int) -> None:
        """Keep how a node looks whose memory is about to run out."""
        usage = self._usage
        used = usage.base + usage.slope * (now_us - usage.since_us)
        if self._pairs_left == 0 or used + max(0, usage.slope) * _AHEAD_US < self._full:
            return
        self._pairs_left -= 1
        recent = self._recent
        if recent and recent[-1].time_us != since_us:
            recent.clear()
        recent += (_glimpse(self.node.world, time_us) for time_us in (since_us, now_us))
        while len(recent) > 2 and recent[2].time_us < now_us - _WINDOW_US:
            del recent[:2]

    def tell(self, kind: Kind) -> None:
        """Note that there is news at this time, and what was left before, if it frees something."""
        self.is_told = True
        if (kind in FREEING or self.node.is_lost) and not self._has_read_before and self._seen:
            self._has_read_before = True
            self._add(_Reading(self.now_us, self._seen, self._seen_asleep, self.now_us - 1, 0, None))

    def read_news(self, until_us: int | None = None) -> None:
        """Read what was left after the event of the last time, and when there was news elsewhere up to a time."""
        if self.is_told:
            self.is_told = False
            self._read(self.now_us)
        everywhere = self._everywhere
        while self._told < len(everywhere) and (until_us is None or everywhere[self._told] < until_us):
            time_us = everywhere[self._told]
            self._told += 1
            if not self.kept.readings or self.kept.readings[-1].time_us < time_us >= self.now_us:
                self._read(time_us)

    def _read(self, time_us: int) -> None:
        if self.node.is_lost:
            return
        cpu = self.node.world.cpu
        system = 0 if cpu.system is None else cpu.system.at(time_us)
        granted = sum(cpu.granted_milli(time_us).values()) if cpu.is_throttled else None
        used = tuple([gauge.base + gauge.slope * (time_us - gauge.since_us) for gauge in self._gauges])
        asleep = () if self._columns is None else self._columns.asleep
        self._add(_Reading(time_us, used, asleep, time_us, system, granted))

    def _add(self, reading: _Reading) -> None:
        if len(self.kept.readings) < _MOST_READINGS:
            self.kept.readings.append(reading)

    # ---- victims -------------------------------------------------------------------------------------------------

    def before_kill(self, group: MemoryGroup, victim: SimContainer, workload: str) -> None:
        """Note what the kernel sees before it kills."""
        node, notes = self.node, self.kept.notes
        if len(notes.kills) >= MOST_DECISIONS:
            return
        notes.pods.setdefault(victim.pod.key, victim.pod.pod)
        if workload in self.kept.victims:
            notes.kills.append(LaterKill(node.now_us, node.eviction_place(group, victim.pod)))
            return
        self.kept.victims.add(workload)
        seen = seen_by_kernel(node, group, node.now_us)
        notes.pods.update((used.pod.key, used.pod) for used in seen.snapshot.pods)
        is_known = group.level is OOMLevel.NODE and self._recent and self._recent[-1].time_us == self.now_us
        before = tuple(glimpse.moment() for glimpse in self._recent) if is_known else ()
        notes.pods.update((pod.key, pod.pod) for glimpse in self._recent for pod, _, _ in glimpse.pods)
        if group.level is OOMLevel.NODE:
            self._pairs_left += _MORE_PAIRS
        notes.kills.append(FirstKill(seen, before))

    def evicted(self, pod: str, workload: str) -> None:
        """Note the pass in which the kubelet evicted a pod."""
        notes, node, now_us = self.kept.notes, self.node, self.now_us
        notes.pods.update((active.key, active) for active in self.state.active_pods if active.key == pod)
        if workload in self.kept.victims or len(notes.evictions) >= MOST_DECISIONS:
            return
        self.kept.victims.add(workload)
        if node.looks and now_us not in notes.evictions:
            notes.pods.update((active.key, active) for active in self.state.active_pods)
            notes.evictions[now_us] = seen_by_kubelet(node, self.state, now_us)

    # ---- afterwards ----------------------------------------------------------------------------------------------

    def extent(self, signal: Signal) -> Extent:
        """Return the least and the most that was left."""
        index = self._signals.index(signal)
        (used, when_us), least, capacity = self._most[index], self._least[index], self._capacity[index]
        if used < 0:
            used = least = self._first[index]
            when_us = self.node.joined_us
        return Extent(capacity - (used >> FRACTION_BITS), when_us, capacity - (least >> FRACTION_BITS))

    def memory_reach(self) -> MemoryReach:
        """Return how close it came to running out of memory."""
        notes, watermarks = self.kept.notes, self.node.world.memory.machine.watermarks
        threshold_bytes = memory_threshold(notes.thresholds, watermarks.min_bytes)
        return MemoryReach(notes.name, self.extent(Signal.MEMORY), threshold_bytes, notes.spec.memory_bytes)

    def read(self, *, with_cpu: bool) -> NodeNotes:
        """Return the notes, with what slept."""
        notes, readings = self.kept.notes, self.kept.readings
        gauges = self._gauges if with_cpu else self._gauges[:-1]
        used = [*_awake(readings, gauges)]
        notes.times_us = [reading.time_us for reading in readings]
        notes.left = {
            signal: [self._capacity[index] - (row[index] >> FRACTION_BITS) for row in used]
            for index, signal in enumerate(self._signals)
        }
        notes.capacity = dict(zip(self._signals, self._capacity, strict=True))
        notes.extents = {signal: self.extent(signal) for signal in self._signals}
        if not with_cpu:
            return notes
        wanted = [
            (row[-1] >> FRACTION_BITS) - reading.system_milli for row, reading in zip(used, readings, strict=True)
        ]
        notes.cpu_wanted_milli = wanted
        notes.cpu_granted_milli = [
            all_wanted if reading.granted_milli is None else reading.granted_milli
            for all_wanted, reading in zip(wanted, readings, strict=True)
        ]
        return notes


def _awake(readings: Sequence[_Reading], gauges: Sequence[Gauge]) -> Iterator[list[int]]:
    """Yield what was in use, what slept included."""
    places = {id(gauge): place for place, gauge in enumerate(gauges)}
    known: tuple[Allocation, ...] = ()
    counted: list[tuple[Allocation, list[int]]] = []
    for reading in readings:
        used = list(reading.used[: len(gauges)])
        if reading.asleep is not known:
            known = reading.asleep
            both = ((part, [places[id(gauge)] for gauge in part.gauges if id(gauge) in places]) for part in known)
            counted = [(part, at) for part, at in both if at]
        for part, at in counted:
            own = part.unseen(reading.time_us, reading.bent_us)
            for place in at:
                used[place] += own
        yield used
