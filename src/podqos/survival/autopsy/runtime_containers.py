"""Containers as their runtime shows them: docker, podman, nerdctl and crictl, whole or in part.

``inspect`` is read by its keys, as JSON, YAML or a few lines of it, because people paste the part that they think
matters; ``ps`` by its rows; ``events`` by its lines. A container becomes a pod's status, and ``terminations`` decides
about it as about any other. Nothing in them is trusted.

Sources: moby daemon/container/state.go, api/types/events, daemon/events.go, cli/command/formatter/container.go; podman
libpod/define/container_inspect.go, events.go; CRI api.proto (ContainerStatus); cri-o server/container_status.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.kernel.log_lines import Message
from podqos.model.event import Event, ObjectReference
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
from podqos.survival.autopsy.terminations import (
    OOM_KILLED,
    ContainerTermination,
    Evidence,
    Kill,
    TerminationCause,
    terminations,
)

_BEGINNING = re.compile(
    rb"\"?OOMKilled\"?\s{0,4}:|CONTAINER_EXITED|^CONTAINER ID\s{1,80}IMAGE|container (?:oom|die|died|kill) [0-9a-f]{12}"
    rb"|\"Action\":\"(?:oom|die|kill)\"",
    re.MULTILINE,
)
_HEAD_BYTES = 1 << 16
_MOST_CONTAINERS = 2_000
_MOST_DEPTH = 8
_MOST_VALUES = 4_000
_MOST_NAME = 253
_STOPPED_BY = "Killing"
_EXIT_BY_SIGKILL = 137
_SIGKILL = frozenset({"9", "KILL", "SIGKILL"})
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
_KEY = re.compile(
    rf"(?<![\w.])[\"']?({_NAMES})[\"']?\s{{0,4}}[:=]\s{{0,4}}"
    r"(\"(?:[^\"\\]|\\.){0,400}\"|'[^']{0,400}'|[\w.:+/-]{1,253})"
)
_ID = re.compile(r"[0-9a-f]{12,64}")
_LONG_ID = re.compile(r"[0-9a-f]{64}")
_ROW = re.compile(
    r"([0-9a-f]{12,64}) {2,80}(\S{1,253}) .{0,600}?(Exited|Restarting) \((\d{1,3})\) [\w ]{1,30}? ago(.{0,400})$"
)
_EVENT = re.compile(r"\bcontainer (oom|die|died|kill) ([0-9a-f]{12,64})\b(.{0,4000})")
_ATTRIBUTE = re.compile(r"[(,] ?([\w.]{1,80})=([^,)]{0,253})")
_ENDED = frozenset({"exited", "container_exited", "stopped", "dead", "restarting"})


class _Container(Struct):
    """What is known of a container so far."""

    values: dict[str, str]
    is_stopped: bool = False
    """Whether someone asked for its end."""

    def is_known(self) -> bool:
        """Whether it is a container, and not something else that has an id or a name."""
        return "oom_killed" in self.values or ("exit_code" in self.values and "id" in self.values)


class RuntimeContainers:
    """Takes lines, and gathers containers."""

    def __init__(self) -> None:
        self._by_id: dict[str, _Container] = {}
        self._current = _Container({})
        self._finished: list[_Container] = []
        self._is_output = False

    def begin(self, head: bytes) -> bool:
        """Begin another input, and return whether it is a runtime's output: every line of it matters then."""
        self._end()
        self._is_output = _BEGINNING.search(head, 0, _HEAD_BYTES) is not None
        return self._is_output

    def feed(self, message: Message) -> None:
        """Take a line."""
        if not self._is_output:
            return
        if message.fields:
            self._fields(message.fields)
            return
        text = message.text
        if match := _EVENT.search(text):
            attributes = dict(_ATTRIBUTE.findall(match[3]))
            self._event(match[1], match[2], attributes, message.at)
        elif match := _ROW.match(text):
            name = match[5].split()[-1] if match[5].split() else ""
            self._known(match[1]).values.update({"exit_code": match[4], "name": name, "state": "exited"})
        elif ":" in text:
            for key, value in _KEY.findall(text):
                self._put(key, value.strip("\"'"))

    def _fields(self, fields: Mapping[str, object]) -> None:
        actor = fields.get("Actor")
        if isinstance(actor, Mapping) and isinstance(fields.get("Action"), str):
            known = actor.get("Attributes")
            attributes = {str(key): str(value) for key, value in known.items()} if isinstance(known, Mapping) else {}
            self._event(str(fields["Action"]), str(actor.get("ID", "")), attributes, str(fields.get("time", "")))
        elif "OOMKilled" in fields or any(isinstance(fields.get(key), Mapping) for key in ("State", "status")):
            self._end()
            for key, value in _flat(fields):
                self._put(key, value)

    def _event(self, action: str, identity: str, attributes: Mapping[str, str], at: str) -> None:
        if not _ID.fullmatch(identity):
            return
        container = self._known(identity)
        for key, value in attributes.items():
            if (field := _KEYS.get(key)) is not None and field not in {"state", "id"}:
                container.values.setdefault(field, value)
        if action == "oom":
            container.values["oom_killed"] = "true"
            container.values.setdefault("finished_at", at)
        elif action == "kill":
            container.is_stopped |= attributes.get("signal") not in _SIGKILL
        elif action in {"die", "died"}:
            container.values["finished_at"] = at
            container.values["state"] = "exited"
            container.values.setdefault("exit_code", attributes.get("containerExitCode", ""))

    def _known(self, identity: str) -> _Container:
        if identity not in self._by_id and len(self._by_id) >= _MOST_CONTAINERS:
            return _Container({})
        return self._by_id.setdefault(identity, _Container({"id": identity}))

    def _put(self, key: str, value: str) -> None:
        field = _KEYS[key]
        values = self._current.values
        if field == "id":
            if not _ID.fullmatch(value):
                return
            if "id" in values:
                self._end()
        elif field == "oom_killed" and field in values:
            self._end()  # another one, of which the beginning is missing
        self._current.values.setdefault(field, value[:_MOST_NAME])

    def _end(self) -> None:
        container, self._current = self._current, _Container({})
        if container.is_known() and len(self._finished) < _MOST_CONTAINERS:
            self._finished.append(container)

    def terminations(self, kills: Sequence[Kill]) -> Iterator[ContainerTermination]:
        """Yield how the containers ended that did not end by themselves."""
        self._end()
        by_id = {match[0]: number for number, kill in enumerate(kills) for match in _LONG_ID.finditer(_cgroup(kill))}
        for container in (*self._finished, *(known for known in self._by_id.values() if known.is_known())):
            yield from _ended(container, kills, by_id)


