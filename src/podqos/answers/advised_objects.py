"""Advice as objects: priority classes, and workloads with the advised edits, whole or as patches of what changes."""

from __future__ import annotations

from collections.abc import Sequence

from podqos.advice.checks.finding import FieldEdit, plain_value
from podqos.advice.fixes.patches import object_patch
from podqos.advice.sizing.matrix import PriorityTier
from podqos.answers.patches import patch_body
from podqos.manifest.edits.values import with_field
from podqos.manifest.plain import Plain, parse_path


def priority_class_object(tier: PriorityTier) -> dict[str, Plain]:
    """Return a PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": tier.name},
        "value": tier.value,
        "globalDefault": False,
        "description": tier.description,
    }


def edited_object(value: Plain, edits: Sequence[FieldEdit], *, patches: bool) -> dict[str, Plain] | None:
    """Return an object with edits in it, or with ``patches`` what changes; None if that is nothing."""
    if patches:
        patch = object_patch(value, edits)
        return None if patch is None else patch_body(patch)
    new = value
    for edit in edits:
        new = with_field(new, parse_path(edit.path), plain_value(edit.value))
    assert isinstance(new, dict), "an object that was read as a workload"
    return new
