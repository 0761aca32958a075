"""Containers as plain processes in their cgroups: the runtime that needs nothing installed.

There are no images and no root filesystems: a container sees the machine's files, runs ``command`` and ``args``, and
starts in a directory of its own, whose size counts as its writable layer. Volumes are mounted at their ``mountPath`` in
a private mount namespace if the path exists on the machine (nothing is created); ``$PODQOS_VOLUME_<NAME>`` always has
the directory. Processes share the machine's network and see its other processes. Cgroups, scores, limits, logs,
restarts, probes and evictions work as with other runtimes. Of a security context, users, groups, dropped capabilities
and ``allowPrivilegeEscalation`` are honoured; a process has all of the node's capabilities that are not dropped.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from podqos.errors import HostError
from podqos.host.linux.capabilities import Capabilities
from podqos.host.linux.cgroupfs import Cgroups
from podqos.host.runtimes.resources import granted_score, planned_path
from podqos.host.runtimes.runtime import (
    LOST_CODE,
    ContainerExit,
    ContainerId,
    ContainerStart,
    ExecResult,
    FoundContainer,
    Heard,
    Note,
    Sandbox,
)
from podqos.host.runtimes.security import Ids, capabilities, capability_number, check_user, ids, own_capabilities
from podqos.host.runtimes.shim_client import Program, ShimClient, ShimLost, ShimProgram

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_EXEC = "exec:"


class ProcessRuntime:
    """Runs processes through a shim."""

    name = "process"

    def __init__(self, folder: Path, cgroups: Cgroups, capabilities: Capabilities, note: Note) -> None:
        self._cgroups = cgroups
        self._capabilities = capabilities
        self._note = note
        self._shim = ShimClient(folder)
        self._running: dict[ContainerId, tuple[int, str]] = {}
        self._executions: set[str] = set()

    def prepare(self, sandbox: Sandbox) -> None:
        """Nothing to do: there is no sandbox."""

    def start(self, container: ContainerStart) -> int:
        """Start the process directly inside its cgroup."""
        path = planned_path(container)
        argv = (*container.command, *container.args)
        if not argv:
            raise HostError(
                f"container {container.id.name} has no command: the process runtime has no images to take it from"
            )
        self._cgroups.create(path)
        for unwritten in self._cgroups.write(path, container.cgroup.files):
            self._note(str(unwritten))
        container.folder.mkdir(parents=True, exist_ok=True)
        container.log.parent.mkdir(parents=True, exist_ok=True)
        check_user(container, str(os.geteuid()))
        user = _ids(container)
        if user is not None:
            os.chown(container.folder, user.uid, user.gid)
        if container.security.read_only_root:
            self._note(f"{container.id.name}: readOnlyRootFilesystem is ignored: it sees the machine's files")
        program = self._program(container, str(container.id), argv)
        log, log_bytes, log_files = str(container.log), container.log_bytes, container.log_files
        pid = self._shim.start(replace(program, log=log, log_bytes=log_bytes, log_files=log_files))
        self._running[container.id] = (pid, path)
        return pid

    def terminate(self, container: ContainerId) -> None:
        """Send SIGTERM to the main process, if it is still in its cgroup."""
        if container in self._running:
            pid, path = self._running[container]
            self._cgroups.signal(path, pid, signal.SIGTERM)

    def kill(self, container: ContainerId) -> None:
        """Kill everything in the container's cgroup."""
        if container in self._running:
            self._cgroups.kill(self._running[container][1])

    def execute(self, container: ContainerStart, command: Sequence[str], token: str, seconds: float) -> None:
        """Run a command in the container's cgroup, with its view of files and its environment."""
        self._shim.start(replace(self._program(container, f"{_EXEC}{token}", command), seconds=seconds))
        self._executions.add(token)

    def remove(self, container: ContainerId) -> None:
        """Have the shim forget an ended run; a lost shim is noticed in ``heard``."""
        with contextlib.suppress(ShimLost):
            self._shim.forget(str(container))

    def remove_sandbox(self, uid: str) -> None:
        """Nothing to do."""

    def containers(self) -> list[FoundContainer]:
        """Return the shim's containers; running ones are adopted, commands of probes are killed."""
        try:
            kept = self._shim.programs()
        except ShimLost:
            kept = self._shim.reconnect()
        found = []
        for program in (*kept.running.values(), *kept.ended.values()):
            container = ContainerId.parse(program.id)
            if container is None:
                self._end_execution(program)
                continue
            if program.pid is not None:
                self._running[container] = (program.pid, program.label)
            found.append(FoundContainer(container, program.label, program.pid, program.code))
        return found

    def fileno(self) -> int:
        """Return the connection to the shim."""
        return self._shim.fileno()

    def heard(self) -> list[Heard]:
        """Return the shim's events; a lost shim is replaced, and its containers have ended."""
        found: list[Heard] = []
        try:
            ended = self._shim.exits()
        except ShimLost as lost:
            self._note(f"{lost}; its containers are ended and restarted")
            return self._start_over()
        for each in ended:
            container = ContainerId.parse(each.id)
            if container is not None:
                self._running.pop(container, None)
                found.append(ContainerExit(container, each.code))
            elif each.id.startswith(_EXEC):
                token = each.id.removeprefix(_EXEC)
                self._executions.discard(token)
                self._shim.forget(each.id)
                found.append(ExecResult(token, each.code))
        return found

    def remove_unused_images(self) -> int:
        """There are no images."""
        return 0

    def image_folder(self) -> Path | None:
        """There are no images."""
        return None

    def close(self, *, end: bool) -> None:
        """Disconnect from the shim, or end it."""
        if not end:
            self._shim.close()
            return
        self._shim.forget_records()
        self._shim.end()

    def _start_over(self) -> list[Heard]:
        known = self._shim.reconnect()
        found: list[Heard] = [ExecResult(token, LOST_CODE) for token in self._executions]
        self._executions.clear()
        for container, (_, path) in list(self._running.items()):
            if str(container) not in known.running:
                self._cgroups.kill(path)
                del self._running[container]
                ended = known.ended.get(str(container))
                code = LOST_CODE if ended is None or ended.code is None else ended.code
                found.append(ContainerExit(container, code))
        return found

    def _end_execution(self, program: ShimProgram) -> None:
        if program.pid is not None:
            self._cgroups.signal(self._cgroups.own, program.pid, signal.SIGKILL)
        else:
            self._shim.forget(program.id)

    def _program(self, container: ContainerStart, name: str, argv: Sequence[str]) -> Program:
        """Return a program in the container's cgroup and environment."""
        path, user = planned_path(container), _ids(container)
        return Program(
            id=name,
            argv=argv,
            env=self._environment(container),
            cwd=container.working_dir or str(container.folder),
            entrances=self._cgroups.entrances(path),
            oom_score_adj=granted_score(container, self._capabilities, self._note),
            mounts=self._mounts(container),
            ids=None if user is None else (user.uid, user.gid, user.groups),
            capabilities=self._capabilities_of(container),
            no_new_privileges=container.security.no_new_privileges,
            label=path,
        )

    @staticmethod
    def _capabilities_of(container: ContainerStart) -> list[int] | None:
        """Return what is left after dropping some; a plain process has all of the node's otherwise."""
        if not container.security.drop:
            return None
        return [capability_number(name) for name in capabilities(container.security, own_capabilities())]

    def _environment(self, container: ContainerStart) -> dict[str, str]:
        volumes = {f"PODQOS_VOLUME_{_variable(mount.volume)}": mount.source for mount in container.mounts}
        return {"PATH": _PATH, "HOME": str(container.folder), **volumes, **container.env}

    def _mounts(self, container: ContainerStart) -> list[tuple[str, str, bool]]:
        """Return the volumes that can be mounted; the others are only in variables."""
        shown = []
        for mount in container.mounts:
            if self._capabilities.can_mount and Path(mount.target).exists():
                shown.append((mount.source, mount.target, mount.read_only))
            else:
                self._note(
                    f"{container.id.name}: {mount.target} does not exist on this machine: "
                    f"volume {mount.volume} is at $PODQOS_VOLUME_{_variable(mount.volume)}"
                )
        return shown


def _ids(container: ContainerStart) -> Ids | None:
    """Return the ids that a container wants, with the machine's names; None if it wants none."""
    security = container.security
    if security.run_as_user is None and security.run_as_group is None and not security.groups:
        return None
    return ids(container, str(os.geteuid()), Path("/"))


def _variable(volume: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", volume.upper())
