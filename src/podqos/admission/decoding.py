"""Strict decoding: what the API server cannot read it refuses before anything else (400).

``fieldValidation=Strict``, kubectl's default, refuses fields that do not exist. ``resource:`` for ``resources:`` would
otherwise make a pod BestEffort without a word. Field names are checked where podqos reads; the insides of volumes,
probes and the like are taken as they are. Where a field stands in a file is the business of ``manifest``.

Source: Kubernetes v1.36 staging/src/k8s.io/apimachinery/pkg/runtime/serializer/json/json.go: a value that does not fit
its field is reported alone, unknown fields all together.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from podqos.admission.refusal import Code, Refusal
from podqos.errors import InvalidManifest, InvalidQuantity
from podqos.manifest.decode import convert, convert_pod
from podqos.manifest.fields import (
    CONTAINER_FIELDS,
    EPHEMERAL_CONTAINER_FIELDS,
    OBJECT_META_FIELDS,
    POD_FIELDS,
    POD_SPEC_FIELDS,
    RESOURCE_CLAIM_FIELDS,
    RESOURCE_REQUIREMENTS_FIELDS,
    TOLERATION_FIELDS,
)
from podqos.manifest.plain import Plain
from podqos.model.pod import Pod

# The kinds whose field names are checked, and the names.
_FIELDS = {
    "Pod": POD_FIELDS,
    "ObjectMeta": OBJECT_META_FIELDS,
    "PodTemplateSpec": frozenset({"metadata", "spec"}),
    "PodSpec": POD_SPEC_FIELDS,
    "Container": CONTAINER_FIELDS,
    "EphemeralContainer": EPHEMERAL_CONTAINER_FIELDS,
    "ResourceRequirements": RESOURCE_REQUIREMENTS_FIELDS,
    "ResourceClaim": RESOURCE_CLAIM_FIELDS,
    "Toleration": TOLERATION_FIELDS,
}
# (kind, field) → the kind of what the field holds
_CHILDREN = {
    ("Pod", "metadata"): "ObjectMeta",
    ("Pod", "spec"): "PodSpec",
    ("PodTemplateSpec", "metadata"): "ObjectMeta",
    ("PodTemplateSpec", "spec"): "PodSpec",
    ("PodSpec", "containers"): "Container",
    ("PodSpec", "initContainers"): "Container",
    ("PodSpec", "ephemeralContainers"): "EphemeralContainer",
    ("PodSpec", "resources"): "ResourceRequirements",
    ("PodSpec", "tolerations"): "Toleration",
    ("Container", "resources"): "ResourceRequirements",
    ("EphemeralContainer", "resources"): "ResourceRequirements",
    ("ResourceRequirements", "claims"): "ResourceClaim",
}


def read_pod(value: Plain, kind: str = "Pod", api_version: str = "v1", pod_path: Sequence[str] = ()) -> Pod | Refusal:
    """Read the pod in an object as a client sends it, or say why the API server could not.

    ``pod_path`` leads from an object of another kind to its template.
    """
    for step in pod_path:
        value = value.get(step) if isinstance(value, dict) else value
    unknown: list[str] = []
    try:
        pod = _converted(_known(value, "PodTemplateSpec" if pod_path else "Pod", ".".join(pod_path), unknown))
    except RecursionError:
        pod = "exceeded max depth"
    if isinstance(pod, Pod) and not unknown:
        return pod
    why = pod
    if isinstance(pod, Pod):
        listed = ", ".join(f'unknown field "{path}"' for path in unknown)
        why = f"strict decoding error: {listed}"
    version = api_version.rpartition("/")[2]
    return Refusal(Code.BAD_REQUEST, f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


def _known(value: Plain, kind: str, path: str, unknown: list[str]) -> Plain:
    """Return the value without the fields that do not exist; their paths are added to ``unknown``."""
    if isinstance(value, list):
        return [_known(entry, kind, f"{path}[{index}]", unknown) for index, entry in enumerate(value)]
    if not isinstance(value, dict):
        return value
    known: dict[str, Plain] = {}
    for field, inner in value.items():
        place = f"{path}.{field}" if path else field
        child = _CHILDREN.get((kind, field))
        if field not in _FIELDS[kind]:
            unknown.append(place)
        else:
            known[field] = inner if child is None else _known(inner, child, place, unknown)
    return known


def _converted(value: Plain) -> Pod | str:
    """Return the pod, or the first thing about it that does not fit."""
    try:
        return convert(value, Pod)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, InvalidQuantity):
            return error.__cause__.what
    try:
        return convert_pod(value)
    except InvalidManifest as error:
        return f"{error.where}: {error.what}" if error.where else error.what
