"""What all workloads are to be made into at once: Guaranteed, as cheap as usage allows, or as safe as can be.

``guaranteed``: requests equal limits, from usage where it was measured, otherwise the larger of the two that are
stated. ``cheapest``: Burstable, and no request above what is stated now; a workload without samples stays as it is.
``safest``: nothing is lowered, and memory is requested up to its limit, so that no pod is evicted for using more than
it requests. No CPU limit is added: it would throttle.

Unknown amounts are not invented.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec.structs import replace

from podqos.advice.sizing.applying import ContainerAdvice, PodAdvice
from podqos.advice.sizing.memory_need import CHEAPEST, SAFEST, USUAL, Caution
from podqos.advice.sizing.raising import with_amounts
from podqos.advice.sizing.sizing import UsageHistory
from podqos.model.pod import Container, Pod, QOSClass
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, ResourceList


class Goal(StrEnum):
    """What advice aims at."""

    GUARANTEED = "guaranteed"
    CHEAPEST = "cheapest"
    SAFEST = "safest"


def caution_for(goal: Goal | None) -> Caution:
    """Return how much memory is reserved to prevent an OOM kill."""
    cautions = {Goal.CHEAPEST: CHEAPEST, Goal.SAFEST: SAFEST}
    return USUAL if goal is None else cautions.get(goal, USUAL)


def class_for(goal: Goal | None, current: QOSClass, *, is_measured: bool) -> QOSClass:
    """Return the class that a workload without a description is to have."""
    if goal is Goal.GUARANTEED:
        return QOSClass.GUARANTEED
    if goal is Goal.CHEAPEST and is_measured:
        return QOSClass.BURSTABLE
    if goal is Goal.SAFEST and current is QOSClass.BEST_EFFORT:
        return QOSClass.BURSTABLE
    # What is used has to be reserved somewhere: a workload that was measured is not left without requests.
    if current is QOSClass.BEST_EFFORT and is_measured:
        return QOSClass.BURSTABLE
    return current


def toward(goal: Goal, advice: PodAdvice, usages: Mapping[str, UsageHistory]) -> PodAdvice:
    """Return advice with the amounts that the goal asks for."""
    adjust = {Goal.GUARANTEED: _as_sized, Goal.CHEAPEST: _cheapest, Goal.SAFEST: _safest}[goal]
    containers = tuple(
        adjust(container, usages.get(container.container), advice.qos_class) for container in advice.containers
    )
    return with_containers(advice, containers)


def with_containers(advice: PodAdvice, containers: tuple[ContainerAdvice, ...]) -> PodAdvice:
    """Return advice about a pod with other amounts, in the pod, too."""
    return PodAdvice(_resized(advice.pod, containers), advice.qos_class, containers)


def _as_sized(advice: ContainerAdvice, _: UsageHistory | None, __: QOSClass) -> ContainerAdvice:
    return advice


def _cheapest(advice: ContainerAdvice, usage: UsageHistory | None, qos_class: QOSClass) -> ContainerAdvice:
    if usage is None or qos_class is QOSClass.GUARANTEED:
        return advice
    requests = dict(advice.requests)
    for name in (CPU, MEMORY):
        if name in requests and name in advice.requests_before:
            requests[name] = min(requests[name], advice.requests_before[name])
    return with_amounts(advice, usage, requests, advice.limits)


def _safest(advice: ContainerAdvice, usage: UsageHistory | None, qos_class: QOSClass) -> ContainerAdvice:
    requests = _larger(advice.requests_before, advice.requests)
    limits = _larger(advice.limits_before, advice.limits)
    if qos_class is not QOSClass.GUARANTEED and CPU not in advice.limits_before:
        limits.pop(CPU, None)
    if MEMORY in limits and (MEMORY in requests or usage is not None):
        limits[MEMORY] = requests[MEMORY] = max(limits[MEMORY], requests.get(MEMORY, limits[MEMORY]))
    if qos_class is QOSClass.GUARANTEED and CPU in limits and CPU in requests:
        limits[CPU] = requests[CPU] = max(limits[CPU], requests[CPU])
    return with_amounts(advice, usage, requests, limits)


def _larger(before: ResourceList, after: ResourceList) -> dict[str, Quantity]:
    """Return the larger of two amounts, or the only one."""
    return {name: max(before.get(name, amount), amount) for name, amount in {**before, **after}.items()}


def _resized(pod: Pod, containers: tuple[ContainerAdvice, ...]) -> Pod:
    amounts = {container.container: container for container in containers}

    def each(own: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(
            replace(
                container,
                resources=replace(
                    container.resources,
                    requests=amounts[container.name].requests,
                    limits=amounts[container.name].limits,
                ),
            )
            for container in own
        )

    spec = pod.spec
    return replace(
        pod, spec=replace(spec, containers=each(spec.containers), init_containers=each(spec.init_containers))
    )
