"""Whether the policy objects themselves make sense: what the API server rejects about a LimitRange or a ResourceQuota.

A policy that could never have been stored explains nothing about a cluster, so it is rejected here as it is there.
Priority classes are checked in ``priority``, the override in ``resource_override``.

Source: Kubernetes v1.36 pkg/apis/core/validation/validation.go (ValidateLimitRange, ValidateResourceQuotaSpec),
pkg/apis/node/validation/validation.go (ValidateRuntimeClass).
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from podqos.admission.constraints import label_errors
from podqos.admission.field_errors import FieldError, duplicate, forbidden, invalid, required
from podqos.admission.limit_range import CLAIM, CONTAINER, POD
from podqos.admission.names import label_complaints, qualified_name_complaints, subdomain_complaints
from podqos.admission.pod_validation import toleration_errors
from podqos.admission.quota import PODS, REQUESTS_PREFIX
from podqos.admission.validation import (
    CONTAINER_RESOURCES,
    OBJECT_COUNTS,
    amount_errors,
    container_resource_errors,
    container_resource_name_errors,
    resource_name_errors,
)
from podqos.model.policy import (
    LimitRange,
    LimitRangeItem,
    ResourceQuota,
    ResourceQuotaSpec,
    RuntimeClass,
    RuntimeScheduling,
    ScopeRequirement,
)
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, HUGEPAGES_PREFIX, MEMORY, ResourceRequirements, is_overcommit_allowed

Errors = Iterator[FieldError]

_ONE = Quantity.of_units(1)
_STORAGE = "storage"
_LIMIT_TYPES = (CONTAINER, POD, CLAIM)

_SIDES = ("requests", "limits")
_QUOTA_RESOURCES = (
    CONTAINER_RESOURCES
    | OBJECT_COUNTS
    | {f"{side}.{name}" for side in _SIDES for name in CONTAINER_RESOURCES}
    | {"requests.storage"}
)
_OF_PODS = frozenset((PODS, CPU, MEMORY, *(f"{side}.{name}" for side in _SIDES for name in (CPU, MEMORY))))
# scope → the resources it makes sense for
_TRACKED_BY_SCOPE = {
    "Terminating": _OF_PODS,
    "NotTerminating": _OF_PODS,
    "BestEffort": frozenset((PODS,)),
    "NotBestEffort": _OF_PODS,
    "PriorityClass": _OF_PODS,
    "CrossNamespacePodAffinity": _OF_PODS,
    "VolumeAttributesClass": frozenset(("persistentvolumeclaims", "requests.storage")),
}
_TAKES_VALUES = ("PriorityClass", "VolumeAttributesClass")
_CONTRADICTIONS = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))


def validate_limit_range(limit_range: LimitRange) -> tuple[FieldError, ...]:
    """Return the errors of a LimitRange, once its own defaults are filled in."""
    return tuple(_limit_range_errors(limit_range))


def _limit_range_errors(limit_range: LimitRange) -> Errors:
    seen: set[str] = set()
    for index, item in enumerate(limit_range.spec.limits):
        path = f"spec.limits[{index}]"
        yield from _limit_type_errors(item.type, f"{path}.type")
        if item.type in seen:
            yield duplicate(f"{path}.type", item.type)
        seen.add(item.type)
        yield from _item_name_errors(item, path)
        for name in sorted({*item.max, *item.min, *item.max_limit_request_ratio, *_defaults(item)}):
            yield from _item_amount_errors(item, name, path)


def _limit_type_errors(limit_type: str, path: str) -> Errors:
    complaints = qualified_name_complaints(limit_type)
    if not complaints and "/" not in limit_type and limit_type not in _LIMIT_TYPES:
        complaints = ["must be a standard limit type or fully qualified"]
    for complaint in complaints:
        yield invalid(path, limit_type, complaint)


def _defaults(item: LimitRangeItem) -> tuple[str, ...]:
    """Return the resources that the item defaults; an item for pods may not."""
    return () if item.type == POD else (*item.default, *item.default_request)


def _item_name_errors(item: LimitRangeItem, path: str) -> Errors:
    check = container_resource_name_errors if item.type in {POD, CONTAINER} else resource_name_errors
    fields = [("max", item.max), ("min", item.min)]
    if item.type == POD:
        for field, amounts in (("default", item.default), ("defaultRequest", item.default_request)):
            if amounts:
                yield forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'")
    else:
        fields += [("default", item.default), ("defaultRequest", item.default_request)]
    if item.type == CLAIM and _STORAGE not in item.min and _STORAGE not in item.max:
        yield required(
            f"{path}.limits", "either minimum or maximum storage value is required, but neither was provided"
        )
    for field, amounts in (*fields, ("maxLimitRequestRatio", item.max_limit_request_ratio)):
        for name in sorted(amounts):
            yield from check(name, f"{path}.{field}[{name}]")


def _item_amount_errors(item: LimitRangeItem, name: str, path: str) -> Errors:
    """Check that min ≤ default request ≤ default ≤ max, and that the ratio can be kept at all."""
    least, most = item.min.get(name), item.max.get(name)
    is_pod = item.type == POD
    default = None if is_pod else item.default.get(name)
    request = None if is_pod else item.default_request.get(name)
    ordered = (
        ("min", least, most, "min value {} is greater than max value {}", least),
        ("defaultRequest", least, request, "min value {} is greater than default request value {}", request),
        ("defaultRequest", request, most, "default request value {} is greater than max value {}", request),
        (
            "defaultRequest",
            request,
            default,
            "default request value {} is greater than default limit value {}",
            request,
        ),
        ("default", least, default, "min value {} is greater than default value {}", least),
        ("default", default, most, "default value {} is greater than max value {}", most),
    )
    for field, smaller, larger, words, culprit in ordered:
        if smaller is not None and larger is not None and smaller > larger:
            yield invalid(f"{path}.{field}[{name}]", str(culprit), words.format(smaller, larger))
    yield from _ratio_errors(item, name, path)
    if default is not None and request is not None and default != request and not is_overcommit_allowed(name):
        words = f"default value {default} must equal to defaultRequest value {request} in {name}"
        yield invalid(f"{path}.defaultRequest[{name}]", str(request), words)


def _ratio_errors(item: LimitRangeItem, name: str, path: str) -> Errors:
    ratio, least, most = item.max_limit_request_ratio.get(name), item.min.get(name), item.max.get(name)
    if ratio is None:
        return
    place = f"{path}.maxLimitRequestRatio[{name}]"
    if ratio < _ONE:
        yield invalid(place, str(ratio), f"ratio {ratio} is less than 1")
    # ratio > max/min, without dividing by a minimum of zero
    if least and most is not None and ratio.nanos * least.nanos > most.nanos * _ONE.nanos:
        yield invalid(
            place, str(ratio), f"ratio {ratio} is greater than max/min = {Decimal(most.nanos) / least.nanos:.6f}"
        )


def validate_runtime_class(runtime_class: RuntimeClass) -> tuple[FieldError, ...]:
    """Return the errors of a RuntimeClass."""
    return tuple(_runtime_class_errors(runtime_class))


def _runtime_class_errors(runtime_class: RuntimeClass) -> Errors:
    name, handler = runtime_class.metadata.name, runtime_class.handler
    for complaint in subdomain_complaints(name) if name else ():
        yield invalid("metadata.name", name, complaint)
    if not handler:
        yield required("handler")
    for complaint in label_complaints(handler) if handler else ():
        yield invalid("handler", handler, complaint)
    if runtime_class.overhead is not None:
        # Upstream takes the amounts for limits, and says so in the path.
        limits = ResourceRequirements(limits=runtime_class.overhead.pod_fixed)
        yield from container_resource_errors(limits, "overhead", frozenset())
    if runtime_class.scheduling is not None:
        yield from _runtime_scheduling_errors(runtime_class.scheduling)


def _runtime_scheduling_errors(scheduling: RuntimeScheduling) -> Errors:
    yield from label_errors(scheduling.node_selector, "scheduling.nodeSelector")
    seen: set[tuple[str, str, str, str]] = set()
    for index, toleration in enumerate(scheduling.tolerations):
        path = f"scheduling.tolerations[{index}]"
        yield from toleration_errors(toleration, path)
        key = (toleration.key, toleration.operator, toleration.value, toleration.effect)
        if key in seen:
            yield duplicate(path, toleration.key)
        seen.add(key)


def validate_quota(quota: ResourceQuota) -> tuple[FieldError, ...]:
    """Return the errors of a ResourceQuota."""
    return tuple(_quota_errors(quota.spec))


def _quota_errors(spec: ResourceQuotaSpec) -> Errors:
    for name, amount in sorted(spec.hard.items()):
        path = f"spec.hard[{name}]"
        yield from resource_name_errors(name, path)
        if "/" not in name and not _is_quota_resource(name):
            yield invalid(path, name, "must be a standard resource for quota")
        yield from amount_errors(name, amount, path)
    yield from _scope_errors(spec)
    if spec.scope_selector is not None:
        yield from _scope_selector_errors(spec)


def _scope_errors(spec: ResourceQuotaSpec) -> Errors:
    listed = ", ".join(spec.scopes)
    for scope in spec.scopes:
        if scope not in _TRACKED_BY_SCOPE:
            yield invalid("spec.scopes", listed, "unsupported scope")
        yield from (
            invalid("spec.scopes", listed, "unsupported scope applied to resource")
            for name in sorted(spec.hard)
            if not _scope_counts(scope, name)
        )
    yield from _contradictions(spec.scopes, "spec.scopes", listed)


def _scope_selector_errors(spec: ResourceQuotaSpec) -> Errors:
    assert spec.scope_selector is not None
    path = "spec.scopeSelector.matchExpressions"
    requirements = spec.scope_selector.match_expressions
    for requirement in requirements:
        scope = requirement.scope_name
        if scope not in _TRACKED_BY_SCOPE:
            yield invalid(f"{path}.scopeName", scope, "unsupported scope")
        yield from (
            invalid(path, scope, "unsupported scope applied to resource")
            for name in sorted(spec.hard)
            if not _scope_counts(scope, name)
        )
        yield from _operator_errors(requirement, path)
    scopes = tuple(requirement.scope_name for requirement in requirements)
    yield from _contradictions(scopes, path, ", ".join(scopes))


def _operator_errors(requirement: ScopeRequirement, path: str) -> Errors:
    scope = requirement.scope_name
    if scope in _TRACKED_BY_SCOPE and scope not in _TAKES_VALUES and requirement.operator != "Exists":
        kinds = "ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort"
        more = "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
        words = f"must be 'Exists' when scope is any of {kinds}, {more}"
        yield invalid(f"{path}.operator", requirement.operator, words)
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                words = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                yield required(f"{path}.values", words)
        case "Exists" | "DoesNotExist":
            if requirement.values:
                words = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                yield invalid(f"{path}.values", ", ".join(requirement.values), words)
        case operator:
            yield invalid(f"{path}.operator", operator, "not a valid selector operator")


def _contradictions(scopes: tuple[str, ...], path: str, value: str) -> Errors:
    for pair in _CONTRADICTIONS:
        if set(pair) <= set(scopes):
            yield invalid(path, value, "conflicting scopes")


def _is_quota_resource(name: str) -> bool:
    huge_pages = name.startswith((HUGEPAGES_PREFIX, REQUESTS_PREFIX + HUGEPAGES_PREFIX))
    return name in _QUOTA_RESOURCES or huge_pages


def _scope_counts(scope: str, name: str) -> bool:
    """Whether a scope makes sense for what the quota tracks: BestEffort pods have no cpu or memory to count."""
    tracked = _TRACKED_BY_SCOPE.get(scope)
    return tracked is None or name in tracked or not _is_quota_resource(name)
