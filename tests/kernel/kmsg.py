"""Reads the kernel's own account of an OOM: the table of tasks it chose from, and whom it chose."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.oom import Process


class Account(NamedTuple):
    """One OOM in the kernel's log."""

    processes: tuple[Process, ...]
    victim_pid: int


class Log:
    """The kernel's log from now on; silent where it may not be read."""

    def __init__(self) -> None:
        try:
            self._file = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError:
            self._file = -1

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)

    def first_oom(self) -> Account | None:
        """Return the first OOM told since the log was opened, if the kernel told it whole."""
        table: list[Process] = []
        columns: list[str] = []
        for line in self._lines():
            if line.startswith("[  pid  ]"):
                columns = line.replace("[  pid  ]", "pid").split()
                table.clear()
            elif columns and (row := re.match(r"\[\s*(\d+)\]\s+(.*)", line)):
                values = dict(zip(columns, (row[1], *row[2].split(None, len(columns) - 2)), strict=False))
                table.append(_row(values))
            elif victim := re.match(r"oom-kill:.*,pid=(\d+),uid=\d+$", line):
                return Account(tuple(table), int(victim[1])) if table else None
        return None

    def _lines(self) -> list[str]:
        lines = []
        while self._file >= 0:
            try:
                record = os.read(self._file, 8192).decode(errors="replace")
            except BlockingIOError:
                break
            except BrokenPipeError:
                continue
            lines.append(record.partition(";")[2].partition("\n")[0])
        return lines


def _row(values: dict[str, str]) -> Process:
    return Process(
        pid=int(values["tgid"]),
        cgroup="/",
        rss_pages=int(values["rss"]),
        swap_pages=int(values["swapents"]),
        page_table_pages=int(values["pgtables_bytes"]) // PAGE_BYTES,
        oom_score_adj=int(values["oom_score_adj"]),
        name=values["name"],
    )
