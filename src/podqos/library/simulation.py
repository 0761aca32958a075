"""``simulate``: run a scenario and show what happened.

Words come from the journal and from notes that are taken while it runs. Same scenario, same run: what pictures need is
recorded at once where that is wanted of few nodes; else in a second run, when a picture is first asked for, of those
that it shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import Kind
from podqos.agent.reasons import OOMKill, OOMLevel
from podqos.errors import HostError, InvalidArgument
from podqos.library.parallel import PER_CORE
from podqos.library.split_run import note_taker, noted, recorded, split_run
from podqos.naming import naming
from podqos.sim.node.notes import NoteTaker
from podqos.sim.node.recording import NodeRecord, Recorder
from podqos.sim.recorded_node import deadliest_nodes
from podqos.sim.run import FinishedRun, Progress
from podqos.sim.run import simulate as run_to_the_end
from podqos.sim.shards import Together
from podqos.sim.summary import RunSummary, run_summary
from podqos.survival.comparison import is_kill

if TYPE_CHECKING:
    from podqos.agent.journal import Entry
    from podqos.answers.run_view import ClosestCall, RunView
    from podqos.model.assumption import Assumption
    from podqos.sim.scenario.scenario import Scenario

_FEW_NODES = 12
"""So many nodes are recorded and shown without being asked for; of more, those with most victims."""

_DRAWN_TOGETHER = 3
"""So many nodes are drawn in one picture without being asked for."""


Record = bool | Literal["words"]
"""What is kept of a run besides its journal: what pictures need, or words, or nothing."""


class ApartKeywords(TypedDict, total=False):
    """Where nodes that do not interact are simulated apart, as keyword arguments."""

    engine: str | None
    jobs: int


class _Apart(Struct, frozen=True, kw_only=True):
    engine: str | None = None
    jobs: int = PER_CORE


def simulate(
    scenario: Scenario,
    *,
    nodes: Sequence[str] | None = None,
    record: Record = True,
    check: bool = False,
    progress: Progress | None = None,
    **apart: Unpack[ApartKeywords],
) -> Run:
    """Run a scenario from beginning to end.

    ``nodes`` are those to show (by default all of a few, of many those with most victims). Without ``record`` the run
    is faster, and made again if its report is asked for; with ``record="words"`` only what words need is kept, which
    costs little. ``check`` verifies the simulator's invariants after every
    event. ``engine``, ``processes`` or ``dask=HOST:PORT``, simulates nodes apart that do not interact, with the same
    result; ``jobs`` is how many processes there are here. The run's ``together`` says where it could not. ``progress``
    gets the time reached, in microseconds, and the number of events now and then.
    """
    where = _Apart(**apart)
    names = _known(scenario, nodes)
    shown = names if record is True and names is not None else None
    together = None
    if where.engine is not None:
        split = split_run(scenario, shown or (), check=check, engine=where.engine, jobs=where.jobs, progress=progress)
        if not isinstance(split, Together):
            run, records = split
            return Run(run, names, Kept(records if shown is not None else None), progress)
        together = split
    recorder = None if shown is None else Recorder(only=shown)
    notes = note_taker(scenario) if record else None
    done = run_to_the_end(scenario, recorder=recorder, notes=notes, check=check, progress=progress)
    return Run(done, names, Kept(None if recorder is None else recorder.nodes, notes), progress, together)


class Kept(Struct, frozen=True):
    """What was kept of a run besides its journal."""

    records: Mapping[str, NodeRecord] | None = None
    """For pictures, by name of the node."""
    notes: NoteTaker | None = None
    """For words."""


class Run:
    """A scenario that has been run."""

    def __init__(
        self,
        done: FinishedRun,
        names: Sequence[str] | None,
        kept: Kept,
        progress: Progress | None,
        together: Together | None = None,
    ) -> None:
        self._done = done
        self._names = names
        self._kept = kept
        self._progress = progress
        self._recorded_again: Mapping[str, NodeRecord] = {}
        self.together = together
        """Why an engine did not simulate its nodes apart; None if it did, or none was asked for."""

    @property
    def scenario(self) -> Scenario:
        """What was run."""
        return self._done.scenario

    @property
    def journal(self) -> Sequence[Entry]:
        """Everything observed, decided and done, with reasons, in order of time."""
        return self._done.entries

    @cached_property
    def summary(self) -> RunSummary:
        """How it ended, in all and per workload."""
        return run_summary(self._done)

    @cached_property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the run takes from models, and from versions that are only approximate."""
        from podqos.answers.run_assumptions import of_run

        return of_run(self._done)

    @cached_property
    def report(self) -> RunView:
        """All that is shown of a run: what ``podqos simulate -o json`` prints."""
        return self._drawn(self._shown)

    @cached_property
    def words(self) -> RunView:
        """What the terminal shows: the same kills, events and totals, without what only pictures need."""
        from podqos.answers.run_reading import told_view

        names, taker = self._shown, self._kept.notes
        if taker is None:
            taker = noted(self.scenario, names, self._progress)
        short = {entry.node for entry in self.journal if entry.kind is Kind.THROTTLED}
        noted_nodes = ((name, taker.notes(name, with_cpu=name in short)) for name in names)
        notes = {name: of_node for name, of_node in noted_nodes if of_node is not None}
        return told_view(self._done, notes, self._whole, self.summary, self._closest)

    @cached_property
    def _shown(self) -> Sequence[str]:
        """The nodes that are shown."""
        if self._names is not None:
            return self._names
        return deadliest_nodes(self.journal)[:_FEW_NODES] or self.scenario.node_names[:1]

    @cached_property
    def _closest(self) -> ClosestCall | None:
        from podqos.answers.near_miss import closest_call

        return None if self._kept.notes is None else closest_call(self.summary, self._kept.notes)

    def _drawn(self, names: Sequence[str]) -> RunView:
        from podqos.answers.run_reading import run_view

        records = self._kept.records
        if records is None or not set(names) <= {*records}:
            records = recorded(self.scenario, names, self._progress)
        view = run_view(self._done, {name: records[name] for name in names if name in records})
        return replace(view, closest=self._closest)

    def _whole(self, name: str) -> NodeRecord:
        """Record all of a node on which the machine's memory ran out, and of the others like it at once."""
        if name not in self._recorded_again:
            names = [shown for shown in self._shown if shown in self._exhausted]
            self._recorded_again = recorded(self.scenario, names, self._progress)
        return self._recorded_again[name]

    @cached_property
    def _exhausted(self) -> frozenset[str]:
        """The nodes whose memory ran out as a whole."""
        return frozenset(
            entry.node
            for entry in self.journal
            if isinstance(entry.because, OOMKill) and entry.because.level is OOMLevel.NODE
        )

    def html(self) -> str:
        """Return a self-contained page to view the run in a browser."""
        from podqos.report.simulation.html import page

        return page(built_viewer(), self.report)

    def svg(self, *nodes: str) -> str:
        """Return a picture of some nodes; by default of all where they are few, otherwise of the first with victims."""
        from podqos.report.simulation.svg import run_svg

        for name in nodes:
            if name not in self._shown:
                raise InvalidArgument(f"node {name!r} is not shown", fix="choose others with " + naming("node"))
        names = [*dict.fromkeys(nodes)] or self._shown
        if not nodes and len(names) > _DRAWN_TOGETHER:
            killed = {entry.node for entry in self.journal if is_kill(entry)}
            names = [min(names, key=lambda name: name not in killed)]
        report = self.report if "report" in self.__dict__ or len(names) == len(self._shown) else self._drawn(names)
        drawn = {node.name: node for node in report.nodes}
        if not drawn:
            raise InvalidArgument(
                "nothing to draw: none of the nodes existed during the run", fix="choose others with " + naming("node")
            )
        return run_svg(report, *(drawn[name] for name in names if name in drawn))


def built_viewer() -> str:
    """Return the page that runs are written into; it is part of a wheel, and built in a source tree."""
    from importlib.resources import files

    report = files("podqos.report")
    try:
        return (report / "viewer.html").read_text(encoding="utf-8")
    except FileNotFoundError as error:
        from podqos.library.missing_page import how_to_get_the_page

        raise HostError(how_to_get_the_page(str(report))) from error


def _known(scenario: Scenario, given: Sequence[str] | None) -> Sequence[str] | None:
    """Return the nodes to show; None where the run has to tell."""
    known = scenario.node_names
    if given is None:
        return known if len(known) <= _FEW_NODES else None
    for name in given:
        if name not in known:
            some = ", ".join(known[:5])
            raise InvalidArgument(f"no such node: {name!r}", where=naming("node"), fix=f"such as {some}")
    return list(dict.fromkeys(given))
