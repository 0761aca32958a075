"""Collects a node's status (``status_document``), a pod at a time."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from podqos.agent.state import PodRecord
from podqos.eviction.signals import NodeCondition, observe
from podqos.host.api.documents import timestamp
from podqos.host.api.pod_list import phase
from podqos.host.api.status_document import (
    ConditionRow,
    ContainerRow,
    FastPath,
    NodeStatus,
    NoteRow,
    PodRow,
    RefusedRow,
    ResourceRow,
    ThresholdRow,
)
from podqos.host.linux.psi import PressureFile, read_pressure
from podqos.host.node.host_pod import HostPod
from podqos.host.storage.state import PodState
from podqos.model.effective import pod_limits, pod_requests
from podqos.model.node import PODS
from podqos.model.resources import CPU, MEMORY, ResourceList
from podqos.model.stats import MemoryStats, Summary
from podqos.model.time_units import SECOND_NS
from podqos.qos.classes import classify

if TYPE_CHECKING:
    from podqos.host.api.counters import Counters
    from podqos.host.node.node import Node


def node_status(node: Node, counters: Counters, version: str) -> Generator[bytes, None, NodeStatus]:
    """Collect the status; yields between pods so that other clients get their turn."""
    rows = []
    for uid in dict.fromkeys([*node.world.pods, *node.world.over]):
        row = _pod_row(node, uid)
        if row is not None:
            rows.append(row)
            yield b""
    stats = node.figures.of_node()
    settings = node.settings
    return NodeStatus(
        version=version,
        node=settings.node,
        pid=os.getpid(),
        start_time=timestamp(counters.start_us),
        now_us=counters.now_us(),
        start_us=counters.start_us,
        state_dir=str(settings.state_dir),
        manifests=str(settings.manifests),
        runtime=node.runtime.name,
        shadow=settings.shadow,
        is_ending=node.is_ending,
        cgroup=node.cgroups.own,
        cgroup_version=node.cgroups.version.value,
        is_confined=settings.memory_bytes is not None,
        memory=stats.memory or MemoryStats(),
        pods_memory_limit_bytes=node.cgroups.memory_limit(node.figures.kubepods),
        conditions=tuple(_conditions(node, counters)),
        resources=tuple(_resources(node)),
        thresholds=tuple(threshold_rows(node, Summary(stats))),
        pressure=pressure(node),
        fast_path=FastPath(
            settings.fast_path, dict(node.world.memory_watch.levels), counters.reactions, counters.last_reaction_seconds
        ),
        degraded=tuple(node.capabilities.lines()),
        notes=tuple(NoteRow(text, count) for text, count in node.notes.items()),
        refused=tuple(
            RefusedRow(refused.key, refused.source, refused.why) for refused in node.reconciliation.refused.values()
        ),
        pods=tuple(rows),
    )


def threshold_rows(node: Node, summary: Summary) -> Iterator[ThresholdRow]:
    """Yield the thresholds in force, with what is available now."""
    manager = node.driver.state.manager
    seen = observe(summary).signals
    thresholds = node.config.eviction.thresholds if manager.thresholds is None else manager.thresholds
    for threshold in thresholds:
        now = seen.get(threshold.signal)
        yield ThresholdRow(
            threshold.signal,
            threshold.is_hard,
            threshold.grace_period_ns // SECOND_NS,
            None if now is None else threshold.amount(now.capacity).value,
            None if now is None else now.available,
            None if now is None else now.capacity,
            threshold in manager.thresholds_met,
        )


def pressure(node: Node) -> dict[str, PressureFile]:
    """Return the machine's pressure stall information."""
    found = {name: read_pressure(node.procfs.root / "pressure" / name) for name in ("cpu", "memory", "io")}
    return {name: file for name, file in found.items() if file is not None}


def _conditions(node: Node, counters: Counters) -> Iterator[ConditionRow]:
    start = timestamp(counters.start_us)
    yield ConditionRow("Ready", not node.is_ending, start)
    for condition in NodeCondition:
        since = counters.transitions_us.get(condition)
        holds = node.world.conditions.get(condition, False)
        yield ConditionRow(condition.value, holds, start if since is None else timestamp(since))


def _resources(node: Node) -> Iterator[ResourceRow]:
    allocatable, capacity = node.config.allocatable, node.config.cgroups.node_capacity
    requested = node.driver.state.requested
    for name in allocatable:
        if name == PODS:
            continue
        yield ResourceRow(name, _units(capacity, name), _units(allocatable, name) or 0, requested.get(name, 0))
    active = sum(record.is_active for record in node.driver.state.pods.values())
    yield ResourceRow(PODS, node.config.max_pods, node.config.max_pods, active)


def _units(amounts: ResourceList, name: str) -> int | None:
    amount = amounts.get(name)
    if amount is None:
        return None
    return amount.milli_value if name == CPU else amount.value


def _pod_row(node: Node, uid: str) -> PodRow | None:
    running = node.world.pods.get(uid)
    state = running.state if running is not None else node.world.over.get(uid)
    if state is None:
        return None
    record = node.driver.state.pods.get(uid)
    pod = state.pod
    limit = pod_limits(pod).get(MEMORY) if _has_limits(state) else None
    memory = node.cgroups.memory(running.cgroup) if running is not None else None
    return PodRow(
        namespace=pod.metadata.namespace_or_default,
        name=pod.metadata.name,
        uid=uid,
        qos_class=classify(pod).qos_class,
        priority=pod.spec.priority or 0,
        phase=phase(state, record),
        reason=state.reason or _waiting_for(record),
        is_stopping=state.is_stopping,
        restarts=_restarts(state, record),
        started_us=state.started_us,
        memory_bytes=memory.working_set_bytes if memory is not None else None,
        memory_request_bytes=_units(pod_requests(pod), MEMORY) or 0,
        memory_limit_bytes=limit.value if limit is not None else None,
        cpu_usage_ns=node.cgroups.cpu_usage_ns(running.cgroup) if running is not None else None,
        containers=tuple(_containers(node, running)) if running is not None else (),
        source=state.source,
    )


def _has_limits(state: PodState) -> bool:
    """Whether the pod as a whole is limited: one container without a limit makes it unlimited."""
    spec = state.pod.spec
    if spec.resources is not None and MEMORY in spec.resources.limits:
        return True
    return all(MEMORY in container.resources.limits for container in (*spec.containers, *spec.init_containers))


def _waiting_for(record: PodRecord | None) -> str:
    backing_off = record is not None and any(container.stage == "backing off" for container in record.containers)
    return "CrashLoopBackOff" if backing_off else ""


def _restarts(state: PodState, record: PodRecord | None) -> int:
    if record is not None:
        return sum(container.restarts for container in record.containers)
    return sum(container.restarts for container in state.containers.values())


def _containers(node: Node, pod: HostPod) -> Iterator[ContainerRow]:
    for run in pod.running:
        pids = [run.pid] if run.pid is not None else node.cgroups.processes(run.cgroup)[:1]
        kept = node.procfs.oom_score_adj(pids[0]) if pids else None
        yield ContainerRow(run.id.name, run.plan.oom_score_adj, kept)
