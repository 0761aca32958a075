"""Messages in records: JSON of journald, of log services and of what exports from them, whatever nests around it.

The message is the field that is called so, or the one that holds a line of the OOM killer's. Time and host are those of
the record, or of what it lies in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from operator import itemgetter

import msgspec

from podqos.kernel.carriers import tokens
from podqos.kernel.carriers.prefixes import in_seconds
from podqos.kernel.message import Line


class Names:
    """Names of fields, the one to prefer first."""

    def __init__(self, *names: str) -> None:
        self.in_order = names
        self._all = frozenset(names)

    def present(self, fields: Mapping[str, object]) -> Iterator[str]:
        """Yield those that an object has: mostly none or one of many."""
        if fields.keys().isdisjoint(self._all):
            return iter(())
        return (name for name in self.in_order if name in fields)


_MESSAGE = Names(
    *(
        "full_message",
        "MESSAGE",
        "message",
        "Message",
        "msg",
        "log",
        "textPayload",
        "@message",
        "jsonPayload",
        "_raw",
        "line",
        "body",
    ),
    *("SyslogMessage", "LogMessage", "LogEntry", "log_line", "Line", "content", "text", "short_message"),
)
_TIME = Names(
    *("__REALTIME_TIMESTAMP", "_SOURCE_REALTIME_TIMESTAMP", "timestamp", "@timestamp", "time", "ts", "date"),
    *("timeUnixNano", "_time", "TimeGenerated", "TimeStamp", "Timestamp", "EventTime", "DATE", "ISODATE"),
)
HOSTS = Names(
    *("_HOSTNAME", "host", "hostname", "node_name", "node", "instance_id", "@logStream", "logStream", "logStreamName"),
    *("host.name", "k8s.node.name", "Computer", "HostName", "nodename", "HOST", "_sourceHost", "source_host"),
)
_HOSTS_AND_NAME = Names(*HOSTS.in_order, "name")
_INSIDE = Names(
    *("result", "attributes", "jsonPayload", "resource", "labels", "kubernetes", "_source", "fields", "host"),
    *("stream", "body", "content"),
)
NAMED = (("key", "value"), ("field", "value"), ("name", "value"), ("Key", "Value"))
_DEEPEST = 24
_MOST_PATHS = 8
_MOST_VALUES = 200_000
_MOST_SHAPES = 64
_WHEN = re.compile(r"\d{10,19}(?:\.\d{1,9})?|\d{4}-\d\d-\d\d[T ]\S{5,30}|\d\d:\d\d:\d\d\S{0,10}")
_VALUES = msgspec.json.Decoder()
_SCALARS = ("stringValue", "intValue", "doubleValue", "boolValue", "S", "N", "$date", "$oid")


def decoded(line: str) -> object:
    """Return a value in JSON; None where a text is none."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None


def decoded_lines(lines: Sequence[str]) -> list[object]:
    """Return the values that lines hold."""
    with suppress(msgspec.DecodeError, RecursionError):
        values: list[object] = _VALUES.decode_lines("\n".join(lines))
        if len(values) == len(lines):
            return values
    return [decoded(line) for line in lines]


