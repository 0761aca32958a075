"""Run a scenario in virtual time and tell what happened: who was killed by whom, when and why, and who came through.

SCENARIO is a file (see `podqos scenario`), or the name of one that comes with podqos, such as race. The same scenario
and seed always give the same run.

  podqos simulate race                     a timeline and a summary
  podqos simulate race --html race.html    one page to click through, which needs no network
  podqos simulate race -o jsonl            the journal: one line for everything seen, decided and done
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice

from msgspec.structs import replace

from podqos.agent.journal import encode
from podqos.cli.options import add_schema_option
from podqos.cli.output import print_csv, print_schema, print_value
from podqos.cli.terminal import add_colour_option, style_for
from podqos.errors import HostError, InvalidOption
from podqos.library.inputs.scenario_files import load_scenario
from podqos.library.written_files import write_file
from podqos.model.go_text import parse_duration_ns
from podqos.model.time_units import MICROSECOND_NS
from podqos.report.simulation.reading import deadliest_nodes, node_names, run_view
from podqos.report.simulation.timeline import CSV_COLUMNS, csv_rows, seconds, timeline
from podqos.report.simulation.view import RunView
from podqos.sim.node.recording import NodeRecord, Recorder
from podqos.sim.run import Progress, Run, simulate
from podqos.sim.scenario.scenario import Scenario
from podqos.sim.summary import run_summary
from podqos.sim.variation import Variation

_FEW_NODES = 12
"""So many nodes are recorded and shown without being asked for; of more, those with most kills."""
_LINES_AT_ONCE = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos simulate``."""
    parser.add_argument("scenario", nargs="?", metavar="SCENARIO", help="a scenario file, or the name of a shipped one")
    parser.add_argument("--seed", type=int, metavar="N", help="decides random demands (default: the scenario's)")
    parser.add_argument(
        "--until", metavar="DURATION", help="how long to run, such as 90s or 2h (default: the scenario's)"
    )
    parser.add_argument(
        "--node",
        metavar="NAME",
        action="append",
        help="show this node; may be repeated (default: where most is killed)",
    )
    parser.add_argument(
        "--check", action="store_true", help="hold the simulator to its invariants after every event (slow)"
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json", "jsonl", "csv"),
        default="text",
        help="text: timeline and summary; jsonl: journal; csv: a line per workload; json: everything (default: text)",
    )
    parser.add_argument("--html", metavar="FILE", help="write a page to look at the run in a browser")
    parser.add_argument("--svg", metavar="FILE", help="write a picture")
    parser.add_argument("--png", metavar="FILE", help="write a picture (needs the extra podqos[png])")
    add_schema_option(parser)
    add_colour_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Simulate, write, print, and return the exit code."""
    if arguments.schema:
        print_schema(RunView)
        return 0
    if arguments.scenario is None:
        raise InvalidOption("nothing to simulate", fix="name a scenario; `podqos scenario list` shows those at hand")
    viewer = None if arguments.html is None else built_viewer()
    renderer = None if arguments.png is None else _renderer()
    scenario = _scenario(arguments)
    names = _focus(scenario, arguments.node)
    wants_pictures = arguments.output in {"text", "json"} or any((arguments.html, arguments.svg, arguments.png))
    done, records = _run(scenario, names, check=arguments.check, record=wants_pictures)
    if wants_pictures:
        view = run_view(done, records)
        if viewer is not None:
            from podqos.report.simulation.html import page

            _write(arguments.html, page(viewer, view).encode())
        if arguments.svg is not None or renderer is not None:
            picture = _picture(view)
            if arguments.svg is not None:
                _write(arguments.svg, picture.encode())
            if renderer is not None:
                _write(arguments.png, renderer(picture))
        _print(done, view, arguments)
    else:
        _print(done, None, arguments)
    return 0


def _print(done: Run, view: RunView | None, arguments: argparse.Namespace) -> None:
    match arguments.output:
        case "jsonl":
            entries = iter(done.entries)
            while written := encode(islice(entries, _LINES_AT_ONCE)):
                sys.stdout.buffer.write(written)
        case "csv":
            print_csv(CSV_COLUMNS, csv_rows(view.summary if view is not None else run_summary(done)))
        case "json":
            assert view is not None
            print_value(view, "json")
        case _:
            assert view is not None
            print("\n".join(timeline(view, style_for(arguments.color))))


# ---- what to run -----------------------------------------------------------------------------------------------------


def _scenario(arguments: argparse.Namespace) -> Scenario:
    scenario = load_scenario(arguments.scenario, Variation(seed=arguments.seed))
    if arguments.until is None:
        return scenario
    try:
        until_us = parse_duration_ns(arguments.until) // MICROSECOND_NS
    except ValueError as error:
        raise InvalidOption(str(error), where="--until", fix="for example 90s or 2h") from error
    if until_us <= 0:
        raise InvalidOption(f"{arguments.until} is no time at all", where="--until", fix="for example 90s or 2h")
    return replace(scenario, duration_us=until_us)


def _focus(scenario: Scenario, given: list[str] | None) -> list[str] | None:
    """Return the nodes to show; None where the run has to tell."""
    if given is None:
        names = [name for name, _ in zip(node_names(scenario), range(_FEW_NODES + 1), strict=False)]
        return names if len(names) <= _FEW_NODES else None
    known = dict.fromkeys(node_names(scenario))
    for name in given:
        if name not in known:
            some = ", ".join(list(known)[:5])
            raise InvalidOption(f"there is no node {name!r}", where="--node", fix=f"such as {some}")
    return list(dict.fromkeys(given))


class _Focused(Recorder):
    """Records some nodes of many."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self._names = frozenset(names)

    def records(self, node: str) -> bool:
        return node in self._names


