"""Evict a pod of a running node.

Its grace period is honoured. The pod stays Failed until its manifest changes.
"""

from __future__ import annotations

import argparse
import sys

from podqos.cli.node.client import NodeClient, add_pod_arguments, add_state_dir_option, path, pod_named

SUMMARY = "evict a pod, honouring its grace period"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos node evict``."""
    add_pod_arguments(parser)
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")
    add_state_dir_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Confirm, and evict."""
    namespace, name = pod_named(arguments)
    client = NodeClient(arguments.state_dir)
    if not arguments.yes and sys.stdin.isatty():
        print(f"Evict {namespace}/{name}? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            print("not evicted", file=sys.stderr)
            return 1
    client.get(path("evict", namespace, name), "POST")
    print(f"{namespace}/{name} is being evicted")
    return 0
