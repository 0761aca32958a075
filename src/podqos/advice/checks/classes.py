"""PQ101–PQ104: pods that have another class than somebody meant."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from podqos.advice.checks.facts import NearlyGuaranteed, NothingSet, Spoiler
from podqos.advice.checks.finding import Choice, Patch
from podqos.advice.checks.repair import patch_of, with_edits
from podqos.advice.checks.view import View
from podqos.model.pod import Container, Pod, QOSClass
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import CPU, MEMORY, QOS_RESOURCES, ResourceRequirements
from podqos.qos.classes import Place, deciding_resources
from podqos.qos.edits import Edit, edits_to_guaranteed

# A request that is at least so much of its limit was meant to be equal: 4G and 4Gi are 93 %.
_NEARLY = 0.9
# What a container that states nothing is given when it comes to comparing.
_SMALL = {CPU: Quantity.parse("100m"), MEMORY: Quantity.parse("128Mi")}
_UNTIL_DONE = ("Job", "CronJob")
_DAEMON_SET = "DaemonSet"


def accidental_burstable(view: View) -> None:
    """PQ101: Burstable though somebody took the trouble to make most of it Guaranteed."""
    if view.qos_class is not QOSClass.BURSTABLE or view.stored_class is QOSClass.GUARANTEED:
        return
    spec = view.defaulted.spec
    if spec.resources is None and not any(map(_has_limits, spec.containers)):
        return
    places = list(deciding_resources(view.defaulted, view.options.profile))
    in_order = tuple(place.container for place, resources in places if _is_complete(resources))
    if not _is_mostly_complete(places) and not all(_is_nearly_complete(resources) for _, resources in places):
        return
    spoilers = tuple(_spoiler(place, resources, name) for place, resources in places for name in _spoiled(resources))
    if not spoilers:
        return
    edits = edits_to_guaranteed(view.pod, view.options.profile)
    first = next(place for place, resources in places if not _is_complete(resources))
    view.report(
        "PQ101",
        f"{first.path}.resources",
        NearlyGuaranteed(in_order, spoilers),
        patch_of(edits, view.prefix, Choice.RESOURCES),
        container=first.container or None,
        repaired=lambda: _repaired(view.pod, edits),
    )


def _has_limits(container: Container) -> bool:
    """Whether a container can be complete, or nearly so: most that are not show it here."""
    resources = container.resources
    cpu, memory = resources.limits.get(CPU), resources.limits.get(MEMORY)
    if cpu is None or memory is None:
        return False
    requests = resources.requests
    return requests[CPU].nanos >= _NEARLY * cpu.nanos and requests[MEMORY].nanos >= _NEARLY * memory.nanos


def _repaired(pod: Pod, edits: Sequence[Edit]) -> Pod | None:
    """Return the pod as Guaranteed. Which amounts are chosen changes nothing about the class, and little otherwise."""
    chosen = [edit if edit.value is not None else replace(edit, value=_SMALL[_resource(edit)]) for edit in edits]
    return with_edits(pod, chosen)


def _resource(edit: Edit) -> str:
    return edit.path.rpartition(".")[2]


def best_effort(view: View) -> None:
    """PQ102–PQ104: BestEffort, and somebody will miss it. One of the three: who waits for it matters most."""
    if view.stored_class is not QOSClass.BEST_EFFORT:
        return
    kind = view.workload.kind
    check = "PQ104" if view.serves is not None else "PQ103" if kind == _DAEMON_SET else "PQ102"
    if check == "PQ102" and (kind in _UNTIL_DONE or view.pod.spec.restart_policy in {"Never", "OnFailure"}):
        return
    if check != "PQ104" and view.is_expendable:
        return
    containers = view.pod.spec.containers
    paths = tuple(f"{view.prefix}spec.containers[{index}].resources.requests" for index in range(len(containers)))
    view.report(
        check,
        "spec.containers[0].resources" if containers else "spec",
        NothingSet(kind, tuple(container.name for container in containers), view.serves),
        Patch(needs_choice=Choice.RESOURCES, paths=paths),
    )


def _is_complete(resources: ResourceRequirements) -> bool:
    return not _spoiled(resources)


def _spoiled(resources: ResourceRequirements) -> list[str]:
    """Return the resources that keep a container, looked at alone, from being Guaranteed."""
    limits, requests = resources.limits, resources.requests
    return [name for name in QOS_RESOURCES if not limits.get(name) or requests.get(name) != limits[name]]


def _is_mostly_complete(places: Sequence[tuple[Place, ResourceRequirements]]) -> bool:
    """Whether at least half of the memory is in containers that are complete: the rest was forgotten."""
    complete = others = 0
    for _, resources in places:
        amounts = (resources.requests.get(MEMORY, ZERO).nanos, resources.limits.get(MEMORY, ZERO).nanos)
        if _is_complete(resources):
            complete += max(amounts)
        else:
            others += max(amounts)
    return complete > 0 and complete >= others


def _is_nearly_complete(resources: ResourceRequirements) -> bool:
    for name in QOS_RESOURCES:
        limit = resources.limits.get(name)
        if not limit or resources.requests.get(name, ZERO).nanos < _NEARLY * limit.nanos:
            return False
    return True


def _spoiler(place: Place, resources: ResourceRequirements, name: str) -> Spoiler:
    request, limit = resources.requests.get(name), resources.limits.get(name)
    return Spoiler(
        place.container or "the pod",
        name,
        None if request is None else str(request),
        None if limit is None else str(limit),
    )
