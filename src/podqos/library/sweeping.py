"""``sweep``: run a scenario with many values and seeds, here or on a cluster; finished runs can be kept in a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Self, Unpack

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import Kind
from podqos.errors import HostError, InputError, InvalidArgument
from podqos.library.engines.engines import PER_CORE, EngineKeywords, carried_out
from podqos.naming import naming
from podqos.reading.files import read_bytes
from podqos.reading.scenario_files import load_scenario
from podqos.sim.run import simulate
from podqos.sim.scenario.assumptions import assumptions_of
from podqos.sim.scenario.scenario import Scenario
from podqos.sim.summary import WorkloadSummary, run_summary, workload_of
from podqos.sim.sweep import Point, RunResult, Sweep, WorkloadResult, combinations, plan, run_key
from podqos.sim.variation import Variation, Varied, parse_varied, takes_from_allocatable
from podqos.wording import listed

_MOST_SEEDS = 100_000
# How a line of results begins, up to where an interruption cut it off: nothing else is to be touched.
_BEGINNING = b'{"key":"'
_KEY_CHARACTERS = 32
_TO_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)  # Windows would change line ends


class _Task(Struct, frozen=True):
    """A run, with everything a worker needs for it."""

    key: str
    point: Point
    scenario: Scenario


class SweepRequest(Struct, frozen=True, kw_only=True):
    """How often every combination is run, and where."""

    seeds: int = 1
    results: str | None = None
    hold_placement: bool = False
    engine: str = "processes"
    jobs: int = PER_CORE


class SweepKeywords(EngineKeywords, total=False):
    """``SweepRequest`` as keyword arguments."""

    seeds: int
    results: str | None
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

    ``vary`` holds texts such as ``phase=0s,5s`` (``podqos sweep --help`` lists the parameters). More than one of
    ``seeds`` means seeds 0 to N−1 instead of the scenario's own. ``results`` is a file that keeps finished runs, which
    are not run again. With ``hold_placement`` pods may request what the scenario's own kubelets leave them, so that a
    raised threshold does not win by displacing a pod. ``engine`` and ``jobs`` say where to run and how much in
    parallel. ``progress`` gets the number of finished runs and the total; ``say`` gets remarks about the file of
    results, and about pods that were displaced.
    """
    asked = SweepRequest(**options)
    seeds, results, hold_placement = asked.seeds, asked.results, asked.hold_placement
    varied = [parse_varied(text) for text in vary]
    _refuse_twice(varied)
    if not 0 < seeds <= _MOST_SEEDS:
        raise InvalidArgument(
            f"'{seeds}' is not a number of seeds", where=naming("seeds"), fix="a whole number, for example 20"
        )
    points = list(plan(varied, () if seeds == 1 else range(seeds)))
    with _Results(scenario, results, say, hold_placement=hold_placement) as found:
        try:
            with carried_out(_run, found.tasks(points), engine=asked.engine, jobs=asked.jobs) as runs_done:
                for result in runs_done:
                    found.keep(result)
                    if progress is not None:
                        progress(len(found), len(points))
        except (HostError, KeyboardInterrupt):
            if results is not None:
                say(f"{results} keeps the {len(found)} finished runs; the same command continues from there")
            raise
    runs = found.in_order()
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


