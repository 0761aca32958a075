"""The kernel's cgroups as the node uses them: one port, a class per version (``cgroupfs_v1``, ``cgroupfs_v2``).

Paths are those of the plan (``qos.cgroup``): ``/podqos/kubepods/burstable/pod…``, the same in every hierarchy. Whatever
changes something refuses a path that is not below the node's own cgroup, so that no mistake reaches anybody else's.
A cgroup can vanish at any moment; a figure that is gone is None and not an error.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from podqos.errors import HostError
from podqos.host.linux.procfs import Procfs
from podqos.qos.cgroup_files import CgroupFile
from podqos.qos.cgroup_settings import CgroupVersion

# A file of figures is shorter than this on any kernel.
_FIGURES_BYTES = 16384
# Processes that fork while they are killed are looked for again; with pids.max at 0 there are no more than this.
_KILL_ROUNDS = 20


class CgroupMemory(Struct, frozen=True, gc=False):
    """What a cgroup holds."""

    usage_bytes: int
    inactive_file_bytes: int
    anon_bytes: int

    @property
    def working_set_bytes(self) -> int:
        """Usage without what the kernel can drop at once, as cAdvisor counts it."""
        return max(0, self.usage_bytes - self.inactive_file_bytes)


class Unwritten(Struct, frozen=True, gc=False):
    """A file that the kernel did not let us write as wanted."""

    path: str
    file: str
    wanted: str
    why: str

    def __str__(self) -> str:
        """Return one line: where, what was wanted, why not."""
        return f"{self.path}: {self.file} = {self.wanted} not written: {self.why}"


class KernelSignal:
    """A descriptor on which the kernel tells something about a cgroup, again and again."""

    def __init__(self, descriptor: int, events: int) -> None:
        self.descriptor = descriptor
        self.events = events
        """What to wait for, in epoll's terms."""

    def take(self) -> None:
        """Take note of what was told, so that only something new is told again."""
        with contextlib.suppress(OSError):
            if self.events & select.EPOLLIN:
                os.read(self.descriptor, 8)
            else:
                os.pread(self.descriptor, 4096, 0)

    def close(self) -> None:
        """Listen no more."""
        os.close(self.descriptor)


class Cgroups(Protocol):
    """What the node does with cgroups."""

    version: CgroupVersion
    own: str
    """The cgroup that holds everything of this node."""

    def create(self, path: str) -> None:
        """Make a cgroup and the ones above it; fine if it is there."""

    def write(self, path: str, files: Iterable[CgroupFile]) -> list[Unwritten]:
        """Write the files of a plan; return those that could not be written."""

    def read(self, path: str, file: str) -> str | None:
        """Return what a file says; None where there is none."""

    def exists(self, path: str) -> bool:
        """Whether there is such a cgroup."""

    def children(self, path: str) -> list[str]:
        """Return the names of the cgroups directly below."""

    def remove(self, path: str) -> bool:
        """Remove a cgroup with all below it; False while the kernel still holds something of it."""

    def entrances(self, path: str) -> list[str]:
        """Return the files a process writes 0 into to move itself into the cgroup."""

    def processes(self, path: str) -> list[int]:
        """Return the process ids in a cgroup and all below it."""

    def holds(self, path: str, pid: int) -> bool:
        """Whether a process is in the cgroup or below it, by the kernel's word."""

    def kill(self, path: str) -> bool:
        """Kill every process in it, and no other; False where some could not be."""

    def memory(self, path: str) -> CgroupMemory | None:
        """Return what it holds now; cheap enough to be asked a hundred times in a millisecond or two."""

    def memory_limit(self, path: str) -> int | None:
        """Return its limit in bytes; None without one."""

    def set_memory_limit(self, path: str, limit_bytes: int) -> Unwritten | None:
        """Confine it."""

    def pids(self, path: str) -> int | None:
        """Return how many processes and threads it holds."""

    def cpu_usage_ns(self, path: str) -> int | None:
        """Return the CPU time it has used."""

    def oom_kills(self, path: str) -> int:
        """Return how many processes of this very cgroup the kernel's OOM killer has ended."""

    def hold(self, path: str) -> KernelSignal | None:
        """Stop a cgroup from growing, but let it run; None where that failed.

        The signal comes when somebody in there wants more all the same: those wait, and can be killed.
        """

    def watch_memory(self, path: str, level_bytes: int) -> KernelSignal | None:
        """Return a signal that comes when usage crosses a level; None where the kernel has none to offer."""


