"""Explain OOM kills and evictions: what ran out, who was killed, by which rule, who was next, and what helps.

Paste what you have: a kernel log in any common form (dmesg, syslog, journald, JSON of cloud services, gzipped or not);
logs of the kubelet, the container runtime, systemd-oomd or earlyoom; kubectl describe, kubectl get as a table, YAML or
JSON; an eviction message; docker inspect; a program's own out-of-memory error; journals of podqos. Pods, nodes and
Events, as FILE, with -f or from a cluster, identify the victim's pod and container, report evictions, and show what
else ran on the node.

  dmesg | podqos autopsy -
  journalctl -k -o json | podqos autopsy - --snapshot cluster.json.gz
  kubectl get pods,nodes,events -A -o json | podqos autopsy -
  podqos autopsy -n shop db-0
  podqos autopsy -                                          paste, then Ctrl-D
  podqos autopsy --live                                     until Ctrl-C
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from podqos.answers.autopsy import has_deaths, is_about, of_pod, one_by_one
from podqos.answers.kubelet_side import fated_pods
from podqos.cli import options
from podqos.cli.cluster import (
    add_cluster_options,
    arguments_name_cluster,
    check_name_of_cluster,
    cluster_of,
    profile_of,
)
from podqos.cli.deaths import object_files, objects_of, read_before, scene_of
from podqos.cli.output import add_output_options, emit, print_file
from podqos.cli.parser import LOGS
from podqos.cli.problems import print_problems
from podqos.errors import InvalidOption
from podqos.library.autopsy import autopsy
from podqos.manifest.encoding import json_line
from podqos.objects.files import STDIN, Inputs
from podqos.objects.objects import Objects
from podqos.reading.autopsy_inputs import is_text, told_apart
from podqos.reading.written_files import write_file
from podqos.report.survival.autopsy import csv_rows, text
from podqos.report.text.style import Style
from podqos.survival.autopsy.autopsy import MOST_SHOWN, Autopsies
from podqos.words.autopsy_story import page_of

if TYPE_CHECKING:
    from podqos.objects.cluster_snapshot import ClusterSnapshot

_POD = re.compile(r"(?:pods?/)?([a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos autopsy``."""
    about = "logs, or files with pods, nodes and events; - for standard input; or the name of a pod in a cluster"
    parser.add_argument(LOGS, nargs="*", metavar="FILE|-|POD", help=about)
    about = "pods, nodes and events from `kubectl get -A -o yaml`, with their uids"
    parser.add_argument(
        "-f", "--filename", metavar="FILE|DIR", action="append", default=[], help=f"{about}; may be repeated"
    )
    parser.add_argument("-n", "--namespace", metavar="NAME", help="the pod's namespace (default: the context's)")
    about = f"rows to show of each ranking (default: {MOST_SHOWN})"
    parser.add_argument("--top", metavar="N", type=_count, default=MOST_SHOWN, help=about)
    about = "explain OOM kills as they happen, until Ctrl-C: from this machine's kernel log, or from a log that grows"
    parser.add_argument("--live", action="store_true", help=about)
    options.add_kubelet_option(parser)
    about = "how fast memory was filling up (per s, m or h), to show which eviction threshold would have acted in time"
    options.add_value_option(parser, "--growth", options.rate_option, f"{about}, for example 128Mi/s", "RATE")
    add_cluster_options(parser)
    options.add_version_option(parser)
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="with -o text: every death, with every known detail"
    )
    about = "exit with 1 if something was killed or evicted, for scripts (default: 0)"
    parser.add_argument("--exit-code", action="store_true", help=about)
    parser.add_argument("--html", metavar="FILE", help="also save a page to open in a browser")
    about = "jsonl: one -o json object per death; markdown: a post-mortem"
    formats = ("text", "json", "jsonl", "yaml", "csv", "markdown")
    add_output_options(parser, formats, "podqos.survival.autopsy.autopsy:Autopsies", about)


