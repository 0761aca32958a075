"""Run a scenario from start to end.

The same scenario gives the same bytes: nothing depends on the machine, the time of day or the order of sets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from msgspec import Struct

from podqos.agent.journal import Entry, in_order
from podqos.sim.cluster.cluster import SimCluster
from podqos.sim.cluster.idle_notes import idle_notes, idle_reaches
from podqos.sim.cluster.known_nodes import KnownNodes
from podqos.sim.cluster.long_journal import whole_journal
from podqos.sim.engine.event_queue import CLUSTER, EventQueue
from podqos.sim.node.checkers import check_node
from podqos.sim.node.cpu_meter import CpuAccount
from podqos.sim.node.node import MakeColumns, SimNode
from podqos.sim.node.notes import NoteTaker
from podqos.sim.node.recording import Recorder
from podqos.sim.scenario.scenario import Scenario
from podqos.sim.services.outcome import ServiceOutcome

Progress = Callable[[int, int], None]
"""Called now and then with the time reached and the number of events so far."""

_PROGRESS_EVERY = 1024

# From this many bends on, columns pay; with fewer bent curves on a node they do not.
_MANY_BENDS = 50_000
_FEW_PARTS = 16


class Tallies(Struct, frozen=True):
    """How much happened."""

    events: int
    kinds: dict[str, int]
    """Entries of the journal by kind."""


class FinishedRun(Struct, frozen=True):
    """A scenario that has been run."""

    scenario: Scenario
    entries: Sequence[Entry]
    """The journal, by time, then by node name. A long one is generated while it is read."""
    end_us: int
    tallies: Tallies
    services: tuple[ServiceOutcome, ...] = ()
    """What became of requests, if workloads answer any."""
    cpu: tuple[CpuAccount, ...] = ()
    """Of containers that had work to do or were short of CPU, by when they were started."""


def simulate(
    scenario: Scenario,
    *,
    recorder: Recorder | None = None,
    notes: NoteTaker | None = None,
    check: bool = False,
    progress: Progress | None = None,
    known: KnownNodes | None = None,
) -> FinishedRun:
    """Run a scenario. ``check`` asserts the invariants after every event, which is slow.

    ``recorder`` keeps what pictures show, ``notes`` what words say besides the journal, which costs little.
    """
    return Simulation(scenario, recorder=recorder, notes=notes, check=check, known=known).finish(progress)


class Simulation:
    """A scenario after its first moment: everything present at the start is running."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        recorder: Recorder | None = None,
        notes: NoteTaker | None = None,
        check: bool = False,
        columns: bool | None = None,
        known: KnownNodes | None = None,
    ) -> None:
        """Set it up. ``columns`` is whether bends that cannot matter are left out; None is where that pays.

        ``known`` is what shards of one fleet share.
        """
        self._scenario = scenario
        self._queue = EventQueue(scenario.duration_us)
        is_watched = _watched(recorder, check=check)
        known = known or KnownNodes(scenario)
        made = _columns(scenario, known, columns)
        self._cluster = SimCluster(scenario, self._queue, is_watched=is_watched, columns=made, known=known)
        self._watch = _Watch(self._cluster, recorder, check=check) if recorder is not None or check else None
        self._noting = None if notes is None else _Noting(self._cluster, notes)
        while self._queue.next is not None and self._queue.next[0] == 0:
            self._step()

    def finish(self, progress: Progress | None = None) -> FinishedRun:
        """Run to the end."""
        queue, scenario = self._queue, self._scenario
        while queue.next is not None:
            self._step()
            if progress is not None and queue.done % _PROGRESS_EVERY == 0:
                progress(queue.now_us, queue.done)
        if self._watch is not None:
            self._watch.close(scenario.duration_us)
        if self._noting is not None:
            self._noting.close(scenario.duration_us)
        entries, fleet = self._cluster.entries, self._cluster.fleet
        entries.sort(key=in_order)
        kinds = Counter(entry.kind.value for entry in entries)
        initial = {id(node.initial): node.initial for node in fleet.idle.values()}
        for which, count in Counter(id(node.initial) for node in fleet.idle.values()).items():
            for entry in initial[which].written:
                kinds[entry.kind.value] += count
        tallies = Tallies(queue.done, dict(sorted(kinds.items())))
        services = self._cluster.services
        outcomes = () if services is None else services.outcomes(scenario.duration_us)
        accounts = fleet.cpu_accounts(scenario.duration_us)
        return FinishedRun(scenario, whole_journal(entries, fleet), scenario.duration_us, tallies, outcomes, accounts)

    def _step(self) -> None:
        queue, watch, noting = self._queue, self._watch, self._noting
        if noting is not None:
            assert queue.next is not None
            noting.before(*queue.next)
        if watch is None:
            queue.step()
        else:
            assert queue.next is not None
            watch.step(queue, *queue.next)
        if noting is not None:
            noting.after(queue.now_us)


