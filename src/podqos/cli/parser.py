"""The parser of every command: a mistake gets one line with the nearest option or choice, not a usage dump.

What is wrong with a command line is an ``InvalidOption``, as with any other input.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from podqos.cli.terminal import help_columns
from podqos.errors import InvalidOption

FILES = "files"
"""The attribute with a command's manifests, given with -f or without."""
LOGS = "logs"
"""The attribute with a command's logs."""
_RECURSIVE = ("-R", "--recursive")
"""Accepted because who knows kubectl types it: directories are always read with all below them."""
_MOST_LISTED = 12
_NUMBER = re.compile(r"invalid int value: (.*)")
# Formats of kubectl that are small languages.
_TEMPLATES = ("jsonpath", "custom-columns", "go-template")
# What other tools call severities.
_SEVERITIES = {
    **dict.fromkeys(("high", "critical", "severe", "fatal", "blocker", "major", "err", "errors"), "error"),
    **dict.fromkeys(("medium", "moderate", "minor", "warn", "warnings"), "warning"),
    **dict.fromkeys(("low", "note", "notice", "informational", "infos"), "info"),
    **dict.fromkeys(("none", "off", "no", "false"), "never"),
}

# What podqos leaves to other programs and commands, by the option or subcommand that people look for.
_INSTEAD = {
    "podqos scenario from-cluster": "`podqos scenario new NAME --from-cluster` writes it",
    "podqos policy init": "docs/how-to/policy.md has a policy to begin with",
    "podqos guard explain": "`podqos guard journal` has each decision and its figures",
    **dict.fromkeys(("podqos node install", "podqos guard install"), "deploy/systemd has a unit to adapt"),
    "podqos node run --runtime": "containers are plain processes: for images use a kubelet, k3s or `podman kube play`",
    "--schema": "`podqos schema NAME` prints it",
    "podqos policy schema": "`podqos schema policy` prints it",
    "podqos scenario schema": "`podqos schema scenario` prints it",
    "--strict": "--fail-on warning",
    "--require": "--fail-on CLASS fails if a pod has this class or a lower one",
    "--cases": "`podqos explain -f scenarios/sources/cases.yaml -o table` has every combination",
    "--order": "pods queue by priority, as in the scheduler",
    **dict.fromkeys(
        ("--values", "--set", "--helm-args", "--render-timeout"),
        "give what Helm prints: `helm template … | podqos check -`",
    ),
    "--kustomize-args": "give what kustomize prints: `kubectl kustomize … | podqos check -`",
    "podqos advise --node": "`podqos thresholds --advise` advises kubelet settings",
    "--ask": "describe workloads with annotations or --describe FILE",
    "--price": "multiply the change in requests (-o csv) by what your nodes cost",
    "--prometheus-tenant": "write --prometheus-header X-Scope-OrgID:TENANT",
    "--prometheus-insecure": "give the CA with --prometheus-ca",
    **dict.fromkeys(
        ("--prometheus-user", "--prometheus-password-file"),
        "write --prometheus-header Authorization:@FILE; the file has `Basic` and the base64 of user:password",
    ),
    **dict.fromkeys(("--kind", "--name"), "name the object as KIND/NAME, such as deploy/web, or select with -l"),
    **dict.fromkeys(("-w", "--watch"), "run the command under `watch`, or open `podqos ui`"),
    "--results": "finished runs are not kept; `> FILE` keeps what is printed",
}


