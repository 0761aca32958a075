"""Every runtime on a share of this machine, driven by a test and gone afterwards in any case."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import msgspec

from host.container_images import Layout, busybox_layer
from host.machine import Share
from podqos.errors import HostError
from podqos.host.runtimes.choice import RuntimeChoice, RuntimeName, make_runtime
from podqos.host.runtimes.engine import CANNOT_START_CODE, EngineRuntime
from podqos.host.runtimes.runtime import (
    ContainerExit,
    ContainerId,
    ContainerPlace,
    ContainerStart,
    ExecResult,
    Mount,
    Runtime,
    Sandbox,
)
from podqos.model.pod import Container, ObjectMeta, Pod, PodSpec
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceRequirements
from podqos.qos.cgroup import Level, pod_cgroups
from podqos.qos.classes import classify

IMAGE = "podqos.test/busybox:1"
SPARE_IMAGE = "podqos.test/spare:1"
USER_IMAGE = "podqos.test/user:1"
_PAUSE_IMAGE = "podqos.test/pause:1"
_numbers = count()


class Services:
    """What has to be there before a runtime can be used: images, and for containerd a daemon of our own."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="podqos-runtimes-"))
        self._daemon: subprocess.Popen[bytes] | None = None
        busybox = shutil.which("busybox")
        assert busybox is not None
        rootfs = busybox_layer(Path(busybox))
        self.images = self.folder / "images"
        layout = Layout(self.images)
        layout.add(IMAGE, [rootfs], {"Env": ["PATH=/bin", "FROM_IMAGE=yes"], "Entrypoint": ["sh", "-c"]})
        layout.add(SPARE_IMAGE, [rootfs], {"Cmd": ["true"], "Env": ["PATH=/bin"]})
        layout.add(USER_IMAGE, [rootfs], {"Env": ["PATH=/bin"], "User": "1234:5678"})
        layout.add(_PAUSE_IMAGE, [rootfs], {"Entrypoint": ["/bin/sleep", "1000000"]})
        self.archive = layout.archive(self.folder / "images.tar")

    def choice(self, name: RuntimeName) -> RuntimeChoice:
        """Return how to use a runtime, which is made ready first."""
        match name:
            case RuntimeName.CONTAINERD:
                return RuntimeChoice(name=name, socket=self._containerd())
            case RuntimeName.PODMAN:
                return RuntimeChoice(name=name, options=self._podman())
            case _:
                return RuntimeChoice(name=name, images=self.images)

    def close(self) -> None:
        """End the daemon and whatever it started; unmount and remove everything."""
        if self._daemon is not None:
            self._daemon.terminate()
            self._daemon.wait()
        for process in processes_of(self.folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        unmount_below(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _containerd(self) -> Path:
        folder = self.folder / "containerd"
        socket = folder / "containerd.sock"
        if self._daemon is not None:
            return socket
        folder.mkdir()
        config = folder / "config.toml"
        config.write_text(
            f'version = 2\nroot = "{folder}/root"\nstate = "{folder}/state"\n'
            f'[grpc]\naddress = "{socket}"\n'
            f'[plugins."io.containerd.internal.v1.opt"]\npath = "{folder}/opt"\n'
            '[plugins."io.containerd.grpc.v1.cri"]\n'
            f'sandbox_image = "{_PAUSE_IMAGE}"\nrestrict_oom_score_adj = true\n'
            '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'
            '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]\n'
            f'BinaryName = "{shutil.which("runc")}"\n'
        )
        with (folder / "log").open("wb") as log:
            self._daemon = subprocess.Popen(["containerd", "--config", config], stdout=log, stderr=log)
        load = ["ctr", "--address", socket, "--namespace", "k8s.io", "images", "import", self.archive]
        _retried(lambda: _run(load), 60)
        return socket

    def _podman(self) -> tuple[str, ...]:
        folder = self.folder / "podman"
        options = (
            "--root", f"{folder}/root", "--runroot", f"{folder}/run", "--tmpdir", f"{folder}/libpod",
            "--conmon", shutil.which("conmon") or "conmon", "--events-backend", "none",
        )  # fmt: skip
        if not folder.exists():
            folder.mkdir()
            policy = folder / "policy.json"
            policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
            for name in (IMAGE, SPARE_IMAGE, USER_IMAGE):
                # podman makes a name of the path, which has to look like one.
                pull = ["pull", "--quiet", "--signature-policy", policy, f"oci:{self.images.name}:{name}"]
                image = _run(["podman", *options, *pull], cwd=self.folder).split()[-1]
                _run(["podman", *options, "tag", image, name])
        return options


class Stage:
    """A pod on a runtime."""

    def __init__(self, choice: RuntimeChoice) -> None:
        self.share = Share()
        self.choice = choice
        self.notes: list[str] = []
        self.uid = f"pod-{os.getpid()}-{next(_numbers)}"
        self.logs = self.share.folder / "logs"
        self.exits: dict[ContainerId, ContainerExit] = {}
        self.places: dict[ContainerId, ContainerPlace] = {}
        self.results: dict[str, ExecResult] = {}
        self.started: list[ContainerStart] = []
        self.runtime = self._made()

    def __repr__(self) -> str:
        """Return what a failed test wants to know."""
        return f"{self.choice.name}: {self.exits}\n" + "\n".join(self.notes)

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
        self.runtime.prepare(
            Sandbox(
                uid=self.uid, name="p", namespace="default", hostname="p", cgroup_parent=parent.path,
                logs=str(self.logs), privileged=bool(getattr(fields.get("security"), "privileged", False)),
            )
        )  # fmt: skip
        start = ContainerStart(
            id=found,
            image=IMAGE,
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
                    case ContainerPlace():
                        self.places[each.id] = each
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
        """Return where a container is, once that is known."""
        if self.choice.name is RuntimeName.PROCESS:
            assert start.cgroup.path is not None
            return start.cgroup.path
        self.until(lambda: start.id in self.places)
        return self.places[start.id].cgroup

    def tidy(self) -> None:
        """Have the runtime do now what it does every few seconds."""
        if isinstance(self.runtime, EngineRuntime):
            self.runtime._ask(self.runtime._engine.tidy)

    def change_agent(self, pause: Callable[[], None] = lambda: None) -> None:
        """Go on with another object, as after the death of the agent."""
        self.runtime.close(end=False)
        pause()
        self.exits.clear()
        self.places.clear()
        self.runtime = self._made()

    def wind_up(self) -> None:
        """End and remove everything as the node does, and see that nothing is left."""
        for start in self.started:
            self.runtime.kill(start.id)
        self.until(lambda: all(each.exit_code is not None for each in self.runtime.containers()))
        for start in self.started:
            self.runtime.remove(start.id)
        self.runtime.remove_sandbox(self.uid)
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

    def _made(self) -> Runtime:
        share = self.share
        return make_runtime(self.choice, share.folder, share.cgroups, share.capabilities, self.notes.append)


@contextmanager
def on_stage(choice: RuntimeChoice) -> Iterator[Stage]:
    """Give a test a stage; after a test that held, nothing may be left."""
    stage = Stage(choice)
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


def processes_of(folder: Path) -> list[int]:
    """Return processes whose command line names a directory of ours."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if f"{folder}/".encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found


def _run(command: list[object], cwd: Path | None = None) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def _retried(work: Callable[[], object], seconds: float) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            work()
        except AssertionError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return
