"""JSONPatch (RFC 6902): how a mutating webhook describes changes.

The API server rejects a pod whose patch does not apply, whatever the webhook's failurePolicy says. So patches are made
from the document they are for, and ``apply_patch`` applies them as the API server does before they are sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from podqos.manifest.plain import FieldPath, Plain


class PatchOperation(Struct, frozen=True, omit_defaults=True):
    """One change of a document."""

    op: Literal["add", "replace", "remove", "test"]
    path: str
    value: Plain | UnsetType = UNSET


class PatchFails(Exception):
    """A patch that does not apply to its document."""


def pointer(path: FieldPath) -> str:
    """Return a JSON pointer (RFC 6901)."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def patch_of(document: Plain, edits: Iterable[tuple[FieldPath, str]]) -> tuple[PatchOperation, ...]:
    """Return a patch that writes these texts into a document; missing parents are added, existing values are not.

    A patch made of the patched document is empty: it does not matter how often a webhook is called.
    """
    wanted = deepcopy(document)
    operations = []
    for path, text in edits:
        parent, depth = _deepest(wanted, path)
        if depth == len(path):
            if parent == text:
                continue
            operation = PatchOperation("replace", pointer(path), text)
        else:
            if not all(isinstance(step, str) for step in path[depth:]):
                raise PatchFails(f"{pointer(path)}: no such item")
            value: Plain = text
            for step in reversed(path[depth + 1 :]):
                value = {str(step): value}
            # A null is written over: the API server reads it like a missing field.
            operation = PatchOperation("add", pointer(path[: depth + 1]), value)
        wanted = _applied(wanted, operation)
        operations.append(operation)
    return tuple(operations)


def _deepest(document: Plain, path: FieldPath) -> tuple[Plain, int]:
    """Return the innermost part of a path that exists and can have members, and how many steps lead to it."""
    value, depth = document, 0
    for step in path:
        inner = None
        if isinstance(value, dict) and isinstance(step, str):
            inner = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            inner = value[step]
        if inner is None:
            break
        value, depth = inner, depth + 1
    return value, depth


def apply_patch(document: Plain, operations: Iterable[PatchOperation]) -> Plain:
    """Return the document as the API server makes it, or raise ``PatchFails``; the given one stays as it is."""
    document = deepcopy(document)
    for operation in operations:
        document = _applied(document, operation)
    return document


def _applied(document: Plain, operation: PatchOperation) -> Plain:
    steps = [step.replace("~1", "/").replace("~0", "~") for step in operation.path.split("/")[1:]]
    if not steps:
        raise PatchFails("a whole document is never replaced")
    parent = document
    for step in steps[:-1]:
        parent = _member(parent, step, operation.path)
    last = steps[-1]
    if isinstance(parent, dict):
        _change(parent, last, operation, exists=last in parent)
    elif isinstance(parent, list):
        if operation.op == "add":
            parent.insert(
                len(parent) if last == "-" else _index(last, len(parent) + 1, operation.path), _value(operation)
            )
        else:
            _change(parent, _index(last, len(parent), operation.path), operation, exists=True)
    else:
        raise PatchFails(f"{operation.path}: its parent is not an object")
    return document


def _change(parent: dict[str, Plain] | list[Plain], key: str | int, operation: PatchOperation, *, exists: bool) -> None:
    if operation.op != "add" and not exists:
        raise PatchFails(f"{operation.path}: missing")
    if operation.op == "remove":
        del parent[key]  # type: ignore[arg-type] # the key fits the parent
    elif operation.op == "test":
        if parent[key] != operation.value:  # type: ignore[index] # likewise
            raise PatchFails(f"{operation.path}: test failed")
    else:
        parent[key] = _value(operation)  # type: ignore[index] # likewise


def _value(operation: PatchOperation) -> Plain:
    if operation.value is UNSET:
        raise PatchFails(f"{operation.path}: no value")
    return deepcopy(operation.value)


def _member(value: Plain, step: str, path: str) -> Plain:
    if isinstance(value, dict) and step in value:
        return value[step]
    if isinstance(value, list):
        return value[_index(step, len(value), path)]
    raise PatchFails(f"{path}: missing")


def _index(step: str, length: int, path: str) -> int:
    if not step.isdecimal() or (step != "0" and step.startswith("0")) or int(step) >= length:
        raise PatchFails(f"{path}: no such item: {step}")
    return int(step)
