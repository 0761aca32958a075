"""The runtime on a share of this machine, driven by a test and gone afterwards in any case."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import msgspec

from host.machine import Share
from podqos.errors import HostError
from podqos.host.runtimes.process import ProcessRuntime
from podqos.host.runtimes.runtime import (
    ContainerExit,
    ContainerId,
    ContainerStart,
    ExecResult,
    Mount,
)
from podqos.model.pod import Container, ObjectMeta, Pod, PodSpec
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceRequirements
from podqos.qos.cgroup import Level, pod_cgroups
from podqos.qos.classes import classify

_numbers = count()
CANNOT_START_CODE = 128


class Stage:
    """A pod on a runtime."""

    def __init__(self) -> None:
        self.share = Share()
        self.notes: list[str] = []
        self.uid = f"pod-{os.getpid()}-{next(_numbers)}"
        self.logs = self.share.folder / "logs"
        self.exits: dict[ContainerId, ContainerExit] = {}
        self.results: dict[str, ExecResult] = {}
        self.started: list[ContainerStart] = []
        self.runtime = self._made()

    def __repr__(self) -> str:
        """Return what a failed test wants to know."""
        return f"{self.exits}\n" + "\n".join(self.notes)

    def start(
        self,
        script: str,
        *,
        name: str = "main",
        attempt: int = 0,
        memory: str | None = None,
        mounts: tuple[Mount, ...] = (),
        env: dict[str, str] | None = None,
        **fields: object,
    ) -> ContainerStart:
        """Start a shell script as a container of the pod."""
        limits = {"memory": Quantity.parse(memory), "cpu": Quantity.parse("500m")} if memory else {}
        pod = Pod(
            ObjectMeta(name="p", namespace="default", uid=self.uid),
            PodSpec((Container(name, resources=ResourceRequirements(requests=limits, limits=limits)),)),
        )
        found = ContainerId(self.uid, name, attempt)
        cgroups = pod_cgroups(pod, classify(pod).qos_class, self.share.settings, ids={name: found.run_id})
        planned = {cgroup.level: cgroup for cgroup in cgroups}
        parent = planned[Level.POD]
        assert parent.path is not None
        self.share.cgroups.create(parent.path)
        self.share.cgroups.write(parent.path, parent.files)
        start = ContainerStart(
            id=found,
            command=("sh", "-c"),
            args=(script,),
            env=env or {},
            working_dir="",
            mounts=mounts,
            cgroup=planned[Level.CONTAINER],
            oom_score_adj=500,
            folder=self.share.folder / "pod" / found.run_id,
            log=self.logs / name / f"{attempt}.log",
            log_bytes=10 << 20,
            log_files=3,
        )
        return self.begin(msgspec.structs.replace(start, **fields))

    def begin(self, start: ContainerStart) -> ContainerStart:
        """Start what is wanted; what cannot be started has ended, however the runtime says so."""
        self.started.append(start)
        try:
            self.runtime.start(start)
        except HostError as error:
            self.notes.append(str(error))
            self.exits[start.id] = ContainerExit(start.id, CANNOT_START_CODE)
        return start

    def until(self, condition: Callable[[], object], seconds: float = 300) -> None:
        """Listen to the runtime until something holds."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                said = {each.id.name: self.said(each) for each in self.started}
                raise AssertionError(f"it did not come to that: {self!r}; they said {said}")
            select.select([self.runtime.fileno()], [], [], 0.02)
            for each in self.runtime.heard():
                match each:
                    case ContainerExit():
                        assert each.id not in self.exits, "it ended twice"
                        self.exits[each.id] = each
                    case ExecResult():
                        self.results[each.token] = each

    def ended(self, start: ContainerStart) -> ContainerExit:
        """Wait for the end of a container."""
        self.until(lambda: start.id in self.exits)
        return self.exits[start.id]

    def says(self, start: ContainerStart, *lines: str) -> None:
        """Wait until a container has written these lines, whatever stands before them."""
        self.until(lambda: set(lines) <= set(self.said(start)))

    def said(self, start: ContainerStart) -> list[str]:
        """Return what a container has written so far, without time and stream."""
        lines: list[str] = []
        for file in sorted(start.log.parent.glob(f"{start.log.name}*")):
            with contextlib.suppress(FileNotFoundError):  # it has just been rotated
                lines += file.read_text().splitlines()
        return [line.split(" ", 3)[3] for line in lines if line.count(" ") >= 3]

    def cgroup(self, start: ContainerStart) -> str:
        """Return where a container is."""
        assert start.cgroup.path is not None
        return start.cgroup.path

    def change_agent(self, pause: Callable[[], None] = lambda: None) -> None:
        """Go on with another object, as after the death of the agent."""
        self.runtime.close(end=False)
        pause()
        self.exits.clear()
        self.runtime = self._made()

    def wind_up(self) -> None:
        """End and remove everything as the node does, and see that nothing is left."""
        for start in self.started:
            self.runtime.kill(start.id)
        self.until(lambda: all(each.exit_code is not None for each in self.runtime.containers()))
        for start in self.started:
            self.runtime.remove(start.id)
        self.runtime.remove_pod(self.uid)
        left = self.runtime.containers()
        self.runtime.close(end=True)
        assert left == []
        assert mounts_below(self.share.folder) == []
        end = time.monotonic() + 300
        while self.share.cgroups.processes(self.share.own):  # what was killed may need a moment
            assert time.monotonic() < end
            time.sleep(0.02)

    def close(self) -> None:
        """Remove whatever a failed test left."""
        unmount_below(self.share.folder)
        self.share.close()
        assert _leftovers(self.share.own) == []

    def _made(self) -> ProcessRuntime:
        share = self.share
        return ProcessRuntime(share.folder, share.cgroups, share.capabilities, self.notes.append)


@contextmanager
def on_stage() -> Iterator[Stage]:
    """Give a test a stage; after a test that held, nothing may be left."""
    stage = Stage()
    try:
        yield stage
        stage.wind_up()
    finally:
        stage.close()


def mounts_below(folder: Path) -> list[str]:
    """Return what is mounted below a directory, deepest first."""
    places = (line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines())
    return sorted((place for place in places if place.startswith(f"{folder}/")), reverse=True)


def unmount_below(folder: Path) -> None:
    """Unmount it all."""
    for place in mounts_below(folder):
        subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)


def _leftovers(own: str) -> list[Path]:
    """Return directories of a cgroup in any hierarchy."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    roots = [Path(line.split()[1]) for line in lines if line.split()[2] in {"cgroup", "cgroup2"}]
    return [root / own[1:] for root in roots if (root / own[1:]).exists()]