def _cgroup(kill: Kill) -> str:
    return str(getattr(kill, "victim_cgroup", "") or getattr(kill, "cgroup", ""))


def _ended(container: _Container, kills: Sequence[Kill], by_id: Mapping[str, int]) -> Iterator[ContainerTermination]:
    values = container.values
    is_oom = values.get("oom_killed", "").lower() == "true" or values.get("reason") == OOM_KILLED
    code = values.get("exit_code", "")
    exit_code = int(code) if code.isdecimal() and len(code) < 4 else None
    state = values.get("state", "").lower()
    name = values.get("container") or values.get("name", "").lstrip("/")
    identity = values.get("id", "")
    kill = by_id.get(identity)
    if state == "running" or (exit_code is None and is_oom and state not in _ENDED):
        if is_oom:
            yield _of(container, name, TerminationCause.KERNEL_OF_CHILD if state == "running" else _UNREPORTED, kill)
        return
    pod = _as_pod(container, name, exit_code, is_oom=is_oom)
    killing = Event(reason=_STOPPED_BY, involved_object=ObjectReference("Pod", uid=pod.metadata.uid))
    evidence = Evidence(kills, (), [killing] if container.is_stopped else [])
    for ended in terminations([pod], evidence):
        cause = ended.cause
        if kill is not None and ended.kill is None:
            cause = TerminationCause.KERNEL if exit_code == _EXIT_BY_SIGKILL else TerminationCause.KERNEL_OF_CHILD
        yield replace(
            ended,
            pod=ended.pod if values.get("pod") else "",
            cause=cause,
            kill=kill if ended.kill is None else ended.kill,
            is_from_runtime=True,
        )


_UNREPORTED = TerminationCause.KERNEL_UNREPORTED


def _of(container: _Container, name: str, cause: TerminationCause, kill: int | None) -> ContainerTermination:
    """Return a container that runs on, or of which only the flag is known."""
    values = container.values
    pod = f"{values.get('namespace', 'default')}/{values['pod']}" if values.get("pod") else ""
    return ContainerTermination(
        pod,
        name,
        TerminationCause.KERNEL if kill is not None and cause is _UNREPORTED else cause,
        at=values.get("finished_at", ""),
        reason=OOM_KILLED,
        container_id=values.get("id", ""),
        kill=kill,
        memory_limit_bytes=_limit(values),
        is_from_runtime=True,
    )


def _limit(values: Mapping[str, str]) -> int | None:
    limit = values.get("memory_limit", "")
    return int(limit) if limit.isdecimal() and 0 < int(limit[:20]) < 1 << 62 else None


def _as_pod(container: _Container, name: str, exit_code: int | None, *, is_oom: bool) -> FatedPod:
    """Return a container as the status of a pod that has it alone."""
    values = container.values
    identity = values.get("id", "")
    ended = ContainerTerminated(
        reason=OOM_KILLED if is_oom else values.get("reason", "Error" if exit_code else ""),
        exit_code=exit_code or 0,
        finished_at=values.get("finished_at"),
        container_id=identity,
    )
    state = ContainerState(terminated=ended) if exit_code is not None else ContainerState(running=ContainerRunning())
    restarts = values.get("restarts", "")
    status = ContainerStatus(
        name=name,
        container_id=identity,
        restart_count=int(restarts) if restarts.isdecimal() and len(restarts) < 10 else 0,
        state=state,
    )
    limit = _limit(values)
    resources = ResourceRequirements(limits={} if limit is None else {MEMORY: Quantity.of_units(limit, "BinarySI")})
    return FatedPod(
        ObjectMeta(
            name=values.get("pod", ""),
            namespace=values.get("namespace", ""),
            uid=values.get("uid") or f"runtime/{identity}",
        ),
        PodSpec(containers=(Container(name=name, resources=resources),)),
        FullPodStatus(container_statuses=(status,)),
    )


def _flat(value: object, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the keys that matter with their values, outer ones first in the order of the text."""
    if depth > _MOST_DEPTH:
        return
    if isinstance(value, Mapping):
        for key, inner in list(value.items())[:_MOST_VALUES]:
            if isinstance(inner, Mapping | list):
                yield from _flat(inner, depth + 1)
            elif key in _KEYS and inner is not None:
                yield str(key), str(inner)
    elif isinstance(value, list):
        for inner in value[:_MOST_VALUES]:
            yield from _flat(inner, depth + 1)
