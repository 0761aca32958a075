"""In-place resize: the same checks for a pod that already runs, and what may change at all.

Only cpu and memory of containers, sidecars and the pod itself may change; nothing stated may be taken away; the class
must stay what it was. LimitRange defaults, bounds and quota apply as for a new pod (the quota to what is more).

Source: Kubernetes v1.36 pkg/apis/core/validation/validation.go (ValidatePodResize), pkg/registry/core/pod/strategy.go
(dropNonResizeUpdates). Whether the node can do it is the kubelet's to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from podqos.admission.chain import Admission, Step, StepFunction, run_steps, within_bounds
from podqos.admission.defaulting import defaulted
from podqos.admission.field_errors import ErrorType, FieldError, forbidden
from podqos.admission.limit_range import apply_limit_ranges
from podqos.admission.policies import Policies
from podqos.admission.refusal import Refusal, invalid_pod
from podqos.admission.validation import validate_pod
from podqos.model.pod import Container, Pod
from podqos.model.resources import QOS_RESOURCES, ResourceList, ResourceRequirements
from podqos.qos.classes import classify

Errors = Iterator[FieldError]


def resize(old: Pod, new: Pod, policies: Policies) -> Admission:
    """Take a resize of ``old`` to the resources of ``new`` through every step until one refuses it."""
    return run_steps(_with_resources_of(old, new), policies, _steps(old, policies), old=old)


def _steps(old: Pod, policies: Policies) -> Iterator[tuple[Step, StepFunction]]:
    limit_ranges = policies.stored_limit_ranges()
    yield Step.DEFAULTING, defaulted
    yield Step.LIMIT_RANGER, lambda pod, record: apply_limit_ranges(pod, limit_ranges, record)
    yield Step.RESIZE, lambda pod, _: _valid(old, pod)
    yield Step.LIMIT_RANGE_BOUNDS, lambda pod, _: within_bounds(pod, limit_ranges)


def _with_resources_of(old: Pod, new: Pod) -> Pod:
    """Return the old pod with the new resources: whatever else was changed is silently dropped."""
    spec = replace(
        old.spec,
        containers=_merged(old.spec.containers, new.spec.containers),
        init_containers=_merged(old.spec.init_containers, new.spec.init_containers),
        resources=new.spec.resources,
    )
    return replace(old, spec=spec)


def _merged(old: tuple[Container, ...], new: tuple[Container, ...]) -> tuple[Container, ...]:
    known = {container.name: container for container in old}
    return tuple(
        replace(known[container.name], resources=container.resources) if container.name in known else container
        for container in new
    )


def _valid(old: Pod, new: Pod) -> Pod | Refusal:
    errors = validate_resize(old, new)
    return invalid_pod(new, errors) if errors else new


def validate_resize(old: Pod, new: Pod) -> tuple[FieldError, ...]:
    """Return what is wrong with changing the resources of ``old`` into those of ``new``."""
    if old.is_mirror:
        return (forbidden("", "static pods cannot be resized"),)
    if old.spec.os.name == "windows":
        return (forbidden("", "windows pods cannot be resized"),)
    reordered = (
        *_order_errors(old.spec.containers, new.spec.containers, "containers"),
        *_order_errors(old.spec.init_containers, new.spec.init_containers, "initContainers"),
    )
    errors = (*validate_pod(new), *_class_errors(old, new), *_pod_level_errors(old, new), *reordered)
    if reordered:
        return errors
    return (*errors, *_init_container_errors(old, new), *_container_errors(old, new))


def _class_errors(old: Pod, new: Pod) -> Errors:
    before = old.status.qos_class or classify(old).qos_class
    if before is not classify(new).qos_class:
        words = "Pod QOS Class may not change as a result of resizing"
        yield FieldError("spec", ErrorType.INVALID, new.status.qos_class or "", words)


def _order_errors(old: tuple[Container, ...], new: tuple[Container, ...], field: str) -> Errors:
    if len(old) != len(new):
        yield forbidden(f"spec.{field}", f"{field} may not be added or removed on resize")
        return
    for index, (before, after) in enumerate(zip(old, new, strict=True)):
        if before.name != after.name:
            yield forbidden(f"spec.{field}[{index}].name", f"{field} may not be renamed or reordered on resize")


def _pod_level_errors(old: Pod, new: Pod) -> Errors:
    before, after = old.spec.resources, new.spec.resources
    if not any(resources is not None and (resources.requests or resources.limits) for resources in (before, after)):
        return
    if before is not None and after is None:
        yield forbidden("spec.resources", "pod-level resources cannot be removed")
        return
    assert after is not None
    own = before or ResourceRequirements()
    if before is not None:
        yield from _removed(own, after, "spec.resources", "pod-level resource")
    if replace(_masked(after, own), claims=after.claims) != own:
        yield forbidden("spec", "only cpu and memory resources are mutable at pod-level")


def _init_container_errors(old: Pod, new: Pod) -> Errors:
    for index, (before, after) in enumerate(zip(old.spec.init_containers, new.spec.init_containers, strict=True)):
        path = f"spec.initContainers[{index}]"
        if before.is_sidecar:
            yield from _removed(before.resources, after.resources, f"{path}.resources", "resource")
            if _masked(after.resources, before.resources) != before.resources:
                yield forbidden(path, "only cpu and memory resources for sidecar containers are mutable")
        elif after.resources != before.resources:
            yield forbidden("spec", "resources for non-sidecar init containers are immutable")


def _container_errors(old: Pod, new: Pod) -> Errors:
    for index, (before, after) in enumerate(zip(old.spec.containers, new.spec.containers, strict=True)):
        yield from _removed(before.resources, after.resources, f"spec.containers[{index}].resources", "resource")
        if _masked(after.resources, before.resources) != before.resources:
            yield forbidden("spec", "only cpu and memory resources are mutable")


def _removed(old: ResourceRequirements, new: ResourceRequirements, path: str, what: str) -> Errors:
    if old.requests.keys() - new.requests.keys():
        yield forbidden(f"{path}.requests", f"{what} requests cannot be removed")
    if old.limits.keys() - new.limits.keys():
        yield forbidden(f"{path}.limits", f"{what} limits cannot be removed")


def _masked(new: ResourceRequirements, old: ResourceRequirements) -> ResourceRequirements:
    """Return the new resources with the old cpu and memory: what then differs must not. Claims are left out."""
    return ResourceRequirements(_without_changes(new.requests, old.requests), _without_changes(new.limits, old.limits))


def _without_changes(new: ResourceList, old: ResourceList) -> ResourceList:
    kept = {name: amount for name, amount in new.items() if name not in QOS_RESOURCES}
    return kept | {name: old[name] for name in QOS_RESOURCES if name in old}
