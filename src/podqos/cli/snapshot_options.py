"""A node's pods and their usage: from manifests and a table, from the kubelet's API, or from one file."""

from __future__ import annotations

import argparse
from functools import partial

from podqos.answers.cluster_state import cluster_state
from podqos.answers.node_state import NodeState
from podqos.cli.cluster import (
    arguments_name_cluster,
    cluster_of,
    node_argument,
    node_part,
    object_arguments,
    profile_of,
)
from podqos.cli.inputs import given_files, read_objects
from podqos.cli.options import add_node_memory_option, add_value_option, amount_or_zero_option, stated_classes
from podqos.cli.problems import print_problems
from podqos.cli.selecting import add_manifest_options, selection_of
from podqos.cli.usage_files import usage_option
from podqos.errors import InvalidOption
from podqos.library.node_state import kubelet_state, node_state, read_state
from podqos.model.profile import LATEST, Profile, parse_version
from podqos.objects.cluster_snapshot import is_cluster_snapshot
from podqos.objects.files import STDIN
from podqos.objects.kubelet_node import Kubelet
from podqos.reading.files import read_bytes


def add_snapshot_options(parser: argparse.ArgumentParser, *, positional: bool = True) -> None:
    """Declare where a node's pods and their usage come from; ``positional``: whether -f may be left out."""
    add_manifest_options(parser, positional=positional)
    parser.add_argument(
        "--usage",
        metavar="FILE",
        help="usage of the pods, as CSV or YAML (default: their requests)",
    )
    parser.add_argument("--stats", metavar="FILE", help="output of the kubelet's /stats/summary")
    parser.add_argument("--pods", metavar="FILE", help="output of the kubelet's /pods, or of kubectl get pods -o json")
    parser.add_argument("--node", metavar="NAME", help="use the pods of this node, if the files have several nodes")
    add_node_memory_option(parser, default="from the stats, the Node in the files, the smallest Node there, or 64Gi")
    about = "memory used outside pods (default: from the stats, or none)"
    add_value_option(parser, "--system-memory", amount_or_zero_option, about)


def state_of(
    arguments: argparse.Namespace, kubelet: Kubelet | None = None, *, refuse_impossible: bool = False
) -> tuple[NodeState, Profile, int]:
    """Return the node that the options describe, the rules that apply, and how many errors were reported.

    ``kubelet`` is the one that an option states: those in the files do not count then.
    ``refuse_impossible``: usage above a limit is an error; otherwise it counts as the limit.
    """
    node_argument(arguments)
    object_arguments(arguments)
    if arguments.snapshot is not None:
        _refuse_more(arguments, "--snapshot")
    if arguments.snapshot is not None and not is_cluster_snapshot(read_bytes(arguments.snapshot)):
        profile = LATEST if arguments.kubernetes_version is None else parse_version(arguments.kubernetes_version)
        if selection_of(arguments) is not None:
            raise InvalidOption("--snapshot and -n, -l, KIND/NAME cannot be combined", fix="give -f or --pods")
        return read_state(arguments.snapshot, refuse_impossible=refuse_impossible), profile, 0
    if arguments_name_cluster(arguments):
        _refuse_more(arguments, "a cluster")
    cluster = cluster_of(arguments, node_part(arguments))
    profile = profile_of(arguments)
    if cluster is not None:
        state = cluster_state(
            cluster,
            arguments.node,
            node_memory_bytes=arguments.node_memory,
            system_memory_bytes=arguments.system_memory,
            profile=profile,
            selection=selection_of(arguments),
        )
        return state, profile, print_problems(cluster.objects.problems)
    state, errors = _state_of_files(arguments, profile, kubelet, refuse_impossible=refuse_impossible)
    return state, profile, errors


def _refuse_more(arguments: argparse.Namespace, what: str) -> None:
    given = {"-f": arguments.files, "--usage": arguments.usage, "--stats": arguments.stats, "--pods": arguments.pods}
    for option, value in given.items():
        if value:
            raise InvalidOption(f"{option} and {what} cannot be combined", fix="give one of them")


def _state_of_files(
    arguments: argparse.Namespace, profile: Profile, kubelet: Kubelet | None, *, refuse_impossible: bool
) -> tuple[NodeState, int]:
    given = {"--usage": arguments.usage, "--stats": arguments.stats}
    chosen = [option for option, value in given.items() if value is not None]
    if len(chosen) > 1:
        what = f"{' and '.join(chosen)} cannot be combined"
        raise InvalidOption(what, fix="give --usage with -f, or --stats with --pods, or --snapshot")
    if not chosen and not arguments.files and not arguments.kustomize:
        raise InvalidOption("no pods given", fix="give -f, or --stats with --pods, or --snapshot, or a node's name")
    if arguments.files and chosen and arguments.usage is None:
        raise InvalidOption(f"-f and {chosen[0]} cannot be combined", fix="combine manifests with --usage")
    if STDIN in (arguments.files or ()) and STDIN in {arguments.usage, arguments.pods}:
        raise InvalidOption("standard input can be read only once", where=STDIN, fix="name files for the rest")
    selection = selection_of(arguments)
    if arguments.stats is not None and arguments.pods is None:
        raise InvalidOption("the pods are missing", where="--stats", fix="add --pods with the output of /pods")
    if arguments.stats is None:
        rows = None if arguments.usage is None else usage_option(arguments.usage)
        inputs = given_files(arguments, "look at", in_order_of_apply=True)
        objects = read_objects(inputs, stated_classes(arguments), selection, version=profile.version)
        make = partial(node_state, usage=rows, refuse_impossible=refuse_impossible, kubelet=kubelet)
    else:
        objects = read_objects(arguments.pods, selection=selection, version=profile.version)
        make = partial(kubelet_state, stats=arguments.stats)
    try:
        state = make(
            objects,
            node=arguments.node,
            node_memory_bytes=arguments.node_memory,
            system_memory_bytes=arguments.system_memory,
            profile=profile,
        )
    finally:
        errors = print_problems(objects.problems)
    return state, errors
