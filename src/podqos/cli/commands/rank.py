"""Rank the pods of a node twice: in the kubelet's eviction order and in the kernel's OOM kill order.

Every rank comes with the numbers behind it and the reason it precedes the next one. Below, podqos shows where the two
orders disagree.

Pods and their usage come from one of:
  NODE                       a node of the live cluster, or of a --snapshot
  -f MANIFESTS --usage FILE  manifests, and a table of their pods' usage
  --stats FILE --pods FILE   the kubelet's own /stats/summary and /pods

A usage table is CSV or YAML with the columns pod, container, memory, anon, inactiveFile, swap, pageTables, processes,
disk, inodes. Without one, pods are assumed to use what they request.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from podqos.answers.places import RankReport
from podqos.cli import options
from podqos.cli.cluster import node_argument
from podqos.cli.output import add_output_options, emit, object_name, pod_names
from podqos.cli.snapshot_options import add_snapshot_options, state_of
from podqos.eviction.signals import Signal
from podqos.library.rank import rank
from podqos.report.survival.rank_lines import csv_table, table, wide, workload_csv, workload_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos rank``."""
    add_snapshot_options(parser)
    options.add_choice_option(parser, "--signal", Signal, "the resource that runs short", Signal.MEMORY)
    ways = "kubelet (usage over request, priority, usage - request), qos-tiers, or qos-usage (up to 1.8)"
    options.add_policy_option(parser, f"how the kubelet ranks pods: {ways}")
    parser.add_argument("--soft", action="store_true", help="a soft threshold was crossed (default: a hard one)")
    options.add_layout_option(parser)
    options.add_kubelet_option(parser)
    about = "memory limit of the kubepods cgroup, if enforceNodeAllocatable includes pods"
    about = f"{about} (default: what --kubelet-config leaves to pods, or no limit)"
    options.add_value_option(parser, "--pods-memory", options.amount_option, about)
    options.add_cgroup_option(parser)
    options.add_version_option(parser)
    about = "show the first N of each order (default: all)"
    options.add_value_option(parser, "--top", options.count_option, about, "N")
    about = "one line per pod, or per workload with the first and last rank of its pods (table, wide, csv, name)"
    parser.add_argument("--by", choices=("pod", "workload"), default="pod", help=f"{about} (default: pod)")
    add_output_options(
        parser,
        ("table", "wide", "json", "yaml", "csv", "name"),
        "podqos.answers.places:RankReport",
        "table: both kill orders and where they disagree; wide, csv: one line per pod; json, yaml: everything",
    )


def run(arguments: argparse.Namespace) -> int:
    """Rank, print, and return the exit code."""
    node_argument(arguments)
    kubelet = options.kubelet_option(arguments.kubelet_config, arguments.kubernetes_version)
    state, profile, errors = state_of(arguments, kubelet)
    report = rank(
        state,
        kubelet=kubelet,
        signal=arguments.signal,
        policy=arguments.policy,
        hard=not arguments.soft,
        layout=arguments.layout,
        pods_memory_bytes=arguments.pods_memory,
        cgroup_version=arguments.cgroup,
        profile=profile,
    )
    top: int | None = arguments.top
    if arguments.output in {"json", "yaml"}:
        report = _first(report, top)
    if arguments.by == "workload":
        names: Iterator[str] = (
            object_name(workload.kind, workload.name.rpartition("/")[2]) for workload in report.workloads[:top]
        )
        lines, rows = workload_table, workload_csv
    else:
        names = pod_names(place.pod for place in report.eviction_order[:top])
        lines, rows = wide if arguments.output == "wide" else table, csv_table
    emit(report, arguments, partial(lines, top=top), partial(rows, top=top), lambda _: names)
    return 2 if errors else 0


def _first(report: RankReport, top: int | None) -> RankReport:
    """Return the first of each order."""
    return replace(
        report,
        eviction_order=report.eviction_order[:top],
        kill_order=report.kill_order[:top],
        workloads=report.workloads[:top],
    )
