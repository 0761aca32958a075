"""Run a scenario in virtual time and show what happened: which pods were killed, by what, when and why.

SCENARIO is a file (see `podqos scenario`) or the name of a built-in scenario, such as race. The same scenario and seed
always give the same run.

  podqos simulate race                     a timeline and a summary
  podqos simulate race --html race.html    a self-contained page to explore
  podqos simulate race -o jsonl            the journal: one line for everything observed, decided and done

With --from cluster, the scenario is a cluster as it is now, whose pods keep using what they use. --what-if changes
this or any other scenario; --vary runs a scenario once with every combination of values, --seeds with many seeds, and
both compare how each workload fares:

  podqos simulate --from cluster --duration 1h --what-if nodeLost@worker-1=10m
  podqos simulate --from cluster --what-if 'memory@shop/db-0=64Mi per minute'
  podqos simulate race --vary kubelet.evictionHard.memory.available=100Mi,1Gi,8Gi --vary phase=0s,2s,4s,6s,8s

Parameters are NAME[@WORKLOAD[:CONTAINER]]=VALUE, with --vary VALUE,VALUE,…:
  growth@WORKLOAD     how much its memory grows, as a multiple of the scenario's growth
  memory@WORKLOAD     private memory on top of the scenario's, such as 1Gi per hour
  nodeLost@NODE       when a node is lost
  limits.memory@WORKLOAD, requests.cpu@WORKLOAD:CONTAINER, replicas@WORKLOAD, priority@WORKLOAD
  kubelet.FIELD       any field of the KubeletConfiguration, on all nodes: kubelet.evictionHard.memory.available
  phase               time of the first eviction check
  policy              how pods are ranked for eviction: kubelet, qos-tiers, qos-usage
  spec.PATH           any other field of the scenario file: spec.nodes[0].capacity.memory

--engine runs a large fleet faster and with less memory: nodes whose pods never need the scheduler (`nodes` or
`spread`, and no replacements) are simulated separately, on all cores or on a Dask cluster, with the same result to the
byte.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from msgspec.structs import replace

from podqos.agent.journal import Kind, encode
from podqos.answers.run_view import RunView
from podqos.cli.cluster import add_whole_cluster_options
from podqos.cli.options import (
    add_engine_options,
    add_hold_placement_option,
    add_list_option,
    add_plugins_option,
    add_scenario_argument,
    add_value_option,
    duration_option,
)
from podqos.cli.output import add_output_options, emit, print_csv, say_assumptions
from podqos.cli.progress import progress_line
from podqos.cli.scenarios import scenario_argument
from podqos.cli.spelling import spelled
from podqos.controls import own
from podqos.errors import InvalidOption
from podqos.library.parallel import PER_CORE
from podqos.library.simulation import Run, built_viewer, simulate
from podqos.library.sweeping import sweep
from podqos.model.time_units import MINUTE_US, SECOND_US
from podqos.reading.written_files import write_file
from podqos.report.simulation.sweep import csv_table as comparison_rows
from podqos.report.simulation.sweep import table as comparison
from podqos.report.simulation.timeline import csv_table, seconds, timeline
from podqos.report.simulation.together import together_words
from podqos.sim.run import Progress
from podqos.sim.scenario.scenario import Scenario
from podqos.sim.variation import Variation, parse_assignment, takes_from_allocatable
from podqos.wording import listed

_LINES_AT_ONCE = 10_000
_PODS_SHOWN = 3
_DISPLACED = (Kind.PENDING, Kind.REJECTED)
_CLEAR = own("\r\x1b[K")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos simulate``."""
    add_scenario_argument(parser)
    about = "simulate a cluster as it is now: the live cluster of the current context, or a --snapshot"
    parser.add_argument("--from", dest="origin", choices=("cluster",), help=about)
    add_whole_cluster_options(parser)
    add_list_option(
        parser,
        "--what-if",
        "PARAMETER=VALUE",
        "change a parameter, as described above, for this run",
    )
    add_list_option(parser, "--vary", "PARAMETER=VALUES", "run with each of these values, and compare the outcomes")
    about = "run every combination with seeds 0 to N-1, and compare the outcomes"
    parser.add_argument("--seeds", metavar="N", help=about)
    add_plugins_option(parser)
    add_hold_placement_option(parser)
    parser.add_argument("--seed", type=int, metavar="N", help="seed of random demand (default: the scenario's)")
    about = "how long to run, for example 90s or 2h (default: the scenario's duration; 1h for a cluster)"
    add_value_option(parser, "--until", duration_option, about, "DURATION")
    add_value_option(parser, "--duration", duration_option, "same as --until", "DURATION")
    parser.add_argument(
        "--node",
        metavar="NAME",
        action="append",
        help="show this node; may be repeated (default: the nodes with the most kills and evictions)",
    )
    parser.add_argument(
        "--check", action="store_true", help="check the simulator's invariants after every event (slow)"
    )
    about = "simulate independent nodes in parallel; with --vary, where runs are done"
    add_engine_options(parser, None, about)
    parser.add_argument("--html", metavar="FILE", help="save a page to explore the run in a browser")
    parser.add_argument("--svg", metavar="FILE", help="save the run as a picture")
    parser.add_argument("--png", metavar="FILE", help="save the run as a picture (needs the extra png)")
    about = "text: timeline and summary; jsonl: journal; csv: one line per workload; json: everything"
    add_output_options(parser, ("text", "json", "jsonl", "csv"), _printed, about)


