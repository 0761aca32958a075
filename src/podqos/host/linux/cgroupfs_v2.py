"""cgroup version 2: one tree for all controllers.

Growth is stopped by ``memory.high`` at current usage: the kernel throttles processes that allocate more without killing
any, while the others keep running and can handle SIGTERM. ``memory.max`` would trigger the OOM killer, and
``cgroup.freeze`` would keep all of them from handling SIGTERM. The same file on the node's own cgroup is the fast
signal: as soon as usage exceeds it, the kernel counts it in ``memory.events``, which can be polled.

Source: Documentation/admin-guide/cgroup-v2.rst of Linux.
"""

from __future__ import annotations

import contextlib
import os
import select
from pathlib import Path

from podqos.errors import HostError
from podqos.host.linux.cgroupfs import (
    Cgroups,
    KernelSignal,
    Unwritten,
    number_after,
    read_number,
    write_text,
)
from podqos.host.linux.procfs import Procfs, read_text
from podqos.qos.cgroup_settings import CgroupVersion

CONTROLLERS = ("memory", "cpu", "pids", "hugetlb")


class CgroupsV2(Cgroups):
    """A mounted cgroup2 tree."""

    version = CgroupVersion.V2
    _USAGE, _LIMIT = "memory.current", "memory.max"
    _INACTIVE_FILE, _ANON = b"inactive_file", b"anon"
    # Of this cgroup alone, where the kernel counts that separately.
    _OOM_KILLS = ("memory.events.local", "memory.events")
    _HIERARCHY = ""
    _FREEZER = "cgroup.freeze", "1", "0"

    def __init__(self, root: Path, own: str, procfs: Procfs | None = None) -> None:
        self._root = root
        there = (read_text(root / "cgroup.controllers") or "").split()
        super().__init__(own, {name: root for name in CONTROLLERS if name in there}, procfs)

    def create(self, path: str) -> None:
        """Create the directory, with the controllers enabled on the whole path."""
        self._check(path)
        folder = self._root
        for name in path[1:].split("/"):
            self._enable(folder)
            folder /= name
            try:
                folder.mkdir(exist_ok=True)
            except OSError as error:
                raise HostError(f"cgroup {folder} cannot be created: {error.strerror}") from error

    def kill(self, path: str) -> bool:
        """Have the kernel kill all of them at once; kernels before 5.14 need them killed one by one."""
        self._check(path)
        try:
            write_text(self._folder(path) / "cgroup.kill", "1")
        except FileNotFoundError:
            return self._kill_each(path)
        except OSError:
            return not self.exists(path)
        return True

    def kill_charged(self, path: str) -> int:
        """Have the kernel kill all of them at once, also those in other pid namespaces and what they fork meanwhile."""
        self._check(path)
        count = len(self.charged(path))
        try:
            write_text(self._folder(path) / "cgroup.kill", "1")
        except FileNotFoundError:
            return super().kill_charged(path)
        except OSError:
            return 0
        return count

    def hides_processes(self) -> bool:
        """Whether this matters: the kernel kills a cgroup as a whole, since 5.14."""
        return not (self._folder(self.own) / "cgroup.kill").exists() and super().hides_processes()

    def has_processes(self, path: str) -> bool:
        """Whether the kernel says so, also of processes in other pid namespaces."""
        return number_after((read_text(self._folder(path) / "cgroup.events") or "").encode(), b"populated") > 0

    def set_memory_limit(self, path: str, limit_bytes: int) -> Unwritten | None:
        """Limit its memory, without swap."""
        self._check(path)
        if (self._folder(path) / "memory.swap.max").exists():
            self._write(path, [("memory.swap.max", "0")])
        return next(iter(self._write(path, [(self._LIMIT, str(limit_bytes))])), None)

    def cpu_usage_ns(self, path: str) -> int | None:
        """Return the CPU time, which the kernel states in microseconds."""
        text = read_text(self._folder(path) / "cpu.stat")
        return None if text is None else number_after(text.encode(), b"usage_usec") * 1000

    def hold(self, path: str) -> KernelSignal | None:
        """Set ``memory.high`` to current usage, and watch ``memory.events``."""
        self._check(path)
        usage = read_number(self._folder(path) / self._USAGE)
        events = None if usage is None else self._set_high(path, usage)
        return None if events is None else KernelSignal(events, select.EPOLLPRI)

    def release(self, path: str) -> bool:
        """Remove ``memory.high``, which no plan sets for a whole pod."""
        self._check(path)
        if read_number(self._folder(path) / "memory.high") is None:
            return False
        return not self._write(path, [("memory.high", "max")])

    def watch_memory(self, path: str, level_bytes: int) -> KernelSignal | None:
        """Set ``memory.high``, until the signal is closed."""
        events = self._set_high(path, level_bytes)
        if events is None:
            return None
        return KernelSignal(events, select.EPOLLPRI, lambda: self.unwatch_memory(path))

    def unwatch_memory(self, path: str) -> None:
        """Remove ``memory.high``: a node would stay below it for good."""
        self._check(path)
        self._write(path, [("memory.high", "max")])

    def _set_high(self, path: str, level_bytes: int) -> int | None:
        """Return a descriptor that has an exceptional condition whenever ``memory.high`` was exceeded.

        The file is always readable: that means nothing.
        """
        self._check(path)
        events = -1
        try:
            events = os.open(self._folder(path) / "memory.events", os.O_RDONLY | os.O_CLOEXEC)
            # Past events are not news: a first read consumes them.
            os.pread(events, 4096, 0)
            write_text(self._folder(path) / "memory.high", str(level_bytes))
        except OSError:
            if events >= 0:
                os.close(events)
            return None
        return events

    def _enable(self, folder: Path) -> None:
        """Enable the controllers one level down; a failure shows when their files are written."""
        control = folder / "cgroup.subtree_control"
        on = (read_text(control) or "").split()
        for name in self._mounts:
            if name not in on:
                with contextlib.suppress(OSError):
                    write_text(control, f"+{name}")

    def _folder_of(self, path: str, file: str) -> Path:
        """Return the directory of all controllers; files of a missing one do not exist."""
        del file
        return self._folder(path)
