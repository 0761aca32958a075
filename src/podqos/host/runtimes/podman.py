"""Containers through podman's command line, one call at a time.

podman stores images and layers; conmon writes the log of each container and outlives the agent. Containers have the
name of this node in a label, so that others are not affected. Pods share the machine's network. Nothing is pulled.

podman's ``OOMKilled`` is unreliable (it was false in 12 of 12 cases on cgroup v1): conmon writes its marker, a file
``oom``, into the directory it was started in, where podman does not look. Each container is therefore started in a
directory of its own below the state directory.

conmon truncates its log at the given size and keeps no older files.
"""

from __future__ import annotations

import contextlib
import resource
import shutil
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct, field

from podqos.errors import HostError
from podqos.host.linux.capabilities import Capabilities
from podqos.host.linux.cgroupfs import Cgroups
from podqos.host.runtimes.engine import Engine, call
from podqos.host.runtimes.resources import main_cgroup, pod_cgroup, resources
from podqos.host.runtimes.runtime import (
    ContainerExit,
    ContainerId,
    ContainerPlace,
    ContainerStart,
    FoundContainer,
    Note,
    Security,
    StartError,
)
from podqos.host.runtimes.security import check_user
from podqos.naming import naming

_CALL_SECONDS = 120.0
_NODE, _ID = "podqos.node", "podqos.id"
# podman's own limits for conmon and containers.
_MOST_PROCESSES, _MOST_FILES = 32768, 1 << 20
Answer = TypeVar("Answer")


class _State(Struct, frozen=True):
    running: bool = field(name="Running", default=False)
    status: str = field(name="Status", default="")
    exit_code: int = field(name="ExitCode", default=0)
    oom_killed: bool = field(name="OOMKilled", default=False)


class _Inspected(Struct, frozen=True):
    state: _State = field(name="State", default=_State())


class _Listed(Struct, frozen=True):
    labels: dict[str, str] | None = field(name="Labels", default=None)
    state: str = field(name="State", default="")
    pid: int = field(name="Pid", default=0)
    exit_code: int = field(name="ExitCode", default=0)


class _Image(Struct, frozen=True):
    id: str = field(name="Id", default="")
    size: int = field(name="Size", default=0)
    containers: int = field(name="Containers", default=0)


