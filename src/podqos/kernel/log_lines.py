"""The kernel's messages in logs as they are found: what carries them is learned and taken off.

Lines are found by what they say (``carriers.tokens``), not by what precedes them. Text may be plain, coloured, quoted,
numbered, wrapped or escaped; records may be JSON of any layout, journald's export format or tables. Nothing is trusted:
lines are cut at a length, JSON that is none stays text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from msgspec import Struct

from podqos.kernel.carriers.cleaning import (
    cleaned,
    from_quoted_printable,
    is_markup,
    is_quoted_printable,
    pieces,
    without_escaped_end,
)
from podqos.kernel.carriers.prefixes import time_and_host
from podqos.kernel.carriers.pretty_json import PrettyJSON
from podqos.kernel.carriers.records import Record, Records, decoded
from podqos.kernel.carriers.tables import Table
from podqos.kernel.carriers.text_lines import Line, Read, TextLines, separated
from podqos.kernel.carriers.tokens import has_hint, has_several

MOST_CHARACTERS = 8192
"""Of a line; the longest that decides anything is the one with two cgroup paths."""
MOST_IN_RECORD = 1 << 20
"""Of a line that holds a whole report, escaped."""
_MOST_FIELDS = 64
_SHORTEST_JOINED = 200
_ENTRY = re.compile(r"[^\s\d]{1,12} (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?) (\S{1,12}) \[s=[0-9a-f]")
"""What an entry begins with in ``journalctl -o verbose``."""
_BETWEEN = re.compile(r"(?<=\}),?\s{0,4}(?=\{\")")


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
    """Takes lines, and yields messages; the first ones wait until their carrier has been learned."""

    def __init__(self) -> None:
        self._entry: dict[str, str] | None = None
        self._lines = TextLines()
        self._records = Records()
        self._pretty = PrettyJSON(self._records)
        self._table: Table | None = None
        self._is_first = True
        self._is_printable = False
        self._is_json_after_text = False
        self._soft = ""
        self._entry_at = ""
        self._is_markup = False

    @property
    def is_waiting(self) -> bool:
        """Whether lines wait for others."""
        return self._lines.is_waiting or self._pretty.is_open or self._entry is not None

    @property
    def looks_back(self) -> bool:
        """Whether lines before a mark are needed to understand it."""
        return self._lines.looks_back or self._pretty.was_open

    @property
    def holds_report(self) -> bool:
        """Whether a value that has not ended has lines of the OOM killer's."""
        return self._pretty.has_hint or self._lines.holds_report

    @property
    def is_plain(self) -> bool:
        """Whether every line is a message, or several, whatever comes before and after it."""
        if self._is_printable or self._is_markup or self._table is not None or self.looks_back:
            return False
        return self._lines.is_plain and not self.is_waiting

    def begin(self, head: str) -> None:
        """Take the beginning of a log, whose lines are fed only from the first that matters: it may name columns."""
        first = next((line for line in head.splitlines() if line.strip()), "")
        if not has_hint(first):
            self._table = Table.begun(cleaned(first), self._records)
            self._is_first = self._table is None

    def feed(self, line: str) -> Iterator[Message]:
        """Yield the messages that a line completes."""
        line = line.rstrip("\r\n")
        if self._table is None and not (self._is_printable or self._pretty.is_open) and _is_one(line):
            read = self._lines.quick(line)
            if read is not None:
                yield Message(read.text, read.at, read.host, is_marked=True)
                return
        if line.startswith("__CURSOR="):
            yield from self._end_entry()
            yield from self._export(line[:MOST_CHARACTERS])
        elif self._entry is not None:
            yield from self._export(line[:MOST_CHARACTERS])
        elif self._pretty.is_open:
            yield from self._of_either(self._pretty.feed(line[:MOST_IN_RECORD]))
        elif line.lstrip()[:1] in {"{", "["} and self._pretty.begins(line):
            return
        else:
            yield from self._of_line(line)

    def flush(self) -> Iterator[Message]:
        """Yield what waits for lines that do not come soon."""
        yield from self._made(self._lines.flush())

    def skip(self) -> None:
        """Know that the next line is not the one that follows in the log; what waits has been flushed."""
        self._pretty.drop()

    def end(self) -> Iterator[Message]:
        """Yield what the last line left incomplete."""
        yield from self._end_entry()
        yield from self._of_text(self._pretty.end())
        if self._table is not None:
            yield from self._of_text(self._table.end())
        if self._soft:
            yield from self._of_text([self._soft])
        yield from self.flush()
        yield from self._made(self._lines.end())

    def _of_line(self, line: str) -> Iterator[Message]:
        if self._is_first and line.strip():
            self._is_first = False
            self._table = None if has_hint(line) else Table.begun(cleaned(line[:MOST_CHARACTERS]), self._records)
            if self._table is not None:
                return
        if self._table is not None:
            yield from self._of_either(self._table.feed(line[:MOST_IN_RECORD]))
            return
        if line.endswith(("{", "[")) and self._pretty.begins(line):
            return
        opening = line.find("{") if line.lstrip()[:1] != "[" else line.find("[")
        if 0 <= opening < MOST_CHARACTERS and (value := self._json(line[:MOST_IN_RECORD], opening)) is not None:
            yield from self._of_either(self._records.read(value, *time_and_host(line[:opening])))
        elif (len(line) > MOST_CHARACTERS or line.startswith("{")) and _BETWEEN.search(line):
            for part in _BETWEEN.split(line[: 2 * MOST_IN_RECORD]):
                yield from self._of_line(part.strip("[], "))
        else:
            yield from self._of_text([line])

    def _json(self, line: str, opening: int) -> object:
        """Return the JSON that a line ends with; None if there is none, or other text holds the message."""
        text = line[opening:].rstrip(", \t")
        if text[-1:] not in {"}", "]"}:
            return None
        if opening and not (text.startswith('{"') and (self._is_json_after_text or has_hint(text))):
            return None
        value = decoded(text)
        if opening and isinstance(value, dict):
            self._is_json_after_text = True
        return value if isinstance(value, dict | list) else None

    def _of_either(self, read: Iterable[Record | str]) -> Iterator[Message]:
        for record in read:
            if isinstance(record, str):
                yield from self._of_text([record])
                continue
            if record.text.startswith("{") and isinstance(inner := decoded(record.text.strip()), dict):
                yield from self._of_either(self._records.read(inner, record.at, record.host))
                continue
            for text in record.text.removesuffix("\n").split("\n"):
                for piece in self._pieces(text):
                    line = Line(piece, record.at, record.host, record.fields)
                    yield from self._made(self._lines.feed(line))

    def _of_text(self, lines: Iterable[str]) -> Iterator[Message]:
        for line in lines:
            if "[s=" in line and (entry := _ENTRY.match(line)):
                self._entry_at = entry[1] + "Z" * (entry[2] == "UTC")
            for piece in self._pieces(line):
                yield from self._made(self._lines.feed(Line(piece, self._entry_at)))

    def _pieces(self, line: str) -> list[str]:
        """Return the lines in a line as they were logged."""
        if self._is_printable or (has_hint(line) and is_quoted_printable(line[:MOST_CHARACTERS])):
            self._is_printable = True
            line, is_soft = from_quoted_printable(line[:MOST_CHARACTERS])
            line, self._soft = self._soft + line, ""
            if is_soft and len(line) < MOST_CHARACTERS:
                self._soft = line
                return []
        self._is_markup = self._is_markup or is_markup(line)
        line = without_escaped_end(line)
        if len(line) <= MOST_CHARACTERS:
            parts = pieces(line) if has_hint(line) else [line]
        else:
            parts = pieces(line[:MOST_IN_RECORD])
        if len(parts) == 1 and len(line) > _SHORTEST_JOINED:
            parts = separated(line[:MOST_IN_RECORD])
        return [cleaned(part[:MOST_CHARACTERS], is_markup=self._is_markup) for part in parts]

    @staticmethod
    def _made(read: Iterable[Read]) -> Iterator[Message]:
        for line in read:
            text, fields = line.text, line.fields or {}
            if "\n" in text:  # a record of /dev/kmsg can hold several lines
                for part in text.split("\n"):
                    yield Message(part, line.at, line.host, line.is_marked, fields)
            elif text or fields:
                yield Message(text, line.at, line.host, line.is_marked, fields)

    def _end_entry(self) -> Iterator[Message]:
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
                yield from self._of_either(self._records.read(entry))


def _is_one(line: str) -> bool:
    """Whether a line is not several that were joined, and has no JSON if it is long."""
    if len(line) < _SHORTEST_JOINED:
        return True
    if len(line) > MOST_CHARACTERS or "{" in line or "', " in line or "=3D" in line or line.endswith(("=", "[")):
        return False
    return not has_several(line)


class LogStream(Protocol):
    """A log that is read in parts."""

    def read(self, size: int, /) -> bytes:
        """Return some bytes; none at the end."""
