r"""The strict reading of YAML: everything Kubernetes reads, with the position of every key.

PyYAML's binding of libyaml supplies the events (go-yaml is a translation of libyaml, so the two agree on syntax);
what they mean is decided here as go-yaml v2 does for Kubernetes: scalars by ``scalars``, merge keys, aliases with a
bound on what they expand to. A key that is set twice is reported; the last one counts, as for kubectl. The one escape
that go-yaml knows and libyaml does not is ``\'`` in double quotes.

This is the reading that reports. It knows notation and positions, not Kubernetes objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Protocol, cast

from msgspec import Struct

from podqos.manifest.placeholders import TEMPLATE, line_hint
from podqos.manifest.plain import FieldPath, Plain
from podqos.manifest.problems import Position, SyntaxProblem, position_at
from podqos.manifest.scalars import Scalar, UnfitScalar, resolve, resolve_key, resolve_tagged
from podqos.manifest.text import decode

if TYPE_CHECKING:
    from yaml.error import MarkedYAMLError
    from yaml.events import CollectionStartEvent, Event, ScalarEvent

# go-yaml rejects documents in which almost everything comes out of aliases (decode.go: allowedAliasRatio).
_FREE_ALIASED_NODES = 100
_FREE_NODES = 1_000
_SMALL_NODES, _SMALL_RATIO = 400_000, 0.99
_LARGE_NODES, _LARGE_RATIO = 4_000_000, 0.10
# No manifest is nested like this; it keeps whatever walks the values from running out of stack.
_DEEPEST = 200
_KEY_AND_VALUE = re.compile(r"[\w.-]{1,40}:[ \t]+[^\s#|>&!]\S{0,60}")
_MERGE_TAG = "tag:yaml.org,2002:merge"


class _Parser(Protocol):
    """The part of PyYAML's parsers that is used here."""

    def get_event(self) -> Event:
        """Return the next event."""


class Document(Struct, frozen=True):
    """One document and where everything in it is."""

    value: Plain
    position: Position
    positions: dict[int, dict[str | int, Position]]
    """Of each mapping and list, by ``id``: where its keys or items are."""
    problems: tuple[SyntaxProblem, ...] = ()
    located: list[Plain] = []
    """All of these, so that no other value takes the ``id`` of one that a second key of its name replaced."""

    @property
    def has_value(self) -> bool:
        """Whether the document has a value despite its problems."""
        return all(problem.keeps_value for problem in self.problems)

    def locate(self, path: FieldPath) -> Position:
        """Return where the field at ``path`` is, or the nearest ancestor that exists."""
        value, position = self.value, self.position
        for step in path:
            here = self.positions.get(id(value), {})
            if step not in here:
                break
            position = here[step]
            value = value[step]  # type: ignore[index] # positions has only what value has
        return position


def read_documents(text: bytes, first_line: int = 1) -> Iterator[Document]:
    """Yield the documents of ``text``, which begins on ``first_line``; raise ``SyntaxProblem`` where it is broken."""
    import yaml

    string = decode(text, (first_line, 1))
    parsable, apostrophe = without_escaped_apostrophes(string)
    parser = _parser(text if parsable is string else parsable.encode())
    try:
        while True:
            event = parser.get_event()
            if isinstance(event, yaml.StreamEndEvent):
                return
            if isinstance(event, yaml.DocumentStartEvent):
                yield _Builder(parser, first_line, apostrophe).document()
    except SyntaxProblem as problem:
        problem.fix = TEMPLATE if "{{" in string else problem.fix
        raise
    except yaml.MarkedYAMLError as error:
        raise _broken(error, string, first_line) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position].decode(errors="ignore")
        what = f"character U+{_code(error.character):04X} is not allowed in YAML"
        raise SyntaxProblem(position_at(before, len(before), (first_line, 1)), what, "remove it") from None


def _parser(text: bytes) -> _Parser:
    import yaml

    return cast("_Parser", (yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader)(text))


_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_IN_DOUBLE_QUOTES = re.compile(r'(?:[^"\\]|\\.)*', re.DOTALL)
# Escapes as long as ``\'`` that no manifest needs, and the character each stands for.
_STAND_INS = {"a": "\a", "e": "\x1b", "v": "\v", "f": "\f", "b": "\b", "0": "\0"}
_MOST_APOSTROPHES = 200  # scalars that hold some; every one is another start of the parser


