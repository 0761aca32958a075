"""The fast reading of YAML: plain documents only, line by line.

Most manifests use a small part of YAML: one ``key: value`` per line, list items, block scalars, flow lists that
fit on a line. And they repeat themselves: of a thousand lines a few dozen are new. So a line is parsed once, by one
regular expression, and remembered; reading a document is then little more than looking its lines up and hanging
the values into mappings and lists by their indentation.

Everything else (anchors, tags, tabs, odd characters, a key set twice, a nesting that does not add up, whatever might be
broken) raises ``NotPlain`` and is read by ``strictyaml``, which decides. What is admitted here means the same there:
scalars are resolved by the same functions, and a property test holds the two readings equal. Nothing is reported from
here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from podqos.manifest.plain import Plain
from podqos.manifest.scalars import Scalar, UnfitScalar, resolve, resolve_key


class NotPlain(Exception):
    """The document is not plain enough to be read here."""


# ---- one line -----------------------------------------------------------------------------------------------------

# Python before 3.11.5 mishandles possessive quantifiers behind groups, so only single characters have one. What may be
# missing is an empty alternative, which is as fast. What a group gives back fails at its next character, so every
# pattern takes linear time.
_DOUBLE_QUOTED = r'"[^"\\\n]*+(?:\\["\\/nt][^"\\\n]*+)*"'
_SINGLE_QUOTED = r"'[^'\n]*+(?:''[^'\n]*+)*'(?!')"
# An unquoted scalar does not begin with an indicator; it holds a colon or a number sign only inside a word.
_UNQUOTED = (
    r"(?:[^-?:,\[\]{}\#&*!|>'\"%@`\x00-\x20]|-(?=[^\s]))[^:\#\n]*+"
    r"(?:(?![:\#])|(?:(?::(?=[^ \n])|(?<=[^ ])\#)[^:\#\n]*+)*)"  # most hold neither
)
_KEY = r"""(?:[\w$/.][^:\#\s]*+(?::(?=[^\s])[^:\#\s]*+)*|"[^"\\\n]++"|'[^'\n]++')"""
# Inside brackets, unquoted scalars are single words of harmless characters.
_FLOW_SCALAR = rf"(?:{_DOUBLE_QUOTED}|{_SINGLE_QUOTED}|-{{0,2}}+[\w/.$][\w/.$=+-]*+(?=[ ]*+[,\]}}]))"
_FLOW_KEY = r"[\w$/.-]++"
_FLOW_ENTRY = rf"{_FLOW_KEY}:[ ]++{_FLOW_SCALAR}"
_FLOW = (
    rf"\[[ ]*+(?:{_FLOW_SCALAR}[ ]*+(?:,[ ]*+{_FLOW_SCALAR}[ ]*+)*)?\]"
    rf"|\{{[ ]*+(?:{_FLOW_ENTRY}[ ]*+(?:,[ ]*+{_FLOW_ENTRY}[ ]*+)*)?\}}"
)
# Stands for the text of a block scalar, which is read beforehand; no plain document holds this character.
_BLOCK_MARK = "\x01"

_LINE = re.compile(
    rf"""
      ([ ]*+) (?: (-[ ]++) |)
      (?: ({_KEY}): (?:[ ]++|\Z) |)
      (?: ({_UNQUOTED}|{_DOUBLE_QUOTED}|{_SINGLE_QUOTED}) | ({_FLOW}) | ({_BLOCK_MARK}) |)
      [ ]*+ (?: (?<=[ ])\#.*+ |)
    | \#.*+
    """,
    re.VERBOSE | re.ASCII,
)
_FLOW_PART = re.compile(rf"(?:({_FLOW_KEY}):[ ]++|)({_FLOW_SCALAR})", re.ASCII)

# What a line does. (Plain integers: the members of an enum are too slow to look up for every line.)
SAYS_NOTHING = 0
_SETS_KEY = 1  # key: value
SETS_BARE_KEY = 2  # key:       a mapping or list may follow, otherwise the value is null
_ADDS_ITEM = 3  # - value
_ADDS_MAPPING = 4  # - key: value
_ADDS_MAPPING_WITH_BARE_KEY = 5  # - key:
CONTINUES = 6  # more words of the unquoted scalar on the line before
ENDS_IN_BARE_KEY = (SETS_BARE_KEY, _ADDS_MAPPING_WITH_BARE_KEY)
# Added to it: the value is the next block scalar, or a flow collection of which every reader gets a copy.
TAKES_VALUE = 8

_Line = tuple[int, int, str, Plain, int]
"""What it does, column, key, value, column behind the dash."""
_NOTHING: _Line = (SAYS_NOTHING, -1, "", None, 0)


class _Lines(dict[str, _Line]):
    """Every line seen so far."""

    def __missing__(self, text: str) -> _Line:
        line = _parse_line(text)
        if len(text) <= _REMEMBERED_LENGTH:
            if len(self) >= _REMEMBERED_LINES:
                self.clear()
            self[text] = line
        return line


_LONGEST_LINE = 1_000_000  # matching takes up to a hundred times as many bytes as a line has characters
_LONGEST_KEY = 1_000  # libyaml looks no further than 1024 characters for the colon
_REMEMBERED_LINES = 50_000
_REMEMBERED_LENGTH = 200
remembered_lines = _Lines()


def _parse_line(text: str) -> _Line:
    matched = _LINE.fullmatch(text) if len(text) <= _LONGEST_LINE else None
    if matched is None:
        raise NotPlain
    indent, dash, key, scalar, flow, block = matched.groups()
    if block is None and _BLOCK_MARK in text:  # what looked like a block scalar stood inside quotes
        raise NotPlain
    value: Plain = None
    if scalar is not None:
        value = _scalar(scalar)
    elif flow is not None:
        value = _flow(flow)
    elif block is None and key is None:
        if dash is not None:
            raise NotPlain
        return _NOTHING
    has_value = scalar is not None or flow is not None or block is not None
    if key is not None:
        bare, full = (SETS_BARE_KEY, _SETS_KEY) if dash is None else (_ADDS_MAPPING_WITH_BARE_KEY, _ADDS_MAPPING)
        action = full if has_value else bare
    elif dash is not None:
        action = _ADDS_ITEM
    elif isinstance(value, str) and is_open_ended(text):
        action = CONTINUES
    else:
        raise NotPlain
    if flow is not None or block is not None:
        action += TAKES_VALUE
    column = len(indent)
    return action, column, "" if key is None else _key(key), value, column + len(dash) if dash else 0


def is_open_ended(text: str) -> bool:
    """Whether a line ends in an unquoted scalar, which the next line may go on with."""
    matched = _LINE.fullmatch(text)
    scalar = matched[4] if matched else None
    return scalar is not None and not scalar.startswith(('"', "'")) and text.endswith(scalar)


def _scalar(text: str) -> Scalar:
    if text.startswith('"'):
        return str(msgspec.json.decode(text)) if "\\" in text else text[1:-1]
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    try:
        return resolve(text.rstrip(" "))
    except UnfitScalar:
        raise NotPlain from None


def _key(text: str) -> str:
    if len(text) > _LONGEST_KEY:
        raise NotPlain
    if text.startswith(('"', "'")):
        return text[1:-1]
    try:
        return resolve_key(text)
    except UnfitScalar:
        raise NotPlain from None


def _flow(text: str) -> dict[str, Plain] | list[Plain]:
    parts = _FLOW_PART.findall(text, 1)
    if text.startswith("["):
        return [_scalar(scalar) for _, scalar in parts]
    mapping: dict[str, Plain] = {_key(key): _scalar(scalar) for key, scalar in parts}
    if len(mapping) < len(parts):
        raise NotPlain
    return mapping


def flow_columns(text: str) -> Iterator[tuple[str | int, int]]:
    """Yield the keys or indexes of the flow collection on a line, each with the column where it begins."""
    matched = _LINE.fullmatch(text)
    assert matched is not None
    is_list = text.startswith("[", matched.start(5))
    for index, part in enumerate(_FLOW_PART.finditer(text, matched.start(5) + 1, matched.end(5))):
        yield (index, part.start(2) + 1) if is_list else (_key(part[1]), part.start(1) + 1)


# ---- scalars over several lines -----------------------------------------------------------------------------------

_BLOCK_SCALAR = re.compile(
    rf"""
    ^([ ]*+) (-[ ])? ({_KEY}:[ ]++)? ([|>]) ([-+]?+) \n
    ( \1 (?(2)[ ][ ]) ((?(3)[ ])[ ]*+) [^ \t\n][^\n]*+\n
      (?: \1 (?(2)[ ][ ]) \7 [^\n]*+\n | [ ]*+\n )* )
    """,
    re.VERBOSE | re.MULTILINE | re.ASCII,
)


def _take_block_scalars(text: str) -> tuple[str, list[str]]:
    """Return the document with marks for its block scalars, and their texts, last first."""
    texts: list[str] = []

    def take(matched: re.Match[str]) -> str:
        indent, dash, key, style, chomping, content, extra = matched.groups("")
        texts.append(_block_text(content, len(indent + dash + extra), style, chomping))
        return f"{indent}{dash}{key}{_BLOCK_MARK}\n"

    marked = _BLOCK_SCALAR.sub(take, text)
    if texts and not text.endswith("\n"):
        raise NotPlain  # it is subtle how such a text ends
    texts.reverse()
    return marked, texts


def _block_text(content: str, indentation: int, style: str, chomping: str) -> str:
    lines = [line[indentation:] for line in content.split("\n")[:-1]]
    trailing_lines = 0
    while not lines[-1]:
        lines.pop()
        trailing_lines += 1
    if style == ">" and any(not line or line[0] in " \t" for line in lines):
        raise NotPlain  # not every line break becomes a space
    text = ("\n" if style == "|" else " ").join(lines)
    if chomping == "-":
        return text
    return text + "\n" * (trailing_lines + 1 if chomping == "+" else 1)


_UNCLOSED = re.compile(r""": (?:'[^'\n]*+(?:''[^'\n]*+)*|"[^"\\\n]*+)\n""")
_QUOTED_LINES = re.compile(
    rf"""
    ^([ ]*+ (?:-[ ]++)? {_KEY}:[ ]++)
    ( ' [^'\n]*+ (?:''[^'\n]*+)* (?: \n[ ]++ (?=[^ '\n]) [^'\n]*+ (?:''[^'\n]*+)* )+ '
    | " [^"\\\n]*+ (?: \n[ ]++ (?=[^ "\n]) [^"\\\n]*+ )+ " )
    (?=[ ]*+\n)
    """,
    re.VERBOSE | re.MULTILINE | re.ASCII,
)
_LINE_BREAK = re.compile(r"[ ]*+\n[ ]*+")


def _join_quoted_lines(text: str) -> str:
    """Return the document with its quoted scalars on one line each: a line break inside quotes is a space."""
    return _QUOTED_LINES.sub(lambda matched: matched[1] + _LINE_BREAK.sub(" ", matched[2]), text)


# ---- a document ---------------------------------------------------------------------------------------------------

_COMMON_CHARACTERS = b"\t\n" + bytes(range(0x20, 0x7F))
# Of the others: control characters, those that end a line in YAML 1.1, and those it does not allow.
_ODD_CHARACTER = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

# What is nested deeper is left to the strict reading, which has a limit.
_DEEPEST = 100

_Collection = dict[str, Plain] | list[Plain]


def plain_text(data: bytes) -> str:
    """Return the text of a document that holds only harmless characters, or raise ``NotPlain``."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise NotPlain from None
    if data.translate(None, _COMMON_CHARACTERS) and _ODD_CHARACTER.search(text) is not None:
        raise NotPlain
    return text


def spans_lines(text: str) -> bool:
    """Whether a text may hold block scalars, or quoted ones that go on on the next line."""
    if ("|" in text or ">" in text) and _BLOCK_SCALAR.search(text) is not None:
        return True
    return _UNCLOSED.search(text) is not None


def read_plain(data: bytes) -> Plain:
    """Return what the one document in ``data`` says, or raise ``NotPlain``."""
    text = plain_text(data)
    block_texts: list[str] = []
    if "|" in text or ">" in text:
        text, block_texts = _take_block_scalars(text)
    if _UNCLOSED.search(text) is not None:
        text = _join_quoted_lines(text)
    if "\t" in text:
        raise NotPlain
    return _assemble(text.split("\n"), block_texts)


def _assemble(lines: list[str], block_texts: list[str]) -> Plain:
    """Hang the values of the lines into mappings and lists by their indentation."""
    root: _Collection | None = None
    # The collection that lines add to (a mapping or a list), and the column of its keys or dashes.
    mapping: dict[str, Plain] | None = None
    items: list[Plain] | None = None
    column = -1
    outer: list[tuple[dict[str, Plain] | None, list[Plain] | None, int]] = []
    last = _NOTHING  # the last line that said something
    text_before = ""
    remembered = remembered_lines
    for text in lines:
        line = remembered[text]
        action, at, key, value, behind_dash = line
        if at == column and action <= SETS_BARE_KEY and mapping is not None:  # most lines
            if key in mapping:
                raise NotPlain
            mapping[key] = value
            last = line
            text_before = text
            continue
        if action == SAYS_NOTHING:
            text_before = text
            continue
        if action == CONTINUES:
            if at <= column or not is_open_ended(text_before):
                raise NotPlain
            _continue(items if mapping is None else mapping, value)
            text_before = text
            continue

        # Find the collection that the line adds to.
        if at < column:
            while outer and at < column:
                mapping, items, column = outer.pop()
            if at != column:
                raise NotPlain
            last = _NOTHING
        if at > column or (behind_dash and mapping is not None):  # a new one
            inner: _Collection = [] if behind_dash else {}
            if mapping is not None and last[0] in ENDS_IN_BARE_KEY and len(outer) < _DEEPEST:
                mapping[last[2]] = inner
                outer.append((mapping, items, column))
            elif root is None and at == 0:
                root = inner
            else:
                raise NotPlain
            mapping, items = (None, inner) if isinstance(inner, list) else (inner, None)
            column = at
        elif mapping is None and not behind_dash:  # the mapping around a list that stands in the column of its key
            if not outer or outer[-1][2] != at:
                raise NotPlain
            mapping, items, column = outer.pop()

        # Add to it.
        if action > TAKES_VALUE:
            action -= TAKES_VALUE
            value = value.copy() if isinstance(value, (dict, list)) else block_texts.pop()
        if mapping is not None:
            if key in mapping:
                raise NotPlain
            mapping[key] = value
        else:
            assert items is not None
            if action == _ADDS_ITEM:
                items.append(value)
            else:
                outer.append((mapping, items, column))
                mapping = {key: value}
                items.append(mapping)
                items = None
                column = behind_dash
        last = line
        text_before = text
    return root


def _continue(collection: _Collection | None, words: Plain) -> None:
    """Add the words of another line to the last value, an unquoted scalar."""
    if isinstance(collection, dict):
        key, value = next(reversed(collection.items()))
        if isinstance(value, str):
            collection[key] = f"{value} {words}"
            return
    elif collection and isinstance(collection[-1], str):
        collection[-1] = f"{collection[-1]} {words}"
        return
    raise NotPlain
