"""Provokes OOMs in cgroups laid out as a kubelet does, and prints the kernel's reports with who really died.

    PYTHONPATH=tests python tests/kernel/record_ooms.py [vm] | gzip -9n > tests/kernel/ooms/NAME.jsonl.gz

On a machine only cgroups of its own run out. In a virtual machine of ours (``tests/vm/oom_guest.py``, ``vm``) the whole
machine does too. A line holds ``name``, ``kernel``, ``killed`` (process ids), ``roles`` (their names here) and ``log``.
"""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

MI = 2**20
PATIENCE_SECONDS = 120
_KILLED = re.compile(r"Killed process (\d+)")
UID = "{0}{0}{0}{0}{0}{0}{0}{0}-0000-4000-8000-00000000000{0}"

# It joins a cgroup, holds memory and, when told to, grows until told to stop.
HOG = r"""
import os, resource, select, sys
procs, adj, kind, size, children, step, name = sys.argv[1:8]
open(procs, "w").write(str(os.getpid()))
open("/proc/self/oom_score_adj", "w").write(adj)
open("/proc/self/comm", "w").write(name)
size, step, held = int(size), int(step), []
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
for each in range(int(children)):
    if os.fork() == 0:
        open("/proc/self/comm", "w").write(f"{name}-child{each}"[:15])
        held.append(bytearray(b"\1") * (size // (4 + each)))
        sys.stdout.write(f"child {os.getpid()}\n"); sys.stdout.flush()
        while True: select.select([], [], [], 1000)
if kind == "bound":
    import ctypes, platform
    number = {"aarch64": 237, "x86_64": 238}[platform.machine()]
    ctypes.CDLL(None).syscall(number, 2, ctypes.byref(ctypes.c_ulong(2)), 64)
def grow(amount):
    if kind in ("anon", "bound"): held.append(bytearray(b"\1") * amount)
    elif kind == "file": out.write(b"\1" * amount)
    elif kind == "pipes":
        for _ in range(max(1, amount // 65536)):
            ends = os.pipe(); held.append(ends); os.write(ends[1], b"\1" * 65536)
if kind == "file":
    out = open(f"/dev/shm/podqos-{os.getpid()}", "wb", buffering=0); os.unlink(out.name)
if size: grow(size)
sys.stdout.write(f"ready {os.getpid()}\n"); sys.stdout.flush()
sys.stdin.readline()
while not select.select([sys.stdin], [], [], 0.002)[0]: grow(step)
"""


class Member(NamedTuple):
    """A process: where it is, what it holds."""

    role: str
    pod: int
    adj: int
    mib: int
    kind: str = "anon"
    children: int = 0
    is_growing: bool = False
    container: int = 1


class Case(NamedTuple):
    """A node's cgroups with limits, and what runs in them."""

    name: str
    members: tuple[Member, ...]
    limits: Mapping[str, int] = {}
    """In MiB, by level and pod: "container1", "pod1", "burstable", "kubepods"; none: the whole machine runs out."""
    classes: Mapping[int, str] = {}
    """Of pods: burstable, besteffort; others are Guaranteed."""
    group: str = ""
    """The level and pod whose processes die together."""
    step: int = MI // 4
    nodes: str = ""
    """The memory nodes that a cpuset allows."""


