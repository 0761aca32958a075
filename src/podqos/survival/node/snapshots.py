"""Snapshots of a node from the kubelet's own figures, or from a snapshot file.

The kubelet's statistics say how much of a container's memory is private (``rssBytes``) and how much is page cache, but
not how many processes hold it nor their page tables; that is taken as one process without any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InputError
from podqos.eviction.observation import observe
from podqos.eviction.signals import Signal
from podqos.manifest.decode import convert, convert_pod
from podqos.manifest.plain import Plain
from podqos.model.pod import Pod
from podqos.model.quantity import ZERO, Quantity
from podqos.model.snapshot import ContainerUsage, NodeUsage, PodUsage, Snapshot
from podqos.model.stats import SYSTEM_CONTAINER_PODS, ContainerStats, MemoryStats, PodStats, Summary
from podqos.survival.node.pods import NodePod, identified
from podqos.survival.node.usage import BeyondLimit, from_usage
from podqos.survival.node.usage_file import usage_row

API_VERSION = "podqos.dev/v1alpha1"
KIND = "Snapshot"


def from_summary(pods: Iterable[Pod], summary: Summary, node: NodeUsage) -> Snapshot:
    """Give each pod the kubelet's figures."""
    by_uid = {stats.pod_ref.uid: stats for stats in summary.pods or ()}
    by_name = {(stats.pod_ref.namespace, stats.pod_ref.name): stats for stats in summary.pods or ()}
    entries = []
    for pod in pods:
        metadata = pod.metadata
        stats = by_uid.get(metadata.uid) or by_name.get((metadata.namespace, metadata.name))
        measured = {container.name: container for container in (stats.containers or ())} if stats is not None else {}
        containers = (_measured(container.name, measured.get(container.name)) for container in pod.running_containers)
        entries.append(PodUsage(pod, stats, tuple(_with_files(containers, pod, stats))))
    return Snapshot(replace(node, pods_other_bytes=_other_bytes(summary, entries)), tuple(entries))


def _other_bytes(summary: Summary, entries: Iterable[PodUsage]) -> int:
    """Return what pods hold outside the containers of these entries.

    The figure of the cgroup of all pods counts, but if it is older than those of containers, not less than the sum of
    all pods: for its statistics, a kubelet measures containers at once, but that cgroup, and those of pods, only every
    ten seconds. Before it evicts, it measures anew.
    """
    containers = [container.memory for stats in summary.pods or () for container in stats.containers or ()]
    measured_at = [_utc(memory.time) for memory in containers if memory is not None and memory.time is not None]
    whole = _all_pods(summary)
    of_pods = None if whole is None else whole.working_set_bytes
    is_old = whole is not None and whole.time is not None and any(time > _utc(whole.time) for time in measured_at)
    if of_pods is None or is_old:
        of_pods = max(of_pods or 0, sum(map(_working_set, summary.pods or ())))
    return of_pods - sum(usage.working_set_bytes for entry in entries for usage in entry.containers)


def _utc(time: datetime) -> datetime:
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _working_set(stats: PodStats) -> int:
    """Return the working set of a pod: its own, with sandbox and files in memory, or that of its containers."""
    containers = [container.memory for container in stats.containers or () if container.memory is not None]
    of_containers = sum(memory.working_set_bytes or 0 for memory in containers)
    return max(of_containers, 0 if stats.memory is None else stats.memory.working_set_bytes or 0)


def _all_pods(summary: Summary) -> MemoryStats | None:
    """Return the memory of the cgroup of all pods."""
    containers = summary.node.system_containers
    return next((container.memory for container in containers if container.name == SYSTEM_CONTAINER_PODS), None)


def node_of(summary: Summary) -> NodeUsage | None:
    """Return the machine behind a summary; None if its memory is not in it."""
    memory = summary.node.memory
    if memory is None or memory.available_bytes is None or memory.working_set_bytes is None:
        return None
    observed, whole = observe(summary).signals.get(Signal.ALLOCATABLE_MEMORY), _all_pods(summary)
    of_pods = None if whole is None else whole.working_set_bytes
    if of_pods is None:
        of_pods = sum((stats.memory.working_set_bytes or 0) for stats in summary.pods or () if stats.memory is not None)
    return NodeUsage(
        memory_bytes=memory.available_bytes + memory.working_set_bytes,
        swap_bytes=swap_of(summary) or 0,
        name=summary.node.node_name,
        system_bytes=max(0, memory.working_set_bytes - of_pods),
        pods_limit_bytes=None if observed is None else observed.capacity,
    )


