"""Containers as plain processes in their cgroups, with nothing installed.

There are no images and no root filesystems: a container sees the machine's files, runs ``command`` and ``args``, and
starts in a directory of its own, whose size counts as its writable layer. Volumes are mounted at their ``mountPath`` in
a private mount namespace if the path exists on the machine (nothing is created); ``$PODQOS_VOLUME_<NAME>`` always has
the directory. Processes share the machine's network and see its other processes. Cgroups, scores, limits, logs,
restarts, probes and evictions work as in a kubelet. Of a security context, users, groups, dropped capabilities
and ``allowPrivilegeEscalation`` are honoured; a process has all of the node's capabilities that are not dropped.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from podqos.errors import HostError
from podqos.host.linux.capabilities import Capabilities
from podqos.host.linux.cgroupfs import Cgroups, signal_if
from podqos.host.linux.procfs import Procfs
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
)
from podqos.host.runtimes.security import Ids, capabilities, capability_number, check_user, ids
from podqos.host.runtimes.shim_client import Program, ShimClient, ShimLost

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_EXEC = "exec:"
_END_SECONDS = 1.0


class ProcessRuntime:
    """Runs processes through a shim."""

    name = "process"

    def __init__(self, folder: Path, cgroups: Cgroups, capabilities: Capabilities, note: Note) -> None:
        self._folder = folder
        self._procfs = Procfs()
        self._cgroups = cgroups
        self._capabilities = capabilities
        self._note = note
        self._shim = ShimClient(folder)
        self._running: dict[ContainerId, tuple[int, str]] = {}
        self._executions: set[str] = set()
        self._has_lost = False
        """Whether the shim was lost, which has yet to be reported."""

    def start(self, container: ContainerStart) -> int:
        """Start the process directly inside its cgroup."""
        path = planned_path(container)
        argv = (*container.command, *container.args)
        if not argv:
            raise HostError(
                f"container {container.id.name} has no command, and images are not run here: "
                "use a kubelet, k3s or `podman kube play`"
            )
        container.folder.mkdir(parents=True, exist_ok=True)
        container.log.parent.mkdir(parents=True, exist_ok=True)
        check_user(container)
        user = _ids(container)
        if user is not None:
            os.chown(container.folder, user.uid, user.gid)
        if container.security.read_only_root:
            self._note(
                f"{container.id.name}: readOnlyRootFilesystem is ignored: the container sees the machine's files"
            )
        log, log_bytes, log_files = str(container.log), container.log_bytes, container.log_files
        program = replace(
            self._program(container, str(container.id), argv), log=log, log_bytes=log_bytes, log_files=log_files
        )
        self._make_cgroup(container, path)
        try:
            pid = self._shim.start(program)
        except ShimLost as lost:
            # It may have died after it started the process: nothing runs twice.
            self._lose(lost)
            self._cgroups.end([path], _END_SECONDS)
            self._make_cgroup(container, path)
            pid = self._shim.start(program)
        self._running[container.id] = (pid, path)
        return pid

    def _make_cgroup(self, container: ContainerStart, path: str) -> None:
        self._cgroups.create(path)
        for unwritten in self._cgroups.write(path, container.cgroup.files):
            self._note(str(unwritten))

    def terminate(self, container: ContainerId) -> None:
        """Send SIGTERM to the main process."""
        if container in self._running:
            pid, path = self._running[container]
            if not self._signal_held(pid, path, signal.SIGTERM):
                self._signal_moved([pid], signal.SIGTERM)

    def kill(self, container: ContainerId) -> None:
        """Kill everything in the container's cgroup; a main process that has left it, with all it has started."""
        if container in self._running:
            pid, path = self._running[container]
            # First, because it is most likely the one that grows, and to list all of them takes longer.
            is_held = self._signal_held(pid, path, signal.SIGKILL)
            self._cgroups.kill(path)
            if not is_held:
                self._signal_moved([pid, *self._procfs.descendants(pid)], signal.SIGKILL)

    def _signal_held(self, pid: int, path: str, number: int) -> bool:
        """Signal a main process in its cgroup; False if it has left it."""
        is_held = False

        def is_there() -> bool:
            nonlocal is_held
            is_held = self._cgroups.holds(path, pid)
            return is_held

        signal_if(pid, number, is_there)
        return is_held

    def _signal_moved(self, pids: Sequence[int], number: int) -> None:
        """Signal processes outside their cgroup: what descends from the shim, and nothing else."""
        with contextlib.suppress(ShimLost):
            shim = self._shim.pid
            for pid in pids:
                signal_if(pid, number, partial(self._descends, pid, shim))

    def _descends(self, pid: int | None, ancestor: int) -> bool:
        while pid and pid != ancestor:
            pid = self._procfs.parent(pid)
        return pid == ancestor

    def execute(self, container: ContainerStart, command: Sequence[str], token: str, seconds: float) -> None:
        """Run a command in the container's cgroup, with its view of files and its environment."""
        if not command:
            raise HostError(f"container {container.id.name}: a probe has no command")
        self._shim.start(replace(self._program(container, f"{_EXEC}{token}", command), seconds=seconds))
        self._executions.add(token)

    def remove(self, container: ContainerId) -> None:
        """Have the shim forget an ended run; a lost shim is noticed in ``heard``."""
        with contextlib.suppress(ShimLost):
            self._shim.forget(str(container))

    def remove_pod(self, uid: str) -> None:
        """Kill what a pod has moved out of its cgroups: without its parents it is the shim's child."""
        home, kept = self._home(uid), {pid for pid, _ in self._running.values()}
        with contextlib.suppress(ShimLost):
            orphans = [pid for pid in self._procfs.children(self._shim.pid) if pid not in kept]
            for pid in (pid for pid in orphans if self._is_from(home, pid)):
                self._signal_moved([pid, *self._procfs.descendants(pid)], signal.SIGKILL)

    def containers(self) -> list[FoundContainer]:
        """Return the shim's containers; running ones are adopted, commands of probes are left to their deadline."""
        try:
            kept = self._shim.programs()
        except ShimLost:
            kept = self._shim.reconnect()
        found = []
        for program in (*kept.running.values(), *kept.ended.values()):
            container = ContainerId.parse(program.id)
            if container is None:
                if program.pid is None:
                    self._shim.forget(program.id)
                continue
            if program.pid is not None:
                self._running[container] = (program.pid, program.label)
            found.append(FoundContainer(container, program.label, program.pid, program.code))
        self._end_moved()
        return found

    def _end_moved(self) -> None:
        """Kill what left its cgroup and then lost its shim, as far as its environment still tells where it is from."""
        home, shim = self._home(), self._shim.pid
        for pid in self._procfs.pids():
            signal_if(pid, signal.SIGKILL, lambda: self._is_from(home, pid) and not self._descends(pid, shim))  # noqa: B023 - called now

    def _home(self, uid: str = "") -> str:
        """Return how ``HOME`` begins in the environment of a pod, or of all."""
        return f"HOME={self._folder / 'data' / uid}/"

    def _is_from(self, home: str, pid: int) -> bool:
        return any(each.startswith(home) for each in self._procfs.environment(pid))

    def fileno(self) -> int:
        """Return the connection to the shim."""
        return self._shim.fileno()

    def heard(self) -> list[Heard]:
        """Return the shim's events; a lost shim is replaced, and its containers have ended."""
        found: list[Heard] = []
        try:
            ended = self._shim.exits()
        except ShimLost as lost:
            self._lose(lost)
            ended = []
        for each in ended:
            container = ContainerId.parse(each.id)
            if container is not None:
                self._running.pop(container, None)
                found.append(ContainerExit(container, each.code))
            elif each.id.startswith(_EXEC):
                token = each.id.removeprefix(_EXEC)
                self._executions.discard(token)
                with contextlib.suppress(ShimLost):
                    self._shim.forget(each.id)
                found.append(ExecResult(token, each.code))
        if self._has_lost and self._shim.is_connected:
            found += self._start_over()
        return found

    def close(self, *, end: bool) -> None:
        """Disconnect from the shim, or end it."""
        if not end:
            self._shim.close()
            return
        self._shim.forget_records()
        try:
            self._signal_moved(self._procfs.descendants(self._shim.pid), signal.SIGKILL)
            self._shim.end()
        except ShimLost:
            self._shim.close()

    def _lose(self, lost: ShimLost) -> None:
        """Have another shim started; until it is there, nothing of the lost one is left to run."""
        self._note(f"{lost}; its containers are stopped and restarted")
        self._has_lost = True
        if not self._shim.renew():
            for _, path in self._running.values():
                self._cgroups.kill(path)

    def _start_over(self) -> list[Heard]:
        """Report what was lost with a shim, now that there is another."""
        try:
            known = self._shim.programs()
        except ShimLost as lost:
            self._lose(lost)
            return []
        self._has_lost = False
        self._end_moved()
        found: list[Heard] = [ExecResult(token, LOST_CODE) for token in self._executions]
        self._executions.clear()
        for container, (_, path) in list(self._running.items()):
            if str(container) not in known.running:
                self._cgroups.kill(path)
                del self._running[container]
                ended = known.ended.get(str(container))
                code = LOST_CODE if ended is None or ended.code is None else ended.code
                found.append(ContainerExit(container, code, is_lost=ended is None))
        return found

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
        return [capability_number(name) for name in capabilities(container.security)]

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
    return ids(container)


def _variable(volume: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", volume.upper())