class PodmanEngine(Engine):
    """Calls podman."""

    name = "podman"

    def __init__(
        self, folder: Path, cgroups: Cgroups, capabilities: Capabilities, note: Note, options: Sequence[str] = ()
    ) -> None:
        super().__init__(cgroups, capabilities, note)
        program = shutil.which("podman")
        if program is None:
            raise HostError(
                "podman is not installed: apt-get install podman, or "
                + naming("runtime", "process")
                + ", which needs no installation"
            )
        self._podman = (program, "--cgroup-manager=cgroupfs", *_low_level(capabilities), *options)
        self._node = sha256(str(folder).encode()).hexdigest()[:32]
        self._folder = folder / "podman"
        self._folder.mkdir(parents=True, exist_ok=True)

    def start(self, container: ContainerStart) -> ContainerPlace:
        """Run a container in the background."""
        # The dashes: an image cannot pass for an option.
        command = ("image", "inspect", "--format", "{{.Config.User}}", "--", container.image)
        image = call((*self._podman, *command), _CALL_SECONDS, self._folder)
        if image.returncode:
            raise StartError(
                "ErrImageNeverPull",
                f"images are not pulled: {container.image} is not in podman: podman load --input FILE",
            )
        image_user = image.stdout.strip()
        check_user(container, image_user)
        folder = self._folder / container.id.run_id
        folder.mkdir(exist_ok=True)
        pid_file = folder / "pid"
        options = (*self._options(container, pid_file), *_security(container.security, image_user))
        container.log.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._call("run", *options, container.image, *container.args, cwd=folder)
        except HostError:
            self.remove(container.id)
            raise
        cgroup, pid = None, 0
        with contextlib.suppress(OSError, ValueError):
            pid = int(pid_file.read_text())
            cgroup = main_cgroup(self._cgroups, pid)
        if cgroup is None:
            return ContainerPlace(container.id, container.cgroup.path or self._cgroups.own, None)
        return ContainerPlace(container.id, cgroup, pid)

    def ended(self, container: ContainerId) -> ContainerExit | None:
        """Inspect the container."""
        text = self._call("inspect", "--type", "container", _name(container))
        state = _decode(text, list[_Inspected])[0].state
        if state.running or state.status not in {"exited", "stopped"}:
            return None
        noted = (self._folder / container.run_id / "oom").exists()
        return ContainerExit(container, state.exit_code, state.exit_code != 0 and (state.oom_killed or noted))

    def execute(self, container: ContainerStart, command: Sequence[str], seconds: float) -> int:
        """Run ``podman exec``."""
        return self._execute(self._podman, _name(container.id), container, command, seconds)

    def remove(self, container: ContainerId) -> None:
        """Remove a container; it may be gone already."""
        self._call("rm", "--force", "--ignore", "--time", "0", _name(container))
        shutil.rmtree(self._folder / container.run_id, ignore_errors=True)

    def containers(self) -> list[FoundContainer]:
        """Return the containers of this node."""
        text = self._call("ps", "--all", "--filter", f"label={_NODE}={self._node}", "--format", "json")
        return list(self._found(_decode(text or "[]", list[_Listed])))

    def remove_unused_images(self) -> int:
        """Remove them, wherever they came from, as the kubelet does."""
        before = self._unused_image_bytes()
        self._call("image", "prune", "--all", "--force")
        return before - self._unused_image_bytes()

    def image_folder(self) -> Path:
        """Return podman's storage directory."""
        return Path(self._call("info", "--format", "{{.Store.GraphRoot}}").strip())

    def close(self, *, end: bool) -> None:
        """With ``end``, remove this node's remaining containers."""
        if end:
            for container in self.containers():
                self.remove(container.id)

    # ---- how podman is called ------------------------------------------------------------------------------------

    def _options(self, container: ContainerStart, pid_file: Path) -> Iterator[str]:
        name = container.id
        yield from ("--detach", "--pull=never", "--cgroups=no-conmon", "--network=host", "--restart=no")
        yield from ("--name", _name(name), "--label", f"{_NODE}={self._node}", "--label", f"{_ID}={name}")
        yield from ("--pidfile", str(pid_file), "--cgroup-parent", pod_cgroup(container))
        yield from ("--hostname", self._hostname(container))
        yield from ("--log-driver", "k8s-file", "--log-opt", f"path={container.log}")
        yield from ("--log-opt", f"max-size={container.log_bytes}")
        for variable, value in container.env.items():
            yield from ("--env", f"{variable}={value}")
        if container.working_dir:
            yield from ("--workdir", container.working_dir)
        for mount in container.mounts:
            read_only = ",ro" if mount.read_only else ""
            yield from ("--mount", f"type=bind,src={mount.source},dst={mount.target}{read_only}")
        if container.command:
            yield from ("--entrypoint", msgspec.json.encode(container.command).decode())
        yield from self._limits(container)

    def _limits(self, container: ContainerStart) -> Iterator[str]:
        wanted = resources(container.cgroup)
        yield f"--oom-score-adj={self._score(container)}"
        yield f"--pids-limit={wanted.pids or -1}"
        if wanted.memory_bytes:
            yield f"--memory={wanted.memory_bytes}"
        if wanted.cpu_shares:
            yield f"--cpu-shares={wanted.cpu_shares}"
        if wanted.cpu_quota_us and wanted.cpu_period_us:
            yield from (f"--cpu-quota={wanted.cpu_quota_us}", f"--cpu-period={wanted.cpu_period_us}")
        if not self._capabilities.can_lower_oom_score:
            # podman's defaults exceed the limits of this process, which takes CAP_SYS_RESOURCE.
            yield f"--ulimit=nofile={_own_limit(resource.RLIMIT_NOFILE, _MOST_FILES)}"
            yield f"--ulimit=nproc={_own_limit(resource.RLIMIT_NPROC, _MOST_PROCESSES)}"

    def _found(self, listed: Sequence[_Listed]) -> Iterator[FoundContainer]:
        for each in listed:
            name = ContainerId.parse((each.labels or {}).get(_ID, ""))
            if name is None:
                continue
            cgroup = main_cgroup(self._cgroups, each.pid) if each.state == "running" else None
            if cgroup is not None:
                yield FoundContainer(name, cgroup, each.pid, None)
            else:
                yield FoundContainer(name, None, None, each.exit_code)

    def _unused_image_bytes(self) -> int:
        images = _decode(self._call("images", "--format", "json") or "[]", list[_Image])
        return sum({image.id: image.size for image in images if image.containers == 0}.values())

    def _call(self, *arguments: str, cwd: Path | None = None) -> str:
        done = call((*self._podman, *arguments), _CALL_SECONDS, cwd or self._folder)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
            raise HostError(f"podman {arguments[0]}: {lines[-1].removeprefix('Error: ')}")
        return done.stdout


def _security(security: Security, image_user: str) -> Iterator[str]:
    """Yield the options of a security context."""
    user = security.user(image_user)
    if user != image_user:
        yield f"--user={user}"
    for group in security.groups:
        yield f"--group-add={group}"
    for name in security.add:
        yield f"--cap-add={name}"
    for name in security.drop:
        yield f"--cap-drop={name}"
    if security.read_only_root:
        yield from ("--read-only", "--read-only-tmpfs=false")
    if security.no_new_privileges:
        yield "--security-opt=no-new-privileges"
    if security.privileged:
        yield "--privileged"


def _low_level(capabilities: Capabilities) -> Sequence[str]:
    """Return the option for runc where crun, podman's default, does not work: with hybrid cgroups."""
    runc = shutil.which("runc")
    return ("--runtime", runc) if capabilities.is_hybrid and runc is not None else ()


def _own_limit(kind: int, most: int) -> str:
    """Return this process's own limit, which children may always have, as ``soft:hard``."""
    _, hard = resource.getrlimit(kind)
    limit = most if hard == resource.RLIM_INFINITY else min(hard, most)
    return f"{limit}:{limit}"


def _name(container: ContainerId) -> str:
    return f"podqos-{container.run_id}"


def _decode(text: str, kind: type[Answer]) -> Answer:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise HostError(f"unexpected output from podman: {error}") from error
