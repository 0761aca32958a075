"""Compare the guard's decisions with what the kernel and the kubelet did: which pod it would have evicted.

The guard's journal records what it saw of both. Kernel or kubelet logs, files with pods and events, or a cluster add
what happened while the guard was not running, or where it has no permission to read the kernel log.

  podqos guard report
  journalctl -k -o short-iso-precise | podqos guard report --kernel-log -
  podqos guard report --journal worker-1.jsonl --journal worker-2.jsonl --snapshot cluster.json.gz
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path

from podqos.cli import options
from podqos.cli.cluster import add_cluster_options, profile_of
from podqos.cli.guard.run_options import add_state_option
from podqos.cli.main import EXIT_OK
from podqos.cli.output import add_output_options, emit
from podqos.errors import InvalidOption

SUMMARY = "compare its decisions with what the kernel and the kubelet did"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos guard report``."""
    add_state_option(parser)
    options.add_list_option(parser, "--journal", "FILE|DIR", "a journal to read instead of the one in --state")
    about = "a kernel or kubelet log in any form that `podqos autopsy` reads; - for standard input"
    options.add_list_option(parser, "--kernel-log", "FILE|-", about)
    about = "pods, nodes and events from `kubectl get -A -o yaml`"
    parser.add_argument(
        "-f", "--filename", metavar="FILE|DIR", action="append", default=[], help=f"{about}; may be repeated"
    )
    parser.add_argument("-n", "--namespace", metavar="NAME", help="only deaths in this namespace of the cluster")
    add_cluster_options(parser)
    options.add_version_option(parser)
    add_output_options(parser, ("text", "json", "yaml", "csv"), "podqos.questions.guard:GuardReport")


def run(arguments: argparse.Namespace) -> int:
    """Print the report."""
    from podqos.api import autopsy
    from podqos.cli.deaths import object_files, objects_of, scene_of
    from podqos.cli.problems import print_problems
    from podqos.objects.files import STDIN, Inputs
    from podqos.questions.guard import csv_rows, guard_report, report_lines
    from podqos.reading.autopsy_inputs import told_apart
    from podqos.reading.guard_journal import entries_of, known_names

    if [*arguments.kernel_log, *arguments.filename].count(STDIN) > 1:
        raise InvalidOption("standard input can be read only once", fix="give - once")
    arguments.files = arguments.filename
    found, logs = told_apart(arguments.kernel_log)
    cluster, of_nodes = scene_of(arguments)
    objects = objects_of(object_files(arguments, Inputs(found)), cluster)
    errors = 0 if objects is None else print_problems(objects.problems)
    told = autopsy([*logs, *of_nodes], objects=objects, cluster=cluster, profile=profile_of(arguments))
    journals = [Path(each) for each in arguments.journal] or [Path(arguments.state)]
    assumptions = () if cluster is None else cluster.assumptions
    now_us = time.time_ns() // 1000
    report = guard_report(
        [partial(entries_of, journal) for journal in journals],
        told,
        known_names(Path(arguments.state)),
        now_us=now_us,
        boot_us=now_us - time.monotonic_ns() // 1000,
        assumptions=assumptions,
    )
    emit(report, arguments, report_lines, csv_rows)
    return 2 if errors else EXIT_OK
