"""Colour and columns for a terminal, and plain text for everything else.

The caller knows whether there is a terminal and passes a ``Style``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from podqos.model.pod import QOSClass
from podqos.report.text.controls import own

_ESCAPE = own("\x1b")
_ESCAPES = re.compile(rf"{_ESCAPE}\[[0-9;]*m")

_CLASS_COLOURS = {
    QOSClass.GUARANTEED: "32",  # green: last to go
    QOSClass.BURSTABLE: "33",  # yellow
    QOSClass.BEST_EFFORT: "31",  # red: first to go
}
_SEVERITY_COLOURS = {"error": "1;31", "warning": "33", "info": "36"}


class Style(Struct, frozen=True):
    """Colour and width of the output."""

    colour: bool = False
    width: int | None = None
    """Columns to stay within; None for no limit."""

    def qos_class(self, qos_class: QOSClass) -> str:
        """Return the class in its colour."""
        return self._painted(str(qos_class), _CLASS_COLOURS[qos_class])

    def severity(self, severity: str) -> str:
        """Return how bad something is (error, warning, info) in its colour."""
        return self._painted(severity, _SEVERITY_COLOURS[severity])

    def strong(self, text: str) -> str:
        """Return a heading."""
        return self._painted(text, "1")

    def alarm(self, text: str) -> str:
        """Return text that must stand out."""
        return self._painted(text, "1;31")

    def added(self, text: str) -> str:
        """Return an added line."""
        return self._painted(text, "32")

    def removed(self, text: str) -> str:
        """Return a removed line."""
        return self._painted(text, "31")

    def faint(self, text: str) -> str:
        """Return less important text."""
        return self._painted(text, "2")

    def _painted(self, text: str, code: str) -> str:
        return f"{_ESCAPE}[{code}m{text}{_ESCAPE}[0m" if self.colour else text


def columns(headers: Sequence[str], rows: Sequence[Sequence[str]], style: Style, indent: str = "") -> list[str]:
    """Return the lines of a table: left-aligned columns two spaces apart, the last one cut to the width."""
    widths = [max(map(visible_length, column)) for column in zip(headers, *rows, strict=True)]
    lines = []
    for row in ([style.strong(header) for header in headers], *rows):
        padded = [
            cell + " " * (width - visible_length(cell)) for cell, width in zip(row[:-1], widths[:-1], strict=True)
        ]
        start = indent + "".join(f"{cell}  " for cell in padded)
        lines.append((start + cut(row[-1], style.width, visible_length(start))).rstrip())
    return lines


def wrapped(text: str, style: Style, indent: str, first: str | None = None) -> list[str]:
    """Return ``text`` as lines within the width, each after ``indent``; the first may begin with something else.

    Words are never broken. One that would only fit without its indentation loses as much of that as it has to.
    """
    bare = text.lstrip(" ")
    indent += " " * (len(text) - len(bare))
    line = indent if first is None else first + indent[len(indent) - len(text) + len(bare) :]
    if style.width is None:
        return [line + bare]
    lines, is_empty = [], True
    for word in bare.split(" "):
        length = visible_length(word)
        fits = visible_length(line) + (not is_empty) + length <= style.width
        if not fits and (not is_empty or (line.strip() and length <= style.width)):
            lines.append(line.rstrip())
            line, is_empty = indent, True
        if is_empty and not line.strip():
            line = line[: max(0, style.width - length)]
        line += word if is_empty else f" {word}"
        is_empty = False
    return [*lines, line]


def labelled(label: str, paragraphs: Iterable[str], style: Style, indent: int, width: int) -> list[str]:
    """Return wrapped paragraphs after a label; nothing if there are none."""
    start = " " * (indent + width)
    first: str | None = f"{' ' * indent}{style.faint(label.ljust(width))}"
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += wrapped(paragraph, style, start, first)
        first = None
    return lines


def visible_length(text: str) -> int:
    """Return how many columns ``text`` takes, colours not counted."""
    return len(_ESCAPES.sub("", text)) if _ESCAPE in text else len(text)


def cut(text: str, width: int | None, used: int) -> str:
    """Shorten ``text`` so that it ends within ``width`` after ``used`` columns; at least a few columns are kept."""
    if width is None or used + visible_length(text) <= width:
        return text
    plain = _ESCAPES.sub("", text)
    room = max(8, width - used - 1)
    return plain if len(plain) <= room + 1 else plain[:room] + "…"