class _Shape:
    """Objects that have the same fields: where their message and time are, and which host the last one named."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self.message = next(_MESSAGE.present(fields), None)
        self.time = next(_TIME.present(fields), None)
        naming = [*HOSTS.present(fields), *_INSIDE.present(fields)]
        self._naming: Callable[[Mapping[str, object]], object] = itemgetter(*naming) if naming else bool
        """Returns what may name the host."""
        self._last: object = None
        self._host = ""

    def hosts_of(self, objects: Iterable[Mapping[str, object]]) -> list[str]:
        """Return the host that each object names: mostly that of the one before it."""
        hosts: list[str] = []
        for naming, alike in groupby(objects, self._naming):
            each = list(alike)
            if naming != self._last:
                self._last, self._host = naming, found_in(each[0], HOSTS)
            hosts += [self._host] * len(each)
        return hosts


class Records:
    """Reads values, and yields the messages in them. Where messages lie is remembered, for few show what they are."""

    def __init__(self) -> None:
        self._paths: list[tuple[str, ...]] = []
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        """By all their fields in order."""

    def read(self, value: object, at: str = "", host: str = "") -> Iterator[Line]:
        """Yield the messages in a value; an object without one is a record without text."""
        if not isinstance(value, dict):
            yield from self._walk(value, at, host, _DEEPEST)
            return
        some = False
        text = found_in(value, _MESSAGE) or self._known(value)
        if text or _holds_hint(value, _DEEPEST):
            for record in self._of_object(value, at, host, _DEEPEST, text=text):
                some = True
                yield record
        if not some:
            at, host = in_seconds(found_in(value, _TIME)) or at, found_in(value, HOSTS) or host
            yield Line("", at, host, value, is_record=True)

    def direct(self, values: Iterable[object], host: str = "") -> list[Line | None]:
        """Return the messages that values in JSON have where most have them; None for one that needs a closer look.

        ``host`` is that of what they lie in.
        """
        found: list[Line | None] = []
        for names, alike in groupby(values, _names_of):
            if names is None or "rows" in names:
                found += [None for _ in alike]
                continue
            objects = [value for value in alike if isinstance(value, dict)]
            shape = self._shapes.get(names)
            if shape is None:
                if len(self._shapes) >= _MOST_SHAPES:
                    self._shapes.clear()
                shape = self._shapes[names] = _Shape(objects[0])
            texts, times = _texts_at(objects, shape.message, _MESSAGE), _texts_at(objects, shape.time, _TIME)
            inside = _hinting(objects, names)
            found += [
                Line(text, in_seconds(at), own or host, fields, True)
                if text and text[0] != "{" and "\n" not in text and (number not in inside or tokens.has_hint(text))
                else None
                for number, (fields, text, at, own) in enumerate(
                    zip(objects, texts, times, shape.hosts_of(objects), strict=True)
                )
            ]
        return found

    def _walk(self, value: object, at: str, host: str, depth: int, path: tuple[str, ...] = ()) -> Iterator[Line]:
        if depth == 0:
            return
        if isinstance(value, str):
            if tokens.has_hint(value):
                yield Line(value, at, host, {}, is_record=True)
        elif isinstance(value, dict):
            yield from self._of_object(value, at, host, depth, path)
        elif isinstance(value, list):
            yield from self._of_list(value, at, host, depth)

    def _of_object(
        self, fields: dict[str, object], at: str, host: str, depth: int, path: tuple[str, ...] = (), *, text: str = ""
    ) -> Iterator[Line]:
        at, host = in_seconds(found_in(fields, _TIME)) or at, found_in(fields, HOSTS) or host
        names, rows = fields.get("columns") or fields.get("fields"), fields.get("rows")
        if isinstance(names, list) and isinstance(rows, list):
            yield from self._of_table(names, rows[:_MOST_VALUES], at, host, depth)
            return
        nested = {name: inner for name, inner in fields.items() if isinstance(inner, dict | list)}
        text = text or found_in(fields, _MESSAGE) or ("" if path else self._known(fields))
        if text and (
            not nested or tokens.has_hint(text) or not any(_holds_hint(inner, depth) for inner in nested.values())
        ):
            if path and tokens.has_hint(text):
                self._learn(path)
            yield Line(text, at, host, fields, is_record=True)
            return
        for name, inner in fields.items():
            if isinstance(inner, str) and tokens.has_hint(inner):
                self._learn((*path, name))
                yield Line(inner, at, host, fields, is_record=True)
                return
        for name, inner in nested.items():
            yield from self._walk(inner, at, host, depth - 1, (*path, name))

    def _learn(self, path: tuple[str, ...]) -> None:
        if len(self._paths) < _MOST_PATHS and path not in self._paths:
            self._paths.append(path)

    def _known(self, fields: dict[str, object]) -> str:
        """Return the text where other records have their message."""
        for path in self._paths:
            inner: object = fields
            for name in path:
                inner = inner.get(name) if isinstance(inner, dict) else None
            text = found_in(inner, _MESSAGE) if isinstance(inner, dict) else inner
            if isinstance(text, str) and text:
                return text
        return ""

    def _of_list(self, values: list[object], at: str, host: str, depth: int) -> Iterator[Line]:
        named = named_values(values)
        if named is not None:
            yield from self._of_object(named, at, host, depth - 1)
            return
        if is_pair(values):
            yield Line(str(values[1]), in_seconds(str(values[0])), host, {}, is_record=True)
            return
        is_text = sum(isinstance(inner, str) for inner in values[:8]) > len(values[:8]) // 2
        for inner in values[:_MOST_VALUES]:
            if isinstance(inner, str) and is_text:
                yield Line(inner, at, host, {}, is_record=True)
            else:
                yield from self._walk(inner, at, host, depth - 1)

    def read_row(self, names: list[object], row: list[object], host: str) -> Iterator[Line]:
        """Yield the message in a row of a table."""
        return self._of_table(names, [row], "", host, _DEEPEST)

    def _of_table(self, names: list[object], rows: list[object], at: str, host: str, depth: int) -> Iterator[Line]:
        called = [str(name.get("name", "")) if isinstance(name, dict) else str(name) for name in names]
        for row in rows:
            if isinstance(row, list):
                yield from self._of_object(dict(zip(called, row, strict=False)), at, host, depth - 1)
            else:
                yield from self._walk(row, at, host, depth - 1)


def is_pair(values: list[object]) -> bool:
    """Whether a list is a time and a line, as Loki has them."""
    if len(values) != 2 and not (len(values) == 3 and isinstance(values[2], dict)):
        return False
    if not isinstance(values[0], str | int | float) or not isinstance(values[1], str):
        return False
    return _WHEN.fullmatch(str(values[0])) is not None


def _holds_hint(value: object, depth: int) -> bool:
    if isinstance(value, str):
        return tokens.has_hint(value)
    if depth == 0 or not isinstance(value, dict | list):
        return False
    return any(_holds_hint(inner, depth - 1) for inner in (value.values() if isinstance(value, dict) else value))


def _may_hold_hint(value: object) -> bool:
    try:
        return tokens.has_hint(msgspec.json.encode(value).decode())
    except (RecursionError, msgspec.MsgspecError, ValueError, OverflowError):
        return True


def named_values(values: list[object]) -> dict[str, object] | None:
    """Return a list of names and values as an object; None where it is none."""
    if not values or not isinstance(values[0], dict):
        return None
    for name, value in NAMED:
        if all(isinstance(inner, dict) and isinstance(inner.get(name), str) and value in inner for inner in values):
            return {inner[name]: _scalar(inner[value]) for inner in values if isinstance(inner, dict)}
    return None


def _scalar(value: object) -> object:
    if isinstance(value, dict) and len(value) == 1:
        name = next(iter(value))
        return value[name] if name in _SCALARS else value
    return value


def _names_of(value: object) -> tuple[str, ...] | None:
    return tuple(value) if isinstance(value, dict) else None


def _hinting(objects: Sequence[Mapping[str, object]], names: Iterable[str]) -> set[int]:
    """Return the numbers of objects with a word of the OOM killer's in what lies in them: it may be the message."""
    found: set[int] = set()
    for name in names:
        values = [fields[name] for fields in objects]
        if {dict, list}.isdisjoint(map(type, values)):
            continue
        number = 0
        for value, alike in groupby(values):
            count = len(list(alike))
            if isinstance(value, dict | list) and _may_hold_hint(value):
                found.update(range(number, number + count))
            number += count
    return found


