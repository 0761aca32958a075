"""The kernel's messages in logs as they are found: what carried them is taken off line by line.

Known are dmesg (plain, ``-T``, ``-x``, ``-r``, ISO times), ``/dev/kmsg``, syslog (both RFCs), journald (short forms,
JSON, export), container logs, and JSON lines of cloud services. A line that is none of them is a message as it is.
Nothing is trusted: lines are cut at a length, JSON that is none stays text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

MOST_CHARACTERS = 8192
"""Of a line; the longest that decides anything is the one with two cgroup paths."""
_MOST_FIELDS = 64
_CARRIED = 256  # a "kernel:" further on belongs to the message

_LEVEL = re.compile(r"(?:<\d{1,3}>(?:1 )?|(?:kern|user|daemon|syslog) {0,6}:\w{1,8} {0,6}: ?)")
_KMSG = re.compile(r"\d{1,4},\d{1,20},(\d{1,20}),[^;]{0,64};")
_BRACKETED = re.compile(
    r"\[ {0,12}(\d{1,10}\.\d{1,9}|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})[^\]]{0,24}\] ?"
)
_CALLER = re.compile(r"\[(?: {0,12}[TC]\d{1,10}|pid:[^\]]{1,48})\] ?")
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?):? +(?:std(?:out|err) [FP] )?"
)
_SYSLOG = re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ")
_KERNEL = re.compile(r"(?:^|[ \]])kernel(?:\[\d{1,10}\])?(?:: ?| - - (?:- )?)")
_ESCAPES = re.compile(r"(?:\\x[0-9a-f]{2})+")
_QUOTED = re.compile(r"^(?:> ?)+")

_MESSAGE = ("MESSAGE", "message", "msg", "log", "textPayload", "@message", "jsonPayload", "_raw", "line", "body")
_TIME = ("__REALTIME_TIMESTAMP", "_SOURCE_REALTIME_TIMESTAMP", "timestamp", "@timestamp", "time", "ts", "date")
_HOST = ("_HOSTNAME", "host", "hostname", "node_name", "node", "instance_id", "@logStream", "logStream")
_INSIDE = ("jsonPayload", "resource", "labels", "kubernetes", "_source", "fields")


class Message(Struct, frozen=True, gc=False):
    """A line of the kernel's, without what carried it."""

    text: str
    at: str = ""
    """When, as it is written: a date, or seconds since the machine started."""
    host: str = ""
    """Of several in one log."""
    is_marked: bool = False
    """Whether something carried it. In a log of marked lines one without a mark continues the one before."""
    fields: Mapping[str, object] = {}
    """All of a line of JSON, whose message may be only a part of what it says."""


class Unwrapper:
    """Takes lines, and yields messages."""

    def __init__(self) -> None:
        self._entry: dict[str, str] | None = None

    def feed(self, line: str) -> Iterator[Message]:
        """Yield the messages that a line completes."""
        line = line[:MOST_CHARACTERS].rstrip("\r\n")
        if line.startswith("__CURSOR="):
            yield from self.end()
            yield from self._export(line)
        elif self._entry is not None:
            yield from self._export(line)
        elif line.startswith("{"):
            yield from _of_json(line)
        else:
            message = unwrapped(line)
            if "\n" in message.text:  # a record of /dev/kmsg can hold several lines
                for text in message.text.split("\n"):
                    yield replace(message, text=text)
            else:
                yield message

    def end(self) -> Iterator[Message]:
        """Yield what the last line left incomplete."""
        if self._entry is not None:
            yield from self._export("")

    def _export(self, line: str) -> Iterator[Message]:
        """Read a field of an entry in journald's export format; an empty line ends the entry."""
        if self._entry is None:
            self._entry = {}
        name, equals, value = line.partition("=")
        if line and equals and len(self._entry) < _MOST_FIELDS:
            self._entry[name] = value
        elif not line:
            entry, self._entry = self._entry, None
            if "MESSAGE" in entry:
                yield from _of_fields(entry)


def unwrapped(line: str) -> Message:
    """Return a line without what carried it."""
    at = host = ""
    text = _QUOTED.sub("", line).lstrip()
    if found := _KMSG.match(text):
        text = _ESCAPES.sub(_unescaped, text[found.end() :])
        return Message(text, f"{int(found[1]) / 1e6:.6f}", is_marked=True)
    start = text
    if found := _LEVEL.match(text):
        text = text[found.end() :]
    if found := _KERNEL.search(text, 0, _CARRIED):
        at, host = _time_and_host(text[: found.start()].strip())
        text = text[found.end() :]
    elif _SYSLOG.match(text):
        return Message(text, is_marked=True)  # another program's
    for pattern in (_ISO, _BRACKETED):
        if found := pattern.match(text):
            at = at or found[1].strip()
            text = text[found.end() :]
    if found := _CALLER.match(text):
        text = text[found.end() :]
    return Message(text, at, host, text is not start)


def _unescaped(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("\\x", "")).decode(errors="replace")


def _time_and_host(text: str) -> tuple[str, str]:
    """Return what syslog and journald write before ``kernel:``."""
    before, _, host = text.rpartition(" ")
    if found := _BRACKETED.match(text + " "):  # journald's monotonic times
        return found[1].strip(), text[found.end() :].strip()
    # Without a host the last word is the time.
    return (text, "") if ":" in host or not before else (before.strip(), host)


def _of_json(line: str) -> Iterator[Message]:
    try:
        fields = msgspec.json.decode(line.rstrip(","))
    except (msgspec.DecodeError, RecursionError):
        # One that was cut, or a line that begins with a brace.
        yield unwrapped(line)
        return
    if isinstance(fields, dict):
        yield from _of_fields(fields)


def _of_fields(fields: Mapping[str, object]) -> Iterator[Message]:
    text, at, host = _found(fields, _MESSAGE), _found(fields, _TIME), _found(fields, _HOST)
    if at.isdecimal() and len(at) == 16 and "__REALTIME_TIMESTAMP" in fields:
        at = f"{at[:-6]}.{at[-6:]}"
    for line in text.split("\n"):
        inner = unwrapped(line)
        yield Message(inner.text, at or inner.at, host or inner.host, is_marked=True, fields=fields)


def _found(fields: Mapping[str, object], names: tuple[str, ...], depth: int = 3) -> str:
    """Return the first of the named fields that holds text, also inside what services wrap around it."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, int | float):
            return str(value)
        if isinstance(value, list) and value and all(isinstance(each, int) and 0 <= each < 256 for each in value):
            return bytes(value).decode(errors="replace")  # journald, where it is no UTF-8
    for name in _INSIDE:
        inner = fields.get(name)
        if depth and isinstance(inner, dict) and (text := _found(inner, names, depth - 1)):
            return text
    return ""


class LogStream(Protocol):
    """A log that is read in parts."""

    def read(self, size: int, /) -> bytes:
        """Return some bytes; none at the end."""
