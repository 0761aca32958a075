"""Edits of resources, as fields to write and as the pod they make.

``qos.edits`` says which amounts make a pod Guaranteed; a patch needs them as fields counted from the object's root, and
a comparison needs the pod with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from podqos.advice.checks.finding import Choice, Patch
from podqos.advice.checks.view import View
from podqos.manifest.plain import parse_path
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceRequirements
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
        pod = _with_amount(pod, edit, edit.value)
    return pod


def _with_amount(pod: Pod, edit: Edit, amount: Quantity) -> Pod:
    _, at, *rest, side, resource = parse_path(edit.path)

    def changed(resources: ResourceRequirements) -> ResourceRequirements:
        return replace(resources, **{str(side): {**getattr(resources, str(side)), resource: amount}})

    if at == "resources":
        return replace(pod, spec=replace(pod.spec, resources=changed(pod.spec.resources or ResourceRequirements())))
    field, index = "containers" if at == "containers" else "init_containers", int(rest[0])
    containers = list(getattr(pod.spec, field))
    containers[index] = replace(containers[index], resources=changed(containers[index].resources))
    return replace(pod, spec=replace(pod.spec, **{field: tuple(containers)}))
