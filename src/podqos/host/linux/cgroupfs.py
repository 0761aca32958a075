"""The kernel's cgroups as the node uses them: what both versions share; the rest is in ``cgroupfs_v1`` and ``_v2``.

Paths are those of the plan (``qos.cgroup``): ``/podqos/kubepods/burstable/pod…``, the same in every hierarchy. Every
method that changes something refuses paths outside the node's own cgroup, so that no mistake can affect other cgroups.
A cgroup can vanish at any moment; a figure that is gone is None, not an error.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import select
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from podqos.errors import HostError
from podqos.host.linux.descriptors import is_reserved
from podqos.host.linux.procfs import Procfs, read_text
from podqos.qos.cgroup_files import CgroupFile
from podqos.qos.cgroup_settings import CgroupVersion

# A file of figures is shorter than this on any kernel.
_FIGURES_BYTES = 16384
# Processes that fork while being killed need another round; with pids.max at 0 this many are enough.
_KILL_ROUNDS = 20
_END_POLL_SECONDS = 0.005
_FEW_DESCRIPTORS, _MANY_DESCRIPTORS = 64, 4096
_UNLIMITED_BYTES = 1 << 60


class CgroupMemory(Struct, frozen=True, gc=False):
    """The memory of a cgroup."""

    usage_bytes: int
    inactive_file_bytes: int
    anon_bytes: int

    @property
    def working_set_bytes(self) -> int:
        """Usage without inactive page cache, as cAdvisor counts it."""
        return max(0, self.usage_bytes - self.inactive_file_bytes)


class Unwritten(Struct, frozen=True, gc=False):
    """A file that could not be written."""

    path: str
    file: str
    wanted: str
    why: str

    def __str__(self) -> str:
        """Return one line: which file, which value, why not."""
        return f"{self.path}: {self.file} = {self.wanted} not written: {self.why}"


class KernelSignal:
    """A descriptor on which the kernel signals events of a cgroup."""

    def __init__(self, descriptor: int, events: int, undo: Callable[[], object] = lambda: None) -> None:
        self.descriptor = descriptor
        self.events = events
        """What to wait for, in epoll's terms."""
        self._undo = undo
        """What else it takes to stop listening."""

    def take(self) -> None:
        """Consume the signal, so that only a new event signals again."""
        with contextlib.suppress(OSError):
            if self.events & select.EPOLLIN:
                os.read(self.descriptor, 8)
            else:
                os.pread(self.descriptor, 4096, 0)

    def close(self) -> None:
        """Stop listening."""
        os.close(self.descriptor)
        self._undo()


