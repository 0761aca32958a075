"""The parser of every command: one line for a mistake, with the nearest option or choice, instead of a usage dump.

What is wrong with a command line is an ``InvalidOption``, as with any other input.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from podqos.cli.terminal import help_columns
from podqos.errors import InvalidOption

FILES = "files"
"""Where a command that reads manifests finds them, with -f or without."""
LOGS = "logs"
"""Where one that reads logs does."""
_MOST_LISTED = 12


class CommandParser(argparse.ArgumentParser):
    """A parser that takes no abbreviations and raises what is wrong."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - argparse's own
        super().__init__(*args, **{"formatter_class": formatter, "allow_abbrev": False, **kwargs})
        self.color = False  # as before Python 3.14

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]  # noqa: ANN401
        """Parse a command line; files may stand before, between and behind the options."""
        arguments, rest = self.parse_known_args(args, namespace)
        parsers = self.chosen(arguments)
        see = f"see `{parsers[-1].prog} --help`"
        options = [each for each in rest if each.startswith("-") and each not in {"-", "--"}]
        if options:
            name = options[0].partition("=")[0]
            known = [action for parser in parsers for action in parser._option_string_actions]  # noqa: SLF001
            raise InvalidOption(f"unknown option {name}", fix=did_you_mean(name, known, see))
        words = [each for each in rest if each != "--"]
        if words:
            taken = [
                action.dest for action in self._actions if action.dest in {FILES, LOGS} and not action.option_strings
            ]
            if not taken:
                raise InvalidOption(f"unexpected argument {words[0]!r}", fix=see)
            setattr(arguments, taken[0], [*getattr(arguments, taken[0]), *words])
        return arguments

    def error(self, message: str) -> NoReturn:
        """Raise what argparse found."""
        name, colon, what = message.removeprefix("argument ").partition(": ")
        if colon and message.startswith("argument "):
            raise InvalidOption(what, where=name, fix=f"see `{self.prog} --help`")
        below = [name for action in self._actions for name in subcommands(action)]
        fix = f"one of {', '.join(below)}" if below else f"see `{self.prog} --help`"
        raise InvalidOption(message, fix=fix)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Refuse what is none of the choices."""
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        listed = f"one of {', '.join(choices)}" if len(choices) <= _MOST_LISTED else f"see `{self.prog} --help`"
        where = "/".join(action.option_strings) or str(action.metavar or action.dest)
        raise InvalidOption(f"invalid value {value!r}", where=where, fix=did_you_mean(str(value), choices, listed))

    def chosen(self, arguments: argparse.Namespace) -> list[CommandParser]:
        """Return this parser, and that of the subcommand that was given."""
        below = [
            parser.chosen(arguments)
            for action in self._actions
            if getattr(arguments, action.dest, None) is not None
            for parser in subcommands(action, getattr(arguments, action.dest)).values()
        ]
        return [self, *(parser for parsers in below for parser in parsers)]


def formatter(prog: str) -> argparse.HelpFormatter:
    """Return a formatter that knows its width: argparse imports half an archiver to find it out."""
    return _Formatter(prog, width=help_columns())


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Wraps the paragraphs of a description; one with indented lines is a list, and its lines stay apart."""

    def add_argument(self, action: argparse.Action) -> None:
        """Count a subcommand with its indentation, as argparse itself does from Python 3.13 on."""
        super().add_argument(action)
        for below in self._iter_indented_subactions(action):
            length = len(self._format_action_invocation(below)) + self._current_indent
            self._action_max_length = max(self._action_max_length, length)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """Name the value once, not after each spelling of the option."""
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        from podqos.report.text.style import fitted

        paragraphs = [
            paragraph if "\n " in paragraph or paragraph.startswith(" ") else " ".join(paragraph.split())
            for paragraph in text.strip("\n").split("\n\n")
        ]
        lines = "\n\n".join(paragraphs).split("\n")
        return "\n".join(fitted((f"{indent}{line}".rstrip() for line in lines), width))


def subcommands(action: argparse.Action, chosen: str | None = None) -> dict[str, CommandParser]:
    """Return the parsers that an action chooses among, or the one chosen; none where it is no choice of commands."""
    if not isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - argparse has no public name for it
        return {}
    return {name: parser for name, parser in action.choices.items() if chosen in {None, name}}


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return how to correct a mistyped word."""
    from podqos.wording import nearest

    near = nearest(name, known)
    return f"did you mean {near}?" if near else otherwise
