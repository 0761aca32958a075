"""Documented values as JSON and YAML: a quantity is a string as in manifests, an exact fraction a number.

Decisions are encoded as they are; this is the only module that knows their special types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING

import msgspec

from podqos.controls import readable
from podqos.model.quantity import Quantity
from podqos.naming import NamingText, published

if TYPE_CHECKING:
    from yaml import SafeDumper

MANIFEST_WIDTH = 116
"""Where lines of objects for kubectl are broken."""
# Which end a line to YAML 1.1, and not to 1.2; and the mark that no reader keeps.
_FEW = 100  # items that are encoded at once
_ODD_LINE_END = re.compile("[\r\x85\u2028\u2029\ufeff]")


def json_bytes(value: object) -> bytes:
    """Return a value as indented JSON, without a line end."""
    return msgspec.json.format(_encoded(msgspec.json.encode, value), indent=2)


def json_parts(value: msgspec.Struct) -> Iterator[bytes]:
    """Yield what ``json_bytes`` returns in parts: of an answer with very many items, only one is held at a time."""
    shape = value.__struct_config__
    fields = [(field.encode_name, getattr(value, field.name)) for field in msgspec.structs.fields(value)]
    is_plain = not (shape.omit_defaults or shape.tag is not None or shape.array_like)
    has_many = any(isinstance(held, tuple) and len(held) > _FEW for _, held in fields)
    if not (is_plain and has_many) or any(held is msgspec.UNSET for _, held in fields):
        yield json_bytes(value)
        return
    for number, (name, held) in enumerate(fields):
        yield (b",\n" if number else b"{\n") + b'  "' + name.encode() + b'": '
        if not (isinstance(held, tuple) and len(held) > _FEW):
            yield json_bytes(held).replace(b"\n", b"\n  ")
            continue
        for place, item in enumerate(held):
            yield (b",\n    " if place else b"[\n    ") + json_bytes(item).replace(b"\n", b"\n    ")
        yield b"\n  ]"
    yield b"\n}"


def json_line(value: object) -> bytes:
    """Return a value as JSON in one line, with its end."""
    return _encoded(msgspec.json.encode, value) + b"\n"


def yaml_bytes(value: object) -> bytes:
    """Return a value as YAML; texts stay texts to every reader."""
    return _encoded(_yaml, value)


def yaml_text(value: object) -> str:
    """Return a value as YAML."""
    return yaml_bytes(value).decode()


def manifest_yaml(value: object) -> str:
    """Return an object that people read before they apply it as YAML: long texts stand over several lines."""
    return _encoded(partial(_yaml, width=MANIFEST_WIDTH), value).decode()


def _yaml(value: object, enc_hook: Callable[[object], object] | None = None, width: int | None = None) -> bytes:
    return _dumped(msgspec.to_builtins(value, enc_hook=enc_hook), width).encode()


def _dumped(value: object, width: int | None = None) -> str:
    import yaml  # loaded by few commands, and slow to load

    return yaml.dump(value, Dumper=_dumper(width), sort_keys=False, width=width, allow_unicode=True)


@cache
def _dumper(width: int | None) -> type[SafeDumper]:
    """Return a YAML writer; with ``width``, long lines and multi-line strings are written as blocks."""
    import yaml

    from podqos.manifest.scalars import is_text

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc] # the one in C may be missing
        """Puts in quotes what another reader of YAML would not take for the same text."""

        def ignore_aliases(self, _: object) -> bool:
            return True

    def text(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
        style = None
        if not data or not is_text(data):
            style = "'"
        elif _ODD_LINE_END.search(data):
            style = '"'
        elif width is not None:
            style = "|" if "\n" in data else ">" if " " in data and len(data) > width else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)

    Dumper.add_representer(str, text)
    return Dumper


def _encoded(encode: Callable[..., bytes], value: object) -> bytes:
    try:
        return encode(value, enc_hook=_plain)
    except UnicodeEncodeError:
        # The name of a file that is not UTF-8: rare, and only found out here.
        return encode(_readable(msgspec.to_builtins(value, enc_hook=_plain)))


def _readable(value: object) -> object:
    if isinstance(value, dict):
        return {_readable(key): _readable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(item) for item in value]
    return readable(value) if isinstance(value, str) else value


def json_schema(kind: type[msgspec.Struct]) -> dict[str, object]:
    """Return the JSON Schema of the output of ``json_bytes``."""
    return msgspec.json.schema(kind, schema_hook=_schema)


def _plain(value: object) -> str | float:
    if isinstance(value, Quantity):
        return str(value)
    if isinstance(value, NamingText):
        return published(value)
    from fractions import Fraction  # many commands print no fraction, and it takes a millisecond to load

    if isinstance(value, Fraction):
        return float(value)
    raise NotImplementedError(f"{type(value).__name__} in a documented value")


def _schema(kind: type) -> dict[str, object]:
    if kind is Quantity:
        return {"type": "string"}
    from fractions import Fraction

    if kind is Fraction:
        return {"type": "number"}
    raise NotImplementedError(f"{kind.__name__} in a documented value")


SLOT = '<script id="run" type="application/json">null</script>'


def embedded(viewer: str, value: object) -> str:
    """Return the built page with a value written into it, which must not be able to close its script element.

    So ``<`` is escaped in a way that JavaScript and JSON both allow.
    """
    assert viewer.count(SLOT) == 1, "not the built viewer"
    data = msgspec.json.encode(value).decode().replace("<", "\\u003c")
    return viewer.replace(SLOT, SLOT.replace("null", data))