def _printed(arguments: argparse.Namespace) -> str:
    """Return the type of what -o json prints."""
    return "podqos.sim.sweep:Sweep" if _has_many_runs(arguments) else "podqos.answers.run_view:RunView"


def _has_many_runs(arguments: argparse.Namespace) -> bool:
    return bool(arguments.vary) or arguments.seeds is not None


def run(arguments: argparse.Namespace) -> int:
    """Simulate, write, print, and return the exit code."""
    if _has_many_runs(arguments):
        return _compare(arguments)
    # Report what is missing for a picture before a long run, not after it.
    if arguments.html is not None:
        built_viewer()
    renderer = None if arguments.png is None else _renderer()
    scenario = _scenario(arguments)
    # The page and JSON have every node that is shown; a picture records what it draws when it is drawn.
    is_drawn = arguments.output == "json" or arguments.html is not None
    shown: list[str] = arguments.node or []
    with _progress("simulating", scenario.duration_us) as progress:
        done = simulate(
            scenario,
            nodes=arguments.node,
            record=is_drawn or (arguments.output == "text" and "words"),
            check=arguments.check,
            engine=_engine(arguments),
            jobs=arguments.jobs,
            progress=progress,
        )
        report = _report(done, arguments)
        picture = None if arguments.svg is None is arguments.png else done.svg(*shown)
    if done.together is not None:
        print(f"podqos: ran in one process: {together_words(done.together)}", file=sys.stderr)
    if arguments.html is not None:
        _write(arguments.html, done.html().encode())
    if arguments.svg is not None and picture is not None:
        _write(arguments.svg, picture.encode())
    if renderer is not None and picture is not None:
        _write(arguments.png, renderer(picture))
    _print(done, report, arguments)
    if not arguments.hold_placement:
        _say_displaced(done, arguments.what_if)
    return 0


def _compare(arguments: argparse.Namespace) -> int:
    """Run a scenario with many values and seeds, and print how each workload fares."""
    _refuse_for_one_run(arguments)
    # Said once here; all runs are read from the same files.
    scenario_argument(arguments.scenario, "simulate")
    seeds = "1" if arguments.seeds is None else arguments.seeds
    if not seeds.isdecimal():
        what = f"{seeds!r} is not a number of seeds"
        raise InvalidOption(what, where="--seeds", fix="a whole number, for example 20")
    found = sweep(
        arguments.scenario,
        arguments.vary,
        seeds=int(seeds),
        hold_placement=arguments.hold_placement,
        engine=arguments.engine or "processes",
        jobs=arguments.jobs,
        progress=progress_line("run"),
        say=lambda text: print(spelled(text), file=sys.stderr),
    )
    emit(found, arguments, comparison, comparison_rows)
    return 0


_OF_ONE_RUN = {
    **{
        option: (name, "`podqos scenario new --from-cluster` writes a scenario")
        for option, name in (("--from", "origin"), ("--snapshot", "snapshot"), ("--context", "context"))
    },
    "--what-if": ("what_if", "give --vary one value"),
    "--seed": ("seed", "--seeds N runs seeds 0 to N-1"),
    "--until": ("until", "give --vary spec.duration=…"),
    "--duration": ("duration", "give --vary spec.duration=…"),
    "--enable-admission-plugins": ("enable_admission_plugins", "write it into the scenario: enableAdmissionPlugins"),
    **{
        f"--{name}": (name, "run simulate without --vary for one run")
        for name in ("node", "check", "html", "svg", "png")
    },
}


def _refuse_for_one_run(arguments: argparse.Namespace) -> None:
    several = "--vary" if arguments.vary else "--seeds"
    for option, (name, fix) in _OF_ONE_RUN.items():
        given = getattr(arguments, name)
        if given is not None and given is not False and given not in ([], ()):
            raise InvalidOption(f"{option} and {several} cannot be combined", fix=fix)
    if arguments.output == "jsonl":
        what = f"the journal is that of one run, {several} makes many"
        raise InvalidOption(what, where="-o jsonl", fix="-o text, json or csv")


