"""Scale a scenario down: multiply every amount of memory, of CPU and, if needed, of time by a factor.

Proportions stay: a request keeps its share of the node and thus its ``oom_score_adj``; growth takes as long as before.
So a scenario of 16 cores and 64Gi can be rehearsed on two cores in 2Gi.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import astuple, replace

from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.memory import Watermarks, machine
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import Container, Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, ResourceList, ResourceRequirements
from podqos.sim.engine.curve import Curve
from podqos.sim.scenario.demand import ContainerDemand, SystemDemand
from podqos.sim.scenario.scenario import NodeGroup, Scenario, ScenarioWorkload, WorkloadChange, WorkloadRollout
from podqos.survival.counterfactual.pod_changes import each_container

Demand = TypeVar("Demand", ContainerDemand, SystemDemand)

_MEMORY_CURVES = ("anon_bytes", "active_file_bytes", "inactive_file_bytes")
_MEMORY_SIGNALS = ("memory.available", "allocatableMemory.available")


class ScaleFactors(Struct, frozen=True, gc=False):
    """The factors."""

    memory: Fraction
    cpu: Fraction = Fraction(1)
    time: Fraction = Fraction(1)
    """Applies to demands; the kubelet's own timing stays."""

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
    demands = tuple(
        {name: _with_work(_demand(demand, scale), scale) for name, demand in containers.items()}
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
    curves = {name: _curve(getattr(demand, name), scale, scale.part) for name in _MEMORY_CURVES}
    return replace(demand, **curves, cpu_milli=_curve(demand.cpu_milli, scale, scale.milli))


def _with_work(demand: ContainerDemand, scale: ScaleFactors) -> ContainerDemand:
    """Scale the work of a container: it takes the scaled time on the scaled cores."""
    return demand if demand.work_us is None else replace(demand, work_us=scale.moment(scale.milli(demand.work_us)))


def _curve(curve: Curve, scale: ScaleFactors, amount: Callable[[int], int]) -> Curve:
    knots = tuple((scale.moment(time_us), amount(value)) for time_us, value in curve.knots)
    return replace(curve, knots=knots, period_us=None if curve.period_us is None else scale.moment(curve.period_us))


def _pod(pod: Pod, scale: ScaleFactors) -> Pod:
    def container(each: Container) -> Container:
        return replace(each, resources=_resources(each.resources, scale))

    spec = replace(
        each_container(pod.spec, container),
        resources=None if pod.spec.resources is None else _resources(pod.spec.resources, scale),
        overhead=_amounts(pod.spec.overhead, scale) if pod.spec.overhead else pod.spec.overhead,
    )
    return replace(pod, spec=spec)


def _resources(resources: ResourceRequirements, scale: ScaleFactors) -> ResourceRequirements:
    return replace(resources, requests=_amounts(resources.requests, scale), limits=_amounts(resources.limits, scale))


def _amounts(amounts: ResourceList, scale: ScaleFactors) -> ResourceList:
    return {name: _amount(name, amount, scale) for name, amount in amounts.items()}


def _amount(name: str, amount: Quantity, scale: ScaleFactors) -> Quantity:
    if name == MEMORY:
        return Quantity.of_units(scale.size(amount.value), "BinarySI")
    return Quantity.of_milli(scale.milli(-(-amount.nanos // 1_000_000))) if name == CPU else amount
