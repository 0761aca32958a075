"""The API server's defaulting of resources.

Requests follow limits here: this is why a container that states only limits is Guaranteed. LimitRange defaults come
in between and are in ``limit_range``. Amounts of the pod itself, where it states some, follow from those of its
containers: up to 1.36 while the pod is decoded, since 1.37 (KEP-2837) only when it is about to be stored, so that what
admission added counts as well, and limits follow, too.

Sources: Kubernetes v1.36 pkg/apis/core/v1/defaults.go (SetDefaults_Pod, defaultHugePagePodLimits, defaultPodRequests,
and SetDefaults_ResourceList, which the generated code runs last); v1.37.0-rc.1 pkg/api/pod/util.go
(DefaultPodLevelResources). Pod templates are not defaulted this way upstream; the pod made from one is, which is the
one that counts.
"""

from __future__ import annotations

from msgspec.structs import replace

from podqos.admission.changes import Change, Record, Why, note
from podqos.model.effective import sum_of_containers
from podqos.model.pod import Container, Pod, PodSpec
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import (
    NO_RESOURCES,
    ResourceList,
    ResourceRequirements,
    is_hugepages,
    is_overcommit_allowed,
    is_pod_level,
)


def defaulted(pod: Pod, profile: Profile = LATEST, record: Record = None) -> Pod:
    """Return the pod as the API server stores it; the same object when there is nothing to fill in.

    ``record`` collects the changes with their reasons.
    """
    return with_pod_level_last(on_decoding(pod, profile, record), profile, record)


def on_decoding(pod: Pod, profile: Profile = LATEST, record: Record = None) -> Pod:
    """Apply the defaults of decoding: before admission, and on read."""
    if _is_complete(pod.spec):
        return pod
    spec = pod.spec
    containers = _with_requests(spec.containers, "spec.containers", record)
    init_containers = _with_requests(spec.init_containers, "spec.initContainers", record)
    if containers is not spec.containers or init_containers is not spec.init_containers:
        spec = replace(spec, containers=containers, init_containers=init_containers)
        pod = replace(pod, spec=spec)
    if not profile.pod_level_defaults_last:
        spec = _with_pod_level(pod, record, only_requests_of_limits=True)
    spec = _rounded(spec, record)
    return pod if spec is pod.spec else replace(pod, spec=spec)


def rounded(pod: Pod) -> Pod:
    """Return the pod of a template with the amounts as stored: nothing else is filled in before there is a pod."""
    spec = _rounded(pod.spec, None)
    return pod if spec is pod.spec else replace(pod, spec=spec)


def with_pod_level_last(pod: Pod, profile: Profile = LATEST, record: Record = None) -> Pod:
    """Apply the defaults of storing: since 1.37, pod-level amounts."""
    if not profile.pod_level_defaults_last or pod.spec.resources is None:
        return pod
    spec = _with_pod_level(pod, record, only_requests_of_limits=False)
    if spec.resources is not None:
        limits = _pod_limits(pod, spec.resources, record)
        if limits is not spec.resources.limits:
            spec = replace(spec, resources=replace(spec.resources, limits=limits))
    return pod if spec is pod.spec else replace(pod, spec=spec)


def _is_complete(spec: PodSpec) -> bool:
    """Whether there is clearly nothing to do. This is a hot path for pods of a live cluster, hence unrolled."""
    if spec.resources is not None or spec.ephemeral_containers or spec.overhead:
        return False
    for containers in (spec.containers, spec.init_containers):
        for container in containers:
            resources = container.resources
            if resources is NO_RESOURCES:
                continue
            requests, limits = resources.requests, resources.limits
            for name, amount in limits.items():
                if name not in requests or amount.finer_than_milli:
                    return False
            for amount in requests.values():
                if amount.finer_than_milli:
                    return False
    return True


def _with_requests(containers: tuple[Container, ...], path: str, record: Record) -> tuple[Container, ...]:
    """Set missing requests of containers to their limits."""
    if all(container.resources.limits.keys() <= container.resources.requests.keys() for container in containers):
        return containers
    filled = []
    for index, container in enumerate(containers):
        resources = container.resources
        missing = {name: limit for name, limit in resources.limits.items() if name not in resources.requests}
        if missing:
            note(record, f"{path}[{index}].resources.requests", missing, Why.REQUEST_FROM_LIMIT)
            container = replace(container, resources=replace(resources, requests=resources.requests | missing))  # noqa: PLW2901
        filled.append(container)
    return tuple(filled)


