"""A patch as Kubernetes' tools take it: merged into the object by names, or as operations on paths.

Both are the difference between what an object says and what it says with the edits, so they hold nothing that stays as
it is. ``report.patches`` writes them down as commands and files.

Source: strategic merge patch and its keys, staging/src/k8s.io/api/core/v1/types.go (``patchMergeKey``); JSON Patch,
RFC 6902; which updates are refused, pkg/apis/core/validation and pkg/apis/batch/validation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import UNSET, Struct, UnsetType, ValidationError, convert

from podqos.advice.checks.finding import FieldEdit, plain_value
from podqos.manifest.edits.refusal import EditRefusal
from podqos.manifest.edits.values import same, with_field
from podqos.manifest.kinds import group_of
from podqos.manifest.plain import FieldPath, Plain, parse_path
from podqos.model.owners import controllers
from podqos.model.pod import ObjectMeta

_MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
}
"""The lists that a strategic merge takes item by item, and the field that names an item. Others are replaced."""

_BUILT_IN_GROUPS = ("", "apps", "batch", "autoscaling", "policy", "extensions", "node.k8s.io", "scheduling.k8s.io")
_NOT_PATCHED = {
    "Pod": ("spec",),
    "Job": ("spec", "template"),
    "PriorityClass": ("value",),
    "RuntimeClass": ("handler",),
}
"""Fields that the API server does not let change: such an object has to be recreated."""
FILE_KINDS = ("KubeletConfiguration", "NodeConfig", "ClusterResourceOverrideConfig")
"""Kinds that no API server knows: they are files on a node."""


class FixOperation(Struct, frozen=True, rename={"operation": "op"}):
    """An operation of a JSON patch."""

    operation: Literal["add", "remove", "replace", "test"]
    path: str
    """As a JSON pointer."""
    value: Plain | UnsetType = UNSET


class ObjectPatch(Struct, frozen=True):
    """A patch of one object, in every form."""

    kind: str
    api_version: str
    name: str
    namespace: str
    """As the object itself says; empty where it does not."""
    strategic: dict[str, Plain]
    """For a strategic merge: lists by the names of their items."""
    merge: dict[str, Plain]
    """For a JSON merge (RFC 7386): lists as a whole."""
    operations: tuple[FixOperation, ...]
    is_custom: bool
    """Whether the object is one of a custom resource, which cannot be merged strategically."""
    can_be_applied: bool
    """Whether an API server would accept it for an existing object."""
    made_by: str = ""
    """What made the object, and would undo the patch, as ``Deployment web``; empty for an object of its own."""


def object_patch(value: Plain, edits: Iterable[FieldEdit]) -> ObjectPatch | None:
    """Return the edits of an object that says ``value`` as a patch; None where they do not fit or change nothing.

    What says no kind is a part of a manifest, and no cluster has an object to patch.
    """
    new = value
    try:
        for edit in edits:
            new = with_field(new, parse_path(edit.path), plain_value(edit.value))
    except EditRefusal:
        return None
    if new is value or not isinstance(value, dict) or not isinstance(new, dict):
        return None
    metadata = value.get("metadata")
    kind, api_version = _text(value, "kind"), _text(value, "apiVersion")
    if not kind:
        return None
    return ObjectPatch(
        kind,
        api_version,
        name=_text(metadata, "name"),
        namespace=_text(metadata, "namespace"),
        strategic=_merged(value, new, by_name=True),
        merge=_merged(value, new, by_name=False),
        operations=tuple(_operations(value, new, ())),
        is_custom=group_of(api_version) not in _BUILT_IN_GROUPS,
        can_be_applied=kind not in FILE_KINDS and not _is_fixed(kind, value, new),
        made_by=_maker(metadata),
    )


def _maker(metadata: Plain) -> str:
    """Return what made an object, as far as it says: rather the Deployment than its ReplicaSet."""
    if not isinstance(metadata, dict) or not metadata.get("ownerReferences"):
        return ""
    said = {key: metadata[key] for key in ("ownerReferences", "labels") if metadata.get(key)}
    try:
        makers = [*controllers(convert(said, ObjectMeta))]
    except ValidationError:
        return ""
    return " ".join(makers[-1]) if makers else ""


def _text(value: Plain, key: str) -> str:
    item = value.get(key) if isinstance(value, dict) else None
    return item if isinstance(item, str) else ""


def _is_fixed(kind: str, old: Plain, new: Plain) -> bool:
    path = _NOT_PATCHED.get(kind)
    return path is not None and not same(_at(old, path), _at(new, path))


def _at(value: Plain, path: tuple[str, ...]) -> Plain:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _merged(old: dict[str, Plain], new: dict[str, Plain], *, by_name: bool) -> dict[str, Plain]:
    """Return what to merge into ``old`` to get ``new``; a null removes."""
    patch: dict[str, Plain] = dict.fromkeys(key for key in old if key not in new)
    for key, after in new.items():
        before = old.get(key)
        if key in old and same(before, after):
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            patch[key] = _merged(before, after, by_name=by_name)
        elif by_name and key in _MERGE_KEYS and isinstance(before, list) and isinstance(after, list):
            patch[key] = _merged_items(before, after, _MERGE_KEYS[key])
        else:
            patch[key] = after
    return patch


def _merged_items(old: list[Plain], new: list[Plain], name: str) -> list[Plain]:
    """Return the items that differ, each with the field that names it."""
    items: list[Plain] = []
    for before, after in zip(old, new, strict=False):
        if isinstance(before, dict) and isinstance(after, dict) and name in after:
            if not same(before, after):
                items.append({name: after[name], **_merged(before, after, by_name=True)})
        else:
            return new
    return items


def _operations(old: Plain, new: Plain, path: FieldPath) -> Iterator[FixOperation]:
    """Yield what makes ``new`` out of ``old``; before an item of a list is changed, its name is tested."""
    if same(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old:
            if key not in new:
                yield FixOperation("remove", _pointer((*path, key)))
        for key, value in new.items():
            if key not in old:
                yield FixOperation("add", _pointer((*path, key)), value)
            else:
                yield from _operations(old[key], value, (*path, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, item in enumerate(new):
            name = _MERGE_KEYS.get(str(path[-1])) if path else None
            if name and isinstance(item, dict) and name in item and not same(old[index], item):
                yield FixOperation("test", _pointer((*path, index, name)), item[name])
            yield from _operations(old[index], item, (*path, index))
    else:
        yield FixOperation("replace", _pointer(path), new)


def _pointer(path: FieldPath) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
