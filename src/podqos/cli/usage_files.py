"""Read a table of usage that an option names, and say once which of its columns mean nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from podqos.manifest.usage_tables import ignored_columns
from podqos.orders.usage import COLUMNS, UsageRow, read_usage
from podqos.reading.files import read_bytes


def usage_option(path: str) -> tuple[UsageRow, ...]:
    """Return the rows of ``--usage``."""
    return read_usage(path, table_bytes(path, COLUMNS))


def table_bytes(path: str, columns: Sequence[str]) -> bytes:
    """Return the content of a table; print the columns in it that are none of the caller's."""
    data = read_bytes(path)
    ignored = ignored_columns(data, columns)
    if ignored:
        print(f"{path}: columns ignored: {', '.join(ignored)}", file=sys.stderr)
    return data
