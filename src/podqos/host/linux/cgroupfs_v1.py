"""cgroup version 1: one directory per controller, the same path below each.

Growth is stopped by lowering the limit to current usage, with the cgroup's OOM killer disabled. A process that then
allocates more sleeps in the kernel until it is killed; the rest of the cgroup keeps running and can handle SIGTERM.
The freezer would stop all of it within a fifth of a millisecond, but in version 1 a frozen process neither handles
SIGTERM nor dies of SIGKILL.

Source: Documentation/admin-guide/cgroup-v1/{memory,memcg_test,freezer-subsystem,pids}.rst of Linux.
"""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Mapping
from pathlib import Path

from podqos.errors import HostError
from podqos.host.linux.cgroupfs import (
    Cgroups,
    KernelSignal,
    Unwritten,
    number_after,
    read_number,
    subtree,
    write_text,
)
from podqos.host.linux.procfs import Procfs, read_text
from podqos.qos.cgroup_settings import CgroupVersion

CONTROLLERS = ("memory", "cpu", "cpuacct", "pids", "freezer", "hugetlb")
# How far an allocator gets between reading usage and writing the limit; the larger margins are for retries.
_HOLD_MARGINS_BYTES = (512 << 10, 4 << 20, 32 << 20)


class CgroupsV1(Cgroups):
    """The mounted controllers of version 1."""

    version = CgroupVersion.V1
    _USAGE, _LIMIT = "memory.usage_in_bytes", "memory.limit_in_bytes"
    # ``total_…`` includes the cgroups below.
    _INACTIVE_FILE, _ANON = b"total_inactive_file", b"total_rss"
    _OOM_KILLS = ("memory.oom_control",)
    _HIERARCHY = "memory"
    _FREEZER = "freezer.state", "FROZEN", "THAWED"

    def __init__(
        self, mounts: Mapping[str, Path], own: str, procfs: Procfs | None = None, v2: Path | None = None
    ) -> None:
        # Container runtimes create directories in every hierarchy; all of them have to be removed.
        others = (*mounts.values(), *([v2] if v2 is not None else ()))
        super().__init__(own, {name: mounts[name] for name in CONTROLLERS if name in mounts}, procfs, others)

    def create(self, path: str) -> None:
        """Create the directories."""
        self._check(path)
        for root in self._roots:
            folder = root / path[1:]
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise HostError(f"cgroup {folder} cannot be created: {error.strerror}") from error

    def kill(self, path: str) -> bool:
        """Kill the processes one by one."""
        self._check(path)
        return self._kill_each(path)

    def set_memory_limit(self, path: str, limit_bytes: int) -> Unwritten | None:
        """Limit its memory, including swap where that is accounted."""
        self._check(path)
        wanted = [(self._LIMIT, str(limit_bytes))]
        if (self._folder(path) / "memory.memsw.limit_in_bytes").exists():
            wanted.append(("memory.memsw.limit_in_bytes", str(limit_bytes)))
        failed = self._write(path, wanted)
        failed = failed and self._write(path, wanted[::-1])
        return failed[0] if failed else None

    def cpu_usage_ns(self, path: str) -> int | None:
        """Return the count of the cpuacct controller."""
        folder = self._folder_of(path, "cpuacct.usage")
        return None if folder is None else read_number(folder / "cpuacct.usage")

    def hold(self, path: str) -> KernelSignal | None:
        """Lower the limit to current usage, disable the OOM killer, and listen for allocations beyond it."""
        self._check(path)
        event = -1
        try:
            event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            write_text(self._folder(path) / "memory.oom_control", "1")
            self._listen(path, "memory.oom_control", event, "")
            for margin in _HOLD_MARGINS_BYTES:
                usage = read_number(self._folder(path) / self._USAGE) or 0
                if not self._write(path, [(self._LIMIT, str(usage + margin))]):
                    return KernelSignal(event, select.EPOLLIN)
        except OSError:
            pass
        if event >= 0:
            os.close(event)
        return None

    def release(self, path: str) -> bool:
        """Enable the OOM killer again, and lift the limit, where the OOM killer was disabled."""
        self._check(path)
        was_held = False
        for folder in (*subtree(self._folder(path)),)[::-1]:
            if number_after((read_text(folder / "memory.oom_control") or "").encode(), b"oom_kill_disable"):
                was_held = True
                # The limit on memory and swap bounds that on memory. Processes that wait go on once there is room.
                for name, text in (
                    ("memory.memsw.limit_in_bytes", "-1"),
                    (self._LIMIT, "-1"),
                    ("memory.oom_control", "0"),
                ):
                    with contextlib.suppress(OSError):
                        write_text(folder / name, text)
        return was_held

    def watch_memory(self, path: str, level_bytes: int) -> KernelSignal | None:
        """Have the kernel signal when usage crosses a level, upwards or downwards."""
        event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            self._listen(path, self._USAGE, event, f" {level_bytes}")
        except OSError:
            os.close(event)
            return None
        return KernelSignal(event, select.EPOLLIN)

    def unwatch_memory(self, path: str) -> None:
        """Do nothing: the kernel forgets a level with the process that set it."""

    def _listen(self, path: str, file: str, event: int, arguments: str) -> None:
        watched = os.open(self._folder(path) / file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            write_text(self._folder(path) / "cgroup.event_control", f"{event} {watched}{arguments}")
        finally:
            os.close(watched)
