"""Journals of a node and of a guard, for people: the options of the commands that print one, and its lines in words."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from podqos.controls import harmless, one_line
from podqos.errors import InputError, InvalidOption
from podqos.model.go_text import parse_duration_ns

NODE_STATE = "/var/lib/podqos"
"""Where a node keeps its journal, and the socket at which it answers."""


def add_journal_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of every command that prints a journal."""
    parser.add_argument("-f", "--follow", action="store_true", help="keep printing new entries")
    parser.add_argument("--tail", metavar="LINES", type=int, help="only the last LINES lines")
    parser.add_argument("--since", metavar="TIME", help="start at this time: 10m (ago), 2h30m, or 2026-01-31T12:00:00Z")
    about = "text, or as stored (default: text)"
    parser.add_argument("-o", "--output", choices=("text", "jsonl"), default="text", help=about)


def print_journal(arguments: argparse.Namespace, lines: Callable[[int | None], Iterable[bytes]]) -> int:
    """Print the lines of a journal as they come, and return the exit code; ``lines`` takes the time of the first."""
    if arguments.tail is not None and arguments.tail < 0:
        raise InvalidOption(f"{arguments.tail} lines", where="--tail", fix="0 or more")
    shown = bytes if arguments.output == "jsonl" else in_words
    try:
        for line in lines(since_option(arguments.since)):
            sys.stdout.buffer.write(shown(line))
            if arguments.follow:
                sys.stdout.buffer.flush()
        sys.stdout.buffer.flush()
    except KeyboardInterrupt:
        if not arguments.follow:
            raise
    return 0


def in_words(line: bytes) -> bytes:
    """Return a journal line for people; an unreadable line stays as it is."""
    from podqos.agent.journal import decode
    from podqos.text.journal import line as words

    try:
        (entry,) = decode(line)
        at = datetime.fromtimestamp(entry.time_us / 1e6, UTC).isoformat(sep=" ", timespec="milliseconds")
        text = f"{at.removesuffix('+00:00')}  {words(entry)}"
    except (InputError, ValueError, OverflowError, OSError):
        text = line.decode(errors="replace").removesuffix("\n")  # damaged, or from another version
    return harmless(f"{one_line(text)}\n").encode()


def since_option(text: str | None) -> int | None:
    """Return a time given as a timestamp or as a duration ago, or None."""
    if text is None:
        return None
    try:
        return max(0, time.time_ns() - abs(parse_duration_ns(text))) // 1000
    except ValueError:
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidOption(f"{text!r}", where="--since", fix="for example 10m or 2026-01-31T12:00:00Z") from None
    return max(0, int((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * 1e6))
