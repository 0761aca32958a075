"""Split the bytes of a file into chunks that are read one by one.

Documents are split at ``---`` lines before anything is parsed, as in kubectl, so a broken one does not affect its
neighbours. Offsets are those of the normalised text: no byte order mark, one character per line end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from podqos.manifest.binary_formats import BZIP2, GZIP, TAR, XZ, ZIP, ZSTD, binary_format
from podqos.manifest.helm_release import only_manifests
from podqos.manifest.plain import FieldPath
from podqos.manifest.problems import Position, SyntaxProblem, position_at

_UTF8_MARK = b"\xef\xbb\xbf"
_MANIFEST = "give YAML or JSON"
_INSTEAD = dict.fromkeys((BZIP2, GZIP, TAR, XZ, ZIP, ZSTD), "unpack it first")
_OTHER_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}

# A separator (or the end of a document), together with the blank, comment and further separator lines after it.
_MARK = rb"(?:---|\.\.\.)"
_REST_OF_LINE = rb"[ \t]*+(?:#[^\n]*+)?(?=\n|\Z)"
_FIRST_SEPARATOR = re.compile(_MARK + _REST_OF_LINE)
_MARK_LINE = re.compile(rb"\n(?:---|\.\.\.)")
_SEPARATOR = re.compile(rb"\n%b%b(?:\n%b?%b)*\n?" % (_MARK, _REST_OF_LINE, _MARK, _REST_OF_LINE))
# Directives (%YAML 1.1) are alone after the separation; they change nothing that a manifest needs.
_NOTHING = re.compile(rb"(?:[ \t\r\n]++|[#%][^\n]*+)*")
# kubectl, too, looks no further than the first brace.
_JSON_START = re.compile(rb"""[ \t\r\n]*+(?:\{[ \t\r\n]*+["}]|\[[ \t\r\n]*+[\[{"\]0-9tfn-])""")


class Chunk(Struct, frozen=True):
    """A part of a text that is read separately: usually one document."""

    start: int
    end: int
    notation: Literal["json", "yaml"]
    origin: Position = (1, 1)
    """Line and column where it begins."""
    may_hold_more: bool = False
    """Whether it may hold several documents: content follows ``---`` on its line."""


class Place(Struct, frozen=True):
    """Where an object is in a text."""

    chunk: Chunk
    document: int = 0
    """Which document of the chunk, from zero; there are more only where content follows ``---`` on its line."""
    path: FieldPath = ()
    """From the document to the object: empty, or the way through a list's items."""
    taken_for: str = ""
    """The kind that was assumed, if the text has none."""
    omitted: FieldPath = ()
    """What the object has and the text leaves out above the rest: ``spec``, where the text begins below it."""

    def in_text(self, field: FieldPath) -> FieldPath | None:
        """Return the path of a field of the object in its document; None if the text has no place for it."""
        if not self.omitted:
            return (*self.path, *field)
        count = len(self.omitted)
        return (*self.path, *field[count:]) if field[:count] == self.omitted else None


def is_utf_16(data: bytes) -> bool:
    """Whether a text begins with a byte order mark of UTF-16, as what PowerShell writes with ``>`` does."""
    return data[:2] in _OTHER_MARKS


def as_utf_8(data: bytes) -> bytes:
    """Return a text in UTF-8; one that is not marked as UTF-16, or is broken, stays as it is."""
    if not is_utf_16(data):
        return data
    try:
        return data.decode("utf-16").encode()
    except UnicodeError:
        return data


def encoded_like(other: bytes, data: bytes) -> bytes:
    """Return a text that is UTF-8 in the encoding of another one."""
    if not is_utf_16(other):
        return data
    return other[:2] + data.decode().encode("utf-16-le" if other[:2] == b"\xff\xfe" else "utf-16-be")


def normalise(data: bytes) -> bytes:
    """Return the text as UTF-8 with simple line ends; raise ``SyntaxProblem`` if it is in another encoding.

    What Helm says about a release around its manifests is blank.
    """
    encoding = _OTHER_MARKS.get(data[:2])
    if encoding is not None:
        raise SyntaxProblem((1, 1), f"the file is {encoding}", "save it as UTF-8")
    data = data.removeprefix(_UTF8_MARK)
    return only_manifests(data.replace(b"\r\n", b"\n") if b"\r" in data else data)


def decode(text: bytes, origin: Position) -> str:
    """Return a text that begins at ``origin``; raise ``SyntaxProblem`` where it is not UTF-8."""
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        before = text[: error.start].decode()
        if origin == (1, 1) and (name := binary_format(text)):
            raise SyntaxProblem(origin, f"{name}, not a manifest", _INSTEAD.get(name, _MANIFEST)) from None
        raise SyntaxProblem(
            position_at(before, len(before), origin),
            f"byte 0x{text[error.start]:02x} is not UTF-8",
            "save the file as UTF-8",
        ) from None


def begins_like_json(text: bytes) -> bool:
    """Whether kubectl would read the text as JSON."""
    return _JSON_START.match(text) is not None


def chunks(text: bytes) -> Iterator[Chunk]:
    """Yield the parts of a text that hold something."""
    first = _FIRST_SEPARATOR.match(text)
    start, line = first.end() if first else 0, 1
    may_hold_more = False
    for found in _MARK_LINE.finditer(text, start):
        at = found.start()
        if at >= start:
            separator = _SEPARATOR.match(text, at)
            if separator is None:
                may_hold_more = True
                continue
            yield from _chunk(text, start, at + 1, line, may_hold_more)
            line += text.count(b"\n", start, separator.end())
            start, may_hold_more = separator.end(), False
    yield from _chunk(text, start, len(text), line, may_hold_more)


def _chunk(text: bytes, start: int, end: int, line: int, may_hold_more: bool) -> Iterator[Chunk]:
    if _NOTHING.fullmatch(text, start, end) is None:
        notation: Literal["json", "yaml"] = "json" if _JSON_START.match(text, start, end) else "yaml"
        yield Chunk(start, end, notation, (line, 1), may_hold_more)