def _run(
    scenario: Scenario, names: list[str] | None, *, check: bool, record: bool
) -> tuple[Run, dict[str, NodeRecord]]:
    """Run a scenario; of many nodes it is found out by a first run which of them to record in a second."""
    with _progress("simulating", scenario.duration_us) as progress:
        if not record:
            return simulate(scenario, check=check, progress=progress), {}
        if names is None:
            names = deadliest_nodes(simulate(scenario, progress=progress).entries)[:_FEW_NODES]
            names = names or [next(node_names(scenario))]
        recorder = _Focused(names)
        done = simulate(scenario, recorder=recorder, check=check, progress=progress)
    return done, {name: recorder.nodes[name] for name in names if name in recorder.nodes}


@contextmanager
def _progress(what: str, end_us: int) -> Iterator[Progress]:
    """Say how far a long run is: at once where a person is watching, every few seconds in a log."""
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
        print(f"\r\x1b[K{text}" if terminal else text, end="" if terminal else "\n", file=sys.stderr, flush=True)
        shown = True

    try:
        yield tell
    finally:
        if shown and terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


# ---- files -----------------------------------------------------------------------------------------------------------


def _write(path: str, data: bytes) -> None:
    write_file(path, data)
    print(f"wrote {path} ({len(data):,} bytes)", file=sys.stderr)


def built_viewer() -> str:
    """Return the page that runs are written into; it is part of a wheel, and built in a source tree."""
    from importlib.resources import files

    try:
        return (files("podqos.report") / "viewer.html").read_text(encoding="utf-8")
    except FileNotFoundError as error:
        what = "the page is not built: run `make viewer` in the source tree (it needs npm), or install a released wheel"
        raise HostError(what) from error


def _picture(view: RunView) -> str:
    """Draw the first node with kills, or the first at all."""
    from podqos.report.simulation.svg import run_svg

    if not view.nodes:
        raise InvalidOption(
            "there is nothing to draw: none of the nodes was ever there", fix="choose others with --node"
        )
    killed = {kill.node for kill in view.kills}
    node = next((node for node in view.nodes if node.name in killed), view.nodes[0])
    return run_svg(view, node)


def _renderer() -> Callable[[str], bytes]:
    try:
        from resvg_py import svg_to_bytes
    except ImportError as error:
        fix = "pip install 'podqos[png]', or use --svg"
        raise InvalidOption("pictures as PNG need the package resvg-py", where="--png", fix=fix) from error
    # Twice the size: slides are large.
    return lambda picture: bytes(svg_to_bytes(svg_string=picture, zoom=2))