def _columns(scenario: Scenario, known: KnownNodes, asked: bool | None) -> MakeColumns | None:
    """Return what nodes put the parts of their sums to sleep with; None where bends are followed one by one."""
    # Autoscalers measure often: nothing would sleep for long.
    if asked is False or scenario.has_actors or (asked is None and known.bends < _MANY_BENDS):
        return None
    try:
        from podqos.sim.engine.columns import Columns
    except ImportError:
        return None
    return partial(Columns, scenario.duration_us, _FEW_PARTS if asked is None else 1)


def _watched(recorder: Recorder | None, *, check: bool) -> Callable[[str], bool]:
    """Return which nodes are watched, whether or not anything happens there."""
    if check:
        return lambda _: True
    return (lambda _: False) if recorder is None else recorder.records


class _Watch:
    """Shows the nodes to recorder and checkers before and after every event."""

    def __init__(self, cluster: SimCluster, recorder: Recorder | None, *, check: bool) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._check = check

    def step(self, queue: EventQueue, time_us: int, index: int) -> None:
        """Run the next event and look at the node before and after."""
        written = len(self._cluster.entries)
        nodes = self._cluster.fleet.numbered(index)
        if self._recorder is not None:
            for node in self._recorded(nodes):
                self._recorder.before(node, time_us, perhaps=index == CLUSTER)
        queue.step()
        is_settled = queue.next is None or queue.next[0] > time_us
        if self._check:
            for node in nodes:
                if not node.is_lost:
                    check_node(node, time_us, settled=is_settled)
        if self._recorder is not None:
            for node in self._recorded(nodes):
                self._recorder.after(node, time_us, self._cluster.entries[written:])

    def close(self, end_us: int) -> None:
        """Look at all nodes once more at the end, so that unchanged values are drawn until then."""
        if self._recorder is not None:
            for node in self._recorded(self._cluster.fleet.awake.values()):
                self._recorder.before(node, end_us)

    def _recorded(self, nodes: Iterable[SimNode]) -> list[SimNode]:
        recorder = self._recorder
        return [node for node in nodes if recorder is not None and recorder.records(node.name) and not node.is_lost]


class _Noting:
    """Lets notes be taken: a node is looked at before its own events, and before others do something to it."""

    def __init__(self, cluster: SimCluster, notes: NoteTaker) -> None:
        self._fleet = cluster.fleet
        self._entries = cluster.entries
        self._seen = len(cluster.entries)
        self._notes = notes
        cluster.fleet.touched = self._touched
        cluster.fleet.step_waking = self._step_waking
        notes.of_idle = partial(idle_notes, cluster.fleet)
        notes.idle_reaches = partial(idle_reaches, cluster.fleet)

    def before(self, time_us: int, index: int) -> None:
        """Look at the node of the next event."""
        if index != CLUSTER:
            fleet = self._fleet
            node = fleet.awake.get(fleet.names[index])
            if node is not None:
                self._notes.before(node, time_us)

    def after(self, now_us: int) -> None:
        """Note what the event wrote into the journal."""
        seen, entries = self._seen, self._entries
        if len(entries) != seen:
            self._seen = len(entries)
            self._notes.after(now_us, entries[seen:])

    def close(self, end_us: int) -> None:
        """Look at all nodes at the end."""
        self._notes.close(self._fleet.awake.values(), end_us)

    def _touched(self, node: SimNode) -> None:
        self._notes.before(node, node.queue.now_us)

    def _step_waking(self, node: SimNode) -> None:
        own, entries = node.queue, self._entries
        seen = len(entries)
        assert own.next is not None
        self._notes.before(node, own.next[0])
        own.step()
        self._notes.after(own.now_us, entries[seen:])
