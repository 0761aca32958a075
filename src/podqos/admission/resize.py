"""In-place resize: the same checks for a pod that already runs, and what may change at all.

Only cpu and memory of containers, init containers (before 1.36 sidecars only) and the pod itself may change; nothing
stated may be taken away; the class must stay what it was. LimitRange defaults, bounds and quota apply as for a new pod
(the quota to what is more). Where the pod's node is known, it is asked as well (``resize_node``).

Source: Kubernetes v1.36 pkg/apis/core/validation/validation.go (ValidatePodResize), pkg/registry/core/pod/strategy.go
(dropNonResizeUpdates), pkg/kubeapiserver/options/plugins.go (order of the plug-ins).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.chain import Admission, Step, StepFunction, run_steps, within_bounds
from podqos.admission.changes import Change, Record, Why
from podqos.admission.defaulting import on_decoding, with_pod_level_last
from podqos.admission.field_errors import FieldError, forbidden, invalid
from podqos.admission.limit_range import apply_limit_ranges
from podqos.admission.pod_validation import validate_pod
from podqos.admission.policies import Policies
from podqos.admission.refusal import Refusal, invalid_pod
from podqos.admission.resize_node import KnownNodes, with_declared_features, within_allocatable
from podqos.amounts import mebibytes
from podqos.model.pod import Container, Pod
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import MEMORY, QOS_RESOURCES, ResourceList, ResourceRequirements
from podqos.qos.classes import classify

Errors = Iterator[FieldError]

_ONLY_CPU_AND_MEMORY = "only cpu and memory resources are mutable"


def resize(
    old: Pod, new: Pod, policies: Policies, profile: Profile = LATEST, nodes: KnownNodes | None = None
) -> Admission:
    """Take a resize of ``old`` to the resources of ``new`` through every step until one rejects it.

    Without its node among ``nodes`` the steps that ask the node are left out.
    """
    steps = _steps(old, policies, profile, nodes)
    return run_steps(_with_resources_of(old, new, profile), policies, steps, old=old, profile=profile)


def _steps(
    old: Pod, policies: Policies, profile: Profile, nodes: KnownNodes | None
) -> Iterator[tuple[Step, StepFunction]]:
    limit_ranges = policies.stored_limit_ranges()
    yield Step.DEFAULTING, lambda pod, record: on_decoding(pod, profile, record)
    yield Step.LIMIT_RANGER, lambda pod, record: apply_limit_ranges(pod, limit_ranges, record)
    if profile.pod_level_defaults_last:
        yield Step.POD_LEVEL_DEFAULTING, lambda pod, record: with_pod_level_last(pod, profile, record)
    yield Step.RESIZE, lambda pod, record: _valid(old, pod, profile, record)
    yield Step.LIMIT_RANGE_BOUNDS, lambda pod, _: within_bounds(pod, limit_ranges)
    if nodes is None or not nodes.knows(old):
        return
    if profile.declared_features:
        yield Step.NODE_DECLARED_FEATURES, lambda pod, _: with_declared_features(old, pod, nodes)
    if profile.resize_asks_node:
        yield Step.POD_RESIZE_VALIDATOR, lambda pod, _: within_allocatable(old, pod, nodes)


def _with_resources_of(old: Pod, new: Pod, profile: Profile) -> Pod:
    """Return the old pod with the new resources and resize policies: whatever else was changed is silently dropped.

    With more or fewer containers the new pod is taken as it is, and rejected.
    """
    if len(old.spec.containers) != len(new.spec.containers):
        return new
    if len(old.spec.init_containers) != len(new.spec.init_containers):
        return new
    spec = replace(
        old.spec,
        containers=_merged(old.spec.containers, new.spec.containers),
        init_containers=_merged(old.spec.init_containers, new.spec.init_containers),
        resources=new.spec.resources if profile.pod_level_resize else old.spec.resources,
    )
    if profile.pod_level_defaults_last and spec.resources is None:
        spec = replace(spec, resources=old.spec.resources)  # a client that does not know the field left it out
    return replace(old, spec=spec)


def _merged(old: tuple[Container, ...], new: tuple[Container, ...]) -> tuple[Container, ...]:
    if any(before.name != after.name for before, after in zip(old, new, strict=True)):
        return new
    return tuple(
        replace(before, resources=after.resources, resize_policy=after.resize_policy)
        for before, after in zip(old, new, strict=True)
    )


def _valid(old: Pod, new: Pod, profile: Profile, record: Record) -> Pod | Refusal:
    errors = validate_resize(old, new, profile)
    if errors:
        return invalid_pod(new, errors)
    if record is not None:
        record.extend(_changes(old, new))
    return new


def _changes(old: Pod, new: Pod) -> Iterator[Change]:
    """Yield what a valid resize changes."""
    nothing = ResourceRequirements()
    yield from _amount_changes(old.spec.resources or nothing, new.spec.resources or nothing, "spec.resources")
    for field, before, after in (
        ("containers", old.spec.containers, new.spec.containers),
        ("initContainers", old.spec.init_containers, new.spec.init_containers),
    ):
        for index, (was, became) in enumerate(zip(before, after, strict=True)):
            yield from _amount_changes(was.resources, became.resources, f"spec.{field}[{index}].resources")


def _amount_changes(old: ResourceRequirements, new: ResourceRequirements, path: str) -> Iterator[Change]:
    for side, before, after in (("requests", old.requests, new.requests), ("limits", old.limits, new.limits)):
        for name, amount in sorted(after.items()):
            if amount != before.get(name):
                yield Change(f"{path}.{side}", name, before.get(name), amount, Why.RESIZED)


class BelowUsage(Struct, frozen=True, gc=False, rename="camel"):
    """A memory limit that is set or lowered to no more than what is in use."""

    container: str
    """Empty for the pod as a whole."""
    limit_bytes: int
    usage_bytes: int

    @property
    def sentence(self) -> str:
        """Both amounts, and what comes of them once the limit counts after all."""
        used, limit = mebibytes(self.usage_bytes), mebibytes(self.limit_bytes)
        whose = f"{self.container} uses" if self.container else "the pod's containers use"
        return f"{whose} {used}, not less than the new memory limit of {limit}: OOM-killed after its next restart"

    @property
    def message(self) -> str:
        """The kubelet's own words."""
        whose = f'container "{self.container}"' if self.container else "pod"
        return f"attempting to set {whose} memory limit ({self.limit_bytes}) below current usage ({self.usage_bytes})"


