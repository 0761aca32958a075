"""Live view of a running node: pods by class with usage against request and limit, pressure, next victims.

On a terminal the view refreshes until q or Ctrl-C. Elsewhere, or with --once, it is printed once.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from podqos.cli.node.client import NodeClient, add_state_dir_option
from podqos.cli.output import print_lines
from podqos.cli.screen import whole_screen
from podqos.cli.terminal import add_colour_option, style_for
from podqos.errors import InvalidOption

if TYPE_CHECKING:
    from podqos.host.api.status_document import NodeStatus

SUMMARY = "live view: usage against request and limit, pressure, next victims"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos node top``."""
    add_state_dir_option(parser)
    parser.add_argument("--once", action="store_true", help="print once and exit")
    parser.add_argument(
        "-d", "--delay", metavar="SECONDS", type=float, default=2.0, help="refresh interval in seconds (default: 2)"
    )
    add_colour_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show the view."""
    if not 0.1 <= arguments.delay <= 3600:
        raise InvalidOption(f"{arguments.delay} seconds", where="--delay", fix="from 0.1 to 3600")
    client = NodeClient(arguments.state_dir)
    view = _View(client, arguments.color)
    lines = view.lines(None)
    if arguments.once or not sys.stdout.isatty():
        print_lines(lines)
        return 0
    with whole_screen() as screen:
        while True:
            screen.draw(view.lines(screen.height))
            if screen.is_left(arguments.delay):
                return 0


class _View:
    """Queries the node and keeps the last answer, to compute CPU usage."""

    def __init__(self, client: NodeClient, colour: str) -> None:
        self._client, self._colour = client, colour
        self._last: NodeStatus | None = None

    def lines(self, height: int | None) -> list[str]:
        """Return the current view."""
        from podqos.cli.node.victims import next_victims
        from podqos.host.api.status_document import NodeStatus
        from podqos.report.node.top import screen

        status = self._client.value("/status", NodeStatus)
        victims = next_victims(self._client, status)
        rates = {} if self._last is None else _cpu_milli(self._last, status)
        self._last = status
        return screen(status, victims, rates, style_for(self._colour), height)


def _cpu_milli(before: NodeStatus, now: NodeStatus) -> dict[str, int]:
    """Return the CPU usage of pods between two samples, in millicores, by uid."""
    elapsed_us = max(1, now.now_us - before.now_us)
    used = {pod.uid: pod.cpu_usage_ns for pod in before.pods}
    rates = {}
    for pod in now.pods:
        earlier = used.get(pod.uid)
        if pod.cpu_usage_ns is not None and earlier is not None:
            rates[pod.uid] = max(0, pod.cpu_usage_ns - earlier) // elapsed_us
    return rates