class Cgroups(ABC):
    """The mounted cgroups of one version, below which the node has one of its own."""

    version: ClassVar[CgroupVersion]
    # Names of files and of figures in them.
    _USAGE: ClassVar[str]
    _LIMIT: ClassVar[str]
    _INACTIVE_FILE: ClassVar[bytes]
    _ANON: ClassVar[bytes]
    _OOM_KILLS: ClassVar[tuple[str, ...]]
    _HIERARCHY: ClassVar[str]
    """The line of ``/proc/<pid>/cgroup`` with the cgroup that a process' memory is charged to."""
    _FREEZER: ClassVar[tuple[str, str, str]]
    """The file that freezes, and its content for frozen and thawed."""

    def __init__(
        self, own: str, mounts: Mapping[str, Path], procfs: Procfs | None, others: Iterable[Path] = ()
    ) -> None:
        """``mounts`` are by controller; ``others`` may have directories to remove as well."""
        if "memory" not in mounts:
            raise HostError("no cgroup controller for memory: the node cannot confine or measure pods")
        self.own = own
        """The node's own cgroup."""
        self._mounts = mounts
        self._roots = tuple(dict.fromkeys(mounts.values()))
        self._every_root = tuple(dict.fromkeys((*self._roots, *others)))
        self._procfs = procfs or Procfs()
        self._gauges = Gauges(self._memory_files)

    def close(self) -> None:
        """Close the files of figures; they are opened again where they are read."""
        self._gauges.forget("")

    @property
    def controllers(self) -> tuple[str, ...]:
        """The mounted controllers."""
        return tuple(self._mounts)

    # ---- the tree ------------------------------------------------------------------------------------------------

    @abstractmethod
    def create(self, path: str) -> None:
        """Create a cgroup and its parents; it may exist already."""

    def exists(self, path: str) -> bool:
        """Whether there is such a cgroup."""
        return self._folder(path).is_dir()

    def folder(self, path: str) -> Path:
        """Return the directory of a cgroup, in the hierarchy of memory."""
        return self._folder(path)

    def is_empty(self, path: str) -> bool:
        """Whether it has neither processes nor cgroups below it, in any hierarchy."""
        folders = [root / path[1:] for root in self._roots]
        return not any(subfolders(folder) or (read_text(folder / "cgroup.procs") or "").strip() for folder in folders)

    def children(self, path: str) -> list[str]:
        """Return the names of the cgroups directly below."""
        return sorted({name for root in self._roots for name in subfolders(root / path[1:])})

    def remove(self, path: str) -> bool:
        """Remove a cgroup and all below it; False while the kernel still keeps part of it."""
        self._check(path)
        self._gauges.forget(path)
        gone = [remove_folders(root / path[1:]) for root in self._every_root]
        return all(gone)

    def read(self, path: str, file: str) -> str | None:
        """Return the content of a file; None if it does not exist."""
        folder = self._folder_of(path, file)
        return None if folder is None else read_text(folder / file)

    def write(self, path: str, files: Iterable[CgroupFile]) -> list[Unwritten]:
        """Write the files of a plan; return those that could not be written.

        Pairs that bound each other are retried in the other order if the first fails.
        """
        self._check(path)
        wanted = [(file.name, file.text) for file in files if file.text is not None]
        failed = self._write(path, wanted)
        if len(failed) > 1 or (failed and failed[0].why == os.strerror(errno.EINVAL)):
            failed = self._write(path, wanted[::-1])
        return failed

    # ---- processes -----------------------------------------------------------------------------------------------

    def entrances(self, path: str) -> list[str]:
        """Return the files a process writes 0 into to move itself into the cgroup.

        Memory's comes first, so that everything is charged from the start.
        """
        self._check(path)
        return [str(root / path[1:] / "cgroup.procs") for root in self._roots]

    def processes(self, path: str) -> list[int]:
        """Return the process ids in a cgroup and all below it, in any hierarchy: a process can leave one of several."""
        return sorted(_listed(root / path[1:] for root in self._roots))

    def process_names(self, path: str) -> Iterator[str]:
        """Yield the names of the processes in a cgroup and all below it."""
        return (self._procfs.name(pid) for pid in self.processes(path))

    def charged(self, path: str) -> set[int]:
        """Return the process ids whose memory is charged to a cgroup or one below it.

        One that this process cannot see, in another pid namespace, is 0 or missing (``has_processes``).
        """
        return _listed((self._folder(path),))

    def has_processes(self, path: str) -> bool:
        """Whether any process is charged to it or to a cgroup below it."""
        return bool(self.charged(path))

    def hides_processes(self) -> bool:
        """Whether the node's pods have processes, but none that this process could see and kill.

        They are in another pid namespace then, as for a container without ``hostPID``. The pids controller counts them.
        """
        here = self.of_process(os.getpid())
        if any(self.of_process(pid) != here for pid in self.charged(self.own) if pid):
            return False
        own_tasks = self._task_count(here) if here.startswith(f"{self.own}/") else 0
        return self._task_count(self.own) > own_tasks

    def _task_count(self, path: str) -> int:
        return int(self.read(path, "pids.current") or 0)

    def of_process(self, pid: int) -> str:
        """Return the cgroup a process is charged to, according to the kernel; empty if it is gone."""
        return self._procfs.cgroups(pid).get(self._HIERARCHY, "")

    def holds(self, path: str, pid: int) -> bool:
        """Whether a process is in the cgroup or below it, in any hierarchy."""
        there = self._procfs.cgroups(pid)
        lines = self._mounts if self._HIERARCHY else ("",)
        return any(f"{there.get(line, '')}/".startswith(f"{path}/") for line in lines)

    def signal(self, path: str, pid: int, number: int) -> bool:
        """Signal a process if it is in the cgroup; False if not permitted.

        The pidfd ensures that it is the same process between check and signal.
        """
        return signal_if(pid, number, lambda: self.holds(path, pid))

    @abstractmethod
    def kill(self, path: str) -> bool:
        """Kill every process in it, and no other; False if some could not be killed."""

    def end(self, paths: Iterable[str], seconds: float) -> None:
        """Kill everything in these cgroups, wait until it is gone, and remove them."""
        until = time.monotonic() + seconds
        waiting = list(paths)
        for path in waiting:
            self.kill(path)
        while waiting and time.monotonic() < until:
            waiting = [path for path in waiting if not self.remove(path)]
            for path in waiting:
                self.kill(path)
            time.sleep(_END_POLL_SECONDS if waiting else 0)

    def end_loose(self, path: str) -> None:
        """Kill the processes in a cgroup itself, leaving those below it and this one."""
        self._check(path)
        for root in self._roots:
            for pid in map(int, (read_text(root / path[1:] / "cgroup.procs") or "").split()):
                if pid != os.getpid():
                    self.signal(path, pid, signal.SIGKILL)

    def kill_charged(self, path: str) -> int:
        """Kill every process whose memory is charged to it, and no other; return how many were signalled."""
        self._check(path)
        return _kill_listed(lambda: self.charged(path))[0]

    def _kill_each(self, path: str) -> bool:
        """Prevent forks, then kill the processes one by one."""
        self._write(path, [("pids.max", "0")])
        return _kill_listed(lambda: set(self.processes(path)))[1]

    # ---- the freezer ---------------------------------------------------------------------------------------------

    def freeze(self, path: str) -> bool:
        """Stop all of it where it is, and whatever starts in it; False where that is not possible."""
        self._check(path)
        file, frozen, _ = self._FREEZER
        return not self._write(path, [(file, frozen)])

    def thaw(self, path: str) -> bool:
        """Undo ``freeze``; return whether it was frozen. In version 1 what was killed meanwhile only dies now."""
        self._check(path)
        file, _, thawed = self._FREEZER
        text = self.read(path, file)
        return text is not None and text.strip() != thawed and not self._write(path, [(file, thawed)])

    def thawing(self, path: str) -> tuple[str, str]:
        """Return what another process has to write, and into which file, to undo ``freeze``."""
        file, _, thawed = self._FREEZER
        return thawed, f"{self._folder_of(path, file) or ''}/{file}"

    # ---- figures -------------------------------------------------------------------------------------------------

    def memory(self, path: str) -> CgroupMemory | None:
        """Return its memory; cheap enough to be called a hundred times in a millisecond or two."""
        read = self._gauges.read(path)
        if read is None:
            return None
        usage, stat = read
        return CgroupMemory(int(usage), number_after(stat, self._INACTIVE_FILE), number_after(stat, self._ANON))

    def usage(self, path: str) -> int | None:
        """Return its usage alone, at a tenth of the cost."""
        read = self._gauges.read(path, most=1)
        return None if read is None else int(read[0])

    def _memory_files(self, path: str) -> tuple[Path, Path]:
        folder = self._folder(path)
        return folder / self._USAGE, folder / "memory.stat"

    def memory_limit(self, path: str) -> int | None:
        """Return its limit in bytes; None without one, which version 1 shows as a huge number."""
        limit = read_number(self._folder(path) / self._LIMIT)
        return None if limit is None or limit >= _UNLIMITED_BYTES else limit

    @abstractmethod
    def set_memory_limit(self, path: str, limit_bytes: int) -> Unwritten | None:
        """Limit its memory, including swap where that is accounted."""

    def pids(self, path: str) -> int | None:
        """Return how many processes and threads it holds."""
        folder = self._folder_of(path, "pids.current")
        return None if folder is None else read_number(folder / "pids.current")

    @abstractmethod
    def cpu_usage_ns(self, path: str) -> int | None:
        """Return the CPU time it has used."""

    def oom_kills(self, path: str) -> int:
        """Return how many processes of this cgroup itself the OOM killer has killed."""
        texts = (read_text(self._folder(path) / name) for name in self._OOM_KILLS)
        return number_after(next(filter(None, texts), "").encode(), b"oom_kill")

    def forget(self, path: str) -> None:
        """Close what is open of a cgroup and those below it."""
        self._gauges.forget(path)

    # ---- signals -------------------------------------------------------------------------------------------------

    @abstractmethod
    def hold(self, path: str) -> KernelSignal | None:
        """Stop a cgroup from growing but keep it running; None if that failed.

        The signal comes when a process in it tries to allocate more: such processes wait, and can be killed.
        """

    @abstractmethod
    def release(self, path: str) -> bool:
        """Undo ``hold``; return whether it was held. Limits, of it and all below, have to be written again."""

    @abstractmethod
    def watch_memory(self, path: str, level_bytes: int) -> KernelSignal | None:
        """Return a signal that comes when usage crosses a level; None if the kernel has none."""

    @abstractmethod
    def unwatch_memory(self, path: str) -> None:
        """Undo ``watch_memory`` of an agent that was killed, where that does not end with it."""

    # ---- files ---------------------------------------------------------------------------------------------------

    def _folder(self, path: str) -> Path:
        return self._mounts["memory"] / path[1:]

    def _folder_of(self, path: str, file: str) -> Path | None:
        root = self._mounts.get(file.partition(".")[0])
        return None if root is None else root / path[1:]

    def _write(self, path: str, wanted: Iterable[tuple[str, str]]) -> list[Unwritten]:
        failed = []
        for name, text in wanted:
            folder = self._folder_of(path, name)
            try:
                if folder is not None:
                    write_text(folder / name, text)
                    continue
                why = "this controller is not mounted"
            except OSError as error:
                why = error.strerror or str(error)
            failed.append(Unwritten(path, name, text, why))
        return failed

    def _check(self, path: str) -> None:
        """Refuse a path that is neither the node's own cgroup nor below it."""
        if (path != self.own and not path.startswith(f"{self.own}/")) or ".." in path.split("/"):
            raise HostError(f"cgroup {path} is not below {self.own}: refusing to touch it")


