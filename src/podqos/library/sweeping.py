"""``sweep``: run a scenario with many values and seeds, here or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import Kind
from podqos.errors import InvalidArgument
from podqos.library.parallel import PER_CORE, EngineKeywords, carried_out
from podqos.naming import naming
from podqos.reading.scenario_files import load_scenario
from podqos.sim.run import simulate
from podqos.sim.scenario.assumptions import assumptions_of
from podqos.sim.scenario.scenario import Scenario
from podqos.sim.summary import WorkloadSummary, run_summary, workload_of
from podqos.sim.sweep import Point, RunResult, Sweep, WorkloadResult, combinations, plan
from podqos.sim.variation import Variation, Varied, parse_varied, takes_from_allocatable
from podqos.wording import listed

_MOST_SEEDS = 100_000


class SweepRequest(Struct, frozen=True, kw_only=True):
    """How often every combination is run, and where."""

    seeds: int = 1
    hold_placement: bool = False
    engine: str = "processes"
    jobs: int = PER_CORE


class SweepKeywords(EngineKeywords, total=False):
    """``SweepRequest`` as keyword arguments."""

    seeds: int
    hold_placement: bool


def sweep(
    scenario: str,
    vary: Sequence[str] = (),
    *,
    progress: Callable[[int, int], None] | None = None,
    say: Callable[[str], None] = lambda _: None,
    **options: Unpack[SweepKeywords],
) -> Sweep:
    """Run a scenario, by its file or name, under every combination of values, and return how each workload fares.

    ``vary`` holds texts such as ``phase=0s,5s`` (``podqos simulate --help`` lists the parameters). More than one of
    ``seeds`` means seeds 0 to N−1 instead of the scenario's own. With ``hold_placement`` pods may request what the
    scenario's own kubelets leave them, so that a raised threshold does not win by displacing a pod. ``engine`` and
    ``jobs`` say where to run and how much in parallel. ``progress`` gets the number of finished runs and the total;
    ``say`` gets remarks about seeds, and about pods that were displaced.
    """
    asked = SweepRequest(**options)
    seeds, hold_placement = asked.seeds, asked.hold_placement
    varied = [parse_varied(text) for text in vary]
    _refuse_twice(varied)
    if not 0 < seeds <= _MOST_SEEDS:
        raise InvalidArgument(
            f"'{seeds}' is not a number of seeds", where=naming("seeds"), fix="a whole number, for example 20"
        )
    points = list(plan(varied, () if seeds == 1 else range(seeds)))
    # Loaded here and as late as possible: a worker on another machine has none of the files.
    tasks = (
        (point.values, point.seed, load_scenario(scenario, _variation(point, hold_placement=hold_placement)))
        for point in points
    )
    runs: list[RunResult] = []
    with carried_out(_run, tasks, engine=asked.engine, jobs=asked.jobs) as runs_done:
        for result in runs_done:
            runs.append(result)
            if progress is not None:
                progress(len(runs), len(points))
    place = {(point.values, point.seed): number for number, point in enumerate(points)}
    runs.sort(key=lambda run: place[run.values, run.seed])
    if seeds > 1 and _are_alike(runs):
        say(f"all {seeds} seeds gave the same results; one is enough")
    base = load_scenario(scenario)
    found_combinations = combinations(runs)
    if not hold_placement and any(combination.never_ran.most for combination in found_combinations):
        _say_displaced(varied, say)
    return Sweep(
        scenario=base.name,
        parameters=tuple(each.parameter.text for each in varied),
        runs=len(runs),
        combinations=found_combinations,
        assumptions=assumptions_of(base),
        placement_held=hold_placement,
    )


def _say_displaced(varied: Sequence[Varied], say: Callable[[str], None]) -> None:
    """Say which of the parameters can leave pods without a node."""
    withheld = takes_from_allocatable((each.parameter, value) for each in varied for value in each.values[:1])
    names = listed([text.rpartition("=")[0] for text in withheld])
    if names:
        what = f"pods that never ran: {names} also changes allocatable; "
        say(what + naming("hold_placement") + " keeps pods placed")


def _variation(point: Point, *, hold_placement: bool) -> Variation:
    return Variation(point.assignments, point.seed, holds_placement=hold_placement)


def _run(task: tuple[tuple[str, ...], int | None, Scenario]) -> RunResult:
    """Run a scenario and return what a sweep keeps of it. It is called in workers."""
    values, seed, scenario = task
    run = simulate(scenario)
    summary = run_summary(run)
    names = [row.workload for row in summary.workloads]
    first = next((entry for entry in run.entries if entry.kind in {Kind.EVICTED, Kind.OOM_KILLED}), None)
    return RunResult(
        values=values,
        seed=seed,
        workloads={row.workload: _result(row) for row in summary.workloads},
        oom_kills=summary.oom_kills,
        evictions=summary.evictions,
        first_us=None if first is None else first.time_us,
        first_workload=None if first is None or first.pod is None else workload_of(first.pod, names),
        first_by=None if first is None or first.by is None else first.by.value,
    )


def _result(row: WorkloadSummary) -> WorkloadResult:
    result = msgspec.convert(row, WorkloadResult, from_attributes=True)
    if row.cpu is None:
        return result
    return replace(result, mean_share=row.cpu.mean_share, least_share=row.cpu.least_share)


def _are_alike(runs: Sequence[RunResult]) -> bool:
    """Whether runs with the same values differ in nothing but their seeds."""
    results = {msgspec.json.encode(replace(run, seed=None)) for run in runs}
    return len(results) == len({run.values for run in runs})


def _refuse_twice(varied: Sequence[Varied]) -> None:
    seen: set[str] = set()
    for each in varied:
        if each.parameter.text in seen:
            raise InvalidArgument(
                f"{each.parameter.text} is varied twice", where=naming("vary"), fix="give all values at once"
            )
        seen.add(each.parameter.text)
