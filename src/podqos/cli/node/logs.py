"""Print the log of a container of a running node."""

from __future__ import annotations

import argparse
import sys

from podqos.cli.node.client import (
    NodeClient,
    add_lines_options,
    add_pod_arguments,
    add_state_dir_option,
    pod_named,
    print_lines,
)
from podqos.errors import InputError

SUMMARY = "print a container's log"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos node logs``."""
    add_pod_arguments(parser)
    parser.add_argument("-c", "--container", metavar="NAME", help="the container (default: the first)")
    add_lines_options(parser, "keep printing until the container exits")
    parser.add_argument("-p", "--previous", action="store_true", help="the run before the last restart")
    parser.add_argument("--timestamps", action="store_true", help="show time and stream, as in the CRI log format")
    add_state_dir_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the log."""
    namespace, name = pod_named(arguments)
    container = arguments.container or _first_container(NodeClient(arguments.state_dir), namespace, name)
    previous, timestamps = arguments.previous, arguments.timestamps
    print_lines(arguments, "containerLogs", namespace, name, container, previous=previous, timestamps=timestamps)
    return 0


def _first_container(client: NodeClient, namespace: str, name: str) -> str:
    from podqos.host.api.status_document import PodListDocument

    for pod in client.value("/pods", PodListDocument).items:
        if (pod.metadata.namespace, pod.metadata.name) == (namespace, name):
            names = [container.name for container in pod.spec.containers]
            if len(names) > 1:
                print(f"podqos: showing {names[0]} of {', '.join(names)}; choose with -c", file=sys.stderr)
            return names[0]
    raise InputError(f"no such pod: {namespace}/{name}", fix="`podqos node pods` lists them")
