"""Advise QoS class and priority of workloads by what they do, and requests and limits by what they used.

Describe a workload with annotations (podqos.dev/latency-sensitive, restart-cost, burst-pattern, keeps-state,
slow-start), or in a file (--describe). With --usage, requests and limits are sized
from samples: CSV or JSON with pod, container, memory, cpu, oomKills, or the output of Prometheus' /api/v1/query_range.
--prometheus URL queries them. A workload without a description keeps its class, and only its sizes are advised.

Settings of a kubelet: `podqos thresholds --advise`.

Advice is tested first: the advised pods are admitted, placed on the nodes in the files (or --nodes), and run with the
recorded usage. If a pod would be OOM-killed, evicted or throttled for longer than today, its sizes are raised, or the
advice is dropped. --goal covers all workloads at once, with or without usage: what changes,
and which pods would be pending.

-o text prints a table and then the reasons, csv the table. -o manifests prints whole objects, -o
patch only what changes (for kustomize, and for kubectl patch --patch-file). --patch prints patches for a tool, and
--apply-to edits the manifests.

Exit codes: 0 advised; 2 something could not be read; 3 a file could not be written.
"""

from __future__ import annotations

import argparse

from podqos.cli import options
from podqos.cli.commands.advise_options import add_trial_options, add_writing_options
from podqos.cli.output import add_output_options
from podqos.cli.prometheus import add_prometheus_options
from podqos.cli.selecting import add_manifest_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos advise``."""
    add_manifest_options(parser)
    parser.add_argument("--describe", metavar="FILE", help="workload descriptions in YAML")
    parser.add_argument("--usage", metavar="FILE", help="container usage over time: CSV, JSON or Prometheus output")
    parser.add_argument(
        "--cpu-usage",
        metavar="FILE",
        help="CPU samples in cores, when Prometheus' result has no metric name (as after rate(...))",
    )
    add_prometheus_options(parser, "7d")
    options.add_node_memory_option(parser)
    options.add_kubelet_option(parser)
    add_trial_options(parser)
    add_writing_options(parser)
    options.add_version_option(parser)
    add_output_options(
        parser,
        ("text", "manifests", "patch", "json", "yaml", "csv", "name"),
        "podqos.answers.advice:AdviceReport",
    )


def run(arguments: argparse.Namespace) -> int:
    """Advise, print, and return the exit code."""
    from podqos.cli.commands.advise_run import run_for_workloads

    return run_for_workloads(arguments)
