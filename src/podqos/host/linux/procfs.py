"""Reads ``/proc``: processes and the machine. The root is a parameter, so that tests can use a tree of their own."""

from __future__ import annotations

import os
import re
from pathlib import Path

from msgspec import Struct

PAGE_BYTES = os.sysconf("SC_PAGESIZE")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_BOOT_TIME = re.compile(r"^btime (\d+)$", re.MULTILINE)
_PART_BYTES = 4096
# Only these: it is read hundreds of times a second while memory is short.
_MEMORY = re.compile(r"^(MemTotal|MemFree|Inactive\(file\)|MemAvailable): +(\d+) kB", re.MULTILINE)


def read_text(file: Path) -> str | None:
    """Return the content of a kernel file; None if it is gone.

    Dozens of them are read between a notice and a kill, and ``Path.read_text`` takes three times as long.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    parts = []
    try:
        while part := os.read(descriptor, _PART_BYTES):
            parts.append(part)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return b"".join(parts).decode(errors="replace")


class MachineMemory(Struct, frozen=True, gc=False):
    """The machine's memory."""

    total_bytes: int
    free_bytes: int
    inactive_file_bytes: int
    available_bytes: int


class Procfs:
    """A procfs tree."""

    def __init__(self, root: Path = Path("/proc")) -> None:
        self.root = root

    def stat(self, pid: int) -> list[str]:
        """Return the words of a process's ``stat`` that follow its name: state, parent … (proc(5)); none if gone."""
        return (self._text(f"{pid}/stat") or "").rpartition(")")[2].split()

    def pids(self) -> list[int]:
        """Return the ids of all processes."""
        return sorted(int(entry.name) for entry in self.root.iterdir() if entry.name.isdecimal())

    def parent(self, pid: int) -> int | None:
        """Return the parent of a process; None if it is gone."""
        words = self.stat(pid)
        return int(words[1]) if words else None

    def children(self, pid: int) -> list[int]:
        """Return the children of a process' first thread; from all processes where the kernel has no list of them."""
        text = self._text(f"{pid}/task/{pid}/children")
        return (
            [each for each in self.pids() if self.parent(each) == pid] if text is None else list(map(int, text.split()))
        )

    def descendants(self, pid: int) -> list[int]:
        """Return the processes below a process, nearest first."""
        parents = {pid: self.parent(pid) for pid in self.pids()}
        found = [pid]
        for known in found:
            found += [each for each, parent in parents.items() if parent == known]
        return found[1:]

    def oom_score_adj(self, pid: int) -> int | None:
        """Return the adjustment the OOM killer uses; None if the process is gone."""
        text = self._text(f"{pid}/oom_score_adj")
        return None if text is None else int(text)

    def name(self, pid: int) -> str:
        """Return the name of a process, as the kernel's reports have it; empty if it is gone."""
        return (self._text(f"{pid}/comm") or "").rstrip("\n")

    def command_line(self, pid: int) -> list[str]:
        """Return the words a process was started with; none if it is gone, or a thread of the kernel's."""
        return (self._text(f"{pid}/cmdline") or "").split("\0")[:-1]

    def user(self, pid: int) -> int | None:
        """Return the effective user of a process; None if it is gone."""
        words = self._status(pid, "Uid")
        return int(words[1]) if words else None

    def is_in_inner_namespace(self, pid: int) -> bool:
        """Whether a process is in a pid namespace below this one, as a container's is."""
        return len(self._status(pid, "NSpid")) > 1

    def started_seconds(self, pid: int) -> float | None:
        """Return when a process was started, in seconds since the epoch; None if it is gone."""
        words, machine = self.stat(pid), _BOOT_TIME.search(self._text("stat") or "")
        return int(machine[1]) + int(words[19]) / TICKS_PER_SECOND if machine and len(words) > 19 else None

    def environment(self, pid: int) -> list[str]:
        """Return the variables a process was started with; none if it is gone."""
        return (self._text(f"{pid}/environ") or "").split("\0")

    def cgroups(self, pid: int) -> dict[str, str]:
        """Return the cgroups of a process: controller (empty for cgroup v2) → path."""
        found: dict[str, str] = {}
        for line in (self._text(f"{pid}/cgroup") or "").splitlines():
            _, controllers, path = line.split(":", 2)
            for controller in controllers.split(","):
                found[controller] = path.removesuffix(" (deleted)")
        return found

    def machine_memory(self) -> MachineMemory:
        """Return the machine's memory from ``/proc/meminfo``."""
        kib = dict(_MEMORY.findall(self._text("meminfo") or ""))
        names = ("MemTotal", "MemFree", "Inactive(file)", "MemAvailable")
        return MachineMemory(*(int(kib.get(name, 0)) << 10 for name in names))

    def max_pids(self) -> int | None:
        """Return the limit of process ids: the smaller of the kernel's two bounds, as in the kubelet."""
        bounds = [self._text(f"sys/kernel/{name}") for name in ("pid_max", "threads-max")]
        return min((int(text) for text in bounds if text is not None), default=None)

    def running_threads(self) -> int | None:
        """Return how many processes and threads there are: the second figure of ``loadavg``'s fourth field."""
        text = self._text("loadavg")
        return None if text is None else int(text.split()[3].partition("/")[2])

    def capabilities(self) -> int:
        """Return the effective capabilities of this process, as bits."""
        words = self._status("self", "CapEff")
        return int(words[0], 16) if words else 0

    def _status(self, pid: int | str, name: str) -> list[str]:
        """Return the words of a line of a process's ``status``; none if there is no such line."""
        for line in (self._text(f"{pid}/status") or "").splitlines():
            if line.startswith(f"{name}:"):
                return line.split()[1:]
        return []

    def _text(self, name: str) -> str | None:
        return read_text(self.root / name)
