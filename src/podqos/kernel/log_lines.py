"""The kernel's messages in logs as they are found: what carries them is learned and taken off.

Lines are found by what they say (``carriers.tokens``), not by what precedes them. Text may be plain, coloured, quoted,
numbered, wrapped or escaped; records may be JSON of any layout, journald's export format or tables. Nothing is trusted:
lines are cut at a length, JSON that is none stays text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Protocol

from podqos.kernel.carriers.cleaning import (
    cleaned,
    from_quoted_printable,
    has_bare_colour,
    is_markup,
    is_quoted_printable,
    pieces,
    without_escaped_end,
    without_escapes,
)
from podqos.kernel.carriers.continued import ContinuedLines
from podqos.kernel.carriers.prefixes import time_and_host
from podqos.kernel.carriers.pretty_json import PrettyJSON
from podqos.kernel.carriers.records import Records, decoded, decoded_lines
from podqos.kernel.carriers.tables import Table
from podqos.kernel.carriers.text_lines import TextLines, separated
from podqos.kernel.carriers.tokens import has_hint, has_several
from podqos.kernel.carriers.yaml_records import YamlRecords
from podqos.kernel.message import MOST_CHARACTERS, Line, Message

MOST_IN_RECORD = 1 << 20
"""Of a line that holds a whole report, escaped."""
_MOST_FIELDS = 64
_MOST_BEGUN = 64
_FEW = 16
"""Lines that are read one by one where not all are as they were logged."""
_SHORTEST_JOINED = 200
_ENTRY = re.compile(r"[^\s\d]{1,12} (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?) (\S{1,12}) \[s=[0-9a-f]")
"""What an entry begins with in ``journalctl -o verbose``."""
_PLAIN = bytes(code for code in range(32, 127) if code not in b"\\&^{'\"<;#") + b"\n"
"""What needs no closer look, wherever it stands."""
_SPECIAL = ((b"#", "#", "0"), (b"'", "'", ", "), (b";", "[", "s="), (b'"', "[", '"'))
"""What odd characters may be part of: an escape, the text of bytes, an entry of ``journalctl -o verbose``, a list."""
_TASK = ("TASK>", "/TASK>")
_FIRST, _LAST = itemgetter(slice(0, 1)), itemgetter(slice(-1, None))
_BINARY = "MESSAGE, binary"
_LENGTH_BYTES = 8
"""Before the value of a field with characters that are not printed, which is in the next line."""
_BETWEEN = re.compile(r"(?<=\}),?\s{0,4}(?=\{\")")


_QUOTES_OF_BYTES = (b"'", b'"')
_ENDS_WITH_STRING = re.compile(r"\s{0,200}[\[({]?[bru]?(['\"]).*\1\s{0,40}$").match
"""A string that nothing follows."""


class Unwrapper:
    """Takes lines, and returns messages; the first ones wait until their carrier has been learned."""

    def __init__(self) -> None:
        self._entry: dict[str, str] | None = None
        self._lines = TextLines()
        self._records = Records()
        self._pretty = PrettyJSON(self._records)
        self._yaml: YamlRecords | None = None
        self._begun: Sequence[str] = ()
        """The first lines of a record that is laid out, whose other lines are read next."""
        self._table: Table | None = None
        self._is_first = True
        self._is_printable = False
        self._is_json_after_text = False
        self._soft = ""
        self._continued = ContinuedLines()
        self._entry_at = ""
        self._is_markup = False

    @property
    def is_waiting(self) -> bool:
        """Whether lines wait for others."""
        is_open = self._pretty.is_open or (self._yaml is not None and self._yaml.is_open)
        return self._lines.is_waiting or is_open or self._entry is not None or self._continued.is_open

    @property
    def looks_back(self) -> bool:
        """Whether lines before a mark are needed to understand it."""
        return self._lines.looks_back or self._pretty.was_open or self._yaml is not None

    @property
    def holds_report(self) -> bool:
        """Whether a value that has not ended has lines of the OOM killer's."""
        return self._pretty.has_hint or self._lines.holds_report

    @property
    def is_plain(self) -> bool:
        """Whether every line is a message, or several, whatever comes before and after it."""
        return self._is_passing and not (self.looks_back or self._lines.is_waiting)

    def begin(self, head: str) -> None:
        """Take the beginning of a log, whose lines are fed only from the first that matters: it may name columns."""
        self._yaml = YamlRecords() if YamlRecords.are_in(head) else None
        first = next((line for line in head.splitlines() if line.strip()), "")
        if not has_hint(first):
            self._table = Table.begun(cleaned(first), self._records)
            self._is_first = self._table is None

    def feed(self, line: str) -> list[Message]:
        """Return the messages that a line completes."""
        return self.read((line,))

    def read(self, lines: Sequence[str]) -> list[Message]:
        """Return the messages that lines complete."""
        return _split(self._read(lines))

    def _read(self, lines: Sequence[str]) -> list[Message]:
        if self._begun:
            lines, self._begun = [*self._begun, *lines], ()
        if self._is_passing and all([line[:1] == "{" and line[-1:] == "}" for line in lines]):  # noqa: C419 - faster
            return self._lines.read(self._read_json(lines))
        if self._is_passing and (clean := _as_logged(lines)):
            return self._lines.read([Line(line, self._entry_at) for line in clean])
        if len(lines) > _FEW and self._is_passing:  # some of them are as they were logged
            some = [lines[start : start + _FEW] for start in range(0, len(lines), _FEW)]
            return [message for few in some for message in self._read(few)]
        found: list[Line] = []
        number = 0
        while number < len(lines):
            line = lines[number]
            number += 1
            if self._pretty.is_open:
                number = self._read_laid_out(lines, number - 1, found)
            elif self._is_passing and line[:1] != "{" and _is_clean(line):
                found.append(Line(line, self._entry_at))
            else:
                self._feed(line.rstrip("\r\n"), found)
        return self._lines.read(found)

    @property
    def _is_passing(self) -> bool:
        """Whether a line is a message, or several, whatever comes before it."""
        return not (
            self._is_first
            or self._is_printable
            or self._is_markup
            or self._table is not None
            or self._entry is not None
            or self._pretty.is_open
            or self._continued.is_open
            or self._yaml is not None
        )

    def flush(self) -> list[Message]:
        """Return what waits for lines that do not come soon."""
        found: list[Line] = []
        if self._yaml is not None:
            self._of_yaml(self._yaml.end(), found)
        return _split([*self._lines.read(found), *self._lines.flush()])

    def skip(self) -> None:
        """Know that the next line is not the one that follows in the log; what waits has been flushed."""
        self._pretty.drop()
        self._begun = ()

    def end(self) -> list[Message]:
        """Return what the last line left incomplete."""
        found: list[Line] = []
        self._end_entry(found)
        if self._yaml is not None:
            self._of_yaml(self._yaml.end(), found)
        for line in self._begun:
            self._of_either(self._pretty.feed(line[:MOST_IN_RECORD]), found)
        self._of_text(self._pretty.end(), found)
        if self._table is not None:
            self._of_text(self._table.end(), found)
        self._of_text([*filter(None, [self._soft]), *self._continued.end()], found)
        return _split([*self._lines.read(found), *self._lines.flush(), *self._lines.end()])

    def _read_json(self, lines: Sequence[str]) -> list[Line]:
        """Read lines of JSON."""
        found: list[Line] = []
        records: list[Line] = []
        is_passing = self._is_passing
        for line, record in zip(lines, self._records.direct(decoded_lines(lines)), strict=True):
            if record is not None and is_passing:
                records.append(record)
                continue
            self._of_records(records, found)
            records.clear()
            self._feed(line, found)
            is_passing = self._is_passing
        self._of_records(records, found)
        return found

    def _of_records(self, records: Sequence[Line], found: list[Line]) -> None:
        """Read the messages in records, most of which are as they were logged."""
        texts = [record.text for record in records]
        is_plain = not (self._is_printable or self._is_markup or any(["\n" in text for text in texts]))  # noqa: C419
        if texts and is_plain and _are_clean(texts):
            found += records
        else:
            self._of_either(records, found)

    def _read_laid_out(self, lines: Sequence[str], start: int, found: list[Line]) -> int:
        """Read records that are laid out over many lines, or the first of these lines; return where others begin."""
        if (read := self._pretty.read_records(lines, start)) is not None:
            self._of_records(read.records, found)
            start += read.lines
            if not read.is_cut or len(lines) - start > _MOST_BEGUN:
                return start
            self._begun = lines[start:]
            self._pretty.has_hint = self._pretty.has_hint or has_hint("\n".join(self._begun))
            return len(lines)
        self._of_either(self._pretty.feed(lines[start][:MOST_IN_RECORD]), found)
        return start + 1

    def _feed(self, line: str, found: list[Line]) -> None:
        if self._yaml is not None and not self._continued.is_open:
            record, is_taken = self._yaml.feed(line)
            self._of_yaml(record, found)
            if is_taken:
                return
        for whole in self._continued.feed(line):
            self._of_whole(whole, found)

    def _of_whole(self, line: str, found: list[Line]) -> None:
        if line.startswith("__CURSOR="):
            self._end_entry(found)
            self._export(line[:MOST_CHARACTERS], found)
        elif self._entry is not None:
            self._export(line[:MOST_CHARACTERS], found)
        elif not (line.lstrip()[:1] in {"{", "["} and self._pretty.begins(line)):
            self._of_line(line, found)

    def _of_yaml(self, record: dict[str, object] | None, found: list[Line]) -> None:
        if record:
            self._of_either(self._records.read(record), found)

    def _of_line(self, line: str, found: list[Line]) -> None:
        if self._is_first and line.strip():
            self._is_first = False
            self._table = None if has_hint(line) else Table.begun(cleaned(line[:MOST_CHARACTERS]), self._records)
            if self._table is not None:
                return
        if self._table is not None:
            self._of_either(self._table.feed(line[:MOST_IN_RECORD]), found)
            return
        if line.endswith(("{", "[")) and self._pretty.begins(line):
            return
        opening = line.find("{") if line.lstrip()[:1] != "[" else line.find("[")
        if 0 <= opening < MOST_CHARACTERS and (value := self._json(line[:MOST_IN_RECORD], opening)) is not None:
            at, host = time_and_host(line[:opening]) if opening else ("", "")
            self._of_either(self._records.read(value, at, host), found)
        elif (len(line) > MOST_CHARACTERS or line.startswith("{")) and _BETWEEN.search(line):
            for part in _BETWEEN.split(line[: 2 * MOST_IN_RECORD]):
                self._of_line(part.strip("[], "), found)
        else:
            self._of_text([line], found)

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

    def _of_either(self, read: Iterable[Line | str], found: list[Line]) -> None:
        for record in read:
            if isinstance(record, str):
                self._of_text([record], found)
                continue
            if record.text.startswith("{") and isinstance(inner := decoded(record.text.strip()), dict):
                self._of_either(self._records.read(inner, record.at, record.host), found)
                continue
            for text in record.text.removesuffix("\n").split("\n"):
                found += [
                    Line(piece, record.at, record.host, record.fields, is_record=True) for piece in self._pieces(text)
                ]

    def _of_text(self, lines: Iterable[str], found: list[Line]) -> None:
        for line in lines:
            if "[s=" in line and (entry := _ENTRY.match(line)):
                self._entry_at = entry[1] + "Z" * (entry[2] == "UTC")
            found += [Line(piece, self._entry_at) for piece in self._pieces(line)]

    def _pieces(self, line: str) -> list[str]:
        """Return the lines in a line as they were logged."""
        if not (self._is_printable or self._is_markup) and _is_clean(line):
            return [line]
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

    def _end_entry(self, found: list[Line]) -> None:
        if self._entry is not None:
            self._export("", found)

    def _export(self, line: str, found: list[Line]) -> None:
        """Read a field of an entry in journald's export format; an empty line ends the entry."""
        if self._entry is None:
            self._entry = {}
        name, equals, value = line.partition("=")
        if self._entry.get(_BINARY) == "":
            name, equals, value = "MESSAGE", "=", line[_LENGTH_BYTES:]
            self._entry[_BINARY] = "read"
        elif line == "MESSAGE":
            name, equals, value = _BINARY, "=", ""
        if line and equals and len(self._entry) < _MOST_FIELDS:
            self._entry[name] = value
        elif not line:
            entry, self._entry = self._entry, None
            if "MESSAGE" in entry:
                self._of_either(self._records.read(entry), found)


