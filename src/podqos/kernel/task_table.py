"""The task table of an OOM report: a row per process, whose header says what the columns are.

Most of a report is its table, so rows that come one after the other are read as a block: those whose beginning differs
from the row before in digits alone, which a carrier's times do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

MOST_TASKS = 100_000
_MOST_ADJUSTMENT = 1000
_MOST_HEAD = 256
_NEEDED = {"uid", "rss", "oom_score_adj"}
_INTEGER = re.compile(r"-?[0-9]{1,12}")
_DIGIT = re.compile(rb"[0-9]")
_ROW = (
    rb"\[ {0,12}+([0-9]{1,10}+)\] {1,16}+(?=[0-9])"
    rb"((?:-?[0-9]{1,12}+ {1,60}+){%d})(?![^!-~])([^\r\n]{1,200}+)\r?+\n"
)


class Task(Struct, frozen=True, gc=False):
    """A row of the task table; amounts in pages, None where its form has no such column."""

    pid: int
    uid: int
    rss_pages: int
    oom_score_adj: int
    name: str
    swap_pages: int | None = None
    page_table_pages: int | None = None
    page_table_bytes: int | None = None
    total_vm_pages: int = 0


class Layout:
    """Where the columns of a table are."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        places = {name: place for place, name in enumerate(columns)}
        self.count = len(columns)
        self.is_whole = places.keys() >= _NEEDED
        """Whether it has the columns that decide."""
        self._uid, self._rss, self._adj = (places.get(name, 0) for name in ("uid", "rss", "oom_score_adj"))
        self._swap, self._total = places.get("swapents"), places.get("total_vm")
        self._tables, self._middle = places.get("nr_ptes"), places.get("nr_pmds")
        self._table_bytes = places.get("pgtables_bytes")

    def task(self, pid: int, values: Sequence[str] | Sequence[bytes], name: str) -> Task | None:
        """Return a row, whose values are integers; None where a score is none that the kernel has."""
        adj = int(values[self._adj])
        if not -_MOST_ADJUSTMENT <= adj <= _MOST_ADJUSTMENT:
            return None
        tables = None if self._tables is None else int(values[self._tables])
        if tables is not None and self._middle is not None:
            tables += int(values[self._middle])
        return Task(
            pid,
            int(values[self._uid]),
            int(values[self._rss]),
            adj,
            name,
            None if self._swap is None else int(values[self._swap]),
            tables,
            None if self._table_bytes is None else int(values[self._table_bytes]),
            0 if self._total is None else int(values[self._total]),
        )


@lru_cache(maxsize=64)
def layout_of(columns: tuple[str, ...]) -> Layout:
    """Return where a table has its columns."""
    return Layout(columns)


def read_row(columns: tuple[str, ...], pid: int, rest: str) -> Task | None:
    """Return a row of a table, from what follows the process id; None where it is cut or not in order."""
    layout = layout_of(columns)
    fields = rest.split(None, layout.count)
    values = fields[: layout.count]
    if not layout.is_whole or len(values) < layout.count or not all(map(_INTEGER.fullmatch, values)):
        return None
    return layout.task(pid, values, fields[-1].strip() if len(fields) > layout.count else "")


class Rows:
    """Reads the rows that follow one whose line is known, as long as they are carried like it."""

    def __init__(self, columns: tuple[str, ...], line: str, text: str, host: str) -> None:
        """Take the line of a row, and the text and the host that it was found to have."""
        self._layout = layout_of(columns)
        head = line.removesuffix(text)
        is_plain = line.endswith(text) and head.isascii() and len(head) < _MOST_HEAD and self._layout.is_whole
        self._row = _row_pattern(head.encode(), host.encode(), len(columns)) if is_plain else None
        self._is_named = "kernel" in head

    def read(self, chunk: bytes, start: int, tasks: dict[int, Task], but: Sequence[bytes]) -> tuple[int, int]:
        """Add the tasks of rows from a position on; return where they end, and how many there are.

        Lines that hold one of ``but`` have to be read one by one.
        """
        if self._row is None:
            return start, 0
        end, match, found = start, self._row.match, []
        while (row := match(chunk, end)) is not None:
            found.append(row)
            end = row.end()
        block = chunk[start:end]
        if any(words in block for words in but) or (not self._is_named and b"kernel" in block):
            return start, 0
        read, task = 0, self._layout.task
        for row in found:
            pid = int(row[1])
            known = task(pid, row[2].split(), row[3].decode(errors="replace").strip())
            if known is None or len(tasks) >= MOST_TASKS:
                return row.start(), read
            tasks[pid] = known
            read += 1
        return end, read


@lru_cache(maxsize=64)
def _row_pattern(head: bytes, host: bytes, columns: int) -> re.Pattern[bytes]:
    """Return what matches a row with the same head but for its digits; those of the host stay."""
    shape = re.escape(host).join(map(_shape, head.split(host) if host else [head]))
    return re.compile(shape + _ROW % columns)


def _shape(head: bytes) -> bytes:
    return b"[0-9]".join(map(re.escape, _DIGIT.split(head)))
