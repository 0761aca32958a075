"""Containers as their runtime shows them: docker, podman, nerdctl and crictl, whole or in part.

``inspect`` is read by its keys, as JSON, YAML or a few lines of it, because people paste the part that they think
matters, and by the template that its command names; ``ps`` by its rows, also those of compose and swarm; ``events`` by
its lines. A container becomes a pod's status, and ``terminations`` decides about it as about any other. Nothing in them
is trusted.

Sources: moby daemon/container/state.go, api/types/events, daemon/events.go, cli/command/formatter/container.go; CRI
api.proto (ContainerStatus); cri-o server/container_status.go. podman and nerdctl print much the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from podqos.kernel.message import Message
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
from podqos.survival.autopsy.lazy_pattern import LazyPattern
from podqos.survival.autopsy.log_times import carried
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

_WORDS = (
    *(
        b"OOMKilled",
        b"CONTAINER_EXITED",
        b'"CONTAINER_RUNNING"',
        b"CONTAINER ID",
        b"container ",
        b'"Action":"',
        b"xited (",
        b"POD ID",
    ),
    *(b" SERVICE ", b" Command ", b"DESIRED STATE", b'"Status":"'),
)
"""One of these is in the output of a runtime, near its beginning."""
_HEAD_BYTES = 1 << 16
_MOST_CONTAINERS = 2_000
_MOST_CHARACTERS = 1 << 16
_MOST_NAME = 253
_SHORT_ID = 12
_MOST_OPENING = 256
_STOPPED_BY = "Killing"
_MOST_CODE_DIGITS = 4
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
_KEY = LazyPattern(
    rf"(?<![\w.])[\"']?({_NAMES})[\"']?\s{{0,4}}[:=]\s{{0,4}}"
    r"(\"(?:[^\"\\]|\\.){0,400}\"|'[^']{0,400}'|[\w.:+/-]{1,253})"
)
_ID = LazyPattern(r"[0-9a-f]{12,64}")
_LONG_ID = LazyPattern(r"[0-9a-f]{64}")
_ROW = LazyPattern(
    r"([0-9a-f]{12,64}) {1,80}(\S{1,253}) .{0,600}?(Exited|Restarting) \((\d{1,3})\) [\w ]{1,30}? ago(.{0,400})$"
)
_HEADER = LazyPattern(
    r"CONTAINER ID( {2,80})IMAGE|(NAME +(?:IMAGE +)?COMMAND +SERVICE +|\s{0,20}Name +Command +State +Ports)"
    r"|(ID +NAME +IMAGE +NODE +DESIRED STATE +CURRENT STATE)|(CONTAINER +IMAGE +CREATED +STATE +NAME +ATTEMPT +POD ID)"
)
_SPACES = {2: "podman", 4: "nerdctl"}
"""Between the columns of ``ps``; docker has three."""
_COMPOSED = LazyPattern(
    r"([A-Za-z0-9][\w.-]{1,252}) {2,80}.{0,600}?(?<= )(?:[Ee]xited? \((\d{1,3})\)|Exit (\d{1,3}))(?=\s|$)"
)
_OF_SWARM = LazyPattern(
    r"[0-9a-z]{12,25} {1,20}(?:\\_ )?(\S{1,253}) {2,80}\S{1,253} {2,80}([A-Za-z0-9][\w.-]{0,252}) {2,80}"
    r"(?:Shutdown|Ready|Running|Remove) {2,80}Failed [\w ]{1,40} {2,80}\"task: non-zero exit \((\d{1,3})\)"
)
_OF_CRICTL = LazyPattern(
    r"([0-9a-f]{12,64}) {2,80}\S{1,253} {2,80}[\w ]{1,40} ago {2,80}Exited {2,80}(\S{1,253}) {2,80}(\d{1,9}) {2,80}"
    r"[0-9a-f]{12,64}(?: {2,80}(\S{1,253}))?(?: {2,80}(\S{1,63}))?\s{0,80}$"
)
_PROMPT = LazyPattern(r".{0,80}?(?:^|[$#%>] ?)(?:sudo )?(docker|podman|nerdctl|crictl)(?:[ -]compose)? (.{1,400})$")
_TEMPLATE = LazyPattern(r"(?:-f|--format)[ =]?(['\"])?(?P<template>.{0,80}?\{\{.{1,300}\}\})(?(1)\1)")
_FIELD = LazyPattern(r"\{\{ ?(?:json )?\.(?:\w{1,20}\.)?(\w{1,20}) ?\}\}")
_STATUS = LazyPattern(r"Exited \((\d{1,3})\) ")
_EVENT = LazyPattern(r"\bcontainer (oom|die|died|kill) ([0-9a-f]{12,64})\b(.{0,4000})")
_ATTRIBUTE = LazyPattern(r"[(,] ?([\w.]{1,80})=([^,)]{0,253})")
_COMPOSE, _SWARM = 2, 3
_RUNNING = frozenset({"running", "container_running", "up"})


@cache
def _beginning() -> re.Pattern[bytes]:
    """Return what finds the output of a runtime."""
    return re.compile(
        rb"\"?OOMKilled\"?\s{0,4}:|OOMKilled=true\b.{0,400}xit_?[Cc]ode="
        rb"|xit_?[Cc]ode=.{0,400}OOMKilled=true\b|CONTAINER_EXITED"
        rb"|\"state\": \"CONTAINER_RUNNING\"|^CONTAINER ID\s{1,80}IMAGE"
        rb"|\"Action\":\"(?:oom|die|kill)\""
        rb"|container (?:oom|die|died|kill) [0-9a-f]{12}|^[0-9a-f]{12} {1,80}\S.{1,400} Exited \(\d"
        rb"|inspect\b.{1,200}\.OOMKilled ?\}\}|^NAME +(?:IMAGE +)?COMMAND +SERVICE "
        rb"|^\s{0,20}Name +Command +State +Ports"
        rb"|^ID +NAME +IMAGE +NODE +DESIRED STATE|^CONTAINER +IMAGE +CREATED +STATE +NAME +ATTEMPT"
        rb"|\"Status\":\"Exited \(\d",
        re.MULTILINE,
    )


_OPENING = LazyPattern(r"\s{0,80}(?:\[\s{0,8}\n)?([ \t]{0,8}\{)\r?\n[ \t]{1,16}\"")
"""The line with which every container of a whole output begins, by the first of them."""


class _Actor(Struct, frozen=True):
    id: str = field(default="", name="ID")
    attributes: dict[str, str] = field(default_factory=dict, name="Attributes")


class _Event(Struct, frozen=True):
    """An event of docker's, as JSON."""

    action: str = field(default="", name="Action")
    actor: _Actor = field(default_factory=_Actor, name="Actor")
    time: int | None = None


