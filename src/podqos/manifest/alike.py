"""Items of a long list that are written alike: most objects of a cluster are, but for names, times and amounts.

The shape of an item is its text without values that are surely a text, an amount or a whole number. From the second of
a shape a template is made, by which the rest are read without parsing: what is in order, and where a value belongs,
depends on the shape alone. Items in which a value goes on in the next line are parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import count

import msgspec

from podqos.manifest.decode import PLAIN_DECODER
from podqos.manifest.fastyaml import NotPlain, has_odd_characters, read_plain
from podqos.manifest.plain import Plain
from podqos.manifest.scalars import WORDS

_FIRST, _FEW_ALIKE = 1_000, 0.1
"""If fewer of the first items are like others, nothing is gained by looking at the rest."""
_MOST_SHAPES, _MOST_TEMPLATES = 100_000, 2_000
_LONGEST = 1 << 16
"""A longer item is parsed."""

# What decides how an object is read is a part of the shape, and what tells of an end: words of an API, exit codes.
_OF_SHAPE = ("apiVersion", "kind", "phase", "qosClass", "reason", "status", "type", "exitCode", "signal")
_KEPT = "".join(rf"(?<!{key}: )" for key in _OF_SHAPE)
_WORD = "|".join(re.escape(word) for word in WORDS if word)
_IN_PLAIN = r"[^:#'\"\[\]{},\\\t\n]"
_PLAIN = rf"(?!(?:{_WORD})[ ]*\n)[A-Za-z/]{_IN_PLAIN}*+(?::(?=[^ :#'\"\[\]{{}},\\\t\n]){_IN_PLAIN}*+)*(?<! )"
_HEX = r"[0-9a-f]++-[0-9a-f]++-[0-9a-f-]++"
_ADDRESS = r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}"
# Letters after digits that are of no number, and a digit after them as in no amount.
_HASH = r"(?:[1-9][0-9]*+(?:e[0-9]*+|)[a-df-z]|0[0-9]*+[acdf-np-wyz])[a-z-]*+[0-9][a-z0-9-]*+"
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]++Z"
_QUOTED = rf"(?:[A-Za-z/*{{\[(]|{_TIME}(?=[\"']))[^'\"\\\n\t]*+"
_TEXT = rf"(?:{_PLAIN}|\"{_QUOTED}\"|'{_QUOTED}'|{_HEX}|{_ADDRESS}|{_HASH})"
# Texts that are amounts where one is needed.
_AMOUNT = r"(?:[0-9]{1,9}(?:m|k|[KMGT]i|[MGT])|\"[0-9]{1,15}\"|'[0-9]{1,15}')"
_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
# A text that has quotes or brackets inside: in order as it is, and in no template.
_ROUGH = rf"(?!(?:{_WORD})[ ]*\n)[A-Za-z/][^:#\\\t\n]*+(?::(?=[^ :#\\\t\n])[^:#\\\t\n]*+)*(?<! )"
_ROUGH_MARK = "\4"
_LEFT_OUT = tuple(
    (re.compile(rf": {_KEPT}{value}\n"), f":{mark}\n")
    for value, mark in ((_TEXT, "\1"), (_AMOUNT, "\2"), (_NUMBER, "\3"), (_ROUGH, _ROUGH_MARK))
)
_VALUE = re.compile(rf": {_KEPT}({_TEXT}|{_AMOUNT}|{_NUMBER})\n")
# What goes on in the next line, or may.
_OPEN = re.compile(
    r"""(?:: |- )(?:"[^"\\\n]*+(?:\\.[^"\\\n]*+)*\n|'[^'\n]*+(?:''[^'\n]*+)*\n|[\[{](?![^\[\]{}\n]*[\]}]\n))"""
)
_BLOCK = re.compile(r"(?:: |- )[|>]")
_NUMBERED = 7_310_000_000
_MARK = re.compile(r"Value[0-9]++of|731[0-9]{7}")
"""What is put in the places of values to see where they belong."""
_NO_SHAPE = ""
NEXT_ITEM = b"\n- "
BEHIND_ITEMS = re.compile(rb"\n(?!- |[ \n#]|\Z)")
"""Where a list ends whose items begin with a dash at the beginning of a line."""


class _Template:
    """What items of one shape say, as JSON with gaps; raises ``NotPlain`` where there can be none."""

    def __init__(self, item: str) -> None:
        text = item + "\n"
        if _OPEN.search(text) is not None or _BLOCK.search(text) is not None or _MARK.search(text) is not None:
            raise NotPlain
        numbers = count()

        def mark(found: re.Match[str]) -> str:
            number = next(numbers)
            return f": {_NUMBERED + number}\n" if found[1].isdecimal() else f": Value{number}of\n"

        marked = _VALUE.sub(mark, text)[:-1]
        marks = ((line, _MARK.search(own)) for line, own in enumerate(marked.split("\n")))
        self._places = {found[0]: (line, found.start()) for line, found in marks if found is not None}
        """Line and column of each value, by the mark in its place."""
        self._used: list[tuple[int, int]] = []
        self._text = self._of(_parsed(marked))

    def _of(self, value: Plain) -> str:
        if isinstance(value, dict):
            return "{" + ",".join(f"{_text_of(key)}:{self._of(own)}" for key, own in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ",".join(map(self._of, value)) + "]"
        if isinstance(value, float):
            raise NotPlain
        place = None if isinstance(value, bool) else self._places.get(str(value))
        if place is None:
            return _text_of(value)
        self._used.append(place)
        return '"%s"' if isinstance(value, str) else "%s"

    def value(self, item: str) -> Plain:
        """Return what an item of this shape says."""
        lines = item.split("\n")
        values = tuple([lines[line][column:].strip("\"'") for line, column in self._used])
        value: Plain = PLAIN_DECODER.decode(self._text % values)
        return value


def _text_of(value: Plain) -> str:
    return msgspec.json.encode(value).decode().replace("%", "%%")


class AlikeItems:
    """Reads the items of a list one after the other; what no model reads may be missing."""

    def __init__(self) -> None:
        self._templates: dict[int, _Template | None] = {}
        """By shape; None: it was seen once, or has to be parsed."""
        self._tried: set[int] = set()
        self._seen = self._alike = 0

    def split(self, data: bytes) -> Iterator[tuple[str, str]]:
        """Yield the items in a part of a list, each with its shape; raise ``NotPlain`` for what is not plain."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise NotPlain from None
        if not (text.startswith("- ") and text.endswith("\n")) or has_odd_characters(data, text):
            raise NotPlain
        items = shapes = items_in(text)
        if self._seen < _FIRST or self._alike > self._seen * _FEW_ALIKE:
            for pattern, mark in _LEFT_OUT:
                text = pattern.sub(mark, text)
            shapes = items_in(text)
        else:
            shapes = [_NO_SHAPE] * len(items)
        self._seen += len(items)
        yield from zip(items, shapes, strict=True)

    def note_alike(self) -> None:
        """Note that an item was like others."""
        self._alike += 1

    def value(self, item: str, shape: str) -> Plain:
        """Return what an item says, or raise ``NotPlain``."""
        if shape == _NO_SHAPE or len(item) > _LONGEST or _ROUGH_MARK in shape:
            return _parsed(item)
        key = hash(shape)
        template = self._templates.get(key)
        if template is not None:
            self._alike += 1
            return template.value(item)
        value = _parsed(item)
        if key in self._tried:
            return value
        if key not in self._templates:
            if len(self._templates) < _MOST_SHAPES:
                self._templates[key] = None
            return value
        self._tried.add(key)
        if len(self._tried) <= _MOST_TEMPLATES:
            with suppress(NotPlain):
                template = _Template(item)
                if template.value(item) == value:
                    self._templates[key] = template
        return value


def is_closed(item: str) -> bool:
    """Whether all brackets and quotes are closed in the line where they are opened."""
    return _OPEN.search(item + "\n") is None


def items_in(text: str) -> list[str]:
    """Return items without what is before the first key and behind the last value of each."""
    return text[2:-1].split("\n- ")


def _parsed(item: str) -> Plain:
    values = read_plain(f"- {item}\n".encode(), skims=True)
    if not isinstance(values, list) or len(values) != 1:
        raise NotPlain
    return values[0]
