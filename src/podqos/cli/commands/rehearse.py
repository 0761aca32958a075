"""Rehearse a scenario on this machine's kernel, and hold what happens against what the simulation predicts.

Real processes allocate as the scenario's demand says, in a node that is confined to a cgroup of its own: the scenario's
memory in small. Both journals are then shown side by side, and every difference is explained or flagged. Needs root and
memory cgroups; nothing stays behind.

  podqos rehearse race --scale 1/32
"""

from __future__ import annotations

import argparse
import os
import sys
from fractions import Fraction

from msgspec.structs import replace

from podqos.cli.options import add_schema_option
from podqos.cli.output import print_schema, print_value
from podqos.cli.terminal import add_colour_option, style_for
from podqos.errors import HostError, InputError, InvalidOption
from podqos.library.inputs.scenario_files import load_scenario
from podqos.library.written_files import write_file
from podqos.report.simulation.rehearsal import table
from podqos.survival.comparison import Rehearsal as RehearsalValue

_MEMORY_SHARE = Fraction(3, 4)
_MARGIN_SHARE = Fraction(1, 256)
"""Of the node's memory: what the kernel's batches and page tables make uncertain."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos rehearse``."""
    parser.add_argument("scenario", nargs="?", metavar="SCENARIO", help="a scenario file, or the name of a shipped one")
    parser.add_argument(
        "--scale", metavar="1/N", default="1/32", help="how much of the scenario's memory to use (default: 1/32)"
    )
    parser.add_argument(
        "--speed",
        metavar="N",
        default="1",
        help="let demands change N times as fast; the kubelet's own times stay as they are (default: 1)",
    )
    parser.add_argument(
        "--until", metavar="DURATION", help="how long to run, such as 90s (default: the scenario's time)"
    )
    parser.add_argument(
        "--fast-path",
        action="store_true",
        help="let the kernel wake the node, as `podqos node` does (default: look every ten seconds, as a kubelet)",
    )
    parser.add_argument("--journal", metavar="FILE", help="also write the real journal into this file")
    parser.add_argument("-o", "--output", choices=("table", "json", "yaml"), default="table", help="(default: table)")
    add_schema_option(parser)
    add_colour_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Rehearse, compare, print, and return the exit code: 1 where a difference is not explained."""
    if arguments.schema:
        print_schema(RehearsalValue)
        return 0
    if arguments.scenario is None:
        raise InvalidOption("nothing to rehearse", fix="name a scenario, for example: podqos rehearse race")
    scale, speed = _scale(arguments.scale), _speed(arguments.speed)
    from podqos.agent.journal import encode
    from podqos.host.linux.capabilities import open_cgroups
    from podqos.sim.run import simulate
    from podqos.sim.scaling import Scale, scaled
    from podqos.survival.comparison import Tolerance, compare

    try:
        from podqos.library.rehearsal import Rehearsal, on_this_machine, unrehearsable
    except ModuleNotFoundError as error:
        raise HostError(f"a rehearsal needs {error.name}: pip install 'podqos[node]'") from error
    scenario = load_scenario(arguments.scenario)
    left_out = unrehearsable(scenario)
    cores = Fraction(1000 * (os.cpu_count() or 1), scenario.nodes[0].spec.cpu_milli)
    small = scaled(scenario, Scale(scale, min(Fraction(1), cores), 1 / speed))
    if arguments.until is not None:
        small = replace(small, duration_us=_until_us(arguments.until))
    memory_bytes = small.nodes[0].spec.memory_bytes
    _refuse_too_large(memory_bytes)
    small = on_this_machine(small, open_cgroups("/podqos-rehearsal").version)
    predicted = simulate(small).entries
    real = Rehearsal(small, _say, fast_path=arguments.fast_path).run()
    if arguments.journal is not None:
        write_file(arguments.journal, encode(real.entries))
    tolerance = Tolerance(margin_bytes=int(memory_bytes * _MARGIN_SHARE), fast_path=arguments.fast_path)
    found = compare(predicted, real.entries, tolerance)
    report = RehearsalValue(
        scenario=scenario.name,
        scale=arguments.scale,
        same_victims=found.same_victims,
        same_order=found.same_order,
        flagged=len(found.flagged),
        victims=found.victims,
        left_out=tuple(left_out),
        notes=real.notes,
    )
    if arguments.output == "table":
        print("\n".join(table(report, style_for(arguments.color))))
    else:
        print_value(report, arguments.output)
    return 1 if report.flagged else 0


def _say(text: str) -> None:
    print(f"podqos rehearse: {text}", file=sys.stderr, flush=True)


def _scale(text: str) -> Fraction:
    try:
        scale = Fraction(text)
    except (ValueError, ZeroDivisionError):
        scale = Fraction(0)
    if not 0 < scale <= 1:
        raise InvalidOption(f"{text!r} is no part of one", where="--scale", fix="for example 1/32")
    return scale


def _speed(text: str) -> Fraction:
    try:
        speed = Fraction(text)
    except (ValueError, ZeroDivisionError):
        speed = Fraction(0)
    if speed <= 0:
        raise InvalidOption(f"{text!r} is no speed", where="--speed", fix="for example 10")
    return speed


def _until_us(text: str) -> int:
    from podqos.sim.scenario_format.shape_text import parse_duration_us

    try:
        until_us = parse_duration_us(text)
    except InputError as error:
        raise InvalidOption(error.what, where="--until", fix=error.fix) from error
    if until_us <= 0:
        raise InvalidOption(f"{text} is no time at all", where="--until", fix="for example 90s")
    return until_us


def _refuse_too_large(memory_bytes: int) -> None:
    from podqos.host.linux.procfs import Procfs

    there = Procfs().machine_memory().available_bytes
    if memory_bytes > there * _MEMORY_SHARE:
        what = f"the rehearsal takes {memory_bytes >> 20} MiB, and {there >> 20} MiB are available"
        raise HostError(f"{what}: choose a smaller --scale")