class _Container(Struct):
    """What is known of a container so far."""

    values: dict[str, str]
    is_stopped: bool = False
    """Whether someone asked for its end."""
    is_row: bool = False
    """Whether it is in a list, which does not show if it was OOM-killed."""

    def is_known(self) -> bool:
        """Whether it is a container, and not something else that has an id or a name."""
        if self.is_row:
            return True
        return "oom_killed" in self.values or ("exit_code" in self.values and "id" in self.values)

    @property
    def is_restarting(self) -> bool:
        """Whether it ended, was restarted before, and nothing shows how it ended."""
        return self.is_row and "exit_code" not in self.values

    @property
    def name(self) -> str:
        """Its name in the pod, or the runtime's."""
        return self.values.get("container") or self.values.get("name", "").lstrip("/")

    @property
    def keys(self) -> list[str]:
        """What it is known by: its id, of which a list shows the beginning, and its name."""
        identity, name = self.values.get("id", "")[:_SHORT_ID], self.values.get("name", "").lstrip("/")
        return [key for key in (identity, name) if key]

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
        self._by_id: dict[str, _Container] = {}
        self._current = _Container({})
        self._finished: list[_Container] = []
        self._is_output = False
        self._tool = "docker"
        self._header = 0
        """Of which list the rows are: what ``_HEADER`` found."""
        self._fields: tuple[str, ...] = ()
        """What a command's template asks for, whose output is the next line."""
        self._row: re.Pattern[str] | None = None
        self._opening: str | None = None

    def begin(self, head: bytes) -> bool:
        """Begin another input, and return whether it is a runtime's output: every line of it matters then."""
        self._end()
        start = head[:_HEAD_BYTES]
        self._is_output = any(word in start for word in _WORDS) and _beginning().search(start) is not None
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
        if self._fields:
            return self._of_template(text)
        if text.rstrip("\r") == self._opening:
            self._end()  # crictl shows what a container belongs to before its id
            return False
        if text.startswith("{") and '"Action"' in text:
            self._of_json(text)
        elif '"Status"' in text and text.startswith(("{", "[")) and self._of_listed(text):
            return True
        elif match := _EVENT.search(text):
            at, _ = carried("", Message(text))
            self._event(
                match[1], match[2], {attribute[1]: attribute[2] for attribute in _ATTRIBUTE.finditer(match[3])}, at
            )
        elif match := _ROW.match(text):
            name = match[5].split()[-1] if match[5].split() else ""
            self._add_row(match[1], match[4], name)
        elif match := _HEADER.match(text):
            self._header = match.lastindex or 0
            if match[1]:
                self._tool = _SPACES.get(len(match[1]), "docker")
            elif match[4]:
                self._tool = "crictl"
        elif self._header > 1 and self._of_list(text):
            return True
        elif (match := _PROMPT.match(text)) is not None:
            self._tool = match[1]
            self._of_command(match[2])
        else:
            return ":" in text and self._of_keys(text)
        return True

    def _add_row(self, identity: str, exit_code: str, name: str, **more: str) -> None:
        """Take a container of a list."""
        key = identity or name
        is_new = key not in self._by_id
        container = self._known(key)
        if is_new:
            container.is_row = True
            container.values = {"tool": "" if self._header == _SWARM else self._tool}
            container.values |= {"id": identity} if identity else {}
        shown = {"exit_code": exit_code, "name": name, "state": "exited"} | more
        container.values.update({key: value for key, value in shown.items() if value})

    def _of_list(self, text: str) -> bool:
        """Take a row of another list than ``docker ps``; return whether it is one."""
        if self._header == _COMPOSE:
            if match := _COMPOSED.match(text):
                self._add_row("", match[2] or match[3], match[1])
        elif self._header == _SWARM:
            if match := _OF_SWARM.match(text.strip()):
                self._add_row("", match[3], match[1], node=match[2])
        elif (match := _OF_CRICTL.match(text)) and match[3] != "0":
            self._add_row(match[1], "", match[2], restarts=match[3], pod=match[4] or "", namespace=match[5] or "")
        return match is not None

    def _of_listed(self, text: str) -> bool:
        """Take containers that ``ps`` lists as JSON; return whether there are any."""
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return False
        rows = [row for row in (value if isinstance(value, list) else [value]) if isinstance(row, dict)]
        for row in rows:
            exited = _STATUS.match(str(row.get("Status", "")))
            identity, name = str(row.get("ID", "")), str(row.get("Names", row.get("Name", "")))
            if exited is not None and _ID.fullmatch(identity):
                self._add_row(identity, exited[1], name)
        return any("Status" in row and "ID" in row for row in rows)

    def _of_command(self, arguments: str) -> None:
        """Take a command that prints a line by a template."""
        match = _TEMPLATE.search(arguments) if "inspect" in arguments and "OOMKilled" in arguments else None
        if match is None:
            return
        template = match["template"]
        rest = (arguments[: match.start()] + " " + arguments[match.end() :]).split()
        names = [word for word in rest if word not in {"inspect", "container"} and not word.startswith("-")]
        if len(names) != 1:
            return
        self._fields = tuple(found[1] for found in _FIELD.finditer(template))
        parts = re.split(r"\{\{.*?\}\}", template)
        self._row = re.compile(r"(\S{0,253}?)".join(map(re.escape, parts)))
        self._end()
        self._current.values["id" if _ID.fullmatch(names[0]) else "name"] = names[0][:_MOST_NAME]

    def _of_template(self, text: str) -> bool:
        """Take what such a command printed."""
        fields, self._fields = self._fields, ()
        match = None if self._row is None else self._row.fullmatch(text.strip().strip("'\""))
        if match is None or len(fields) != len(match.groups()):
            return False
        for key, value in zip(fields, match.groups(), strict=True):
            if key in _KEYS:
                self._current.values.setdefault(_KEYS[key], value.strip("\"'")[:_MOST_NAME])
        return True

    def _of_keys(self, text: str) -> bool:
        """Take a part of what ``inspect`` shows; return whether it has any of the keys."""
        found = [*_KEY.finditer(text)]
        for match in found:
            self._put(match[1], match[2].strip("\"'"))
        return bool(found)

    def _of_json(self, text: str) -> None:
        """Take an event."""
        try:
            event = msgspec.json.decode(text, type=_Event)
        except (msgspec.DecodeError, RecursionError):
            return
        self._event(event.action, event.actor.id, event.actor.attributes, str(event.time or ""))

    def _event(self, action: str, identity: str, attributes: Mapping[str, str], at: str) -> None:
        if not _ID.fullmatch(identity):
            return
        container = self._known(identity)
        for key, value in attributes.items():
            if (known := _KEYS.get(key)) is not None and known not in {"state", "id"}:
                container.values.setdefault(known, value)
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
        return sum(1 for _ in self._known_containers())

    def terminations(self, kills: Sequence[Kill]) -> Iterator[ContainerTermination]:
        """Yield the containers that were killed or stopped."""
        by_id = {match[0]: number for number, kill in enumerate(kills) for match in _LONG_ID.finditer(_cgroup(kill))}
        for container in self._known_containers():
            yield from _ended(container, kills, by_id.get(container.values.get("id", "")))

    def exits(self, kills: Sequence[Kill]) -> Iterator[ContainerTermination]:
        """Yield the containers not known to have been killed."""
        for container in self._known_containers():
            pod, evidence = _as_pod(container), _evidence(container, kills)
            yield from (_named(ended, container) for ended in exits([pod], evidence))
            if container.is_restarting:
                restarts = int(container.values.get("restarts", "0"))
                name = f"{pod.metadata.namespace}/{pod.metadata.name}".removeprefix("/")
                yield _named(
                    ContainerTermination(name, container.name, TerminationCause.UNKNOWN, restarts=restarts), container
                )

    def _known_containers(self) -> Iterator[_Container]:
        self._end()
        rows = {key: row for row in self._by_id.values() if row.is_row for key in row.keys}
        listed = set[int]()
        for container in self._finished:
            for key in container.keys:
                row = rows.get(key)
                if row is not None and (key == row.keys[0] or len(container.keys) == 1):
                    listed.add(id(row))
                    container.values = row.values | container.values
                    break
            yield container
        for container in self._by_id.values():
            if container.is_known() and id(container) not in listed:
                yield container


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
        for ended in terminations([_as_pod(container)], _evidence(container, kills)):
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
        node=ended.node or container.values.get("node", ""),
        container_id=ended.container_id or container.values.get("id", ""),
        is_from_runtime=True,
        is_oom_unknown=container.is_row,
        runtime=container.values.get("tool", ""),
    )


def _evidence(container: _Container, kills: Sequence[Kill]) -> Evidence:
    killing = Event(reason=_STOPPED_BY, involved_object=ObjectReference("Pod", uid=container.pod_uid))
    return Evidence(kills, (), [killing] if container.is_stopped else [])


def _reason(container: _Container) -> str:
    return "Error" if container.exit_code and not container.is_row else ""


def _as_pod(container: _Container) -> FatedPod:
    """Return a container as the status of a pod that has it alone."""
    values = container.values
    identity, exit_code = values.get("id", ""), container.exit_code
    ended = ContainerTerminated(
        reason=OOM_KILLED if container.is_oom_killed else values.get("reason", _reason(container)),
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
