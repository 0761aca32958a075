"""Edits of a workload as a visitor makes them: fields of its object, written as its manifest would say it, read again.

So an edited pod is what podqos makes of the edited manifest, and a patch with the same fields has the same effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from podqos.admission.chain import within_bounds
from podqos.admission.pod_validation import validate_pod
from podqos.advice.checks.finding import FieldEdit, plain_value
from podqos.advice.fixes.patches import object_patch
from podqos.answers.node_state import NodeState
from podqos.answers.page.nodes import PageNode
from podqos.answers.page.pod import PatchText
from podqos.answers.patches import json_patch, kubectl_patch, kustomize_patch
from podqos.errors import InputError
from podqos.manifest.edits.refusal import EditRefusal
from podqos.manifest.edits.values import with_field
from podqos.manifest.kinds import POD_HOLDERS
from podqos.manifest.plain import Plain, parse_path
from podqos.manifest.problems import Problem
from podqos.model.pod import Pod
from podqos.model.profile import Profile
from podqos.objects.node_pods import node_pods
from podqos.objects.objects import FoundWorkload, Objects, in_namespace
from podqos.objects.sources import Source
from podqos.survival.counterfactual.pod_changes import with_priority

RECORDED_CLASS = FieldEdit("status.qosClass", None)
"""What the API server recorded of a pod is not true of one that is made anew."""


def edited(objects: Objects, found: FoundWorkload, edits: Iterable[FieldEdit]) -> FoundWorkload:
    """Return a workload as it is with other fields.

    Raises ``InputError`` where that says nothing, or where the API server would not let a pod that runs have it.
    """
    value: Plain = _object(objects, found)
    fields = (*edits, *((RECORDED_CLASS,) if found.workload.is_stored else ()))
    for edit in fields:
        try:
            value = with_field(value, parse_path(edit.path), plain_value(edit.value))
        except EditRefusal:
            raise InputError("no such field", where=edit.path) from None
    reading = Source(found.source, msgspec.json.encode(value), kinds=objects.kinds).reading
    if len(reading.workloads) != 1 or reading.problems:
        raise _refusal(reading.problems)
    made = replace(found, workload=in_namespace(reading.workloads[0], objects.namespace))
    if found.workload.is_stored:
        _check_running(objects, found.workload.pod, made)
    return made


def edited_alike(example: FoundWorkload, made: FoundWorkload, found: FoundWorkload) -> FoundWorkload | None:
    """Return a pod edited as another was that has the same containers; None where it has others."""
    before, after, own = (workload.workload.pod.spec for workload in (example, made, found))
    is_alike = own.containers == before.containers and own.init_containers == before.init_containers
    if not is_alike or own.resources != before.resources or not found.workload.is_stored:
        return None
    pod = found.workload.pod
    spec = replace(own, containers=after.containers, init_containers=after.init_containers, resources=after.resources)
    pod = replace(pod, spec=spec, status=replace(pod.status, qos_class=None))
    return replace(found, workload=replace(found.workload, pod=pod))


def patch_of(
    objects: Objects, found: FoundWorkload, edits: Sequence[FieldEdit], *, resizes: bool = False
) -> PatchText | None:
    """Return edits as patches to copy; None where they change nothing or the object is only a part of one.

    ``resizes``: whether a pod that runs can have them in place.
    """
    patch = object_patch(objects.plain(found) if found.place.taken_for else _object(objects, found), edits)
    if patch is None:
        return None
    namespace = found.workload.metadata.namespace
    return PatchText(
        kubectl_patch(patch, namespace, resizes=resizes and found.workload.is_stored),
        kustomize_patch(patch),
        json_patch(patch),
    )


def with_workloads(
    node: PageNode, changed: Sequence[FoundWorkload], priorities: Mapping[str, int], profile: Profile
) -> NodeState:
    """Return a node on which some workloads are others: admitted anew, using what they use now.

    ``priorities`` are those of the pods of workloads, by kind and name. Raises ``InputError`` where the API server
    would not store one.
    """
    assert node.state is not None
    state = node.state
    objects = node.objects.only(changed)
    keys = {(workload.workload.kind, workload.workload.pod.key) for workload in changed}
    named = [entry.pod.key for entry in state.snapshot.pods if state.owners.get(entry.pod.metadata.uid) in keys]
    made = {}
    for node_pod in node_pods(objects, named=named, profile=profile):
        priority = priorities.get(f"{node_pod.kind} {node_pod.workload}")
        made[node_pod.pod.metadata.uid] = node_pod.pod if priority is None else with_priority(node_pod.pod, priority)
    if not made:
        raise _refusal(objects.problems)
    pods = tuple(
        replace(entry, pod=made[entry.pod.metadata.uid]) if entry.pod.metadata.uid in made else entry
        for entry in state.snapshot.pods
    )
    return replace(state, snapshot=replace(state.snapshot, pods=pods))


def _check_running(objects: Objects, before: Pod, found: FoundWorkload) -> None:
    """Raise ``InputError`` where the API server would not let a pod that runs have other resources.

    What it has let in, or what a snapshot leaves out of a pod, is no fault of an edit.
    """
    pod = found.workload.pod
    known = validate_pod(before, is_stored=True)
    error = next((field_error for field_error in validate_pod(pod, is_stored=True) if field_error not in known), None)
    if error is not None:
        raise InputError(error.words, where=error.path)
    policies = objects.namespace_policies(found.source).of(pod.metadata.namespace)
    bounded = within_bounds(pod, policies.stored_limit_ranges())
    if not isinstance(bounded, Pod):
        raise InputError(bounded.message)


def _object(objects: Objects, found: FoundWorkload) -> dict[str, Plain]:
    """Return what an object says, with its kind, which items of lists leave out."""
    value = objects.plain(found)
    assert isinstance(value, dict)
    if "kind" in value:
        return value
    kind = found.workload.kind
    return {"apiVersion": POD_HOLDERS[kind].api_version if kind in POD_HOLDERS else "v1", "kind": kind, **value}


def _refusal(problems: Sequence[Problem]) -> InputError:
    first = next(iter(problems), None)
    if first is None:
        return InputError("the object would contain no pod")
    return InputError(first.what, where=first.field, fix=first.fix)
