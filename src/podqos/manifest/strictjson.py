"""The strict side of JSON: where texts end in a stream, which keys are set twice, where a field is.

Reading JSON is msgspec's job. It knows no positions and keeps the last of two equal keys, so what must be reported
is looked up here with the standard library's scanner, which steps over whole values at the speed of C: only the
objects and lists along a path are taken apart, however large the text is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TypeAlias

from podqos.manifest.plain import FieldPath, Plain
from podqos.manifest.problems import Position, SyntaxProblem, position_at

_SPACES = re.compile(r"[ \t\r\n]*+")
_COMMA = re.compile(r"[ \t\r\n]*+,?+[ \t\r\n]*+")
_COLON = re.compile(r"[ \t\r\n]*+:[ \t\r\n]*+")

Span: TypeAlias = tuple[int, int, int]
"""Where a member begins, where its key ends, where its value begins; an item of a list has an empty key."""


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


class _Twice(dict[str, Plain]):
    """An object that sets a key twice."""

    key: str


def _pairs(pairs: list[tuple[str, Plain]]) -> dict[str, Plain]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    names = [name for name, _ in pairs]
    marked = _Twice(value)
    marked.key = next(name for index, name in enumerate(names) if name in names[:index])
    return marked


# Numbers are left as they are: nothing here looks at them, and long ones are not worth converting.
_SCANNER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_no_constant)
_PAIRS_SCANNER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_no_constant, object_pairs_hook=_pairs)


def spans(text: str, origin: Position) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each JSON value in a stream; raise ``SyntaxProblem`` where it is broken."""
    begin = _skip(text, 0)
    while begin < len(text):
        try:
            end = value_end(text, begin)
        except json.JSONDecodeError as error:
            raise SyntaxProblem(position_at(text, error.pos, origin), f"broken JSON: {error.msg}") from None
        except ValueError as error:
            raise SyntaxProblem(position_at(text, begin, origin), f"broken JSON: {error}") from None
        except RecursionError:
            raise SyntaxProblem(position_at(text, begin, origin), "nested too deeply") from None
        yield begin, end
        begin = _skip(text, end)


def duplicate_keys(text: str) -> list[FieldPath]:
    """Return the paths of the keys that an object sets a second time."""
    value, _ = _PAIRS_SCANNER.raw_decode(text, _skip(text, 0))
    found: list[FieldPath] = []
    waiting: list[tuple[FieldPath, Plain]] = [((), value)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, _Twice):
            found.append((*path, value.key))
        if isinstance(value, dict):
            waiting.extend(((*path, key), item) for key, item in value.items())
        elif isinstance(value, list):
            waiting.extend(((*path, index), item) for index, item in enumerate(value))
    return found


class Positions:
    """Where the fields of a JSON text are, which begins at ``origin``. What is broken is not looked into."""

    def __init__(self, text: str, origin: Position) -> None:
        self._text = text
        self._origin = origin
        self._members: dict[int, dict[str | int, tuple[int, int]]] = {}
        self._counted = (0, origin[0])  # an offset and its line, to count from

    def locate(self, path: FieldPath) -> Position:
        """Return where the field at ``path`` is, or the nearest ancestor that exists."""
        begin = value_begin = _skip(self._text, 0)
        for step in path:
            members = self._members_at(value_begin)
            if step not in members:
                break
            begin, value_begin = members[step]
        return self._position(begin)

    def _position(self, offset: int) -> Position:
        """Return line and column of an offset, counting from the last one: neighbours are asked for together."""
        counted, line = self._counted
        text = self._text
        if offset >= counted:
            line += text.count("\n", counted, offset)
        else:
            line -= text.count("\n", offset, counted)
        self._counted = (offset, line)
        line_start = text.rfind("\n", 0, offset) + 1
        return line, offset - line_start + (1 if line_start else self._origin[1])

    def _members_at(self, begin: int) -> dict[str | int, tuple[int, int]]:
        """Return, for the object or list at an offset, where each member (its key or item) and its value begin."""
        if begin not in self._members:
            found = self._members[begin] = {}
            with suppress(ValueError, RecursionError):
                found.update((key, (start, value)) for key, (start, _, value) in members(self._text, begin))
        return self._members[begin]


def members(text: str, begin: int) -> Iterator[tuple[str | int, Span]]:
    """Yield the members of the object or the items of the list at an offset."""
    if text[begin : begin + 1] == "{":
        yield from _scan_object(text, begin + 1)
    elif text[begin : begin + 1] == "[":
        yield from _scan_list(text, begin + 1)


def _scan_object(text: str, offset: int) -> Iterator[tuple[str | int, Span]]:
    offset = _skip(text, offset)
    while text[offset : offset + 1] != "}":
        key, key_end = _SCANNER.raw_decode(text, offset)
        colon = _COLON.match(text, key_end)
        if colon is None:
            return
        yield key, (offset, key_end, colon.end())
        offset = _after_comma(text, value_end(text, colon.end()))


def _scan_list(text: str, offset: int) -> Iterator[tuple[str | int, Span]]:
    offset = _skip(text, offset)
    index = 0
    while text[offset : offset + 1] != "]":
        yield index, (offset, offset, offset)
        offset = _after_comma(text, value_end(text, offset))
        index += 1


def _after_comma(text: str, offset: int) -> int:
    comma = _COMMA.match(text, offset)
    assert comma is not None
    return comma.end()


def _skip(text: str, offset: int) -> int:
    spaces = _SPACES.match(text, offset)
    assert spaces is not None
    return spaces.end()


def value_end(text: str, begin: int) -> int:
    """Return where the value that begins at an offset ends."""
    return _SCANNER.raw_decode(text, begin)[1]
