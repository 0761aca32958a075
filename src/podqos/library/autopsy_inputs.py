"""What ``podqos autopsy`` is given, told apart by its beginning: objects of a cluster, or a log."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterable

from podqos.errors import InputError
from podqos.library.autopsy import Log, opened
from podqos.library.inputs.files import STDIN, InputFile

_READ_BYTES = 1 << 16
_FIELDS = rb"(?:apiVersion|kind|items|metadata)"
_YAML = re.compile(rb"(?:[ \t]*(?:#[^\n]*|---[^\n]*)?\r?\n)*(?:- )?" + _FIELDS + rb":(?:\s|\Z)")
_JSON = re.compile(rb"\s*+\{\s*+\"" + _FIELDS + rb"\"\s*+:")
_AUDIT = b"audit.k8s.io"
_SNAPSHOT = (b'{"takenAt":', b'{"apiVersion":"podqos.dev/')


def told_apart(paths: Iterable[str]) -> tuple[list[InputFile], list[str | Log]]:
    """Return the files with objects, read, and the logs, which are not: of a pipe only the beginning."""
    objects: list[InputFile] = []
    logs: list[str | Log] = []
    for path in paths:
        found = _begun(path)
        head = found.head if isinstance(found, Log) else _head(path)
        if head.startswith(_SNAPSHOT):
            raise InputError("a snapshot of a cluster", where=path, fix="give it with --snapshot")
        if not _is_objects(head):
            logs.append(found)
            continue
        with opened(found) as stream:
            data = b"".join(iter(lambda: stream.read(_READ_BYTES), b""))
        objects.append(InputFile(path, data=data))
    return objects, logs


def _begun(path: str) -> str | Log:
    """Return a file by its name; what can be read only once is opened, and read until something is there."""
    if path == STDIN:
        stream = sys.stdin.buffer
        return Log(path, _first(getattr(stream, "read1", stream.read)), stream)
    if os.access(path, os.R_OK) and stat.S_ISFIFO(os.stat(path).st_mode):
        pipe = open(path, "rb", buffering=0)  # noqa: SIM115 - it is read later, and closed with the log
        return Log(path, _first(pipe.read), pipe)
    return path


def _head(path: str) -> bytes:
    """Return the beginning of a file; of a device such as /dev/kmsg nothing is read."""
    if os.path.exists(path) and stat.S_ISCHR(os.stat(path).st_mode):
        return b""
    with opened(path) as stream:
        return stream.read(_READ_BYTES)


def _first(read: Callable[[int], bytes]) -> bytes:
    head = b""
    while not head.strip() and (part := read(_READ_BYTES)):
        head += part
    return head


def _is_objects(head: bytes) -> bool:
    """Whether a text is objects of Kubernetes: YAML or JSON, but no lines of JSON such as those of an audit log."""
    if _YAML.match(head):
        return True
    return _JSON.match(head) is not None and _AUDIT not in head.partition(b"\n")[0][:4096]
