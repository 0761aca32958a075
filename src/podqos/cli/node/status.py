"""Say how a running node is.

What it has and what is asked of it, memory and pressure, how far it is from evicting, who would be next, and what it
cannot do on this machine.
"""

from __future__ import annotations

import argparse

from podqos.cli.node.client import NodeClient, add_state_dir_option
from podqos.cli.options import add_schema_option
from podqos.cli.terminal import add_colour_option, style_for

SUMMARY = "how the node is, how far from evicting, who would be next"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos node status``."""
    add_state_dir_option(parser)
    parser.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text", help="(default: text)")
    add_schema_option(parser)
    add_colour_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the status."""
    from podqos.cli.output import print_schema, print_value
    from podqos.host.api.status_document import NodeStatus

    if arguments.schema:
        print_schema(NodeStatus)
        return 0
    client = NodeClient(arguments.state_dir)
    status = client.value("/status", NodeStatus)
    if arguments.output != "text":
        print_value(status, arguments.output)
        return 0
    from podqos.cli.node.victims import next_victims
    from podqos.report.node.lines import status_lines

    print("\n".join(status_lines(status, next_victims(client, status), style_for(arguments.color))))
    return 0
