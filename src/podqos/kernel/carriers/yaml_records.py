"""Records in YAML, as command-line clients of log services print them: a document, or an item of a list, for each.

Long values are folded over several lines. Not a reader of YAML: of a record it takes names and scalars, whose forms are
few. Everything else in it is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from podqos.kernel.carriers.records import decoded

_FIRST = (
    r"(?:insertId|httpRequest|jsonPayload|labels|logName|operation|protoPayload|receiveTimestamp|resource|severity"
    r"|textPayload|timestamp|eventId|ingestionTime|logStreamName|Computer|SyslogMessage|TableName|TimeGenerated): ?"
)
_BEGINS = re.compile(rf"(?:^|\n)(?:---\r?\n|- ){_FIRST}")
_RECORD = re.compile(rf"- {_FIRST}")
_FIELD = re.compile(r"( {0,40})([A-Za-z_@][\w.@/-]{0,120}):(?: (.*))?$")
_SINGLE = re.compile(r"'((?:[^']|'')*)'\s*$")
_DOUBLE = re.compile(r'"(?:[^"\\]|\\.)*"\s*$')
_HEX = re.compile(r"\\x([0-9A-Fa-f]{2})")
_MOST_LINES = 400
_MOST_FOLDED = 64


class YamlRecords:
    """Takes lines of a log that is made of such records."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    @staticmethod
    def are_in(head: str) -> bool:
        """Whether a log that begins like this is made of them."""
        return _BEGINS.search(head) is not None

    @property
    def is_open(self) -> bool:
        """Whether a record has begun."""
        return bool(self._lines)

    def feed(self, line: str) -> tuple[dict[str, object] | None, bool]:
        """Return the record that ends before a line, and whether the line is one of another."""
        is_first = line == "---" or _RECORD.match(line) is not None
        if not (is_first or self._lines):
            return None, False
        if not is_first and line[:1].strip() and (self._lines[0] != "---" or _FIELD.match(line) is None):
            return self.end(), False  # other text follows
        ended = self.end() if is_first or len(self._lines) >= _MOST_LINES else None
        self._lines.append(line)
        return ended, True

    def end(self) -> dict[str, object] | None:
        """Return the record that no line follows."""
        lines, self._lines = self._lines, []
        if not lines:
            return None
        indent = 2 if lines[0].startswith("- ") else 0
        return _fields([line[indent:] for line in lines[0 if indent else 1 :]])


def _fields(lines: Sequence[str]) -> dict[str, object]:
    """Return the fields of a record."""
    record: dict[str, object] = {}
    levels: list[tuple[int, dict[str, object]]] = [(-1, record)]
    place = 0
    while place < len(lines):
        field = _FIELD.match(lines[place])
        place += 1
        if field is None:
            continue
        indent, name, value = len(field[1]), field[2], field[3] or ""
        while len(levels) > 1 and levels[-1][0] >= indent:
            levels.pop()
        inside = levels[-1][1]
        if not value:
            inner: dict[str, object] = {}
            inside[name] = inner
            levels.append((indent, inner))
            continue
        inside[name], place = _scalar(value, indent, lines, place)
    return record


def _scalar(value: str, indent: int, lines: Sequence[str], place: int) -> tuple[str, int]:
    """Return a scalar that begins with a value, and where the lines go on after it."""
    if value[0] in "|>":
        block = []
        while place < len(lines) and (not lines[place].strip() or _indent(lines[place]) > indent):
            block.append(lines[place])
            place += 1
        deep = min((_indent(line) for line in block if line.strip()), default=0)
        return ("\n" if value[0] == "|" else " ").join(line[deep:] for line in block), place
    form = {"'": _SINGLE, '"': _DOUBLE}.get(value[0])
    last = min(len(lines), place + _MOST_FOLDED)
    while place < last and (
        form.match(value) is None
        if form is not None
        else _indent(lines[place]) > indent or _FIELD.match(lines[place]) is None
    ):
        rest = lines[place].strip()
        is_cut = value.endswith("\\") and form is _DOUBLE
        value = value[:-1] + rest.removeprefix("\\") if is_cut else f"{value} {rest}"
        place += 1
    if form is _SINGLE and (quoted := _SINGLE.match(value)):
        return quoted[1].replace("''", "'"), place
    if form is _DOUBLE:
        text = decoded(_HEX.sub(r"\\u00\1", value.strip()).replace("\\ ", " ").replace("\\e", "\\u001b"))
        return text if isinstance(text, str) else value.strip('"'), place
    return value, place


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
