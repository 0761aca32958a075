"""What stands around a workload and has a say in its sizes: LimitRanges, autoscalers, quotas, and its own runtime.

A bound is kept where what was used still fits. Where it does not, sizes stay as they are needed, and the API server's
refusal of them is the answer: no size that kills is advised for the sake of a bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from podqos.advice.sizing.applying import ContainerAdvice, PodAdvice
from podqos.advice.sizing.autoscaled import ReplicaChange, replicas_after
from podqos.advice.sizing.bounds import QuotaShortfall, bounded, quota_shortfalls
from podqos.advice.sizing.goals import with_containers
from podqos.advice.sizing.raising import with_amounts
from podqos.advice.sizing.runtime_settings import edited, runtime_changes
from podqos.advice.sizing.sizing import UsageHistory
from podqos.answers.advice_effects import Amounts
from podqos.manifest.plain import Plain
from podqos.manifest.runtime_memory import memory_settings
from podqos.model.autoscaling import HorizontalPodAutoscaler, VerticalPodAutoscaler
from podqos.model.pod import Pod
from podqos.model.policy import LimitRange, ResourceQuota
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, ResourceRequirements

_LISTS = ("containers", "initContainers")


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
    limit = found.resources.limits.get(MEMORY)
    if not found.changes or (limit is not None and limit.value < most_bytes):
        return advice
    return replace(with_amounts(advice, usage, found.resources.requests, found.resources.limits), bounded=found.changes)


def with_runtime_changes(advice: tuple[ContainerAdvice, ...], spec: Plain) -> tuple[ContainerAdvice, ...]:
    """Return advice about containers with what their runtimes have to be told; ``spec`` is the pod's, as written."""
    written = {} if not isinstance(spec, dict) else dict(_written(spec))
    return tuple(_with_runtime(own, *written.get(own.container, ("", None))) for own in advice)


def _written(spec: Mapping[str, Plain]) -> Iterable[tuple[str, tuple[str, Plain]]]:
    for name in _LISTS:
        containers = spec.get(name)
        for index, container in enumerate(containers if isinstance(containers, list) else ()):
            if isinstance(container, dict):
                yield str(container.get("name")), (f"spec.{name}[{index}]", container)


def _with_runtime(advice: ContainerAdvice, path: str, container: Plain) -> ContainerAdvice:
    before, after = (amounts.get(MEMORY) for amounts in (advice.limits_before, advice.limits))
    if before == after or after is None or not isinstance(container, dict):
        return advice
    amounts = {} if before is None else {"limits.memory": before.value}
    settings = memory_settings(container, path, amounts)
    changes = runtime_changes(settings, None if before is None else before.value, after.value)
    return replace(
        advice,
        runtime_changes=tuple(
            replace(change, field_text=edited(text, change))
            if (text := _text_at(container, path, change.path))
            else change
            for change in changes
        ),
    )


def _text_at(container: Mapping[str, Plain], path: str, field: str) -> str:
    """Return the text of a container's field, such as ``env[1].value`` or ``args[0]``; empty where it is none."""
    place = field.removeprefix(path + ".")
    name, _, rest = place.partition("[")
    index, _, below = rest.partition("]")
    items = container.get(name)
    if not isinstance(items, list) or not index.isdecimal() or int(index) >= len(items):
        return ""
    item = items[int(index)]
    if below == ".value" and isinstance(item, dict):
        item = item.get("value")
    return item if isinstance(item, str) else ""


def autoscaled(
    autoscaler: HorizontalPodAutoscaler | None,
    replicas: int | None,
    pods: tuple[Pod | None, Pod],
    usages: Mapping[str, UsageHistory],
) -> ReplicaChange | None:
    """Return how many replicas an autoscaler makes of advice; None where that does not depend on it."""
    before, after = pods
    if autoscaler is None or before is None or not replicas:
        return None
    return replicas_after(autoscaler, replicas, before, after, _used_milli(after, usages))


def _used_milli(pod: Pod, usages: Mapping[str, UsageHistory]) -> dict[str, dict[str, int]]:
    """Return what a pod uses on average, of resources that were measured of all its containers."""
    names = [container.name for container in pod.running_containers]
    cpu = {name: usages[name].cpu_milli for name in names if name in usages}
    memory = {name: usages[name].memory_bytes for name in names if name in usages}
    used = {}
    for resource, samples, unit in ((CPU, cpu, 1), (MEMORY, memory, 1000)):
        if len(samples) == len(names) and all(samples.values()):
            used[resource] = {name: unit * sum(values) // len(values) for name, values in samples.items()}
    return used


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
