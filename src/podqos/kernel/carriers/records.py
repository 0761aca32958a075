"""Messages in records: JSON of journald, of log services and of what exports from them, whatever nests around it.

The message is the field that is called so, or the one that holds a line of the OOM killer's. Time and host are those of
the record, or of what it lies in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from podqos.kernel.carriers.prefixes import in_seconds
from podqos.kernel.carriers.tokens import has_hint

_MESSAGE = (
    *("MESSAGE", "message", "Message", "msg", "log", "textPayload", "@message", "jsonPayload", "_raw", "line", "body"),
    *("SyslogMessage", "LogMessage", "LogEntry", "log_line", "Line", "content", "text"),
)
_TIME = (
    *("__REALTIME_TIMESTAMP", "_SOURCE_REALTIME_TIMESTAMP", "timestamp", "@timestamp", "time", "ts", "date"),
    *("timeUnixNano", "_time", "TimeGenerated", "TimeStamp", "Timestamp", "EventTime"),
)
_HOST = (
    *("_HOSTNAME", "host", "hostname", "node_name", "node", "instance_id", "@logStream", "logStream", "logStreamName"),
    *("host.name", "k8s.node.name", "Computer", "HostName", "nodename"),
)
_INSIDE = ("jsonPayload", "resource", "labels", "kubernetes", "_source", "fields", "host", "stream", "body", "content")
_NAMED = (("key", "value"), ("field", "value"), ("name", "value"), ("Key", "Value"))
_DEEPEST = 24
_MOST_VALUES = 200_000
_WHEN = re.compile(r"\d{10,19}(?:\.\d{1,9})?|\d{4}-\d\d-\d\d[T ]\S{5,30}|\d\d:\d\d:\d\d\S{0,10}")
_KEY = re.compile(r'"((?:[^"\\]|\\.){0,200})"\s{0,8}:\s{0,8}"((?:[^"\\]|\\.){0,400})"')
_OPENS = re.compile(r'\s*+(?:\}\s{0,4},\s{0,4})?(?:"(?:[^"\\]|\\.){0,200}"\s{0,8}:\s{0,8})?(?:\[\s{0,8}){0,3}[\[{]\s*+')
_ANSIBLE = re.compile(r"\w{2,12}: \[([A-Za-z0-9][\w.-]{0,252})\](?: => \(item=.{0,200}\))? => \{\s*+")
_SCALARS = ("stringValue", "intValue", "doubleValue", "boolValue", "S", "N", "$date", "$oid")
_MOST_LINES = 4000
_MOST_BYTES = 1 << 19


class Record(NamedTuple):
    """A message in a record."""

    text: str
    at: str
    host: str
    fields: Mapping[str, object]


def decoded(line: str) -> object:
    """Return a value in JSON; None where a text is none."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None


def records(value: object, at: str = "", host: str = "") -> Iterator[Record]:
    """Yield the messages in a value; an object without one is a record without text."""
    some = False
    for record in _walk(value, at, host, _DEEPEST):
        some = True
        yield record
    if not some and isinstance(value, dict):
        yield Record("", _when(_found(value, _TIME)) or at, _found(value, _HOST) or host, value)


def _walk(value: object, at: str, host: str, depth: int) -> Iterator[Record]:
    if depth == 0:
        return
    if isinstance(value, str):
        if has_hint(value):
            yield Record(value, at, host, {})
    elif isinstance(value, dict):
        yield from _of_object(value, at, host, depth)
    elif isinstance(value, list):
        yield from _of_list(value, at, host, depth)


def _of_object(fields: dict[str, object], at: str, host: str, depth: int) -> Iterator[Record]:
    at, host = _when(_found(fields, _TIME)) or at, _found(fields, _HOST) or host
    names, rows = fields.get("columns") or fields.get("fields"), fields.get("rows")
    if isinstance(names, list) and isinstance(rows, list):
        yield from _of_table(names, rows[:_MOST_VALUES], at, host, depth)
        return
    text = _found(fields, _MESSAGE)
    nested = [inner for inner in fields.values() if isinstance(inner, dict | list)]
    if text and (has_hint(text) or not any(_holds_hint(inner, depth) for inner in nested)):
        yield Record(text, at, host, fields)
        return
    for inner in fields.values():
        if isinstance(inner, str) and has_hint(inner):
            yield Record(inner, at, host, fields)
            return
    for inner in nested:
        yield from _walk(inner, at, host, depth - 1)


def _of_list(values: list[object], at: str, host: str, depth: int) -> Iterator[Record]:
    named = _named(values)
    if named is not None:
        yield from _of_object(named, at, host, depth - 1)
        return
    if len(values) >= 2 and isinstance(values[0], str | int | float) and _WHEN.fullmatch(str(values[0])):
        # Loki has pairs of a time and a line.
        if isinstance(values[1], str):
            yield Record(values[1], _when(str(values[0])), host, {})
            return
        at = _when(str(values[0]))
    is_text = sum(isinstance(inner, str) for inner in values[:8]) > len(values[:8]) // 2
    for inner in values[:_MOST_VALUES]:
        if isinstance(inner, str) and is_text:
            yield Record(inner, at, host, {})
        else:
            yield from _walk(inner, at, host, depth - 1)


def _of_table(names: list[object], rows: list[object], at: str, host: str, depth: int) -> Iterator[Record]:
    called = [str(name.get("name", "")) if isinstance(name, dict) else str(name) for name in names]
    for row in rows:
        if isinstance(row, list):
            yield from _of_object(dict(zip(called, row, strict=False)), at, host, depth - 1)
        else:
            yield from _walk(row, at, host, depth - 1)


