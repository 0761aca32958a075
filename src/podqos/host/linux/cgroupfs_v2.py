"""cgroup version 2: one tree for all controllers.

Growth is held by ``memory.high`` at what is used now: the kernel makes who wants more wait, again and again, without
killing anybody, while the others go on and can answer SIGTERM. ``memory.max`` would bring the kernel's OOM killer in,
``cgroup.freeze`` would keep everybody from answering. The same file on the node's own cgroup is the fast signal: it
counts in ``memory.events``, which can be waited on, as soon as usage exceeds it.

Source: Documentation/admin-guide/cgroup-v2.rst of Linux.
"""

from __future__ import annotations

import os
import select
from collections.abc import Iterable
from pathlib import Path

from podqos.errors import HostError
from podqos.host.linux.cgroupfs import (
    CgroupMemory,
    Gauges,
    KernelSignal,
    Unwritten,
    below,
    kill_verified,
    listed_processes,
    number_after,
    read_number,
    read_text,
    remove_folders,
    subfolders,
    subtree,
    write_text,
)
from podqos.host.linux.procfs import Procfs
from podqos.qos.cgroup_files import CgroupFile
from podqos.qos.cgroup_settings import CgroupVersion

CONTROLLERS = ("memory", "cpu", "pids", "hugetlb")


class CgroupsV2:
    """A mounted cgroup2 tree."""

    version = CgroupVersion.V2

    def __init__(self, root: Path, own: str, procfs: Procfs | None = None) -> None:
        self._root = root
        self.own = own
        self._procfs = procfs or Procfs()
        self._gauges = Gauges()
        self._controllers = tuple(
            name for name in CONTROLLERS if name in (read_text(root / "cgroup.controllers") or "").split()
        )
        if "memory" not in self._controllers:
            raise HostError("no cgroup controller for memory: the node cannot confine or measure pods")

    @property
    def controllers(self) -> tuple[str, ...]:
        """Which controllers there are."""
        return self._controllers

    def create(self, path: str) -> None:
        """Make the directory, with the controllers switched on all the way down to it."""
        below(self.own, path)
        folder = self._root
        for name in path[1:].split("/"):
            self._enable(folder)
            folder /= name
            try:
                folder.mkdir(exist_ok=True)
            except OSError as error:
                raise HostError(f"cgroup {folder} cannot be made: {error.strerror}") from error

    def write(self, path: str, files: Iterable[CgroupFile]) -> list[Unwritten]:
        """Write the files."""
        below(self.own, path)
        written = (self._write(path, file.name, file.text) for file in files if file.text is not None)
        return [failed for failed in written if failed is not None]

    def read(self, path: str, file: str) -> str | None:
        """Return what a file says."""
        return read_text(self._root / path[1:] / file)

    def exists(self, path: str) -> bool:
        """Whether the directory is there."""
        return (self._root / path[1:]).is_dir()

    def children(self, path: str) -> list[str]:
        """Return the names of the directories below."""
        return subfolders(self._root / path[1:])

    def remove(self, path: str) -> bool:
        """Remove the directory with those below it."""
        below(self.own, path)
        self._gauges.forget(path)
        return remove_folders(self._root / path[1:])

    def entrances(self, path: str) -> list[str]:
        """Return the one file."""
        below(self.own, path)
        return [str(self._root / path[1:] / "cgroup.procs")]

    def processes(self, path: str) -> list[int]:
        """Return the processes of the subtree."""
        return listed_processes(subtree(self._root / path[1:]))

    def holds(self, path: str, pid: int) -> bool:
        """Ask the kernel where the process lives."""
        where = self._procfs.cgroups(pid).get("", "")
        return where == path or where.startswith(f"{path}/")

    def kill(self, path: str) -> bool:
        """Have the kernel kill all of them at once; kernels before 5.14 need them killed one by one."""
        below(self.own, path)
        try:
            write_text(self._root / path[1:] / "cgroup.kill", "1")
        except FileNotFoundError:
            self._write(path, "pids.max", "0")
            return kill_verified(self, path, self._procfs)
        except OSError:
            return not self.exists(path)
        return True

    def memory(self, path: str) -> CgroupMemory | None:
        """Return what it holds."""
        folder = self._root / path[1:]
        read = self._gauges.read(path, (folder / "memory.current", folder / "memory.stat"))
        if read is None:
            return None
        usage, stat = read
        return CgroupMemory(int(usage), number_after(stat, b"inactive_file"), number_after(stat, b"anon"))

    def memory_limit(self, path: str) -> int | None:
        """Return the hard limit."""
        return read_number(self._root / path[1:] / "memory.max")

    def set_memory_limit(self, path: str, limit_bytes: int) -> Unwritten | None:
        """Confine it, without swap."""
        below(self.own, path)
        if (self._root / path[1:] / "memory.swap.max").exists():
            self._write(path, "memory.swap.max", "0")
        return self._write(path, "memory.max", str(limit_bytes))

    def pids(self, path: str) -> int | None:
        """Return the count of the pids controller."""
        return read_number(self._root / path[1:] / "pids.current")

    def cpu_usage_ns(self, path: str) -> int | None:
        """Return the CPU time, which the kernel states in microseconds."""
        text = read_text(self._root / path[1:] / "cpu.stat")
        return None if text is None else number_after(text.encode(), b"usage_usec") * 1000

    def oom_kills(self, path: str) -> int:
        """Return the counter of this cgroup alone, where the kernel tells it apart."""
        folder = self._root / path[1:]
        text = read_text(folder / "memory.events.local") or read_text(folder / "memory.events")
        return number_after((text or "").encode(), b"oom_kill")

    def hold(self, path: str) -> KernelSignal | None:
        """Set ``memory.high`` to what is used now, and wait on ``memory.events``."""
        below(self.own, path)
        usage = read_number(self._root / path[1:] / "memory.current")
        return None if usage is None else self.watch_memory(path, usage)

    def watch_memory(self, path: str, level_bytes: int) -> KernelSignal | None:
        """Set ``memory.high``; the descriptor has an exceptional condition whenever it was exceeded."""
        below(self.own, path)
        events = -1
        try:
            events = os.open(self._root / path[1:] / "memory.events", os.O_RDONLY | os.O_CLOEXEC)
            # What has happened so far is not news: a first reading takes note of it.
            os.pread(events, 4096, 0)
            write_text(self._root / path[1:] / "memory.high", str(level_bytes))
        except OSError:
            if events >= 0:
                os.close(events)
            return None
        # The file can always be read, so only the exceptional condition says something.
        return KernelSignal(events, select.EPOLLPRI)

    def _enable(self, folder: Path) -> None:
        """Hand the controllers down one level; one that cannot be is missed when its files are written."""
        control = folder / "cgroup.subtree_control"
        on = (read_text(control) or "").split()
        for name in self._controllers:
            if name not in on:
                try:
                    write_text(control, f"+{name}")
                except OSError:
                    continue

    def _write(self, path: str, name: str, text: str) -> Unwritten | None:
        try:
            write_text(self._root / path[1:] / name, text)
        except OSError as error:
            return Unwritten(path, name, text, error.strerror or str(error))
        return None
