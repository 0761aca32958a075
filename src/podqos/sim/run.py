"""Run a scenario from beginning to end.

Same scenario, same bytes: nothing here depends on the machine, on the time of day or on the order of sets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from msgspec import Struct

from podqos.agent.journal import Entry
from podqos.sim.agenda import Agenda
from podqos.sim.checkers import check_node
from podqos.sim.cluster import SimCluster
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
    entries: list[Entry]
    """The journal: in the order of time, of one time by name of the node."""
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
    agenda = Agenda(scenario.duration_us)
    cluster = SimCluster(scenario, agenda)
    watch = _Watch(cluster, recorder, check=check) if recorder is not None or check else None
    while (upcoming := agenda.next) is not None:
        if watch is None:
            agenda.step()
        else:
            watch.step(agenda, *upcoming)
        if progress is not None and agenda.done % _PROGRESS_EVERY == 0:
            progress(agenda.now_us, agenda.done)
    if watch is not None:
        watch.close(scenario.duration_us)
    entries = cluster.entries
    entries.sort(key=lambda entry: (entry.time_us, entry.node))
    kinds = Counter(entry.kind.value for entry in entries)
    return Run(scenario, entries, scenario.duration_us, Tallies(agenda.done, dict(sorted(kinds.items()))))


class _Watch:
    """Looks at the nodes around every event, for those who want to know."""

    def __init__(self, cluster: SimCluster, recorder: Recorder | None, *, check: bool) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._check = check

    def step(self, agenda: Agenda, time_us: int, index: int) -> None:
        """Let the next thing happen, and look at the node before and after."""
        written = len(self._cluster.entries)
        nodes = self._cluster.nodes_numbered(index)
        if self._recorder is not None:
            for node in nodes:
                self._recorder.before(node, time_us)
        agenda.step()
        is_settled = agenda.next is None or agenda.next[0] > time_us
        for node in nodes:
            if self._check and not node.is_lost:
                check_node(node, time_us, settled=is_settled)
            if self._recorder is not None and not node.is_lost:
                self._recorder.after(node, time_us, is_written=len(self._cluster.entries) > written)

    def close(self, end_us: int) -> None:
        """Look at all nodes once more at the end: what did not change until then is drawn until then."""
        if self._recorder is not None:
            for node in self._cluster.nodes.values():
                if not node.is_lost:
                    self._recorder.before(node, end_us)
