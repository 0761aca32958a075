"""Containers as ``docker inspect`` and ``crictl inspect`` show them, in JSON, whole or in part.

It is read by its keys, because people paste the part that they think matters. A container becomes a pod's status, and
``terminations`` decides about it as about any other. Nothing in them is trusted.

Sources: moby daemon/container/state.go; CRI api.proto (ContainerStatus); cri-o server/container_status.go. podman and
nerdctl print much the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.model.pod import Container, ObjectMeta, PodSpec
from podqos.model.pod_fate import (
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    FatedPod,
    FullPodStatus,
)
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY, ResourceRequirements
from podqos.survival.autopsy.lazy_pattern import LazyPattern
from podqos.survival.autopsy.terminations import (
    EXIT_BY_SIGKILL,
    OOM_KILLED,
    ContainerTermination,
    Evidence,
    Kill,
    TerminationCause,
    exits,
    terminations,
)

_WORDS = (b'"OOMKilled"', b'"CONTAINER_EXITED"', b'"CONTAINER_RUNNING"')
"""One of these is in the output of a runtime, near its beginning."""
_HEAD_BYTES = 1 << 16
_MOST_CONTAINERS = 2_000
_MOST_CHARACTERS = 1 << 16
_MOST_NAME = 253
_MOST_OPENING = 256
_MOST_CODE_DIGITS = 4
_KEYS = {
    "Id": "id",
    "id": "id",
    "Name": "name",
    "name": "name",
    "OOMKilled": "oom_killed",
    "ExitCode": "exit_code",
    "exitCode": "exit_code",
    "FinishedAt": "finished_at",
    "finishedAt": "finished_at",
    "Status": "state",
    "state": "state",
    "reason": "reason",
    "Memory": "memory_limit",
    "memoryLimitInBytes": "memory_limit",
    "RestartCount": "restarts",
    "io.kubernetes.container.restartCount": "restarts",
    "io.kubernetes.container.name": "container",
    "io.kubernetes.pod.name": "pod",
    "io.kubernetes.pod.namespace": "namespace",
    "io.kubernetes.pod.uid": "uid",
}
_NAMES = "|".join(re.escape(key) for key in sorted(_KEYS, key=len, reverse=True))
_KEY = LazyPattern(rf'"({_NAMES})"\s{{0,4}}:\s{{0,4}}("(?:[^"\\]|\\.){{0,400}}"|[\w.:+/-]{{1,253}})')
_ID = LazyPattern(r"[0-9a-f]{12,64}")
_LONG_ID = LazyPattern(r"[0-9a-f]{64}")
_RUNNING = frozenset({"running", "container_running", "up"})


_OPENING = LazyPattern(r"\s{0,80}(?:\[\s{0,8}\n)?([ \t]{0,8}\{)\r?\n[ \t]{1,16}\"")
"""The line with which every container of a whole output begins, by the first of them."""
_JSON = ('"', "{", "[", "}", "]")
"""What a line of JSON begins with."""


class _Container(Struct):
    """What is known of a container so far."""

    values: dict[str, str]

    def is_known(self) -> bool:
        """Whether it is a container, and not something else that has an id or a name."""
        return "oom_killed" in self.values or ("exit_code" in self.values and "id" in self.values)

    @property
    def name(self) -> str:
        """Its name in the pod, or the runtime's."""
        return self.values.get("container") or self.values.get("name", "").lstrip("/")

    @property
    def pod_uid(self) -> str:
        """The pod's, or one that no pod has."""
        return self.values.get("uid") or f"runtime/{self.values.get('id') or self.name}"

    @property
    def is_oom_killed(self) -> bool:
        """Whether the kernel killed a process in it."""
        return self.values.get("oom_killed", "").lower() == "true" or self.values.get("reason") == OOM_KILLED

    @property
    def is_running(self) -> bool:
        """Whether it runs."""
        return self.values.get("state", "").lower() in _RUNNING

    @property
    def exit_code(self) -> int | None:
        """Its exit code, where that is shown."""
        code = self.values.get("exit_code", "")
        return int(code) if code.isdecimal() and len(code) < _MOST_CODE_DIGITS else None

    @property
    def memory_limit(self) -> int | None:
        """Its limit in bytes, where that is shown."""
        limit = self.values.get("memory_limit", "")
        return int(limit) if limit.isdecimal() and 0 < int(limit[:20]) < 1 << 62 else None


