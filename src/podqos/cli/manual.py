"""The manual page, in roff, from the same grammar as completion and help: ``man/podqos.1``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podqos.cli.command_list import GROUPS
from podqos.cli.grammar import Argument, Grammar, grammars
from podqos.cli.overview import EXIT_CODES, SUMMARY

_ENVIRONMENT = {
    "NO_COLOR": "If set, output has no colours, except with --color always.",
    "COLUMNS": "Width of output on a terminal, instead of the terminal's own. Output to a file is not wrapped.",
}
_EXAMPLES = {
    "podqos explain deployment.yaml": "Why each pod has its QoS class, and the edit that makes it Guaranteed.",
    "podqos check deploy/ --fail-on error": (
        "Check all manifests of a directory. Exit code 1 if there is a finding of severity error."
    ),
    "kubectl get deploy,limits,pc -A -o yaml | podqos check -": "Check what runs in a cluster.",
    "podqos simulate race": "Run a built-in scenario in virtual time.",
}


def manual() -> str:
    """Return the page."""
    return "".join(f"{line}\n" for line in _lines())


def _lines() -> Iterator[str]:
    from podqos import __version__

    yield f'.TH PODQOS 1 "" "podqos {__version__}" "User Commands"'
    yield from (".SH NAME", f"podqos \\- {_escaped(SUMMARY)}")
    yield from (
        ".SH SYNOPSIS",
        ".B podqos",
        ".I COMMAND",
        "[\\fIOPTIONS\\fR]",
        ".br",
        ".B podqos help",
        "[\\fICOMMAND\\fR]",
    )
    commands = grammars()
    for title, group in GROUPS.items():
        yield f".SH {title.upper()}"
        for name in group:
            yield from _command(commands[name], "podqos")
    yield from (".SH EXIT STATUS", *_entries(dict(each.split(" ", 1) for each in EXIT_CODES.split(", "))))
    yield from (".SH ENVIRONMENT", *_entries(_ENVIRONMENT))
    yield from (".SH EXAMPLES", *_entries(_EXAMPLES))
    yield from (".SH SEE ALSO", "kubectl(1), cgroups(7), proc(5)")


def _command(command: Grammar, above: str) -> Iterator[str]:
    name = f"{above} {command.name}"
    yield f".SS {_escaped(name)}"
    yield from _prose(command.description or f"{command.summary[0].upper()}{command.summary[1:]}.")
    for argument in command.positionals:
        yield from _entry(f"\\fI{_escaped(argument.value)}\\fR", argument.about)
    for number, group in enumerate(command.groups):
        if number:
            yield from (".PP", f"{_escaped(group.title[0].upper() + group.title[1:])}:")
        for option in group.options:
            if "--help" not in option.names:
                yield from _entry(_named(option), option.about)
    for below in command.below:
        yield from _command(below, name)


def _named(option: Argument) -> str:
    # Long choices may be broken behind each.
    value = f" \\fI{_escaped(option.value)}\\fR".replace("|", "|\\:") if option.value else ""
    return ", ".join(f"\\fB{_escaped(name)}\\fR" for name in option.names) + value


def _prose(text: str) -> Iterator[str]:
    """Yield paragraphs; indented lines and lists stay as written."""
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        lines = paragraph.splitlines()
        yield ".PP"
        plain = [line for line in lines if not line.startswith(" ")]
        indented = lines[len(plain) :] if lines[: len(plain)] == plain else lines
        if len(indented) < len(lines):
            yield from map(_line, plain)
        if indented:
            yield from (".nf", *map(_line, indented), ".fi")


def _entries(entries: dict[str, str]) -> Iterator[str]:
    for term, about in entries.items():
        yield from _entry(f"\\fB{_escaped(term)}\\fR", about)


def _entry(term: str, about: str) -> Iterator[str]:
    yield from (".TP", term, _line(about or "\\&"))


def _line(text: str) -> str:
    """Return a line that roff treats as text."""
    escaped = _escaped(text)
    return f"\\&{escaped}" if escaped.startswith((".", "'", " ")) else escaped


def _escaped(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-")