def _listed(folders: Iterable[Path]) -> set[int]:
    """Return the processes in these cgroups and all below; 0 stands for one in another pid namespace."""
    texts = (read_text(path / "cgroup.procs") for folder in folders for path in subtree(folder))
    return {int(pid) for text in texts for pid in (text or "").split()} - {0}


def _kill_listed(listed: Callable[[], set[int]]) -> tuple[int, bool]:
    """Kill what a list has; return how many were signalled, and whether all could be.

    A process must be listed again between the opening of its pidfd and the signal: one that has left, or whose id was
    reused, is spared. The next round finds what was forked meanwhile.
    """
    seen: set[int] = set()
    count, is_permitted = 0, True
    for _ in range(_KILL_ROUNDS):
        there = sorted(listed() - seen)
        seen.update(there)
        if not there:
            break
        for few in _batched(there, _at_once()):
            with contextlib.ExitStack() as opened:
                pidfds = []
                for pid in few:
                    try:
                        fd = open_pidfd(pid)
                    except OSError:  # too many are open; the next round
                        seen.discard(pid)
                        continue
                    if fd is not None:
                        opened.callback(os.close, fd)
                        pidfds.append((pid, fd))
                still = listed()
                for fd in (fd for pid, fd in pidfds if pid in still):
                    try:
                        signal.pidfd_send_signal(fd, signal.SIGKILL)
                        count += 1
                    except ProcessLookupError:
                        pass
                    except PermissionError:
                        is_permitted = False
    return count, is_permitted


