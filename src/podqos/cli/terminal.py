"""Whether output goes to a terminal or to a program, and how wide and colourful it may be."""

from __future__ import annotations

import argparse
import os
import sys

from podqos.report.text.style import Style


def add_colour_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--color``, spelled as other commands spell it."""
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colour the output; auto: on a terminal, unless NO_COLOR is set (default: auto)",
    )


def style_for(colour: str) -> Style:
    """Return how to write on standard output."""
    terminal = sys.stdout.isatty()
    wanted = colour == "always" or (colour == "auto" and terminal and not os.environ.get("NO_COLOR"))
    return Style(colour=wanted, width=_columns() if terminal else None)


def help_columns() -> int:
    """Return the width for help texts, which are wrapped wherever they go."""
    return _columns() if sys.stdout.isatty() else 80


def _columns() -> int:
    """Return the width of the terminal; ``COLUMNS`` wins, as for other commands."""
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isdigit() and int(given) else os.get_terminal_size(sys.stdout.fileno()).columns
