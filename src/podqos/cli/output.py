"""The documented values of a command as JSON, YAML, CSV and JSON Schema."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec


def print_value(value: msgspec.Struct, notation: Literal["json", "yaml"]) -> None:
    """Print the whole output of a command."""
    if notation == "json":
        print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
    else:
        print(msgspec.yaml.encode(value).decode(), end="")


def print_documents(documents: Iterable[Mapping[str, object]]) -> None:
    """Print objects as YAML documents."""
    print("---\n".join(msgspec.yaml.encode(document).decode() for document in documents), end="")


def print_csv(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows below a heading; what is None stays empty."""
    from csv import writer

    lines = writer(sys.stdout, lineterminator="\n")
    lines.writerow(headers)
    lines.writerows(rows)


def print_schema(kind: type[msgspec.Struct]) -> None:
    """Print what ``-o json`` looks like."""
    print(msgspec.json.format(msgspec.json.encode(_unindented(msgspec.json.schema(kind))), indent=2).decode())


def _unindented(schema: object) -> object:
    """Return a schema whose descriptions are free of the indentation of docstrings, as Python 3.13 has them."""
    from inspect import cleandoc

    if isinstance(schema, dict):
        return {
            key: cleandoc(value) if key == "description" and isinstance(value, str) else _unindented(value)
            for key, value in schema.items()
        }
    return [_unindented(each) for each in schema] if isinstance(schema, list) else schema
