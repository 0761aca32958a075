"""A scenario under many values and seeds: the plan of all runs, what is kept of each, and the statistics over all.

Runs are independent, so they can execute anywhere and in any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import product

from msgspec import Struct

from podqos.agent.journal import Entry, Kind, is_kill
from podqos.amounts import listed, percent, rounded
from podqos.errors import InvalidArgument
from podqos.model.assumption import Assumption
from podqos.model.listing import Listing
from podqos.model.time_units import SECOND_US
from podqos.naming import naming
from podqos.runs.view import share_words
from podqos.sim.run import simulate
from podqos.sim.scenario.assumptions import assumptions_of
from podqos.sim.scenario.replicas import workload_of
from podqos.sim.scenario.scenario import Scenario
from podqos.sim.summary import RunSummary, WorkloadSummary, run_summary
from podqos.sim.variation import Assignment, Variation, Varied, parse_assignment, parse_varied, takes_from_allocatable
from podqos.text.style import Style, columns
from podqos.text.tables import Table

_MOST_SEEDS = 100_000
_BAR = 20
_PODS_SHOWN = 3


class RunResult(Struct, frozen=True):
    """What is kept of a run."""

    values: tuple[str, ...]
    """In the order of the parameters."""
    seed: int | None
    summary: RunSummary
    first_workload: str | None = None
    """Whose pod was the first to be killed or evicted."""
    first_by: str | None = None


class Distribution(Struct, frozen=True, gc=False, rename="camel"):
    """How a figure is distributed over runs."""

    least: float
    median: float
    p95: float
    most: float
    mean: float


class WorkloadSurvival(Struct, frozen=True, rename="camel"):
    """How a workload fares under one choice of values, over all seeds."""

    workload: str
    survived: float
    """The share of runs in which all its pods ran and none was interrupted."""
    oom_kills: Distribution
    evictions: Distribution
    never_ran: Distribution
    downtime_seconds: Distribution
    mean_share: Distribution = Distribution(1, 1, 1, 1, 1)
    """The share of the CPU they wanted that its slowed pods got: 1 where none was slowed."""
    least_share: Distribution = Distribution(1, 1, 1, 1, 1)
    """The least share of what it wanted that a container got at any time of a run."""


class Combination(Struct, frozen=True, rename="camel"):
    """One choice of values."""

    values: tuple[str, ...]
    """In the order of the parameters."""
    runs: int
    kernel_first: float
    """The share of runs in which the kernel acted first; in the rest the kubelet did, or neither."""
    kubelet_first: float
    first_victims: dict[str, float]
    """The share of runs in which a workload lost the first pod."""
    oom_kills: Distribution
    evictions: Distribution
    workloads: tuple[WorkloadSurvival, ...]
    never_ran: Distribution = Distribution(0, 0, 0, 0, 0)
    """Pods that could not be placed, or were rejected."""


class Sweep(Listing[Combination], Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos simulate --vary … -o json``. Fields are added, never renamed or removed."""

    scenario: str
    parameters: tuple[str, ...]
    runs: int
    combinations: tuple[Combination, ...]
    assumptions: tuple[Assumption, ...] = ()
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "Sweep"
    placement_held: bool = False
    """Whether what pods may request was the scenario's own, whatever settings of kubelets were varied."""

    def _listed(self) -> tuple[Combination, ...]:
        return self.combinations


Point = tuple[tuple[Assignment, ...], int | None]
"""One run: its values, and its seed; None is the scenario's own."""

CarriedOut = Callable[
    [Callable[[tuple[Point, Scenario]], RunResult], Iterable[tuple[Point, Scenario]]],
    AbstractContextManager[Iterator[RunResult]],
]
"""Who runs tasks, here or elsewhere, and gives their results in any order."""


