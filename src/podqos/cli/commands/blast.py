"""Show the blast radius of a leak in each pod: which other pods on its node die, how soon, and what kills them.

Each pod leaks in turn, slowly and fast, in a simulation of its node that runs until the leaking pod itself is
OOM-killed or evicted. The nodes are those of a scenario at its start, or one node with pods and usage as for `podqos
rank`. Usage above a limit is an error.

  podqos blast race
  podqos blast worker-1                a node of the live cluster
  podqos blast race --growing system   everything outside pods leaks, until every pod has died once
  podqos blast manifests/ --usage usage.csv --node-memory 64Gi --kubelet-config kubelet.yaml
"""

from __future__ import annotations

import argparse
from functools import partial

from podqos.api import blast
from podqos.cli import options
from podqos.cli.blast_source import source_of, usage_place
from podqos.cli.output import add_output_options, emit, pod_names
from podqos.cli.progress import progress_line
from podqos.cli.snapshot_options import add_snapshot_options
from podqos.errors import InputError
from podqos.questions.blast import csv_table, table
from podqos.sim.blast import ImpossibleUsage


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos blast``."""
    about = "a scenario file, the name of a built-in scenario, manifests, or a node of the live cluster"
    options.add_scenario_argument(parser, about, "SCENARIO|FILE|DIR|NODE")
    add_snapshot_options(parser, positional=False)
    options.add_value_option(parser, "--slow", options.rate_option, "slow leak rate", "QUANTITY/s", default="4Mi/s")
    options.add_value_option(parser, "--fast", options.rate_option, "fast leak rate", "QUANTITY/s", default="1Gi/s")
    about = "let only this pod leak; system: everything outside pods"
    parser.add_argument("--growing", metavar="POD", help=about)
    options.add_policy_option(parser)
    about = "list every pod that harms others, not only the worst"
    parser.add_argument("-v", "--verbose", action="store_true", help=about)
    about = "csv: one line per pod and rate"
    add_output_options(parser, ("table", "json", "yaml", "csv", "name"), "podqos.sim.blast:BlastRadius", about)


def run(arguments: argparse.Namespace) -> int:
    """Let every pod leak, print, and return the exit code."""
    source, errors = source_of(arguments)
    rates, asked = (arguments.slow, arguments.fast), {"policy": arguments.policy, "growing": arguments.growing}
    try:
        radius = blast(source, *rates, **asked, progress=progress_line("leak"))
    except ImpossibleUsage as error:
        raise InputError(error.what, where=usage_place(arguments, error.pod), fix=error.fix) from error
    harmful = pod_names(leak.pod for leak in radius.leaks if leak.others)
    emit(radius, arguments, partial(table, verbose=arguments.verbose), csv_table, lambda _: harmful)
    return 2 if errors else 0
