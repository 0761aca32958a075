"""Fields of an object as written, for checks of what is not in ``model.pod``.

``decoding`` has found the types to be right. Where it has not, a value of a wrong type counts as missing.
"""

from __future__ import annotations

from collections.abc import Iterator

from podqos.admission.field_errors import FieldError, not_supported
from podqos.manifest.plain import Plain

Errors = Iterator[FieldError]
Fields = dict[str, Plain]


def fields_of(value: Plain) -> Fields:
    """Return an object's fields; none if it is missing."""
    return value if isinstance(value, dict) else {}


def items_of(value: Plain) -> list[Plain]:
    """Return a list's items; none if it is missing."""
    return value if isinstance(value, list) else []


def item_of(value: Plain, index: int) -> Fields:
    """Return the fields of one item of a list; none if there is no such item."""
    items = items_of(value)
    return fields_of(items[index]) if index < len(items) else {}


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


def choice_errors(fields: Fields, name: str, choices: tuple[str, ...], path: str, *, default: str = "") -> Errors:
    """Check a text with a fixed set of values. With a ``default``, an empty one counts as missing."""
    value = fields.get(name)
    if isinstance(value, str) and (value or default) not in choices:
        yield not_supported(f"{path}.{name}", value, choices)


def go_struct(fields: Fields, names: dict[str, tuple[str, Plain]]) -> Fields:
    """Return an object as the API server prints it in an error about the whole object: by Go's names, complete.

    ``names`` maps the fields, in Go's order, to their names there and to what stands for a missing one.
    """
    return {
        go_name: missing if fields.get(name) is None else fields[name] for name, (go_name, missing) in names.items()
    }
