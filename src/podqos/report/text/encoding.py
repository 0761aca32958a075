"""Documented values as JSON and YAML: an amount is a text as in manifests, an exact fraction a number.

Decisions go out as they are, so their types have to be known here and nowhere else.
"""

from __future__ import annotations

from fractions import Fraction

import msgspec

from podqos.model.quantity import Quantity


def json_bytes(value: object) -> bytes:
    """Return a value as indented JSON, without a line end."""
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=_plain), indent=2)


def yaml_bytes(value: object) -> bytes:
    """Return a value as YAML."""
    return msgspec.yaml.encode(value, enc_hook=_plain)


def json_schema(kind: type[msgspec.Struct]) -> dict[str, object]:
    """Return the JSON Schema of what ``json_bytes`` makes of such a value."""
    return msgspec.json.schema(kind, schema_hook=_schema)


def _plain(value: object) -> str | float:
    if isinstance(value, Quantity):
        return str(value)
    if isinstance(value, Fraction):
        return float(value)
    raise NotImplementedError(f"{type(value).__name__} in a documented value")


def _schema(kind: type) -> dict[str, object]:
    if kind is Quantity:
        return {"type": "string"}
    if kind is Fraction:
        return {"type": "number"}
    raise NotImplementedError(f"{kind.__name__} in a documented value")