def swap_of(summary: Summary) -> int | None:
    """Return the swap of the machine behind a summary; None if it says nothing of it."""
    swap = summary.node.swap
    if swap is None or (swap.swap_available_bytes is None and not swap.swap_usage_bytes):
        return None
    return (swap.swap_available_bytes or 0) + (swap.swap_usage_bytes or 0)


class _NodeFields(Struct, frozen=True, forbid_unknown_fields=True):
    memory: Quantity
    swap: Quantity = ZERO
    name: str = ""
    system: Quantity = ZERO


_FIELDS = ("apiVersion", "kind", "node", "pods", "usage")
_FIX = f"write apiVersion: {API_VERSION}, kind: {KIND}, node: {{memory: 64Gi}}, pods: [...], usage: [...]"


def decode_snapshot(source: str, value: Plain, beyond: list[BeyondLimit] | None = None) -> Snapshot:
    """Read a snapshot file: ``node``, ``pods`` as the API server stores them, and ``usage`` in rows.

    ``beyond`` takes what is above a container's limit.
    """
    if not isinstance(value, dict) or "node" not in value:
        raise InputError("not a snapshot: node is missing", where=source, fix=_FIX)
    for name in value:
        if name not in _FIELDS:
            raise InputError(f"unknown field {name!r}", where=source, fix=f"it has {', '.join(_FIELDS)}")
    node = _node(source, value["node"])
    pods = [_pod(f"{source}: pods[{index}]", pod) for index, pod in enumerate(_list(source, value, "pods"))]
    if len({pod.metadata.uid for pod in pods}) < len(pods):
        raise InputError("duplicate pod", where=source, fix="every pod needs a unique name or uid")
    rows = [usage_row(row, f"{source}: usage[{index}]") for index, row in enumerate(_list(source, value, "usage"))]
    return from_usage([NodePod(pod, pod.key) for pod in pods], rows, node, beyond)


def _node(source: str, value: Plain) -> NodeUsage:
    try:
        fields = convert(value, _NodeFields)
    except msgspec.ValidationError as error:
        raise InputError(f"{error}", where=f"{source}: node", fix="write node: {memory: 64Gi}") from error
    return NodeUsage(fields.memory.value, fields.swap.value, fields.name, fields.system.value)


def _pod(where: str, value: Plain) -> Pod:
    try:
        return identified(convert_pod(value))
    except InputError as error:
        raise InputError(error.what, where=f"{where}.{error.where}", fix=error.fix) from error


def _list(source: str, value: dict[str, Plain], name: str) -> list[Plain]:
    found = value.get(name, [])
    if not isinstance(found, list):
        raise InputError(f"{name} is not a list", where=source, fix=_FIX)
    return found


def _with_files(containers: Iterable[ContainerUsage], pod: Pod, stats: PodStats | None) -> Iterator[ContainerUsage]:
    """Yield containers with their part of what is in volumes in memory; the kubelet counts it as page cache."""
    in_memory = {volume.name for volume in pod.spec.volumes if volume.is_in_memory}
    volumes = (stats.volumes or ()) if stats is not None else ()
    left = sum(volume.used_bytes or 0 for volume in volumes if volume.name in in_memory)
    for usage in containers:
        part = min(left, usage.active_file_bytes)
        left -= part
        yield replace(usage, active_file_bytes=usage.active_file_bytes - part, tmpfs_bytes=part) if part else usage


def _measured(name: str, stats: ContainerStats | None) -> ContainerUsage:
    memory = stats.memory if stats is not None else None
    if stats is None or memory is None or memory.working_set_bytes is None:
        return ContainerUsage(name, is_measured=False)
    working_set_bytes = memory.working_set_bytes
    # Page tables are part of the working set and not listed separately; what is not private is page cache.
    anon_bytes = working_set_bytes if memory.rss_bytes is None else min(memory.rss_bytes, working_set_bytes)
    return ContainerUsage(
        name=name,
        anon_bytes=anon_bytes,
        active_file_bytes=working_set_bytes - anon_bytes,
        inactive_file_bytes=max(0, (memory.usage_bytes or 0) - working_set_bytes),
        swap_bytes=(stats.swap.swap_usage_bytes or 0) if stats.swap is not None else 0,
    )
