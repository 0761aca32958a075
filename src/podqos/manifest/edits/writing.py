"""How a value is written: as a scalar in a given style, as indented lines, or in brackets.

The style is that of the neighbours in the file (``BlockStyle``, ``FlowStyle``); whatever a style cannot express safely
is put in double quotes. Where the text goes is for ``block_changes`` and ``flow_changes`` to say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from podqos.manifest.plain import Number, Plain
from podqos.manifest.scalars import is_text

# Fewer than YAML allows: nothing here means anything else in any notation or to any reader of YAML.
_PLAIN = re.compile(r"(?:--?[A-Za-z]|[A-Za-z0-9_./+])[A-Za-z0-9_./+@=%-]*", re.ASCII)
_SHORT_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


class BlockStyle(Struct, frozen=True):
    """How a file indents."""

    unit: int = 2
    """Columns from a key to the keys below it."""
    item_offset: int = 0
    """Columns from a key to the dashes of its list."""
    key_quote: str = ""
    """The quotes around every key, if any."""
    value_quote: str = ""
    """The quotes around every text, if any."""


class FlowStyle(Struct, frozen=True):
    """How a mapping in brackets is laid out."""

    is_json: bool = False
    line_indent: str | None = None
    """The text before each key, if each has a line of its own."""
    unit: str = "  "
    """What the keys of a mapping in it have before them in addition."""
    comma: str = ", "
    colon: str = ": "
    key_quote: str = ""
    value_quote: str = ""


def is_empty(value: Plain) -> bool:
    """Whether a value is a mapping or list without anything in it."""
    return isinstance(value, (dict, list)) and not value


def is_scalar(value: Plain) -> bool:
    """Whether a value is neither a mapping nor a list."""
    return not isinstance(value, (dict, list))


def scalar(value: Plain, quote: str = "", *, is_json: bool = False) -> str:
    """Write a scalar; of a text, in the quotes given if they can hold it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _json_text(value) if is_json else _text(value, quote)
    if isinstance(value, float):
        return value.text if isinstance(value, Number) else repr(value)
    if isinstance(value, int):
        return str(value)
    return "{}" if isinstance(value, dict) else "[]"


def _text(value: str, quote: str) -> str:
    if quote == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    if quote != '"' and reads_as_itself(value):
        return value
    return f'"{"".join(map(_escaped, value))}"'


def _json_text(value: str) -> str:
    if value.isprintable():
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value).replace("\x7f", "\\u007f")  # which JSON allows, and YAML does not


def _escaped(character: str) -> str:
    if character.isprintable():
        return f"\\{character}" if character in '"\\' else character
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def reads_as_itself(value: str) -> bool:
    """Whether a text needs no quotes."""
    return _PLAIN.fullmatch(value) is not None and is_text(value)


def block_lines(value: Mapping[str, Plain], column: int, style: BlockStyle) -> Iterator[str]:
    """Write the members of a mapping as lines, from a column on."""
    indent = " " * column
    for key, item in value.items():
        start = f"{indent}{_text(key, style.key_quote)}:"
        if is_scalar(item) or is_empty(item):
            yield f"{start} {scalar(item, style.value_quote)}"
        elif isinstance(item, dict):
            yield start
            yield from block_lines(item, column + style.unit, style)
        elif isinstance(item, list):
            yield start
            yield from _item_lines(item, column + style.item_offset, style)


def _item_lines(items: list[Plain], column: int, style: BlockStyle) -> Iterator[str]:
    indent = " " * column
    for item in items:
        if isinstance(item, dict) and item:
            lines = list(block_lines(item, column + 2, style))
            yield f"{indent}- {lines[0][column + 2 :]}"
            yield from lines[1:]
        elif isinstance(item, list) and item:
            lines = list(_item_lines(item, column + 2, style))
            yield f"{indent}- {lines[0][column + 2 :]}"
            yield from lines[1:]
        else:
            yield f"{indent}- {scalar(item, style.value_quote)}"


def flow_member(key: str, value: Plain, style: FlowStyle) -> str:
    """Write a member of a mapping in brackets."""
    name = _json_text(key) if style.is_json else _text(key, style.key_quote)
    colon = style.colon if name[0] == '"' or style.colon[-1:].isspace() else ": "
    return f"{name}{colon}{flow_value(value, style)}"


def flow_value(value: Plain, style: FlowStyle) -> str:
    """Write a value in brackets, on one line or on lines of their own."""
    if is_scalar(value) or is_empty(value):
        return scalar(value, style.value_quote, is_json=style.is_json)
    inner = style
    if style.line_indent is not None:
        inner = replace(style, line_indent=style.line_indent + style.unit)
    if isinstance(value, dict):
        parts, brackets = [flow_member(key, item, inner) for key, item in value.items()], "{}"
    else:
        assert isinstance(value, list)
        parts, brackets = [flow_value(item, inner) for item in value], "[]"
    if inner.line_indent is None:
        return brackets[0] + style.comma.join(parts) + brackets[1]
    lines = ",".join(f"\n{inner.line_indent}{part}" for part in parts)
    return f"{brackets[0]}{lines}\n{style.line_indent}{brackets[1]}"
