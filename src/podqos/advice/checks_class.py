"""PQ101–PQ104: pods that have another class than somebody meant."""

from __future__ import annotations

from msgspec.structs import replace

from podqos.advice.facts import NearlyGuaranteed, NothingSet, Spoiler
from podqos.advice.finding import Choice, Patch
from podqos.advice.repair import patch_of, with_edits
from podqos.advice.view import View
from podqos.model.pod import PodStatus, QOSClass
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
    places = list(deciding_resources(view.defaulted, view.options.profile))
    in_order = tuple(place.container for place, resources in places if _is_complete(resources))
    if not in_order and not all(_is_nearly_complete(resources) for _, resources in places):
        return
    spoilers = tuple(_spoiler(place, resources, name) for place, resources in places for name in _spoiled(resources))
    if not spoilers:
        return
    edits = edits_to_guaranteed(view.pod, view.options.profile)
    # Which amounts are chosen makes no difference to the class, and little to the order.
    chosen = [edit if edit.value is not None else replace(edit, value=_SMALL[_resource(edit)]) for edit in edits]
    repaired = with_edits(replace(view.pod, status=PodStatus()), chosen)
    first = next(place for place, resources in places if not _is_complete(resources))
    view.report(
        "PQ101",
        f"{first.path}.resources",
        NearlyGuaranteed(in_order, spoilers),
        patch_of(edits, view.prefix, Choice.RESOURCES),
        container=first.container or None,
        repaired=repaired,
    )


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
    return [
        name
        for name in QOS_RESOURCES
        if not resources.limits.get(name) or resources.requests.get(name) != resources.limits[name]
    ]


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
