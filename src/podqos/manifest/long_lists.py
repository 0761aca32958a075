"""Long lists of objects in YAML, as kubectl prints them, read a few objects at a time.

Everything a list says takes several times the room of its text. Its items begin with a dash at the beginning of a line,
where nothing else does that ``fastyaml`` reads: in pieces a list means the same as in whole. What does not look like
one is read in whole.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress

from podqos.manifest.alike import BEHIND_ITEMS, NEXT_ITEM, AlikeItems
from podqos.manifest.fastyaml import NotPlain, read_plain
from podqos.manifest.kinds import item_type
from podqos.manifest.objects import KubernetesObject, is_list, objects_in
from podqos.manifest.plain import Plain

_ITEMS = re.compile(rb"(?:\A|(?<=\n))items:[ ]*+\n(?=(?:#\n)?\n*+- )")
_GAP = re.compile(rb"(?:\A|(?<=\n))#\n\n+")
"""Blank lines behind a comment, which belong to no value: others leave them in place of objects."""
_BATCH = 1 << 18


class LongList:
    """A list that is read in pieces."""

    def __init__(self, text: bytes, start: int, end: int, envelope: dict[str, Plain]) -> None:
        self.envelope = envelope
        """All it says but its items."""
        self._text = text
        bounds = [start]
        while (bound := text.find(NEXT_ITEM, bounds[-1] + _BATCH, end) + 1) > 0:
            bounds.append(bound)
        self._bounds = [*bounds, end]
        self._firsts: list[int] = []
        """The index of the first item of each piece."""
        self._last: tuple[int, list[Plain]] = -1, []
        """The piece that was read last: its items are asked for one after the other."""

    def objects(self) -> Iterator[KubernetesObject]:
        """Yield its objects; raise ``NotPlain`` once something is not plain."""
        kind, api_version = str(self.envelope["kind"]), str(self.envelope["apiVersion"])
        alike, index = AlikeItems(), 0
        for piece in range(len(self._bounds) - 1):
            for item in self._skimmed(piece, alike):
                yield from objects_in(item, ("items", index), *item_type(kind, api_version))
                index += 1

    def item(self, index: int) -> Plain:
        """Return everything that an item says, or raise ``NotPlain``."""
        if not self._firsts:
            self._firsts = [0]
            for start, end in zip(self._bounds, self._bounds[1:-1], strict=False):
                self._firsts.append(self._firsts[-1] + self._text.count(NEXT_ITEM, start - 1, end + 1))
        piece = bisect_right(self._firsts, index) - 1
        if self._last[0] != piece:
            self._last = piece, self._read(piece)
        return self._last[1][index - self._firsts[piece]]

    def _skimmed(self, piece: int, alike: AlikeItems) -> list[Plain]:
        """Return what the items of a piece say, but for what no model reads."""
        start, end = self._bounds[piece : piece + 2]
        with suppress(NotPlain):
            return [alike.value(item, shape) for item, shape in alike.split(self._text[start:end])]
        return self._read(piece, skims=True)

    def _read(self, piece: int, *, skims: bool = False) -> list[Plain]:
        start, end = self._bounds[piece : piece + 2]
        items = read_plain(_GAP.sub(b"#\n", self._text[start:end]), skims=skims)
        if not isinstance(items, list):
            raise NotPlain
        return items


def long_list(text: bytes) -> LongList | None:
    """Return the list that a document is, if it is long; or raise ``NotPlain``."""
    if len(text) <= _BATCH or (items := _ITEMS.search(text)) is None:
        return None
    behind = BEHIND_ITEMS.search(text, items.end())
    end = behind.start() + 1 if behind is not None else len(text)
    envelope = read_plain(text[: items.end()] + text[end:])
    if not isinstance(envelope, dict) or envelope.get("items", ()) is not None:
        return None
    kind, api_version = envelope.get("kind"), envelope.get("apiVersion")
    if not (isinstance(kind, str) and isinstance(api_version, str) and api_version and is_list(kind, envelope)):
        return None
    return LongList(text, items.end(), end, envelope)
