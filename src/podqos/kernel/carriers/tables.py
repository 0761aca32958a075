"""Rows of tables with a header, as services export logs: separated by commas, semicolons, tabs or bars."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from podqos.kernel.carriers.prefixes import in_seconds
from podqos.kernel.carriers.records import Records, decoded
from podqos.kernel.carriers.tokens import has_hint
from podqos.kernel.message import Line

_COLUMN = re.compile(r"[\"']?[@_A-Za-z][\w @.()\[\]/:-]{0,60}[\"']?")
_MESSAGES = frozenset(
    (
        *("message", "@message", "msg", "log", "line", "_raw", "raw", "syslogmessage", "logmessage", "textpayload"),
        *("body", "content", "event", "text", "logentry", "log line", "log message", "renderedmessage", "description"),
        *("log_line", "jsonpayload.message", "logline", "entry", "event.original", "_source", "payload"),
    )
)
_TIMES = ("time", "date", "when", "ts")
_HOSTS = frozenset(
    (
        *("host", "hostname", "host.name", "host_name", "_hostname", "computer", "node", "node_name", "nodename"),
        *("instance", "@logstream", "logstream", "logstreamname"),
    )
)
_MOST_COLUMNS = 200
_MOST_LINES, _MOST_OF_REPORT = 200, 20_000
_SEPARATORS = "\t,;|"


def _field(name: str) -> str:
    """Return what a column is called, without quotes and without the zone of its times."""
    return name.strip().strip("\"'").lower().partition(" [")[0]


def _is_in(names: frozenset[str], name: str) -> bool:
    """Whether a column is one of those named, perhaps inside of another: ``jsonPayload.message``."""
    return name in names or name.rpartition(".")[2] in names


class Table:
    """A table by its header."""

    def __init__(self, names: list[str], separator: str, records: Records) -> None:
        self._records = records
        self._separator = separator
        self._width = len(names)
        lower = [_field(name) for name in names]
        self._message = next((number for number, name in enumerate(lower) if _is_in(_MESSAGES, name)), None)
        self._time = next((number for number, name in enumerate(lower) if any(part in name for part in _TIMES)), None)
        self._host = next((number for number, name in enumerate(lower) if _is_in(_HOSTS, name)), None)
        if self._host is None and "source" in lower:  # Graylog
            self._host = lower.index("source")
        self._open: list[str] = []
        """The lines of a row that has not ended, how many quotes they have, and whether one may be the OOM killer's."""
        self._quotes = 0
        self._has_hint = False

    @classmethod
    def begun(cls, header: str, records: Records) -> Table | None:
        """Return the table that a header begins; None if it is none."""
        for separator in _SEPARATORS:
            names = header.strip("\ufeff \r").split(separator)
            if not 2 <= len(names) <= _MOST_COLUMNS or not all(_COLUMN.fullmatch(name.strip()) for name in names):
                continue
            if any(_is_in(_MESSAGES, _field(name)) for name in names):
                return cls(names, separator, records)
        return None

    def feed(self, line: str) -> Iterator[Line | str]:
        """Yield the message of a row; the line as it is, where it is none. A field may hold several lines."""
        self._open.append(line)
        self._quotes += line.count('"')
        most = _MOST_OF_REPORT if self._has_hint else _MOST_LINES
        if self._quotes % 2 and len(self._open) < most and (len(self._open) > 1 or self._separator in line):
            self._has_hint = self._has_hint or has_hint(line)
            return
        text = "\n".join(self._open)
        self._open, self._quotes, self._has_hint = [], 0, False
        row = next(
            csv.reader([text] if "\n" not in text else text.splitlines(keepends=True), delimiter=self._separator), []
        )
        if len(row) < self._width:
            yield from text.split("\n")
            return
        number = self._message
        if number is None or not (len(row) == self._width or has_hint(row[number])):
            yield from text.split("\n")
            return
        if len(row) > self._width and number == self._width - 1:  # the last one was not quoted
            row[number] = self._separator.join(row[number:])
        at = "" if self._time is None else in_seconds(row[self._time].strip())
        host = "" if self._host is None or "/" in row[self._host] else row[self._host].strip()
        if row[number].lstrip().startswith("{"):
            value = decoded(row[number].strip())
            if value is not None:
                yield from self._records.read(value, at, host)
                return
        yield Line(row[number], at, host, is_record=True)

    def end(self) -> Iterator[str]:
        """Yield the lines of a row that did not end."""
        rest, self._open = self._open, []
        yield from rest
