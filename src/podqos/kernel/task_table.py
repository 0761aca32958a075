"""The task table of an OOM report: a row per process, whose header says what the columns are.

Most of a report is its table, so rows that follow each other are read as one (``oom_blocks``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice, repeat, takewhile
from typing import NamedTuple

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

MOST_TASKS = 100_000
_MOST_ADJUSTMENT = 1000
_RSS_PARTS = ("rss_anon", "rss_file", "rss_shmem")
_NEEDED = {"uid", "rss", "oom_score_adj"}
_INTEGER = re.compile(r"-?[0-9]{1,12}")
_LIST = Decoder(list[int])
_ROW = r"\[ {0,12}+[0-9]{1,10}+\] {1,16}+(?=[0-9])(?:-?[0-9]{1,12}+ {1,60}+){%d}(?=[!-~])[^\r\n]{1,200}+\n"


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

    def tasks(self, pids: Sequence[int], columns: Sequence[Sequence[int]], names: Sequence[str]) -> list[Task]:
        """Return rows, by the figures of their columns, up to one with a score that the kernel does not have."""
        scores = columns[self._adj]
        if min(scores) < -_MOST_ADJUSTMENT or max(scores) > _MOST_ADJUSTMENT:
            scores = [*takewhile(_is_score, scores)]
        none = repeat(None)
        tables: Iterable[int | None] = none if self._tables is None else columns[self._tables]
        if self._tables is not None and self._middle is not None:
            tables = map(int.__add__, columns[self._tables], columns[self._middle])
        # As far as the shortest of them, which the scores are.
        return [
            *map(
                Task,
                pids,
                columns[self._uid],
                columns[self._rss],
                scores,
                names,
                none if self._swap is None else columns[self._swap],
                tables,
                none if self._table_bytes is None else columns[self._table_bytes],
                repeat(0) if self._total is None else columns[self._total],
                none if self._rss_parts is None else zip(*(columns[place] for place in self._rss_parts), strict=True),
            )
        ]


def _is_score(value: int) -> bool:
    return -_MOST_ADJUSTMENT <= value <= _MOST_ADJUSTMENT


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
    name = fields[-1].strip() if len(fields) > layout.count else ""
    return next(iter(layout.tasks([pid], [[int(value)] for value in values], [name])), None)


class RowPatterns(NamedTuple):
    """What matches the rows of a table."""

    row: re.Pattern[str]
    rows: re.Pattern[str]
    """As many as follow each other."""


@lru_cache(maxsize=64)
def _row_patterns(columns: tuple[str, ...]) -> RowPatterns | None:
    layout = layout_of(columns)
    if not layout.is_whole:
        return None
    row = _ROW % layout.count
    return RowPatterns(re.compile(row), re.compile(f"(?:{row})+"))


def read_rows(columns: tuple[str, ...], tasks: dict[int, Task], lines: str, start: int) -> int:
    """Add the tasks of the rows that follow each other from a position on; return where they end.

    That is where they begin for a table without the columns that decide, and before one that cannot be.
    """
    patterns = _row_patterns(columns)
    whole = None if patterns is None else patterns.rows.match(lines, start)
    if patterns is None or whole is None:
        return start
    layout = layout_of(columns)
    # What matched has its figures apart by spaces; only a name may hold more of them.
    rows = [line[1:].split(None, layout.count + 1) for line in whole[0].split("\n")]
    rows.pop()
    pids, *figures, names = zip(*rows, strict=True)
    numbers = _numbers([pid[:-1] for pid in pids])
    known = layout.tasks(numbers, [*map(_numbers, figures)], [*map(str.strip, names)])
    known = known[: max(0, MOST_TASKS - len(tasks))]
    tasks.update(zip(numbers, known, strict=False))
    if len(known) < len(pids):
        return next(islice(patterns.row.finditer(lines, start), len(known), None)).start()
    return whole.end()


def rows_end(columns: tuple[str, ...], lines: str, start: int) -> int:
    """Return where the rows end that follow each other from a position on."""
    patterns = _row_patterns(columns)
    whole = None if patterns is None else patterns.rows.match(lines, start)
    return start if whole is None else whole.end()


def _numbers(texts: Sequence[str]) -> list[int]:
    """Return many integers: a decoder of JSON reads them at once, unless one has zeros in front."""
    try:
        return _LIST.decode(f"[{','.join(texts)}]")
    except DecodeError:
        return [*map(int, texts)]
