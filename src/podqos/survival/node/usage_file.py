"""Usage files: a table of what pods use, in CSV or YAML.

One row per container (or per pod of one container); amounts as in manifests. ``pod`` is ``namespace/name`` or a name;
it may be the name of a Deployment, which then stands for each of its pods. The output of `kubectl top pods`
(--containers, -A) is such a table as well. The columns::

    pod, container          what the figures belong to
    memory                  the working set, which is what `kubectl top` shows
    anon                    private memory, of that (default: all of it)
    inactiveFile            page cache on top of the working set
    swap, pageTables        further memory of its processes
    processes               how many processes share the memory evenly (default: 1)
    disk, inodes            of its writable layer and logs

What was not measured is left out or empty. This module parses rows; ``usage`` assigns them to pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import NoReturn

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InputError, InvalidQuantity
from podqos.manifest.decode import convert
from podqos.manifest.documents import plain_documents
from podqos.manifest.plain import Plain
from podqos.manifest.samples import SampleRow, csv_rows, is_top, top_rows
from podqos.model.quantity import Quantity


class UsageRow(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One row. An amount that is None was not measured."""

    pod: str
    container: str = ""
    memory: Quantity | None = None
    anon: Quantity | None = None
    inactive_file: Quantity | None = None
    swap: Quantity | None = None
    page_tables: Quantity | None = None
    processes: int = 1
    disk: Quantity | None = None
    inodes: int | None = None
    where: str = ""
    """Place of the row, for messages."""
    is_listed: bool = False
    """Whether it is from a list of all pods there are: of one that is not among the manifests, nothing is wrong."""


COLUMNS = tuple(name for name in UsageRow.__struct_encode_fields__ if name not in {"where", "isListed"})
_COUNTS = ("processes", "inodes")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Each becomes a process of the model. No container comes near; a typo does.
_MOST_PROCESSES = 100_000


def read_usage(source: str, data: bytes) -> tuple[UsageRow, ...]:
    """Read a usage file: what `kubectl top pods` prints, CSV with ``pod`` in its heading, otherwise YAML or JSON."""
    data = data.removeprefix(_BYTE_ORDER_MARK)
    text = data.decode(errors="replace")
    if is_top(text):
        return tuple(_top_row(row) for row in top_rows(source, text))
    heading = data.partition(b"\n")[0].decode(errors="replace")
    if "pod" in [column.strip() for column in heading.split(",")]:
        return tuple(_csv_rows(source, data))
    return tuple(_yaml_rows(source, data))


def usage_row(fields: object, where: str) -> UsageRow:
    """Make a row of a mapping; raises ``InputError``."""
    if not isinstance(fields, dict):
        raise InputError("a row must be a mapping", where=where, fix="write {pod: a, memory: 100Mi}")
    _check_columns(fields, where)
    try:
        row = convert({**fields, "where": where}, UsageRow)
    except (msgspec.ValidationError, InvalidQuantity) as error:
        _refuse(error, where)
    _check(row)
    return row


def _check_columns(names: Iterable[object], where: str) -> None:
    for name in names:
        if name not in COLUMNS:
            close = get_close_matches(str(name), COLUMNS, 1)
            fix = f"did you mean {close[0]}?" if close else f"the columns are {', '.join(COLUMNS)}"
            raise InputError(f"unknown column {name!r}", where=where, fix=fix)


def _check(row: UsageRow) -> None:
    amounts = (row.memory, row.anon, row.inactive_file, row.swap, row.page_tables, row.disk)
    if any(amount is not None and amount.sign < 0 for amount in amounts) or row.processes < 1 or (row.inodes or 0) < 0:
        raise InputError("an amount is below zero, or there are no processes", where=row.where, fix="leave it out")
    if row.processes > _MOST_PROCESSES:
        raise InputError(f"{row.processes} processes", where=row.where, fix=f"at most {_MOST_PROCESSES}")
    if not row.pod:
        raise InputError("the row has no pod", where=row.where, fix="write pod: namespace/name")
    if row.memory is not None and row.anon is not None and row.anon > row.memory:
        what = f"anon ({row.anon}) is part of memory ({row.memory}) and cannot be more"
        raise InputError(what, where=row.where, fix="memory is the working set: anon and page cache in use")


def _top_row(row: SampleRow) -> UsageRow:
    # What is used of the CPU plays no part here.
    fields = {name: value for name, value in row.fields.items() if name != "cpu"}
    return replace(usage_row(fields, row.where), is_listed=True)


def _csv_rows(source: str, data: bytes) -> Iterator[UsageRow]:
    for row in csv_rows(source, data.decode(errors="replace")):
        _check_columns(row.columns, row.heading)
        counts = {name: _number(text) for name, text in row.fields.items() if name in _COUNTS}
        yield usage_row({**row.fields, **counts}, row.where)


def _number(text: Plain) -> Plain:
    return int(text) if isinstance(text, str) and text.isdecimal() else text


def _yaml_rows(source: str, data: bytes) -> Iterator[UsageRow]:
    for document in plain_documents(source, data):
        rows = document.value
        if not isinstance(rows, list):
            fix = f"write a list of rows, or CSV with the columns {', '.join(COLUMNS)}"
            raise InputError("not a usage file", where=source, fix=fix)
        for index, fields in enumerate(rows):
            line, _ = document.locate((index,))
            yield usage_row(fields, f"{source}:{line}")


def _refuse(error: Exception, where: str) -> NoReturn:
    what, _, path = str(error).partition(" - at `$.")
    field = f"{path.rstrip('`')}: " if path else ""
    quantity = error if isinstance(error, InvalidQuantity) else error.__cause__
    fix = "amounts are written as in manifests: 100Mi, 2Gi"
    if isinstance(quantity, InvalidQuantity):
        what, fix = quantity.what, quantity.fix or fix
    raise InputError(f"{field}{what}", where=where, fix=fix) from error
