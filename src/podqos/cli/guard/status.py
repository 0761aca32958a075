"""Show the status of this node's guard: its mode, thresholds, usage, known pods and reaction times.

Exit codes: 0, or 3 if no guard is running here.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from podqos.cli.guard.run_options import add_run_option
from podqos.cli.main import EXIT_HOST, EXIT_OK
from podqos.cli.output import add_output_options, emit
from podqos.errors import HostError

SUMMARY = "its mode, thresholds, usage, known pods and reaction times"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos guard status``."""
    add_run_option(parser)
    add_output_options(parser, ("text", "json", "yaml"), "podqos.agent.guard_status:GuardStatus")


def run(arguments: argparse.Namespace) -> int:
    """Print the status."""
    from podqos.agent.guard_status import FILE
    from podqos.questions.guard import status_lines
    from podqos.reading.guard_journal import read_status

    file = Path(arguments.run_dir) / FILE
    try:
        status = read_status(Path(arguments.run_dir))
    except OSError as error:
        raise HostError(f"{file}: {error.strerror or error}") from error
    if status is None:
        raise HostError(
            f"no guard is running: {file} does not exist; start one with `podqos guard run`, or give its --run DIR"
        )
    now_us = time.time_ns() // 1000
    emit(status, arguments, lambda status, style: status_lines(status, now_us, style))
    return EXIT_HOST if status.is_stale(now_us) else EXIT_OK
