"""Bytes of a file to the pieces that are read one by one.

Documents are separated by ``---`` lines before anything is parsed, as kubectl does it, so that a broken one does not
take its neighbours along. Offsets are those of the normalised text: no byte order mark, one character at a line's end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from podqos.manifest.plain import FieldPath
from podqos.manifest.problems import Position, SyntaxProblem, position_at

_UTF8_MARK = b"\xef\xbb\xbf"
_OTHER_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}

# A separator, together with the blank, comment and further separator lines after it.
_REST_OF_LINE = rb"[ \t]*+(?:#[^\n]*+)?(?=\n|\Z)"
_FIRST_SEPARATOR = re.compile(rb"---" + _REST_OF_LINE)
_SEPARATOR = re.compile(rb"\n---%b(?:\n(?:---)?+%b)*+\n?" % (_REST_OF_LINE, _REST_OF_LINE))
_NOTHING = re.compile(rb"(?:[ \t\r\n]++|#[^\n]*+)*+")
# kubectl, too, looks no further than the first brace.
_JSON_START = re.compile(rb"""[ \t\r\n]*+(?:\{[ \t\r\n]*+["}]|\[[ \t\r\n]*+[\[{"\]0-9tfn-])""")


class Chunk(Struct, frozen=True):
    """A part of a text that is read on its own: usually one document."""

    start: int
    end: int
    notation: Literal["json", "yaml"]


class Place(Struct, frozen=True):
    """Where an object stands in a text."""

    chunk: Chunk
    document: int = 0
    """Which document of the chunk, from zero; there is more than one only where YAML's ``...`` is used."""
    path: FieldPath = ()
    """From the document to the object: empty, or the way through a list's items."""


def normalise(data: bytes) -> bytes:
    """Return the text as UTF-8 with simple line ends; raise ``SyntaxProblem`` if it is in another encoding."""
    encoding = _OTHER_MARKS.get(data[:2])
    if encoding is not None:
        raise SyntaxProblem((1, 1), f"the file is {encoding}", "save it as UTF-8")
    data = data.removeprefix(_UTF8_MARK)
    return data.replace(b"\r\n", b"\n") if b"\r" in data else data


def decode(text: bytes, origin: Position) -> str:
    """Return a text that begins at ``origin``; raise ``SyntaxProblem`` where it is not UTF-8."""
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        before = text[: error.start].decode()
        raise SyntaxProblem(
            position_at(before, len(before), origin),
            f"byte 0x{text[error.start]:02x} is not UTF-8",
            "save the file as UTF-8",
        ) from None


def origin_of(text: bytes, chunk: Chunk) -> Position:
    """Return line and column where a chunk begins."""
    before = text[text.rfind(b"\n", 0, chunk.start) + 1 : chunk.start]
    return text.count(b"\n", 0, chunk.start) + 1, len(before.decode(errors="replace")) + 1


def chunks(text: bytes) -> Iterator[Chunk]:
    """Yield the parts of a text that hold something."""
    first = _FIRST_SEPARATOR.match(text)
    start = first.end() if first else 0
    for separator in _SEPARATOR.finditer(text, start):
        yield from _chunk(text, start, separator.start() + 1)
        start = separator.end()
    yield from _chunk(text, start, len(text))


def _chunk(text: bytes, start: int, end: int) -> Iterator[Chunk]:
    if _NOTHING.fullmatch(text, start, end) is None:
        yield Chunk(start, end, "json" if _JSON_START.match(text, start, end) else "yaml")
