"""The interface of what runs containers: plain processes, or what tests make up.

A runtime starts, ends and lists containers; it decides nothing. The usage of a container is read from its cgroup, the
same way for both. Calls return quickly; ``heard`` reports later how a container ended, when ``fileno`` is readable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from podqos.errors import HostError
from podqos.qos.cgroup import Cgroup

Note = Callable[[str], None]


class StartError(HostError):
    """A container cannot be started; ``reason`` is the kubelet's word for why."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


LOST_CODE = 137
"""The exit code of a process whose end was not observed: as if killed."""


class ContainerId(Struct, frozen=True, gc=False, order=True):
    """A run of a container of a pod. ``str`` and ``parse`` convert it to and from text."""

    uid: str
    name: str
    attempt: int

    def __str__(self) -> str:
        """Return ``uid/name/attempt``: none of them contains a slash."""
        return f"{self.uid}/{self.name}/{self.attempt}"

    @property
    def run_id(self) -> str:
        """The id of the run in the format of runtimes: 64 hexadecimal digits, always the same for a run."""
        return sha256(str(self).encode()).hexdigest()

    @staticmethod
    def parse(text: str) -> ContainerId | None:
        """Parse the output of ``str``; None for anything else, such as a probe's."""
        parts = text.split("/")
        if len(parts) != 3 or not parts[2].isdecimal():
            return None
        return ContainerId(parts[0], parts[1], int(parts[2]))


class Mount(Struct, frozen=True, gc=False):
    """A directory or file of the machine to mount into a container."""

    volume: str
    source: str
    target: str
    read_only: bool = False


class Security(Struct, frozen=True, kw_only=True):
    """The security context of a container, after the pod's; None and empty where nothing is written."""

    run_as_user: int | None = None
    run_as_group: int | None = None
    groups: tuple[int, ...] = ()
    """``supplementalGroups`` and ``fsGroup``."""
    run_as_non_root: bool = False
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    """Capabilities, as written."""
    read_only_root: bool = False
    no_new_privileges: bool = False
    """``allowPrivilegeEscalation: false``."""
    privileged: bool = False


class ContainerStart(Struct, frozen=True, kw_only=True):
    """A container to start, fully resolved."""

    id: ContainerId
    command: tuple[str, ...]
    args: tuple[str, ...]
    env: Mapping[str, str]
    working_dir: str
    """Empty: the container's own directory."""
    mounts: tuple[Mount, ...]
    cgroup: Cgroup
    """The planned cgroup and its files; the path ends in the id of the run."""
    oom_score_adj: int
    folder: Path
    """For what it writes outside volumes."""
    log: Path
    log_bytes: int
    log_files: int
    security: Security = Security()


class FoundContainer(Struct, frozen=True):
    """A container known to a runtime."""

    id: ContainerId
    cgroup: str | None
    """None if the runtime does not know; the node then derives it from the plan."""
    pid: int | None
    exit_code: int | None
    """None while it runs."""


class ContainerExit(Struct, frozen=True, gc=False):
    """How a run ended."""

    id: ContainerId
    exit_code: int
    is_lost: bool = False
    """It ended because its keeper did, which is not its fault."""
    reason: str = ""
    """Of a container that could not be started: the kubelet's word for why."""
    message: str = ""


class ExecResult(Struct, frozen=True, gc=False):
    """How a command inside a container ended."""

    token: str
    exit_code: int


Heard = ContainerExit | ExecResult


def start_failure(error: Exception) -> str:
    """Return the kubelet's word for what kept a container from starting."""
    return error.reason if isinstance(error, StartError) else "RunContainerError"


class Runtime(Protocol):
    """Something that runs containers."""

    name: str

    def start(self, container: ContainerStart) -> int | None:
        """Start a container in its cgroup and return its process id, if known; raises ``HostError``."""

    def terminate(self, container: ContainerId) -> None:
        """Send SIGTERM to a container's main process."""

    def kill(self, container: ContainerId) -> None:
        """Kill a container at once, with all its processes."""

    def execute(self, container: ContainerStart, command: Sequence[str], token: str, seconds: float) -> None:
        """Run a command inside a container with a timeout; ``heard`` reports how it ended, under this token."""

    def remove(self, container: ContainerId) -> None:
        """Remove what is left of an ended container; its directory and log belong to the node."""

    def remove_pod(self, uid: str) -> None:
        """Kill what a pod has moved out of its cgroups."""

    def containers(self) -> list[FoundContainer]:
        """Return all known containers, to be adopted or removed."""

    def fileno(self) -> int:
        """Return the descriptor that is readable when there are events; it never changes."""

    def heard(self) -> list[Heard]:
        """Return the events since the last call."""

    def close(self, *, end: bool) -> None:
        """Release it; with ``end`` everything that serves only this node ends as well."""
