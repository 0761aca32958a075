"""Print a script that makes your shell complete commands, options, values and files.

To set it up:
  bash  echo 'source <(podqos completion bash)' >> ~/.bashrc
  zsh   podqos completion zsh > "${fpath[1]}/_podqos"
  fish  podqos completion fish > ~/.config/fish/completions/podqos.fish
"""

from __future__ import annotations

import argparse
import re

from podqos.cli.command_list import COMMANDS, parser_of
from podqos.cli.parser import CommandParser, subcommands

_SHELLS = ("bash", "zsh", "fish")
_FILE = re.compile(r"\b(FILE|DIR|PATH|OLD|NEW)\b")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos completion``."""
    parser.add_argument("shell", choices=_SHELLS, metavar="SHELL", help=f"one of {', '.join(_SHELLS)}")


def run(arguments: argparse.Namespace) -> int:
    """Print the script, and return the exit code."""
    from shtab import complete

    root = CommandParser(prog="podqos")
    root.add_argument("--version", "-V", action="store_true", help="print the version")
    commands = root.add_subparsers()
    for name, (_, about) in COMMANDS.items():
        parser = commands.add_parser(name, help=about)
        parser_of(name)[1].add_arguments(parser)
        _prepare(parser)
    print(complete(root, arguments.shell))
    return 0


def _prepare(parser: CommandParser) -> None:
    """Tell shtab which values are files, and those that are not fixed choices."""
    from shtab import FILE

    from podqos.reading.shipped_scenarios import shipped_scenarios

    for action in parser._actions:  # noqa: SLF001 - argparse names none of it
        for below in subcommands(action).values():
            _prepare(below)
        if str(action.metavar).startswith("SCENARIO"):
            action.choices = [*shipped_scenarios()]
        elif action.metavar == "COMMAND" and action.choices is None:
            action.choices = [*COMMANDS]
        elif _FILE.search(str(action.metavar)):
            action.complete = FILE  # type: ignore[attr-defined]
