"""Documented values as JSON, YAML and CSV: an amount is a text as in manifests, an exact fraction a number.

Decisions are encoded as they are; this is the only module that knows their special types.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from operator import attrgetter

import msgspec

from podqos.model.quantity import Quantity

Table = tuple[Iterable[str], Iterable[Sequence[object]]]
"""Headings, and the rows below them."""


def json_bytes(value: object) -> bytes:
    """Return a value as indented JSON, without a line end."""
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=_plain), indent=2)


def yaml_bytes(value: object) -> bytes:
    """Return a value as YAML."""
    return msgspec.yaml.encode(value, enc_hook=_plain)


def json_schema(kind: type[msgspec.Struct]) -> dict[str, object]:
    """Return the JSON Schema of the output of ``json_bytes``."""
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


def csv_table(items: Iterable[object], *columns: str) -> Table:
    """Return headings, and a row per item.

    A column is an attribute or ``heading=attribute``; a dotted name is an attribute of an attribute.
    """
    headings, _, attributes = zip(*(column.rpartition("=") for column in columns), strict=True)
    named = [heading or attribute for heading, attribute in zip(headings, attributes, strict=True)]
    return named, map(attrgetter(*attributes), items)
