"""Show the help of a command, such as `podqos help check` or `podqos help node run`, or list all commands."""

from __future__ import annotations

import argparse

from podqos.cli.command_list import COMMANDS, parser_of
from podqos.cli.parser import CommandParser, did_you_mean, subcommands
from podqos.errors import InvalidOption


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos help``."""
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="the command, and its subcommand if there is one")


def run(arguments: argparse.Namespace) -> int:
    """Print the requested help, and return the exit code."""
    if arguments.command:
        print(_parser(*arguments.command).format_help(), end="")
    else:
        from podqos.cli.overview import overview

        print(overview("podqos"))
    return 0


def _parser(name: str, *below: str) -> CommandParser:
    if name not in COMMANDS:
        fix = did_you_mean(name, COMMANDS, "`podqos help` lists the commands")
        raise InvalidOption(f"unknown command {name!r}", where="help", fix=fix)
    parser, _ = parser_of(name)
    for word in below:
        found = {each: sub for action in parser._actions for each, sub in subcommands(action).items()}  # noqa: SLF001
        if word not in found:
            fix = did_you_mean(word, found, f"one of {', '.join(found)}" if found else f"see `{parser.prog} --help`")
            raise InvalidOption(f"unknown command '{parser.prog} {word}'", where="help", fix=fix)
        parser = found[word]
    return parser
