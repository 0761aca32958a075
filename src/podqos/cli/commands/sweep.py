"""Run a scenario under many values and seeds, and say how every workload fares under each.

  podqos sweep race --vary kubelet.evictionHard.memory.available=100Mi,1Gi,8Gi --vary phase=0s,2s,4s,6s,8s

Parameters are NAME[@WORKLOAD[:CONTAINER]]=VALUE,VALUE,…:
  growth@WORKLOAD     how much its memory grows, as a multiple of what the scenario says
  limits.memory@WORKLOAD, requests.cpu@WORKLOAD:CONTAINER, replicas@WORKLOAD, priority@WORKLOAD
  kubelet.FIELD       any field of the KubeletConfiguration, on all nodes: kubelet.evictionHard.memory.available
  phase               when the eviction loop looks first
  policy              how pods are ranked for eviction: kubelet, qos-tiers, qos-usage
  spec.PATH           any other line of the scenario file: spec.nodes[0].capacity.memory

With --results every finished run is kept; a sweep that was interrupted goes on where it was.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Self

import msgspec
from msgspec import Struct

from podqos.cli.options import add_schema_option
from podqos.cli.output import print_csv, print_schema, print_value
from podqos.cli.progress import Progress
from podqos.cli.terminal import add_colour_option, style_for
from podqos.errors import HostError, InputError, InvalidOption
from podqos.library.engines.engines import carry_out
from podqos.library.inputs.scenario_files import load_scenario
from podqos.report.simulation.sweep import CSV_COLUMNS, csv_rows, table
from podqos.sim.scenario.scenario import Scenario
from podqos.sim.sweep import Point, RunResult, Sweep, combinations, plan, run_key
from podqos.sim.variation import Variation, Varied, parse_varied

_MOST_SEEDS = 100_000


class Task(Struct, frozen=True):
    """A run, with everything a worker needs for it."""

    key: str
    point: Point
    scenario: Scenario


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos sweep``."""
    parser.add_argument(
        "scenario", nargs="?", metavar="SCENARIO", help="a scenario file, or the name of one of podqos'"
    )
    parser.add_argument(
        "--vary", metavar="PARAMETER=VALUES", action="append", default=[], help="see above; may be repeated"
    )
    parser.add_argument("--seeds", metavar="N", default="1", help="runs under seeds 0 to N-1 each (default: 1)")
    parser.add_argument(
        "--results", metavar="FILE", help="where to keep finished runs, one JSON line each; they are not run again"
    )
    parser.add_argument(
        "--engine",
        default="processes",
        metavar="ENGINE",
        help="where to run: processes (of this machine), dask=HOST:PORT or ray=HOST:PORT (default: processes)",
    )
    parser.add_argument("--jobs", metavar="N", type=int, default=-1, help="runs at a time here (default: one per core)")
    parser.add_argument(
        "-o", "--output", choices=("table", "json", "yaml", "csv"), default="table", help="(default: table)"
    )
    add_schema_option(parser)
    add_colour_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Sweep, print, and return the exit code."""
    if arguments.schema:
        print_schema(Sweep)
        return 0
    if arguments.scenario is None:
        raise InvalidOption(
            "nothing to sweep", fix="name a scenario, for example: podqos sweep race --vary phase=0s,5s"
        )
    varied = [parse_varied(text) for text in arguments.vary]
    _refuse_twice(varied)
    points = list(plan(varied, _seeds(arguments.seeds)))
    results = _results(arguments, points)
    report = Sweep(
        scenario=load_scenario(arguments.scenario).name,
        parameters=tuple(each.parameter.text for each in varied),
        runs=len(results),
        combinations=combinations(results),
    )
    if arguments.output == "table":
        print("\n".join(table(report, style_for(arguments.color))))
    elif arguments.output == "csv":
        print_csv((*report.parameters, *CSV_COLUMNS), csv_rows(report))
    else:
        print_value(report, arguments.output)
    return 0


def run_task(task: Task) -> RunResult:
    """Run a scenario and keep what a sweep needs of it. It is called in workers."""
    from podqos.library.engines.sweep_worker import result_of

    return result_of(task.scenario, task.key, task.point)


def _results(arguments: argparse.Namespace, points: Sequence[Point]) -> list[RunResult]:
    """Return the results of all points, in the order of the plan; run what has not been run before."""
    kept = _kept(arguments.results)
    found: dict[str, RunResult] = {}
    order: list[str] = []

    def tasks() -> Iterator[Task]:
        # Loading is done here and as late as possible: a worker on another machine has none of the files.
        for point in points:
            scenario = load_scenario(arguments.scenario, Variation(point.assignments, point.seed))
            key = run_key(scenario)
            order.append(key)
            if key in kept:
                found[key] = _of_point(kept[key], point)
            else:
                yield Task(key, point, scenario)

    with Progress("runs", len(points)) as progress, _Keeper(arguments.results) as keeper:
        for result in carry_out(run_task, tasks(), engine=arguments.engine, jobs=arguments.jobs):
            found[result.key] = result
            keeper.keep(result)
            progress.at(len(found))
    return [found[key] for key in order]


def _of_point(result: RunResult, point: Point) -> RunResult:
    """Return a kept result under the values as they are written now."""
    return msgspec.structs.replace(result, values=point.values, seed=point.seed)


class _Keeper:
    """Appends results to a file, whole lines only."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._file: int | None = None

    def __enter__(self) -> Self:
        if self._path is not None:
            try:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            except OSError as error:
                raise HostError(f"{self._path}: {error.strerror}") from error
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.close(self._file)

    def keep(self, result: RunResult) -> None:
        """Append one line, in one write."""
        if self._file is not None:
            os.write(self._file, msgspec.json.encode(result) + b"\n")


def _kept(path: str | None) -> dict[str, RunResult]:
    """Return the results of an earlier sweep; a line that an interruption has cut off is removed."""
    if path is None or not os.path.exists(path):
        return {}
    with open(path, "rb") as file:
        data = file.read()
    whole, newline, rest = data.rpartition(b"\n")
    if rest:
        print(f"{path}: its last line is cut off and left out", file=sys.stderr)
        os.truncate(path, len(whole) + len(newline))
    decoder = msgspec.json.Decoder(RunResult)
    kept = {}
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            result = decoder.decode(line)
        except msgspec.DecodeError as error:
            fix = "give --results a file that a sweep has written, or a new one"
            raise InputError(f"not a result of a sweep: {error}", where=f"{path}:{number}", fix=fix) from error
        kept[result.key] = result
    return kept


def _seeds(text: str) -> tuple[int, ...]:
    if not text.isdecimal() or not 0 < int(text) <= _MOST_SEEDS:
        raise InvalidOption(f"{text!r} is no number of seeds", where="--seeds", fix="a whole number, for example 20")
    return () if text == "1" else tuple(range(int(text)))


def _refuse_twice(varied: Sequence[Varied]) -> None:
    seen: set[str] = set()
    for each in varied:
        if each.parameter.text in seen:
            raise InvalidOption(f"{each.parameter.text} is varied twice", where="--vary", fix="give all values at once")
        seen.add(each.parameter.text)
