"""Reads the kernel's log, and OOM kills from it: the only source of the limit that was hit and the victim's score.

Source: mm/oom_kill.c of Linux (dump_oom_summary, __oom_kill_process); Documentation/ABI/testing/dev-kmsg.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

KMSG = Path("/dev/kmsg")
_RECORD_BYTES = 8192
_SUMMARY = re.compile(
    r"oom-kill:constraint=(\w+),.*?(?:oom_memcg=([^,]*),)?(?:global_oom,)?task_memcg=([^,]*),task=(.*),pid=(\d+),uid="
)
_KILLED = re.compile(
    r"(Memory cgroup out|Out) of memory.*?: Killed process (\d+) \((.*)\) total-vm:\d+kB, anon-rss:(\d+)kB, "
    r"file-rss:(\d+)kB, shmem-rss:(\d+)kB, UID:\d+ pgtables:(\d+)kB oom_score_adj:(-?\d+)"
)
_GROUP = re.compile(r"Tasks in (\S+) are going to be killed due to memory\.oom\.group set")
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
    """Parses lines in order; the two lines of one kill share the process id."""

    def __init__(self) -> None:
        self._summaries: dict[int, tuple[str, str]] = {}
        self._last_domain = ""
        self._group = ("", "")
        self._victim = 0

    def feed(self, line: str) -> KernelKill | None:
        """Parse a line; return a kill if it completes one."""
        summary = _SUMMARY.search(line)
        if summary is not None:
            self._last_domain = summary[2] or ""
            self._summaries[int(summary[5])] = (self._last_domain, summary[3])
            self._group = ("", "")
            return None
        group = _GROUP.search(line)
        if group is not None:
            # The other processes of the container follow, without summaries of their own.
            self._group = (self._last_domain, group[1])
            return None
        killed = _KILLED.search(line)
        if killed is None:
            return None
        pid = int(killed[2])
        if pid in self._summaries:
            self._victim = pid
        elif pid == self._victim and self._group[1]:
            return None  # the kernel kills it once more with its group, and says so
        domain, cgroup = self._summaries.pop(pid, self._group)
        pages = sum(int(killed[group]) for group in (4, 5, 6, 7)) // _KIB_PER_PAGE
        is_of_cgroup = killed[1] != "Out"
        return KernelKill(pid, killed[3], domain, cgroup, pages, int(killed[8]), is_of_cgroup)


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
