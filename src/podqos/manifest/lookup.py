"""Look up the full contents of an object in the text, and the position of a field.

A reading keeps places, not texts or positions, because few callers need them; those pass the same bytes again.
"""

from __future__ import annotations

import re
from itertools import islice

from podqos.manifest.fastpositions import nearest, plain_positions
from podqos.manifest.fastyaml import NotPlain, read_plain
from podqos.manifest.jsonreading import JSONLocator, JSONObjects
from podqos.manifest.plain import FieldPath, Plain, parse_path
from podqos.manifest.problems import Position
from podqos.manifest.strictyaml import Document, read_documents
from podqos.manifest.text import Chunk, Place, normalise

# Blank lines and comments, and then a key at column 0.
_FIRST_KEY = re.compile(rb"(?:[ \r]*(?:#[^\n]*)?\n)*[A-Za-z]\w*:(?=[ \n]|\Z)")


class Lookup:
    """Looks up objects and fields in a text that was read before, and caches what it parses."""

    def __init__(self, data: bytes) -> None:
        self._text = normalise(data)
        self._documents: dict[tuple[Chunk, int], Document] = {}
        self._json_objects: dict[Chunk, JSONObjects] = {}
        self._json_locators: dict[Chunk, JSONLocator] = {}
        self._positions: dict[Chunk, dict[FieldPath, Position] | None] = {}
        self._list: tuple[Chunk, Plain] | None = None
        """The list that was read last: its objects are asked for one after the other."""

    def chunk_text(self, chunk: Chunk) -> bytes:
        """Return the text of a chunk."""
        return self._text[chunk.start : chunk.end]

    def json_text(self, place: Place) -> bytes:
        """Return the text of the object at ``place``, in JSON."""
        return self._json(place.chunk).text(place.path)

    def plain(self, place: Place) -> Plain:
        """Return the full contents of the object at ``place``."""
        value = self._value(place)
        for step in reversed(place.omitted):
            value = {str(step): value}
        return value

    def _json(self, chunk: Chunk) -> JSONObjects:
        if chunk not in self._json_objects:
            self._json_objects[chunk] = JSONObjects(self._text, chunk)
        return self._json_objects[chunk]

    def _value(self, place: Place) -> Plain:
        if place.chunk.notation == "json":
            return self._json(place.chunk).plain(place.path)
        try:
            value = self._yaml_value(place)
        except NotPlain:
            value = self._document(place).value
        for step in place.path:
            value = value[step]  # type: ignore[index] # a place is a path that exists
        return value

    def locate(self, place: Place, field: str | FieldPath) -> Position:
        """Return line and column of a field of the object at ``place``, such as ``spec.containers[0].resources``.

        A field that does not exist is where its nearest ancestor is.
        """
        path = place.in_text(parse_path(field) if isinstance(field, str) else field)
        if path is None:
            path = place.path
        if not path and (line := self._first_line(place.chunk)):
            return line, 1
        if place.chunk.notation == "json":
            locator = self._json_locators.setdefault(place.chunk, JSONLocator(self._text, place.chunk))
            return locator.locate(path)
        positions = self._plain_positions(place)
        return self._document(place).locate(path) if positions is None else nearest(positions, path)

    def _first_line(self, chunk: Chunk) -> int:
        """Return the line on which a chunk of YAML begins, if that is plain to see; 0 if it has to be parsed."""
        if chunk.notation != "yaml" or chunk.may_hold_more:
            return 0
        key = _FIRST_KEY.match(self._text, chunk.start, chunk.end)
        return chunk.origin[0] + key[0].count(b"\n") if key else 0

    def _yaml_value(self, place: Place) -> Plain:
        """Return the document of a place; raise ``NotPlain`` if it is not plain."""
        chunk = place.chunk
        if (chunk, place.document) in self._documents:
            return self._documents[chunk, place.document].value
        if place.path and self._list is not None and self._list[0] == chunk:
            return self._list[1]
        value = read_plain(self._text[chunk.start : chunk.end])
        if place.path:
            self._list = chunk, value
        return value

    def _plain_positions(self, place: Place) -> dict[FieldPath, Position] | None:
        """Return where everything is if the document is plain, and was not parsed already."""
        chunk = place.chunk
        if (chunk, place.document) in self._documents:
            return None
        if chunk not in self._positions:
            try:
                self._positions[chunk] = plain_positions(self._text[chunk.start : chunk.end], chunk.origin[0])
            except NotPlain:
                self._positions[chunk] = None
        return self._positions[chunk]

    def _document(self, place: Place) -> Document:
        chunk, number = place.chunk, place.document
        if (chunk, number) not in self._documents:
            documents = read_documents(self._text[chunk.start : chunk.end], chunk.origin[0])
            self._documents[chunk, number] = next(islice(documents, number, None))
        return self._documents[chunk, number]
