"""Edits of resources, as fields to write and as the pod they make.

``qos.edits`` says which amounts make a pod Guaranteed; a patch needs them as fields counted from the object's root, and
a comparison needs the pod with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from podqos.advice.checks.finding import Choice, EditValue, Patch
from podqos.advice.checks.view import View
from podqos.manifest.plain import FieldPath, parse_path
from podqos.model.pod import Pod
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import ResourceList, ResourceRequirements
from podqos.qos.edits import Edit


def patch_of(edits: Sequence[Edit], view: View, otherwise: Choice) -> Patch:
    """Return edits as a patch, or, where an amount is missing, what has to be chosen and where it goes."""
    if any(edit.value is None for edit in edits):
        return view.choose(otherwise, *(edit.path for edit in edits))
    return Patch.write(*(view.edit(edit.path, edit.value, edit.replaces) for edit in edits))


def with_edits(pod: Pod, edits: Iterable[Edit]) -> Pod | None:
    """Return the pod with the amounts written in; None where one has to be chosen."""
    for edit in edits:
        if edit.value is None:
            return None
        pod = _with_amount(pod, parse_path(edit.path), edit.value)
    return pod


def with_fields(pod: Pod, fields: Iterable[tuple[str, EditValue]]) -> Pod | None:
    """Return the pod with fields as a patch writes them, counted from the pod; None where it writes another kind."""
    for field, value in fields:
        path = parse_path(field)
        if "resources" in path and (value is None or isinstance(value, str)):
            pod = _with_amount(pod, path, None if value is None else Quantity.parse(value))
        elif path[:2] == ("metadata", "annotations") and isinstance(value, str):
            annotations = {**pod.metadata.annotations, str(path[2]): value}
            pod = replace(pod, metadata=replace(pod.metadata, annotations=annotations))
        elif path == ("spec", "priorityClassName") and isinstance(value, str):
            pod = replace(pod, spec=replace(pod.spec, priority_class_name=value))
        elif path[:2] == ("spec", "volumes") and path[3:] == ("emptyDir", "sizeLimit") and isinstance(value, str):
            pod = _with_size_limit(pod, int(path[2]), Quantity.parse(value))
        else:
            return None
    return pod


def _with_size_limit(pod: Pod, index: int, size_limit: Quantity) -> Pod:
    volumes = list(pod.spec.volumes)
    empty_dir = volumes[index].empty_dir
    assert empty_dir is not None
    volumes[index] = replace(volumes[index], empty_dir=replace(empty_dir, size_limit=size_limit))
    return replace(pod, spec=replace(pod.spec, volumes=tuple(volumes)))


def _with_amount(pod: Pod, path: FieldPath, amount: Quantity | None) -> Pod:
    """Return the pod with one amount written in, or taken out."""
    _, at, *rest, side, resource = path

    def changed(resources: ResourceRequirements) -> ResourceRequirements:
        amounts: ResourceList = {**getattr(resources, str(side)), str(resource): amount or ZERO}
        if amount is None:
            del amounts[str(resource)]
        return replace(resources, **{str(side): amounts})

    if at == "resources":
        return replace(pod, spec=replace(pod.spec, resources=changed(pod.spec.resources or ResourceRequirements())))
    field, index = "containers" if at == "containers" else "init_containers", int(rest[0])
    containers = list(getattr(pod.spec, field))
    containers[index] = replace(containers[index], resources=changed(containers[index].resources))
    return replace(pod, spec=replace(pod.spec, **{field: tuple(containers)}))
