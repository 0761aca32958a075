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
_MOST_LINES = 8000
_LONGEST_OPENING = 400
_MOST_BYTES = 1 << 20


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
    if _is_pair(values):
        yield Record(str(values[1]), _when(str(values[0])), host, {})
        return
    is_text = sum(isinstance(inner, str) for inner in values[:8]) > len(values[:8]) // 2
    for inner in values[:_MOST_VALUES]:
        if isinstance(inner, str) and is_text:
            yield Record(inner, at, host, {})
        else:
            yield from _walk(inner, at, host, depth - 1)


def _is_pair(values: list[object]) -> bool:
    """Whether a list is a time and a line, as Loki has them."""
    if len(values) != 2 and not (len(values) == 3 and isinstance(values[2], dict)):
        return False
    if not isinstance(values[0], str | int | float) or not isinstance(values[1], str):
        return False
    return _WHEN.fullmatch(str(values[0])) is not None


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
            inside = (*names, "name") if name == "host" and names is _HOST else names
            if text := _found(inner, inside, depth - 1):
                return text
    attributes = fields.get("attributes")
    if depth and isinstance(attributes, list) and (named := _named(attributes)) is not None:
        return _found(named, names, 0)
    return ""


def _when(at: str) -> str:
    return in_seconds(at)


class _Frame(NamedTuple):
    """A value that is open."""

    key: str
    """What stands before it in the value around it."""
    is_list: bool
    lines: list[str]


class PrettyJSON:
    """JSON that is laid out over many lines, read record by record: a value is forgotten once its message was read."""

    def __init__(self) -> None:
        self._frames: list[_Frame] = []
        self._host = ""
        self._taken: list[str] = []
        """All lines since a message was read."""
        self._bytes = 0
        self.was_open = False
        """Whether the log has any such value."""
        self.has_hint = False
        """Whether what is open has lines of the OOM killer's."""

    @property
    def is_open(self) -> bool:
        """Whether a value has not ended."""
        return bool(self._frames)

    def begins(self, line: str) -> bool:
        """Whether a line opens a value, and nothing else; it is taken then."""
        if self._frames or len(line) > _LONGEST_OPENING:
            return False
        ansible = _ANSIBLE.fullmatch(line)
        if ansible is None and not _OPENS.fullmatch(line):
            return False
        self._host = "" if ansible is None else ansible[1]
        self._taken, self._bytes = [line], 0
        self.was_open = True
        brackets = re.findall(r"[\[{]", "{" if ansible is not None else line.rpartition(":")[2])
        self._frames = [_Frame("", bracket == "[", []) for bracket in brackets]
        return True

    def feed(self, line: str) -> Iterator[Record | str]:
        """Read a line; yield the records that it ends, or the lines as text if they are no JSON."""
        text = line.strip()
        self._taken.append(line)
        self._bytes += len(line)
        if not text:
            return
        self.has_hint = self.has_hint or has_hint(text)
        if not self._is_json(text) or len(self._taken) > _MOST_LINES or self._bytes > _MOST_BYTES:
            yield from self.end()
            return
        while text and text[0] in "]}" and self._frames:
            yield from self._close()
            text = text[1:].lstrip(" ,")
        if not text or not self._frames:
            return
        if text.endswith(("{", "[")) and not text.endswith(('"{', '"[')):
            self._frames.append(_Frame(text[:-1], text.endswith("["), []))
        else:
            self._frames[-1].lines.append(text)

    def drop(self) -> None:
        """Forget what is open."""
        self._taken, self._frames, self.has_hint = [], [], False

    def end(self) -> Iterator[str]:
        """Yield the lines of what is open as text."""
        taken = self._taken
        self.drop()
        yield from taken

    @staticmethod
    def _is_json(text: str) -> bool:
        return text[0] in '"{}[]-0123456789tfn' and (text[0] != '"' or text[-1] in '",[{]}0123456789el')

    def _close(self) -> Iterator[Record | str]:
        frame = self._frames.pop()
        inner = "\n".join(frame.lines).rstrip(", \n")
        text = f"[{inner}]" if frame.is_list else f"{{{inner}}}"
        value = decoded(text)
        if value is None:
            self._frames.append(frame)
            yield from self.end()
            return
        some = False
        if self._is_record(value):
            for record in records(value, "", self._host or self._context()):
                if record.text or not self._frames:
                    some = True
                    yield record
        if some:
            self._taken, self._bytes, self.has_hint = [], 0, False
        elif self._frames:
            self._frames[-1].lines.append(f"{frame.key}{text},")

    def _is_record(self, value: object) -> bool:
        """Whether a value that ends is one whose parts lie in no other: an element of a list, or all there is."""
        if not self._frames:
            return True
        if not self._frames[-1].is_list:
            return False
        if isinstance(value, dict):
            return not any(value.keys() == set(pair) for pair in _NAMED)
        return isinstance(value, list) and bool(value) and (_is_pair(value) or _named(value) is not None)

    def _context(self) -> str:
        """Return the host that what surrounds a record names."""
        for frame in reversed(self._frames):
            pairs = dict(_KEY.findall("\n".join(frame.lines[:200])))
            if host := _found(pairs, _HOST, 0):
                return host
        return ""
