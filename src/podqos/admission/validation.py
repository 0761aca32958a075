"""What the API server rejects about a pod's resources, field by field.

The pod is judged as it is, that is after defaulting and mutating admission. The rest of a pod is in
``pod_validation``.

Source: Kubernetes v1.36 pkg/apis/core/validation/validation.go (validateResourceRequirements, validatePodResources,
validateOverhead) and pkg/apis/core/helper/helpers.go. Upstream walks maps, from a random place on; here resources come
in the order in which they are written, which is the likeliest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from podqos.admission.field_errors import (
    ErrorType,
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from podqos.admission.names import label_complaints, qualified_name_complaints
from podqos.errors import InvalidQuantity
from podqos.model.effective import sum_of_containers
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGEPAGES_PREFIX,
    MEMORY,
    QOS_RESOURCES,
    ResourceClaim,
    ResourceList,
    ResourceRequirements,
    is_extended,
    is_hugepages,
    is_native,
    is_overcommit_allowed,
    is_pod_level,
)

Errors = Iterator[FieldError]

LIMIT_REQUIRED = "Limit must be set for non overcommitable resources"
CONTAINER_RESOURCES = frozenset((CPU, MEMORY, EPHEMERAL_STORAGE))
OBJECT_COUNTS = frozenset(
    (
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    )
)
# Names without a domain that mean something somewhere in the API, if not in a container.
_STANDARD_RESOURCES = (
    CONTAINER_RESOURCES
    | OBJECT_COUNTS
    | {f"{side}.{name}" for side in ("requests", "limits") for name in CONTAINER_RESOURCES}
    | {"storage", "requests.storage"}
)


def validate_resources(pod: Pod) -> tuple[FieldError, ...]:
    """Return every error about the pod's resources: containers, init containers, the pod's own, overhead."""
    spec = pod.spec
    if spec.containers and not spec.init_containers and not spec.overhead and spec.resources is None:
        # Most pods; the way below would find nothing either.
        for container in spec.containers:
            if not _is_ordinary(container.resources):
                break
        else:
            return ()
    return tuple(_resource_errors(pod))


def _resource_errors(pod: Pod) -> Errors:
    claims = claim_names(pod)
    if not pod.spec.containers:
        yield required("spec.containers")
    for index, container in enumerate(pod.spec.containers):
        yield from container_resource_errors(container.resources, f"spec.containers[{index}].resources", claims)
    for index, container in enumerate(pod.spec.init_containers):
        yield from container_resource_errors(container.resources, f"spec.initContainers[{index}].resources", claims)
    yield from pod_level_errors(pod)
    yield from overhead_errors(pod)


def claim_names(pod: Pod) -> frozenset[str]:
    """Return the claims for devices that containers may refer to."""
    return frozenset(claim.name for claim in pod.spec.resource_claims)


def container_resource_errors(resources: ResourceRequirements, path: str, claims: frozenset[str]) -> Errors:
    """Check a container's resources."""
    if not _is_ordinary(resources):
        yield from _requirements(resources, path, container_resource_name_errors, claims)


def overhead_errors(pod: Pod) -> Errors:
    """Check what the pod costs beyond its containers."""
    if pod.spec.overhead:
        overhead = ResourceRequirements(limits=pod.spec.overhead)
        yield from _requirements(overhead, "spec.overhead", container_resource_name_errors, frozenset())


def _is_ordinary(resources: ResourceRequirements) -> bool:
    """Whether there are clearly no errors. Almost all containers pass here."""
    limits = resources.limits
    for name, amount in limits.items():
        if name not in CONTAINER_RESOURCES or amount.nanos < 0:
            return False
    for name, amount in resources.requests.items():
        if name not in CONTAINER_RESOURCES or amount.nanos < 0:
            return False
        limit = limits.get(name)
        if limit is not None and amount.nanos > limit.nanos:
            return False
    return not resources.claims


def _requirements(
    resources: ResourceRequirements, path: str, check_name: Callable[[str, str], Errors], claims: frozenset[str]
) -> Errors:
    """Check names, amounts, requests against limits, and claims."""
    for name, amount in resources.limits.items():
        yield from check_name(name, f"{path}.limits[{name}]")
        yield from amount_errors(name, amount, f"{path}.limits[{name}]")
        yield from _page_errors(name, amount, f"{path}.limits[{name}]")
    for name, amount in resources.requests.items():
        yield from check_name(name, f"{path}.requests[{name}]")
        yield from amount_errors(name, amount, f"{path}.requests[{name}]")
        yield from _page_errors(name, amount, f"{path}.requests[{name}]")
        yield from _request_against_limit(name, amount, resources.limits.get(name), path)
    names = (*resources.limits, *resources.requests)
    if any(map(is_hugepages, names)) and not any(name in QOS_RESOURCES for name in names):
        yield forbidden(path, "HugePages require cpu or memory")
    yield from _claims(resources.claims, f"{path}.claims", claims)


def resource_name_errors(name: str, path: str) -> Errors:
    """Check that a resource's name means something somewhere: it is known, or it has a domain."""
    complaints = qualified_name_complaints(name)
    if not complaints and "/" not in name and not _is_standard(name):
        complaints = ["must be a standard resource type or fully qualified"]
    for complaint in complaints:
        yield invalid(path, name, complaint)