def _holds_hint(value: object, depth: int) -> bool:
    if isinstance(value, str):
        return has_hint(value)
    if depth == 0 or not isinstance(value, dict | list):
        return False
    return any(_holds_hint(inner, depth - 1) for inner in (value.values() if isinstance(value, dict) else value))


def _named(values: list[object]) -> dict[str, object] | None:
    """Return a list of names and values as an object; None where it is none."""
    if not values or not isinstance(values[0], dict):
        return None
    for name, value in _NAMED:
        if all(isinstance(inner, dict) and isinstance(inner.get(name), str) and value in inner for inner in values):
            return {inner[name]: _scalar(inner[value]) for inner in values if isinstance(inner, dict)}
    return None


def _scalar(value: object) -> object:
    if isinstance(value, dict) and len(value) == 1:
        name = next(iter(value))
        return value[name] if name in _SCALARS else value
    return value


def _found(fields: Mapping[str, object], names: tuple[str, ...], depth: int = 4) -> str:
    """Return the first of the named fields that holds text, also inside what services wrap around it."""
    for name in names:
        value = _scalar(fields.get(name))
        if isinstance(value, str) and value:
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, list) and value and all(isinstance(byte, int) and 0 <= byte < 256 for byte in value):
            return bytes(value).decode(errors="replace")  # journald, where it is no UTF-8
    for name in _INSIDE:
        inner = fields.get(name)
        if depth and isinstance(inner, dict):
            text = (
                _found(inner, names if names is not _HOST else (*names, "name"), depth - 1)
                if name == "host"
                else _found(inner, names, depth - 1)
            )
            if text:
                return text
    attributes = fields.get("attributes")
    if depth and isinstance(attributes, list) and (named := _named(attributes)) is not None:
        return _found(named, names, 0)
    return ""


def _when(at: str) -> str:
    return in_seconds(at)


class PrettyJSON:
    """JSON that is laid out over many lines, read record by record: an element of a list, or what lies in none."""

    def __init__(self) -> None:
        self._frames: list[tuple[bool, list[str]]] = []
        """Of each that is open, whether it is a list, and the lines of its own so far."""
        self._host = ""
        self._taken: list[str] = []
        """All lines since something was told."""
        self._bytes = 0

    @property
    def is_open(self) -> bool:
        """Whether a value has not ended."""
        return bool(self._frames)

    def begins(self, line: str) -> bool:
        """Whether a line opens a value, and nothing else; it is taken then."""
        if self._frames or len(line) > 400:
            return False
        ansible = _ANSIBLE.fullmatch(line)
        if ansible is None and not _OPENS.fullmatch(line):
            return False
        self._host = "" if ansible is None else ansible[1]
        self._taken = [line]
        self._bytes = 0
        opening = "{" if ansible is not None else line.strip().removeprefix("}").lstrip(", ")
        brackets = [character for character in opening.rpartition(":")[2] if character in "[{"]
        self._frames = [(bracket == "[", [bracket]) for bracket in brackets]
        return True

    def feed(self, line: str) -> Iterator[Record | str]:
        """Read a line; yield the records that it ends, or the lines as text if they are no JSON."""
        text = line.strip()
        self._taken.append(line)
        self._bytes += len(line)
        if not text:
            return
        if not self._is_json(text) or len(self._taken) > _MOST_LINES or self._bytes > _MOST_BYTES:
            yield from self.end()
            return
        if text[0] in "]}":
            yield from self._close(text)
            text = text[1:].lstrip(" ,")
            if not text or not self._frames:
                return
        if text.endswith(("{", "[")):
            is_list = text.endswith("[")
            if self._frames[-1][0] or is_list:  # an element, or a list whose elements may be records
                if text not in "{[":
                    self._frames[-1][1].append(text[:-1] + "null,")
                self._frames.append((is_list, [text[-1]]))
            else:
                self._frames[-1][1].append(text)
                self._frames.append((False, []))
        else:
            self._frames[-1][1].append(text)

    def end(self) -> Iterator[str]:
        """Yield the lines of what is open as text."""
        taken, self._taken, self._frames = self._taken, [], []
        yield from taken

    @staticmethod
    def _is_json(text: str) -> bool:
        return text[0] in '"{}[]-0123456789tfn' and (text[0] != '"' or text[-1] in '",[{]}0123456789el')

    def _close(self, text: str) -> Iterator[Record | str]:
        is_list, lines = self._frames.pop()
        if not lines or lines[0] not in "{[":  # a part of the object that it lies in
            if self._frames:
                self._frames[-1][1].extend([*lines, "},"])
            return
        value = decoded("\n".join([*lines, "]" if is_list else "}"]).replace(",\n}", "\n}").replace(",\n]", "\n]"))
        if value is None:
            yield from self.end()
            return
        host = self._host or self._context()
        if is_list and not self._frames:
            self._taken = []
        some = False
        if not is_list or (isinstance(value, list) and any(isinstance(inner, str) for inner in value)):
            for record in records(value, "", host):
                if record.text or not self._frames:
                    some = True
                    yield record
        if some:
            self._taken, self._bytes = [], 0
        elif self._frames and isinstance(value, dict):
            self._frames[-1][1].append(msgspec.json.encode(value).decode() + ",")

    def _context(self) -> str:
        """Return the host that what surrounds a record names."""
        for _, lines in reversed(self._frames):
            pairs = dict(_KEY.findall("\n".join(lines[:200])))
            if host := _found(pairs, _HOST, 0):
                return host
        return ""
