"""Print the JSON Schema of what a command prints with -o json, or of a file that podqos reads.

Without a name it lists them all.
"""

from __future__ import annotations

import argparse
import sys

from podqos.cli.command_list import COMMANDS, parser_of
from podqos.cli.output import print_json, schema_of
from podqos.cli.parser import did_you_mean, subcommands
from podqos.errors import InvalidOption

# What no command prints as its own: files that podqos reads, and what its pages contain.
_FURTHER = {
    "page": "podqos.page.page:PageValues",
    "podqos-config": "podqos.advice.checks.configuration:Configuration",
    "policy": "podqos.policy.model:Policy",
    "sweep": "podqos.runs.variations:Sweep",
}
_SCENARIO = "scenario"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the argument of ``podqos schema``."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="a command, such as explain or guard-report, or a file")


def run(arguments: argparse.Namespace) -> int:
    """Print a schema, or all names."""
    if arguments.name == _SCENARIO:
        from podqos.sim.scenario_format.schema import json_schema

        print_json(json_schema())
        return 0
    kinds = {**_of_commands(arguments.name), **_FURTHER}
    if arguments.name is None:
        print(*sorted([*kinds, _SCENARIO]), sep="\n", file=sys.stdout)
        return 0
    if arguments.name not in kinds:
        known = [*{**_of_commands(None), **_FURTHER}, _SCENARIO]
        fix = did_you_mean(arguments.name, known, "`podqos schema` lists the names")
        raise InvalidOption("there is no such schema", where=arguments.name, fix=fix)
    print_json(schema_of(kinds[arguments.name]))
    return 0


def _of_commands(name: str | None) -> dict[str, str]:
    """Return the types of what commands print, by ``command`` or ``command-subcommand``; with a name, of it alone."""
    found = {}
    for command in COMMANDS if name is None else [each for each in COMMANDS if each == name.partition("-")[0]]:
        parser, _ = parser_of(command)
        below = {f"{command}-{key}": sub for action in parser._actions for key, sub in subcommands(action).items()}  # noqa: SLF001
        for key, each in {command: parser, **below}.items():
            kind = each.get_default("json_type")
            if kind is not None:
                found[key] = kind
    return found
