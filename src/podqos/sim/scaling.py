"""Scale a scenario down: multiply every amount of memory, of CPU and, if needed, of time by a factor.

Proportions stay: a request keeps its share of the node and thus its ``oom_score_adj``; growth takes as long as before.
So a scenario of 16 cores and 64Gi can be rehearsed on two cores in 2Gi.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import astuple, replace

from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.memory import Watermarks, machine
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import Container, EmptyDir, Pod, Volume
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, ResourceList, ResourceRequirements, is_hugepages
from podqos.orders.counterfactual import each_container
from podqos.sim.engine.curve import Curve
from podqos.sim.scenario.scenario import (
    ContainerDemand,
    NodeGroup,
    Scenario,
    ScenarioWorkload,
    SystemDemand,
    VolumeDemand,
    WorkloadChange,
    WorkloadRollout,
)

Demand = TypeVar("Demand", ContainerDemand, SystemDemand)

_MEMORY_CURVES = ("anon_bytes", "active_file_bytes", "inactive_file_bytes")
_MEMORY_SIGNALS = ("memory.available", "allocatableMemory.available")


class ScaleFactors(Struct, frozen=True, gc=False):
    """The factors."""

    memory: Fraction
    cpu: Fraction = Fraction(1)
    time: Fraction = Fraction(1)
    """Applies to demands; the kubelet's own timing stays: probes, grace periods, hooks that sleep."""

    def moment(self, time_us: int) -> int:
        """Return a scaled time."""
        return int(time_us * self.time)

    def size(self, amount_bytes: int) -> int:
        """Return a scaled amount of memory, in whole pages."""
        return int(amount_bytes * self.memory) // PAGE_BYTES * PAGE_BYTES

    def part(self, amount_bytes: int) -> int:
        """Return a scaled amount of memory, to the byte."""
        return int(amount_bytes * self.memory)

    def milli(self, amount_milli: int) -> int:
        """Return a scaled amount of CPU, never rounded to zero."""
        return max(1, int(amount_milli * self.cpu)) if amount_milli else 0


def scaled(scenario: Scenario, scale: ScaleFactors) -> Scenario:
    """Return the scaled scenario. The kernel's watermarks are scaled, too."""
    return replace(
        scenario,
        duration_us=scale.moment(scenario.duration_us),
        happenings=tuple(replace(happening, at_us=scale.moment(happening.at_us)) for happening in scenario.happenings),
        workload_changes=tuple(_change(change, scale) for change in scenario.workload_changes),
        nodes=tuple(_group(group, scale) for group in scenario.nodes),
        workloads=tuple(_workload(workload, scale) for workload in scenario.workloads),
    )


def _change(change: WorkloadChange, scale: ScaleFactors) -> WorkloadChange:
    at_us = scale.moment(change.at_us)
    if not isinstance(change, WorkloadRollout):
        return replace(change, at_us=at_us)
    template = None if change.template is None else _workload(change.template, scale)
    return replace(change, at_us=at_us, template=template)


def _group(group: NodeGroup, scale: ScaleFactors) -> NodeGroup:
    spec = group.spec
    marks = spec.watermarks or machine(spec.memory_bytes).watermarks
    return replace(
        group,
        spec=replace(
            spec,
            memory_bytes=scale.size(spec.memory_bytes),
            swap_bytes=scale.size(spec.swap_bytes),
            hugepages={name: scale.size(amount) for name, amount in spec.hugepages.items()},
            cpu_milli=scale.milli(spec.cpu_milli),
            watermarks=Watermarks(*map(scale.size, astuple(marks))),
            system=_demand(spec.system, scale),
            config=_config(spec.config, scale),
        ),
    )


def _config(config: KubeletConfiguration, scale: ScaleFactors) -> KubeletConfiguration:
    """Scale reservations and thresholds; percentages already follow the scaled capacity."""

    def reserved(amounts: Mapping[str, str]) -> dict[str, str]:
        return {name: str(_amount(name, Quantity.parse(value), scale)) for name, value in amounts.items()}

    def thresholds(amounts: Mapping[str, str]) -> dict[str, str]:
        return {
            name: str(scale.size(Quantity.parse(value).value)) if _is_memory(name, value) else value
            for name, value in amounts.items()
        }

    # The kubelet's own default is an amount, too.
    hard = {"memory.available": "100Mi"} if config.eviction_hard is None else config.eviction_hard
    return replace(
        config,
        kube_reserved=reserved(config.kube_reserved),
        system_reserved=reserved(config.system_reserved),
        eviction_hard=thresholds(hard),
        merge_default_eviction_settings=config.merge_default_eviction_settings or config.eviction_hard is None,
        eviction_soft=thresholds(config.eviction_soft),
        eviction_minimum_reclaim=thresholds(config.eviction_minimum_reclaim),
    )


