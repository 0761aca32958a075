"""``--nodes`` and ``--node-capacity``: nodes given by number and capacity only, for commands that place pods."""

from __future__ import annotations

import argparse

from podqos.cli import options
from podqos.errors import InvalidOption

_MOST_NODES = 1_000_000


def add_counted_nodes_options(parser: options.Parser) -> None:
    """Declare both options."""
    parser.add_argument(
        "--nodes", type=int, metavar="N", help="add N nodes of --node-capacity to those in the manifests"
    )
    about = "capacity of each of the --nodes"
    options.add_value_option(parser, "--node-capacity", options.capacity_option, about, "cpu=16,memory=64Gi,pods=110")


def node_count(arguments: argparse.Namespace) -> int | None:
    """Return how many nodes are added, or None."""
    count: int | None = arguments.nodes
    if count is None:
        if arguments.node_capacity:
            raise InvalidOption("the number of nodes is missing", where="--node-capacity", fix="add --nodes N")
        return None
    if not 0 <= count <= _MOST_NODES:
        raise InvalidOption(f"{count} is not a valid number of nodes", where="--nodes", fix=f"use 1 to {_MOST_NODES}")
    if not arguments.node_capacity:
        raise InvalidOption(
            "the capacity of the nodes is missing", where="--nodes", fix="add --node-capacity cpu=16,memory=64Gi"
        )
    return count
