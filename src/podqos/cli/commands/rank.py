"""Rank the pods of a node twice: in the kubelet's eviction order and in the kernel's OOM kill order.

Every rank has its numbers and the reason it precedes the next one. Below: what saves the first, and disagreements.

Pods and their usage come from one of:
  NODE                       a node of the live cluster, or of a --snapshot
  -f MANIFESTS --usage FILE  manifests, and a table of their pods' usage
  --stats FILE --pods FILE   the kubelet's own /stats/summary and /pods

A usage table is CSV or YAML with the columns pod, container, memory, anon, inactiveFile, swap, pageTables, processes,
disk, inodes. Without one, pods are assumed to use what they request.
"""

from __future__ import annotations

import argparse
from functools import partial

from podqos.cli import options
from podqos.cli.cluster import node_argument
from podqos.cli.output import add_output_options, emit
from podqos.cli.snapshot_options import add_snapshot_options, state_of
from podqos.eviction.signals import Signal
from podqos.questions.rank import csv_table, names, rank, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos rank``."""
    add_snapshot_options(parser)
    options.add_choice_option(parser, "--signal", Signal, "the resource that runs short", Signal.MEMORY)
    ways = "kubelet (usage over request, priority, usage - request), qos-tiers, or qos-usage (up to 1.8)"
    options.add_policy_option(parser, f"how the kubelet ranks pods: {ways}")
    parser.add_argument("--soft", action="store_true", help="a soft threshold was crossed (default: a hard one)")
    options.add_layout_option(parser)
    options.add_cgroup_option(parser)
    about = "show the first N of each order (default: 10 rows in the table, else all)"
    options.add_value_option(parser, "--top", options.count_option, about, "N")
    about = "one line per pod, or per workload with the first and last rank of its pods (table, csv, name)"
    parser.add_argument("--by", choices=("pod", "workload"), default="pod", help=f"{about} (default: pod)")
    about = "all places with a row for every pod, what was tried in vain, all pairs, and the node's own processes"
    parser.add_argument("-v", "--verbose", action="store_true", help=about)
    about = "table: both kill orders and where they disagree; csv: one line per pod; json, yaml: everything"
    formats = ("table", "json", "yaml", "csv", "name")
    add_output_options(parser, formats, "podqos.questions.rank:RankReport", about)


def run(arguments: argparse.Namespace) -> int:
    """Rank, print, and return the exit code."""
    node_argument(arguments)
    state, errors = state_of(arguments)
    asked = {name: getattr(arguments, name) for name in ("signal", "policy", "layout")}
    report = rank(state, hard=not arguments.soft, cgroup_version=arguments.cgroup, **asked)
    if arguments.output in {"json", "yaml"}:
        report = report.first(arguments.top)
    shown = {"by": arguments.by, "top": arguments.top}
    lines = partial(table, **shown, verbose=arguments.verbose)
    emit(report, arguments, lines, partial(csv_table, **shown), partial(names, **shown))
    return 2 if errors else 0