def without_escaped_apostrophes(text: str) -> tuple[str, str]:
    r"""Return the text with another escape for each ``\'`` in double quotes, and the character that one stands for.

    Positions stay. Without such escapes the text is returned as it is, with an empty character.
    """
    if "\\'" not in text:
        return text, ""
    import yaml

    free = (
        (letter, character)
        for letter, character in _STAND_INS.items()
        if f"\\{letter}" not in text and not re.search(rf"(?i)\\(?:x|u00|U000000){ord(character):02x}", text)
    )
    letter, stand_in = next(free, ("", ""))
    changed = text
    for _ in range(_MOST_APOSTROPHES if letter else 0):
        parser = _parser(changed.encode())
        try:
            while not isinstance(parser.get_event(), yaml.StreamEndEvent):
                pass
        except yaml.MarkedYAMLError as error:
            at = error.problem_mark.index if error.problem_mark else 0
            if not changed.startswith("\\'", at) or "unknown escape" not in str(error.problem):
                break
            rest = _IN_DOUBLE_QUOTES.match(changed, at)
            assert rest is not None
            replaced = _ESCAPE.sub(lambda each: f"\\{letter}" if each[1] == "'" else each[0], rest[0])
            changed = changed[:at] + replaced + changed[rest.end() :]
        except yaml.reader.ReaderError:
            break
        else:
            break
    return (text, "") if changed == text else (changed, stand_in)


def _code(character: str | bytes | int) -> int:
    return character if isinstance(character, int) else ord(character)


def _broken(error: MarkedYAMLError, text: str, first_line: int) -> SyntaxProblem:
    """Return the parser's complaint, with a word on what usually causes it."""
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark else (0, 0)
    what = f"broken YAML: {error.problem or 'cannot be read'}" + (f" {error.context}" if error.context else "")
    from podqos.manifest.pasted import paste_hint

    written = next(islice(text.splitlines(), line, None), "")
    fix = ""
    if "\t" in written[: len(written) - len(written.lstrip())]:
        fix = "indent with spaces, not tabs"
    elif "{{" in text:
        fix = TEMPLATE
    elif hint := line_hint(written):
        fix = hint
    elif pasted := paste_hint(text, line, error.context_mark.line if error.context_mark else line, first_line):
        fix = pasted
    elif (above := _key_and_value_above(text, line)) and "mapping values are not allowed" in (error.problem or ""):
        fix = f'"{above}" already has a value: start a list item with a dash ("- {above}"), or indent both lines alike'
    elif error.context_mark and error.context_mark.line != line:
        fix = f"that began on line {error.context_mark.line + first_line}"
    return SyntaxProblem((line + first_line, column + 1), what, fix)


def _key_and_value_above(text: str, line: int) -> str:
    """Return the line above where that has both a key and a value, and ``line`` is indented further; else nothing."""
    lines = text.splitlines()[: line + 1]
    here = lines.pop() if lines else ""
    above = next((line for line in reversed(lines) if line.strip() and not line.lstrip().startswith("#")), "")
    indented = len(here) - len(here.lstrip()) > len(above) - len(above.lstrip())
    return above.strip() if indented and _KEY_AND_VALUE.fullmatch(above.strip()) else ""


class _Frame(Struct):
    """A mapping or list that is being filled."""

    value: dict[str, Plain] | list[Plain]
    position: Position
    anchor: str | None
    nodes_before: int
    key: str | None = None
    """The key whose value comes next."""
    key_position: Position = (0, 0)
    is_merge: bool = False
    own_keys: dict[str, Position] = {}
    """The keys this mapping sets itself, as opposed to those it merges in."""

    @property
    def awaits_key(self) -> bool:
        return self.key is None and isinstance(self.value, dict)


class _Anchored(Struct, frozen=True):
    """What an anchor stands for, and how many nodes that is when written out."""

    value: Plain
    nodes: int