def run(arguments: argparse.Namespace) -> int:
    """Examine, print, and return the exit code."""
    if arguments.live:
        from podqos.cli.live_autopsy import explain_live

        return explain_live(arguments, lambda: _known(arguments))
    pod = _pod_argument(arguments)
    if [*arguments.logs, *arguments.filename].count(STDIN) > 1:
        raise InvalidOption("standard input can be read only once", fix="give - once")
    texts = [given for given in arguments.filename if is_text(given)]
    arguments.logs = [*arguments.logs, *texts]
    arguments.filename = [given for given in arguments.filename if given not in texts]
    arguments.files = [*arguments.logs, *arguments.filename]
    if not (arguments.files or arguments_name_cluster(arguments)):
        from podqos.cli.paste_guide import GUIDE

        print(GUIDE, file=sys.stderr)
        is_piped = sys.stdin is not None and not sys.stdin.closed and not sys.stdin.isatty()
        fix = "for example: dmesg | podqos autopsy - or podqos autopsy -n shop db-0"
        raise InvalidOption("no log and no pod given", fix="- reads standard input; " + fix if is_piped else fix)
    if STDIN in arguments.files and sys.stdin.isatty():
        print("podqos: paste a log or the output of kubectl, then press Ctrl-D", file=sys.stderr)
    viewer = "" if arguments.html is None else _viewer()
    found, logs = told_apart(arguments.logs)
    cluster, of_nodes = scene_of(arguments, pod)
    files = object_files(arguments, Inputs(found))
    objects = objects_of(files, cluster)
    errors = 0 if objects is None else print_problems(objects.problems)
    report = autopsy(
        [*logs, *of_nodes],
        objects=objects,
        cluster=cluster,
        most_shown=arguments.top,
        kubelet=options.kubelet_option(arguments.kubelet_config, arguments.kubernetes_version),
        growth_bytes_per_second=arguments.growth,
        profile=profile_of(arguments),
        read=read_before(arguments, files, logs),
    )
    namespace = arguments.namespace or ""
    if pod and not any(is_about(each, namespace, pod) for each in _pods(report, objects, cluster)):
        fix = "check the path or -n, or say where the pod is: -f, --snapshot or --context"
        if cluster is not None and arguments.snapshot is None:
            fix = "check the name and -n; a deleted pod's events are kept for an hour only"
        raise InvalidOption(f"no such file or pod: {pod!r}", fix=fix)
    report = of_pod(report, namespace, pod)
    if arguments.html is not None:
        from podqos.report.simulation.html import page
        from podqos.web.ui.shown_paths import ShownPaths

        given = filter(None, (*arguments.files, arguments.snapshot, arguments.kubelet_config))
        write_file(arguments.html, ShownPaths(given=given).hide(page(viewer, page_of(report)).encode()))
    if arguments.output == "jsonl":
        print_file(json_line(autopsies).decode().rstrip() for autopsies in one_by_one(report))
    else:
        lines = _markdown if arguments.output == "markdown" else partial(text, verbose=arguments.verbose)
        emit(report, arguments, lines, csv_rows)
    if errors:
        return 2
    return 1 if arguments.exit_code and has_deaths(report) else 0


def _pods(report: Autopsies, objects: Objects | None, cluster: ClusterSnapshot | None) -> Iterator[str]:
    """Yield all known pods."""
    yield from (fated_pod.key for fated_pod in fated_pods(objects, cluster))
    yield from (eviction.pod for eviction in report.evictions)
    yield from (kill.pod for kill in report.kills)
    yield from (ended.pod for ended in (*report.terminations, *report.exits))


def _markdown(report: Autopsies, _: Style) -> list[str]:
    from podqos.report.survival.autopsy_markdown import markdown

    return markdown(report)


def _known(arguments: argparse.Namespace) -> ClusterSnapshot | Objects | None:
    """Return the snapshot or the objects of the files that the options name, or None."""
    cluster = cluster_of(arguments)
    return objects_of(object_files(arguments, Inputs([])), None) if cluster is None else cluster


def _pod_argument(arguments: argparse.Namespace) -> str:
    """Treat an argument that is not a file as the name of a pod, and return it; empty if there is none."""
    names_cluster = arguments_name_cluster(arguments)
    found = []
    for given in arguments.logs:
        named = None if given == STDIN or os.path.exists(given) else _POD.fullmatch(given)
        # A name with a dot may be a pod's, and is more likely a file that is not there.
        if named is not None and (names_cluster or given.startswith(("pod/", "pods/")) or "." not in given):
            found.append((given, named[1]))
    if len(found) > 1:
        raise InvalidOption(f"two pods: {found[0][0]} and {found[1][0]}", fix="give one")
    if not found:
        return ""
    arguments.logs = [log for log in arguments.logs if log != found[0][0]]
    if not (arguments.logs or arguments.filename):
        check_name_of_cluster(arguments, found[0][0], "pod")
        arguments.objects = [("pod", found[0][1])]
    return found[0][1]


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 8):
        raise InvalidOption(f"{text!r} is not a number of tasks", where="--top", fix="a whole number, for example 20")
    return int(text)


def _viewer() -> str:
    from podqos.library.simulation import built_viewer

    return built_viewer()