class CommandParser(argparse.ArgumentParser):
    """A parser that accepts no abbreviations and raises errors."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - argparse's own
        super().__init__(*args, **{"formatter_class": formatter, "allow_abbrev": False, **kwargs})
        self.color = False  # as before Python 3.14

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]  # noqa: ANN401
        """Parse a command line; files may come before, between and after the options."""
        given = sys.argv[1:] if args is None else args
        split = [part for word in given for part in (("-R", f"-{word[2:]}") if word.startswith("-Rf") else (word,))]
        arguments, rest = self.parse_known_args(split, namespace)
        parsers = self.chosen(arguments)
        see = f"see `{parsers[-1].prog} --help`"
        if "--filename" in {name for parser in parsers for name in parser._option_string_actions}:  # noqa: SLF001
            rest = [each for each in rest if each not in _RECURSIVE]
        options = [each for each in rest if each.startswith("-") and each not in {"-", "--"}]
        if options:
            name = options[0].partition("=")[0]
            known = [action for parser in parsers for action in parser._option_string_actions]  # noqa: SLF001
            raise InvalidOption(
                f"unknown option {name}",
                fix=_INSTEAD.get(f"{parsers[-1].prog} {name}", _INSTEAD.get(name)) or did_you_mean(name, known, see),
            )
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
        """Raise the error that argparse found."""
        name, colon, what = message.removeprefix("argument ").partition(": ")
        if colon and message.startswith("argument "):
            what = _NUMBER.sub(r"\1 is not a whole number", what)
            raise InvalidOption(what, where=name, fix=f"see `{self.prog} --help`")
        below = [name for action in self._actions for name in subcommands(action)]
        fix = f"one of {', '.join(below)}" if below else f"see `{self.prog} --help`"
        raise InvalidOption(message, fix=fix)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:  # noqa: ANN401 - argparse's own
        """Take a choice in any case."""
        if action.choices is not None and not subcommands(action):
            alike = [str(choice) for choice in action.choices if str(choice).lower() == arg_string.lower()]
            arg_string = alike[0] if len(alike) == 1 else arg_string
        return super()._get_value(action, arg_string)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Reject a value that is not one of the choices."""
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        listed = f"one of {', '.join(choices)}" if len(choices) <= _MOST_LISTED else f"see `{self.prog} --help`"
        where = "/".join(action.option_strings) or str(action.metavar or action.dest)
        meant = _SEVERITIES.get(str(value).lower(), str(value))
        if gone := subcommands(action) and _INSTEAD.get(f"{self.prog} {value}"):
            raise InvalidOption(f"invalid value {value!r}", where=where, fix=gone)
        if str(value).startswith(_TEMPLATES) and "json" in choices:
            raise InvalidOption(f"invalid value {value!r}", where=where, fix="pipe -o json to jq")
        if value == "html" and "json" in choices:
            raise InvalidOption(f"invalid value {value!r}", where=where, fix="`podqos ui … --html FILE` writes a page")
        if value == "helm" and "kustomize" in choices:
            fix = "charts name their values differently: write the advised amounts into yours"
            raise InvalidOption(f"invalid value {value!r}", where=where, fix=fix)
        raise InvalidOption(
            f"invalid value {value!r}",
            where=where,
            fix=f"did you mean {meant}?" if meant in choices else did_you_mean(str(value), choices, listed),
        )

    def chosen(self, arguments: argparse.Namespace) -> list[CommandParser]:
        """Return this parser and that of the given subcommand."""
        below = [
            parser.chosen(arguments)
            for action in self._actions
            if getattr(arguments, action.dest, None) is not None
            for parser in subcommands(action, getattr(arguments, action.dest)).values()
        ]
        return [self, *(parser for parsers in below for parser in parsers)]


def formatter(prog: str) -> argparse.HelpFormatter:
    """Return a formatter with a known width: argparse imports shutil and its archivers to find it out."""
    return _Formatter(prog, width=help_columns())


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Wraps the paragraphs of a description, except lists, which have indented lines."""

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
        from podqos.text.style import fitted

        paragraphs = [
            paragraph if "\n " in paragraph or paragraph.startswith(" ") else " ".join(paragraph.split())
            for paragraph in text.strip("\n").split("\n\n")
        ]
        lines = "\n\n".join(paragraphs).split("\n")
        return "\n".join(fitted((f"{indent}{line}".rstrip() for line in lines), width))


def add_action(
    actions: argparse._SubParsersAction[Any],
    name: str,
    about: str,
) -> argparse.ArgumentParser:
    """Add a subcommand whose help starts with what it does."""
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=about, description=f"{about[0].upper()}{about[1:]}."
    )
    return parser


def subcommands(action: argparse.Action, chosen: str | None = None) -> dict[str, CommandParser]:
    """Return the subcommand parsers of an action, or only the chosen one; empty if the action has no subcommands."""
    if not isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - argparse has no public name for it
        return {}
    return {name: parser for name, parser in action.choices.items() if chosen in {None, name}}


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return how to correct a mistyped word."""
    from podqos.amounts import nearest

    near = nearest(name, known)
    return f"did you mean {near}?" if near else otherwise