def sweep(
    load: Callable[[Variation], Scenario],
    vary: Sequence[str],
    carried_out: CarriedOut,
    *,
    seeds: int = 1,
    hold_placement: bool = False,
    progress: Callable[[int, int], None] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Sweep:
    """Run a scenario under every combination of values, and return how each workload fares.

    ``vary`` holds texts such as ``phase=0s,5s``. More than one of ``seeds`` means seeds 0 to N−1 instead of the
    scenario's own. With ``hold_placement`` pods may request what the scenario's own kubelets leave them, so that a
    raised threshold does not win by displacing a pod. ``progress`` gets the number of finished runs and the total;
    ``say`` gets remarks about seeds, and about pods that were displaced.
    """
    varied = [parse_varied(text) for text in vary]
    for name, times in Counter(each.parameter.text for each in varied).items():
        if times > 1:
            raise InvalidArgument(f"{name} is varied twice", where=naming("vary"), fix="give all values at once")
    if not 0 < seeds <= _MOST_SEEDS:
        what = f"'{seeds}' is not a number of seeds"
        raise InvalidArgument(what, where=naming("seeds"), fix="a whole number, for example 20")
    points = list(plan(varied, () if seeds == 1 else range(seeds)))
    # Loaded here and as late as possible: a worker on another machine has none of the files.
    tasks = ((point, load(Variation(*point, holds_placement=hold_placement))) for point in points)
    runs: list[RunResult] = []
    with carried_out(_run, tasks) as runs_done:
        for result in runs_done:
            runs.append(result)
            if progress is not None:
                progress(len(runs), len(points))
    place = {(_values(assignments), seed): number for number, (assignments, seed) in enumerate(points)}
    runs.sort(key=lambda run: place[run.values, run.seed])
    found = combinations(runs)
    alone = [combinations([run]) for run in runs]
    if seeds > 1 and all(one == alone[number - number % seeds] for number, one in enumerate(alone)):
        say(f"all {seeds} seeds gave the same results; one is enough")
    if not hold_placement and any(combination.never_ran.most for combination in found):
        withheld = takes_from_allocatable((each.parameter, value) for each in varied for value in each.values[:1])
        names = listed([text.rpartition("=")[0] for text in withheld])
        if names:
            what = f"pods that never ran: {names} also changes allocatable; "
            say(what + naming("hold_placement") + " keeps pods placed")
    base = load(Variation())
    return Sweep(
        scenario=base.name,
        parameters=tuple(each.parameter.text for each in varied),
        runs=len(runs),
        combinations=found,
        assumptions=assumptions_of(base),
        placement_held=hold_placement,
    )


def displaced_words(entries: Iterable[Entry], what_if: Iterable[str]) -> str:
    """Return which pods no longer fit because a what-if lowers allocatable; empty if none."""
    withheld = takes_from_allocatable(map(parse_assignment, what_if))
    if not withheld:
        return ""
    kinds = Kind.PENDING, Kind.REJECTED
    pods = [*dict.fromkeys(entry.pod for entry in entries if entry.kind in kinds and entry.pod is not None)]
    if not pods:
        return ""
    more = [f"{len(pods) - _PODS_SHOWN} more"] if len(pods) > _PODS_SHOWN else []
    text = f"{listed(withheld)} changes allocatable: {listed([*pods[:_PODS_SHOWN], *more])} did not fit"
    return f"{text} ({naming('hold_placement')} keeps pods placed)"


def plan(varied: Sequence[Varied], seeds: Sequence[int] = ()) -> Iterator[Point]:
    """Yield every combination of values under every seed; without seeds, under the scenario's own."""
    for values in product(*(each.values for each in varied)):
        assignments = tuple((each.parameter, value) for each, value in zip(varied, values, strict=True))
        for seed in seeds or (None,):
            yield assignments, seed


def _values(assignments: Sequence[Assignment]) -> tuple[str, ...]:
    return tuple(value for _, value in assignments)


def _run(task: tuple[Point, Scenario]) -> RunResult:
    """Run a scenario and return what is kept of it. It is called in workers."""
    (assignments, seed), scenario = task
    run = simulate(scenario)
    summary = run_summary(run)
    first = next(filter(is_kill, run.entries), None)
    if first is None or first.pod is None or first.by is None:
        return RunResult(_values(assignments), seed, summary)
    workload = workload_of(first.pod, [row.workload for row in summary.workloads])
    return RunResult(_values(assignments), seed, summary, workload, first.by.value)


def combinations(results: Iterable[RunResult]) -> tuple[Combination, ...]:
    """Group the runs by values, in the order in which these first appear."""
    groups: dict[tuple[str, ...], list[RunResult]] = {}
    for result in results:
        groups.setdefault(result.values, []).append(result)
    return tuple(_combination(values, runs) for values, runs in groups.items())


def _combination(values: tuple[str, ...], runs: Sequence[RunResult]) -> Combination:
    fallen = Counter(run.first_workload for run in runs if run.first_workload is not None)
    most_first = sorted(fallen, key=lambda name: (-fallen[name], name))
    rows: dict[str, list[WorkloadSummary]] = {}
    for run in runs:
        for row in run.summary.workloads:
            rows.setdefault(row.workload, []).append(row)
    return Combination(
        values=values,
        runs=len(runs),
        kernel_first=sum(run.first_by == "kernel" for run in runs) / len(runs),
        kubelet_first=sum(run.first_by == "kubelet" for run in runs) / len(runs),
        first_victims={name: fallen[name] / len(runs) for name in most_first},
        oom_kills=distribution([run.summary.oom_kills for run in runs]),
        evictions=distribution([run.summary.evictions for run in runs]),
        workloads=tuple(_survival(name, of) for name, of in rows.items()),
        never_ran=distribution([run.summary.never_ran for run in runs]),
    )


def _survival(name: str, rows: Sequence[WorkloadSummary]) -> WorkloadSurvival:
    survived = sum(
        row.untouched + row.waited + row.throttled + row.refused == row.pods and not row.never_ran for row in rows
    )
    return WorkloadSurvival(
        name,
        survived / len(rows),
        oom_kills=distribution([row.oom_kills for row in rows]),
        evictions=distribution([row.evictions for row in rows]),
        never_ran=distribution([row.never_ran for row in rows]),
        downtime_seconds=distribution([row.downtime_us / SECOND_US for row in rows]),
        mean_share=distribution([1.0 if row.cpu is None else row.cpu.mean_share for row in rows]),
        least_share=distribution([1.0 if row.cpu is None else row.cpu.least_share for row in rows]),
    )


def distribution(figures: Sequence[float]) -> Distribution:
    """Return how figures are distributed; a percentile is the figure that this share does not exceed."""
    ordered = sorted(figures)

    def percentile(percent: int) -> float:
        return ordered[-(-len(ordered) * percent // 100) - 1]

    return Distribution(ordered[0], percentile(50), percentile(95), ordered[-1], sum(ordered) / len(ordered))


def table(report: Sweep, style: Style) -> list[str]:
    """Return who acts first and how each workload fares, for each combination of values."""
    lines = [style.strong("Who acts first, and the first victim")]
    has_unplaced = any(combination.never_ran.most for combination in report.combinations)
    unplaced = ("NEVER RAN",) if has_unplaced else ()
    headers = (*report.parameters, "RUNS", "KERNEL", "KUBELET", "KILLS", "EVICTIONS", *unplaced, "FIRST VICTIM")
    rows: list[tuple[str, ...]] = [
        (
            *each.values,
            str(each.runs),
            percent(each.kernel_first),
            percent(each.kubelet_first),
            _range(each.oom_kills),
            _range(each.evictions),
            *((_range(each.never_ran),) if has_unplaced else ()),
            ", ".join(f"{name} {percent(share)}" for name, share in each.first_victims.items()) or "none",
        )
        for each in report.combinations
    ]
    lines += columns(headers, rows, style, "  ")
    # Workloads that were affected at all, the worst first.
    worst: dict[str, float] = {}
    for combination in report.combinations:
        for found in combination.workloads:
            unharmed = min(found.survived, found.least_share.least)
            worst[found.workload] = min(worst.get(found.workload, 1.0), unharmed)
    for name in sorted(
        (name for name, unharmed in worst.items() if unharmed < 1), key=lambda name: (worst[name], name)
    ):
        own = [
            (combination.values, workload)
            for combination in report.combinations
            for workload in combination.workloads
            if workload.workload == name
        ]
        is_slowed = any(workload.least_share.least < 1 for _, workload in own)
        rows = [
            (
                *(*values, percent(workload.survived), "█" * round(workload.survived * _BAR) or "▏"),
                *map(_range, (workload.oom_kills, workload.evictions, workload.never_ran)),
                *map(rounded, (workload.downtime_seconds.median, workload.downtime_seconds.p95)),
                *map(share_words, (workload.mean_share.mean, workload.least_share.least) if is_slowed else ()),
            )
            for values, workload in own
        ]
        shares = ("CPU SHARE (MEAN)", "CPU SHARE (LEAST)") if is_slowed else ()
        figures = ("KILLS", "EVICTIONS", "NEVER RAN", "DOWN (MEDIAN)", "DOWN (P95)", *shares)
        lines += ["", style.strong(name), *columns((*report.parameters, "SURVIVES", "", *figures), rows, style, "  ")]
    return lines


_CSV_FIGURES = (
    ("oom_kills", "mean"),
    ("evictions", "mean"),
    ("never_ran", "mean"),
    ("downtime_seconds", "median"),
    ("downtime_seconds", "p95"),
    ("downtime_seconds", "most"),
    ("mean_share", "mean"),
    ("least_share", "least"),
)


def csv_table(report: Sweep) -> Table:
    """Return headings, and a row per combination of values and workload; the values come first."""
    headings = (*report.parameters, "runs", "workload", "survived", *map("_".join, _CSV_FIGURES))
    return headings, (
        (
            *(*combination.values, combination.runs, found.workload, found.survived),
            *(getattr(getattr(found, name), statistic) for name, statistic in _CSV_FIGURES),
        )
        for combination in report.combinations
        for found in combination.workloads
    )


def _range(figures: Distribution) -> str:
    return f"{figures.least:g}" if figures.least == figures.most else f"{figures.least:g}–{figures.most:g}"