def _at_once() -> int:
    """Return how many descriptors may be open for a moment."""
    return max(_FEW_DESCRIPTORS, min(_MANY_DESCRIPTORS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2))


def _batched(numbers: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Yield them some at a time."""
    return (numbers[start : start + size] for start in range(0, len(numbers), size))


def write_text(file: Path, text: str) -> None:
    """Write a control file in one call."""
    # Without O_NONBLOCK a write that lowers memory.high waits for the reclaim.
    descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def read_number(file: Path) -> int | None:
    """Return the number in a control file; None for ``max`` and where it is gone."""
    text = read_text(file)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def subtree(folder: Path) -> Iterator[Path]:
    """Yield the cgroups below a directory and the directory itself, deepest first."""
    for name in subfolders(folder):
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
    """Remove a cgroup directory and those below it; False while the kernel still keeps part of it."""
    gone = True
    for path in subtree(folder):
        try:
            path.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            gone = False
    return gone


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

    def __init__(self, files_of: Callable[[str], Sequence[Path]]) -> None:
        self._files_of = files_of
        self._open: dict[str, tuple[int, ...]] = {}

    def read(self, path: str, most: int | None = None) -> list[bytes] | None:
        """Return the contents of the files, or the first of them; None if the cgroup is gone."""
        descriptors = self._open.get(path)
        if descriptors is None:
            opened: list[int] = []
            try:
                opened += (os.open(file, os.O_RDONLY | os.O_CLOEXEC) for file in self._files_of(path))
            except OSError:
                for descriptor in opened:
                    os.close(descriptor)
                return None
            descriptors = self._open[path] = tuple(opened)
            if is_reserved(opened[-1]):
                try:
                    return self.read(path)
                finally:
                    self.forget(path)
        try:
            return [os.pread(descriptor, _FIGURES_BYTES, 0) for descriptor in descriptors[:most]]
        except OSError:
            self.forget(path)
            return None

    def forget(self, path: str) -> None:
        """Close what is open for a cgroup and those below it."""
        for each in [other for other in self._open if other == path or other.startswith(f"{path}/")]:
            for descriptor in self._open.pop(each):
                os.close(descriptor)


def signal_if(pid: int, number: int, condition: Callable[[], bool]) -> bool:
    """Signal a process if a condition holds for exactly this one, even if its id is reused; False if not permitted."""
    descriptor = open_pidfd(pid)
    if descriptor is None:
        return True
    try:
        if condition():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, number)
    except PermissionError:
        return False
    finally:
        os.close(descriptor)
    return True


def why_no_signals() -> str:
    """Return why no process can be signalled without the risk that it is another one by then; empty if it can."""
    try:
        descriptor = os.pidfd_open(os.getpid())
        signal.pidfd_send_signal(descriptor, 0)
        os.close(descriptor)
    except (AttributeError, OSError) as error:  # the kernel, seccomp, or a Python built for older kernels
        why = error.strerror if isinstance(error, OSError) else "this Python does not have it"
        return f"pods cannot be killed safely without pidfd_open, which Linux has since 5.3: {why}"
    return ""


def open_pidfd(pid: int) -> int | None:
    """Return a descriptor of exactly this process, even if its id is reused; None if it is gone."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None
