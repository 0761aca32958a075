"""A cluster instead of files: the options that name it, and the part of it that a command reads."""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podqos.cli.options import Parser
from podqos.cli.progress import progress_line
from podqos.errors import InputError, InvalidOption
from podqos.model.profile import LATEST, Profile, parse_version
from podqos.objects.files import STDIN
from podqos.objects.selection import object_named
from podqos.reading.cluster_part import EVERYTHING, Part

if TYPE_CHECKING:
    from podqos.objects.cluster_snapshot import ClusterSnapshot

_NODE = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_SUFFIXES = (".yaml", ".yml", ".json", ".gz")


def add_cluster_options(parser: Parser) -> None:
    """Declare the options that name a cluster."""
    cluster = parser.add_argument_group("a cluster, instead of files or for its policies (read only)")
    cluster.add_argument("--snapshot", metavar="FILE", help="read a snapshot written by `podqos snapshot`")
    cluster.add_argument("--context", metavar="NAME", help="read the live cluster of this kubeconfig context")
    cluster.add_argument(
        "--kubeconfig", metavar="FILE", help="the kubeconfig to use (default: $KUBECONFIG, ~/.kube/config)"
    )
    about = "read the live cluster of the current context, all namespaces (-n or -l without files reads part of it)"
    cluster.add_argument("-A", "--all-namespaces", action="store_true", help=about)


def add_live_options(parser: Parser) -> None:
    """Declare the options that name a live cluster."""
    parser.add_argument("--context", metavar="NAME", help="read the live cluster of this kubeconfig context")
    about = "the kubeconfig to use (default: $KUBECONFIG, ~/.kube/config, or the pod's service account)"
    parser.add_argument("--kubeconfig", metavar="FILE", help=about)


def add_whole_cluster_options(parser: Parser) -> None:
    """Declare the options that name a whole cluster, with all namespaces."""
    parser.add_argument("--snapshot", metavar="FILE", help="a snapshot written by `podqos snapshot`")
    add_live_options(parser)


def whole_cluster(arguments: argparse.Namespace, node: str | None = None) -> ClusterSnapshot:
    """Return the cluster that the options name, by default the live one of the current context; or one node of it."""
    arguments.all_namespaces = arguments.snapshot is None
    cluster = cluster_of(arguments, Part(node=node or "", workloads=False))
    assert cluster is not None
    return cluster


def is_node_name(text: str) -> bool:
    """Whether an argument is the name of a node, not a file."""
    return bool(_NODE.fullmatch(text)) and not text.endswith(_SUFFIXES) and not os.path.exists(text)


def check_name_of_cluster(arguments: argparse.Namespace, name: str, what: str) -> None:
    """Raise if an argument is not a file and cannot be the name of a node or pod because there is no cluster."""
    if any((arguments.snapshot, arguments.context, arguments.kubeconfig, arguments.all_namespaces)):
        return
    from podqos.cluster.access import find_access
    from podqos.reading.shipped_scenarios import shipped_scenario

    if shipped_scenario(name) is not None:
        fix = f"`podqos simulate {name}` runs it; a {what} of that name needs --context"
        raise InvalidOption(f"this is a scenario, not a file or a {what}", where=name, fix=fix)
    try:
        find_access()
    except InputError:
        missing, fix = (
            f"no such file, and no cluster to find a {what} in",
            f"check the path; for a {what} set KUBECONFIG",
        )
        raise InvalidOption(missing, where=name, fix=fix) from None


def node_argument(arguments: argparse.Namespace) -> None:
    """Treat a single argument that is not a file as the name of a node: ``podqos rank worker-1``."""
    given = arguments.files or []
    if len(given) != 1 or not is_node_name(given[0]):
        return
    if arguments.node is not None:
        raise InvalidOption(f"two nodes: {given[0]} and {arguments.node}", where="--node", fix="give one")
    check_name_of_cluster(arguments, given[0], "node")
    arguments.node, arguments.files = given[0], []
    arguments.all_namespaces = arguments.snapshot is None


def object_arguments(arguments: argparse.Namespace) -> None:
    """Treat arguments that are not files as objects, of the files or of a cluster: ``podqos explain deploy/web``."""
    given = arguments.files or []
    files = [path for path in given if path == STDIN or os.path.exists(path)]
    others = [path for path in given if path not in files]
    if len(others) > 1 and "/" not in others[0] and object_named(f"{others[0]}/{others[1]}"):
        # As kubectl takes them: deploy web api.
        others = [f"{others[0]}/{name}" for name in others[1:]]
    named = [one for one in map(object_named, others) if one is not None]
    if named and len(named) == len(others):
        arguments.objects, arguments.files = named, files


def node_part(arguments: argparse.Namespace) -> Part:
    """Return the part of a cluster that answers about one node depend on."""
    return Part(node=arguments.node or "", policies=False, workloads=False)


def cluster_of(arguments: argparse.Namespace, part: Part = EVERYTHING) -> ClusterSnapshot | None:
    """Return the cluster that the options name, or the part of it that an answer needs; None if they name files."""
    known: ClusterSnapshot | None = getattr(arguments, "cluster", None)
    if known is None and arguments_name_cluster(arguments):
        known = _read(arguments) if arguments.snapshot is not None else _live(arguments, part)
        arguments.cluster = known
    return known


def arguments_name_cluster(arguments: argparse.Namespace) -> bool:
    """Whether the options name a cluster."""
    given = vars(arguments)
    if any(given.get(name) for name in ("snapshot", "context", "kubeconfig", "all_namespaces")):
        return True
    files = any(given.get(name) for name in ("files", "kustomize", "stats", "pods", "usage", "describe", "ask"))
    return not files and bool(given.get("namespace") or given.get("selector") or given.get("objects"))


def profile_of(arguments: argparse.Namespace) -> Profile:
    """Return the rules that apply: those of ``--kubernetes-version``, of the cluster, or the newest."""
    if arguments.kubernetes_version is not None:
        return parse_version(arguments.kubernetes_version)
    cluster = cluster_of(arguments) if "snapshot" in arguments else None
    return LATEST if cluster is None else cluster.profile


def _read(arguments: argparse.Namespace) -> ClusterSnapshot:
    from podqos.reading.snapshot_files import read_snapshot

    for option, value in (("--context", arguments.context), ("-A", arguments.all_namespaces)):
        if value:
            raise InvalidOption(f"--snapshot and {option} cannot be combined", fix="give one of them")
    return read_snapshot(arguments.snapshot)


def _live(arguments: argparse.Namespace, part: Part) -> ClusterSnapshot:
    from podqos.cluster.cluster import connect
    from podqos.reading.live_cluster import take

    with connect(arguments.context, kubeconfig=arguments.kubeconfig) as cluster:
        given = vars(arguments)
        arguments.context_namespace = cluster.namespace
        if not part.node and not given.get("all_namespaces"):
            # Files may name any namespace; objects of the cluster are those of its context's.
            own = cluster.namespace if part.pods else ""
            part = replace(part, namespace=given.get("namespace") or own)
        return take(cluster, part, progress=progress_line("querying kubelet"))
