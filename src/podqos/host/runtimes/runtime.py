"""What the node asks of a container runtime. ``process`` needs nothing installed; the others drive real ones.

A runtime starts and ends containers and says which it knows; it decides nothing. What a container uses is read from
its cgroup, the same way for all. Calls return quickly; how a container ends is told later through ``heard``, for which
``fileno`` says when to ask.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from podqos.qos.cgroup import Cgroup

Note = Callable[[str], None]
LOST_CODE = 137
"""The exit code of a process whose end no one saw: it was killed, or as good as."""


class ContainerId(Struct, frozen=True, gc=False, order=True):
    """Which run of which container of which pod. ``str`` and ``parse`` are its form outside."""

    uid: str
    name: str
    attempt: int

    def __str__(self) -> str:
        """Return ``uid/name/attempt``: neither can hold a slash."""
        return f"{self.uid}/{self.name}/{self.attempt}"

    @property
    def run_id(self) -> str:
        """The id of the run as runtimes write them: 64 hexadecimal digits, always the same for the same run."""
        return sha256(str(self).encode()).hexdigest()

    @staticmethod
    def parse(text: str) -> ContainerId | None:
        """Return what ``str`` gave; None for anything else, such as a probe's."""
        parts = text.split("/")
        if len(parts) != 3 or not parts[2].isdecimal():
            return None
        return ContainerId(parts[0], parts[1], int(parts[2]))


class Mount(Struct, frozen=True, gc=False):
    """A directory or file of the machine that a container is to see."""

    volume: str
    source: str
    target: str
    read_only: bool = False


class Sandbox(Struct, frozen=True, kw_only=True):
    """A pod about to get its first container."""

    uid: str
    name: str
    namespace: str
    cgroup_parent: str
    """The cgroup of the pod; all of its containers lie below."""
    logs: str
    """The directory."""
    hostname: str = ""


class ContainerStart(Struct, frozen=True, kw_only=True):
    """A container to start, with everything resolved."""

    id: ContainerId
    image: str
    command: tuple[str, ...]
    """Empty: what the image says."""
    args: tuple[str, ...]
    env: Mapping[str, str]
    working_dir: str
    """Empty: what the image says, or a directory of the container's own."""
    mounts: tuple[Mount, ...]
    cgroup: Cgroup
    """Where it is to run and what is to be written there; the path ends in the id of the run."""
    oom_score_adj: int
    folder: Path
    """What it writes outside of volumes lands here, where the runtime has no writable layer of its own."""
    log: Path
    log_bytes: int
    log_files: int


class FoundContainer(Struct, frozen=True):
    """A container that a runtime knows of."""

    id: ContainerId
    cgroup: str | None
    """None where the runtime does not know; the node derives it from the plan then."""
    pid: int | None
    exit_code: int | None
    """None while it runs."""


class ContainerPlace(Struct, frozen=True, gc=False):
    """Where a run is, once it has really started."""

    id: ContainerId
    cgroup: str
    pid: int | None


class ContainerExit(Struct, frozen=True, gc=False):
    """How a run ended."""

    id: ContainerId
    exit_code: int
    oom_killed: bool = False
    """The runtime says so; where it does not, the cgroup is asked."""


class ExecResult(Struct, frozen=True, gc=False):
    """How a command inside a container ended."""

    token: str
    exit_code: int


Heard = ContainerPlace | ContainerExit | ExecResult


class Runtime(Protocol):
    """Something that runs containers."""

    name: str

    def prepare(self, sandbox: Sandbox) -> None:
        """Make ready for the containers of a pod: network, pause process, whatever it needs. Fine if it is there.

        What fails is told when a container is to be started.
        """

    def start(self, container: ContainerStart) -> int | None:
        """Start a container inside its cgroup and return its process id, where known; ``HostError`` says why not."""

    def terminate(self, container: ContainerId) -> None:
        """Ask a container to end (SIGTERM to its main process)."""

    def kill(self, container: ContainerId) -> None:
        """End a container at once, with everything in it."""

    def execute(self, container: ContainerStart, command: Sequence[str], token: str, seconds: float) -> None:
        """Run a command inside a container, for so long at most; ``heard`` tells how it ended, under this token."""

    def remove(self, container: ContainerId) -> None:
        """Forget a container that has ended, and remove what is left of it; its folder and log are the node's."""

    def remove_sandbox(self, uid: str) -> None:
        """Remove what ``prepare`` made."""

    def containers(self) -> list[FoundContainer]:
        """Return everything it knows of, to be adopted or removed."""

    def fileno(self) -> int:
        """Return the descriptor that is readable when something has happened; it stays the same."""

    def heard(self) -> list[Heard]:
        """Return what has happened since last asked."""

    def remove_unused_images(self) -> int:
        """Remove images that no container uses; return the bytes gained."""

    def image_folder(self) -> Path | None:
        """Return where images lie, if on a filesystem worth watching; None where the runtime has none."""

    def close(self, *, end: bool) -> None:
        """Let go of it; with ``end`` whatever serves only this node ends as well."""
