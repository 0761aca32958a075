"""``podqos … install``: print or write a systemd unit that runs a command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from podqos.errors import HostError, InvalidOption

_FOLDER = "/etc/systemd/system"


Declare = Callable[[argparse.ArgumentParser], None]


def add_unit_options(parser: argparse.ArgumentParser, name: str, declare: Declare) -> None:
    """Declare the options of every such command, and those that are passed on; ``name`` is the unit's by default."""
    parser.add_argument("--write", action="store_true", help=f"write the unit to {_FOLDER} instead of printing it")
    parser.add_argument("--name", metavar="NAME", default=name, help=f"name of the unit (default: {name})")
    parser.add_argument("--force", action="store_true", help="overwrite a different unit of the same name")
    parser.add_argument("--unit-dir", metavar="DIR", default=_FOLDER, help=argparse.SUPPRESS)
    own = len(parser._actions)  # noqa: SLF001 - as below
    declare(parser)
    for action in parser._actions[own:]:  # noqa: SLF001 - likewise
        if callable(action.type):
            action.type = _checked(action.type)


def _checked(read: Callable[[str], object]) -> Callable[[str], str]:
    """Return a reader that rejects the same texts, and returns the others unchanged."""

    def checked(text: str) -> str:
        read(text)
        return text

    return checked


def install(arguments: argparse.Namespace, unit_of: Callable[[argparse.Namespace], str]) -> int:
    """Print or write a unit, and return the exit code."""
    if not arguments.name.replace("-", "").replace("_", "").isalnum():
        raise InvalidOption(f"{arguments.name!r}", where="--name", fix="letters, digits, - and _")
    unit = unit_of(arguments)
    if not arguments.write:
        print(unit, end="")
        return 0
    if os.geteuid() != 0:
        raise HostError(f"only root can write to {arguments.unit_dir}; without --write the unit is printed")
    file = os.path.join(arguments.unit_dir, f"{arguments.name}.service")
    _write(file, unit, replace=arguments.force)
    print(f"wrote {file}. To start it:")
    print(f"  systemctl daemon-reload && systemctl enable --now {arguments.name}")
    return 0


def command_line(command: Sequence[str], arguments: argparse.Namespace, declare: Declare) -> str:
    """Return the command line that runs a command of this podqos with the given options."""
    return " ".join(map(_quoted, [*_program(), *command, *_given(arguments, declare)]))


def without(unit: str, setting: str) -> str:
    """Return a unit without the lines of a setting."""
    return "".join(line for line in unit.splitlines(keepends=True) if not line.startswith(setting))


def _write(file: str, unit: str, *, replace: bool) -> None:
    try:
        with open(file) as there:
            if there.read() != unit and not replace:
                raise HostError(f"{file} already exists with different content; --force overwrites it")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise HostError(f"{file}: {error.strerror}") from error
    try:
        with open(f"{file}.new", "w") as partial:
            partial.write(unit)
        os.replace(f"{file}.new", file)
    except OSError as error:
        raise HostError(f"{file}: {error.strerror}") from error


def _given(arguments: argparse.Namespace, declare: Declare) -> list[str]:
    """Return the declared options that were given, with absolute paths."""
    declared = argparse.ArgumentParser(add_help=False)
    declare(declared)
    words = []
    for action in declared._actions:  # noqa: SLF001 - the parser is the one list of options there is
        value = getattr(arguments, action.dest)
        if value == action.default:
            continue
        for each in value if isinstance(value, list) else [value]:
            words += _option(action, each)
    return words


def _option(action: argparse.Action, value: object) -> list[str]:
    name = action.option_strings[-1]
    if value is True:
        return [name]
    text = os.path.abspath(str(value)) if action.metavar in {"DIR", "FILE", "PATH"} else str(value)
    return [f"{name}={text}"] if text.startswith("-") else [name, text]


def _program() -> list[str]:
    """Return the command line of this podqos."""
    beside = os.path.join(os.path.dirname(sys.executable), "podqos")
    return [beside] if os.access(beside, os.X_OK) else [sys.executable, "-m", "podqos"]


def _quoted(word: str) -> str:
    """Return a word of a command line, quoted for systemd."""
    if "\n" in word:
        raise InvalidOption(f"{word!r} cannot be written into a unit", fix="choose a name without line breaks")
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if escaped != word or not word or any(each in " \t;'" for each in word) else word
