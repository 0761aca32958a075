"""The documented values of a command as JSON, YAML, CSV and JSON Schema."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from podqos.errors import InputError


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


def write_file(path: str, data: bytes) -> None:
    """Write a file whole or not at all: whoever looks sees the old one or the new one."""
    import os
    from tempfile import mkstemp

    directory = os.path.dirname(path) or "."
    try:
        handle, temporary = mkstemp(prefix=".podqos-", dir=directory)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(temporary, 0o666 & ~umask)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", where=path, fix="name a file that can be") from error
