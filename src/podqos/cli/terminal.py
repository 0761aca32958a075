"""Whether output goes to a terminal or to a program, and how wide and colourful it may be."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TextIO

from msgspec.structs import replace

from podqos.text.style import Style

_USUAL_COLUMNS = 80


def add_colour_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--color``, spelled as in other tools."""
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="when to colour the output; auto: on a terminal, unless NO_COLOR is set or TERM is dumb (default: auto)",
    )


def style_of(arguments: argparse.Namespace) -> Style:
    """Return the style that a command's options ask for: colours, headings, line width."""
    given = vars(arguments)
    style = replace(style_for(arguments.color), has_headers=not given.get("no_headers"))
    is_wide = given.get("output") == "wide" or bool(given.get("wide"))
    return replace(style, width=None, is_wide=True) if is_wide else style


def style_for(colour: str) -> Style:
    """Return the style for standard output."""
    wants_none = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    wanted = colour == "always" or (colour == "auto" and sys.stdout.isatty() and not wants_none)
    return Style(colour=wanted, width=output_columns(sys.stdout), is_ascii=not _can_write("→"))


def _can_write(text: str) -> bool:
    """Whether standard output can carry this text as it is."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def output_columns(stream: TextIO) -> int | None:
    """Return the maximum width; None for a file or a pipe, whose lines are never wrapped, for ``grep``."""
    return _columns() if stream.isatty() else None


def help_columns() -> int:
    """Return the width for help texts, which are always wrapped."""
    return output_columns(sys.stdout) or _USUAL_COLUMNS


def _columns() -> int:
    """Return the width of the terminal; ``COLUMNS`` wins, as for other commands. One that does not know says 0."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    return os.get_terminal_size(sys.stdout.fileno()).columns or _USUAL_COLUMNS
