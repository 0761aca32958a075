"""Options and arguments of every command as values, read from the parsers: for pages of the reference and for tests."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from enum import Enum, auto

from msgspec import Struct

from podqos.cli.command_list import COMMANDS, parser_of
from podqos.cli.parser import CommandParser, subcommands

_FILE = re.compile(r"\b(FILE|DIR|PATH|OLD|NEW)\b")


class Values(Enum):
    """The kinds of values an argument can have."""

    NONE = auto()
    WORDS = auto()
    FILES = auto()
    ANYTHING = auto()


class Argument(Struct, frozen=True):
    """An option, or a positional argument."""

    names: tuple[str, ...]
    """As written; empty for a positional argument."""
    value: str
    """Its value's placeholder in help texts; empty for a flag."""
    words: tuple[str, ...]
    """The values it can have, if they are known."""
    about: str
    is_repeated: bool
    is_optional: bool

    @property
    def values(self) -> Values:
        """The kind of values that complete it."""
        if self.words:
            return Values.WORDS
        if not self.value:
            return Values.NONE
        return Values.FILES if _FILE.search(self.value) else Values.ANYTHING


class OptionGroup(Struct, frozen=True):
    """Options that belong together."""

    title: str
    options: tuple[Argument, ...]


class Grammar(Struct, frozen=True):
    """A command, or a subcommand."""

    name: str
    summary: str
    description: str
    groups: tuple[OptionGroup, ...]
    positionals: tuple[Argument, ...]
    below: tuple[Grammar, ...]

    @property
    def options(self) -> tuple[Argument, ...]:
        """All its options."""
        return tuple(option for group in self.groups for option in group.options)


def grammars() -> dict[str, Grammar]:
    """Return all commands by name."""
    return {name: grammar(name) for name in COMMANDS}


def grammar(name: str) -> Grammar:
    """Return one command."""
    return _grammar(name, COMMANDS[name][1], parser_of(name)[0])


def _grammar(name: str, summary: str, parser: CommandParser) -> Grammar:
    groups = [
        OptionGroup(
            group.title or "",
            tuple(_argument(action) for action in group._group_actions if action.option_strings),
        )
        for group in parser._action_groups
    ]
    positionals = [action for action in parser._actions if not action.option_strings and not subcommands(action)]
    return Grammar(
        name=name,
        summary=summary,
        description=parser.description or "",
        groups=tuple(group for group in groups if group.options),
        positionals=tuple(map(_argument, positionals)),
        below=tuple(_below(parser)),
    )


def _below(parser: CommandParser) -> Iterator[Grammar]:
    for action in parser._actions:
        abouts = {each.dest: each.help or "" for each in getattr(action, "_choices_actions", ())}
        for name, sub in subcommands(action).items():
            yield _grammar(name, abouts[name], sub)


def _argument(action: argparse.Action) -> Argument:
    words = tuple(map(str, action.choices or _known_words(action)))
    takes_value = action.nargs != 0
    stands_for = action.metavar or ("|".join(words) if words else action.dest.upper())
    return Argument(
        names=tuple(action.option_strings),
        value=str(stands_for) if takes_value else "",
        words=words if takes_value else (),
        about=(action.help or "").replace("%%", "%"),
        is_repeated=isinstance(action, argparse._AppendAction) or action.nargs in {"*", "+"},
        is_optional=bool(action.option_strings) or action.nargs in {"*", "?"},
    )


def _known_words(action: argparse.Action) -> tuple[str, ...]:
    """Return known values of an argument without fixed choices, such as scenarios, which may also be files."""
    if action.metavar == "SCENARIO":
        from podqos.reading.shipped_scenarios import shipped_scenarios

        return tuple(shipped_scenarios())
    return tuple(COMMANDS) if action.metavar == "COMMAND" and action.dest == "command" else ()