def _is_memory(signal: str, value: str) -> bool:
    return signal in _MEMORY_SIGNALS and not value.endswith("%")


def _workload(workload: ScenarioWorkload, scale: ScaleFactors) -> ScenarioWorkload:
    in_memory = {volume.name for volume in workload.pod.spec.volumes if volume.is_in_memory}
    demands = tuple(
        {name: _of_container(demand, in_memory, scale) for name, demand in containers.items()}
        for containers in workload.demands
    )
    return replace(
        workload,
        pod=_pod(workload.pod, scale),
        demands=demands,
        arrives_us=scale.moment(workload.arrives_us),
        deleted_us=None if workload.deleted_us is None else scale.moment(workload.deleted_us),
    )


def _demand(demand: Demand, scale: ScaleFactors) -> Demand:
    amounts = {**dict.fromkeys(_MEMORY_CURVES, scale.part), "cpu_milli": scale.milli}
    given = {name: getattr(demand, name) for name in demand.__struct_fields__}
    curves = {
        name: _curve(value, scale, amounts.get(name, int)) for name, value in given.items() if isinstance(value, Curve)
    }
    return replace(demand, **curves)


def _of_container(demand: ContainerDemand, in_memory: Collection[str], scale: ScaleFactors) -> ContainerDemand:
    """Scale what a container wants; ``in_memory`` are the volumes that take memory."""
    volumes = {
        name: VolumeDemand(
            _curve(volume.used_bytes, scale, scale.part if name in in_memory else int),
            _curve(volume.inodes, scale, int),
        )
        for name, volume in demand.volumes.items()
    }
    service = demand.service
    if service is not None:
        requests_milli = _curve(service.requests_milli, scale, int)
        service = replace(service, requests_milli=requests_milli, cost_us=scale.milli(service.cost_us))
    return replace(
        _demand(demand, scale),
        volumes=volumes,
        exits_after_us=_if_stated(scale.moment, demand.exits_after_us),
        pre_stop_us=_if_stated(scale.moment, demand.pre_stop_us),
        probe_cost_us=_if_stated(scale.milli, demand.probe_cost_us),
        # It takes the scaled time on the scaled cores.
        work_us=_if_stated(scale.moment, _if_stated(scale.milli, demand.work_us)),
        service=service,
    )


def _if_stated(change: Callable[[int], int], value: int | None) -> int | None:
    return None if value is None else change(value)


def _curve(curve: Curve, scale: ScaleFactors, amount: Callable[[int], int]) -> Curve:
    knots = tuple((scale.moment(time_us), amount(value)) for time_us, value in curve.knots)
    return replace(curve, knots=knots, period_us=None if curve.period_us is None else scale.moment(curve.period_us))


def _pod(pod: Pod, scale: ScaleFactors) -> Pod:
    def container(each: Container) -> Container:
        return replace(each, resources=_resources(each.resources, scale))

    def volume(each: Volume) -> Volume:
        own = each.empty_dir
        if own is None or own.size_limit is None or not each.is_in_memory:
            return each
        limited: EmptyDir = replace(own, size_limit=_bytes(own.size_limit, scale))
        return replace(each, empty_dir=limited)

    spec = replace(
        each_container(pod.spec, container),
        volumes=tuple(map(volume, pod.spec.volumes)),
        resources=None if pod.spec.resources is None else _resources(pod.spec.resources, scale),
        overhead=_amounts(pod.spec.overhead, scale) if pod.spec.overhead else pod.spec.overhead,
    )
    return replace(pod, spec=spec)


def _resources(resources: ResourceRequirements, scale: ScaleFactors) -> ResourceRequirements:
    return replace(resources, requests=_amounts(resources.requests, scale), limits=_amounts(resources.limits, scale))


def _amounts(amounts: ResourceList, scale: ScaleFactors) -> ResourceList:
    return {name: _amount(name, amount, scale) for name, amount in amounts.items()}


def _amount(name: str, amount: Quantity, scale: ScaleFactors) -> Quantity:
    if name == MEMORY or is_hugepages(name):
        return _bytes(amount, scale)
    return Quantity.of_milli(scale.milli(-(-amount.nanos // 1_000_000))) if name == CPU else amount


def _bytes(amount: Quantity, scale: ScaleFactors) -> Quantity:
    return Quantity.of_units(scale.size(amount.value), "BinarySI")