def below_usage(
    before: Mapping[str, int], after: Mapping[str, int], usage: Mapping[str, int]
) -> tuple[BelowUsage, ...]:
    """Return the memory limits that a kubelet does not write, by container, and by the empty text of the pod.

    Source: Kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_manager.go (validateMemoryResizeAction).
    """
    return tuple(
        BelowUsage(name, limit, usage[name])
        for name, limit in sorted(after.items())
        if limit < before.get(name, limit + 1) and usage.get(name, 0) >= limit
    )


def validate_resize(old: Pod, new: Pod, profile: Profile = LATEST) -> tuple[FieldError, ...]:
    """Return the errors of changing the resources of ``old`` to those of ``new``."""
    if old.is_mirror:
        return (forbidden("", "static pods cannot be resized"),)
    if old.is_windows:
        return (forbidden("", "windows pods cannot be resized"),)
    errors = (*validate_pod(new, is_stored=True), *_class_errors(old, new, profile))
    is_pod_level = _states_amounts(old.spec.resources) or _states_amounts(new.spec.resources)
    if is_pod_level and not profile.pod_level_resize:
        gate = "InPlacePodLevelResourcesVerticalScalingEnabled"
        words = f"resize of pods with pod-level resources is forbidden when {gate} feature gate is disabled"
        return (*errors, forbidden("", words))
    if is_pod_level:
        errors += tuple(_pod_level_errors(old, new))
    reordered = (
        *_order_errors(old.spec.containers, new.spec.containers, "containers"),
        *_order_errors(old.spec.init_containers, new.spec.init_containers, "initContainers"),
    )
    if reordered:
        return errors + reordered
    errors += (
        *_removed_errors(old, new, profile),
        *(() if profile.memory_limit_decrease else _decrease_errors(old, new)),
        *_container_errors(old, new),
        *_init_container_errors(old, new, profile),
    )
    if not errors and not is_pod_level and (old.spec.resources is None) != (new.spec.resources is None):
        # An empty ``resources`` is no amount that could be resized, and not nothing either.
        return (forbidden("spec", _ONLY_CPU_AND_MEMORY),)
    return errors


