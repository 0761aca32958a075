"""Run a scenario with many values and seeds, and compare how each workload fares.

  podqos sweep race --vary kubelet.evictionHard.memory.available=100Mi,1Gi,8Gi --vary phase=0s,2s,4s,6s,8s

Parameters are NAME[@WORKLOAD[:CONTAINER]]=VALUE,VALUE,…:
  growth@WORKLOAD     how much its memory grows, as a multiple of the scenario's growth
  memory@WORKLOAD     private memory on top of the scenario's, such as 1Gi per hour
  nodeLost@NODE       when a node is lost
  limits.memory@WORKLOAD, requests.cpu@WORKLOAD:CONTAINER, replicas@WORKLOAD, priority@WORKLOAD
  kubelet.FIELD       any field of the KubeletConfiguration, on all nodes: kubelet.evictionHard.memory.available
  phase               time of the first eviction check
  policy              how pods are ranked for eviction: kubelet, qos-tiers, qos-usage
  spec.PATH           any other field of the scenario file: spec.nodes[0].capacity.memory

--results keeps every finished run. After Ctrl-C, or if a cluster fails, run the same command again to continue.
"""

from __future__ import annotations

import argparse
import sys

from podqos.cli.options import add_engine_options, add_hold_placement_option, add_list_option, add_scenario_argument
from podqos.cli.output import add_output_options, emit
from podqos.cli.progress import progress_line
from podqos.cli.scenarios import scenario_argument
from podqos.cli.spelling import spelled
from podqos.errors import InvalidArgument
from podqos.library.sweeping import sweep
from podqos.report.simulation.sweep import csv_table, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos sweep``."""
    add_scenario_argument(parser)
    add_list_option(parser, "--vary", "PARAMETER=VALUES", "the values to try, as described above")
    parser.add_argument(
        "--seeds", metavar="N", default="1", help="run every combination with seeds 0 to N-1 (default: 1)"
    )
    parser.add_argument(
        "--results",
        metavar="FILE",
        help="keep finished runs in this file (JSON lines), so that they are not run again",
    )
    add_hold_placement_option(parser)
    add_engine_options(parser, "processes", "where to run")
    add_output_options(parser, ("table", "json", "yaml", "csv"), "podqos.sim.sweep:Sweep")


def run(arguments: argparse.Namespace) -> int:
    """Sweep, print, and return the exit code."""
    # Said once here; all runs are read from the same files.
    scenario_argument(arguments.scenario, "sweep")
    if not arguments.seeds.isdecimal():
        what = f"{arguments.seeds!r} is not a number of seeds"
        raise InvalidArgument(what, where="--seeds", fix="a whole number, for example 20")
    found = sweep(
        arguments.scenario,
        arguments.vary,
        seeds=int(arguments.seeds),
        results=arguments.results,
        hold_placement=arguments.hold_placement,
        engine=arguments.engine,
        jobs=arguments.jobs,
        progress=progress_line("run"),
        say=lambda text: print(spelled(text), file=sys.stderr),
    )
    emit(found, arguments, table, csv_table)
    return 0
