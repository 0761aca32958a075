"""Values as Kubernetes API documents: defaults are left out, quantities and times are strings."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from functools import cache

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from podqos.model.quantity import Quantity

Document = dict[str, "Value"]
Value = str | int | float | bool | None | list["Value"] | Document


def as_document(value: Struct) -> Document:
    """Return a value as a document."""
    found: Document = {}
    for attribute, name, default in _fields(type(value)):
        member = getattr(value, attribute)
        if member is not None and member != default:
            found[name] = as_value(member)
    return found


def as_value(value: object) -> Value:
    """Return any value a document can hold."""
    match value:
        case Struct():
            return as_document(value)
        case Quantity():
            return str(value)
        case Enum():
            return as_value(value.value)
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return timestamp(round(value.timestamp() * 1e6))
        case Mapping():
            return {str(key): as_value(member) for key, member in value.items()}
        case tuple() | list():
            return [as_value(member) for member in value]
        case _:
            raise TypeError(type(value))


def timestamp(time_us: int) -> str:
    """Return a time in Kubernetes' format."""
    return datetime.fromtimestamp(time_us // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@cache
def _fields(kind: type[Struct]) -> tuple[tuple[str, str, object], ...]:
    """Return attribute, name in the document, and default of every field."""
    return tuple(
        (
            field.name,
            field.encode_name,
            field.default_factory() if field.default_factory is not NODEFAULT else field.default,
        )
        for field in fields(kind)
    )
