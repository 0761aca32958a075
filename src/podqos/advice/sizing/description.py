"""Read descriptions of workloads, from annotations of an object or from a file.

The annotations::

    podqos.dev/latency-sensitive: "true"        do users wait for it?
    podqos.dev/restart-cost: high               none, low, medium or high
    podqos.dev/burst-pattern: steady            steady, spiky or bursty
    podqos.dev/keeps-state: "true"              state that cannot be rebuilt
    podqos.dev/slow-start: "true"               slow to become useful after a start

A file says the same of several workloads, with ``name`` (or ``namespace/name``), and may say how much cpu and memory
one is expected to use at most, in the absence of samples. The words of the matrix will do: case does not matter
(``High``, ``Yes``), ``N/A`` is no, a restart that costs nothing, or a steady pattern. Misspelt fields are rejected:
they would otherwise change the advice silently.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.sizing.matrix import BurstPattern, Description, RestartCost
from podqos.amounts import nearest
from podqos.errors import InputError, InvalidQuantity
from podqos.manifest.decode import convert
from podqos.manifest.documents import plain_documents
from podqos.manifest.fields import suggestion
from podqos.manifest.plain import FieldPath, Plain, format_path
from podqos.manifest.strictyaml import Document
from podqos.model.quantity import Quantity

_PREFIX = "podqos.dev/"
_BOOLEANS = {"true": True, "yes": True, "y": True, "false": False, "no": False, "n": False, "n/a": False}
# Words of the matrix that say the same as a choice.
_SAME = {
    "burstPattern": {"n/a": BurstPattern.STEADY.value, "none": BurstPattern.STEADY.value},
    "restartCost": {"n/a": RestartCost.NONE.value, "null": RestartCost.NONE.value},
}
# annotation → field
_ANNOTATIONS = {
    "latency-sensitive": "latencySensitive",
    "restart-cost": "restartCost",
    "burst-pattern": "burstPattern",
    "keeps-state": "keepsState",
    "slow-start": "slowStart",
}
_CHOICES: dict[str, tuple[str, ...]] = {"restartCost": tuple(RestartCost), "burstPattern": tuple(BurstPattern)}


class DescribedWorkload(Struct, frozen=True, rename="camel"):
    """An entry of a file of descriptions."""

    name: str
    description: Description
    image: str = ""
    cpu: Quantity | None = None
    """The most it is expected to use."""
    memory: Quantity | None = None
    source: str = ""
    """The file; empty where it is from none."""


# Fields of an entry that are not part of the description.
_BESIDES = ("name", "image", "cpu", "memory")
_FIELDS = (*_BESIDES, *_ANNOTATIONS.values())


def description_from_annotations(annotations: Mapping[str, str]) -> Description | None:
    """Return the description in the annotations of an object, or None.

    ``where`` of an error is the annotation.
    """
    fields: dict[str, Plain] = {}
    for annotation, field in _ANNOTATIONS.items():
        text = annotations.get(_PREFIX + annotation)
        if text is not None:
            fields[field] = _checked(field, text, f"metadata.annotations[{_PREFIX}{annotation}]")
    if not fields:
        return None
    if "latencySensitive" not in fields:
        fix = f'add {_PREFIX}latency-sensitive: "true" or "false"'
        raise InputError("it lacks latency-sensitive", where="metadata.annotations", fix=fix)
    return convert(fields, Description)


def read_descriptions(source: str, data: bytes) -> tuple[DescribedWorkload, ...]:
    """Read a file: one workload, a list of them, or ``workloads:`` with a list."""
    documents = plain_documents(source, data)
    found: list[DescribedWorkload] = []
    for document in documents:
        for path, value in _entries(document):
            found.append(_Entry(source, document, path).read(value))
    if not found:
        raise InputError("no descriptions", where=source, fix="write name: and latencySensitive:")
    names = [workload.name for workload in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{name} is described twice", where=source, fix="remove one")
    return tuple(found)


def _entries(document: Document) -> list[tuple[FieldPath, Plain]]:
    value = document.value
    path: FieldPath = ()
    if isinstance(value, dict) and "workloads" in value:
        value, path = value["workloads"], ("workloads",)
    if isinstance(value, list):
        return [((*path, index), each) for index, each in enumerate(value)]
    return [(path, value)]


class _Entry:
    """Reads one entry, and knows where it stands."""

    def __init__(self, source: str, document: Document, path: FieldPath) -> None:
        self._source, self._document, self._path = source, document, path

    def read(self, value: Plain) -> DescribedWorkload:
        if not isinstance(value, dict):
            raise self._error((), "not a description", "write name: and latencySensitive:")
        for field in value:
            if field not in _FIELDS:
                raise self._error((field,), f"unknown field {field!r}", suggestion(field, _FIELDS))
        for field in ("name", "latencySensitive"):
            if field not in value:
                raise self._error((), f"{field} is missing", f"add {field}:")
        fields = {field: self._checked(field, value[field]) for field in _ANNOTATIONS.values() if field in value}
        rest: dict[str, Plain] = {field: value[field] for field in _BESIDES if field in value}
        rest["description"] = fields
        try:
            return replace(convert(rest, DescribedWorkload), source=self._source)
        except (msgspec.ValidationError, InvalidQuantity) as error:
            what, _, field = str(error).partition(" - at `$.")
            raise self._error((field.rstrip("`"),) if field else (), what, "see `podqos help advise`") from error

    def _checked(self, field: str, value: Plain) -> Plain:
        try:
            return _checked(field, value, field)
        except InputError as error:
            raise self._error((field,), error.what, error.fix) from error

    def _error(self, field: FieldPath, what: str, fix: str) -> InputError:
        line, column = self._document.locate((*self._path, *field))
        name = format_path(field)
        return InputError(f"{name}: {what}" if name else what, where=f"{self._source}:{line}:{column}", fix=fix)


def _checked(field: str, value: Plain, where: str) -> Plain:
    """Return the value of a field of a description, in small letters, or say which there are."""
    if field in _CHOICES:
        choices = _CHOICES[field]
        word = "null" if value is None else str(value).strip().lower()
        word = _SAME.get(field, {}).get(word, word)
        if word not in choices:
            fix = f"write {nearest(word, choices) or ' or '.join(choices)}"
            raise InputError(f"{value!r} is not one of {', '.join(choices)}", where=where, fix=fix)
        return word
    if isinstance(value, str):
        value = _BOOLEANS.get(value.strip().lower(), value)
    if not isinstance(value, bool):
        raise InputError(f"{value!r} is neither true nor false", where=where, fix="write true or false")
    return value