def _states_amounts(resources: ResourceRequirements | None) -> bool:
    return resources is not None and bool(resources.requests or resources.limits)


def _class_errors(old: Pod, new: Pod, profile: Profile) -> Errors:
    before = old.status.qos_class or classify(old, profile).qos_class
    if before is not classify(new, profile).qos_class:
        yield invalid("spec", before, "Pod QOS Class may not change as a result of resizing")


def _order_errors(old: tuple[Container, ...], new: tuple[Container, ...], field: str) -> Errors:
    if len(old) != len(new):
        yield forbidden(f"spec.{field}", f"{field} may not be added or removed on resize")
        return
    for index, (before, after) in enumerate(zip(old, new, strict=True)):
        if before.name != after.name:
            yield forbidden(f"spec.{field}[{index}].name", f"{field} may not be renamed or reordered on resize")


def _pod_level_errors(old: Pod, new: Pod) -> Errors:
    before, after = old.spec.resources, new.spec.resources
    if after is None:
        yield forbidden("spec.resources", "pod-level resources cannot be removed")
        return
    own = before or ResourceRequirements()
    yield from _removed(own, after, "spec.resources", "pod-level resource")
    if replace(_masked(after, own), claims=after.claims) != own:
        yield forbidden("spec", f"{_ONLY_CPU_AND_MEMORY} at pod-level")


def _removed_errors(old: Pod, new: Pod, profile: Profile) -> Errors:
    for index, (before, after) in enumerate(zip(old.spec.init_containers, new.spec.init_containers, strict=True)):
        if before.is_sidecar or profile.init_container_resize:
            yield from _removed(before.resources, after.resources, f"spec.initContainers[{index}].resources")
    for index, (before, after) in enumerate(zip(old.spec.containers, new.spec.containers, strict=True)):
        yield from _removed(before.resources, after.resources, f"spec.containers[{index}].resources")


def _decrease_errors(old: Pod, new: Pod) -> Errors:
    """Yield what 1.33 forbids (v1.33 validateContainerResize)."""
    for field, was, became in (
        ("initContainers", old.spec.init_containers, new.spec.init_containers),
        ("containers", old.spec.containers, new.spec.containers),
    ):
        for index, (before, after) in enumerate(zip(was, became, strict=True)):
            limit, lower = before.resources.limits.get(MEMORY), after.resources.limits.get(MEMORY)
            if limit is not None and lower is not None and lower < limit and not after.restarts_for(MEMORY):
                words = "memory limits cannot be decreased unless resizePolicy is RestartContainer"
                yield forbidden(f"spec.{field}[{index}].resources.limits", words)


def _container_errors(old: Pod, new: Pod) -> Errors:
    for before, after in zip(old.spec.containers, new.spec.containers, strict=True):
        if _with_masked_resources(after, before) != before:
            yield forbidden("spec", _ONLY_CPU_AND_MEMORY)


def _init_container_errors(old: Pod, new: Pod, profile: Profile) -> Errors:
    kinds = "init or sidecar" if profile.init_container_resize else "sidecar"
    for index, (before, after) in enumerate(zip(old.spec.init_containers, new.spec.init_containers, strict=True)):
        path = f"spec.initContainers[{index}]"
        if not after.is_sidecar and not profile.init_container_resize:
            if after != before:
                yield forbidden("spec", "resources for non-sidecar init containers are immutable")
            continue
        if _with_masked_resources(after, before) != before:
            yield forbidden(path, f"only cpu and memory resources for {kinds} containers are mutable")
        if after != before and not after.is_sidecar:
            restarts = [policy for policy in after.resize_policy if policy.restart_policy == "RestartContainer"]
            words = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            yield from (forbidden(path, words) for _ in restarts)


def _with_masked_resources(new: Container, old: Container) -> Container:
    return replace(new, resources=_masked(new.resources, old.resources))


def _removed(old: ResourceRequirements, new: ResourceRequirements, path: str, what: str = "resource") -> Errors:
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
