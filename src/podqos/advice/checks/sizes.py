"""PQ105–PQ110 and PQ114–PQ115: amounts that are allowed and do not go together."""

from __future__ import annotations

from podqos.advice.checks.facts import (
    FractionalCPU,
    LimitFarAboveRequest,
    NoDiskLimit,
    NoMemoryLimit,
    RequestFollowsLimit,
    SmallSidecar,
    UnboundedVolume,
)
from podqos.advice.checks.finding import Choice, FieldEdit, Patch
from podqos.advice.checks.repair import field_edits, with_edits
from podqos.advice.checks.view import View
from podqos.model.effective import pod_level_is_set
from podqos.model.pod import Container, Pod, QOSClass
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from podqos.qos.edits import Edit
from podqos.qos.oom import oom_scores

_MEBIBYTE = 1 << 20
# So close to 1000 that a container is killed about as soon as if it had asked for nothing.
_LIKE_NOTHING = 990
# How much lower the score of the container it serves must be.
_FAR_BELOW = 20


def memory_amounts(view: View) -> None:
    """PQ105–PQ107: the memory request and limit of each container that keeps running."""
    spec = view.pod.spec
    if spec.resources is not None and pod_level_is_set(view.pod):
        return
    for index, container in enumerate(spec.containers):
        _memory(view, container, "containers", index)
    for index, container in enumerate(spec.init_containers):
        if container.is_sidecar:
            _memory(view, container, "initContainers", index)


def _memory(view: View, container: Container, field: str, index: int) -> None:
    request, limit = container.resources.requests.get(MEMORY), container.resources.limits.get(MEMORY)
    if request and limit:
        if request.nanos == limit.nanos:
            return
        allowed = view.options.memory_ratio
        if limit.nanos * allowed.denominator > request.nanos * allowed.numerator:
            _far_apart(view, container, f"spec.{field}[{index}].resources", request, limit)
    elif limit and request is None:
        _follows(view, container, f"spec.{field}[{index}].resources", limit)
    elif request and limit is None and not any(finding.check == "PQ101" for finding in view.findings):
        _unlimited(view, container, f"spec.{field}[{index}].resources", request)


def _far_apart(view: View, container: Container, path: str, request: Quantity, limit: Quantity) -> None:
    allowed = view.options.memory_ratio
    needed = -(-limit.value * allowed.denominator // allowed.numerator)
    raised = Quantity.of_units(-(-needed // _MEBIBYTE) * _MEBIBYTE, "BinarySI")
    edit = Edit(f"{path}.requests.memory", min(raised, limit), request)
    view.report(
        "PQ105",
        edit.path,
        LimitFarAboveRequest(str(request), str(limit), limit.nanos / request.nanos, float(allowed)),
        Patch((FieldEdit(view.prefix + edit.path, str(edit.value), str(request)),)),
        container=container.name,
        repaired=lambda: with_edits(view.pod, (edit,)),
    )


def _follows(view: View, container: Container, path: str, limit: Quantity) -> None:
    view.report(
        "PQ106",
        f"{path}.limits.memory",
        RequestFollowsLimit(str(limit)),
        Patch((FieldEdit(f"{view.prefix}{path}.requests.memory", str(limit)),)),
        container=container.name,
    )


def _unlimited(view: View, container: Container, path: str, request: Quantity) -> None:
    if view.admission is not None and _is_limited(view.admission.first.pod, container.name):
        return  # by a LimitRange, of which PQ202 or PQ203 tells
    view.report(
        "PQ107",
        f"{path}.requests.memory",
        NoMemoryLimit(str(request)),
        Patch(needs_choice=Choice.MEMORY_LIMIT, paths=(f"{view.prefix}{path}.limits.memory",)),
        container=container.name,
    )


def _is_limited(pod: Pod, name: str) -> bool:
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return any(each.name == name and MEMORY in each.resources.limits for each in containers)


def disk_limits(view: View) -> None:
    """PQ108: containers that may fill the node's disk. BestEffort pods have a more urgent finding."""
    if view.stored_class is QOSClass.BEST_EFFORT:
        return
    first = None
    names, paths = [], []
    for index, container in enumerate(view.stored.spec.containers):
        if EPHEMERAL_STORAGE not in container.resources.limits:
            path = f"spec.containers[{index}].resources"
            first = first or path
            names.append(container.name)
            paths.append(f"{view.prefix}{path}.limits.ephemeral-storage")
    if first is not None:
        view.report(
            "PQ108",
            first,
            NoDiskLimit(tuple(names)),
            Patch(needs_choice=Choice.EPHEMERAL_STORAGE_LIMIT, paths=tuple(paths)),
        )


def volumes(view: View) -> None:
    """PQ109, PQ110: emptyDir volumes without a size limit, in memory and on disk."""
    for index, volume in enumerate(view.pod.spec.volumes):
        directory = volume.empty_dir
        if directory is None or directory.size_limit:
            continue
        in_memory = directory.medium == "Memory"
        path = f"spec.volumes[{index}].emptyDir"
        view.report(
            "PQ109" if in_memory else "PQ110",
            path,
            UnboundedVolume(volume.name, in_memory),
            Patch(needs_choice=Choice.VOLUME_SIZE_LIMIT, paths=(f"{view.prefix}{path}.sizeLimit",)),
        )


def small_sidecar(view: View) -> None:
    """PQ114: a container that counts as nothing in a pod that must not die.

    Init containers that restart are left out: their score follows that of the container they serve.
    """
    spec = view.stored.spec
    if len(spec.containers) < 2 or view.stored_class is not QOSClass.BURSTABLE:
        return
    if view.serves is None and view.priority < view.options.important_priority:
        return
    scores = oom_scores(view.stored, QOSClass.BURSTABLE, view.context.node_memory_bytes, view.options.profile)
    regular = scores[: len(spec.containers)]
    main = min(regular, key=lambda score: score.value)
    for index, score in enumerate(regular):
        if score.value >= _LIKE_NOTHING and score.value - main.value >= _FAR_BELOW:
            view.report(
                "PQ114",
                f"spec.containers[{index}].resources",
                SmallSidecar(score.value, main.container, main.value),
                Patch(needs_choice=Choice.SIDECAR_FORM, paths=(f"{view.prefix}spec.containers[{index}]",)),
                container=score.container,
            )


def fractional_cpu(view: View) -> None:
    """PQ115: a Guaranteed container that a static CPU manager leaves in the shared pool."""
    if view.stored_class is not QOSClass.GUARANTEED or not view.context.has_static_cpu_manager:
        return
    if view.stored.spec.resources is not None:
        return
    for index, container in enumerate(view.stored.spec.containers):
        limit = container.resources.limits[CPU]
        if limit.milli_value % 1000 == 0:
            continue
        written = view.pod.spec.containers[index].resources
        whole = Quantity.of_units(limit.value)
        path = f"spec.containers[{index}].resources"
        edits = [Edit(f"{path}.limits.cpu", whole, written.limits.get(CPU))]
        if CPU in written.requests:
            edits.append(Edit(f"{path}.requests.cpu", whole, written.requests[CPU]))
        view.report(
            "PQ115",
            f"{path}.limits.cpu",
            FractionalCPU(str(limit)),
            Patch(tuple(field_edits(edits, view.prefix))),
            container=container.name,
        )