def container_resource_name_errors(name: str, path: str) -> Errors:
    """Check that a container can ask for the resource."""
    yield from resource_name_errors(name, path)
    if "/" not in name:
        if name not in CONTAINER_RESOURCES and not is_hugepages(name):
            yield invalid(path, name, "must be a standard resource for containers")
    elif not is_native(name) and not _is_valid_extended(name):
        yield invalid(path, name, "doesn't follow extended resource name standard")


def _pod_resource_name(name: str, path: str) -> Errors:
    errors = tuple(resource_name_errors(name, path))
    yield from errors
    if not errors and not is_pod_level(name):
        yield not_supported(path, name, sorted((CPU, MEMORY, HUGEPAGES_PREFIX)))


def _is_standard(name: str) -> bool:
    return name in _STANDARD_RESOURCES or is_hugepages(name) or name.startswith(f"requests.{HUGEPAGES_PREFIX}")


def _is_valid_extended(name: str) -> bool:
    """Whether an extended resource's name stays valid with the prefix that quotas put before it."""
    return is_extended(name) and not qualified_name_complaints(f"requests.{name}")


def amount_errors(name: str, amount: Quantity, path: str) -> Errors:
    """Check that an amount is not negative, and whole where only whole ones make sense."""
    if amount.nanos < 0:
        yield invalid(path, str(amount), "must be greater than or equal to 0")
    if amount.milli_value % 1000 and (name in OBJECT_COUNTS or _is_valid_extended(name)):
        yield invalid(path, str(amount), "must be an integer")


def _page_errors(name: str, amount: Quantity, path: str) -> Errors:
    if is_hugepages(name) and not _is_multiple_of_page_size(name, amount):
        yield invalid(path, str(amount), f"{amount} is not positive integer multiple of {name}")


def _is_multiple_of_page_size(name: str, amount: Quantity) -> bool:
    try:
        page_size = Quantity.parse(name.removeprefix(HUGEPAGES_PREFIX))
    except InvalidQuantity:
        return False
    return page_size.nanos > 0 and page_size.milli_value % 1000 == 0 and amount.value % page_size.value == 0


def _request_against_limit(name: str, request: Quantity, limit: Quantity | None, path: str) -> Errors:
    overcommit = is_overcommit_allowed(name)
    if limit is None:
        if not overcommit:
            yield required(f"{path}.limits", LIMIT_REQUIRED)
    elif request != limit and not overcommit:
        yield invalid(f"{path}.requests", str(request), f"must be equal to {name} limit of {limit}")
    elif request > limit:
        yield invalid(f"{path}.requests", str(request), f"must be less than or equal to {name} limit of {limit}")


def _claims(claims: tuple[ResourceClaim, ...], path: str, known: frozenset[str]) -> Errors:
    """Check that each claim is one of the pod's and is named once, as a whole or request by request."""
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        place = f"{path}[{index}]"
        if not claim.name:
            yield required(place)
            continue
        key = f"{claim.name}/{claim.request}" if claim.request else claim.name
        if claim.name in seen:
            yield duplicate(place, claim.name)
        else:
            for complaint in label_complaints(claim.request) if claim.request else ():
                yield invalid(f"{place}.request", claim.request, complaint)
            if key in seen:
                yield duplicate(place, key)
            elif not claim.request:
                parts = sorted(other for other in seen if other.startswith(f"{claim.name}/"))
                yield from (duplicate(place, claim.name) for _ in parts)
            seen.add(key)
        if claim.name not in known:
            names = f": {', '.join(sorted(known))}" if known else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{names}"
            yield FieldError(place, ErrorType.NOT_FOUND, claim.name, detail)


def pod_level_errors(pod: Pod) -> Errors:
    """Check the pod's own resources, and that the containers fit into them."""
    resources = pod.spec.resources
    if resources is None:
        return
    path = "spec.resources"
    if pod.is_windows:
        yield forbidden(path, "may not be set for a windows pod")
        return
    if resources.claims:
        yield forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    yield from _requirements(resources, path, _pod_resource_name, claim_names(pod))
    requested = sum_of_containers(pod, lambda container: container.resources.requests)
    for name, amount in _exceeding(requested, resources.requests):
        detail = f"must be greater than or equal to aggregate container requests of {amount}"
        yield invalid(f"{path}.requests[{name}]", str(resources.requests[name]), detail)
    limited = sum_of_containers(pod, lambda container: container.resources.limits)
    for name, amount in _exceeding(limited, resources.limits):
        if is_hugepages(name):
            detail = f"must be greater than or equal to aggregate container limits of {amount}"
            yield invalid(f"{path}.limits[{name}]", str(resources.limits[name]), detail)
    # Sidecars and init containers are not compared one by one, and the path is upstream's.
    for index, container in enumerate(pod.spec.containers):
        for name, limit in _exceeding(container.resources.limits, resources.limits):
            detail = f"must be less than or equal to pod limits of {resources.limits[name]}"
            yield invalid(f"{path}.containers[{index}][{name}].limits", str(limit), detail)


def _exceeding(amounts: ResourceList, ceilings: ResourceList) -> Iterator[tuple[str, Quantity]]:
    for name, amount in amounts.items():
        ceiling = ceilings.get(name)
        if ceiling is not None and amount > ceiling:
            yield name, amount
