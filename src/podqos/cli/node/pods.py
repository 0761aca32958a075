"""List the pods of a running node: class, phase, restarts, memory against request and limit, oom_score_adj."""

from __future__ import annotations

import argparse
import sys

from podqos.cli.node.client import NodeClient, add_state_dir_option
from podqos.cli.output import add_headers_option, print_lines
from podqos.cli.terminal import add_colour_option, style_of

SUMMARY = "list its pods: usage, requests, limits, oom_score_adj"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos node pods``."""
    add_state_dir_option(parser)
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "wide", "json", "yaml"),
        default="table",
        help="json, yaml: the pods as a Kubernetes PodList with status (default: table)",
    )
    add_headers_option(parser)
    add_colour_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the pods."""
    import msgspec

    client = NodeClient(arguments.state_dir)
    if arguments.output == "json":
        print(msgspec.json.format(client.get("/pods"), indent=2).decode())
        return 0
    if arguments.output == "yaml":
        from podqos.manifest.encoding import yaml_text

        sys.stdout.write(yaml_text(msgspec.json.decode(client.get("/pods"))))
        return 0
    from podqos.host.api.status_document import NodeStatus
    from podqos.report.node.lines import pods_table

    status = client.value("/status", NodeStatus)
    style = style_of(arguments)
    print_lines(pods_table(status, style, is_wide=style.is_wide), style)
    return 0
