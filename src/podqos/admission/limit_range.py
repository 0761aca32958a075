"""LimitRange defaults: what a namespace fills into the containers of its pods.

This can change the class of a pod whose manifest did not change: a container without resources becomes Burstable or
Guaranteed, one with a request alone gets a ceiling. The bounds that the result must keep to are in
``limit_range_bounds``, whether a LimitRange itself makes sense in ``policy_validation``.

Source: Kubernetes v1.36 plugin/pkg/admission/limitranger/admission.go; the object's own defaults:
pkg/apis/core/v1/defaults.go (SetDefaults_LimitRangeItem).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.changes import Record, Why, note
from podqos.admission.defaulting import rounded_list
from podqos.model.pod import Container, Pod
from podqos.model.policy import LimitRange, LimitRangeItem
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceList, ResourceRequirements

ANNOTATION = "kubernetes.io/limit-ranger"
CONTAINER, POD, CLAIM = "Container", "Pod", "PersistentVolumeClaim"


def defaulted_limit_range(limit_range: LimitRange) -> LimitRange:
    """Return the object as the API server stores it: default from max, default request from default or else min."""
    limits = tuple(_defaulted_item(item) for item in limit_range.spec.limits)
    return replace(limit_range, spec=replace(limit_range.spec, limits=limits))


def _defaulted_item(item: LimitRangeItem) -> LimitRangeItem:
    default, default_request = item.default, item.default_request
    if item.type == CONTAINER:
        default = item.max | default
        default_request = item.min | default | default_request
    return LimitRangeItem(
        type=item.type,
        max=rounded_list(item.max),
        min=rounded_list(item.min),
        default=rounded_list(default),
        default_request=rounded_list(default_request),
        max_limit_request_ratio=rounded_list(item.max_limit_request_ratio),
    )


class ConflictingDefaults(Struct, frozen=True, gc=False, rename="camel"):
    """Two LimitRanges that default one resource differently: which one a pod gets is not defined."""

    side: str
    """``limits`` or ``requests``."""
    resource: str
    limit_ranges: tuple[str, ...]
    amounts: tuple[Quantity, ...]


def conflicting_defaults(limit_ranges: Sequence[LimitRange]) -> tuple[ConflictingDefaults, ...]:
    """Return the resources for which the order of the LimitRanges matters. Upstream keeps them in no order."""
    conflicts = []
    defaults = [(limit_range.metadata.name, _container_defaults(limit_range)) for limit_range in limit_ranges]
    for side in ("limits", "requests"):
        given: dict[str, list[tuple[str, Quantity]]] = {}
        for name, requirements in defaults:
            amounts: ResourceList = getattr(requirements, side)
            for resource, amount in amounts.items():
                given.setdefault(resource, []).append((name, amount))
        for resource, offers in sorted(given.items()):
            if len({amount for _, amount in offers}) > 1:
                names, amounts_offered = zip(*offers, strict=True)
                conflicts.append(ConflictingDefaults(side, resource, names, amounts_offered))
    return tuple(conflicts)


def apply_limit_ranges(pod: Pod, limit_ranges: Sequence[LimitRange], record: Record = None) -> Pod:
    """Fill each container's missing requests and limits, in the order of the list; the first to set a value wins.

    The pod's own resources are never touched. The annotation says what the last LimitRange that set anything set.
    """
    for limit_range in limit_ranges:
        pod = _apply(pod, limit_range, record)
    return pod


def _container_defaults(limit_range: LimitRange) -> ResourceRequirements:
    """Within one LimitRange the last item that names a resource wins."""
    requests: ResourceList = {}
    limits: ResourceList = {}
    for item in limit_range.spec.limits:
        if item.type == CONTAINER:
            requests |= item.default_request
            limits |= item.default
    return ResourceRequirements(requests, limits)


def _apply(pod: Pod, limit_range: LimitRange, record: Record) -> Pod:
    defaults = _container_defaults(limit_range)
    notes: list[str] = []
    source = limit_range.metadata.name
    spec = pod.spec
    containers = tuple(
        _with_defaults(container, defaults, f"spec.containers[{index}].resources", record, source)
        for index, container in enumerate(spec.containers)
    )
    init_containers = tuple(
        _with_defaults(container, defaults, f"spec.initContainers[{index}].resources", record, source)
        for index, container in enumerate(spec.init_containers)
    )
    for before, after, kind in (
        (spec.containers, containers, "container"),
        (spec.init_containers, init_containers, "init container"),
    ):
        for old, new in zip(before, after, strict=True):
            notes += _notes(old.resources, new.resources, f"{kind} {new.name}")
    if not notes:
        return pod
    annotations = pod.metadata.annotations | {ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes)}"}
    return replace(
        pod,
        metadata=replace(pod.metadata, annotations=annotations),
        spec=replace(spec, containers=containers, init_containers=init_containers),
    )


def _with_defaults(
    container: Container, defaults: ResourceRequirements, path: str, record: Record, source: str
) -> Container:
    resources = container.resources
    limits = {name: amount for name, amount in defaults.limits.items() if name not in resources.limits}
    requests = {name: amount for name, amount in defaults.requests.items() if name not in resources.requests}
    if not limits and not requests:
        return container
    note(record, f"{path}.requests", requests, Why.LIMIT_RANGE_DEFAULT_REQUEST, source)
    note(record, f"{path}.limits", limits, Why.LIMIT_RANGE_DEFAULT, source)
    filled = replace(resources, requests=resources.requests | requests, limits=resources.limits | limits)
    return replace(container, resources=filled)


def _notes(before: ResourceRequirements, after: ResourceRequirements, whose: str) -> Iterator[str]:
    """Return the text of the annotation about what was set."""
    for word, old, new in (("request", before.requests, after.requests), ("limit", before.limits, after.limits)):
        names = sorted(new.keys() - old.keys())
        if names:
            yield f"{', '.join(names)} {word} for {whose}"
