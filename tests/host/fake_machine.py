"""A machine made up of files, for nodes without root and without cgroups: a fake runtime and a fake cgroup tree.

The tree is a directory that ``CgroupsV2`` reads and writes like the kernel's; what the kernel itself would do (files
that are there from the start, sums, killing, signals) is done here. A fake container does what a test tells it to.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path

from host.nodes import MI, NodeStage, kubelet
from podqos.errors import HostError
from podqos.host.linux.capabilities import Capabilities, HostMachine
from podqos.host.linux.cgroupfs import KernelSignal
from podqos.host.linux.cgroupfs_v2 import CgroupsV2
from podqos.host.linux.procfs import Procfs
from podqos.host.node.node import Node
from podqos.host.runtimes.runtime import (
    ContainerExit,
    ContainerId,
    ContainerStart,
    FoundContainer,
    Heard,
)
from podqos.qos.cgroup_settings import CgroupVersion

_FILES = {
    "cgroup.procs": "",
    "cgroup.subtree_control": "",
    "cgroup.kill": "",
    "cpu.max": "max 100000",
    "cpu.stat": "usage_usec 0",
    "cpu.weight": "100",
    "memory.current": "0",
    "memory.events": "oom_kill 0",
    "memory.high": "max",
    "memory.max": "max",
    "memory.min": "0",
    "memory.low": "0",
    "memory.oom.group": "0",
    "memory.stat": "anon 0\ninactive_file 0",
    "memory.swap.max": "max",
    "pids.current": "1",
    "pids.max": "max",
}


class FakeCgroups(CgroupsV2):
    """A cgroup tree in a directory."""

    def __init__(self, root: Path, own: str, procfs: Procfs) -> None:
        root.mkdir(exist_ok=True)
        (root / "cgroup.controllers").write_text("cpu memory pids")
        super().__init__(root, own, procfs)
        self.root = root
        self.on_kill: Callable[[str], None] = lambda _path: None
        self.busy = 0
        """How often the kernel still refuses to remove a cgroup."""
        self.held: list[str] = []
        """Which cgroups were stopped from growing, in order."""
        self.killed: list[str] = []
        self._signals: dict[str, int] = {}

    def create(self, path: str) -> None:
        super().create(path)
        for folder in (self.root / path[1:], *(self.root / path[1:]).parents):
            if folder == self.root:
                return
            for name, text in _FILES.items():
                if not (folder / name).exists():
                    (folder / name).write_text(text)

    def remove(self, path: str) -> bool:
        if self.busy:
            self.busy -= 1
            return False
        if self.exists(path):
            self._set(self.root / path[1:], 0)
            self._add_up(path)
        self._gauges.forget(path)
        shutil.rmtree(self.root / path[1:], ignore_errors=True)
        return True

    def kill(self, path: str) -> bool:
        self.killed.append(path)
        self.on_kill(path)
        return True

    def hold(self, path: str) -> KernelSignal | None:
        self.held.append(path)
        return self.watch_memory(path, 0)

    def watch_memory(self, path: str, level_bytes: int) -> KernelSignal | None:
        (self.root / path[1:] / "memory.high").write_text(str(level_bytes))
        self._signals[path] = event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        return KernelSignal(event, select.EPOLLIN)

    def use(self, path: str, usage_bytes: int) -> None:
        """Set a container's usage; watchers of cgroups above are notified."""
        self._set(self.root / path[1:], usage_bytes)
        self._add_up(path)
        os.eventfd_write(self._signals[self.own], 1)

    def _add_up(self, path: str) -> None:
        while path := path.rpartition("/")[0]:
            below = (self.root / path[1:] / name / "memory.current" for name in self.children(path))
            self._set(self.root / path[1:], sum(int(file.read_text()) for file in below))

    @staticmethod
    def _set(folder: Path, usage_bytes: int) -> None:
        (folder / "memory.current").write_text(str(usage_bytes))
        (folder / "memory.stat").write_text(f"anon {usage_bytes}\ninactive_file 0")


