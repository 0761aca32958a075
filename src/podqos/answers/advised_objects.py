"""Advice as objects: priority classes, workloads with the advised amounts, and patches that say only what changes.

Objects are plain values in the shape of the API. The patches are strategic merge patches, for kustomize and for
``kubectl patch --patch-file``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy

from podqos.advice.checks.finding import FieldEdit, plain_value
from podqos.advice.fixes.patches import object_patch
from podqos.advice.sizing.applying import ContainerAdvice
from podqos.advice.sizing.matrix import PriorityTier
from podqos.answers.advice import WorkloadAdvice
from podqos.manifest.edits.values import with_field
from podqos.manifest.kinds import POD_HOLDERS
from podqos.manifest.plain import Plain, parse_path
from podqos.model.pod import Workload
from podqos.model.resources import QOS_RESOURCES

_LISTS = ("containers", "initContainers")


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


def advised_object(value: Mapping[str, Plain], pod_path: str, advice: WorkloadAdvice) -> dict[str, Plain]:
    """Return an object with the advice applied and everything else unchanged."""
    advised = deepcopy(dict(value))
    spec = _mapping(_at(advised, pod_path), "spec")
    if advice.priority_class is not None:
        spec.pop("priorityClassName", None)
        spec.pop("priority", None)
        if advice.priority_class:
            spec["priorityClassName"] = advice.priority_class
    by_name = {container.container: container for container in advice.containers}
    for name in _LISTS:
        for container in _items(spec, name):
            _write(container, by_name[str(container["name"])])
    return advised


def patch_object(value: Mapping[str, Plain], pod_path: str, advice: WorkloadAdvice) -> dict[str, Plain] | None:
    """Return the changes as a strategic merge patch, in which null removes a field; None if nothing changes."""
    old = _mapping(_at(dict(value), pod_path), "spec")
    spec: dict[str, Plain] = {}
    if advice.priority_class is not None and advice.priority_class != (old.get("priorityClassName") or ""):
        spec["priorityClassName"] = advice.priority_class or None
    by_name = {container.container: container for container in advice.containers}
    for name in _LISTS:
        patches: list[Plain] = []
        for container in _items(old, name):
            own = by_name[str(container["name"])]
            resources, runtime = _resource_patch(own), _runtime_fields(container, own, is_patch=True)
            if resources or runtime:
                patches.append(
                    {"name": container["name"], **({"resources": resources} if resources else {}), **runtime}
                )
        if patches:
            spec[name] = patches
    if not spec:
        return None
    patched: Plain = {"spec": spec}
    for step in reversed(pod_path.split(".") if pod_path else []):
        patched = {step: patched}
    metadata = _mapping(value, "metadata")
    names: dict[str, Plain] = {name: metadata[name] for name in ("name", "namespace") if name in metadata}
    assert isinstance(patched, dict)
    return {"apiVersion": value.get("apiVersion"), "kind": value.get("kind"), "metadata": names, **patched}


def has_usual_template(workload: Workload) -> bool:
    """Whether the pod of an object is where Kubernetes' own kind of that name has it."""
    holder = POD_HOLDERS.get(workload.kind)
    return holder is not None and workload.pod_path == ".".join(holder.pod_path)


def edited_object(value: Plain, edits: Sequence[FieldEdit], *, patches: bool) -> dict[str, Plain] | None:
    """Return a custom resource with edits in it, or with ``patches`` what changes, as a JSON merge patch."""
    patch = object_patch(value, edits)
    assert isinstance(value, dict), "an object that was read as a workload"
    if patch is None:
        return None if patches else value
    if patches:
        names: dict[str, Plain] = {"name": patch.name, **({"namespace": patch.namespace} if patch.namespace else {})}
        return {"apiVersion": patch.api_version, "kind": patch.kind, "metadata": names, **patch.merge}
    new: Plain = value
    for edit in edits:
        new = with_field(new, parse_path(edit.path), plain_value(edit.value))
    assert isinstance(new, dict), "edits are of fields"
    return new


def _write(container: dict[str, Plain], advice: ContainerAdvice) -> None:
    resources = container.get("resources")
    resources = dict(resources) if isinstance(resources, dict) else {}
    for side, amounts in (("requests", advice.requests), ("limits", advice.limits)):
        resources.pop(side, None)
        if amounts:
            resources[side] = {name: str(amount) for name, amount in amounts.items()}
    if resources:
        container["resources"] = resources
    else:
        container.pop("resources", None)
    container.update(_runtime_fields(container, advice, is_patch=False))


def _runtime_fields(container: Mapping[str, Plain], advice: ContainerAdvice, *, is_patch: bool) -> dict[str, Plain]:
    """Return env, command and args as they should be; of env a patch has only what changes, by name."""
    fields: dict[str, Plain] = {}
    for change in advice.runtime_changes:
        if not change.field_text:
            continue
        name, index = change.field
        items = container.get(name)
        if not isinstance(items, list) or index >= len(items):
            continue
        old = fields.get(name)
        if name == "env":
            entry: Plain = {"name": change.variable, "value": change.field_text}
            if is_patch:
                fields[name] = [*(old if isinstance(old, list) else ()), entry]
                continue
        else:
            entry = change.field_text
        changed = list(old if isinstance(old, list) else items)
        changed[index] = entry
        fields[name] = changed
    return fields


def _resource_patch(advice: ContainerAdvice) -> dict[str, Plain]:
    sides = (
        ("requests", advice.requests_before, advice.requests),
        ("limits", advice.limits_before, advice.limits),
    )
    patch: dict[str, Plain] = {}
    for side, before, after in sides:
        changed: dict[str, Plain] = {
            name: str(after[name]) if name in after else None
            for name in QOS_RESOURCES
            if before.get(name) != after.get(name)
        }
        if changed:
            patch[side] = changed
    return patch


def _at(value: dict[str, Plain], path: str) -> dict[str, Plain]:
    for step in path.split(".") if path else ():
        value = _mapping(value, step)
    return value


def _mapping(value: Mapping[str, Plain], name: str) -> dict[str, Plain]:
    item = value[name]
    assert isinstance(item, dict), "an object that was read as a workload"
    return item


def _items(spec: Mapping[str, Plain], name: str) -> list[dict[str, Plain]]:
    items = spec.get(name)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