def _with_pod_level(pod: Pod, record: Record, *, only_requests_of_limits: bool) -> PodSpec:
    """Fill in the pod's own requests, and its limits of huge pages, where some amount is stated.

    ``only_requests_of_limits``: a pod that states no limit keeps its requests as they are, as up to 1.36.
    """
    resources = pod.spec.resources
    if resources is None or not (resources.limits or resources.requests):
        return pod.spec
    limits = _pod_hugepages_limits(pod, resources, record)
    requests = resources.requests
    if limits or not only_requests_of_limits:
        requests = _pod_requests(pod, limits, requests, record)
    if limits is resources.limits and requests is resources.requests:
        return pod.spec
    return replace(pod.spec, resources=replace(resources, limits=limits, requests=requests))


def _pod_hugepages_limits(pod: Pod, resources: ResourceRequirements, record: Record) -> ResourceList:
    found = {
        name: amount
        for name, amount in sum_of_containers(pod, lambda container: container.resources.limits).items()
        if is_hugepages(name) and name not in resources.requests and name not in resources.limits
    }
    if not found:
        return resources.limits
    note(record, "spec.resources.limits", found, Why.POD_HUGEPAGES_LIMIT_FROM_CONTAINERS)
    return resources.limits | found


def _pod_requests(pod: Pod, limits: ResourceList, requests: ResourceList, record: Record) -> ResourceList:
    from_containers = {
        name: amount
        for name, amount in sum_of_containers(pod, lambda container: container.resources.requests).items()
        if name not in requests and is_pod_level(name) and is_overcommit_allowed(name)
    }
    from_limits = {
        name: amount
        for name, amount in limits.items()
        if name not in requests and name not in from_containers and is_pod_level(name)
    }
    if not from_containers and not from_limits:
        return requests
    note(record, "spec.resources.requests", from_containers, Why.POD_REQUEST_FROM_CONTAINERS)
    note(record, "spec.resources.requests", from_limits, Why.POD_REQUEST_FROM_LIMIT)
    return requests | from_containers | from_limits


def _pod_limits(pod: Pod, resources: ResourceRequirements, record: Record) -> ResourceList:
    """Limit the pod to what all its containers are limited to together, or to its request if that is more."""
    every = (*pod.spec.containers, *pod.spec.init_containers, *pod.spec.ephemeral_containers)
    limited = sum_of_containers(pod, lambda container: container.resources.limits)
    found = {
        name: max(limited[name], request)
        for name, request in resources.requests.items()
        if is_pod_level(name)
        and name not in resources.limits
        and name in limited
        and all(name in container.resources.limits for container in every)
    }
    if not found:
        return resources.limits
    note(record, "spec.resources.limits", found, Why.POD_LIMIT_FROM_CONTAINERS)
    return resources.limits | found


def _rounded(spec: PodSpec, record: Record) -> PodSpec:
    """Round every amount of the pod up to whole thousandths. It comes last: sums are taken of the amounts as given."""
    changed: dict[str, object] = {}
    for field, path, containers in (
        ("containers", "spec.containers", spec.containers),
        ("init_containers", "spec.initContainers", spec.init_containers),
        ("ephemeral_containers", "spec.ephemeralContainers", spec.ephemeral_containers),
    ):
        if any(_needs_rounding(container.resources) for container in containers):
            changed[field] = tuple(
                replace(
                    container,
                    resources=_rounded_requirements(container.resources, f"{path}[{index}].resources", record),
                )
                for index, container in enumerate(containers)
            )
    if spec.resources is not None and _needs_rounding(spec.resources):
        changed["resources"] = _rounded_requirements(spec.resources, "spec.resources", record)
    if spec.overhead and _any_finer_than_milli(spec.overhead):
        changed["overhead"] = _rounded_list(spec.overhead, "spec.overhead", record)
    return replace(spec, **changed) if changed else spec


def _needs_rounding(resources: ResourceRequirements) -> bool:
    return _any_finer_than_milli(resources.requests) or _any_finer_than_milli(resources.limits)


def _any_finer_than_milli(amounts: ResourceList) -> bool:
    return any(amount.finer_than_milli for amount in amounts.values())


def _rounded_requirements(resources: ResourceRequirements, path: str, record: Record) -> ResourceRequirements:
    return replace(
        resources,
        requests=_rounded_list(resources.requests, f"{path}.requests", record),
        limits=_rounded_list(resources.limits, f"{path}.limits", record),
    )


def rounded_list(amounts: ResourceList) -> ResourceList:
    """Return the amounts as the API server keeps them, in whole thousandths."""
    return {name: amount.rounded_up_to_milli() for name, amount in amounts.items()}


def _rounded_list(amounts: ResourceList, path: str, record: Record) -> ResourceList:
    rounded = rounded_list(amounts)
    if record is not None:
        record.extend(
            Change(path, name, amounts[name], rounded[name], Why.ROUNDED_UP_TO_MILLI)
            for name in sorted(amounts)
            if rounded[name] != amounts[name]
        )
    return rounded
