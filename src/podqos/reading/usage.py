"""What pods use, from files: a usage table, or a kubelet's statistics."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from podqos.errors import InputError
from podqos.eviction.signals import decode_summary
from podqos.model.stats import Summary
from podqos.orders.usage import UsageRow
from podqos.orders.usage import read_usage as read_table
from podqos.reading.files import read_bytes

Usage = str | os.PathLike[str] | Iterable[UsageRow]
"""A usage file, or its rows."""


def read_usage(usage: Usage) -> Sequence[UsageRow]:
    """Return the rows of a usage file, or those given."""
    if isinstance(usage, (str, os.PathLike)):
        path = os.fspath(usage)
        return read_table(path, read_bytes(path))
    return tuple(usage)


def read_summary(path: str) -> Summary:
    """Return what a kubelet's /stats/summary says, from a file."""
    try:
        return decode_summary(read_bytes(path))
    except InputError as error:
        raise InputError(error.what, where=path, fix=error.fix) from error
