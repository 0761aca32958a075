"""Rehearse a scenario on this machine's kernel, and compare the result with the simulation.

Real processes allocate memory as in the scenario, scaled down, in a node confined to a cgroup of its own. Both
journals are then shown side by side, and every difference is explained or flagged. Needs root and memory cgroups.
Cleans up after itself.

  podqos rehearse race --scale 1/32
"""

from __future__ import annotations

import argparse
import sys

from podqos.cli.options import add_scenario_argument, add_value_option, duration_option
from podqos.cli.output import add_output_options, emit
from podqos.cli.scenarios import scenario_argument
from podqos.cli.systems import require_linux
from podqos.errors import HostError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos rehearse``."""
    add_scenario_argument(parser)
    parser.add_argument(
        "--scale", metavar="1/N", default="1/32", help="scale the scenario's memory by this factor (default: 1/32)"
    )
    parser.add_argument(
        "--speed",
        metavar="N",
        default="1",
        help="change demand N times as fast; the kubelet's own timing stays the same (default: 1)",
    )
    about = "how long to run, for example 90s (default: the scenario's duration)"
    add_value_option(parser, "--until", duration_option, about, "DURATION")
    add_output_options(parser, ("table", "json", "yaml"), "podqos.runs.comparison:Rehearsal")


def run(arguments: argparse.Namespace) -> int:
    """Rehearse, compare, print, and return the exit code: 1 where a difference is not explained."""
    require_linux("rehearse")
    scenario = scenario_argument(arguments.scenario, "rehearse")
    try:
        from podqos.rehearsal import rehearse
        from podqos.runs.comparison import table
    except ModuleNotFoundError as error:
        raise HostError(f"a rehearsal needs {error.name}: in a clone of podqos, pip install '.[node]'") from error
    done = rehearse(
        scenario,
        scale=arguments.scale,
        speed=arguments.speed,
        until_us=arguments.until,
        say=lambda text: print(f"podqos rehearse: {text}", file=sys.stderr, flush=True),
    )
    emit(done.report, arguments, table)
    return 1 if done.report.flagged else 0
