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
import sys

from msgspec.structs import replace

from podqos.cli.inputs import read_bytes
from podqos.cli.node_pods import read_node_pods
from podqos.cli.options import (
    add_filename_option,
    add_layout_option,
    add_schema_option,
    add_version_option,
    amount_option,
    applied_files,
    node_memory_option,
)
from podqos.cli.output import print_csv, print_schema, print_value
from podqos.cli.terminal import add_colour_option, style_for
from podqos.errors import InputError, InvalidOption
from podqos.eviction.observation import decode_summary
from podqos.eviction.ranking import Policy, Ranking, can_rank
from podqos.eviction.signals import Layout, Signal
from podqos.manifest.documents import plain_documents
from podqos.model.profile import Profile, parse_version
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.model.snapshot import NodeUsage, Snapshot
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion
from podqos.report.ranking import RankReport, rank_report
from podqos.report.words import mebibytes
from podqos.survival.orders import both_orders
from podqos.survival.outlook import outlook
from podqos.survival.snapshots import decode_snapshot, from_summary, node_of
from podqos.survival.usage import from_usage
from podqos.survival.usage_file import read_usage

_LEAST_NODE_BYTES = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos rank``."""
    add_filename_option(parser)
    parser.add_argument("--usage", metavar="FILE", help="what the pods of the manifests use, as CSV or YAML")
    parser.add_argument("--stats", metavar="FILE", help="the answer of the kubelet's /stats/summary")
    parser.add_argument("--pods", metavar="FILE", help="the answer of the kubelet's /pods, or kubectl get pods -o json")
    parser.add_argument("--snapshot", metavar="FILE", help="node, pods and usage in one file")
    parser.add_argument(
        "--node", metavar="NAME", help="the node whose pods to rank, where the files hold those of several"
    )
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
    parser.add_argument(
        "--node-memory", metavar="QUANTITY", help="memory of the node (default: as in the figures, or this machine's)"
    )
    parser.add_argument(
        "--system-memory", metavar="QUANTITY", help="memory used outside all pods (default: as in the figures, or none)"
    )
    parser.add_argument(
        "--pods-memory",
        metavar="QUANTITY",
        help="memory limit of the cgroup of all pods, where enforceNodeAllocatable has pods (default: no limit)",
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
    snapshot, errors = _snapshot(arguments, profile)
    if not snapshot.pods:
        raise InputError("there are no pods to rank", fix="give manifests or the kubelet's /pods")
    if snapshot.node.memory_bytes < _LEAST_NODE_BYTES:
        what = f"{snapshot.node.memory_bytes} bytes are not the memory of a node"
        raise InputError(what, fix="for example --node-memory 64Gi")
    settings = _settings(arguments, snapshot)
    seen = outlook(snapshot, settings, profile)
    if seen.available_bytes < 0 and arguments.stats is None:
        node = snapshot.node
        what = f"the pods use {mebibytes(node.memory_bytes - seen.available_bytes)}, the node has "
        raise InputError(f"{what}{mebibytes(node.memory_bytes)}", fix="give the node's memory with --node-memory")
    report = rank_report(snapshot, both_orders(snapshot, ranking, settings, seen.domain), seen)
    _print(report, arguments)
    return 2 if errors else 0


# ---- where pods and figures come from ----------------------------------------------------------------------------


def _snapshot(arguments: argparse.Namespace, profile: Profile) -> tuple[Snapshot, int]:
    """Return the snapshot the options describe, and how many errors were reported on the way."""
    given = {"--usage": arguments.usage, "--stats": arguments.stats, "--snapshot": arguments.snapshot}
    chosen = [option for option, value in given.items() if value is not None]
    if len(chosen) != 1:
        what = f"{' and '.join(chosen)} exclude each other" if chosen else "nothing says what the pods use"
        raise InvalidOption(what, fix="give --usage with -f, or --stats with --pods, or --snapshot")
    if arguments.files and arguments.usage is None:
        raise InvalidOption(f"-f and {chosen[0]} exclude each other", fix="manifests go with --usage")
    if arguments.snapshot is not None:
        return _from_file(arguments), 0
    if arguments.stats is not None:
        return _from_kubelet(arguments, profile)
    return _from_manifests(arguments, profile)


def _from_file(arguments: argparse.Namespace) -> Snapshot:
    documents = plain_documents(arguments.snapshot, read_bytes(arguments.snapshot))
    if len(documents) != 1:
        raise InputError(f"{len(documents)} documents", where=arguments.snapshot, fix="a snapshot is one document")
    return decode_snapshot(arguments.snapshot, documents[0].value)


def _from_kubelet(arguments: argparse.Namespace, profile: Profile) -> tuple[Snapshot, int]:
    if arguments.pods is None:
        raise InvalidOption("the pods are missing", where="--stats", fix="add --pods with the answer of /pods")
    try:
        summary = decode_summary(read_bytes(arguments.stats))
    except InputError as error:
        raise InputError(error.what, where=arguments.stats, fix=error.fix) from error
    node = node_of(summary)
    if node is None:
        if arguments.node_memory is None:
            raise InputError("the node's memory is not in it", where=arguments.stats, fix="give it with --node-memory")
        node = NodeUsage(0, name=summary.node.node_name)
    pods, errors = read_node_pods([arguments.pods], node=arguments.node, profile=profile)
    return from_summary([entry.pod for entry in pods], summary, _adjusted(node, arguments)), errors


def _from_manifests(arguments: argparse.Namespace, profile: Profile) -> tuple[Snapshot, int]:
    rows = read_usage(arguments.usage, read_bytes(arguments.usage))
    files = applied_files(arguments.files, "rank")
    pods, errors = read_node_pods(files, named=[row.pod for row in rows], node=arguments.node, profile=profile)
    node = _adjusted(NodeUsage(node_memory_option(arguments.node_memory), name=arguments.node or ""), arguments)
    snapshot = from_usage(pods, rows, node)
    for entry in snapshot.pods:
        if entry.stats is None:
            print(
                f"{arguments.usage}: no figures for {entry.pod.key}: ranked as a pod without statistics",
                file=sys.stderr,
            )
    return snapshot, errors


def _adjusted(node: NodeUsage, arguments: argparse.Namespace) -> NodeUsage:
    if arguments.node_memory is not None:
        node = replace(node, memory_bytes=amount_option(arguments.node_memory, "--node-memory"))
    if arguments.system_memory is not None:
        node = replace(node, system_bytes=amount_option(arguments.system_memory, "--system-memory"))
    return node


def _settings(arguments: argparse.Namespace, snapshot: Snapshot) -> CgroupSettings:
    limit = None if arguments.pods_memory is None else amount_option(arguments.pods_memory, "--pods-memory")
    return CgroupSettings(
        node_memory_bytes=snapshot.node.memory_bytes,
        node_swap_bytes=snapshot.node.swap_bytes,
        node_allocatable={} if limit is None else {MEMORY: Quantity.of_units(limit, "BinarySI")},
        cgroup_version=CgroupVersion(arguments.cgroup),
    )


def _print(report: RankReport, arguments: argparse.Namespace) -> None:
    from podqos.report import rank as lines

    if arguments.output == "table":
        print("\n".join(lines.table(report, style_for(arguments.color))))
    elif arguments.output == "csv":
        print_csv(lines.CSV_COLUMNS, lines.csv_rows(report))
    else:
        print_value(report, arguments.output)
