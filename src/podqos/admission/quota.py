"""ResourceQuota: whether a namespace has room for a pod.

A quota that tracks cpu or memory also demands that every container states it. Usage is the effective pod, overhead
included. Whether a quota itself makes sense is in ``policy_validation``.

Source: Kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go (CheckRequest),
pkg/quota/v1/evaluator/core/pods.go. A quota without a status is taken as new and unused; upstream waits for its
controller to fill the status in. The API server's ``limitedResources`` are not modelled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.refusal import Denied
from podqos.model.effective import pod_level_is_set, pod_limits, pod_requests
from podqos.model.pod import Pod, QOSClass
from podqos.model.policy import ResourceQuota, ResourceQuotaStatus, ScopeRequirement
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGEPAGES_PREFIX,
    MEMORY,
    ResourceList,
    is_extended,
    is_hugepages,
    is_native,
    sum_of,
)
from podqos.model.scheduling import PodAffinityTerm
from podqos.qos.classes import classify

REQUESTS_PREFIX = "requests."
PODS = "pods"
COUNT_PODS = "count/pods"

_COMPUTE = (CPU, MEMORY, EPHEMERAL_STORAGE)
_POD_RESOURCES = frozenset((PODS, COUNT_PODS, *_COMPUTE)) | {
    f"{side}.{name}" for side in ("requests", "limits") for name in _COMPUTE
}
# What every container must state when a quota tracks it.
_MUST_BE_STATED = frozenset((CPU, MEMORY)) | {
    f"{side}.{name}" for side in ("requests", "limits") for name in (CPU, MEMORY)
}


class Exceeded(Struct, frozen=True, gc=False):
    """A resource of which the pod requests more than is left."""

    resource: str
    requested: Quantity
    used: Quantity
    hard: Quantity


class QuotaDenied(Denied, frozen=True, gc=False):
    """A quota's rejection, with the amounts."""

    quota: str = ""
    exceeded: tuple[Exceeded, ...] = ()
    unstated: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Each resource that must be stated, with the containers that do not."""


class QuotaDecision(Struct, frozen=True, gc=False):
    """Whether the quotas have room, and what they count afterwards."""

    denied: QuotaDenied | None
    quotas: tuple[ResourceQuota, ...]
    """The quotas with the pod counted, if it is allowed."""


def check_quotas(pod: Pod, quotas: Sequence[ResourceQuota], old: Pod | None = None) -> QuotaDecision:
    """Decide whether the pod fits every quota that counts it; on a resize, only the difference is charged."""
    quotas = tuple(_with_status(quota) for quota in quotas)
    counting = [index for index, quota in enumerate(quotas) if counts(quota, pod)]
    for index in counting:
        denied = _unstated(pod, quotas[index]) or _unknown(quotas[index])
        if denied is not None:
            return QuotaDecision(denied, quotas)
    charged = list(quotas)
    for index in counting:
        charge = _charge(pod, quotas[index], old)
        denied = _exceeded(quotas[index], charge)
        if denied is not None:
            return QuotaDecision(denied, quotas)
        charged[index] = _charged(quotas[index], charge, 1)
    return QuotaDecision(None, tuple(charged))


def charge_more(
    pod: Pod, quotas: Sequence[ResourceQuota], count: int, old: Pod | None = None
) -> tuple[int, QuotaDecision]:
    """Admit up to ``count`` more pods like one already admitted; return how many, and what rejects the next.

    It is ``check_quotas`` so many times over, without taking so many steps.
    """
    charges = {index: _charge(pod, quota, old) for index, quota in enumerate(quotas) if counts(quota, pod)}
    admitted = min([count, *(room for index, charge in charges.items() for room in _room(quotas[index], charge))])
    charged = tuple(_charged(quota, charges.get(index, {}), admitted) for index, quota in enumerate(quotas))
    denied = check_quotas(pod, charged, old).denied if admitted < count else None
    return admitted, QuotaDecision(denied, charged)


def counts(quota: ResourceQuota, pod: Pod) -> bool:
    """Whether the quota tracks anything of pods and all of its scopes hold for this one."""
    hard = (quota.status if quota.status.hard else quota.spec).hard
    return any(map(_is_of_pods, hard)) and all(_in_scope(pod, scope) for scope in _scopes(quota))


def pod_usage(pod: Pod) -> ResourceList:
    """Return the pod's charges, under every name a quota may use."""
    usage = _compute_usage(pod_requests(pod), pod_limits(pod))
    return usage | {PODS: Quantity.of_units(1), COUNT_PODS: Quantity.of_units(1)}


def _compute_usage(requests: ResourceList, limits: ResourceList) -> ResourceList:
    usage: ResourceList = {}
    for name, amount in requests.items():
        if name in _COMPUTE or is_hugepages(name):
            usage[name] = amount
            usage[REQUESTS_PREFIX + name] = amount
        elif is_extended(name):
            usage[REQUESTS_PREFIX + name] = amount
    return usage | {f"limits.{name}": limits[name] for name in _COMPUTE if name in limits}


def _is_of_pods(name: str) -> bool:
    huge_pages = name.startswith((HUGEPAGES_PREFIX, REQUESTS_PREFIX + HUGEPAGES_PREFIX))
    return name in _POD_RESOURCES or huge_pages or (not is_native(name) and name.startswith(REQUESTS_PREFIX))


