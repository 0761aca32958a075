"""Run a large fleet in shards, on the cores of this machine or on a Dask cluster, and put its parts together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from podqos.library.parallel import carried_out, dask_address, job_count
from podqos.reading.spilled_journal import SpilledJournal
from podqos.sim.cluster.cluster import LeavesShard
from podqos.sim.node.notes import NoteTaker
from podqos.sim.node.recording import NodeRecord, Recorder
from podqos.sim.run import Progress, Tallies, simulate
from podqos.sim.scenario.scenario import Scenario
from podqos.sim.shards import ShardRun, Together, run_shard, shard, together, total
from podqos.sim.summary import RunSummary, SplitRun, added_up, workload_of

_MOST_NODES = 125
"""In one shard: a worker keeps its journal in memory, and tells of it when it is done."""
_SHARDS_PER_JOB = 4
"""So that all cores are done at about the same time."""

Records = Mapping[str, NodeRecord]


def split_run(
    scenario: Scenario,
    shown: Sequence[str],
    *,
    check: bool,
    engine: str,
    jobs: int,
    progress: Progress | None,
) -> tuple[SplitRun, Records] | Together:
    """Return a run and the recordings of the nodes to show, or why the nodes have to be simulated together."""
    local_jobs = job_count(jobs) if dask_address(engine) is None else 1
    why = together(scenario)
    if why is not None:
        return why
    names = scenario.node_names
    count = min(len(names), max(-(-len(names) // _MOST_NODES), local_jobs * _SHARDS_PER_JOB))
    bounds = [(len(names) * turn // count, len(names) * (turn + 1) // count) for turn in range(count)]
    journal = SpilledJournal()
    tallies: list[Tallies] = []
    summaries: list[RunSummary] = []
    records: dict[str, NodeRecord] = {}
    task = partial(_run, scenario, tuple(shown), check)
    with carried_out(task, bounds, engine=engine, jobs=jobs) as runs:
        for run in runs:
            if isinstance(run, Together):
                return run
            tallies.append(run.tallies)
            summaries.append(run.summary)
            records |= run.records
            journal.add(run.journal, sum(run.tallies.kinds.values()))
            if progress is not None:
                reached_us = scenario.duration_us * len(tallies) // count
                progress(reached_us, sum(tally.events for tally in tallies))
    whole = scenario, journal.unless_long(), scenario.duration_us, total(tallies)
    done = SplitRun(*whole, summary=added_up(summaries, scenario))
    return done, records


def _run(
    scenario: Scenario,
    shown: tuple[str, ...],
    check: bool,
    bounds: tuple[int, int],
) -> ShardRun | Together:
    """Run some of the nodes. It is called in workers, which get the whole scenario once."""
    return run_shard(shard(scenario, scenario.node_names[slice(*bounds)]), shown, check=check)


def recorded(scenario: Scenario, names: Sequence[str], progress: Progress | None) -> Records:
    """Return the recordings of some nodes; others are not simulated again if that is not needed."""
    if together(scenario) is None:
        recorder = Recorder(only=names)
        try:
            simulate(shard(scenario, names), recorder=recorder, progress=progress)
        except LeavesShard:
            pass
        else:
            return recorder.nodes
    recorder = Recorder(only=names)
    simulate(scenario, recorder=recorder, progress=progress)
    return recorder.nodes


def noted(scenario: Scenario, names: Sequence[str], progress: Progress | None) -> NoteTaker:
    """Return notes about some nodes; others are not simulated again if that is not needed."""
    if together(scenario) is None:
        notes = note_taker(scenario)
        try:
            simulate(shard(scenario, names), notes=notes, progress=progress)
        except LeavesShard:
            pass
        else:
            return notes
    notes = note_taker(scenario)
    simulate(scenario, notes=notes, progress=progress)
    return notes


def note_taker(scenario: Scenario) -> NoteTaker:
    """Return who takes notes of a run of a scenario."""
    workloads = frozenset(f"{workload.namespace}/{workload.name}" for workload in scenario.workloads)
    return NoteTaker(lambda pod: workload_of(pod, workloads) or pod)
