"""Print the journal of a running node: what it saw, decided and did, and why."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime

from podqos.cli.node.client import add_lines_options, add_state_dir_option, print_lines
from podqos.controls import harmless, one_line
from podqos.errors import InputError, InvalidOption
from podqos.model.go_text import parse_duration_ns

SUMMARY = "print its journal: what it saw, decided and did, and why"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos node journal``."""
    add_state_dir_option(parser)
    add_lines_options(parser, "keep printing new entries")
    add_journal_options(parser)


def add_journal_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of every command that prints a journal."""
    parser.add_argument("--since", metavar="TIME", help="start at this time: 10m (ago), 2h30m, or 2026-01-31T12:00:00Z")
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "jsonl"),
        default="text",
        help="text, or as stored (default: text)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the journal."""
    since_us = since_option(arguments.since)
    print_lines(arguments, "journal", shown=bytes if arguments.output == "jsonl" else in_words, sinceUs=since_us)
    return 0


def in_words(line: bytes) -> bytes:
    """Return a journal line for people; an unreadable line stays as it is."""
    from podqos.agent.journal import decode
    from podqos.words.journal import line as words

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
