"""Fields of an object as written, for checks of what is not in ``model.pod``.

``decoding`` has found the types to be right. Where it has not, a value of a wrong type counts as missing.
"""

from __future__ import annotations

from collections.abc import Iterator

from podqos.admission.field_errors import FieldError
from podqos.manifest.plain import Plain

Errors = Iterator[FieldError]
Fields = dict[str, Plain]


def fields_of(value: Plain) -> Fields:
    """Return an object's fields; none if it is missing."""
    return value if isinstance(value, dict) else {}


def items_of(value: Plain) -> list[Plain]:
    """Return a list's items; none if it is missing."""
    return value if isinstance(value, list) else []


def objects_of(value: Plain, path: str) -> Iterator[tuple[Fields, str]]:
    """Yield the objects in a list, each with its path."""
    for index, item in enumerate(items_of(value)):
        yield fields_of(item), f"{path}[{index}]"


def containers_of(spec: Fields) -> Iterator[tuple[Fields, str]]:
    """Yield every container of a pod with its path, in the order in which upstream visits them."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from objects_of(spec.get(field), f"spec.{field}")


def text_of(fields: Fields, name: str) -> str:
    """Return a text; empty if it is missing."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def number_of(fields: Fields, name: str) -> int:
    """Return a whole number; 0 where it is missing."""
    value = fields.get(name)
    return value if isinstance(value, int) else 0
