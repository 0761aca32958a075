"""Run a scenario from beginning to end.

Same scenario, same bytes: nothing here depends on the machine, on the time of day or on the order of sets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from podqos.agent.journal import Entry
from podqos.sim.agenda import Agenda
from podqos.sim.checkers import check_node
from podqos.sim.cluster import SimCluster
from podqos.sim.long_journal import whole_journal
from podqos.sim.node import SimNode
from podqos.sim.recording import Recorder
from podqos.sim.scenario import Scenario

Progress = Callable[[int, int], None]
"""Told now and then the time reached and how many things have happened."""

_PROGRESS_EVERY = 1024


class Tallies(Struct, frozen=True):
    """How much happened."""

    events: int
    kinds: dict[str, int]
    """Entries of the journal by kind."""


class Run(Struct, frozen=True):
    """A scenario that has been run."""

    scenario: Scenario
    entries: Sequence[Entry]
    """The journal: in the order of time, of one time by name of the node. A long one is made while it is read."""
    end_us: int
    tallies: Tallies


def simulate(
    scenario: Scenario,
    *,
    recorder: Recorder | None = None,
    check: bool = False,
    progress: Progress | None = None,
) -> Run:
    """Run a scenario. ``check`` holds the invariants after every event, at a price."""
    return Simulation(scenario, recorder=recorder, check=check).finish(progress)


class Simulation:
    """A scenario brought to the end of its first moment: everything that is there from the beginning runs."""

    def __init__(self, scenario: Scenario, *, recorder: Recorder | None = None, check: bool = False) -> None:
        self._scenario = scenario
        self._agenda = Agenda(scenario.duration_us)
        self._cluster = SimCluster(scenario, self._agenda, is_watched=_watched(recorder, check=check))
        self._watch = _Watch(self._cluster, recorder, check=check) if recorder is not None or check else None
        while self._agenda.next is not None and self._agenda.next[0] == 0:
            self._step()

    def finish(self, progress: Progress | None = None) -> Run:
        """Go on to the end."""
        agenda, scenario = self._agenda, self._scenario
        while agenda.next is not None:
            self._step()
            if progress is not None and agenda.done % _PROGRESS_EVERY == 0:
                progress(agenda.now_us, agenda.done)
        if self._watch is not None:
            self._watch.close(scenario.duration_us)
        entries, fleet = self._cluster.entries, self._cluster.fleet
        entries.sort(key=lambda entry: (entry.time_us, entry.node))
        kinds = Counter(entry.kind.value for entry in entries)
        for beginning, count in fleet.beginnings():
            for line in beginning.lines:
                kinds[line.kind.value] += count
        tallies = Tallies(agenda.done, dict(sorted(kinds.items())))
        return Run(scenario, whole_journal(entries, fleet), scenario.duration_us, tallies)

    def _step(self) -> None:
        if self._watch is None:
            self._agenda.step()
        else:
            assert self._agenda.next is not None
            self._watch.step(self._agenda, *self._agenda.next)


def _watched(recorder: Recorder | None, *, check: bool) -> Callable[[str], bool]:
    """Return which nodes somebody wants to see, whatever happens there."""
    if check:
        return lambda _: True
    return (lambda _: False) if recorder is None else recorder.records


class _Watch:
    """Looks at the nodes around every event, for those who want to know."""

    def __init__(self, cluster: SimCluster, recorder: Recorder | None, *, check: bool) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._check = check

    def step(self, agenda: Agenda, time_us: int, index: int) -> None:
        """Let the next thing happen, and look at the node before and after."""
        written = len(self._cluster.entries)
        nodes = self._cluster.fleet.numbered(index)
        if self._recorder is not None:
            for node in self._recorded(nodes):
                self._recorder.before(node, time_us)
        agenda.step()
        is_settled = agenda.next is None or agenda.next[0] > time_us
        if self._check:
            for node in nodes:
                if not node.is_lost:
                    check_node(node, time_us, settled=is_settled)
        if self._recorder is not None:
            for node in self._recorded(nodes):
                self._recorder.after(node, time_us, self._cluster.entries[written:])

    def close(self, end_us: int) -> None:
        """Look at all nodes once more at the end: what did not change until then is drawn until then."""
        if self._recorder is not None:
            for node in self._recorded(self._cluster.fleet.awake()):
                self._recorder.before(node, end_us)

    def _recorded(self, nodes: Iterable[SimNode]) -> list[SimNode]:
        recorder = self._recorder
        return [node for node in nodes if recorder is not None and recorder.records(node.name) and not node.is_lost]