class RuntimeContainers:
    """Takes lines, and gathers containers."""

    def __init__(self) -> None:
        self._current = _Container({})
        self._finished: list[_Container] = []
        self._is_output = False
        self._opening: str | None = None

    def begin(self, head: bytes) -> bool:
        """Begin another input, and return whether it is a runtime's output: every line of it matters then."""
        self._end()
        start = head[:_HEAD_BYTES]
        self._is_output = any(word in start for word in _WORDS)
        opening = _OPENING.match(start[:_MOST_OPENING].decode(errors="replace")) if self._is_output else None
        self._opening = None if opening is None else opening[1]
        return self._is_output

    @property
    def is_output(self) -> bool:
        """Whether the log is what a runtime printed."""
        return self._is_output

    def feed(self, line: str) -> bool:
        """Take a line as it was found; return whether it says something of a container."""
        if not self._is_output:
            return False
        text = line[:_MOST_CHARACTERS]
        if text.rstrip("\r") == self._opening:
            self._end()  # crictl shows what a container belongs to before its id
            return False
        return text.lstrip(" \t>|").startswith(_JSON) and self._of_keys(text)

    def _of_keys(self, text: str) -> bool:
        """Take a part of what ``inspect`` shows; return whether it has any of the keys."""
        found = [*_KEY.finditer(text)]
        for match in found:
            self._put(match[1], match[2].strip("\"'"))
        return bool(found)

    def _put(self, key: str, value: str) -> None:
        name = _KEYS[key]
        values = self._current.values
        if name == "id":
            if not _ID.fullmatch(value):
                return
            if "id" in values:
                self._end()
        elif name == "oom_killed" and name in values:
            self._end()  # another one, of which the beginning is missing
        self._current.values.setdefault(name, value[:_MOST_NAME])

    def _end(self) -> None:
        container, self._current = self._current, _Container({})
        if container.is_known() and len(self._finished) < _MOST_CONTAINERS:
            self._finished.append(container)

    def __len__(self) -> int:
        return len(self._known_containers())

    def terminations(self, kills: Sequence[Kill]) -> Iterator[ContainerTermination]:
        """Yield the containers that were killed or stopped."""
        by_id = {match[0]: number for number, kill in enumerate(kills) for match in _LONG_ID.finditer(_cgroup(kill))}
        for container in self._known_containers():
            yield from _ended(container, kills, by_id.get(container.values.get("id", "")))

    def exits(self, kills: Sequence[Kill]) -> Iterator[ContainerTermination]:
        """Yield the containers not known to have been killed."""
        for container in self._known_containers():
            yield from (_named(ended, container) for ended in exits([_as_pod(container)], Evidence(kills)))

    def _known_containers(self) -> list[_Container]:
        self._end()
        return self._finished


def _cgroup(kill: Kill) -> str:
    return str(getattr(kill, "victim_cgroup", "") or getattr(kill, "cgroup", ""))


def _ended(container: _Container, kills: Sequence[Kill], kill: int | None) -> Iterator[ContainerTermination]:
    if container.is_oom_killed and (container.is_running or container.exit_code is None):
        # Only the flag is known, or another process than the first one was killed.
        cause = TerminationCause.KERNEL_UNREPORTED if kill is None else TerminationCause.KERNEL
        ended = ContainerTermination(
            _as_pod(container).key,
            container.name,
            TerminationCause.KERNEL_OF_CHILD if container.is_running else cause,
            at=container.values.get("finished_at", ""),
            reason=OOM_KILLED,
            container_id=container.values.get("id", ""),
            kill=kill,
            memory_limit_bytes=container.memory_limit,
        )
        yield _named(ended, container)
    elif not container.is_running:
        for ended in terminations([_as_pod(container)], Evidence(kills)):
            own = ended
            if kill is not None and ended.kill is None:
                is_killed = container.exit_code == EXIT_BY_SIGKILL
                cause = TerminationCause.KERNEL if is_killed else TerminationCause.KERNEL_OF_CHILD
                own = replace(ended, kill=kill, cause=cause)
            yield _named(own, container)


def _named(ended: ContainerTermination, container: _Container) -> ContainerTermination:
    return replace(
        ended,
        pod=ended.pod if container.values.get("pod") else "",
        node=ended.node,
        container_id=ended.container_id or container.values.get("id", ""),
        is_from_runtime=True,
    )


def _as_pod(container: _Container) -> FatedPod:
    """Return a container as the status of a pod that has it alone."""
    values = container.values
    identity, exit_code = values.get("id", ""), container.exit_code
    ended = ContainerTerminated(
        reason=OOM_KILLED if container.is_oom_killed else values.get("reason", "Error" if exit_code else ""),
        exit_code=exit_code,
        finished_at=values.get("finished_at"),
        container_id=identity,
    )
    is_running = container.is_running or exit_code is None
    state = ContainerState(running=ContainerRunning()) if is_running else ContainerState(terminated=ended)
    restarts = values.get("restarts", "")
    status = ContainerStatus(
        name=container.name,
        container_id=identity,
        restart_count=int(restarts) if restarts.isdecimal() and len(restarts) < 10 else 0,
        state=state,
    )
    limit = container.memory_limit
    resources = ResourceRequirements(limits={} if limit is None else {MEMORY: Quantity.of_units(limit, "BinarySI")})
    return FatedPod(
        ObjectMeta(name=values.get("pod", ""), namespace=values.get("namespace", ""), uid=container.pod_uid),
        PodSpec(containers=(Container(name=container.name, resources=resources),)),
        FullPodStatus(container_statuses=(status,)),
    )
