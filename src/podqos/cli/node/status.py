"""Show the status of a running node.

Capacity and requests, memory and pressure, headroom before eviction, the next victims, and the restrictions of this
machine.
"""

from __future__ import annotations

import argparse

from podqos.cli.node.client import NodeClient, add_state_dir_option
from podqos.cli.output import add_output_options, emit

SUMMARY = "its state, headroom before eviction, next victims"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos node status``."""
    add_state_dir_option(parser)
    add_output_options(parser, ("text", "json", "yaml"), "podqos.host.api.status_document:NodeStatus")


def run(arguments: argparse.Namespace) -> int:
    """Print the status."""
    from podqos.cli.node.victims import next_victims
    from podqos.host.api.status_document import NodeStatus
    from podqos.report.node.lines import status_lines

    client = NodeClient(arguments.state_dir)
    status = client.value("/status", NodeStatus)
    emit(status, arguments, lambda status, style: status_lines(status, next_victims(client, status), style))
    return 0
