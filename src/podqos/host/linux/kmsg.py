"""Reads the kernel's log, and OOM kills from it: the only source of the limit that was hit and the victim's score.

Source: Documentation/ABI/testing/dev-kmsg of Linux.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from podqos.logs.carriers import Line
from podqos.logs.kernel_lines import ReportReader
from podqos.logs.report import Constraint, OOMReport

KMSG = Path("/dev/kmsg")
_RECORD_BYTES = 8192
_KIB_PER_PAGE = os.sysconf("SC_PAGESIZE") // 1024


class KernelKill(Struct, frozen=True, gc=False):
    """A process that the kernel killed for memory."""

    pid: int
    command: str
    domain: str
    """The cgroup that ran out; empty for the whole machine."""
    cgroup: str
    """Of the process; empty if the kernel did not log it (its messages are rate limited)."""
    used_pages: int
    oom_score_adj: int
    is_of_cgroup: bool
    """Whether a cgroup ran out of memory, rather than the whole machine."""


class OOMLines:
    """Takes the kernel's lines in order; tells of a kill as soon as its line has come."""

    def __init__(self) -> None:
        self._reader = ReportReader()
        self._told: set[tuple[int, int]] = set()
        """Of reports that are open: kills that were told of."""

    def feed(self, line: str) -> KernelKill | None:
        """Take a line; return a kill if it completes one."""
        ended = self._reader.feed([Line(line)])
        opened = self._reader.reports
        kill = next((kill for report in (*ended, *opened) for kill in self._new(report)), None)
        self._told = {(identity, pid) for identity, pid in self._told if any(id(each) == identity for each in opened)}
        return kill

    def _new(self, report: OOMReport) -> Iterator[KernelKill]:
        for number, (pid, victim) in enumerate(report.victims.items()):
            if (id(report), pid) in self._told or victim.rss_kb is None:
                continue
            self._told.add((id(report), pid))
            domain = "" if report.oom_cgroup in {None, "/"} else report.oom_cgroup or ""
            # The other processes of a container follow, without lines about their cgroups.
            cgroup = (report.group if number and report.group else report.task_cgroup) or ""
            pages = (victim.rss_kb + victim.page_tables_kb) // _KIB_PER_PAGE
            is_of_cgroup = report.constraint is Constraint.MEMCG
            yield KernelKill(pid, victim.name, domain, cgroup, pages, victim.oom_score_adj or 0, is_of_cgroup)


class KernelRecords:
    """The records of the kernel's log, read without waiting: those to come, or also those it still has."""

    def __init__(self, file: str | Path = KMSG, *, from_now: bool = True) -> None:
        self._descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if from_now:
            os.lseek(self._descriptor, 0, os.SEEK_END)
        self._next: int | None = None
        self.lost = 0
        """How many records were overwritten before they were read."""

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._descriptor

    def read(self) -> bytes:
        """Return the next record, ``priority,sequence,microseconds,flags;text``; nothing where none has come."""
        while True:
            try:
                record = os.read(self._descriptor, _RECORD_BYTES)
            except BlockingIOError:
                return b""
            except BrokenPipeError:
                continue  # the log overflowed; the next read continues after the gap
            _, _, rest = record.partition(b",")
            number = rest.partition(b",")[0]
            if number.isdigit():
                self.lost += 0 if self._next is None else max(0, int(number) - self._next)
                self._next = int(number) + 1
            return record

    def close(self) -> None:
        """Close the log."""
        os.close(self._descriptor)


class KernelLog:
    """The kills in the kernel's log from now on."""

    def __init__(self, file: Path = KMSG) -> None:
        self._records = KernelRecords(file)
        self._lines = OOMLines()

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._records.fileno()

    def kills(self) -> list[KernelKill]:
        """Return the kills since the last call."""
        found: list[KernelKill] = []
        with suppress(OSError):
            while record := self._records.read():
                kill = self._lines.feed(record.decode(errors="replace").partition(";")[2].partition("\n")[0])
                if kill is not None:
                    found.append(kill)
        return found

    def close(self) -> None:
        """Close the log."""
        self._records.close()
