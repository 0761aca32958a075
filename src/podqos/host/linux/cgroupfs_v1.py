"""cgroup version 1: one directory per controller, the same path below each.

Growth is held by the limit: it is lowered to what is used now, with the cgroup's own OOM killer switched off. Who then
wants more sleeps inside the kernel until it is killed; everybody else in the cgroup goes on and can answer SIGTERM.
The freezer would stop everybody within a fifth of a millisecond, but a frozen process of version 1 neither answers
SIGTERM nor dies of SIGKILL.

Source: Documentation/admin-guide/cgroup-v1/{memory,memcg_test,freezer-subsystem,pids}.rst of Linux.
"""

from __future__ import annotations

import errno
import os
import select
from collections.abc import Iterable, Mapping
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

CONTROLLERS = ("memory", "cpu", "cpuacct", "pids", "freezer", "hugetlb")
_UNLIMITED_BYTES = 1 << 60
# Between reading what is used and writing the limit an allocator gets so far; more only if that was not enough.
_HOLD_MARGINS_BYTES = (512 << 10, 4 << 20, 32 << 20)


class CgroupsV1:
    """The mounted controllers of version 1."""

    version = CgroupVersion.V1

    def __init__(
        self, mounts: Mapping[str, Path], own: str, procfs: Procfs | None = None, v2: Path | None = None
    ) -> None:
        if "memory" not in mounts:
            raise HostError("no cgroup controller for memory: the node cannot confine or measure pods")
        self.own = own
        self._mounts = {name: mounts[name] for name in CONTROLLERS if name in mounts}
        self._roots = tuple(dict.fromkeys(self._mounts.values()))
        # Container runtimes make directories everywhere, of which nothing may stay.
        self._every_root = tuple(dict.fromkeys((*mounts.values(), *([v2] if v2 is not None else ()))))
        self._procfs = procfs or Procfs()
        self._gauges = Gauges()

    @property
    def controllers(self) -> tuple[str, ...]:
        """Which controllers there are."""
        return tuple(self._mounts)

    def create(self, path: str) -> None:
        """Make the directories."""
        below(self.own, path)
        for root in self._roots:
            folder = root / path[1:]
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise HostError(f"cgroup {folder} cannot be made: {error.strerror}") from error

    def write(self, path: str, files: Iterable[CgroupFile]) -> list[Unwritten]:
        """Write the files; pairs that bound each other are written again in the other order where the first fails."""
        below(self.own, path)
        wanted = [(file.name, file.text) for file in files if file.text is not None]
        failed = self._write(path, wanted)
        if len(failed) > 1 or (failed and failed[0].why == os.strerror(errno.EINVAL)):
            failed = self._write(path, wanted[::-1])
        return failed

    def read(self, path: str, file: str) -> str | None:
        """Return what a file says."""
        folder = self._folder(file.partition(".")[0], path)
        return None if folder is None else read_text(folder / file)

    def exists(self, path: str) -> bool:
        """Whether the memory controller has it."""
        return (self._mounts["memory"] / path[1:]).is_dir()

    def children(self, path: str) -> list[str]:
        """Return the names in any of the controllers."""
        return sorted({name for root in self._roots for name in subfolders(root / path[1:])})

    def remove(self, path: str) -> bool:
        """Remove the directories of all controllers, also those that only a runtime made."""
        below(self.own, path)
        self._gauges.forget(path)
        gone = [remove_folders(root / path[1:]) for root in self._every_root]
        return all(gone)

    def entrances(self, path: str) -> list[str]:
        """Return one file per controller; memory first, so that everything is charged from the start."""
        below(self.own, path)
        return [str(root / path[1:] / "cgroup.procs") for root in self._roots]

    def processes(self, path: str) -> list[int]:
        """Return the processes as the memory controller has them."""
        return listed_processes(subtree(self._mounts["memory"] / path[1:]))

    def holds(self, path: str, pid: int) -> bool:
        """Ask the kernel where the process is charged."""
        where = self._procfs.cgroups(pid).get("memory", "")
        return where == path or where.startswith(f"{path}/")

    def kill(self, path: str) -> bool:
        """Let nobody fork, then kill one after the other."""
        below(self.own, path)
        pids = self._folder("pids", path)
        if pids is not None and pids.is_dir():
            self._write(path, [("pids.max", "0")])
        return kill_verified(self, path, self._procfs)

    def memory(self, path: str) -> CgroupMemory | None:
        """Return what it holds; the figures of those below it are in ``total_…``."""
        folder = self._mounts["memory"] / path[1:]
        read = self._gauges.read(path, (folder / "memory.usage_in_bytes", folder / "memory.stat"))
        if read is None:
            return None
        usage, stat = read
        return CgroupMemory(int(usage), number_after(stat, b"total_inactive_file"), number_after(stat, b"total_rss"))

    def memory_limit(self, path: str) -> int | None:
        """Return the limit; the kernel shows an absurd number for none."""
        limit = read_number(self._mounts["memory"] / path[1:] / "memory.limit_in_bytes")
        return None if limit is None or limit >= _UNLIMITED_BYTES else limit

    def set_memory_limit(self, path: str, limit_bytes: int) -> Unwritten | None:
        """Confine it, swap included where that is accounted."""
        below(self.own, path)
        wanted: list[tuple[str, str | None]] = [("memory.limit_in_bytes", str(limit_bytes))]
        if (self._mounts["memory"] / path[1:] / "memory.memsw.limit_in_bytes").exists():
            wanted.append(("memory.memsw.limit_in_bytes", str(limit_bytes)))
        failed = self._write(path, wanted)
        failed = failed and self._write(path, wanted[::-1])
        return failed[0] if failed else None

    def pids(self, path: str) -> int | None:
        """Return the count of the pids controller."""
        folder = self._folder("pids", path)
        return None if folder is None else read_number(folder / "pids.current")

    def cpu_usage_ns(self, path: str) -> int | None:
        """Return the count of the cpuacct controller."""
        folder = self._folder("cpuacct", path)
        return None if folder is None else read_number(folder / "cpuacct.usage")

    def oom_kills(self, path: str) -> int:
        """Return the counter, which rises in the very cgroup of the victim only."""
        text = read_text(self._mounts["memory"] / path[1:] / "memory.oom_control")
        return number_after((text or "").encode(), b"oom_kill")

    def hold(self, path: str) -> KernelSignal | None:
        """Lower the limit to what is used now, switch the OOM killer off, and listen for who wants more."""
        below(self.own, path)
        folder = self._mounts["memory"] / path[1:]
        event = -1
        try:
            event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            write_text(folder / "memory.oom_control", "1")
            self._listen(folder, "memory.oom_control", event, "")
            for margin in _HOLD_MARGINS_BYTES:
                usage = read_number(folder / "memory.usage_in_bytes") or 0
                if not self._write(path, [("memory.limit_in_bytes", str(usage + margin))]):
                    return KernelSignal(event, select.EPOLLIN)
        except OSError:
            pass
        if event >= 0:
            os.close(event)
        return None

    def watch_memory(self, path: str, level_bytes: int) -> KernelSignal | None:
        """Have the kernel tell when usage crosses a level, upwards or downwards."""
        event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            self._listen(self._mounts["memory"] / path[1:], "memory.usage_in_bytes", event, f" {level_bytes}")
        except OSError:
            os.close(event)
            return None
        return KernelSignal(event, select.EPOLLIN)

    def _listen(self, folder: Path, file: str, event: int, arguments: str) -> None:
        watched = os.open(folder / file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            write_text(folder / "cgroup.event_control", f"{event} {watched}{arguments}")
        finally:
            os.close(watched)

    def _write(self, path: str, wanted: Iterable[tuple[str, str | None]]) -> list[Unwritten]:
        failed = []
        for name, text in wanted:
            folder = self._folder(name.partition(".")[0], path)
            if folder is None:
                failed.append(Unwritten(path, name, text or "", "this controller is not mounted"))
                continue
            try:
                write_text(folder / name, text or "")
            except OSError as error:
                failed.append(Unwritten(path, name, text or "", error.strerror or str(error)))
        return failed

    def _folder(self, controller: str, path: str) -> Path | None:
        root = self._mounts.get(controller)
        return None if root is None else root / path[1:]
