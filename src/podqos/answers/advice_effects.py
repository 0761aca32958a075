"""What advice frees or adds, per replica and in all."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from podqos.model.effective import pod_limits, pod_requests
from podqos.model.pod import Pod
from podqos.model.resources import CPU, MEMORY, ResourceList


class Amounts(Struct, frozen=True, rename="camel"):
    """Amounts of both resources; below zero, they are freed."""

    cpu_milli: int = 0
    memory_bytes: int = 0

    def __add__(self, other: Amounts) -> Amounts:
        """Return both together."""
        return Amounts(self.cpu_milli + other.cpu_milli, self.memory_bytes + other.memory_bytes)

    def __sub__(self, other: Amounts) -> Amounts:
        """Return by how much these are more."""
        return Amounts(self.cpu_milli - other.cpu_milli, self.memory_bytes - other.memory_bytes)

    def times(self, count: int) -> Amounts:
        """Return so many of them."""
        return Amounts(self.cpu_milli * count, self.memory_bytes * count)


class PodAmounts(Struct, frozen=True, rename="camel"):
    """What one pod requests and is limited to; a limit is missing where a container has none."""

    requests: ResourceList
    limits: ResourceList


class Effect(Struct, frozen=True, rename="camel"):
    """What the advice about a workload frees or adds in requests."""

    now: PodAmounts | None
    """Of one pod; null for a workload that does not exist yet."""
    advised: PodAmounts
    per_replica: Amounts
    total: Amounts | None
    """Null where the number of pods is not known."""


def effect_of(before: Pod | None, after: Pod, replicas: int | None) -> Effect:
    """Return what becomes of the requests of a workload; pods as the API server stores them."""
    old, new = Amounts() if before is None else _requested(before), _requested(after)
    return Effect(
        now=None if before is None else pod_amounts(before),
        advised=pod_amounts(after),
        per_replica=new - old,
        total=None if replicas is None else (new - old).times(replicas),
    )


def total_of(effects: Iterable[Effect]) -> Amounts:
    """Return what all workloads free or add together, as far as it is known."""
    return sum((effect.total for effect in effects if effect.total is not None), Amounts())


def pod_amounts(pod: Pod) -> PodAmounts:
    """Return what a pod requests and is limited to as a whole."""
    limits = {name: amount for name, amount in _both(pod_limits(pod)).items() if _is_limited(pod, name)}
    return PodAmounts(_both(pod_requests(pod)), limits)


def _requested(pod: Pod) -> Amounts:
    requests = pod_requests(pod)
    return Amounts(
        requests[CPU].milli_value if CPU in requests else 0, requests[MEMORY].value if MEMORY in requests else 0
    )


def _both(amounts: ResourceList) -> ResourceList:
    return {name: amounts[name] for name in (CPU, MEMORY) if name in amounts}


def _is_limited(pod: Pod, resource: str) -> bool:
    own = pod.spec.resources
    if own is not None and own.limits.get(resource):
        return True
    return all(container.resources.limits.get(resource) for container in pod.running_containers)
