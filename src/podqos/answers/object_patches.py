"""``podqos check --patch-format``: patches for the objects, instead of edits to their files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from podqos.advice.checks.finding import CheckedObject
from podqos.advice.fixes.patches import ObjectPatch
from podqos.answers.patches import kubectl_patch, kustomize_file_name, kustomize_patch
from podqos.controls import one_line

PatchFormat = Literal["kubectl", "kustomize", "json"]


def patch_lines(patches: Iterable[tuple[CheckedObject, ObjectPatch]], notation: PatchFormat) -> Iterator[str]:
    """Yield the patches: commands, documents for kustomize, or a list of JSON patches."""
    match notation:
        case "kubectl":
            yield from (_command(subject, patch) for subject, patch in patches)
        case "kustomize":
            for _, patch in patches:
                yield from (f"# {one_line(kustomize_file_name(patch))}", kustomize_patch(patch).rstrip("\n"), "---")
        case "json":
            items = [
                {
                    "kind": subject.kind,
                    "namespace": subject.namespace,
                    "name": subject.name,
                    "patch": patch.operations,
                }
                for subject, patch in patches
            ]
            yield msgspec.json.format(msgspec.json.encode(items), indent=2).decode()


def _command(subject: CheckedObject, patch: ObjectPatch) -> str:
    command = kubectl_patch(patch, subject.namespace)
    if command is not None:
        return command
    what = one_line(f"{subject.kind} {subject.key}")
    if patch.made_by:
        return f"# {what}: it is managed by {one_line(patch.made_by)}; change that instead"
    return f"# {what}: this field is immutable; replace the object"
