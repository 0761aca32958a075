"""What stands around a workload and has a say in its sizes: LimitRanges, autoscalers, quotas, and its own runtime.

A bound is kept where what was used still fits. Where it does not, sizes stay as they are needed, and the API server's
refusal of them is the answer: no size that kills is advised for the sake of a bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil

from msgspec.structs import replace

from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.view import at_path
from podqos.advice.sizing.applying import ContainerAdvice, PodAdvice
from podqos.advice.sizing.bounds import QuotaShortfall, bounded, quota_shortfalls
from podqos.advice.sizing.goals import with_containers
from podqos.advice.sizing.raising import with_amounts
from podqos.advice.sizing.runtime_settings import program_setting, unread_setting, with_room
from podqos.advice.sizing.sizing import UsageHistory
from podqos.answers.advice_effects import Amounts
from podqos.manifest.plain import Plain
from podqos.model.autoscaling import HorizontalPodAutoscaler, ResourceMetric, VerticalPodAutoscaler
from podqos.model.pod import Pod, Workload
from podqos.model.policy import LimitRange, ResourceQuota
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, ResourceRequirements

_MIB = 1 << 20
# The API server fills in the last one: an object without any of them has been read without what may be secret.
_OF_SETTINGS = frozenset({"command", "args", "env", "terminationMessagePath"})


def within_bounds(
    advice: PodAdvice,
    limit_ranges: Iterable[LimitRange],
    autoscaler: VerticalPodAutoscaler | None,
    usages: Mapping[str, UsageHistory],
) -> PodAdvice:
    """Return advice within the bounds of a namespace and an autoscaler, as far as what was used fits them."""
    ranges = tuple(limit_ranges)
    containers = tuple(
        _bounded(container, ranges, autoscaler, usages.get(container.container)) for container in advice.containers
    )
    return advice if containers == advice.containers else with_containers(advice, containers)


def _bounded(
    advice: ContainerAdvice,
    ranges: tuple[LimitRange, ...],
    autoscaler: VerticalPodAutoscaler | None,
    usage: UsageHistory | None,
) -> ContainerAdvice:
    wanted = ResourceRequirements(advice.requests, advice.limits)
    found = bounded(wanted, ranges, autoscaler, advice.container)
    most_bytes = 0 if advice.memory_bytes is None else advice.memory_bytes.most
    if advice.setting is not None:
        most_bytes = max(most_bytes, advice.setting.least_limit_bytes or 0)
    limit = found.resources.limits.get(MEMORY)
    if not found.changes or (limit is not None and limit.value < most_bytes):
        return advice
    return replace(with_amounts(advice, usage, found.resources.requests, found.resources.limits), bounded=found.changes)


def with_room_for_settings(
    advice: PodAdvice, workload: Workload, written: Plain, usages: Mapping[str, UsageHistory]
) -> PodAdvice:
    """Return advice that leaves each program what its own settings let it take; ``written`` is the whole object."""
    spec = workload.pod.spec
    paths = {
        container.name: f"spec.{field}[{index}]"
        for field, own in (("containers", spec.containers), ("initContainers", spec.init_containers))
        for index, container in enumerate(own)
    }
    containers = []
    for own in advice.containers:
        path = paths[own.container]
        container = at_path(written, workload.at(path))
        usage = usages.get(own.container, UsageHistory())
        most_bytes = 0 if own.memory_need is None else own.memory_need.most_bytes
        setting = (
            unread_setting(path, own.limits_before)
            if workload.is_live and isinstance(container, dict) and _OF_SETTINGS.isdisjoint(container)
            else program_setting(container, path, own.requests_before, own.limits_before, most_bytes)
        )
        if setting is not None:
            had_limit = MEMORY in own.limits_before
            requests, limits, setting = with_room(setting, own.requests, own.limits, had_limit=had_limit)
            if setting.decides and MEMORY in requests and MEMORY in limits:
                # What was requested until now is enough; less may be too little beside such a limit.
                before = {**own.limits_before, **own.requests_before}.get(MEMORY, requests[MEMORY])
                least = ceil(limits[MEMORY].value / (CheckOptions().memory_ratio * _MIB)) * _MIB
                requests[MEMORY] = max(requests[MEMORY], min(before, Quantity.of_units(least, "BinarySI")))
            own = replace(with_amounts(own, usage, requests, limits), setting=setting)  # noqa: PLW2901 - the same
        containers.append(own)
    return with_containers(advice, tuple(containers))


def scales_on_requests(autoscaler: HorizontalPodAutoscaler, before: Pod, after: Pod) -> bool:
    """Whether a target of an autoscaler is a share of a request that changes: the same load makes other replicas."""

    def requested(pod: Pod, metric: ResourceMetric) -> list[Quantity | None]:
        own = (each for each in pod.running_containers if metric.container in {"", each.name})
        return [each.resources.requests.get(metric.name) for each in own]

    shares = (metric for metric in autoscaler.resource_metrics if metric.utilization)
    return any(requested(before, metric) != requested(after, metric) for metric in shares)


def short_quotas(quotas: Iterable[ResourceQuota], added: Mapping[str, Amounts]) -> tuple[QuotaShortfall, ...]:
    """Return the quotas that have not enough left; ``added`` is what all workloads of a namespace request more."""
    found: list[QuotaShortfall] = []
    for quota in quotas:
        more = added.get(quota.metadata.namespace_or_default)
        if more is None:
            continue
        amounts = {
            f"requests.{CPU}": Quantity.of_milli(max(0, more.cpu_milli)),
            f"requests.{MEMORY}": Quantity.of_units(max(0, more.memory_bytes), "BinarySI"),
        }
        found += quota_shortfalls((quota,), amounts)
    return tuple(found)