def below(own: str, path: str) -> str:
    """Return the path, which has to be the node's own cgroup or below it."""
    if (path != own and not path.startswith(f"{own}/")) or ".." in path.split("/"):
        raise HostError(f"cgroup {path} is not below {own}, and is not touched")
    return path


def write_text(file: Path | str, text: str) -> None:
    """Write a control file in one go."""
    # Without O_NONBLOCK the kernel lets whoever lowers memory.high wait for the reclaim.
    descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def read_text(file: Path | str) -> str | None:
    """Return what a control file says; None where it is gone."""
    try:
        return Path(file).read_text()
    except OSError:
        return None


def read_number(file: Path | str) -> int | None:
    """Return the number in a control file; None for ``max`` and where it is gone."""
    text = read_text(file)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def subtree(folder: Path) -> Iterator[Path]:
    """Yield the cgroups below a directory and the directory itself, deepest first."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in names:
        yield from subtree(folder / name)
    yield folder


def subfolders(folder: Path) -> list[str]:
    """Return the names of the cgroups directly below a directory."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def remove_folders(folder: Path) -> bool:
    """Remove a cgroup directory with those below it; False while the kernel still holds something of it."""
    gone = True
    for each in subtree(folder):
        try:
            each.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            gone = False
    return gone


def listed_processes(folders: Iterable[Path]) -> list[int]:
    """Return the process ids that the directories list."""
    found: list[int] = []
    for folder in folders:
        text = read_text(folder / "cgroup.procs")
        found += map(int, (text or "").split())
    return sorted(set(found))


def number_after(figures: bytes, name: bytes) -> int:
    """Return the number of a line ``name number``; 0 where there is none."""
    start = figures.find(b"\n" + name + b" ")
    if start < 0:
        if not figures.startswith(name + b" "):
            return 0
        start = -1
    start += len(name) + 2
    end = figures.find(b"\n", start)
    return int(figures[start : end if end >= 0 else len(figures)])


class Gauges:
    """Files of figures kept open, because opening is most of the cost of reading them."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[int, ...]] = {}

    def read(self, path: str, files: Sequence[Path]) -> list[bytes] | None:
        """Return what the files say; None if the cgroup is gone."""
        descriptors = self._open.get(path)
        if descriptors is None:
            opened: list[int] = []
            try:
                opened += (os.open(file, os.O_RDONLY | os.O_CLOEXEC) for file in files)
            except OSError:
                for descriptor in opened:
                    os.close(descriptor)
                return None
            descriptors = self._open[path] = tuple(opened)
        try:
            return [os.pread(descriptor, _FIGURES_BYTES, 0) for descriptor in descriptors]
        except OSError:
            self.forget(path)
            return None

    def forget(self, path: str) -> None:
        """Close what is open for a cgroup and those below it."""
        for each in [other for other in self._open if other == path or other.startswith(f"{path}/")]:
            for descriptor in self._open.pop(each):
                os.close(descriptor)


def kill_verified(cgroups: Cgroups, path: str, procfs: Procfs) -> bool:
    """Kill one process after the other, each held by a pidfd while the kernel is asked where it lives."""
    refused = False
    signalled: set[int] = set()
    for _ in range(_KILL_ROUNDS):
        there = set(cgroups.processes(path)) - signalled
        if not there:
            break
        for pid in there:
            refused |= not send_signal(cgroups, path, pid, signal.SIGKILL, procfs)
        signalled |= there
    return not refused


def send_signal(cgroups: Cgroups, path: str, pid: int, number: int, procfs: Procfs) -> bool:
    """Signal a process if it lives in the cgroup: the pidfd keeps it the same process between asking and acting."""
    descriptor = procfs.open_pidfd(pid)
    if descriptor is None:
        return True
    try:
        if not cgroups.holds(path, pid):
            return True
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, number)
    except PermissionError:
        return False
    finally:
        os.close(descriptor)
    return True