def _texts_at(objects: Sequence[Mapping[str, object]], place: str | None, names: Names) -> list[str]:
    """Return what ``found_in`` does for each, where the first of the named fields that they have is known."""
    if place is None:
        return [found_in(fields, names) for fields in objects]
    return [text if type(text := fields[place]) is str and text else found_in(fields, names) for fields in objects]


def found_in(fields: Mapping[str, object], names: Names, depth: int = 4) -> str:
    """Return the first of the named fields that holds text, also inside what services wrap around it."""
    for name in names.present(fields):
        value = fields[name]
        if isinstance(value, dict):
            value = _scalar(value)
        elif isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
            value = value[0]
        if isinstance(value, str) and value:
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, list) and value and all(isinstance(byte, int) and 0 <= byte < 256 for byte in value):
            return bytes(value).decode(errors="replace")  # journald, where it is no UTF-8
    for name in _INSIDE.present(fields):
        inner = fields[name]
        if depth and isinstance(inner, dict):
            inside = _HOSTS_AND_NAME if name == "host" and names is HOSTS else names
            if text := found_in(inner, inside, depth - 1):
                return text
    attributes = fields.get("attributes")
    if depth and isinstance(attributes, list) and (named := named_values(attributes)) is not None:
        return found_in(named, names, 0)
    return ""
