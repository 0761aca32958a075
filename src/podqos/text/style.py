"""Colour and columns for a terminal, and plain text for everything else.

The caller knows whether there is a terminal and passes a ``Style``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct

from podqos.controls import own, widened
from podqos.model.pod import QOSClass

Item = TypeVar("Item")

_ESCAPE = own("\x1b")
_ESCAPES = re.compile(rf"{_ESCAPE}\[[0-9;]*m")

_GAP = re.compile("  +")
# A column with less room than this is not worth reading.
_READABLE = 24
_ABSENT = "–"
_COMMENT = "   # "

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
    is_ascii: bool = False
    """Whether an arrow is printed as ``->``, which is a column wider."""
    has_headers: bool = True
    """Whether tables have a row of headings."""
    is_wide: bool = False
    """Whether nothing is left out for the sake of a screen."""

    def shown(self, items: Sequence[Item], most: int) -> Sequence[Item]:
        """Return as many of a list as a person reads at a time, or all of them."""
        return items if self.is_wide else items[:most]

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
    """Return the lines of a table: left-aligned columns two spaces apart.

    Where it is wider than it may be, the last column is wrapped under itself; if there is too little room for that, the
    columns that do not fit go below their row, each value after its heading.
    """
    if style.is_ascii:
        rows = [[widened(cell) for cell in row] for row in rows]
    widths = [max(map(visible_length, column)) for column in zip(headers, *rows, strict=True)]
    starts = [len(indent) + sum(widths[:index]) + 2 * index for index in range(len(widths))]
    least = starts[-1] + min(widths[-1], _READABLE)
    fitting = len(headers)
    if style.width is not None and least > style.width:
        fitting = max(1, sum(start + width <= style.width for start, width in zip(starts, widths, strict=True)))
    lines = []
    for index, row in enumerate(([header and style.strong(header) for header in headers], *rows)):
        if not index and not style.has_headers:
            continue
        cells = row[:fitting]
        padded = [cell + " " * (width - visible_length(cell)) for cell, width in zip(cells[:-1], widths, strict=False)]
        start = indent + "".join(f"{cell}  " for cell in padded)
        lines += wrapped(cells[-1], style, " " * visible_length(start), start) if cells[-1] else [start]
        below = zip(headers[fitting:], row[fitting:], strict=True) if index else ()
        told = "; ".join(_named(header, cell) for header, cell in below if cell not in {"", _ABSENT})
        if told:
            lines += wrapped(told, style, f"{indent}    ")
    return [line.rstrip() for line in lines]


def _named(header: str, cell: str) -> str:
    """Return a value after the heading of its column."""
    return f"{header.lower() if header.isupper() else header} {cell}".strip()


class Unwrapped(str):
    """A line that stays one line, however long: a command, which a line break would cut in two when it is copied."""

    __slots__ = ()


def fitted(lines: Iterable[str], width: int | None) -> Iterator[str]:
    """Yield lines, those that are too long wrapped: under what follows their label, or indented as they are a list."""
    style = Style(width=width)
    for line in lines:
        if width is None or isinstance(line, Unwrapped) or visible_length(line) <= width:
            yield line
            continue
        own = len(line) - len(line.lstrip(" "))
        gaps = [found.end() for found in _GAP.finditer(line, own) if visible_length(line[: found.end()]) <= width // 2]
        start = gaps[-1] if gaps else own
        hanging = visible_length(line[:start]) if gaps or not own else own + 2
        yield from wrapped(line[start:], style, " " * hanging, line[:start])


def wrapped(text: str, style: Style, indent: str, first: str | None = None) -> list[str]:
    """Return ``text`` as lines within the width, each after ``indent``; the first may begin with something else.

    Words are never broken. One that would only fit without its indentation loses as much of that as it has to.
    """
    if style.is_ascii:
        text = widened(text)
    bare = text.lstrip(" ")
    extra = text[: len(text) - len(bare)]
    line = (indent if first is None else first) + extra
    indent += extra
    if style.width is None:
        return [line + bare]
    lines, is_empty = [], True
    for word in _words(bare):
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


def _words(text: str) -> list[str]:
    """Return what is not broken: words, and a comment behind them."""
    text, mark, comment = text.partition(_COMMENT)
    return [*text.split(" "), f"{_COMMENT[1:]}{comment}"] if mark else text.split(" ")


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
