"""A node's pods and what they use: from manifests and a table, from the kubelet's answers, or from one file."""

from __future__ import annotations

import argparse
import sys

from msgspec.structs import replace

from podqos.cli.inputs import read_node_pods
from podqos.cli.options import add_filename_option, amount_option, node_memory_option
from podqos.errors import InputError, InvalidOption
from podqos.eviction.observation import decode_summary
from podqos.library.inputs.assumptions import LEAST_NODE_BYTES
from podqos.library.inputs.files import applied_files, read_bytes
from podqos.manifest.documents import plain_documents
from podqos.model.profile import Profile
from podqos.model.snapshot import NodeUsage, Snapshot
from podqos.survival.snapshots import decode_snapshot, from_summary, node_of
from podqos.survival.usage import from_usage
from podqos.survival.usage_file import read_usage


def add_snapshot_options(parser: argparse.ArgumentParser) -> None:
    """Declare where the pods of a node and their figures come from."""
    add_filename_option(parser)
    parser.add_argument("--usage", metavar="FILE", help="what the pods of the manifests use, as CSV or YAML")
    parser.add_argument("--stats", metavar="FILE", help="the answer of the kubelet's /stats/summary")
    parser.add_argument("--pods", metavar="FILE", help="the answer of the kubelet's /pods, or kubectl get pods -o json")
    parser.add_argument("--snapshot", metavar="FILE", help="node, pods and usage in one file")
    parser.add_argument("--node", metavar="NAME", help="the node whose pods to take, where the files hold several")
    parser.add_argument(
        "--node-memory", metavar="QUANTITY", help="memory of the node (default: as in the figures, or this machine's)"
    )
    parser.add_argument(
        "--system-memory", metavar="QUANTITY", help="memory used outside all pods (default: as in the figures, or none)"
    )


def read_snapshot(arguments: argparse.Namespace, profile: Profile) -> tuple[Snapshot, int]:
    """Return the snapshot the options describe, and how many errors were reported on the way."""
    snapshot, errors = _read(arguments, profile)
    if not snapshot.pods:
        raise InputError("there are no pods", fix="give manifests or the kubelet's /pods")
    if snapshot.node.memory_bytes < LEAST_NODE_BYTES:
        what = f"{snapshot.node.memory_bytes} bytes are not the memory of a node"
        raise InputError(what, fix="for example --node-memory 64Gi")
    return snapshot, errors


def _read(arguments: argparse.Namespace, profile: Profile) -> tuple[Snapshot, int]:
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
    files = applied_files(arguments.files, "look at")
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
