"""A pod as advised: the class and priority of the matrix, the sizes of the samples, container by container.

What is not known is not made up: a container without samples keeps the amounts it has, and where that is not enough for
the class it is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.sizing.matrix import BurstPattern, PriorityTier, Recommendation
from podqos.advice.sizing.sizing import Sizing, UsageHistory, size
from podqos.model.pod import Container, Pod, QOSClass
from podqos.model.policy import PriorityClass
from podqos.model.resources import QOS_RESOURCES, ResourceRequirements


class ContainerAdvice(Struct, frozen=True):
    """What one container should ask for."""

    name: str
    before: ResourceRequirements
    sizing: Sizing
    is_init: bool = False

    @property
    def resources(self) -> ResourceRequirements:
        """What it should ask for."""
        return self.sizing.resources


class PodAdvice(Struct, frozen=True):
    """A pod as it should be."""

    pod: Pod
    qos_class: QOSClass
    """The class aimed at."""
    containers: tuple[ContainerAdvice, ...]
    unsized: tuple[str, ...]
    """Containers for which amounts must be chosen, or the pod does not have the class."""


def advise_pod(
    pod: Pod,
    current_class: QOSClass,
    usages: Mapping[str, UsageHistory],
    recommendation: Recommendation | None = None,
    *,
    burst: BurstPattern = BurstPattern.STEADY,
    priority_class: str | None = None,
) -> PodAdvice:
    """Return the pod with advised amounts and priority; without a recommendation class and priority stay."""
    qos_class = current_class if recommendation is None else recommendation.qos_class
    advised = {
        container.name: ContainerAdvice(
            container.name,
            container.resources,
            size(usages.get(container.name, UsageHistory()), qos_class, burst, container.resources),
            is_init=index >= len(pod.spec.containers),
        )
        for index, container in enumerate((*pod.spec.containers, *pod.spec.init_containers))
    }
    spec = replace(
        pod.spec,
        containers=_resized(pod.spec.containers, advised),
        init_containers=_resized(pod.spec.init_containers, advised),
    )
    if priority_class is not None:
        spec = replace(spec, priority_class_name=priority_class, priority=None)
    unsized = tuple(name for name, advice in advised.items() if _is_unsized(advice, qos_class))
    return PodAdvice(replace(pod, spec=spec), qos_class, tuple(advised.values()), unsized)


def priority_class_for(tier: PriorityTier, existing: Iterable[PriorityClass]) -> tuple[str, bool]:
    """Return the name of the PriorityClass to use, and whether it has to be created.

    A class with the same value does as well. The lowest tier needs none: a pod without a class has priority 0.
    """
    if tier.is_default:
        return "", False
    same = sorted(each.metadata.name for each in existing if each.value == tier.value)
    if same:
        return (tier.name if tier.name in same else same[0]), False
    return tier.name, True


def _resized(containers: tuple[Container, ...], advised: Mapping[str, ContainerAdvice]) -> tuple[Container, ...]:
    return tuple(replace(container, resources=advised[container.name].resources) for container in containers)


def _is_unsized(advice: ContainerAdvice, qos_class: QOSClass) -> bool:
    resources = advice.resources
    if qos_class is QOSClass.GUARANTEED:
        return any(name not in resources.limits for name in QOS_RESOURCES)
    if qos_class is QOSClass.BURSTABLE:
        return not advice.is_init and any(name not in resources.requests for name in QOS_RESOURCES)
    return False
