"""A node's pods and their usage: from manifests and a table, from the kubelet's API, or from one file."""

from __future__ import annotations

import argparse
from functools import partial

from podqos.cli.cluster import (
    arguments_name_cluster,
    cluster_of,
    node_argument,
    node_part,
    object_arguments,
    profile_of,
)
from podqos.cli.inputs import given_files, read_objects
from podqos.cli.options import (
    add_kubelet_option,
    add_node_memory_option,
    add_value_option,
    add_version_option,
    amount_or_zero_option,
    kubelet_option,
    stated_classes,
)
from podqos.cli.problems import print_problems
from podqos.cli.selecting import add_manifest_options, selection_of
from podqos.cli.usage_files import usage_option
from podqos.errors import InvalidOption
from podqos.model.profile import Profile
from podqos.objects.files import STDIN
from podqos.objects.kubelet_node import Kubelet
from podqos.questions.node import NodeState, cluster_state, kubelet_state, node_state
from podqos.reading.usage import read_summary


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
    add_kubelet_option(parser)
    add_version_option(parser)


def state_of(arguments: argparse.Namespace, *, refuse_impossible: bool = False) -> tuple[NodeState, int]:
    """Return the node that the options describe, and how many errors were reported.

    ``refuse_impossible``: usage above a limit is an error; otherwise it counts as the limit.
    """
    kubelet = kubelet_option(arguments.kubelet_config, arguments.kubernetes_version)
    node_argument(arguments)
    object_arguments(arguments)
    if arguments.snapshot is not None:
        _refuse_more(arguments, "--snapshot")
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
            kubelet=kubelet,
            profile=profile,
            selection=selection_of(arguments),
        )
        return state, print_problems(cluster.objects.problems)
    return _state_of_files(arguments, profile, kubelet, refuse_impossible=refuse_impossible)


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
        make = partial(kubelet_state, summary=read_summary(arguments.stats), kubelet=kubelet, where=arguments.stats)
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
