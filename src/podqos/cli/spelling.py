"""How the running command spells the fields in a text: ``node_memory`` is ``--node-memory``.

What answers, readings and worlds say about a request names its fields (``podqos.naming``); here alone they become
options, those of the command that runs. A field is the ``dest`` of an option, or its name with underscores.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence

from podqos.cli.parser import CommandParser, subcommands
from podqos.naming import Field, NamingText

_BETWEEN = re.compile(r"(, or | or |; )")
_OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][a-zA-Z-]*")
_COMMAND_LINE = re.compile(r"`[^`]*`|\b(?:podqos|kubectl) .*")

_running: list[CommandParser] = []
"""A process runs one command, in all of its threads."""


def runs(parser: CommandParser, words: Sequence[str]) -> None:
    """Spell options as this command and its subcommand do."""
    _running[:] = _named(parser, frozenset(words))


def spelled(text: str) -> str:
    """Return a text with its fields spelled as options of the running command."""
    return text.spelled(option, without_option) if isinstance(text, NamingText) else str(text)


def option(field: Field) -> str | None:
    """Return the running command's option for a field, or None."""
    actions = [action for parser in reversed(_running) for action in parser._actions]  # noqa: SLF001
    found = _spelling(field.name, [action for action in actions if action.option_strings])
    return f"{found} {field.value}" if found and field.value else found


def offered(how: str) -> str:
    """Return the ways to state something that the running command has options for; empty if there are none.

    Published texts (``stateWith``) name the options of all commands. A command line in full is as good everywhere.
    """
    known = {name for parser in _running for action in parser._actions for name in action.option_strings}  # noqa: SLF001
    ways = _BETWEEN.split(how)
    has = [known.issuperset(_OPTION.findall(_COMMAND_LINE.sub("", way))) or not known for way in ways[::2]]
    kept = [text for index, text in enumerate(ways) if has[(index + 1) // 2]]
    return "".join(kept[1:] if kept and not has[0] else kept)


def without_option(field: Field) -> str:
    """Return a name for a field that the running command has no option for; in tests that is an error."""
    return str(field)


def _spelling(name: str, actions: Sequence[argparse.Action]) -> str | None:
    for action in actions:
        if action.dest == name:
            return action.option_strings[0]
    long = f"--{name.replace('_', '-')}"
    return long if any(long in action.option_strings for action in actions) else None


def _named(parser: CommandParser, words: frozenset[str]) -> Iterator[CommandParser]:
    yield parser
    for action in parser._actions:  # noqa: SLF001
        for name, below in subcommands(action).items():
            if name in words:
                yield from _named(below, words)
