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
from podqos.sim.engine.event_queue import CLUSTER, EventPriority, EventQueue
from podqos.sim.node.checkers import check_node
from podqos.sim.node.cpu import CpuAccount
from podqos.sim.node.node import MakeRest, SimNode
from podqos.sim.record import Recorder
from podqos.sim.scenario.scenario import Scenario
from podqos.sim.services.outcome import ServiceOutcome

Progress = Callable[[int, int], None]
"""Called now and then with the time reached and the number of events so far."""

_PROGRESS_EVERY = 1024

# From this many bends on, resting pays; with fewer bent curves on a node it does not.
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
    """The journal, by time, then by node name."""
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
    check: bool = False,
    progress: Progress | None = None,
) -> FinishedRun:
    """Run a scenario. ``check`` asserts the invariants after every event, which is slow; ``recorder`` looks on."""
    return Simulation(scenario, recorder=recorder, check=check).finish(progress)


class Simulation:
    """A scenario after its first moment: everything present at the start is running."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        recorder: Recorder | None = None,
        check: bool = False,
        rest: bool | None = None,
    ) -> None:
        """Set it up. ``rest`` is whether bends that cannot matter are left out; None is where that pays."""
        self._scenario = scenario
        self._recorder = recorder
        self._check = check
        self._queue = EventQueue(scenario.duration_us)
        made = _rest(scenario, rest)
        self._cluster = SimCluster(scenario, self._queue, is_watched=self._is_watched, rest=made)
        while self._queue.next is not None and self._queue.next[0] == 0:
            self._step()

    def finish(self, progress: Progress | None = None) -> FinishedRun:
        """Run to the end."""
        queue, scenario, cluster = self._queue, self._scenario, self._cluster
        while queue.next is not None:
            self._step()
            if progress is not None and queue.done % _PROGRESS_EVERY == 0:
                progress(queue.now_us, queue.done)
        if self._recorder is not None:
            # Once more at the end, so that unchanged values are drawn until then.
            for node in self._recorded(cluster.fleet.present.values()):
                self._recorder.before(node, scenario.duration_us, EventPriority.LIFE)
        cluster.entries.sort(key=in_order)
        kinds = Counter(entry.kind.value for entry in cluster.entries)
        services = cluster.services
        return FinishedRun(
            scenario,
            cluster.entries,
            scenario.duration_us,
            Tallies(queue.done, dict(sorted(kinds.items()))),
            () if services is None else services.outcomes(scenario.duration_us),
            cluster.fleet.cpu_accounts(),
        )

    def _step(self) -> None:
        """Run the next event; recorder and checkers look at its nodes before and after."""
        queue, cluster, recorder = self._queue, self._cluster, self._recorder
        if recorder is None and not self._check:
            queue.step()
            return
        coming, priority = queue.next, queue.next_priority
        assert coming is not None
        time_us, index = coming
        nodes, written = cluster.fleet.numbered(index), len(cluster.entries)
        if recorder is not None:
            for node in self._recorded(nodes):
                recorder.before(node, time_us, priority, perhaps=index == CLUSTER)
        queue.step()
        if self._check:
            is_settled = queue.next is None or queue.next[0] > time_us
            for node in nodes:
                if not node.is_lost:
                    check_node(node, time_us, settled=is_settled)
        if recorder is not None:
            for node in self._recorded(nodes):
                recorder.after(node, time_us, cluster.entries[written:])

    def _is_watched(self, name: str) -> bool:
        recorder = self._recorder
        return self._check or (recorder is not None and recorder.records(name))

    def _recorded(self, nodes: Iterable[SimNode]) -> list[SimNode]:
        recorder = self._recorder
        return [node for node in nodes if recorder is not None and recorder.records(node.name) and not node.is_lost]


def _rest(scenario: Scenario, asked: bool | None) -> MakeRest | None:
    """Return what lets nodes rest; None where bends are followed one by one."""
    # Services and autoscalers look often: nothing would rest for long.
    if (
        asked is False
        or scenario.has_actors
        or scenario.has_services
        or (asked is None and scenario.bends < _MANY_BENDS)
    ):
        return None
    try:
        from podqos.sim.node.resting import Rest
    except ImportError:
        return None
    return partial(Rest, least=_FEW_PARTS if asked is None else 1)
