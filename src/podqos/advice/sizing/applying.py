"""A pod as advised: the class and priority of the matrix, the sizes of the samples, container by container.

Unknown amounts are not invented: a container without samples keeps the amounts it has, and is named if they are not
enough for the class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.sizing.bounds import BoundedAmount
from podqos.advice.sizing.coverage import NO_COVERAGE, Coverage
from podqos.advice.sizing.matrix import BurstPattern, PriorityTier, Recommendation
from podqos.advice.sizing.memory_need import USUAL, Caution, MemoryNeed
from podqos.advice.sizing.runtime_settings import ProgramSetting
from podqos.advice.sizing.sizing import Doubt, Percentiles, Risk, Sizing, UsageHistory, size
from podqos.model.pod import Container, Pod, QOSClass
from podqos.model.policy import PriorityClass
from podqos.model.resources import QOS_RESOURCES, ResourceList


class ContainerAdvice(Struct, frozen=True, rename="camel"):
    """What one container should ask for."""

    container: str
    requests_before: ResourceList
    limits_before: ResourceList
    requests: ResourceList
    limits: ResourceList
    memory_bytes: Percentiles | None
    """What was measured; null where nothing was."""
    cpu_milli: Percentiles | None
    risk: Risk
    """The remaining risk, counted from the samples."""
    doubts: tuple[Doubt, ...]
    needs_choice: bool
    """Whether amounts are missing that cannot be derived and without which the pod does not have the class."""
    is_provisional: bool = False
    """Whether there is too little data: margins are wide, and nothing gets smaller than it is today."""
    coverage: Coverage = NO_COVERAGE
    """How long and how densely it was measured, and why that is too little where it is."""
    memory_need: MemoryNeed | None = None
    """How much memory it will need, and why; null where nothing was measured."""
    bounded: tuple[BoundedAmount, ...] = ()
    """Amounts that a LimitRange or a VerticalPodAutoscaler holds to something else than usage asks for."""
    setting: ProgramSetting | None = None
    """The heap or the like for which the memory limit has to leave room; null where there is none."""


class PodAdvice(Struct, frozen=True):
    """A pod as it should be."""

    pod: Pod
    qos_class: QOSClass
    """The class aimed at."""
    containers: tuple[ContainerAdvice, ...]


class Asked(Struct, frozen=True):
    """What is asked for besides the class."""

    burst: BurstPattern = BurstPattern.STEADY
    priority_class: str | None = None
    """None: as it is."""
    caution: Caution = USUAL


def advise_pod(
    pod: Pod,
    current_class: QOSClass,
    usages: Mapping[str, UsageHistory],
    recommendation: Recommendation | None = None,
    asked: Asked = Asked(),  # noqa: B008 - frozen
) -> PodAdvice:
    """Return the pod with advised amounts and priority; without a recommendation class and priority stay."""
    qos_class = current_class if recommendation is None else recommendation.qos_class
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    sizes = {
        container.name: size(
            usages.get(container.name, UsageHistory()), qos_class, asked.burst, container.resources, asked.caution
        )
        for container in containers
    }
    spec = replace(
        pod.spec,
        containers=_resized(pod.spec.containers, sizes),
        init_containers=_resized(pod.spec.init_containers, sizes),
    )
    if asked.priority_class is not None:
        spec = replace(spec, priority_class_name=asked.priority_class, priority=None)
    unsized = {
        container.name
        for container in containers
        if _is_unsized(sizes[container.name], qos_class, is_init=container in pod.spec.init_containers)
    }
    advised = tuple(
        _container_advice(
            container,
            sizes[container.name],
            usages[container.name].coverage if container.name in usages else NO_COVERAGE,
            needs_choice=container.name in unsized,
        )
        for container in containers
    )
    return PodAdvice(replace(pod, spec=spec), qos_class, advised)


def _container_advice(
    container: Container, sizing: Sizing, coverage: Coverage, *, needs_choice: bool
) -> ContainerAdvice:
    return ContainerAdvice(
        container=container.name,
        requests_before=container.resources.requests,
        limits_before=container.resources.limits,
        requests=sizing.resources.requests,
        limits=sizing.resources.limits,
        memory_bytes=sizing.memory,
        cpu_milli=sizing.cpu,
        risk=sizing.risk,
        doubts=sizing.doubts,
        needs_choice=needs_choice,
        is_provisional=sizing.is_provisional,
        coverage=coverage,
        memory_need=sizing.need,
    )


def priority_class_for(tier: PriorityTier, existing: Iterable[PriorityClass]) -> tuple[str, bool]:
    """Return the name of the PriorityClass to use, and whether it has to be created.

    A class with the same value does as well. The lowest tier needs none: a pod without a class has priority 0.
    """
    if tier.is_default:
        return "", False
    same = sorted(priority_class.metadata.name for priority_class in existing if priority_class.value == tier.value)
    if same:
        return (tier.name if tier.name in same else same[0]), False
    return tier.name, True


def _resized(containers: tuple[Container, ...], sizes: Mapping[str, Sizing]) -> tuple[Container, ...]:
    return tuple(replace(container, resources=sizes[container.name].resources) for container in containers)


def _is_unsized(sizing: Sizing, qos_class: QOSClass, *, is_init: bool) -> bool:
    resources = sizing.resources
    if qos_class is QOSClass.GUARANTEED:
        return any(name not in resources.limits for name in QOS_RESOURCES)
    if qos_class is QOSClass.BURSTABLE:
        # A limit is also the request, where none is written.
        return not is_init and any(name not in {**resources.limits, **resources.requests} for name in QOS_RESOURCES)
    return False
