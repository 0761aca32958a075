"""Forecast the race between the kubelet and the kernel as a container grows: which acts first, and which pod dies.

The kubelet checks every ten seconds, and growth may start at any point of that interval, so the answer is a
probability. The kernel reclaims page cache and swaps before it kills, as in `podqos simulate`. The answer also
includes the lowest threshold at which the kubelet acts first as often as --win asks for, and an alternative if that
threshold is impractical.

Pods and their usage come from -f MANIFESTS --usage FILE, --stats FILE --pods FILE, or --snapshot FILE, as for `podqos
rank`.
"""

from __future__ import annotations

import argparse

from podqos.cli import options
from podqos.cli.output import add_output_options, emit, pod_names
from podqos.cli.snapshot_options import add_snapshot_options, state_of
from podqos.errors import InvalidOption
from podqos.questions.forecast import csv_table, curve_svg, forecast, table, victims
from podqos.reading.written_files import write_file

_DEFAULT_RATES = ("16Mi/s", "128Mi/s", "1Gi/s")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos forecast``."""
    add_snapshot_options(parser)
    about = (
        "what grows: a pod, a workload with all its pods, or system: everything outside pods; leave out the container "
    )
    about += "if the pod has only one; =RATE: at this rate, not at --rate; may be repeated, then all grow at once"
    parser.add_argument("--growing", metavar="POD[:CONTAINER][=RATE]", action="append", help=about)
    about = f"growth rate, such as 128Mi/s, 2Gi/h or 8Gi/2s; may be repeated (default: {', '.join(_DEFAULT_RATES)})"
    parser.add_argument("--rate", metavar="QUANTITY/s", action="append", help=about)
    about = "how often the kubelet should act first"
    options.add_value_option(parser, "--win", options.share_option, about, "PERCENT", default="99")
    options.add_policy_option(parser)
    options.add_cgroup_option(parser)
    parser.add_argument("--svg", metavar="FILE", help="also draw the first container's curve into this file")
    formats = ("table", "json", "yaml", "csv", "name")
    add_output_options(parser, formats, "podqos.questions.forecast:ForecastReport", "csv: one line per outcome")


def run(arguments: argparse.Namespace) -> int:
    """Forecast, print, and return the exit code."""
    growing = options.growing_option(arguments.growing or [])
    if arguments.rate and growing and None not in growing.values():
        raise InvalidOption("nothing grows by it", where="--rate", fix="leave it out: each --growing has its own rate")
    rates = [options.rate_option(text, "--rate") for text in arguments.rate or _DEFAULT_RATES]
    state, errors = state_of(arguments)
    asked = {"wanted": arguments.win, "policy": arguments.policy, "cgroup_version": arguments.cgroup}
    report = forecast(state, growing=growing, rates=rates, **asked)
    if arguments.svg is not None:
        write_file(arguments.svg, curve_svg(report).encode())
    emit(report, arguments, table, csv_table, lambda report: pod_names(victims(report)))
    return 2 if errors else 0
