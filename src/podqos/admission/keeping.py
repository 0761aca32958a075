"""Sidecars that would demote a Guaranteed pod get limits, if the pod asks for that.

``podqos.dev/keep-class: Guaranteed`` asks. A pod is meant to be Guaranteed if one of its containers is so by itself;
the others get what ``qos.edits`` finds. What a container without any amount gets only its owner knows:
``podqos.dev/sidecar-limits: cpu=100m,memory=128Mi``. It is all or nothing, as half the limits cost and keep no class.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.changes import Change, Record, Why, container_names
from podqos.admission.defaulting import on_decoding
from podqos.errors import InvalidQuantity
from podqos.model.pod import Container, Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import QOS_RESOURCES, ResourceList
from podqos.qos.classes import classify
from podqos.qos.edits import Edit, edits_to_guaranteed

KEEP_ANNOTATION = "podqos.dev/keep-class"
"""The annotation that asks for it; only ``Guaranteed`` can be kept."""
LIMITS_ANNOTATION = "podqos.dev/sidecar-limits"
"""The limits of containers that state no amount."""


class WhyNotKept(StrEnum):
    """Why a pod that asks for it does not stay Guaranteed."""

    NO_SUCH_CLASS = "NoSuchClass"
    """The annotation names another class than Guaranteed."""
    NOT_MEANT = "NotMeant"
    """None of its containers is Guaranteed by itself, or the pod-level resources differ."""
    AMOUNTS_UNKNOWN = "AmountsUnknown"
    """A container states no amount, and the annotation with limits does not say which it gets."""
    OVERRIDDEN = "Overridden"
    """A ClusterResourceOverride sets the requests of its namespace."""
    LIMITS_UNREADABLE = "LimitsUnreadable"
    """The annotation with limits is not of the form cpu=100m,memory=128Mi."""


class Kept(Struct, frozen=True):
    """A pod that asks to stay Guaranteed."""

    pod: Pod
    """The pod with the limits, if there are any to write."""
    why_not: WhyNotKept | None = None
    containers: tuple[str, ...] = ()
    """The containers that prevent it."""


def keep_guaranteed(
    pod: Pod, profile: Profile = LATEST, record: Record = None, *, is_overridden: bool = False
) -> Kept | None:
    """Return the pod with limits for its sidecars; None if it does not ask for that, or is Guaranteed."""
    wanted = pod.metadata.annotations.get(KEEP_ANNOTATION)
    if wanted is None:
        return None
    if wanted != QOSClass.GUARANTEED:
        return Kept(pod, WhyNotKept.NO_SUCH_CLASS)
    if classify(on_decoding(pod, profile), profile).qos_class is QOSClass.GUARANTEED:
        return None
    if is_overridden:
        return Kept(pod, WhyNotKept.OVERRIDDEN)
    edits = edits_to_guaranteed(pod, profile)
    changed = {edit.path.partition(".resources.")[0] for edit in edits}
    in_order = [index for index, _ in enumerate(pod.spec.containers) if f"spec.containers[{index}]" not in changed]
    if "spec" in changed or not in_order:
        return Kept(pod, WhyNotKept.NOT_MEANT)
    stated = _limits(pod.metadata.annotations.get(LIMITS_ANNOTATION, ""))
    if stated is None:
        return Kept(pod, WhyNotKept.LIMITS_UNREADABLE)
    changes = [_change(edit, stated) for edit in edits]
    if None in changes:
        lacking = [edit.path for edit, change in zip(edits, changes, strict=True) if change is None]
        return Kept(pod, WhyNotKept.AMOUNTS_UNKNOWN, _containers(pod, lacking))
    written = [change for change in changes if change is not None]
    if record is not None:
        record.extend(written)
    return Kept(_written(pod, written), containers=_containers(pod, [change.path for change in written]))


def _containers(pod: Pod, paths: Iterable[str]) -> tuple[str, ...]:
    names = container_names(pod)
    return tuple(dict.fromkeys(names[path.partition(".resources.")[0]] for path in paths))


def _change(edit: Edit, stated: ResourceList) -> Change | None:
    path, _, resource = edit.path.rpartition(".")
    amount = edit.value or stated.get(resource)
    return Change(path, resource, edit.replaces, amount, Why.KEPT_GUARANTEED, KEEP_ANNOTATION) if amount else None


def _limits(text: str) -> ResourceList | None:
    """Read ``cpu=100m,memory=128Mi``; None if it is not that."""
    found: ResourceList = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, amount = part.partition("=")
        try:
            found[name] = Quantity.parse(amount)
        except InvalidQuantity:
            return None
    return found if found.keys() <= set(QOS_RESOURCES) and all(amount.nanos > 0 for amount in found.values()) else None


def _written(pod: Pod, changes: list[Change]) -> Pod:
    by_place: dict[str, list[Change]] = {}
    for change in changes:
        by_place.setdefault(change.path.partition(".resources.")[0], []).append(change)

    def group(field: str, containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(
            _with_amounts(container, by_place.get(f"spec.{field}[{index}]", ()))
            for index, container in enumerate(containers)
        )

    spec = pod.spec
    containers, init_containers = group("containers", spec.containers), group("initContainers", spec.init_containers)
    return replace(pod, spec=replace(spec, containers=containers, init_containers=init_containers))


def _with_amounts(container: Container, changes: list[Change] | tuple[()]) -> Container:
    requests, limits = dict(container.resources.requests), dict(container.resources.limits)
    for change in changes:
        (limits if change.path.endswith(".limits") else requests)[change.resource] = change.after
    return replace(container, resources=replace(container.resources, requests=requests, limits=limits))
