"""Patches as text: as a ``kubectl patch`` command, as files for kustomize, and as a JSON patch."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

import msgspec

from podqos.advice.fixes.patches import ObjectPatch
from podqos.manifest.edits.writing import BlockStyle, block_lines
from podqos.manifest.kinds import POD_HOLDERS, group_of
from podqos.manifest.plain import Plain


def kubectl_patch(patch: ObjectPatch, namespace: str = "", *, resizes: bool = False) -> str | None:
    """Return the command that patches the object in a cluster; None if an API server or its owner would undo that.

    ``namespace`` is that of an object that names none. ``resizes``: a pod gets other resources in place.
    """
    if not (patch.can_be_applied or resizes) or not patch.name or (patch.made_by and not resizes):
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


def patch_body(patch: ObjectPatch) -> dict[str, Plain]:
    """Return a patch as an object: strategic, or of a custom resource a merge patch."""
    metadata: dict[str, Plain] = {"name": patch.name}
    if patch.namespace:
        metadata["namespace"] = patch.namespace
    changed = patch.merge if patch.is_custom else patch.strategic
    if isinstance(changed.get("metadata"), dict):
        metadata |= changed["metadata"]  # type: ignore[arg-type] # it is one
    body: dict[str, Plain] = {"apiVersion": patch.api_version, "kind": patch.kind, "metadata": metadata}
    body |= {key: value for key, value in changed.items() if key != "metadata"}
    return body


def kustomize_patch(patch: ObjectPatch) -> str:
    """Return the contents of a patch file for kustomize."""
    return _yaml(patch_body(patch))


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


Resources = Mapping[str, Mapping[str, Mapping[str, str | None]]]
"""Requests and limits by container; the empty name is the pod's own."""


def template_patch(kind: str, key: str, resources: Resources) -> ObjectPatch | None:
    """Return a patch of an object of which only kind and ``namespace/name`` are known; None for a custom resource."""
    holder = POD_HOLDERS.get(kind)
    if holder is None:
        return None
    value: dict[str, Plain] = {"spec": _spec(resources)}
    for step in reversed(holder.pod_path):
        value = {step: value}
    namespace, _, name = key.partition("/")
    can_be_applied = kind not in {"Pod", "Job"}
    return ObjectPatch(kind, holder.api_version, name, namespace, value, {}, (), False, can_be_applied)


def template_lines(kind: str, key: str, resources: Resources) -> str:
    """Return resources as lines of that object; of a custom resource those of its pod template's spec."""
    patch = template_patch(kind, key, resources)
    return _yaml(_spec(resources)) if patch is None else kustomize_patch(patch)


def _spec(resources: Resources) -> dict[str, Plain]:
    stated: dict[str, Plain] = {
        name: {side: dict(amounts) for side, amounts in of.items()} for name, of in resources.items()
    }
    listed: list[Plain] = [{"name": name, "resources": of} for name, of in stated.items() if name]
    spec: dict[str, Plain] = {"containers": listed} if listed else {}
    return {**spec, "resources": stated[""]} if "" in stated else spec


def _compact(value: Plain) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _yaml(value: dict[str, Plain]) -> str:
    return "".join(f"{line}\n" for line in block_lines(value, 0, BlockStyle()))
