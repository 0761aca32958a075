"""Print the documented value of a command: as text for people, or as JSON, YAML, CSV and JSON Schema for programs.

A command declares its outputs once (``add_output_options``) and prints its value once (``emit``).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from podqos.cli.spelling import offered
from podqos.cli.streams import discard_output, for_programs
from podqos.cli.terminal import add_colour_option, output_columns, style_of
from podqos.controls import cell, one_line
from podqos.manifest.encoding import json_parts, json_schema, yaml_text
from podqos.model.assumption import Assumption
from podqos.text.style import Style, fitted, wrapped
from podqos.text.tables import Table

FOR_PEOPLE = ("text", "table", "wide")

Value = TypeVar("Value", bound=msgspec.Struct)


def add_output_options(
    parser: argparse.ArgumentParser,
    formats: Sequence[str],
    value: str,
    about: str = "",
) -> None:
    """Declare ``-o`` (the first format is the default), ``--no-headers`` and ``--color``.

    ``value`` names the type that ``-o json`` prints, as ``package.module:Type``: ``podqos schema`` imports it.
    Every command has ``-o wide``; where it is not one of ``formats``, it is the table or text with nothing cut.
    """
    widened = "wide" if "wide" in formats else "table" if "table" in formats else formats[0]
    if widened != "wide":
        about = f"{about}; " * bool(about) + f"wide: the {widened} with nothing cut or wrapped"
    if "name" in formats:
        about = f"{about}; " * bool(about) + "name: names only, as in kubectl"
    described = f"{about} (default: {formats[0]})" if about else f"output format (default: {formats[0]})"
    parser.add_argument(
        "-o",
        "--output",
        action=_Output,
        widened=widened,
        choices=tuple(dict.fromkeys((*formats, "wide"))),
        default=formats[0],
        help=described,
    )
    add_headers_option(parser)
    parser.set_defaults(json_type=value)
    add_colour_option(parser)


def add_headers_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--no-headers``, as kubectl spells it."""
    parser.add_argument("--no-headers", action="store_true", help="print tables and CSV without their header row")


class _Output(argparse.Action):
    """``-o``: wide is the table of a command in another width, where it is not a format of its own."""

    def __init__(self, *, widened: str, **settings: Any) -> None:  # noqa: ANN401 - argparse's own
        super().__init__(**settings)
        self._widened = widened

    def __call__(self, _parser: object, namespace: argparse.Namespace, values: object, _option: object = None) -> None:
        """Take the format; the last one given counts."""
        namespace.wide = values == "wide"
        setattr(namespace, self.dest, self._widened if namespace.wide else values)


def emit(
    value: Value,
    arguments: argparse.Namespace,
    lines: Callable[[Value, Style], Iterable[str]],
    table: Callable[[Value], Table] | None = None,
    names: Callable[[Value], Iterable[str]] | None = None,
) -> None:
    """Print a value in the format of ``-o``, and its assumptions; ``names`` returns the names of its objects.

    JSON and YAML carry the assumptions themselves; for the other outputs they are one line on standard error. A reader
    that has gone (`podqos check … | head`) changes nothing about the answer: the command ends with its own exit code.
    """
    try:
        _print(value, arguments, lines, table, names)
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
        return
    if arguments.output not in {"json", "yaml"}:
        say_assumptions(getattr(value, "assumptions", ()))


def _print(
    value: Value,
    arguments: argparse.Namespace,
    lines: Callable[[Value, Style], Iterable[str]],
    table: Callable[[Value], Table] | None,
    names: Callable[[Value], Iterable[str]] | None,
) -> None:
    if arguments.output in {"json", "yaml"}:
        print_value(value, arguments.output)
    elif arguments.output == "name" and names is not None:
        print_names(names(value))
    elif arguments.output == "csv" and table is not None:
        print_csv(*table(value), has_header=not arguments.no_headers)
    elif arguments.output in FOR_PEOPLE:
        style = style_of(arguments)
        print_lines(lines(value, style), style)
    else:
        print_file(lines(value, style_of(arguments)))


def print_names(names: Iterable[str]) -> None:
    """Print names for kubectl, such as ``deployment/web``, each once."""
    print_lines(dict.fromkeys(names))


def pod_names(keys: Iterable[str]) -> Iterator[str]:
    """Yield the names of pods given as ``namespace/name``."""
    return (f"pod/{key.rpartition('/')[2]}" for key in keys)


def object_name(kind: str, name: str) -> str:
    """Return how kubectl names an object."""
    return f"{kind.lower()}/{name}"


def print_lines(lines: Iterable[str], style: Style | None = None) -> None:
    """Print lines for people, within a style's width or the terminal's; names do not break lines."""
    width = output_columns(sys.stdout) if style is None else style.width
    sys.stdout.writelines(f"{line}\n" for line in fitted(map(one_line, lines), width))


def print_file(lines: Iterable[str]) -> None:
    """Print the lines of a file that programs read."""
    for_programs()
    sys.stdout.writelines(f"{line}\n" for line in lines)


def say_assumptions(assumptions: Sequence[Assumption]) -> None:
    """Print in one line what was assumed and how to state it instead; identical parts are merged."""
    if assumptions:
        sys.stdout.flush()
        alike: dict[tuple[str, str], list[str]] = {}
        for assumption in assumptions:
            alike.setdefault((assumption.value, offered(assumption.state_with)), []).append(assumption.what)
        said = "; ".join(
            f"{', '.join(whats)}: {value}" + (f" ({how})" if how else "") for (value, how), whats in alike.items()
        )
        for line in wrapped(f"assumed: {said}", Style(width=output_columns(sys.stderr)), "  ", ""):
            print(line, file=sys.stderr)


def print_value(value: msgspec.Struct, notation: Literal["json", "yaml"]) -> None:
    """Print the whole output of a command."""
    for_programs()
    if notation == "json":
        sys.stdout.writelines(part.decode() for part in json_parts(value))
        print()
    else:
        print(yaml_text(value), end="")


def print_documents(documents: Iterable[Mapping[str, object]]) -> None:
    """Print objects as YAML documents."""
    for_programs()
    print("---\n".join(map(yaml_text, documents)), end="")


def print_csv(headers: Iterable[str], rows: Iterable[Sequence[object]], *, has_header: bool = True) -> None:
    """Print rows below a heading; None becomes an empty cell."""
    from csv import writer

    for_programs()
    lines = writer(sys.stdout, lineterminator="\n")
    if has_header:
        lines.writerow(headers)
    lines.writerows(map(cell, row) for row in rows)


def print_json(value: object) -> None:
    """Print plain values as JSON for people, too."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def schema_of(kind: str) -> object:
    """Return the JSON Schema of a type, given as ``package.module:Type``."""
    from importlib import import_module

    module, _, name = kind.partition(":")
    return _unindented(json_schema(getattr(import_module(module), name)))


def _unindented(schema: object) -> object:
    """Return a schema whose descriptions have no docstring indentation, as in Python 3.13."""
    from inspect import cleandoc

    if isinstance(schema, dict):
        return {
            key: cleandoc(value) if key == "description" and isinstance(value, str) else _unindented(value)
            for key, value in schema.items()
        }
    return [_unindented(each) for each in schema] if isinstance(schema, list) else schema
