"""The fast reading of YAML: plain documents only, token by token.

Most manifests use a small part of YAML: one ``key: value`` per line, list items, block scalars, quoted texts, flow
collections. One regular expression cuts a document into tokens, one for each line and each value that spans lines. A
token is a head (indentation, dashes, key) and a value. Heads repeat even where values do not, so each is parsed once
and cached; most values are plain texts. The tokens are then put into mappings and lists by indentation.

Everything else (anchors, tags, tabs, odd characters, a key set twice, inconsistent nesting, anything that may be
broken) raises ``NotPlain`` and is left to ``strictyaml``. What is read here means the same there: both resolve scalars
by the same functions, and a property test holds the two equal. Nothing is reported from here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from podqos.manifest.plain import FieldPath, Plain
from podqos.manifest.scalars import WORDS, Scalar, UnfitScalar, resolve, resolve_key


class NotPlain(Exception):
    """The document is not plain enough to be read here."""


# ---- tokens -------------------------------------------------------------------------------------------------------

# Python before 3.11.5 mishandles possessive quantifiers behind groups, so only single characters have one. What may be
# missing is an empty alternative, which is as fast. Every backtrack fails at its next character, so every pattern takes
# linear time.
_DASHES = r"(?:-[ ]++(?:-[ ]++)*|)"
_KEY = (
    r"""(?:[A-Za-z0-9_$/.][^:\# \n\t]*+(?:(?=:[ \n])|(?::(?=[^ \n\t])[^:\# \n\t]*+)*)"""
    r"""|"[^"\\\n\t]++"|'[^'\n\t]++')"""
)
_INDICATORS = r"-?:,\[\]{}\#&*!|>'\"%@`\x00-\x20"
# An unquoted scalar holds a colon or a number sign only inside a word; most hold neither.
_REST_OF_SCALAR = r"[^:\#\n\t]*+(?:(?![:\#])|(?:(?::(?=[^ \n\t])|(?<=[^ ])\#)[^:\#\n\t]*+)*)"
_UNQUOTED = rf"(?:[^{_INDICATORS}]|[-?:](?=[^ \n\t])){_REST_OF_SCALAR}"
# One that begins like this is no number: among others 250m and 64Mi, with a letter that no number has.
_AMOUNT = r"[0-9]++[G-NP-WYZg-np-wyz]"
_TEXT = rf"(?:[^{_INDICATORS}+.0-9]|-{{1,2}}+[A-Za-z/$]|{_AMOUNT}){_REST_OF_SCALAR}"
# A quoted scalar may continue on the next line, if that is indented and not blank.
_DOUBLE_QUOTED = r'"[^"\\\n\t]*+(?:(?:\\[^\n\t]|\\?+\n[ ]++(?=[^ "\n]))[^"\\\n\t]*+)*"'
_SINGLE_QUOTED = r"'[^'\n\t]*+(?:(?:''|\n[ ]++(?=[^ '\n]))[^'\n\t]*+)*'(?!')"
_COMMENT = r"[ ]*+(?:(?<=[ ])\#[^\n]*+|)"
# A flow collection ends at a bracket that ends a line; what is in it is checked when it is parsed.
_FLOW = rf"[\[{{](?:[^\n\#]*[\]}}]{_COMMENT}(?=\n)|[^\n]*+(?:\n[ ]++[^\n]*+){{0,50}}?(?<=[\]}}])(?=\n))"

# No model has args, env or volumeMounts, so none needs such a list of a container. Where all its items are as plain
# as these, nothing can be wrong with it, and it becomes one token.
_AT = "(?P=at)"  # the indentation of the list
_SCALAR_LINE = rf"""
    (?: (?:[^{_INDICATORS}+.]|-{{1,2}}+[A-Za-z/$]|:(?=[^ \n\t]))
        [^:\#\n\t]*+ (?:(?::(?=[^ \n\t])|(?<=[^ ])\#)[^:\#\n\t]*+)*
      | "[^"\\\n\t]*+"
    ) {_COMMENT} \n
"""
_ITEM = rf"{_AT}-[ ] (?:{_SCALAR_LINE} | \|[-+]?+\n {_AT}[ ]{{2}}[^ \t\n][^\n]*+\n (?:\n*+{_AT}[ ]{{2}}[^\n]*+\n)*)"
_NAMED_ITEM = rf"""
    {_AT}-[ ]name:[ ] {_SCALAR_LINE}
    {_AT}[ ]{{2}}(?:
        (?:value|mountPath):[ ] {_SCALAR_LINE} (?:{_AT}[ ]{{2}}(?:readOnly|subPath):[ ] {_SCALAR_LINE}|)
      | valueFrom:\n
        {_AT}[ ]{{4}}[A-Za-z]++:\n
        {_AT}[ ]{{6}}name:[ ] {_SCALAR_LINE}
        {_AT}[ ]{{6}}key:[ ] {_SCALAR_LINE}
    )
"""
_MORE = rf"(?:{_COMMENT}\n)* {_AT}[ -]"  # another item, or a line that belongs to the last one
_UNREAD = rf"""
    (?=(?P<at>[ ]++)-[ ])
    (?: (?<=[ ]args:\n) (?:{_ITEM})+ (?!{_MORE})
      | (?:(?<=[ ]env:\n)|(?<=[ ]volumeMounts:\n)) (?:{_NAMED_ITEM})+ (?!{_MORE}) )
"""


@cache
def _pattern(*, skims: bool) -> re.Pattern[str]:
    """Return what matches a token; ``skims``: what nothing reads belongs to the token of its key."""
    # Blank lines are one token where nothing counts lines.
    unread = rf"(?:\n++|{_UNREAD}|)" if skims else "(?P<at>)"
    return re.compile(
        rf"""
          ( [ ]*+ {_DASHES} (?: {_KEY}: (?:[ ]++|(?=\n)) |) )
          (?: ({_TEXT})(?<![ ])\n
            | \n {unread}
            | "([^"\\\n\t]++)"\n
            | ([|>][-+]?+ \n\n*+ (?P<indentation>[ ]++)[^ \t\n][^\n]*+\n (?:(?P=indentation)[^\n]*+\n|[ ]*+\n)*)
            | ({_FLOW}|(?:{_DOUBLE_QUOTED}|{_SINGLE_QUOTED}){_COMMENT}(?=\n)|[^\n]++)\n
          )
        """,
        re.VERBOSE | re.ASCII,
    )


Token = tuple[str, str, str, str, str, str, str]
"""The head, and one of: a text; the indentation of what is unread; a quoted text; a block scalar and its indentation;
any other value, or a comment."""

_COMMON_CHARACTERS = b"\t\n" + bytes(range(0x20, 0x7F))
# Of the others: control characters, those that end a line in YAML 1.1, and those it does not allow.
_ODD_CHARACTER = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_NEXT_OBJECT = "\n- apiVersion: "
_BATCH = 1 << 18
_LONGEST_LINE = 1_000_000  # matching takes up to a hundred times as many bytes as a line has characters


def _has_odd_characters(data: bytes, text: str) -> bool:
    """Whether a text, which ``data`` encodes, has characters that no plain document has."""
    return bool(data.translate(None, _COMMON_CHARACTERS)) and _ODD_CHARACTER.search(text) is not None


def tokens(data: bytes, *, skims: bool = False) -> Iterator[Token]:
    """Yield the tokens of a document, which cover all of it; raise ``NotPlain`` where that cannot be.

    They come a few objects of a list at a time: those of a long list take more room than its objects. ``skims``: lists
    that no model reads are not cut into tokens where nothing can be wrong with them.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise NotPlain from None
    if _has_odd_characters(data, text):
        raise NotPlain
    if len(text) > _LONGEST_LINE and max(map(len, text.split("\n"))) > _LONGEST_LINE:
        raise NotPlain
    ends_early = not text.endswith("\n")
    text = text + "\n" if ends_early else text
    findall, start = _pattern(skims=skims).findall, 0
    while start < len(text):
        # An object of a list begins no line inside of a token.
        end = text.find(_NEXT_OBJECT, start + _BATCH) + 1 or len(text)
        found: list[Token] = findall(text, start, end)
        if end == len(text) and ends_early and found and found[-1][4]:
            raise NotPlain  # it is subtle how such a block ends
        yield from found
        start = end


# ---- heads --------------------------------------------------------------------------------------------------------

_HEAD = re.compile(rf"([ ]*+)({_DASHES})(?:({_KEY}):[ ]*+|)\n", re.ASCII)
_DASH = re.compile(r"-[ ]++")
_LONGEST_KEY = 1_000  # libyaml looks no further than 1024 characters for the colon
_REMEMBERED = 50_000
_REMEMBERED_LENGTH = 200

Head = tuple[int, str, tuple[int, int, tuple[int, ...], int]]
"""Of a key without a dash its column, otherwise -1; the key; and: the first column; the column behind the last dash, or
0; the columns of the second and further dashes; the column that a block scalar is indented deeper than."""


class _Heads(dict[str, Head]):
    """The heads seen so far; once there are too many, no more are remembered."""

    def __missing__(self, text: str) -> Head:
        key = text.strip(" ")[:-1]
        if key[:1].isalpha() and len(key) <= _REMEMBERED_LENGTH:  # most of them
            column = len(text) - len(text.lstrip(" "))
            head: Head = column, _key(key), (column, 0, (), column)
        else:
            head = _parse_head(text)
        if len(self) < _REMEMBERED and len(text) <= _REMEMBERED_LENGTH:
            self[text] = head
        return head


def _parse_head(text: str) -> Head:
    matched = _HEAD.fullmatch(text + "\n")
    assert matched is not None
    indent, dashes, key = matched.groups()
    column = len(indent)
    behind = column + len(dashes) if dashes else 0
    columns = [column + dash.start() for dash in _DASH.finditer(dashes)]
    name = "" if key is None else _key(key)
    parent = (behind or column) if name else columns[-1] if columns else column
    return column if name and not dashes else -1, name, (column, behind, tuple(columns[1:]), parent)


def _key(text: str) -> str:
    if len(text) > _LONGEST_KEY:
        raise NotPlain
    if text.startswith(('"', "'")):
        return text[1:-1]
    try:
        return resolve_key(text)
    except UnfitScalar:
        raise NotPlain from None


# ---- values -------------------------------------------------------------------------------------------------------

_OTHER_VALUE = re.compile(rf"({_UNQUOTED}|{_DOUBLE_QUOTED}|{_SINGLE_QUOTED}){_COMMENT}", re.ASCII)
_OPEN_ENDED = re.compile(rf"{_UNQUOTED}(?<![ ])", re.ASCII)


class _Values(dict[str, Plain]):
    """Scalars that may be no texts, are quoted or have a comment behind them. A flow collection is always a new one."""

    def __missing__(self, text: str) -> Plain:
        if text[0] == "{" or text[0] == "[":
            return _flow(text)
        if text.isascii() and text.isdigit():
            value: Plain = resolve(text)
        else:
            matched = _OTHER_VALUE.fullmatch(text)
            if matched is None:
                raise NotPlain
            value = _scalar(matched[1])
        if len(self) < _REMEMBERED and len(text) <= _REMEMBERED_LENGTH:
            self[text] = value
        return value


_LINE_BREAK = re.compile(r"[ ]*+\n[ ]*+")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(\n[ ]*+|.))|[ ]*+\n[ ]*+")
_ESCAPED = {"0": "\0", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPED |= {'"': '"', "'": "'", "\\": "\\", "/": "/", " ": " ", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029"}


def _scalar(text: str) -> Scalar:
    if text[0] == '"':
        return _ESCAPE.sub(_unescape, text[1:-1]) if "\\" in text else _LINE_BREAK.sub(" ", text[1:-1])
    if text[0] == "'":
        return _LINE_BREAK.sub(" ", text[1:-1].replace("''", "'"))
    try:
        return resolve(text.rstrip(" "))
    except UnfitScalar:
        raise NotPlain from None


def _unescape(matched: re.Match[str]) -> str:
    """Return what an escape in double quotes stands for; a line break is a space, and behind a backslash nothing."""
    two, four, other = matched.groups()
    code = two or four
    if code is not None:
        if "d7ff" < code.lower() < "e000":
            raise NotPlain  # half of a character
        return chr(int(code, 16))
    if other is None:
        return " "
    if other[0] == "\n":
        return ""
    if other not in _ESCAPED:
        raise NotPlain
    return _ESCAPED[other]


def _block_text(block: str, indentation: int) -> str:
    """Return the text of a block scalar; ``block`` begins with its indicators."""
    header, *lines = block.split("\n")[:-1]
    lines = [line[indentation:] for line in lines]
    trailing_lines = 0
    while not lines[-1]:
        lines.pop()
        trailing_lines += 1
    if header[0] == ">" and any(not line or line[0] in " \t" for line in lines):
        raise NotPlain  # not every line break becomes a space
    text = ("\n" if header[0] == "|" else " ").join(lines)
    if header.endswith("-"):
        return text
    return text + "\n" * (trailing_lines + 1 if header.endswith("+") else 1)


# ---- flow collections ---------------------------------------------------------------------------------------------

# Unquoted scalars inside brackets are words of harmless characters.
_FLOW_CHARACTERS = r"[^\s,?\[\]{}:\#\"']"
_FLOW_WORD = rf"[^{_INDICATORS}]{_FLOW_CHARACTERS}*+(?::(?={_FLOW_CHARACTERS}){_FLOW_CHARACTERS}*+)*"
_FLOW_SCALAR = rf"(?:-{{1,2}}+(?=[\w/.$])|){_FLOW_WORD}(?:[ ]++{_FLOW_WORD})*(?=[ ]*+[,\]}}\n]|[ ]++\#)"


@cache
def _flow_token() -> re.Pattern[str]:
    """Return what matches a token of a flow collection; compiled on first use, because most need no tokens."""
    return re.compile(
        rf"""
        [ \n]*+
        (?: ([\[\]{{}},])
          | ([\w$/.-]++|{_DOUBLE_QUOTED}|{_SINGLE_QUOTED}):[ ]++
          | ({_DOUBLE_QUOTED}|{_SINGLE_QUOTED}|{_FLOW_SCALAR})
          | (?<=[ \n])\#[^\n]*+
          | \Z
          | (.[^\0]*+)
        )
        """,
        re.VERBOSE | re.ASCII,
    )


# What is nested deeper is left to the strict reading, which has a limit.
_DEEPEST = 100

_Collection = dict[str, Plain] | list[Plain]


# Most are flat and simple.
_FLAT_ENTRY = rf"([A-Za-z][\w$/.-]*+):[ ]++(?:((?:[A-Za-z/_$]|{_AMOUNT})[\w/.$=+-]*+)|([0-9][\w.]*+))"
_FLAT_MAPPING = re.compile(rf"\{{[ ]*+{_FLAT_ENTRY}(?:,[ ]*+{_FLAT_ENTRY})*[ ]*+\}}", re.ASCII)
_FLAT_ENTRY_PATTERN = re.compile(_FLAT_ENTRY, re.ASCII)
_FLAT_LIST = re.compile(r'\[[ ]*+"[^"\\\n\t]*+"(?:,[ ]*+"[^"\\\n\t]*+")*[ ]*+\]')
_FLAT_ITEM = re.compile(r'"([^"]*+)"')


def _flow(text: str) -> _Collection:
    """Return the flow collection that ``text`` is, which may have comments in it and behind it."""
    if _FLAT_MAPPING.fullmatch(text) is not None:
        entries = _FLAT_ENTRY_PATTERN.findall(text)
        mapping: dict[str, Plain] = {
            _key(name) if name in WORDS else name: WORDS.get(word, word) if word else resolve(number)
            for name, word, number in entries
        }
        if len(mapping) < len(entries):
            raise NotPlain
        return mapping
    if _FLAT_LIST.fullmatch(text) is not None:
        return list(_FLAT_ITEM.findall(text))
    return _any_flow(text)


def _any_flow(text: str) -> _Collection:
    """Return a flow collection, however it is nested."""
    root: _Collection | None = None
    current: _Collection | None = None
    outer: list[_Collection] = []
    key: str | None = None  # whose value comes next
    may_end, may_go_on = False, True  # a bracket may close; another key or value may come
    for mark, name, scalar, bad in _flow_token().findall(text):
        if name:
            if not may_go_on or not isinstance(current, dict) or key is not None:
                raise NotPlain
            key = str(_scalar(name)) if name[0] in "\"'" else _key(name)
            if key in current:
                raise NotPlain
            may_end = False
        elif scalar or mark in {"[", "{"}:
            if not may_go_on or len(outer) >= _DEEPEST:
                raise NotPlain
            value: Plain = _scalar(scalar) if scalar else [] if mark == "[" else {}
            if isinstance(current, dict):
                if key is None:
                    raise NotPlain
                current[key] = value
            elif current is not None:
                current.append(value)
            key, may_end, may_go_on = None, True, not scalar
            if isinstance(value, (dict, list)):
                if current is None:
                    root = value
                else:
                    outer.append(current)
                current = value
        elif mark == ",":
            if may_go_on or current is None:
                raise NotPlain
            may_end, may_go_on = False, True
        elif mark:
            if not may_end or current is None or (mark == "]") is not isinstance(current, list):
                raise NotPlain
            current = outer.pop() if outer else None
            may_go_on = False
        elif bad:
            raise NotPlain
    if root is None or current is not None:
        raise NotPlain
    return root


def flow_fields(text: str) -> Iterator[tuple[FieldPath, int]]:
    """Yield the path of each key and item of a flow collection that can be read, with the offset where it begins."""
    path: list[str | int] = []
    for token in _flow_token().finditer(text):
        mark, name, scalar, _ = token.groups()
        if name:
            path[-1] = str(_scalar(name)) if name[0] in "\"'" else _key(name)
            yield tuple(path), token.start(2)
        elif scalar or mark in {"[", "{"}:
            if path and isinstance(path[-1], int):
                path[-1] += 1
                yield tuple(path), token.start(3 if scalar else 1)
            if not scalar:
                path.append(-1 if mark == "[" else "")
        elif mark in {"]", "}"}:
            path.pop()


# ---- a document ---------------------------------------------------------------------------------------------------

_NOTHING: Token = ("", "", "", "", "", "", "")
heads = _Heads()
"""What the head of a token says."""
_values = _Values()


def is_open_ended(token: Token) -> bool:
    """Whether a token is an unquoted scalar up to the end of its line, which the next line may continue."""
    return bool(token[1]) or _OPEN_ENDED.fullmatch(token[6]) is not None


def read_plain(data: bytes, *, skims: bool = False) -> Plain:
    """Return what the one document in ``data`` says, or raise ``NotPlain``.

    ``skims``: lists that no model reads may be left empty.
    """
    return assemble(tokens(data, skims=skims))


def assemble(found: Iterable[Token]) -> Plain:
    """Build mappings and lists from tokens by their indentation."""
    root: _Collection | None = None
    # The collection that tokens add to (a mapping or a list), and the column of its keys or dashes.
    mapping: dict[str, Plain] = {}
    items: list[Plain] | None = None
    column = -1
    mapping_column = -2  # the same for a mapping; otherwise one that no key has
    outer: list[tuple[dict[str, Plain], list[Plain] | None, int]] = []
    open_key = ""  # the last key, if it had no value: a collection may follow
    last = _NOTHING  # the token on the line before, if there was one
    known_heads, known_values, words = heads, _values, WORDS
    value: Plain
    for token in found:
        head, text, unread, quoted, block, indentation, other = token
        field_column, key, details = known_heads[head]
        opened = ""
        if text:
            value = words.get(text, text)
        elif other and other[0] != "#":
            value = known_values[other]
        elif quoted:
            value = quoted
        elif block:
            if len(indentation) <= details[3]:
                raise NotPlain
            value = _block_text(block, len(indentation))
        elif unread:
            if len(unread) < details[3]:
                raise NotPlain
            value = []
        elif key:
            value, opened = None, key
        elif details[1]:
            raise NotPlain
        else:
            last = _NOTHING
            continue

        if field_column == mapping_column:
            if key in mapping:
                raise NotPlain
            mapping[key] = value
        elif field_column > column:  # a new mapping
            inner: dict[str, Plain] = {key: value}
            if open_key and items is None and len(outer) < _DEEPEST:
                mapping[open_key] = inner
                outer.append((mapping, None, column))
            elif root is None and field_column == 0:
                root = inner
            else:
                raise NotPlain
            mapping, items = inner, None
            column = mapping_column = field_column
        elif field_column >= 0:  # one further out
            while outer and field_column < column:
                mapping, items, column = outer.pop()
            if items is not None and outer:  # around a list that is in the column of its key
                mapping, items, column = outer.pop()
            if field_column != column or items is not None or key in mapping:
                raise NotPlain
            mapping[key] = value
            mapping_column = column
        elif details[1]:
            at, behind_dash, inner_dashes, _ = details
            if at < column:
                while outer and at < column:
                    mapping, items, column = outer.pop()
                if at != column or items is None:
                    raise NotPlain
            elif at > column or items is None:  # a new list
                new: list[Plain] = []
                if open_key and items is None and len(outer) < _DEEPEST:
                    mapping[open_key] = new
                    outer.append((mapping, None, column))
                elif root is None and at == 0:
                    root = new
                else:
                    raise NotPlain
                items, column = new, at
            for inner_column in inner_dashes:
                nested: list[Plain] = []
                items.append(nested)
                outer.append((mapping, items, column))
                items, column = nested, inner_column
            if len(outer) > 2 * _DEEPEST:
                raise NotPlain
            if key:
                outer.append((mapping, items, column))
                mapping = {key: value}
                items.append(mapping)
                items, column = None, behind_dash
                mapping_column = column
            else:
                items.append(value)
                mapping_column = -2
        else:  # more words of the unquoted scalar on the line before
            if details[0] <= column or not is_open_ended(last) or not is_open_ended(token):
                raise NotPlain
            _continue(mapping if items is None else items, value)
        open_key = opened
        last = token
    return root


def _continue(collection: _Collection, more: Plain) -> None:
    """Add the words of another line to the last value, an unquoted scalar."""
    if isinstance(more, str):
        if isinstance(collection, dict):
            key, value = next(reversed(collection.items()))
            if isinstance(value, str):
                collection[key] = f"{value} {more}"
                return
        elif isinstance(collection[-1], str):
            collection[-1] = f"{collection[-1]} {more}"
            return
    raise NotPlain
