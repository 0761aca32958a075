"""Print what a container of a running node has written."""

from __future__ import annotations

import argparse
import sys

import msgspec

from podqos.cli.node.client import NodeClient, add_pod_arguments, add_state_dir_option, path, pod_named
from podqos.errors import InputError, InvalidOption

SUMMARY = "what a container has written"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos node logs``."""
    add_pod_arguments(parser)
    parser.add_argument("-c", "--container", metavar="NAME", help="the container (default: the first)")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the container ends")
    parser.add_argument("--tail", metavar="LINES", type=int, help="the last lines only")
    parser.add_argument("-p", "--previous", action="store_true", help="of the run before the last restart")
    parser.add_argument("--timestamps", action="store_true", help="with time and stream, as CRI writes them")
    add_state_dir_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the log."""
    if arguments.tail is not None and arguments.tail < 0:
        raise InvalidOption(f"{arguments.tail} lines", where="--tail", fix="0 or more")
    namespace, name = pod_named(arguments)
    client = NodeClient(arguments.state_dir)
    container = arguments.container or _first_container(client, namespace, name)
    target = path(
        "containerLogs",
        namespace,
        name,
        container,
        tailLines=arguments.tail,
        follow=arguments.follow,
        previous=arguments.previous,
        timestamps=arguments.timestamps,
    )
    for line in client.lines(target, is_endless=arguments.follow):
        sys.stdout.buffer.write(line)
        if arguments.follow:
            sys.stdout.buffer.flush()
    sys.stdout.buffer.flush()
    return 0


class _Named(msgspec.Struct):
    name: str = ""
    namespace: str = "default"


class _Spec(msgspec.Struct):
    containers: list[_Named] = []


class _Pod(msgspec.Struct):
    metadata: _Named
    spec: _Spec


class _Pods(msgspec.Struct):
    items: list[_Pod] = []


def _first_container(client: NodeClient, namespace: str, name: str) -> str:
    for pod in client.value("/pods", _Pods).items:
        if (pod.metadata.namespace, pod.metadata.name) == (namespace, name):
            names = [container.name for container in pod.spec.containers]
            if len(names) > 1:
                print(f"podqos: {names[0]} of {', '.join(names)}; choose with -c", file=sys.stderr)
            return names[0]
    raise InputError(f"there is no pod {namespace}/{name}", fix="`podqos node pods` lists what there is")
