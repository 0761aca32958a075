"""The nodes of a document in its text: from which character to which, and in which notation.

A reading keeps what a document says, an editor must know how it is written. For YAML the marks of libyaml's events
are kept; of JSON only those objects and lists are taken apart that differ between what the text says and what it
should say. Nothing here decides what to write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from podqos.manifest.plain import Plain
from podqos.manifest.scalars import resolve_key
from podqos.manifest.strictjson import members, value_end
from podqos.manifest.strictyaml import without_escaped_apostrophes

if TYPE_CHECKING:
    from yaml.events import CollectionStartEvent, Event, ScalarEvent

_PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*+(?:[ \t]*+(?:#[^\n]*+)?\n)*[ \t]*+)*")
_EXPLICIT_KEY = re.compile(r"(?:^|[{\[,])[ \t-]*\?[ \t]+(?:[&!]\S+[ \t]+)*$")


class Splice(Struct, frozen=True):
    """A piece of text to put in the place of another, by characters."""

    start: int
    end: int
    text: str


class YamlKind(StrEnum):
    """What a node is."""

    SCALAR = "scalar"
    MAPPING = "mapping"
    SEQUENCE = "sequence"
    ALIAS = "alias"


class YamlNode(Struct):
    """A value in a text."""

    kind: YamlKind
    start: int
    """Where its content begins, after anchor and tag."""
    end: int = 0
    """Behind the last character that belongs to it."""
    style: str = ""
    """Of a scalar: the character it begins with, where that says something (quotes, ``|``, ``>``)."""
    is_flow: bool = False
    """Whether it is a mapping or sequence in brackets."""
    anchor: str | None = None
    """Of an alias: the anchor it refers to."""
    has_tag: bool = False
    members: list[Member] = []
    items: list[YamlNode] = []

    @property
    def is_block(self) -> bool:
        """Whether it is a mapping or sequence that is held together by indentation."""
        return self.kind in (YamlKind.MAPPING, YamlKind.SEQUENCE) and not self.is_flow

    def below(self) -> Iterator[YamlNode]:
        """Yield the node and everything in it."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += node.items
            waiting += [member.value for member in node.members]


class Member(Struct):
    """A key of a mapping with its value."""

    key: str | None
    """None if it is no simple text: an alias, a merge key or what follows ``?``."""
    start: int
    key_end: int
    key_style: str
    value: YamlNode
    is_merge: bool = False


def column_of(text: str, offset: int) -> int:
    """Return how many characters are before an offset on its line."""
    return offset - (text.rfind("\n", 0, offset) + 1)


def line_end(text: str, offset: int) -> int:
    """Return where the line of an offset ends."""
    end = text.find("\n", offset)
    return len(text) if end < 0 else end


def yaml_document(text: str, number: int) -> YamlNode:
    """Return the root of a document; the text was read before, so it is known to be in order."""
    import yaml

    parsable, apostrophe = without_escaped_apostrophes(text)
    parser = (yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader)(parsable.encode())
    events: Iterator[Event] = iter(parser.get_event, None)
    starts = (event for event in events if isinstance(event, yaml.DocumentStartEvent))
    next(islice(starts, number, None))
    return _Composer(text, apostrophe).compose(events)


