"""PQ105–PQ110 and PQ114–PQ115: amounts that are allowed and do not go together."""

from __future__ import annotations

from fractions import Fraction

from msgspec.structs import replace

from podqos.advice.facts import (
    FractionalCPU,
    LimitFarAboveRequest,
    NoDiskLimit,
    NoMemoryLimit,
    RequestFollowsLimit,
    SmallSidecar,
    UnboundedVolume,
)
from podqos.advice.finding import Choice, FieldEdit, Patch
from podqos.advice.repair import field_edits, with_edits
from podqos.advice.view import View
from podqos.model.effective import pod_level_is_set
from podqos.model.pod import Container, PodStatus, QOSClass
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
    if pod_level_is_set(view.pod):
        return
    known = any(finding.check == "PQ101" for finding in view.findings)
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers):
            if field == "initContainers" and not container.is_sidecar:
                continue
            request, limit = container.resources.requests.get(MEMORY), container.resources.limits.get(MEMORY)
            path = f"spec.{field}[{index}].resources"
            if request and limit:
                _far_apart(view, container, path, request, limit)
            elif limit and request is None:
                _follows(view, container, path, limit)
            elif request and limit is None and not known:
                _unlimited(view, container, path, request)


def _far_apart(view: View, container: Container, path: str, request: Quantity, limit: Quantity) -> None:
    allowed = view.options.memory_ratio
    if limit.nanos * allowed.denominator <= request.nanos * allowed.numerator:
        return
    needed = -(-limit.value * allowed.denominator // allowed.numerator)
    raised = Quantity.of_units(-(-needed // _MEBIBYTE) * _MEBIBYTE, "BinarySI")
    edits = (Edit(f"{path}.requests.memory", min(raised, limit), request),)
    view.report(
        "PQ105",
        f"{path}.requests.memory",
        LimitFarAboveRequest(str(request), str(limit), float(Fraction(limit.nanos, request.nanos)), float(allowed)),
        Patch(tuple(field_edits(edits, view.prefix))),
        container=container.name,
        repaired=with_edits(view.pod, edits),
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
    if view.admission is not None and _is_limited(view, container.name):
        return  # by a LimitRange, which is PQ202's
    view.report(
        "PQ107",
        f"{path}.requests.memory",
        NoMemoryLimit(str(request)),
        Patch(needs_choice=Choice.MEMORY_LIMIT, paths=(f"{view.prefix}{path}.limits.memory",)),
        container=container.name,
    )


def _is_limited(view: View, name: str) -> bool:
    spec = view.stored.spec
    return any(
        container.name == name and MEMORY in container.resources.limits
        for container in (*spec.containers, *spec.init_containers)
    )


def disk_limits(view: View) -> None:
    """PQ108: containers that may fill the node's disk. BestEffort pods have a more urgent finding."""
    if view.stored_class is QOSClass.BEST_EFFORT:
        return
    lacking = [
        (index, container.name)
        for index, container in enumerate(view.stored.spec.containers)
        if EPHEMERAL_STORAGE not in container.resources.limits
    ]
    if not lacking:
        return
    paths = tuple(f"{view.prefix}spec.containers[{index}].resources.limits.ephemeral-storage" for index, _ in lacking)
    view.report(
        "PQ108",
        f"spec.containers[{lacking[0][0]}].resources",
        NoDiskLimit(tuple(name for _, name in lacking)),
        Patch(needs_choice=Choice.EPHEMERAL_STORAGE_LIMIT, paths=paths),
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
        repaired = with_edits(view.pod, edits)
        assert repaired is not None
        view.report(
            "PQ115",
            f"{path}.limits.cpu",
            FractionalCPU(str(limit)),
            Patch(tuple(field_edits(edits, view.prefix))),
            container=container.name,
            repaired=replace(repaired, status=PodStatus()),
        )
