"""Usage files: a table of what pods use, in CSV or YAML.

One row per container (or per pod of one container); amounts as in manifests. ``pod`` is ``namespace/name`` or a name;
it may be the name of a Deployment, which then stands for each of its pods. ``manifest.usage_tables`` reads the forms of
tables: the output of `kubectl top pods`, exports of Grafana and Prometheus. Of a table over time the newest sample of
each container counts, and what was last seen long before the newest is gone. The columns::

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

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import NoReturn

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InputError, InvalidQuantity
from podqos.manifest.decode import convert
from podqos.manifest.documents import plain_documents
from podqos.manifest.plain import Plain
from podqos.manifest.samples import PrometheusSeries, SampleRow, is_bare_top, is_top, read_amount, read_matrix
from podqos.manifest.times import read_time
from podqos.manifest.usage_tables import is_measured, is_usage_table, read_usage_table, table_text
from podqos.model.quantity import Quantity
from podqos.model.time_units import MINUTE_US


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
_COLUMNS = f"write a list of rows, or CSV with the columns {', '.join(COLUMNS)}"
_COUNTS = ("processes", "inodes")
_READ = (*COLUMNS, "time", "namespace")
_MEMORY_METRICS = ("", "container_memory_working_set_bytes", "container_memory_usage_bytes", "container_memory_rss")
_GONE_AFTER_US = 15 * MINUTE_US
"""A pod whose last sample is so much older than the newest of all does not run any more."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Each becomes a process of the model. No container comes near; a typo does.
_MOST_PROCESSES = 100_000


def read_usage(source: str, data: bytes) -> tuple[UsageRow, ...]:
    """Read a usage file: a table in any of the forms that there are, otherwise YAML or JSON."""
    text = table_text(data)
    if not text.strip():
        raise InputError("it is empty", where=source, fix=_COLUMNS)
    if not is_usage_table(text):
        return tuple(_yaml_rows(source, data.removeprefix(_BYTE_ORDER_MARK)))
    is_answer = text.lstrip().startswith("{") and " =>" not in text.partition("\n")[0]
    table = read_matrix(source, text, takes_moment=True).series if is_answer else read_usage_table(source, data, _READ)
    if isinstance(table, tuple):
        return _newest(_series_rows(source, table))
    is_list = is_top(text) or is_bare_top(text)
    rows = [_table_row(row, is_list=is_list) for row in table]
    if not rows:
        raise InputError("there are no rows below the heading", where=source, fix="leave it out to assume usage")
    return (
        _newest(rows) if is_list or any(time_us is not None for time_us, _ in rows) else tuple(row for _, row in rows)
    )


def usage_row(fields: object, where: str) -> UsageRow:
    """Make a row of a mapping; raises ``InputError``."""
    if not isinstance(fields, dict):
        raise InputError("a row must be a mapping", where=where, fix="write {pod: a, memory: 100Mi}")
    _check_columns(fields, where)
    try:
        row = convert({**fields, "where": where}, UsageRow)
    except (msgspec.ValidationError, InvalidQuantity) as error:
        _refuse(error, fields, where)
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
        raise InputError(
            "amounts can't be negative, and processes must be at least 1", where=row.where, fix="leave it out"
        )
    if row.processes > _MOST_PROCESSES:
        raise InputError(f"{row.processes} processes", where=row.where, fix=f"at most {_MOST_PROCESSES}")
    if not row.pod:
        raise InputError("the row has no pod", where=row.where, fix="write pod: namespace/name")
    if row.memory is not None and row.anon is not None and row.anon > row.memory:
        what = f"anon ({row.anon}) is part of memory ({row.memory}) and cannot be more"
        raise InputError(what, where=row.where, fix="memory is the working set: anon plus active page cache")


_Timed = tuple[int | None, UsageRow]


def _table_row(row: SampleRow, *, is_list: bool) -> _Timed:
    counts = {name: _number(text) for name, text in row.fields.items() if name in _COUNTS}
    fields = {name: value for name, value in row.fields.items() if name in COLUMNS and is_measured(value)}
    time_us = _time_us(row.fields["time"], row.where) if "time" in row.fields else None
    read = usage_row({**fields, **counts}, row.where)
    return time_us, replace(read, is_listed=is_list or time_us is not None)


def _series_rows(source: str, table: Iterable[PrometheusSeries]) -> Iterator[_Timed]:
    """Yield the last sample of every series of memory."""
    for index, series in enumerate(table):
        labels, where = series.metric, f"{source}: result[{index}]"
        container = labels.get("container", labels.get("container_name", ""))
        is_container = container not in {"", "POD"} or not {"container", "container_name"} & labels.keys()
        measured = [(time, text) for time, text in series.values if is_measured(text)]
        if labels.get("__name__", "") not in _MEMORY_METRICS or not is_container or not measured:
            continue
        pod, namespace = labels.get("pod", labels.get("pod_name", "")), labels.get("namespace", "")
        if not pod:
            raise InputError("the series has no pod label", where=where, fix="keep pod and container in the result")
        time, text = max(measured)
        try:
            memory = read_amount(text)
        except InputError as error:
            raise InputError(error.what, where=where, fix=error.fix) from None
        name = f"{namespace}/{pod}" if namespace else pod
        yield _time_us(time, where), UsageRow(name, container, memory, where=where, is_listed=True)


def _newest(rows: Iterable[_Timed]) -> tuple[UsageRow, ...]:
    """Return the newest row of each container, without those that were last seen long before the newest of all."""
    newest: dict[tuple[str, str], tuple[int, UsageRow]] = {}
    for time_us, row in rows:
        known = newest.get((row.pod, row.container))
        if known is None or (time_us or 0) >= known[0]:
            newest[row.pod, row.container] = time_us or 0, row
    last_us = max((time_us for time_us, _ in newest.values()), default=0)
    return tuple(row for time_us, row in newest.values() if last_us - time_us <= _GONE_AFTER_US)


def _time_us(value: Plain, where: str) -> int:
    try:
        return read_time(value)[0]
    except InputError as error:
        raise InputError(error.what, where=where, fix=error.fix) from None


def _number(text: Plain) -> Plain:
    return int(text) if isinstance(text, str) and text.isdecimal() else text


def _yaml_rows(source: str, data: bytes) -> Iterator[UsageRow]:
    for document in plain_documents(source, data):
        rows = document.value
        if not isinstance(rows, list):
            raise InputError("not a usage file", where=source, fix=_COLUMNS)
        for index, fields in enumerate(rows):
            line, _ = document.locate((index,))
            yield usage_row(fields, f"{source}:{line}")


def _refuse(error: Exception, fields: Mapping[str, object], where: str) -> NoReturn:
    what, _, path = str(error).partition(" - at `$.")
    field = f"{path.rstrip('`')}: " if path else ""
    quantity = error if isinstance(error, InvalidQuantity) else error.__cause__
    fix = "write amounts as in manifests: 100Mi, 2Gi"
    if isinstance(quantity, InvalidQuantity):
        what, fix = f"{fields.get(field.removesuffix(': '))!r} is not a valid quantity", quantity.fix or fix
    raise InputError(f"{field}{what}", where=where, fix=fix) from error
