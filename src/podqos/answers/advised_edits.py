"""Advice as edits of the objects it is about: for files in place, and for patches of several tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from msgspec import Struct

from podqos.advice.checks.finding import FieldEdit, plain_value
from podqos.advice.fixes.patches import ObjectPatch, object_patch
from podqos.advice.sizing.applying import ContainerAdvice
from podqos.answers.advice import AdviceReport, WorkloadAdvice
from podqos.answers.patches import kubectl_patch, kustomize_entry, kustomize_file_name, kustomize_patch
from podqos.controls import one_line
from podqos.manifest.edits.apply import CannotEdit, Edited, ObjectEdit, apply_edits
from podqos.model.pod import Workload
from podqos.model.quantity import Quantity
from podqos.model.resources import QOS_RESOURCES
from podqos.objects.objects import FoundWorkload, Objects
from podqos.survival.drift.resizing import Resizing

_LISTS = ("containers", "initContainers")


class PatchTool(StrEnum):
    """For whom patches are written."""

    KUBECTL = "kubectl"
    KUSTOMIZE = "kustomize"


class EditedFile(Struct, frozen=True):
    """A file with advice written into it, or why that cannot be done."""

    source: str
    before: bytes
    outcome: Edited | CannotEdit
    workloads: tuple[str, ...]
    """Those that change in it."""


def edits_of(workload: Workload, advice: WorkloadAdvice) -> list[FieldEdit]:
    """Return the fields of an object that advice changes, and nothing else."""
    spec = workload.pod.spec
    edits = []
    if advice.priority_class is not None and advice.priority_class != spec.priority_class_name:
        edits.append(FieldEdit(workload.at("spec.priorityClassName"), advice.priority_class or None))
        if spec.priority is not None:
            edits.append(FieldEdit(workload.at("spec.priority"), None))
    by_name = {container.container: container for container in advice.containers}
    for field, containers in zip(_LISTS, (spec.containers, spec.init_containers), strict=True):
        for index, container in enumerate(containers):
            path = workload.at(f"spec.{field}[{index}].resources")
            edits += _resource_edits(path, by_name[container.name])
    return edits


def _resource_edits(path: str, advice: ContainerAdvice) -> Iterator[FieldEdit]:
    sides = (("requests", advice.requests_before, advice.requests), ("limits", advice.limits_before, advice.limits))
    for side, before, after in sides:
        if before and not after:
            yield FieldEdit(f"{path}.{side}", None)
            continue
        for name in QOS_RESOURCES:
            if before.get(name) != after.get(name):
                amount: Quantity | None = after.get(name)
                yield FieldEdit(f"{path}.{side}.{name}", None if amount is None else str(amount))


def changed_workloads(objects: Objects, report: AdviceReport) -> list[tuple[FoundWorkload, WorkloadAdvice]]:
    """Return the workloads of files that advice changes."""
    advised = {workload.workload: workload for workload in report.workloads}
    found = []
    for workload in objects.latest(warn=False):
        key = f"{workload.workload.kind} {workload.workload.pod.key}"
        if key in advised and edits_of(workload.workload, advised[key]):
            found.append((workload, advised[key]))
    return found


def edited_files(objects: Objects, report: AdviceReport, sources: Sequence[str]) -> list[EditedFile]:
    """Return the files with the advice about their workloads written into them; only the lines that change do."""
    by_source: dict[str, list[tuple[FoundWorkload, WorkloadAdvice]]] = {source: [] for source in sources}
    for workload, advice in changed_workloads(objects, report):
        if workload.source in by_source:
            by_source[workload.source].append((workload, advice))
    texts = {source.path: source.data for source in objects.sources}
    files = []
    for source, own in by_source.items():
        edits = [
            ObjectEdit(found.place, edit.path, plain_value(edit.value))
            for found, advice in own
            for edit in edits_of(found.workload, advice)
        ]
        names = tuple(advice.workload for _, advice in own)
        files.append(EditedFile(source, texts[source], apply_edits(texts[source], edits), names))
    return files


# ---- patches -----------------------------------------------------------------------------------------------------


def tool_patches(objects: Objects, report: AdviceReport, tool: PatchTool) -> Iterator[str]:
    """Yield the lines of patches for a tool."""
    for found, advice in changed_workloads(objects, report):
        patch = object_patch(objects.plain(found), edits_of(found.workload, advice))
        if patch is None:
            continue
        match tool:
            case PatchTool.KUBECTL:
                yield _command(patch, found, advice)
            case PatchTool.KUSTOMIZE:
                yield f"# {one_line(kustomize_file_name(patch))}, and in kustomization.yaml:"
                yield from (f"#   {line}" for line in kustomize_entry(patch).splitlines())
                yield from kustomize_patch(patch).splitlines()
                yield "---"


def _command(patch: ObjectPatch, found: FoundWorkload, advice: WorkloadAdvice) -> str:
    namespace = found.workload.metadata.namespace_or_default
    command = kubectl_patch(patch, namespace)
    if command is not None:
        return command
    resize = advice.resize
    if found.workload.kind == "Pod" and resize is not None and resize.outcome is not Resizing.REFUSED:
        resized = kubectl_patch(patch, namespace, resizes=True)
        if resized is not None:
            return resized
    return f"# {one_line(advice.workload)}: this field is immutable; replace the object"
