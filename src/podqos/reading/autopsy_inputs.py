"""The inputs of ``podqos autopsy``: objects of a cluster, logs, or a text with both."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from podqos.errors import InputError
from podqos.logs.kubectl import without_objects
from podqos.logs.said import WhatWasRead
from podqos.logs.search import LogStream
from podqos.manifest.text import as_utf_8
from podqos.naming import naming
from podqos.objects.files import STDIN, InputFile, Inputs
from podqos.reading.files import TO_READ, with_data
from podqos.reading.logs import Log, opened
from podqos.reading.pipes import Pipe

_READ_BYTES = 1 << 16
_FIELDS = rb"(?:apiVersion|kind|items|metadata)"
# An event may begin with what was done.
_YAML = re.compile(
    rb"(?:[ \t]*(?:#[^\n]*|---[^\n]*)?\r?\n)*(?:- )?(?:action: [^\n]{0,200}\n(?:  )?)?" + _FIELDS + rb":(?:\s|\Z)"
)
_JSON = re.compile(rb"\s*+\[?\s*+\{\s*+(?:\"action\"\s*+:\s*+\"[^\"]{0,200}\"\s*+,\s*+)?\"" + _FIELDS + rb"\"\s*+:")
_YAML_ARRAY = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\r?\n)*- ")
_ARRAY = re.compile(rb"\s*+\[")
_WATCH = re.compile(
    rb"\s*+\{[^{}]{0,400}?\"type\"\s*+:\s*+\"(?:ADDED|MODIFIED|DELETED|BOOKMARK)\"\s*+,\s*+\"object\"\s*+:"
)
_VALUE = re.compile(r"^(?=\{)", re.MULTILINE)
_MOST_BROKEN = 100
_AUDIT = b"audit.k8s.io"
_MOST_TEXT_BYTES = 1 << 23
"""Of a text in whose midst objects are looked for."""
_IN_LOGS = (
    *(b"Killed process", b"Kill process", b"invoked oom-killer", b"oom-kill:"),
    *(b"Last State:", b"RESTARTS", b"LAST SEEN", b"Warning ", b"Normal "),
)
"""Where one of these is, something else may follow objects."""
_CONFIG_MAP = b"ConfigMap"
_SNAPSHOT = (b'{"takenAt":', b'{"apiVersion":"podqos.dev/')


def told_apart(paths: Iterable[str | Log]) -> tuple[list[InputFile], list[str | Log]]:
    """Return the files with objects, which are read, and the logs, which are not (of a pipe, only the beginning is).

    A text with both gives one of each.
    """
    objects: list[InputFile] = []
    logs: list[str | Log] = []
    for given in paths:
        found = given if isinstance(given, Log) else _begun(given)
        path = found.name if isinstance(found, Log) else found
        head = as_utf_8(found.head) if isinstance(found, Log) else _head(found)
        if head.startswith(_SNAPSHOT):
            raise InputError("a snapshot of a cluster", where=path, fix="give it with " + naming("snapshot"))
        are_objects = _is_objects(head)
        if not are_objects and not (b"apiVersion" in head and b"kind" in head):
            logs.append(found)
            continue
        if isinstance(found, Log):
            data = _start_of(found)
            found.head = data + found.head  # what is read only once is put back
        else:
            with opened(found) as stream:
                data = _start_of(stream)
        if len(data) <= _MOST_TEXT_BYTES and (not are_objects or any(mark in data for mark in _IN_LOGS)):
            own, rest = without_objects(as_utf_8(data).decode(errors="replace").replace("\r\n", "\n"))
            if own.strip():
                # Someone keeps a log in a ConfigMap.
                logged = data if _CONFIG_MAP in data else rest.encode()
                objects.append(read_file(InputFile(path, data=own.encode())))
                if logged.strip(b"-. \t\r\n"):
                    logs.append(Log(path, logged))
                continue
        if not are_objects:
            logs.append(found)
            continue
        with opened(found) as stream:
            whole = b"".join(iter(lambda: stream.read(_READ_BYTES), b""))
        objects.append(read_file(InputFile(path, data=whole)))
    return objects, logs


def is_text(path: str) -> bool:
    """Whether a file is a text that kubectl printed for people, and not one with objects alone."""
    if not os.path.isfile(path):
        return False
    head = _head(path)
    return not _is_objects(head) and any(
        word in head for word in (b"Last State:", b"RESTARTS", b"LAST SEEN", b"QoS Class:")
    )


def what_is_given(files: Inputs, logs: Iterable[str | Log]) -> WhatWasRead:
    """Return which files and logs there are, and how much the files hold; the logs are counted as they are read."""
    logs = list(logs)
    # A text with both is counted once, with its log.
    both = {log.name for log in logs if isinstance(log, Log)}
    data = [file.data for file in files.files if file.data and file.path not in both]
    return WhatWasRead(
        lines=sum(text.count(b"\n") + (not text.endswith(b"\n")) for text in data),
        bytes=sum(map(len, data)),
        logs=tuple(STDIN if isinstance(log, Log) else log for log in logs),  # a pipe cannot be read again
        files=tuple(files.places),
    )


def _start_of(stream: LogStream) -> bytes:
    """Return a text, or more of it than is searched."""
    parts, length = [b""], 0
    while length <= _MOST_TEXT_BYTES and (part := stream.read(_READ_BYTES)):
        parts.append(part)
        length += len(part)
    return b"".join(parts)


def read_file(file: InputFile) -> InputFile:
    """Return a file of objects with its contents; an unreadable one is returned unchanged."""
    file = with_data(file)
    return file if file.data is None else replace(file, data=_unwrapped(file.data))


def _unwrapped(data: bytes) -> bytes:
    """Return a text with the objects of an array, or the last state of each object of a watch, as a List."""
    if _ARRAY.match(data):
        return b'{"apiVersion":"v1","kind":"List","items":' + data + b"}"
    if _YAML_ARRAY.match(data):
        return b"apiVersion: v1\nkind: List\nitems:\n" + data
    if not _WATCH.match(data):
        return data
    last: dict[object, object] = {}
    for envelope in _values(data.decode(errors="replace")):
        seen = envelope.get("object")
        if isinstance(seen, dict) and envelope.get("type") != "BOOKMARK":
            metadata = seen.get("metadata")
            uid = metadata.get("uid") if isinstance(metadata, dict) else None
            last[uid if isinstance(uid, str) else len(last)] = seen
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(last.values())}).encode()


def _values(text: str) -> Iterator[dict[str, object]]:
    """Yield JSON objects one after the other, without truncated ones, such as the last of a watch."""
    decoder = json.JSONDecoder()
    position = broken = 0
    while broken < _MOST_BROKEN and (found := _VALUE.search(text, position)):
        try:
            value, position = decoder.raw_decode(text, found.end())
            yield value
        except (ValueError, RecursionError):
            position, broken = found.end() + 1, broken + 1


def _begun(path: str) -> str | Log:
    """Return a file by name; one that can be read only once is opened, and its beginning read."""
    if path == STDIN:
        stream = sys.stdin.buffer
        return Log(path, _first(getattr(stream, "read1", stream.read)), stream)
    if os.access(path, os.R_OK) and stat.S_ISFIFO(os.stat(path).st_mode):
        pipe = Pipe(os.open(path, TO_READ), path)
        return Log(path, _first(pipe.read), pipe)
    return path


def _head(path: str) -> bytes:
    """Return the beginning of a file; nothing is read from a device such as /dev/kmsg."""
    if os.path.exists(path) and stat.S_ISCHR(os.stat(path).st_mode):
        return b""
    with opened(path) as stream:
        return stream.read(_READ_BYTES)


def _first(read: Callable[[int], bytes]) -> bytes:
    head = b""
    while len(head) < _READ_BYTES and (part := read(_READ_BYTES)):
        head += part
    return head


def _is_objects(head: bytes) -> bool:
    """Whether a text holds Kubernetes objects: YAML or JSON, but not JSON lines such as an audit log."""
    if _YAML.match(head) or _WATCH.match(head):
        return True
    first = head.partition(b"\n")[0]
    return _JSON.match(head) is not None and _AUDIT not in first[:4096] and not _is_exported(first)


def _is_exported(first: bytes) -> bool:
    """Whether a line is an event as exporters write it: without what it is."""
    if b'"involvedObject"' not in first:
        return False
    try:
        value = json.loads(first)
    except ValueError:
        return False
    return isinstance(value, dict) and "involvedObject" in value and "kind" not in value