class FakeRuntime:
    """Containers that exist in name only, and outlive the agent as real ones do."""

    name = "fake"

    def __init__(self, cgroups: FakeCgroups) -> None:
        self._cgroups = cgroups
        cgroups.on_kill = self._kill_below
        self.running: dict[ContainerId, ContainerStart] = {}
        self.ended: dict[ContainerId, int] = {}
        self.removed: set[str] = set()
        self.signals: list[tuple[str, int]] = []
        """Container and signal, in order."""
        self.ignores_sigterm = False
        self.cannot_start: str | HostError = ""
        self.ends: list[bool] = []
        """Whether it was closed with ``end``."""
        self._heard: list[ContainerExit] = []
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def exit(self, name: str, code: int) -> None:
        """Have a container end by itself."""
        (container,) = (each for each in self.running if each.name == name)
        self._end(container, code)

    def attempts(self) -> list[tuple[str, int]]:
        """Return which runs of which containers run now."""
        return sorted((each.name, each.attempt) for each in self.running)

    def start(self, container: ContainerStart) -> int:
        if isinstance(self.cannot_start, HostError):
            raise self.cannot_start
        if self.cannot_start:
            raise OSError(self.cannot_start)
        assert container.id not in self.running, "one run is started once"
        self._cgroups.create(container.cgroup.path)
        self._cgroups.write(container.cgroup.path, container.cgroup.files)
        self.running[container.id] = container
        container.log.parent.mkdir(parents=True, exist_ok=True)
        container.log.write_text("")
        return 4_000_000 + len(self.running)

    def terminate(self, container: ContainerId) -> None:
        self.signals.append((container.name, signal.SIGTERM))
        if not self.ignores_sigterm:
            self._end(container, 128 + signal.SIGTERM)

    def kill(self, container: ContainerId) -> None:
        self.signals.append((container.name, signal.SIGKILL))
        self._end(container, 128 + signal.SIGKILL)

    def execute(self, container: ContainerStart, command: Sequence[str], token: str, seconds: float) -> None:
        raise AssertionError((container, command, token, seconds))

    def remove(self, container: ContainerId) -> None:
        self.ended.pop(container, None)

    def remove_pod(self, uid: str) -> None:
        self.removed.add(uid)

    def containers(self) -> list[FoundContainer]:
        running = [FoundContainer(each.id, each.cgroup.path, 1, None) for each in self.running.values()]
        return [*running, *(FoundContainer(name, None, None, code) for name, code in self.ended.items())]

    def fileno(self) -> int:
        return self._event

    def heard(self) -> list[Heard]:
        os.eventfd_read(self._event)
        heard, self._heard = self._heard, []
        return heard

    def close(self, *, end: bool) -> None:
        self.ends.append(end)
        # What was not heard by then is in the list for the next agent.
        self._heard = []

    def _end(self, container: ContainerId, code: int) -> None:
        if self.running.pop(container, None) is not None:
            self.ended[container] = code
            self._heard.append(ContainerExit(container, code))
            os.eventfd_write(self._event, 1)

    def _kill_below(self, path: str) -> None:
        for name, container in list(self.running.items()):
            where = container.cgroup.path
            if where == path or where.startswith(f"{path}/"):
                self._end(name, 128 + signal.SIGKILL)


class FakeStage(NodeStage):
    """A node over fakes, driven by a test."""

    # A tree of cgroups is many small files.
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - in a directory of its own
    runtime: FakeRuntime | None = None

    def _made(self) -> Node:
        procfs = _procfs(self.folder / "proc")
        cgroups = FakeCgroups(self.folder / "cgroup", self.settings.own, procfs)
        if self.runtime is None:
            self.runtime = FakeRuntime(cgroups)
        else:
            cgroups.on_kill, self.runtime._cgroups = self.runtime._kill_below, cgroups
        self.cgroups = cgroups
        self.machine = HostMachine(procfs, _ALL_ALLOWED, cgroups)
        return Node(self.settings, lambda _node: self.runtime, self.said.append, self.machine)

    def use(self, pod: str, usage_mib: int) -> None:
        """Have a pod's container use so much memory."""
        (run,) = self.pod(pod).running
        self.cgroups.use(run.cgroup, usage_mib * MI)

    def records(self) -> list[str]:
        """Return the pods on record, by uid."""
        return sorted(file.stem for file in (self.settings.state_dir / "pods").glob("*.json"))

    def close(self) -> None:
        """Remove what the test has made."""
        if not self.node.loop._poll.closed:
            self.node.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def fake_node(memory_bytes: int = 256 * MI, configuration: bytes | None = None, **settings: object):
    """Start a node over fakes and remove it afterwards."""
    hard = configuration or kubelet(evictionHard={"memory.available": "64Mi"})
    stage = FakeStage(hard, memory_bytes, **settings)
    try:
        stage.node.start()
        yield stage
    finally:
        stage.close()


_ALL_ALLOWED = Capabilities(
    is_root=True,
    can_lower_oom_score=True,
    can_mount=True,
    version=CgroupVersion.V2,
    is_hybrid=False,
    controllers=("cpu", "memory", "pids"),
    has_cgroup_kill=True,
    has_pressure=False,
    has_systemd=False,
)


def _procfs(root: Path) -> Procfs:
    files = {
        "self/mounts": f"none {root.parent / 'cgroup'} cgroup2 rw 0 0\n",
        "self/oom_score_adj": "0",
        f"{os.getpid()}/oom_score_adj": "0",
        f"{os.getpid()}/cgroup": "0::/\n",
        "meminfo": "MemTotal: 8388608 kB\nMemFree: 8388608 kB\n",
        "loadavg": "0 0 0 1/100 4711",
        "sys/kernel/pid_max": "32768",
        "sys/kernel/threads-max": "32768",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return Procfs(root)
