"""What a fix costs: the difference between two pods."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.advice.checks.finding import CostKind, FixCost
from podqos.advice.checks.view import View
from podqos.amounts import counted
from podqos.model.effective import pod_requests
from podqos.model.pod import Container, Pod
from podqos.model.quantity import ZERO
from podqos.model.resources import CPU, MEMORY


def costs_between(before: View, after: View) -> Iterator[FixCost]:
    """Yield what the pods of a workload pay for becoming others."""
    return pod_costs(before.judged.stored, after.judged.stored, before.workload.replicas or 1)


def pod_costs(before: Pod, after: Pod, replicas: int = 1) -> Iterator[FixCost]:
    """Yield what pods, as stored, pay for becoming others: limits where there were none, larger requests."""
    limited = {container.name: container.resources.limits for container in _containers(before)}
    for new in _containers(after):
        limits, old_limits = new.resources.limits, limited.get(new.name, {})
        cpu, memory = limits.get(CPU), limits.get(MEMORY)
        old_cpu = old_limits.get(CPU)
        if cpu and (not old_cpu or cpu < old_cpu):
            text = f"{new.name} is throttled at its cpu limit of {cpu}, even on an idle node"
            yield FixCost(CostKind.THROTTLING, new.name, CPU, str(cpu), text)
        if memory and not old_limits.get(MEMORY):
            text = f"{new.name} is OOM-killed at its memory limit of {memory}"
            yield FixCost(CostKind.MEMORY_LIMIT, new.name, MEMORY, str(memory), text)
    was, becomes = pod_requests(before), pod_requests(after)
    for name in (CPU, MEMORY):
        more = becomes.get(name, ZERO) - was.get(name, ZERO)
        if more.sign > 0:
            pods = f" for each of {counted(replicas, 'pod')}" if replicas > 1 else ""
            text = f"{more} more {name} is reserved{pods}, used or not"
            yield FixCost(CostKind.RESERVATION, "", name, str(more), text)


def containers_of(view: View) -> tuple[Container, ...]:
    """Return the containers as stored, with what policies fill in."""
    return _containers(view.stored)


def _containers(pod: Pod) -> tuple[Container, ...]:
    return (*pod.spec.containers, *pod.spec.init_containers)
