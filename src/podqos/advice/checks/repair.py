"""Edits of resources, as fields to write and as the pod they make.

``qos.edits`` says which amounts make a pod Guaranteed; a patch needs them as fields counted from the object's root, and
whoever asks what the patch does to survival needs the pod with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from podqos.advice.checks.finding import Choice, Patch
from podqos.advice.checks.view import View
from podqos.manifest.plain import parse_path
from podqos.model.pod import Container, Pod
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
    steps = parse_path(edit.path)
    side, resource = str(steps[-2]), str(steps[-1])
    spec = pod.spec
    if steps[1] == "resources":
        own = _changed(spec.resources or ResourceRequirements(), side, resource, amount)
        return replace(pod, spec=replace(spec, resources=own))
    is_regular = steps[1] == "containers"
    containers = list(spec.containers if is_regular else spec.init_containers)
    index = int(steps[2])
    containers[index] = _with_resources(containers[index], side, resource, amount)
    if is_regular:
        return replace(pod, spec=replace(spec, containers=tuple(containers)))
    return replace(pod, spec=replace(spec, init_containers=tuple(containers)))


def _with_resources(container: Container, side: str, resource: str, amount: Quantity) -> Container:
    return replace(container, resources=_changed(container.resources, side, resource, amount))


def _changed(resources: ResourceRequirements, side: str, resource: str, amount: Quantity) -> ResourceRequirements:
    if side == "limits":
        return replace(resources, limits={**resources.limits, resource: amount})
    return replace(resources, requests={**resources.requests, resource: amount})
