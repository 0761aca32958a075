"""Patches as text: as a ``kubectl patch`` command, as files for kustomize, and as a JSON patch."""

from __future__ import annotations

import json
import shlex

import msgspec

from podqos.advice.fixes.patches import ObjectPatch
from podqos.manifest.edits.writing import BlockStyle, block_lines
from podqos.manifest.kinds import group_of
from podqos.manifest.plain import Plain


def kubectl_patch(patch: ObjectPatch, namespace: str = "", *, resizes: bool = False) -> str | None:
    """Return the command that patches the object in a cluster, or None if an API server would refuse it.

    ``namespace`` is that of an object that names none. ``resizes``: a pod gets other resources in place.
    """
    if not (patch.can_be_applied or resizes) or not patch.name:
        return None
    group = group_of(patch.api_version)
    kind = patch.kind.lower() + (f".{group}" if patch.is_custom else "")
    where = patch.namespace or namespace
    body = patch.merge if patch.is_custom else patch.strategic
    words = ["kubectl", "patch", kind, patch.name, *(("-n", where) if where else ())]
    words += ["--subresource", "resize"] if resizes else []
    words += ["--type", "merge" if patch.is_custom else "strategic", "-p", _compact(body)]
    return shlex.join(words)


def json_patch(patch: ObjectPatch) -> str:
    """Return the patch in the form of RFC 6902, an operation per line."""
    operations = (msgspec.json.encode(operation).decode() for operation in patch.operations)
    return "[\n  " + ",\n  ".join(operations) + "\n]\n"


def kustomize_patch(patch: ObjectPatch) -> str:
    """Return the contents of a patch file for kustomize."""
    metadata: dict[str, Plain] = {"name": patch.name}
    if patch.namespace:
        metadata["namespace"] = patch.namespace
    changed = patch.merge if patch.is_custom else patch.strategic
    if isinstance(changed.get("metadata"), dict):
        metadata |= changed["metadata"]  # type: ignore[arg-type] # it is one
    body: dict[str, Plain] = {"apiVersion": patch.api_version, "kind": patch.kind, "metadata": metadata}
    body |= {key: value for key, value in changed.items() if key != "metadata"}
    return _yaml(body)


def kustomize_file_name(patch: ObjectPatch) -> str:
    """Return the name of the patch file."""
    return f"{patch.kind.lower()}-{patch.name}-patch.yaml"


def kustomize_entry(patch: ObjectPatch) -> str:
    """Return what to write in kustomization.yaml to have the file applied."""
    group, _, version = patch.api_version.rpartition("/")
    target: dict[str, Plain] = {"group": group, "version": version, "kind": patch.kind, "name": patch.name}
    target["namespace"] = patch.namespace
    named: dict[str, Plain] = {key: value for key, value in target.items() if value}
    entry: dict[str, Plain] = {"path": kustomize_file_name(patch), "target": named}
    return _yaml({"patches": [entry]})


def _compact(value: Plain) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _yaml(value: dict[str, Plain]) -> str:
    return "".join(f"{line}\n" for line in block_lines(value, 0, BlockStyle()))