class _Composer:
    """Builds the nodes of one document out of the parser's events."""

    def __init__(self, text: str, apostrophe: str) -> None:
        self._text = text
        self._apostrophe = apostrophe  # what stands for one in double quotes
        self._open: list[YamlNode] = []
        self._keys: list[ScalarEvent | Event | None] = []

    def compose(self, events: Iterator[Event]) -> YamlNode:
        """Take events up to the end of the root."""
        import yaml

        for event in events:
            if isinstance(event, yaml.CollectionEndEvent):
                node = self._close(event)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._begin(event, YamlKind.MAPPING if isinstance(event, yaml.MappingStartEvent) else YamlKind.SEQUENCE)
                continue
            elif self._awaits_key:
                self._keys[-1] = event
                continue
            else:
                node = self._leaf(event)
            if not self._open:
                return node
            self._add(node)
        raise AssertionError("a document that was read ends")

    @property
    def _awaits_key(self) -> bool:
        return bool(self._open) and self._open[-1].kind is YamlKind.MAPPING and self._keys[-1] is None

    def _begin(self, event: CollectionStartEvent, kind: YamlKind) -> None:
        start, end = _marks(event)
        node = YamlNode(
            kind,
            self._content(start) if event.anchor or event.tag else start,
            end,
            is_flow=bool(event.flow_style),
            anchor=event.anchor,
            has_tag=event.tag is not None,
            members=[],
            items=[],
        )
        self._open.append(node)
        self._keys.append(None)

    def _close(self, event: Event) -> YamlNode:
        node = self._open.pop()
        self._keys.pop()
        if node.is_flow:
            node.end = _marks(event)[1]
        elif node.members:
            node.start, node.end = node.members[0].start, node.members[-1].value.end
        elif node.items:
            node.end = node.items[-1].end
        return node

    def _leaf(self, event: Event) -> YamlNode:
        import yaml

        start, end = _marks(event)
        if isinstance(event, yaml.AliasEvent):
            return YamlNode(YamlKind.ALIAS, start, end, anchor=str(event.anchor))
        assert isinstance(event, yaml.ScalarEvent)
        has_tag = event.tag is not None and not event.implicit[0]
        if event.anchor or event.tag is not None:
            start = min(self._content(start), end)
        style = event.style if event.style in ("'", '"', "|", ">") else ""
        if style in ("|", ">"):
            end = self._block_scalar_end(start, end)
        return YamlNode(YamlKind.SCALAR, start, end, style, anchor=event.anchor, has_tag=has_tag)

    def _block_scalar_end(self, start: int, end: int) -> int:
        """Leave out the empty lines after a block scalar, unless it keeps them."""
        header = self._text[start : line_end(self._text, start)].partition(" #")[0]
        written = self._text[start:end]
        return start + len(written.removesuffix("\n") if "+" in header else written.rstrip("\n"))

    def _add(self, node: YamlNode) -> None:
        parent = self._open[-1]
        if parent.kind is YamlKind.SEQUENCE:
            parent.items.append(node)
            return
        event = self._keys[-1]
        assert event is not None
        self._keys[-1] = None
        parent.members.append(self._member(event, node))

    def _member(self, event: Event, value: YamlNode) -> Member:
        import yaml

        start, end = _marks(event)
        line_start = start - column_of(self._text, start)
        if not isinstance(event, yaml.ScalarEvent) or _EXPLICIT_KEY.search(self._text[line_start:start]):
            return Member(None, start, end, "", value)
        is_plain, is_quoted = event.implicit
        if event.value == "<<" and is_plain:
            return Member(None, start, end, "", value, is_merge=True)
        if event.anchor or not (is_plain or is_quoted):
            return Member(None, start, end, "", value)
        key = resolve_key(event.value) if not is_quoted else event.value
        if self._apostrophe and is_quoted:
            key = key.replace(self._apostrophe, "'")
        return Member(key, start, end, event.style if event.style in ("'", '"') else "", value)

    def _content(self, start: int) -> int:
        """Return what follows the anchor and tag at an offset."""
        properties = _PROPERTIES.match(self._text, start)
        assert properties is not None
        return properties.end()


def _marks(event: Event) -> tuple[int, int]:
    """Return where an event begins and ends, in characters."""
    assert event.start_mark is not None
    assert event.end_mark is not None
    return event.start_mark.index, event.end_mark.index


def json_value(text: str, start: int, old: Plain, new: Plain) -> YamlNode:
    """Return the node of a JSON value, taken apart where ``new`` is not the very same object as ``old``."""
    end = value_end(text, start)
    if isinstance(old, dict):
        node = YamlNode(YamlKind.MAPPING, start, end, is_flow=True, members=[])
        for key, (key_start, key_end, begin) in () if old is new else members(text, start):
            assert isinstance(key, str)
            after = new.get(key) if isinstance(new, dict) else None
            value = json_value(text, begin, old.get(key), after)
            node.members.append(Member(key, key_start, key_end, '"', value))
        return node
    if isinstance(old, list):
        node = YamlNode(YamlKind.SEQUENCE, start, end, is_flow=True, items=[])
        for index, (_, _, begin) in () if old is new else members(text, start):
            assert isinstance(index, int)
            after = new[index] if isinstance(new, list) and index < len(new) else None
            node.items.append(json_value(text, begin, old[index], after))
        return node
    return YamlNode(YamlKind.SCALAR, start, end, '"' if text[start] == '"' else "")