class _Builder:
    """Builds one document out of the parser's events."""

    def __init__(self, parser: _Parser, first_line: int, apostrophe: str) -> None:
        self._parser = parser
        self._first_line = first_line
        self._apostrophe = apostrophe  # what stands for one in double quotes
        self._frames: list[_Frame] = []
        self._anchors: dict[str, _Anchored | None] = {}  # None: the anchored node is still being read
        self._nodes = 0
        self._aliased_nodes = 0
        self._positions: dict[int, dict[str | int, Position]] = {}
        self._located: list[Plain] = []
        self._problems: list[SyntaxProblem] = []
        self._root: Plain = None
        self._root_position: Position = (first_line, 1)

    def document(self) -> Document:
        """Read up to the end of the document."""
        import yaml

        while True:
            event = self._parser.get_event()
            mark = event.start_mark
            assert mark is not None
            position = mark.line + self._first_line, mark.column + 1
            if isinstance(event, yaml.ScalarEvent):
                self._nodes += 1
                self._take_scalar(event, position)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._nodes += 1
                self._open(event, position, is_mapping=isinstance(event, yaml.MappingStartEvent))
            elif isinstance(event, yaml.CollectionEndEvent):
                frame = self._frames.pop()
                self._remember(frame.anchor, frame.value, self._nodes - frame.nodes_before)
                self._put(frame.value, frame.position)
            elif isinstance(event, yaml.AliasEvent):
                self._take_alias(str(event.anchor), position)
            else:
                return Document(self._root, self._root_position, self._positions, tuple(self._problems), self._located)

    def _take_scalar(self, event: ScalarEvent, position: Position) -> None:
        if self._frames and self._frames[-1].awaits_key:
            key = self._read(event, position, as_key=True)
            assert isinstance(key, str)
            is_merge = event.value == "<<" and (event.implicit[0] or event.tag == _MERGE_TAG)
            self._take_key(key, position, is_merge=is_merge)
            self._remember(event.anchor, key, 1)
        else:
            value = self._read(event, position, as_key=False)
            self._remember(event.anchor, value, 1)
            self._put(value, position)

    def _read(self, event: ScalarEvent, position: Position, *, as_key: bool) -> Scalar:
        """Return what a scalar means; a quoted one without a tag is a text."""
        is_plain, is_quoted = event.implicit
        try:
            if is_quoted:
                return event.value.replace(self._apostrophe, "'") if self._apostrophe else event.value
            if is_plain:
                return resolve_key(event.value) if as_key else resolve(event.value)
            value = resolve_tagged(event.value, str(event.tag))
            return resolve_key(event.value) if as_key and not isinstance(value, str) else value
        except UnfitScalar as error:
            self._problems.append(SyntaxProblem(position, str(error), "put it in quotes"))
            return event.value

    def _open(self, event: CollectionStartEvent, position: Position, *, is_mapping: bool) -> None:
        if self._frames and self._frames[-1].awaits_key:
            raise SyntaxProblem(position, "a mapping or list cannot be a key", "JSON keys are strings")
        if len(self._frames) >= _DEEPEST:
            raise SyntaxProblem(position, f"nested more than {_DEEPEST} levels deep")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        value: dict[str, Plain] | list[Plain] = {} if is_mapping else []
        self._frames.append(_Frame(value, position, event.anchor, self._nodes - 1))

    def _take_alias(self, anchor: str, position: Position) -> None:
        anchored = self._anchors.get(anchor)
        if anchored is None:
            what = f"anchor {anchor!r} contains itself" if anchor in self._anchors else f"unknown anchor {anchor!r}"
            raise SyntaxProblem(position, what)
        self._nodes += 1 + anchored.nodes
        self._aliased_nodes += anchored.nodes
        if (
            self._aliased_nodes > _FREE_ALIASED_NODES
            and self._nodes > _FREE_NODES
            and self._aliased_nodes / self._nodes > _allowed_ratio(self._nodes)
        ):
            what = f"document contains excessive aliasing: {self._nodes} nodes when written out"
            raise SyntaxProblem(position, what, "write the values out where they are used")
        if self._frames and self._frames[-1].awaits_key:
            if not isinstance(anchored.value, str):
                raise SyntaxProblem(position, f"*{anchor} cannot be a key: it is not a string")
            self._take_key(anchored.value, position, is_merge=False)
        else:
            self._put(anchored.value, position)

    def _remember(self, anchor: str | None, value: Plain, nodes: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = _Anchored(value, nodes)

    def _take_key(self, key: str, position: Position, *, is_merge: bool) -> None:
        frame = self._frames[-1]
        frame.key, frame.key_position, frame.is_merge = key, position, is_merge

    def _put(self, value: Plain, position: Position) -> None:
        """Add a finished value to what is being filled."""
        if not self._frames:
            self._root, self._root_position = value, position
            return
        frame = self._frames[-1]
        here = self._positions.get(id(frame.value))
        if here is None:
            here = self._positions[id(frame.value)] = {}
            self._located.append(frame.value)
        if isinstance(frame.value, list):
            here[len(frame.value)] = position
            frame.value.append(value)
            return
        assert frame.key is not None
        if frame.is_merge:
            self._merge(frame.value, value, position)
        else:
            if frame.key in frame.own_keys:
                line, _ = frame.own_keys[frame.key]
                what = f'key "{frame.key}" is set twice'
                fix = f"it is already set on line {line}"
                self._problems.append(SyntaxProblem(frame.key_position, what, fix, keeps_value=True))
            frame.own_keys[frame.key] = here[frame.key] = frame.key_position
            frame.value[frame.key] = value
        frame.key = None

    def _merge(self, into: dict[str, Plain], value: Plain, position: Position) -> None:
        """Merge mappings in; of several the first wins, and what came before ``<<`` in the mapping loses."""
        here = self._positions[id(into)]
        for source in reversed(value) if isinstance(value, list) else (value,):
            if not isinstance(source, dict):
                raise SyntaxProblem(position, "map merge requires map or sequence of maps as the value")
            into.update(source)
            here.update(self._positions.get(id(source), {}))


def _allowed_ratio(nodes: int) -> float:
    """Return how much of a document may come out of aliases: nearly all of a small one, little of a large one."""
    if nodes <= _SMALL_NODES:
        return _SMALL_RATIO
    if nodes >= _LARGE_NODES:
        return _LARGE_RATIO
    return _SMALL_RATIO - (_SMALL_RATIO - _LARGE_RATIO) * (nodes - _SMALL_NODES) / (_LARGE_NODES - _SMALL_NODES)
