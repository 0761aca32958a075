"""Explain OOM kills from the kernel's log: what was full, who was killed, whether the rule says so, who was next.

Logs are read as they are found: dmesg in all its forms, /dev/kmsg, syslog, journald (short, JSON, export), JSON lines
of cloud services, gzipped or not. With pods (-f, or a cluster) the cgroup of a victim is named by its pod.

  dmesg | podqos autopsy -
  podqos autopsy kern.log
  journalctl -k -o json | podqos autopsy - --snapshot cluster.json.gz
"""

from __future__ import annotations

import argparse

from podqos.cli import options
from podqos.cli.cluster import add_cluster_options, arguments_name_cluster, cluster_of, profile_of
from podqos.cli.inputs import print_problems, read_objects
from podqos.cli.output import add_output_options, emit
from podqos.errors import InvalidOption
from podqos.library.autopsy import autopsy
from podqos.library.cluster_part import Part
from podqos.library.inputs.files import NO_RENDERING, STDIN
from podqos.library.inputs.gathering import gather
from podqos.library.inputs.objects import Objects
from podqos.report.survival.autopsy import csv_rows, text
from podqos.survival.autopsy import MOST_SHOWN


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos autopsy``."""
    parser.add_argument("logs", nargs="*", metavar="FILE|-", help="kernel logs; - is standard input")
    about = "pods as `kubectl get pods -A -o yaml` prints them, with their uids"
    parser.add_argument(
        "-f", "--filename", metavar="FILE|DIR", action="append", default=[], help=f"{about}; may be repeated"
    )
    about = f"tasks shown of each ranking (default: {MOST_SHOWN})"
    parser.add_argument("--top", metavar="N", type=_count, default=MOST_SHOWN, help=about)
    about = "explain OOM kills as they happen, until Ctrl-C: by the kernel's log of this machine, or a log that grows"
    parser.add_argument("--live", action="store_true", help=about)
    options.add_kubelet_option(parser)
    about = "how fast memory was used up, also per m or h: which eviction threshold would have been in time"
    parser.add_argument("--growth", metavar="RATE", help=f"{about}, for example 128Mi/s")
    add_cluster_options(parser)
    options.add_version_option(parser)
    about = "jsonl: a value of -o json per OOM; what --live prints is text, jsonl or csv"
    add_output_options(parser, ("text", "json", "jsonl", "yaml", "csv"), "podqos.survival.autopsy:Autopsies", about)


def run(arguments: argparse.Namespace) -> int:
    """Examine, print, and return the exit code."""
    if arguments.live:
        from podqos.cli.live_autopsy import explain_live

        return explain_live(arguments, lambda: _pods(arguments))
    if not arguments.logs:
        raise InvalidOption("no kernel log given", fix="for example: dmesg | podqos autopsy -")
    if [*arguments.logs, *arguments.filename].count(STDIN) > 1:
        raise InvalidOption("standard input can be read once", fix="give one - only")
    objects = _pods(arguments)
    errors = 0 if objects is None else print_problems(objects.problems)
    growth = arguments.growth
    report = autopsy(
        arguments.logs,
        objects=objects,
        most_shown=arguments.top,
        kubelet=options.kubelet_option(arguments.kubelet_config),
        growth_bytes_per_second=None if growth is None else options.rate_option(growth, "--growth"),
        profile=profile_of(arguments),
    )
    emit(report, arguments, text, csv_rows)
    return 2 if errors else 0


def _pods(arguments: argparse.Namespace) -> Objects | None:
    """Return the pods of the files or of the cluster that the options name; None: they name none."""
    if arguments.filename:
        if arguments_name_cluster(arguments):
            raise InvalidOption("files and a cluster cannot be combined", fix="give one of them")
        return read_objects(gather(arguments.filename, NO_RENDERING))
    cluster = cluster_of(arguments, Part(usage=False, policies=False, workloads=False))
    return None if cluster is None else cluster.objects


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 8):
        raise InvalidOption(f"{text!r} is not a number of tasks", where="--top", fix="a whole number, for example 20")
    return int(text)
