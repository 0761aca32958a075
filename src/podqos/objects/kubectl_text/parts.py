"""A paste in parts, so that a large one takes no more memory than a small one.

It is cut where nothing before tells how to read what follows: between two rows of a table, and before a description.
"""

from __future__ import annotations

import re

from podqos.objects.kubectl_text.quiet_descriptions import pieces
from podqos.objects.kubectl_text.reader import TextReader

_PART_BYTES = 1 << 19
_LARGEST_BYTES = 1 << 23
"""A part that cannot be cut before is cut at a line; so much at most."""
_LARGEST_LATER_BYTES = 1 << 21
_SEARCHED_BYTES = 1 << 16
_ROW = (
    rb"(?:[a-z0-9][a-z0-9.-]*+[ \t]+){1,2}"
    rb"(?:\d{1,4}/\d{1,4}[ \t]+[A-Z]|(?:\(x\d{1,9} over \w{1,12}\)[ \t]+)?(?:Normal|Warning)[ \t]+[A-Z])"
)
_BETWEEN = re.compile(
    rb"\n(?=" + _ROW + rb"[^\n]*\n" + _ROW + rb")|\n(?=Name:[ \t]+\S+\n(?:Namespace|Roles?|Priority|Labels|Selector):)"
)
_LINES_PER_OBJECT = 400
"""A part that tells less is the last one that is read: what follows is a log."""


class PastedParts:
    """Takes a text in parts, and gives them to a reader."""

    def __init__(self) -> None:
        self.reader = TextReader()
        self.is_over = False
        """Whether there is no more to read in it."""
        self._rest = b""

    def feed(self, data: bytes, *, is_ahead: bool) -> None:
        """Take the next bytes; beyond those that are read ahead, only what tells enough is read on."""
        self._rest += data
        if len(self._rest) < _PART_BYTES:
            return
        end = _last_cut(self._rest)
        if not end and len(self._rest) >= (_LARGEST_BYTES if is_ahead else _LARGEST_LATER_BYTES):
            end = self._rest.rfind(b"\n") + 1 or len(self._rest)
        if end:
            part, self._rest = self._rest[:end], self._rest[end:]
            before = self.reader.told
            self._read(part)
            if not is_ahead and (self.reader.told - before) * _LINES_PER_OBJECT < part.count(b"\n"):
                self.end()

    def end(self) -> None:
        """Know that the text has ended, or that no more of it is to be read."""
        if not self.is_over:
            self.is_over = True
            self._read(self._rest)
            self._rest = b""
            self.reader.end()

    def _read(self, part: bytes) -> None:
        rest: list[str] = []
        for piece in pieces(part.decode(errors="replace")):
            if isinstance(piece, str):
                rest.append(piece)
                continue
            self._read_lines(rest)
            self.reader.take_description(piece)
        self._read_lines(rest)

    def _read_lines(self, texts: list[str]) -> None:
        if texts:
            self.reader.feed("".join(texts).removesuffix("\n"))
            texts.clear()


def _last_cut(text: bytes) -> int:
    """Return the last place where a text can be cut; 0: nowhere."""
    end = 0
    for found in _BETWEEN.finditer(text, max(0, len(text) - _SEARCHED_BYTES)):
        end = found.end()
    return end
