"""JSON that is laid out over many lines, as ``journalctl -o json-pretty``, ``jq`` and the CLIs of clouds print it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from podqos.kernel.carriers.records import (
    HOSTS,
    NAMED,
    Records,
    decoded,
    decoded_lines,
    found_in,
    is_pair,
    named_values,
)
from podqos.kernel.carriers.tokens import has_hint
from podqos.kernel.message import Line

_OPENS = re.compile(r'\s*+(?:\}\s{0,4},\s{0,4})?(?:"(?:[^"\\]|\\.){0,200}"\s{0,8}:\s{0,8})?(?:\[\s{0,8}){0,3}[\[{]\s*+')
_ANSIBLE = re.compile(r"\w{2,12}: \[([A-Za-z0-9][\w.-]{0,252})\](?: => \(item=.{0,200}\))? => \{\s*+")
_LISTS_VALUES = re.compile(r"\[\n\s*[\[{]")
_PAIRS = [set(pair) for pair in NAMED]
_ENDS = {"{": "}", "[": "]"}
_MOST_LINES = 8000
_MOST_BYTES = 1 << 20
_MANY = 256
_LONGEST_OPENING = 400


class _Frame(NamedTuple):
    """A value that is open."""

    key: str
    """What stands before it in the value around it."""
    is_list: bool
    lines: list[str]


class _Surroundings(NamedTuple):
    """What the values around a record say of it."""

    host: str
    columns: list[object]
    """Of the table whose rows are open; empty where none is."""


class LaidOut(NamedTuple):
    """Records that were read whole."""

    lines: int
    records: list[Line]
    is_cut: bool
    """Whether the lines that follow begin another, and do not end it."""


class PrettyJSON:
    """JSON that is laid out over many lines, read record by record: a value is forgotten once its message was read."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._frames: list[_Frame] = []
        self._host = ""
        self._known: _Surroundings | None = None
        """Until what surrounds records changes."""
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
        if self._frames or len(line) > _LONGEST_OPENING or line.rstrip()[-1:] not in {"{", "["}:
            return False
        ansible = _ANSIBLE.fullmatch(line)
        if ansible is None and not _OPENS.fullmatch(line):
            return False
        self._host = "" if ansible is None else ansible[1]
        self._taken, self._bytes, self._known = [line], 0, None
        self.was_open = True
        brackets = re.findall(r"[\[{]", "{" if ansible is not None else line.rpartition(":")[2])
        self._frames = [_Frame("", bracket == "[", []) for bracket in brackets]
        return True

    def feed(self, line: str) -> Iterator[Line | str]:
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
            self._known = None
            return
        frame = self._frames[-1]
        frame.lines.append(text)
        if not frame.is_list:
            self._known = None
        elif len(frame.lines) == _MANY:
            yield from self._strings(frame)

    def _strings(self, frame: _Frame) -> Iterator[Line]:
        """Yield the first of many lines in a list: they may be a whole log."""
        value = decoded("[" + "\n".join(frame.lines).rstrip(", ") + "]")
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            yield from self._records.read(value, "", self._around.host)
            frame.lines.clear()
            self._taken, self._bytes = [], 0

    def read_records(self, lines: Sequence[str], start: int) -> LaidOut | None:
        """Read elements of a list that lie in lines whole; None where none begins, or its parts are records, too."""
        opening = lines[start]
        bracket = opening.strip()
        if not self._frames[-1].is_list or bracket not in _ENDS:
            return None
        end = opening[: -len(opening.lstrip())] + _ENDS[bracket]
        ends = {end, f"{end},"}
        begins = [start]
        for stop in [at for at in range(start + 1, len(lines)) if lines[at] in ends]:
            begins.append(stop + 1)
            if stop + 1 == len(lines) or lines[stop + 1] != opening:
                break
        texts = ["\n".join(lines[begin:after]).rstrip(",") for begin, after in pairwise(begins)]
        values = decoded_lines(texts)
        directs = self._records.direct(values, self._around.host)
        records: list[Line] = []
        read = 0
        for text, value, direct in zip(texts, values, directs, strict=True):
            found = None if "[\n" in text and _LISTS_VALUES.search(text) else self._read_value(value, direct)
            if found is None:
                break
            if found:
                records += found
                self._taken, self._bytes, self.has_hint = [], 0, False
            else:
                self._frames[-1].lines.append(f"{text},")
                self._taken += lines[begins[read] : begins[read + 1]]
                self._bytes += len(text)
            read += 1
        after = begins[read]
        is_cut = read == len(texts) and after < len(lines) and lines[after] == opening
        return LaidOut(after - start, records, is_cut) if read else None

    def _read_value(self, value: object, direct: Line | None) -> list[Line] | None:
        """Return the messages in an element of a list; None where it is none by itself."""
        host, names = self._around
        if isinstance(value, list) and names:
            return [*self._records.read_row(names, value, host)]
        if value is None or not self._is_record(value) or (isinstance(value, list) and not _is_of_pairs(value)):
            return None
        if direct is not None:
            return [direct]
        return [each for each in self._records.read(value, "", host) if each.text]

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

    def _close(self) -> Iterator[Line | str]:
        frame, self._known = self._frames.pop(), None
        inner = "\n".join(frame.lines).rstrip(", \n")
        text = f"[{inner}]" if frame.is_list else f"{{{inner}}}"
        value = decoded(text)
        if value is None:
            self._frames.append(frame)
            yield from self.end()
            return
        some = False
        host, names = self._around
        if isinstance(value, list) and names:
            some = True
            yield from self._records.read_row(names, value, host)
        elif self._is_record(value):
            for record in self._records.read(value, "", host):
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
            return len(value) != 2 or not any(value.keys() == pair for pair in _PAIRS)
        return isinstance(value, list) and bool(value) and (is_pair(value) or named_values(value) is not None)

    @property
    def _around(self) -> _Surroundings:
        """What surrounds the records of the list that is open."""
        if self._known is None:
            self._known = _Surroundings(self._host or self._named(), self._columns())
        return self._known

    def _columns(self) -> list[object]:
        if len(self._frames) < 2 or not self._frames[-1].key.startswith('"rows"'):
            return []
        around = _decoded_fields(self._frames[-2])
        names = around.get("columns") or around.get("fields")
        return names if isinstance(names, list) else []

    def _named(self) -> str:
        for frame in reversed(self._frames):
            if not frame.is_list and (host := found_in(_decoded_fields(frame), HOSTS)):
                return host
        return ""


def _decoded_fields(frame: _Frame) -> dict[str, object]:
    """Return what is known of an object that is open."""
    known = decoded("{" + "\n".join(frame.lines[:200]).rstrip(", \n") + "}")
    return known if isinstance(known, dict) else {}


def _is_of_pairs(values: list[object]) -> bool:
    """Whether no element of a list is a record by itself."""
    return is_pair(values) or all(
        isinstance(inner, dict) and any(inner.keys() == pair for pair in _PAIRS) for inner in values
    )
