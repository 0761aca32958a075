"""Rank the pods of a node twice: in the order the kubelet would evict them, and the order the kernel would kill them.

Each place comes with the numbers that decide it and the reason it stands before the next; where the two orders disagree
is said below them.

The pods and what they use come from one of:
  -f MANIFESTS --usage FILE  manifests, and a table of what their pods use: CSV or YAML with the columns pod, container,
                             memory, anon, inactiveFile, swap, pageTables, processes, disk, inodes
  --stats FILE --pods FILE   the kubelet's own /stats/summary and /pods
  --snapshot FILE            everything in one file
"""

from __future__ import annotations

import argparse

from msgspec.structs import replace

from podqos.cli.options import (
    add_kubelet_option,
    add_layout_option,
    add_schema_option,
    add_version_option,
    amount_option,
)
from podqos.cli.output import print_csv, print_schema, print_value
from podqos.cli.snapshot_options import add_snapshot_options, read_snapshot
from podqos.cli.terminal import add_colour_option, style_for
from podqos.errors import InputError, InvalidOption
from podqos.eviction.ranking import Policy, Ranking, can_rank
from podqos.eviction.signals import Layout, Signal
from podqos.library.inputs.kubelet_node import Kubelet, judged_cgroups, kubelet_of
from podqos.model.profile import Profile, parse_version
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.model.snapshot import Snapshot
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion
from podqos.qos.oom import component_scores
from podqos.report.survival.ranking import RankReport, rank_report
from podqos.survival.orders import both_orders
from podqos.survival.outlook import outlook
from podqos.wording import mebibytes


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
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "json", "yaml", "csv"),
        default="table",
        help="table: both orders and where they disagree; csv: a line per pod; json, yaml: everything (default: table)",
    )
    add_schema_option(parser)
    add_colour_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Rank, print, and return the exit code."""
    if arguments.schema:
        print_schema(RankReport)
        return 0
    profile = parse_version(arguments.kubernetes_version)
    policy = None if arguments.policy is None else Policy(arguments.policy)
    ranking = Ranking(Signal(arguments.signal), Layout(arguments.layout), policy, not arguments.soft, profile)
    if not can_rank(ranking):
        what = f"Kubernetes {arguments.kubernetes_version} evicts nobody for {arguments.signal}"
        raise InvalidOption(what, where="--signal", fix="use 1.14 or newer, or another policy")
    snapshot, errors = read_snapshot(arguments, profile)
    kubelet = kubelet_of(arguments.kubelet_config)
    settings = _settings(arguments, kubelet, snapshot, profile)
    seen = outlook(snapshot, settings, profile)
    if seen.available_bytes < 0 and arguments.stats is None:
        node = snapshot.node
        what = f"the pods use {mebibytes(node.memory_bytes - seen.available_bytes)}, the node has "
        raise InputError(f"{what}{mebibytes(node.memory_bytes)}", fix="give the node's memory with --node-memory")
    components = component_scores(kubelet.config.oom_score_adj)
    report = rank_report(snapshot, both_orders(snapshot, ranking, settings, seen.domain), seen, components)
    _print(report, arguments)
    return 2 if errors else 0


def _settings(arguments: argparse.Namespace, kubelet: Kubelet, snapshot: Snapshot, profile: Profile) -> CgroupSettings:
    settings = judged_cgroups(
        kubelet,
        memory_bytes=snapshot.node.memory_bytes,
        swap_bytes=snapshot.node.swap_bytes,
        cgroup_version=CgroupVersion(arguments.cgroup),
        profile=profile,
    )
    if arguments.pods_memory is None:
        return settings
    limit = Quantity.of_units(amount_option(arguments.pods_memory, "--pods-memory"), "BinarySI")
    allocatable = {**settings.node_allocatable, MEMORY: limit}
    return replace(settings, node_allocatable=allocatable, enforce_node_allocatable=True)


def _print(report: RankReport, arguments: argparse.Namespace) -> None:
    from podqos.report.survival import rank_lines as lines

    if arguments.output == "table":
        print("\n".join(lines.table(report, style_for(arguments.color))))
    elif arguments.output == "csv":
        print_csv(lines.CSV_COLUMNS, lines.csv_rows(report))
    else:
        print_value(report, arguments.output)
