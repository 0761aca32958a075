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
from functools import partial

from podqos.api import autopsy
from podqos.cli import options
from podqos.cli.cluster import add_cluster_options
from podqos.cli.deaths import asked_options, asked_pod, inputs_of_deaths
from podqos.cli.output import add_output_options, emit, print_file
from podqos.cli.parser import LOGS
from podqos.cli.problems import print_problems
from podqos.manifest.encoding import json_line
from podqos.questions.autopsy import Autopsy
from podqos.questions.autopsy_oom import MOST_SHOWN
from podqos.questions.autopsy_text import csv_rows, markdown, text
from podqos.text.style import Style


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos autopsy``."""
    about = "logs, or files with pods, nodes and events; - for standard input; or the name of a pod in a cluster"
    parser.add_argument(LOGS, nargs="*", metavar="FILE|-|POD", help=about)
    about = "pods, nodes and events from `kubectl get -A -o yaml`, with their uids; may be repeated"
    parser.add_argument("-f", "--filename", metavar="FILE|DIR", action="append", default=[], help=about)
    parser.add_argument("-n", "--namespace", metavar="NAME", help="the pod's namespace (default: the context's)")
    about = f"rows to show of each ranking (default: {MOST_SHOWN})"
    options.add_value_option(parser, "--top", options.count_option, about, "N")
    about = "explain OOM kills as they happen, until Ctrl-C: from this machine's kernel log, or from a log that grows"
    parser.add_argument("--live", action="store_true", help=about)
    options.add_kubelet_option(parser)
    about = "how fast memory was filling up (per s, m or h), to show which eviction threshold would have acted in time"
    options.add_value_option(parser, "--growth", options.rate_option, f"{about}, for example 128Mi/s", "RATE")
    add_cluster_options(parser)
    options.add_version_option(parser)
    about = "with -o text: every death, with every known detail"
    parser.add_argument("-v", "--verbose", action="store_true", help=about)
    about = "exit with 1 if something was killed or evicted, for scripts (default: 0)"
    parser.add_argument("--exit-code", action="store_true", help=about)
    parser.add_argument("--html", metavar="FILE", help="also save a page to open in a browser")
    about = "jsonl: one JSON object per death; markdown: a post-mortem"
    formats = ("text", "json", "jsonl", "yaml", "csv", "markdown")
    add_output_options(parser, formats, "podqos.questions.autopsy:Autopsy", about)


def run(arguments: argparse.Namespace) -> int:
    """Examine, print, and return the exit code."""
    if arguments.live:
        from podqos.cli.live_autopsy import explain_live

        return explain_live(arguments)
    pod = asked_pod(arguments)
    logs, objects, cluster, read = inputs_of_deaths(arguments, pod)
    errors = 0 if objects is None else print_problems(objects.problems)
    asked = asked_options(arguments)
    namespace = arguments.namespace or ""
    found = autopsy(logs, objects=objects, cluster=cluster, read=read, namespace=namespace, pod=pod, **asked)
    if arguments.html is not None:
        from podqos.manifest.encoding import embedded
        from podqos.reading.built_page import built_viewer
        from podqos.reading.written_files import write_file
        from podqos.serve.shown_paths import ShownPaths

        given = filter(None, (*arguments.files, arguments.snapshot, arguments.kubelet_config))
        write_file(arguments.html, ShownPaths(given=given).hide(embedded(built_viewer(), found).encode()))
    if arguments.output == "jsonl":
        print_file(json_line(death).decode().rstrip() for death in found.deaths)
    else:
        lines = _markdown if arguments.output == "markdown" else partial(text, verbose=arguments.verbose)
        emit(found, arguments, lines, csv_rows)
    return 2 if errors else 1 if arguments.exit_code and found.deaths else 0


def _markdown(found: Autopsy, _: Style) -> list[str]:
    return markdown(found)