def _split(messages: list[Message]) -> list[Message]:
    """Return messages, without empty ones; a record of /dev/kmsg can hold several lines."""
    if not any(["\n" in message.text for message in messages]):  # noqa: C419 - a list is faster here
        return [message for message in messages if message.text or message.fields]
    return [
        Message(part, message.at, message.host, message.is_marked, message.fields)
        for message in messages
        for part in message.text.split("\n")
        if part or message.fields or "\n" in message.text
    ]


def _as_logged(lines: Sequence[str]) -> Sequence[str]:
    """Return lines without colour, if nothing else has to be taken out of them; none if something has."""
    if _are_clean(lines):
        return lines
    if any(["\x1b" in line for line in lines]):  # noqa: C419 - a list is faster here
        plain = without_escapes("\n".join(lines)).split("\n")
        if len(plain) == len(lines) and _are_clean(plain):
            return plain
    return ()


def _is_clean(line: str) -> bool:
    """Whether a line is one as it was logged, and has no character that may say otherwise."""
    return line.isascii() and not line.encode().translate(None, _PLAIN) and _are_clean((line,))


def _are_clean(lines: Sequence[str]) -> bool:
    """Whether each line is one as it was logged: not coloured, escaped or encoded, not several, no JSON, no markup."""
    text = lines[0] if len(lines) == 1 else "\n".join(lines)
    if not text.isascii():
        return False
    if odd := text.encode().translate(None, _PLAIN):
        if any(mark in odd for mark in _QUOTES_OF_BYTES) and any(map(_ENDS_WITH_STRING, lines)):
            return False
        if odd.strip(b"<#\"';") or not all(part.startswith(_TASK) for part in text.split("<")[1:]):
            return False
        if any(sign in odd and _is_followed(text, mark, by) for sign, mark, by in _SPECIAL):
            return False
    ends = set(map(_LAST, lines))
    if " " in ends:
        ends = {line.rstrip()[-1:] for line in lines}
    if not ends.isdisjoint("=[") or "_" in set(map(_FIRST, lines)):
        return False
    if _is_followed(text, "=", "3D") or has_bare_colour(text):
        return False
    if max(map(len, lines)) < _SHORTEST_JOINED:
        return True
    long = [line for line in lines if len(line) >= _SHORTEST_JOINED]
    return not any(len(line) > MOST_CHARACTERS or has_several(line) for line in long)


def _is_followed(text: str, mark: str, by: str) -> bool:
    """Whether a mark is followed by this somewhere; to look for single characters first is several times as fast."""
    return any([part.startswith(by) for part in text.split(mark)[1:]])  # noqa: C419 - a list is faster here


class LogStream(Protocol):
    """A log that is read in parts."""

    def read(self, size: int, /) -> bytes:
        """Return some bytes; none at the end."""
