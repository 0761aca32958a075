"""Rank the pods of a node twice: in the order the kubelet would evict them, and the order the kernel would kill them.

Each place comes with the numbers that decide it and the reason it stands before the next; where the two orders disagree
is said below them.

The pods and what they use come from one of:
  -f MANIFESTS --usage FILE  manifests, and a table of what their pods use: CSV or YAML with the columns pod, container,
                             memory, anon, inactiveFile, swap, pageTables, processes, disk, inodes; without --usage
                             pods are taken to use what they request
  --stats FILE --pods FILE   the kubelet's own /stats/summary and /pods
  --snapshot FILE            everything in one file
"""

from __future__ import annotations

import argparse

from podqos.cli.options import add_kubelet_option, add_layout_option, add_version_option, amount_option
from podqos.cli.output import add_output_options, emit
from podqos.cli.snapshot_options import add_snapshot_options, state_of
from podqos.eviction.ranking import Policy
from podqos.eviction.signals import Layout, Signal
from podqos.library.inputs.kubelet_node import kubelet_of
from podqos.library.rank import rank
from podqos.model.profile import parse_version
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.report.survival.rank_lines import csv_table, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos rank``."""
    add_snapshot_options(parser)
    parser.add_argument(
        "--signal",
        choices=list(Signal),
        default=Signal.MEMORY.value,
        help="what runs short (default: memory.available)",
    )
    parser.add_argument(
        "--policy",
        choices=list(Policy),
        help="how the kubelet ranks: kubelet (usage over request, priority, usage - request), qos-tiers, or qos-usage "
        "(up to 1.8) (default: that of the Kubernetes version)",
    )
    parser.add_argument("--soft", action="store_true", help="the threshold met is a soft one (default: a hard one)")
    add_layout_option(parser)
    add_kubelet_option(parser)
    parser.add_argument(
        "--pods-memory",
        metavar="QUANTITY",
        help="memory limit of the cgroup of all pods, where enforceNodeAllocatable has pods (default: what "
        "--kubelet-config leaves to pods, or no limit)",
    )
    parser.add_argument("--cgroup", choices=list(CgroupVersion), default="v2", help="cgroup version (default: v2)")
    add_version_option(parser)
    add_output_options(
        parser,
        ("table", "json", "yaml", "csv"),
        "podqos.survival.places:RankReport",
        "table: both orders and where they disagree; csv: a line per pod; json, yaml: everything",
    )


def run(arguments: argparse.Namespace) -> int:
    """Rank, print, and return the exit code."""
    profile = parse_version(arguments.kubernetes_version)
    pods_memory = arguments.pods_memory
    state, errors = state_of(arguments, profile)
    report = rank(
        state,
        kubelet=kubelet_of(arguments.kubelet_config),
        signal=Signal(arguments.signal),
        policy=None if arguments.policy is None else Policy(arguments.policy),
        hard=not arguments.soft,
        layout=Layout(arguments.layout),
        pods_memory_bytes=None if pods_memory is None else amount_option(pods_memory, "--pods-memory"),
        cgroup_version=CgroupVersion(arguments.cgroup),
        profile=profile,
    )
    emit(report, arguments, table, csv_table)
    return 2 if errors else 0
