"""The task table of an OOM report: a row per process, whose header says what the columns are.

Most of a report is its table, so rows that follow each other are read as one (``oom_blocks``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from msgspec import Struct

MOST_TASKS = 100_000
_MOST_ADJUSTMENT = 1000
_RSS_PARTS = ("rss_anon", "rss_file", "rss_shmem")
_NEEDED = {"uid", "rss", "oom_score_adj"}
_INTEGER = re.compile(r"-?[0-9]{1,12}")
_ROW = rb"\[ {0,12}+([0-9]{1,10}+)\] {1,16}+(?=[0-9])((?:-?[0-9]{1,12}+ {1,60}+){%d})(?=[!-~])([^\r\n]{1,200}+)\r?+\n"


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
    rss_parts_pages: tuple[int, int, int] | None = None
    """anon, file and shmem, where the table has them: since 6.9."""


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
        parts = [places[name] for name in _RSS_PARTS if name in places]
        self._rss_parts = parts if len(parts) == len(_RSS_PARTS) else None

    def task(self, pid: int, values: Sequence[int], name: str) -> Task | None:
        """Return a row; None where a score is none that the kernel has."""
        adj = values[self._adj]
        if not -_MOST_ADJUSTMENT <= adj <= _MOST_ADJUSTMENT:
            return None
        tables = None if self._tables is None else values[self._tables]
        if tables is not None and self._middle is not None:
            tables += values[self._middle]
        return Task(
            pid,
            values[self._uid],
            values[self._rss],
            adj,
            name,
            None if self._swap is None else values[self._swap],
            tables,
            None if self._table_bytes is None else values[self._table_bytes],
            0 if self._total is None else values[self._total],
            None if self._rss_parts is None else self._parts(values, *self._rss_parts),
        )

    @staticmethod
    def _parts(values: Sequence[int], anon: int, file: int, shmem: int) -> tuple[int, int, int]:
        return values[anon], values[file], values[shmem]


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
    return layout.task(pid, [*map(int, values)], fields[-1].strip() if len(fields) > layout.count else "")


class RowPatterns(NamedTuple):
    """What matches the rows of a table, with their names."""

    row: re.Pattern[bytes]
    rows: re.Pattern[bytes]
    """As many as follow each other."""


@lru_cache(maxsize=64)
def _row_patterns(columns: tuple[str, ...]) -> RowPatterns | None:
    layout = layout_of(columns)
    if not layout.is_whole:
        return None
    row = _ROW % layout.count
    return RowPatterns(re.compile(row), re.compile(b"(?:" + row + b")+"))


def read_rows(columns: tuple[str, ...], tasks: dict[int, Task], lines: bytes, start: int, limit: int) -> int:
    """Add the tasks of the rows that follow each other from a position on; return where they end.

    That is where they begin for a table without the columns that decide, and before a row that cannot be.
    """
    patterns = _row_patterns(columns)
    whole = None if patterns is None else patterns.rows.match(lines, start, limit)
    if patterns is None or whole is None:
        return start
    task = layout_of(columns).task
    names: dict[bytes, str] = {}
    for number, (pid, values, name) in enumerate(patterns.row.findall(lines, start, whole.end())):
        text = names.get(name)
        if text is None:
            text = names[name] = name.decode(errors="replace").strip()
        known = task(int(pid), [*map(int, values.split())], text)
        if known is None or len(tasks) >= MOST_TASKS:
            return next(islice(patterns.row.finditer(lines, start), number, None)).start()
        tasks[known.pid] = known
    return whole.end()
