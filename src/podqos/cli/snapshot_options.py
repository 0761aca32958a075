"""A node's pods and what they use: from manifests and a table, from the kubelet's answers, or from one file."""

from __future__ import annotations

import argparse
from functools import partial

from podqos.cli.inputs import given_files, print_problems, read_objects
from podqos.cli.options import add_filename_option, amount_option, stated_classes, stated_node_memory
from podqos.errors import InvalidOption
from podqos.library.node_state import NodeState, kubelet_state, node_state, read_state, usage_rows
from podqos.model.profile import Profile


def add_snapshot_options(parser: argparse.ArgumentParser) -> None:
    """Declare where the pods of a node and their figures come from."""
    add_filename_option(parser)
    parser.add_argument(
        "--usage",
        metavar="FILE",
        help="what the pods of the manifests use, as CSV or YAML (default: what they request)",
    )
    parser.add_argument("--stats", metavar="FILE", help="the answer of the kubelet's /stats/summary")
    parser.add_argument("--pods", metavar="FILE", help="the answer of the kubelet's /pods, or kubectl get pods -o json")
    parser.add_argument("--snapshot", metavar="FILE", help="node, pods and usage in one file")
    parser.add_argument("--node", metavar="NAME", help="the node whose pods to take, where the files hold several")
    parser.add_argument(
        "--node-memory",
        metavar="QUANTITY",
        help="memory of the node (default: as in the figures, of the smallest Node in the files, or 64Gi)",
    )
    parser.add_argument(
        "--system-memory", metavar="QUANTITY", help="memory used outside all pods (default: as in the figures, or none)"
    )


def state_of(arguments: argparse.Namespace, profile: Profile) -> tuple[NodeState, int]:
    """Return the node that the options describe, and how many errors were reported on the way."""
    given = {"--usage": arguments.usage, "--stats": arguments.stats, "--snapshot": arguments.snapshot}
    chosen = [option for option, value in given.items() if value is not None]
    if len(chosen) > 1:
        what = f"{' and '.join(chosen)} exclude each other"
        raise InvalidOption(what, fix="give --usage with -f, or --stats with --pods, or --snapshot")
    if not chosen and not arguments.files and not arguments.kustomize:
        raise InvalidOption("nothing says which pods there are", fix="give -f, or --stats with --pods, or --snapshot")
    if arguments.files and chosen and arguments.usage is None:
        raise InvalidOption(f"-f and {chosen[0]} exclude each other", fix="manifests go with --usage")
    if arguments.snapshot is not None:
        return read_state(arguments.snapshot), 0
    if arguments.stats is not None and arguments.pods is None:
        raise InvalidOption("the pods are missing", where="--stats", fix="add --pods with the answer of /pods")
    memory_bytes, system = stated_node_memory(arguments.node_memory), arguments.system_memory
    system_bytes = None if system is None else amount_option(system, "--system-memory")
    if arguments.stats is None:
        rows = None if arguments.usage is None else usage_rows(arguments.usage)
        inputs = given_files(arguments, "look at", in_order_of_apply=True)
        objects = read_objects(inputs, stated_classes(arguments))
        make = partial(node_state, usage=rows)
    else:
        objects = read_objects(arguments.pods)
        make = partial(kubelet_state, stats=arguments.stats)
    try:
        state = make(
            objects,
            node=arguments.node,
            node_memory_bytes=memory_bytes,
            system_memory_bytes=system_bytes,
            profile=profile,
        )
    finally:
        errors = print_problems(objects.problems)
    return state, errors