def _report(done: Run, arguments: argparse.Namespace) -> RunView | None:
    """Return what is printed, unless that is the journal or the summary."""
    match arguments.output:
        case "json":
            return done.report
        case "text":
            return done.words
        case _:
            return None


def _say_displaced(done: Run, what_if: Sequence[str]) -> None:
    """Print which pods no longer fit when a what-if lowers allocatable."""
    withheld = takes_from_allocatable(map(parse_assignment, what_if))
    if not withheld:
        return
    pods = [*dict.fromkeys(entry.pod for entry in done.journal if entry.kind in _DISPLACED and entry.pod is not None)]
    if pods:
        some = listed([*pods[:_PODS_SHOWN], *([f"{len(pods) - _PODS_SHOWN} more"] if len(pods) > _PODS_SHOWN else [])])
        text = f"podqos: {listed(withheld)} changes allocatable: {some} did not fit"
        print(f"{text} (--hold-placement keeps pods placed)", file=sys.stderr)


def _scenario(arguments: argparse.Namespace) -> Scenario:
    until_us: int | None = arguments.until or arguments.duration
    plugins = [plugin.value for plugin in arguments.enable_admission_plugins]
    variation = Variation(
        [*map(parse_assignment, arguments.what_if)],
        seed=arguments.seed,
        plugins=plugins,
        holds_placement=arguments.hold_placement,
    )
    if arguments.origin is not None:
        if plugins:
            what = "the cluster's pods were already admitted by its own plug-ins"
            raise InvalidOption(what, where="--enable-admission-plugins", fix="remove it")
        if arguments.scenario is not None:
            raise InvalidOption(f"two scenarios: {arguments.scenario} and a cluster", where="--from", fix="give one")
        from podqos.cli.from_cluster import scenario_now

        return scenario_now(arguments, until_us or 60 * MINUTE_US, variation)
    for option, value in (("--snapshot", arguments.snapshot), ("--context", arguments.context)):
        if value is not None:
            raise InvalidOption(f"{option} needs a cluster", where=option, fix="add --from cluster")
    scenario = scenario_argument(arguments.scenario, "simulate", variation)
    if until_us is None or until_us == scenario.duration_us:
        return scenario
    changes = (*scenario.changes, f"spec.duration={until_us / SECOND_US:g}s")
    return replace(scenario, duration_us=until_us, changes=changes)


def _engine(arguments: argparse.Namespace) -> str | None:
    """Return where to simulate nodes in parallel; --jobs alone means this machine."""
    if arguments.engine is None and arguments.jobs != PER_CORE:
        return "processes"
    engine: str | None = arguments.engine
    return engine


def _print(done: Run, report: RunView | None, arguments: argparse.Namespace) -> None:
    match arguments.output:
        case "jsonl":
            entries = iter(done.journal)
            while written := encode(islice(entries, _LINES_AT_ONCE)):
                sys.stdout.buffer.write(written)
            say_assumptions(done.assumptions)
        case "csv":
            print_csv(*csv_table(done.summary), has_header=not arguments.no_headers)
            say_assumptions(done.assumptions)
        case _:
            assert report is not None
            emit(report, arguments, timeline)


@contextmanager
def _progress(what: str, end_us: int) -> Iterator[Progress]:
    """Show the progress of a long run: soon on a terminal, every few seconds in a log."""
    terminal = sys.stderr.isatty()
    pause = 0.2 if terminal else 5.0
    due = time.monotonic() + (0.5 if terminal else pause)
    shown = False

    def tell(time_us: int, events: int) -> None:
        nonlocal due, shown
        if time.monotonic() < due:
            return
        due = time.monotonic() + pause
        text = f"{what}: {seconds(time_us, 1)} of {seconds(end_us, 1)} ({time_us * 100 // end_us} %), {events:,} events"
        print(_CLEAR + text if terminal else text, end="" if terminal else "\n", file=sys.stderr, flush=True)
        shown = True

    try:
        yield tell
    finally:
        if shown and terminal:
            print(_CLEAR, end="", file=sys.stderr, flush=True)


def _write(path: str, data: bytes) -> None:
    write_file(path, data)
    print(f"wrote {path} ({len(data):,} bytes)", file=sys.stderr)


def _renderer() -> Callable[[str], bytes]:
    try:
        from resvg_py import svg_to_bytes
    except ImportError as error:
        fix = "in a clone of podqos, pip install '.[png]'; or use --svg"
        raise InvalidOption("PNG output needs the package resvg-py", where="--png", fix=fix) from error
    # Twice the size: slides are large.
    return lambda picture: bytes(svg_to_bytes(svg_string=picture, zoom=2))
