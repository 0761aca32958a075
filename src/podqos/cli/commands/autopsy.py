"""Explain OOM kills from the kernel's log: what was full, who was killed, whether the rule says so, who was next.

Logs are read as they are found: dmesg in all its forms, /dev/kmsg, syslog, journald (short, JSON, export), JSON lines
of cloud services, gzipped or not. With pods (-f, or a cluster) the cgroup of a victim is named by its pod.

  dmesg | podqos autopsy -
  podqos autopsy kern.log
  journalctl -k -o json | podqos autopsy - --snapshot cluster.json.gz
"""

from __future__ import annotations

import argparse
from functools import partial

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
from podqos.library.simulation import built_viewer
from podqos.library.written_files import write_file
from podqos.report.simulation.html import page
from podqos.report.survival.autopsy import csv_rows, text
from podqos.report.survival.autopsy_story import page_of
from podqos.report.text.style import Style
from podqos.survival.autopsy import MOST_SHOWN, Autopsies


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
    add_cluster_options(parser)
    options.add_version_option(parser)
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="with -o text: every death, with all that is known"
    )
    parser.add_argument("--html", metavar="FILE", help="also write a page to view in a browser")
    about = "jsonl: a value of -o json for each death; markdown: a post-mortem"
    formats = ("text", "json", "jsonl", "yaml", "csv", "markdown")
    add_output_options(parser, formats, "podqos.survival.autopsy:Autopsies", about)


def run(arguments: argparse.Namespace) -> int:
    """Examine, print, and return the exit code."""
    if arguments.live:
        from podqos.cli.live_autopsy import explain_live

        return explain_live(arguments, lambda: _pods(arguments))
    if not arguments.logs:
        raise InvalidOption("no kernel log given", fix="for example: dmesg | podqos autopsy -")
    if [*arguments.logs, *arguments.filename].count(STDIN) > 1:
        raise InvalidOption("standard input can be read once", fix="give one - only")
    viewer = "" if arguments.html is None else built_viewer()
    objects = _pods(arguments)
    errors = 0 if objects is None else print_problems(objects.problems)
    report = autopsy(arguments.logs, objects=objects, most_shown=arguments.top, profile=profile_of(arguments))
    if arguments.html is not None:
        write_file(arguments.html, page(viewer, page_of(report)).encode())
    lines = _markdown if arguments.output == "markdown" else partial(text, verbose=arguments.verbose)
    emit(report, arguments, lines, csv_rows)
    return 2 if errors else 0


def _markdown(report: Autopsies, _: Style) -> list[str]:
    from podqos.report.survival.autopsy_markdown import markdown

    return markdown(report)


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