def _with_status(quota: ResourceQuota) -> ResourceQuota:
    if quota.status.hard:
        return quota
    return replace(quota, status=ResourceQuotaStatus(quota.spec.hard, dict.fromkeys(quota.spec.hard, ZERO)))


def _scopes(quota: ResourceQuota) -> tuple[ScopeRequirement, ...]:
    plain = tuple(ScopeRequirement(scope, "Exists") for scope in quota.spec.scopes)
    selector = quota.spec.scope_selector
    return plain if selector is None else plain + selector.match_expressions


def _in_scope(pod: Pod, scope: ScopeRequirement) -> bool:
    match scope.scope_name:
        case "Terminating":
            return _is_terminating(pod)
        case "NotTerminating":
            return not _is_terminating(pod)
        case "BestEffort":
            return _is_best_effort(pod)
        case "NotBestEffort":
            return not _is_best_effort(pod)
        case "PriorityClass":
            return _has_priority_class(pod.spec.priority_class_name, scope)
        case "CrossNamespacePodAffinity":
            return any(term.namespaces or term.namespace_selector is not None for term in _affinity_terms(pod))
    return False


def _affinity_terms(pod: Pod) -> Iterator[PodAffinityTerm]:
    affinity = pod.spec.affinity
    for pods in () if affinity is None else (affinity.pod_affinity, affinity.pod_anti_affinity):
        if pods is not None:
            yield from pods.required
            yield from (preferred.pod_affinity_term for preferred in pods.preferred)


def _is_terminating(pod: Pod) -> bool:
    """Whether the pod has a deadline (not whether it is being deleted)."""
    return pod.spec.active_deadline_seconds is not None and pod.spec.active_deadline_seconds >= 0


def _is_best_effort(pod: Pod) -> bool:
    return (pod.status.qos_class or classify(pod).qos_class) is QOSClass.BEST_EFFORT


def _has_priority_class(name: str, scope: ScopeRequirement) -> bool:
    match scope.operator:
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case "In":
            return bool(name) and name in scope.values
        case "NotIn":
            return name not in scope.values
    return False


def _unstated(pod: Pod, quota: ResourceQuota) -> QuotaDenied | None:
    """Reject containers that leave out what the quota tracks; pod-level resources lift the demand."""
    if pod_level_is_set(pod):
        return None
    demanded = sorted(_MUST_BE_STATED.intersection(quota.status.hard))
    missing: dict[str, set[str]] = {}
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        stated = _compute_usage(container.resources.requests, container.resources.limits)
        for name in demanded:
            if name not in stated:
                missing.setdefault(name, set()).add(container.name)
    if not missing:
        return None
    unstated = tuple((name, tuple(sorted(containers))) for name, containers in sorted(missing.items()))
    listed = "; ".join(f"{name} for: {','.join(containers)}" for name, containers in unstated)
    quota_name = quota.metadata.name
    return QuotaDenied(f"failed quota: {quota_name}: must specify {listed}", quota_name, unstated=unstated)


def _unknown(quota: ResourceQuota) -> QuotaDenied | None:
    """Reject everything until the quota controller has counted what is used."""
    tracked = sorted(filter(_is_of_pods, quota.status.hard))
    if all(name in quota.status.used for name in tracked):
        return None
    quota_name = quota.metadata.name
    return QuotaDenied(f"status unknown for quota: {quota_name}, resources: {','.join(tracked)}", quota_name)


def _charge(pod: Pod, quota: ResourceQuota, old: Pod | None) -> ResourceList:
    """Return what the pod adds to the usage that the quota tracks; nothing is listed that adds nothing."""
    usage = pod_usage(pod)
    if old is not None and counts(quota, old):
        usage = _delta(usage, pod_usage(old))
    return {name: amount for name, amount in usage.items() if amount and name in quota.status.hard}


def _charged(quota: ResourceQuota, charge: ResourceList, times: int) -> ResourceQuota:
    total = {name: Quantity(amount.nanos * times, amount.format) for name, amount in charge.items()}
    return replace(quota, status=replace(quota.status, used=sum_of((quota.status.used, total))))


def _room(quota: ResourceQuota, charge: ResourceList) -> Iterator[int]:
    """Yield for each resource how many such charges the quota still has room for."""
    hard, used = quota.status.hard, quota.status.used
    for name, amount in charge.items():
        yield max(hard[name].nanos - used[name].nanos, 0) // amount.nanos


def _delta(usage: ResourceList, before: ResourceList) -> ResourceList:
    """Return what is more than before; what is less gives nothing back at admission."""
    return {name: max(amount - before.get(name, ZERO), ZERO) for name, amount in usage.items()}


def _exceeded(quota: ResourceQuota, charge: ResourceList) -> QuotaDenied | None:
    hard, used = quota.status.hard, quota.status.used
    quota_name = quota.metadata.name
    exceeded = tuple(
        Exceeded(name, amount, used[name], hard[name])
        for name, amount in sorted(charge.items())
        if used[name] + amount > hard[name]
    )
    if not exceeded:
        return None
    requested, spent, limited = (
        ",".join(f"{entry.resource}={getattr(entry, what)}" for entry in exceeded)
        for what in ("requested", "used", "hard")
    )
    message = f"exceeded quota: {quota_name}, requested: {requested}, used: {spent}, limited: {limited}"
    return QuotaDenied(message, quota_name, exceeded)
