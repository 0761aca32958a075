"""What a pod as a whole requests and is limited to.

Source: Kubernetes v1.36 staging/src/k8s.io/component-helpers/resource/helpers.go, and KEP-753 for sidecars:
init containers run one after the other before the rest, so a pod needs the larger of what runs in the end and
what any moment of the start needs; sidecars stay and are counted with everything that starts after them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from podqos.model.pod import RESIZE_CONDITIONS, Container, Pod, RunStatus
from podqos.model.quantity import ZERO, Quantity
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


def _reported(pod: Pod) -> dict[str, RunStatus]:
    """Return the containers whose status has resources, as it does since 1.33, by name.

    None of a pod without a class in its status: no API server stored that, it is tried with other resources.
    """
    status = pod.status
    if status.qos_class is None:
        return {}
    return {
        run_status.name: run_status
        for run_status in (*status.container_statuses, *status.init_container_statuses)
        if run_status.resources is not None or run_status.allocated_resources
    }


def as_charged(pod: Pod, *, pod_level_status: bool = True) -> Pod:
    """Return a pod with the requests that the scheduler counts on its node while a resize is not done.

    The largest of what the spec, the cgroup and the kubelet's books have; without the spec if the kubelet rejected the
    resize for good. ``pod_level_status`` false: pod-level amounts are those of the spec. From 1.37 on amounts of the
    whole pod are compared instead of those of each container, which matters only if one rises while another falls.

    Source: Kubernetes v1.36 staging/src/k8s.io/component-helpers/resource/helpers.go (determineEffectiveRequests).
    """
    known = _reported(pod)
    if not known and (pod.status.resources is None or pod.status.qos_class is None):
        return pod
    status, spec = pod.status, pod.spec
    is_infeasible = status.is_resize_infeasible
    own = spec.resources
    if own is not None and status.resources is not None and pod_level_status:
        stated = {} if is_infeasible else own.requests
        largest = largest_of((stated, status.resources.requests, status.allocated_resources))
        requests = {name: largest.get(name, ZERO) for name in own.requests}
        own = replace(own, requests=requests) if requests != own.requests else own
    containers = _charged(spec.containers, known, is_infeasible=is_infeasible)
    init_containers = _charged(spec.init_containers, known, is_infeasible=is_infeasible, only_sidecars=True)
    if own is spec.resources and containers is spec.containers and init_containers is spec.init_containers:
        return pod
    return replace(pod, spec=replace(spec, containers=containers, init_containers=init_containers, resources=own))


def as_allocated(pod: Pod) -> Pod:
    """Return a pod with the resources that its node runs it with, where its status shows a resize that is not done.

    Its kubelet goes by those in all it does: evictions, cgroups, and the OOM score of what it starts. Requests are what
    it allocated. Limits are what the cgroups of containers have; pod-level ones are those of the spec, because their
    status counts overhead and rounds.

    Source: Kubernetes v1.36 pkg/kubelet/allocation/allocation_manager.go (UpdatePodFromAllocation),
    pkg/kubelet/kubelet.go (the eviction manager is started with getAllocatedPods), pkg/kubelet/kubelet_pods.go
    (convertContainerStatusResources, convertToAPIPodLevelResourcesStatus).
    """
    known, status, spec = _reported(pod), pod.status, pod.spec
    if not known:
        return pod
    is_pending = any(condition.type in RESIZE_CONDITIONS for condition in status.conditions)
    containers, init_containers = (
        tuple(_allocated(container, known.get(container.name), is_pending=is_pending) for container in of_kind)
        for of_kind in (spec.containers, spec.init_containers)
    )
    own = spec.resources
    if own is not None and is_pending:
        overhead = spec.overhead or {}
        held = {name: status.allocated_resources.get(name) for name in own.requests}
        requests = {name: amount - overhead.get(name, ZERO) for name, amount in held.items() if amount is not None}
        own = replace(own, requests={**own.requests, **requests})
    running = replace(spec, containers=containers, init_containers=init_containers, resources=own)
    return pod if running == spec else replace(pod, spec=running)


def _allocated(container: Container, run_status: RunStatus | None, *, is_pending: bool) -> Container:
    if run_status is None:
        return container
    stated, actual = container.resources, run_status.resources
    requests = {**stated.requests, **run_status.allocated_resources}
    limits = {**stated.limits, **actual.limits} if actual is not None and is_pending else stated.limits
    if requests == stated.requests and limits == stated.limits:
        return container
    return replace(container, resources=replace(stated, requests=requests, limits=limits))


def _charged(
    containers: tuple[Container, ...],
    known: Mapping[str, RunStatus],
    *,
    is_infeasible: bool,
    only_sidecars: bool = False,
) -> tuple[Container, ...]:
    charged = []
    for container in containers:
        run_status = known.get(container.name)
        if run_status is None or run_status.resources is None or (only_sidecars and not container.is_sidecar):
            charged.append(container)
            continue
        stated = {} if is_infeasible else container.resources.requests
        requests = largest_of((stated, run_status.resources.requests, run_status.allocated_resources))
        is_same = requests == container.resources.requests
        resources = container.resources if is_same else replace(container.resources, requests=requests)
        charged.append(container if is_same else replace(container, resources=resources))
    is_unchanged = all(after is before for after, before in zip(charged, containers, strict=True))
    return containers if is_unchanged else tuple(charged)


def _pod_level(amounts: ResourceList) -> dict[str, Quantity]:
    return {name: amount for name, amount in amounts.items() if is_pod_level(name)}
