"""The documented values of a command as JSON, YAML and JSON Schema."""

from __future__ import annotations

from typing import Literal

import msgspec


def print_value(value: msgspec.Struct, notation: Literal["json", "yaml"]) -> None:
    """Print the whole output of a command."""
    if notation == "json":
        print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
    else:
        print(msgspec.yaml.encode(value).decode(), end="")


def print_schema(kind: type[msgspec.Struct]) -> None:
    """Print what ``-o json`` looks like."""
    print(msgspec.json.format(msgspec.json.encode(msgspec.json.schema(kind)), indent=2).decode())
