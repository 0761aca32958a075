"""What a pod as a whole requests and is limited to.

Source: Kubernetes v1.36 staging/src/k8s.io/component-helpers/resource/helpers.go, and KEP-753 for sidecars:
init containers run one after the other before the rest, so a pod needs the larger of what runs in the end and
what any moment of the start needs; sidecars stay and are counted with everything that starts after them.
"""

from __future__ import annotations

from collections.abc import Callable

from podqos.model.pod import Container, Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceList, is_pod_level, largest_of, sum_of


def pod_requests(pod: Pod, *, overhead: bool = True, pod_level: bool = True) -> ResourceList:
    """Return the effective requests: containers, sidecars, init containers, pod-level amounts, overhead.

    ``overhead`` false leaves the runtime's overhead out, ``pod_level`` false the pod-level amounts.
    """
    total = sum_of_containers(pod, lambda container: container.resources.requests)
    if pod_level and pod.spec.resources is not None:
        total.update(_pod_level(pod.spec.resources.requests))
    return sum_of((total, pod.spec.overhead)) if overhead and pod.spec.overhead else total


def pod_limits(pod: Pod, *, overhead: bool = True, pod_level: bool = True) -> ResourceList:
    """Return the effective limits. Overhead raises only limits that exist and are not zero."""
    total = sum_of_containers(pod, lambda container: container.resources.limits)
    if pod_level and pod.spec.resources is not None:
        total.update(_pod_level(pod.spec.resources.limits))
    if overhead:
        for name, amount in (pod.spec.overhead or {}).items():
            limit = total.get(name)
            if limit:
                total[name] = limit + amount
    return total


def sum_of_containers(pod: Pod, amounts: Callable[[Container], ResourceList]) -> ResourceList:
    """Combine one resource list per container into the pod's, by the sidecar rule above."""
    running = [amounts(container) for container in pod.spec.containers]
    if not pod.spec.init_containers:
        return sum_of(running)
    sidecars: ResourceList = {}
    starting: list[ResourceList] = []
    for container in pod.spec.init_containers:
        if container.is_sidecar:
            running.append(amounts(container))
            sidecars = sum_of((sidecars, amounts(container)))
            starting.append(sidecars)
        else:
            starting.append(sum_of((amounts(container), sidecars)))
    return largest_of((sum_of(running), *starting))


def pod_level_is_set(pod: Pod) -> bool:
    """Whether pod-level resources take part: at least one amount of cpu, memory or huge pages."""
    resources = pod.spec.resources
    return resources is not None and any(
        is_pod_level(name) for amounts in (resources.requests, resources.limits) for name in amounts
    )


def _pod_level(amounts: ResourceList) -> dict[str, Quantity]:
    return {name: amount for name, amount in amounts.items() if is_pod_level(name)}