B, E = "burstable", "besteffort"
CASES = (
    Case(
        "container", (Member("web", 1, 900, 30, is_growing=True), Member("log", 1, 900, 8)), {"container1": 64}, {1: B}
    ),
    Case("container-child", (Member("pg", 1, 950, 32, children=3, is_growing=True),), {"container1": 96}, {1: B}),
    Case(
        "container-tmpfs",
        (Member("cache", 1, 800, 6, "file", is_growing=True), Member("main", 1, 800, 20)),
        {"container1": 80},
        {1: B},
    ),
    Case(
        "container-kernel",
        (Member("pipes", 1, 700, 0, "pipes", is_growing=True), Member("main", 1, 700, 12)),
        {"container1": 48},
        {1: B},
        step=MI // 16,
    ),
    Case(
        "pod",
        (Member("app", 1, 600, 40), Member("sidecar", 1, 990, 16, is_growing=True, container=2)),
        {"pod1": 80},
        {1: B},
    ),
    Case(
        "pod-other-container",
        (Member("app", 1, 300, 50, is_growing=True), Member("small", 1, 995, 30, container=2)),
        {"pod1": 110},
        {1: B},
    ),
    Case(
        "class",
        (Member("a", 1, 900, 30), Member("b", 2, 980, 24), Member("c", 3, 500, 20, is_growing=True)),
        {"burstable": 110},
        {1: B, 2: B, 3: B},
    ),
    Case(
        "class-besteffort",
        (Member("a", 1, 1000, 30), Member("b", 2, 1000, 24, is_growing=True)),
        {"besteffort": 90},
        {1: E, 2: E},
    ),
    Case(
        "kubepods-neighbour",
        (Member("db", 1, 500, 60, is_growing=True), Member("batch", 2, 1000, 36), Member("web", 3, 600, 30)),
        {"kubepods": 160},
        {1: B, 2: E, 3: B},
    ),
    Case(
        "kubepods-own",
        (Member("db", 1, 100, 40), Member("leak", 2, 990, 40, is_growing=True), Member("web", 3, 120, 30)),
        {"kubepods": 160},
        {1: B, 2: B, 3: B},
    ),
    Case(
        "kubepods-tmpfs",
        (Member("shm", 1, 400, 60, "file", is_growing=True), Member("web", 2, 600, 20)),
        {"kubepods": 130},
        {1: B, 2: B},
    ),
    Case("system", (Member("daemon", 0, 0, 30, is_growing=True),), {"system": 64}),
)
GROUP_CASES = (
    Case(
        "container-group",
        (Member("main", 1, 900, 30, is_growing=True), Member("helper", 1, 900, 10)),
        {"container1": 64},
        {1: B},
        "container1",
    ),
    Case(
        "pod-group",
        (Member("app", 1, 600, 30, children=2), Member("sidecar", 1, 990, 16, is_growing=True, container=2)),
        {"pod1": 90},
        {1: B},
        "pod1",
    ),
)
MACHINE_CASES = (
    Case(
        "machine-neighbour",
        (Member("db", 1, 300, 60, is_growing=True), Member("batch", 2, 1000, 60), Member("web", 3, 800, 20)),
        {},
        {1: B, 2: E, 3: B},
        step=MI,
    ),
    Case(
        "machine-guaranteed",
        (Member("safe", 1, -997, 60, is_growing=True), Member("web", 2, 700, 30)),
        {},
        {2: B},
        step=MI,
    ),
    Case(
        "machine-own",
        (Member("leak", 1, 980, 40, is_growing=True), Member("web", 2, 100, 40)),
        {},
        {1: B, 2: B},
        step=MI,
    ),
    Case(
        "machine-daemon", (Member("daemon", 0, 0, 40, is_growing=True), Member("web", 1, 300, 30)), {}, {1: B}, step=MI
    ),
    Case(
        "machine-tmpfs",
        (Member("shm", 1, 300, 40, "file", is_growing=True), Member("web", 2, 900, 30)),
        {},
        {1: B, 2: B},
        step=MI,
    ),
    Case(
        "machine-children",
        (Member("pg", 1, 900, 40, children=3), Member("grow", 2, -997, 30, is_growing=True)),
        {},
        {1: B},
        step=MI,
    ),
)
NODE_CASES = (
    Case(
        "nodes-cpuset",
        (Member("in", 1, 900, 30, is_growing=True), Member("web", 2, 300, 20)),
        {},
        {1: B, 2: B},
        step=MI,
        nodes="1",
    ),
    Case(
        "nodes-policy",
        (Member("bound", 1, 900, 30, "bound", is_growing=True), Member("web", 2, 300, 20)),
        {},
        {1: B, 2: B},
        step=MI,
    ),
)


class Tree:
    """Cgroups of our own, laid out as the kubelet's cgroupfs driver does."""

    def __init__(self, mount: Path, version: int, cleanup: ExitStack) -> None:
        self.version = version
        self.top = mount / f"podqos-oom-{os.getpid()}"
        self._cleanup = cleanup
        self._make(self.top)

    def folder(self, member: Member, classes: Mapping[int, str]) -> Path:
        """Make the cgroup of a process."""
        if not member.pod:
            return self._path("system")
        digit = str(member.pod)
        at = self._path("kubepods")
        if member.pod in classes:
            at = self._make(at / classes[member.pod])
        name = f"{digit}{member.container}".ljust(64, "a")
        return self._make(self._make(at / f"pod{UID.format(digit)}") / name)

    def level(self, name: str, members: tuple[Member, ...], classes: Mapping[int, str]) -> Path:
        """Return the cgroup that a limit is for."""
        kind, digit = name.rstrip("0123456789"), int("0" + name.lstrip("abcdefghijklmnopqrstuvwxyz"))
        if kind in {"container", "pod"}:
            folder = self.folder(next(each for each in members if each.pod == digit), classes)
            return folder if kind == "container" else folder.parent
        return (
            self._path("system") if kind == "system" else self._path("kubepods") / ("" if kind == "kubepods" else kind)
        )

    def limit(self, folder: Path, mib: int) -> None:
        """Set a limit, without swap."""
        files = ("memory.max",) if self.version == 2 else ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
        for file in files:
            with suppress(FileNotFoundError):
                (folder / file).write_text(str(mib * MI))
        if self.version == 2:
            (folder / "memory.swap.max").write_text("0")

    def _path(self, name: str) -> Path:
        return self._make(self.top / name)

    def _make(self, folder: Path) -> Path:
        if not folder.exists():
            if self.version == 2:
                (folder.parent / "cgroup.subtree_control").write_text("+memory")
            folder.mkdir()
            if self.version == 1 and folder == self.top:
                with suppress(OSError):
                    (folder / "memory.use_hierarchy").write_text("1")
            self._cleanup.callback(_remove, folder)
        return folder