def _run(task: _Task) -> RunResult:
    """Run a scenario and return what a sweep keeps of it. It is called in workers."""
    run = simulate(task.scenario)
    summary = run_summary(run)
    names = [row.workload for row in summary.workloads]
    first = next((entry for entry in run.entries if entry.kind in {Kind.EVICTED, Kind.OOM_KILLED}), None)
    return RunResult(
        key=task.key,
        values=task.point.values,
        seed=task.point.seed,
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


class _Results:
    """The results of all points: of earlier runs from a file, of new ones appended to it, whole lines only."""

    def __init__(
        self, scenario: str, path: str | None, say: Callable[[str], None], *, hold_placement: bool = False
    ) -> None:
        self._scenario = scenario
        self._hold_placement = hold_placement
        self._path = path
        self._kept = _kept(path, say)
        self._found: dict[str, RunResult] = {}
        self._order: list[tuple[str, Point]] = []
        self._file: int | None = None

    def __enter__(self) -> Self:
        if self._path is not None:
            try:
                self._file = os.open(self._path, _TO_APPEND, 0o666)
            except OSError as error:
                raise HostError(f"{self._path}: {error.strerror}") from error
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.close(self._file)

    def __len__(self) -> int:
        return len(self._found)

    def tasks(self, points: Sequence[Point]) -> Iterator[_Task]:
        """Yield what has not been run before."""
        planned: set[str] = set()
        # Loading is done here and as late as possible: a worker on another machine has none of the files.
        for point in points:
            variation = Variation(point.assignments, point.seed, holds_placement=self._hold_placement)
            scenario = load_scenario(self._scenario, variation)
            key = run_key(scenario)
            is_known = key in planned
            planned.add(key)
            self._order.append((key, point))
            if key in self._kept:
                self._found[key] = self._kept[key]
            elif not is_known:
                # What is written in two ways and means the same is run once.
                yield _Task(key, point, scenario)

    def keep(self, result: RunResult) -> None:
        """Take a result, and append one line to the file, in one write."""
        self._found[result.key] = result
        if self._file is not None:
            os.write(self._file, msgspec.json.encode(result) + b"\n")

    def in_order(self) -> list[RunResult]:
        """Return the results in the order of the plan, under the values as they are written now."""
        return [
            msgspec.structs.replace(self._found[key], values=point.values, seed=point.seed)
            for key, point in self._order
        ]


def _kept(path: str | None, say: Callable[[str], None]) -> dict[str, RunResult]:
    """Return the results of an earlier sweep; a line that an interruption has cut off is removed."""
    if path is None or not os.path.exists(path):
        return {}
    data = read_bytes(path)
    whole, newline, rest = data.rpartition(b"\n")
    decoder = msgspec.json.Decoder(RunResult)
    kept = {}
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            result = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _not_results(f"{path}:{number}", f": {error}") from error
        kept[result.key] = result
    if rest:
        if not _is_cut_off(rest, after_others=bool(kept)):
            raise _not_results(f"{path}:{len(kept) + 1}")
        say(f"{path}: its last line is incomplete and was dropped")
        os.truncate(path, len(whole) + len(newline))
    return kept


def _is_cut_off(rest: bytes, *, after_others: bool) -> bool:
    """Whether what has no end of line is the beginning of a result; a few characters alone could be anything."""
    key = rest[len(_BEGINNING) :][:_KEY_CHARACTERS]
    is_begun = rest[: len(_BEGINNING)] == _BEGINNING[: len(rest)] and all(each in b"0123456789abcdef" for each in key)
    return is_begun and (after_others or len(key) == _KEY_CHARACTERS) and not _is_another(rest)


def _is_another(line: bytes) -> bool:
    """Whether a line is whole, and not of a sweep."""
    try:
        msgspec.json.decode(line, type=RunResult)
    except msgspec.ValidationError:
        return True
    except msgspec.DecodeError:
        return False
    return False


def _are_alike(runs: Sequence[RunResult]) -> bool:
    """Whether runs with the same values differ in nothing but their seeds."""
    results = {msgspec.json.encode(msgspec.structs.replace(run, key="", seed=None)) for run in runs}
    return len(results) == len({run.values for run in runs})


def _not_results(where: str, why: str = "") -> InputError:
    fix = "give " + naming("results") + " a file written by a sweep, or a new one"
    return InputError(f"not a result of a sweep{why}", where=where, fix=fix)


def _refuse_twice(varied: Sequence[Varied]) -> None:
    seen: set[str] = set()
    for each in varied:
        if each.parameter.text in seen:
            raise InvalidArgument(
                f"{each.parameter.text} is varied twice", where=naming("vary"), fix="give all values at once"
            )
        seen.add(each.parameter.text)
