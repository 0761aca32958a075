"""Edit manifests where they are, leaving every byte alone that need not change.

An edit names an object, a field of it and the value the field should have. From what a document says and what it
should say follow the pieces of text to change (``splices``); they are put in, and the result is read again: it
must say exactly what was meant, and nothing in it may be out of order that was in order before. Otherwise, and where
a text cannot be edited safely in the first place, the answer is a reason and the text stays as it is.

Opening and writing files is for the caller. Why no library does this: docs/internals/decisions/0006.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from podqos.manifest.contents import Reading
from podqos.manifest.edits.chunk import EditableChunk, chunk_values
from podqos.manifest.edits.refusal import EditRefusal, Reason
from podqos.manifest.edits.values import same
from podqos.manifest.plain import FieldPath, Plain, parse_path
from podqos.manifest.problems import Position, Severity, position_at
from podqos.manifest.reading import read
from podqos.manifest.text import Chunk, Place, normalise

__all__ = ["CannotEdit", "Edited", "ObjectEdit", "Reason", "apply_edits", "places_in_order"]

_UTF8_MARK = b"\xef\xbb\xbf"


class ObjectEdit(Struct, frozen=True):
    """A field of an object and the value it should have."""

    place: Place
    """The object, as a reading of the same bytes found it."""
    path: str
    """From the object to the field: ``spec.containers[0].resources.limits.memory``."""
    value: Plain
    """The new value of the field, mappings as a whole; None removes the field."""


class Edited(Struct, frozen=True):
    """The text with all edits; the same bytes if nothing changes."""

    data: bytes


class CannotEdit(Struct, frozen=True):
    """The text stays as it is."""

    reason: Reason
    edit: ObjectEdit | None = None
    """The edit at fault; None if it is the text as a whole, or all of them together."""
    position: Position | None = None
    """Line and column of what prevents it."""
    name: str = ""
    """The name of an anchor, or the problem of the new text."""
    others: tuple[CannotEdit, ...] = ()
    """Why edits of other documents are refused, so that callers need not try each."""


_Replacement = tuple[int, int, str]


def apply_edits(data: bytes, edits: Sequence[ObjectEdit]) -> Edited | CannotEdit:
    """Return a manifest with all edits, or why they cannot be made safely."""
    if not edits:
        return Edited(data)
    reading = read("", data)
    refused = _refused_at_once(data, reading, edits)
    if refused is not None:
        return refused
    text = normalise(data)
    by_chunk: dict[Chunk, list[ObjectEdit]] = {}
    for edit in edits:
        by_chunk.setdefault(edit.place.chunk, []).append(edit)
    replacements: list[_Replacement] = []
    meant: dict[Chunk, list[Plain]] = {}
    in_the_way: list[CannotEdit] = []
    for chunk in sorted(by_chunk, key=lambda chunk: chunk.start):
        found = _edit_chunk(text, chunk, by_chunk[chunk])
        if isinstance(found, CannotEdit):
            in_the_way.append(found)
        else:
            meant[chunk], chunk_replacements = found
            replacements += chunk_replacements
    if in_the_way:
        return replace(in_the_way[0], others=tuple(in_the_way[1:]))
    if not replacements:
        return Edited(data)
    if any(first[1] > second[0] for first, second in pairwise(replacements)):
        return CannotEdit(Reason.UNSUPPORTED)
    result = _replaced(data, replacements)
    return _wrong(reading, text, result, meant) or Edited(result)


def _refused_at_once(data: bytes, reading: Reading, edits: Sequence[ObjectEdit]) -> CannotEdit | None:
    """Return refusals that do not depend on the text."""
    is_broken = any(problem.severity is Severity.ERROR and not problem.field for problem in reading.problems)
    if is_broken and b"{{" in data:
        problem = next(problem for problem in reading.problems if not problem.field)
        return CannotEdit(Reason.TEMPLATE, position=(problem.line, problem.column))
    places = set(_places(reading))
    wanted: dict[tuple[Place, FieldPath], Plain] = {}
    for edit in edits:
        path = parse_path(edit.path)
        if edit.place not in places:
            return CannotEdit(Reason.UNREADABLE if is_broken else Reason.NO_SUCH_OBJECT, edit)
        if not path or edit.place.in_text(path) in {None, edit.place.path}:
            return CannotEdit(Reason.UNSUPPORTED, edit)
        if not same(wanted.setdefault((edit.place, path), edit.value), edit.value):
            return CannotEdit(Reason.CONFLICT, edit)
    return None


def places_in_order(data: bytes) -> list[Place]:
    """Return where the objects of a text are, in the order of the text; edits move them and keep their number."""
    return sorted(_places(read("", data)), key=lambda place: (place.chunk.start, place.document, place.path))


def _places(reading: Reading) -> Iterator[Place]:
    yield from reading.places
    yield from (other.place for other in reading.others)
    yield from (refused.place for refused in reading.refused)


def _edit_chunk(
    text: bytes, chunk: Chunk, edits: Sequence[ObjectEdit]
) -> tuple[list[Plain], list[_Replacement]] | CannotEdit:
    """Return what the documents of a chunk should say, and the changes to the normalised text that make them."""
    try:
        editable = EditableChunk(text, chunk)
    except EditRefusal as refusal:
        return CannotEdit(refusal.reason, edits[0])
    by_document: dict[int, list[ObjectEdit]] = {}
    for edit in edits:
        by_document.setdefault(edit.place.document, []).append(edit)
        try:
            editable.want(edit.place.document, _full_path(edit), edit.value)
        except EditRefusal as refusal:
            return CannotEdit(refusal.reason, edit)
    replacements: list[_Replacement] = []
    for number in sorted(by_document):
        try:
            found = editable.splices(number, [edit.place.path for edit in by_document[number]])
        except EditRefusal as refusal:
            return _blamed(refusal, editable, by_document[number])
        for splice in found:
            start, end = (chunk.start + len(editable.string[:at].encode()) for at in (splice.start, splice.end))
            replacements.append((start, end, splice.text))
    return editable.meant, replacements


def _blamed(refusal: EditRefusal, editable: EditableChunk, edits: Sequence[ObjectEdit]) -> CannotEdit:
    """Return a refusal together with the edit that met it."""
    edit = next((edit for edit in edits if _touches(_full_path(edit), refusal.path)), edits[0])
    position = None
    if refusal.offset is not None:
        position = position_at(editable.string, refusal.offset, editable.chunk.origin)
    return CannotEdit(refusal.reason, edit, position, refusal.name)


def _full_path(edit: ObjectEdit) -> FieldPath:
    path = edit.place.in_text(parse_path(edit.path))
    assert path is not None
    return path


def _touches(path: FieldPath, other: FieldPath) -> bool:
    """Whether one path leads through the other."""
    return all(str(step) == str(step_of_other) for step, step_of_other in zip(path, other, strict=False))


def _replaced(data: bytes, replacements: Iterable[_Replacement]) -> bytes:
    """Put texts into the original bytes, which have a byte order mark and line ends that the offsets do not count."""
    begin = len(_UTF8_MARK) if data.startswith(_UTF8_MARK) else 0
    returns = [match.start() - begin - index for index, match in enumerate(re.finditer(rb"\r\n", data))]
    pieces: list[bytes] = []
    done = 0
    for start, end, written in replacements:
        first, last = (begin + offset + bisect_left(returns, offset) for offset in (start, end))
        encoded = written.encode()
        if b"\n" in encoded and _ends_lines_with_returns(data, first):
            encoded = encoded.replace(b"\n", b"\r\n")
        pieces += (data[done:first], encoded)
        done = last
    return b"".join((*pieces, data[done:]))


def _ends_lines_with_returns(data: bytes, offset: int) -> bool:
    """Whether the line before an offset, or else the one it is on, ends as Windows ends lines."""
    newline = data.rfind(b"\n", 0, offset)
    if newline < 0:
        newline = data.find(b"\n", offset)
    return newline > 0 and data[newline - 1 : newline] == b"\r"


def _wrong(reading: Reading, text: bytes, result: bytes, meant: Mapping[Chunk, list[Plain]]) -> CannotEdit | None:
    """Read the result and return its problems."""
    after = read("", result)
    worse = _problems(after) - _problems(reading)
    if worse:
        return CannotEdit(Reason.NOT_AS_MEANT, name=min(worse)[2])
    new_text = normalise(result)
    old_chunks, new_chunks = _chunks(reading), _chunks(after)
    if len(old_chunks) != len(new_chunks):
        return CannotEdit(Reason.NOT_AS_MEANT)
    for old, new in zip(old_chunks, new_chunks, strict=True):
        if old in meant:
            is_right = _says(new_text, new, meant[old])
        else:
            is_right = text[old.start : old.end] == new_text[new.start : new.end]
        if not is_right:
            return CannotEdit(Reason.NOT_AS_MEANT)
    return None


def _problems(reading: Reading) -> Counter[tuple[str, str, str]]:
    return Counter((str(problem.severity), problem.field, problem.what) for problem in reading.problems)


def _chunks(reading: Reading) -> list[Chunk]:
    """Return the chunks that hold objects, in order."""
    return sorted({place.chunk for place in _places(reading)}, key=lambda chunk: chunk.start)


def _says(text: bytes, chunk: Chunk, meant: list[Plain]) -> bool:
    try:
        values = chunk_values(text, chunk)
    except EditRefusal:
        return False
    return len(values) == len(meant) and all(map(same, values, meant))