def record(case: Case, mount: Path, version: int) -> dict[str, object]:
    """Let memory run out, and return what the kernel said."""
    with ExitStack() as cleanup:
        log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        cleanup.callback(os.close, log)
        os.lseek(log, 0, os.SEEK_END)
        tree = Tree(mount, version, cleanup)
        if case.nodes:
            (mount / "cgroup.subtree_control").write_text("+cpuset")
            (tree.top / "cpuset.mems").write_text(case.nodes)
        roles: dict[int, str] = {}
        started = {each: _start(each, case, tree, cleanup, roles) for each in case.members}
        for name, mib in case.limits.items():
            tree.limit(tree.level(name, case.members, case.classes), mib)
        if case.group:
            (tree.level(case.group, case.members, case.classes) / "memory.oom.group").write_text("1")
        (grower,) = (process for each, process in started.items() if each.is_growing)
        assert grower.stdin is not None
        grower.stdin.write("go\n")
        grower.stdin.flush()
        _wait(roles)
        with suppress(BrokenPipeError):
            grower.stdin.write("stop\n")
            grower.stdin.flush()
        time.sleep(2)
        # The one that grew may have stopped as it was told.
        stopped = {each.pid for each in started.values() if each.poll() == 0}
        killed = [pid for pid in roles if _is_dead(pid) and pid not in stopped]
        lines = _own(_records(log), str(tree.top.name) if case.limits else "", roles)
        return {"name": case.name, "kernel": platform.release(), "killed": killed, "roles": roles, "log": lines}


def _start(member: Member, case: Case, tree: Tree, cleanup: ExitStack, roles: dict[int, str]) -> subprocess.Popen[str]:
    procs = tree.folder(member, case.classes) / "cgroup.procs"
    arguments = (procs, member.adj, member.kind, member.mib * MI, member.children, case.step, member.role)
    command = [sys.executable, "-I", "-S", "-c", HOG, *map(str, arguments)]
    hog = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    cleanup.callback(_end, hog)
    assert hog.stdout is not None
    for _ in range(member.children + 1):
        what, pid = hog.stdout.readline().split()
        roles[int(pid)] = member.role if what == "ready" else f"{member.role}-child"
        if what == "child":
            cleanup.callback(_kill, int(pid))
    return hog


def _wait(roles: Mapping[int, str]) -> None:
    """Wait until a process has died."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not any(_is_dead(pid) for pid in roles):
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.005)


def _is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in {"Z", "X"}
    except (FileNotFoundError, ProcessLookupError):
        return True


def _records(log: int) -> list[str]:
    lines = []
    while True:
        try:
            lines.append(os.read(log, 8192).decode(errors="replace").partition("\n")[0])
        except BlockingIOError:
            return lines
        except BrokenPipeError:
            continue


def _own(lines: list[str], path: str, pids: Collection[int]) -> list[str]:
    """Return the reports of our own cgroups, whole; the board's name is nobody's business.

    Reports are rate limited, so what follows ours may be the bare kill of another's process.
    """
    starts = [at for at, line in enumerate(lines) if "invoked oom-killer" in line]
    parts = [lines[at:end] for at, end in zip(starts, [*starts, len(lines)][1:], strict=True)]
    mine = [part for part in parts if not path or any(f"oom_memcg=/{path}/" in line for line in part)]
    kept = (line for part in mine for line in part if "Hardware name" not in line)
    return [line for line in kept if not (path and (found := _KILLED.search(line)) and int(found[1]) not in pids)]


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _remove(folder: Path) -> None:
    for _ in range(100):
        try:
            folder.rmdir()
        except OSError:
            time.sleep(0.05)
        else:
            return


def run(cases: tuple[Case, ...], mount: Path, version: int, say: Callable[[dict[str, object]], None]) -> None:
    """Record cases, one after another."""
    for case in cases:
        try:
            say(record(case, mount, version))
        except (TimeoutError, OSError) as error:
            sys.stderr.write(f"{case.name}: {error!r}\n")


def say(made: dict[str, object]) -> None:
    """Print a recording."""
    sys.stdout.write(f"{json.dumps(made)}\n")
    sys.stdout.flush()


def main(where: str) -> None:
    """Record on this machine, or in a virtual machine of our own."""
    if where == "vm":
        from vm.boot import run_in_vm

        guest = Path(__file__).parents[1] / "vm" / "oom_guest.py"
        for made in run_in_vm(guest, memory_mib=400, timeout_seconds=1800)[0]:
            say(made)
    else:
        from kernel.trials import hierarchy

        found = hierarchy()
        run(CASES, found.mount, found.version, say)


if __name__ == "__main__":
    main("".join(sys.argv[1:]))
