"""Print the journal of a guard: what it saw, decided and did, what the kernel and the kubelet did, and why.

It is read from disk, so the guard does not need to run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from podqos.cli.guard.run_options import add_state_option
from podqos.cli.journals import add_journal_options, print_journal

SUMMARY = "print its journal: what it saw, decided and did, and why"
_LOOK_SECONDS = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos guard journal``."""
    add_state_option(parser)
    add_journal_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the journal."""

    def lines(since_us: int | None) -> Iterator[bytes]:
        return (line for line in _lines(arguments) if since_us is None or _time_us(line) >= since_us)

    return print_journal(arguments, lines)


def _lines(arguments: argparse.Namespace) -> Iterator[bytes]:
    from podqos.host.storage.tailing import lines_of
    from podqos.reading.guard_journal import files_of

    state = Path(arguments.state)
    files_of(state)
    goes_on = (lambda: True) if arguments.follow else None
    for piece in lines_of(lambda: files_of(state), last=arguments.tail, goes_on=goes_on):
        if piece is None:
            time.sleep(_LOOK_SECONDS)
        else:
            yield from piece.splitlines(keepends=True)


def _time_us(line: bytes) -> int:
    """Return when a line was written; an unreadable line matches any time."""
    from podqos.agent.journal import decode
    from podqos.errors import InputError

    try:
        (entry,) = decode(line)
    except (InputError, ValueError):
        return sys.maxsize
    return entry.time_us
