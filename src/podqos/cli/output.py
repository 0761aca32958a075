"""The documented values of a command as JSON, YAML, CSV and JSON Schema."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec


def print_value(value: msgspec.Struct, notation: Literal["json", "yaml"]) -> None:
    """Print the whole output of a command."""
    if notation == "json":
        print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
    else:
        print(msgspec.yaml.encode(value).decode(), end="")


def print_csv(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows below a heading; what is None stays empty."""
    from csv import writer

    lines = writer(sys.stdout, lineterminator="\n")
    lines.writerow(headers)
    lines.writerows(rows)


def print_schema(kind: type[msgspec.Struct]) -> None:
    """Print what ``-o json`` looks like."""
    print(msgspec.json.format(msgspec.json.encode(msgspec.json.schema(kind)), indent=2).decode())
