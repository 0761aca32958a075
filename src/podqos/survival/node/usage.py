"""Assigns the rows of a usage file to pods.

Nothing is guessed: a row that matches no pod, or is ambiguous, is an error. A pod without rows is one without kubelet
statistics. No container uses more than its limit: a row that says so counts as the limit, and the caller is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InputError
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.model.snapshot import ContainerUsage, NodeUsage, PodUsage, Snapshot
from podqos.model.stats import ContainerStats, FsStats, MemoryStats, PodReference, PodStats, ProcessStats
from podqos.survival.node.pods import NodePod
from podqos.survival.node.usage_file import UsageRow


class BeyondLimit(Struct, frozen=True):
    """A row that says more than can be."""

    row: UsageRow
    container: str
    used: Quantity
    limit: Quantity


def from_usage(
    pods: Sequence[NodePod], rows: Iterable[UsageRow], node: NodeUsage, beyond: list[BeyondLimit] | None = None
) -> Snapshot:
    """Return a snapshot of pods with the figures of their rows; ``beyond`` takes what is above a container's limit."""
    directory = _Directory(pods)
    found: dict[str, dict[str, UsageRow]] = {}
    for row in rows:
        for entry in directory.owners(row):
            container = _container(row, entry.pod)
            if container is None:
                continue
            of_pod = found.setdefault(entry.pod.metadata.uid, {})
            if container in of_pod:
                where = of_pod[container].where
                raise InputError(
                    f"a second row for {entry.pod.key} {container}", where=row.where, fix=f"the first is at {where}"
                )
            of_pod[container] = _within_limit(row, entry.pod, container, [] if beyond is None else beyond)
    return Snapshot(node, tuple(pod_usage(entry.pod, found.get(entry.pod.metadata.uid, {})) for entry in pods))


def strangers(pods: Sequence[NodePod], rows: Iterable[UsageRow]) -> int:
    """Return how many rows of a list of all pods are about none of these."""
    directory = _Directory(pods)
    return sum(
        all(_container(row, entry.pod) is None for entry in directory.owners(row)) for row in rows if row.is_listed
    )


def _within_limit(row: UsageRow, pod: Pod, container: str, beyond: list[BeyondLimit]) -> UsageRow:
    limits = {container.name: container.resources.limits.get(MEMORY) for container in pod.running_containers}
    limit, used = limits[container], row.memory or row.anon
    if limit is None or used is None or used <= limit:
        return row
    if all(limit.row is not row for limit in beyond):
        # Of a row that stands for all pods of a workload, once.
        beyond.append(BeyondLimit(row, container, used, limit))
    anon = None if row.anon is None else min(row.anon, limit)
    return replace(row, memory=None if row.memory is None else limit, anon=anon, inactive_file=None)


class _Directory:
    """Finds pods by their own name or by that of their workload, with or without the namespace."""

    def __init__(self, pods: Iterable[NodePod]) -> None:
        self._pods: dict[str, list[NodePod]] = {}
        self._workloads: dict[str, list[NodePod]] = {}
        for entry in pods:
            for names, key in ((self._pods, entry.pod.key), (self._workloads, entry.workload)):
                names.setdefault(key, []).append(entry)
                names.setdefault(key.partition("/")[2], []).append(entry)

    def owners(self, row: UsageRow) -> list[NodePod]:
        """Return the pods a row is about."""
        for names in (self._pods, self._workloads):
            found = names.get(row.pod, [])
            different = sorted({entry.pod.key if names is self._pods else entry.workload for entry in found})
            if len(different) > 1:
                raise InputError(f"{row.pod} is ambiguous", where=row.where, fix=f"write {' or '.join(different)}")
            if found:
                return found
        if row.is_listed:
            return []
        close = get_close_matches(row.pod, [*self._pods, *self._workloads], 1)
        fix = f"did you mean {close[0]}?" if close else "name a pod or workload of the input"
        raise InputError(f"no such pod: {row.pod}", where=row.where, fix=fix)


def _container(row: UsageRow, pod: Pod) -> str | None:
    """Return the container of a row, which may be left out where there is only one; None: not one of this pod's."""
    names = [container.name for container in pod.running_containers]
    if not row.container and len(names) == 1:
        return names[0]
    if row.container not in names:
        if row.is_listed and row.container:
            return None
        what = f"{pod.key} has no container {row.container}" if row.container else f"{pod.key} has several containers"
        fix = f"container is one of {', '.join(names)}"
        if row.is_listed:
            fix = f"state each: `kubectl top pods --containers` does; {fix}"
        raise InputError(what, where=row.where, fix=fix)
    return row.container


def pod_usage(pod: Pod, rows: Mapping[str, UsageRow]) -> PodUsage:
    """Return what a pod uses, by the rows of its containers."""
    names = [container.name for container in pod.running_containers]
    containers = tuple(
        _from_row(name, rows[name]) if name in rows else ContainerUsage(name, is_measured=False) for name in names
    )
    return PodUsage(pod, _stats(pod, containers, rows) if rows else None, containers)


def _from_row(name: str, row: UsageRow) -> ContainerUsage:
    memory = row.memory if row.memory is not None else row.anon
    page_table_bytes = _value(row.page_tables) or 0
    working_set_bytes = _value(memory) or 0
    anon_bytes = max(0, working_set_bytes - page_table_bytes) if row.anon is None else row.anon.value
    return ContainerUsage(
        name=name,
        anon_bytes=anon_bytes,
        active_file_bytes=max(0, working_set_bytes - anon_bytes - page_table_bytes),
        inactive_file_bytes=_value(row.inactive_file) or 0,
        swap_bytes=_value(row.swap) or 0,
        page_table_bytes=page_table_bytes,
        processes=row.processes,
        is_measured=memory is not None,
    )


def _stats(pod: Pod, containers: Iterable[ContainerUsage], rows: Mapping[str, UsageRow]) -> PodStats:
    """Return the figures as the kubelet would report them."""
    measured = [usage for usage in containers if usage.name in rows]
    in_memory = [usage.working_set_bytes for usage in measured if usage.is_measured]
    return PodStats(
        pod_ref=PodReference(pod.metadata.name, pod.metadata.namespace, pod.metadata.uid),
        containers=tuple(
            ContainerStats(
                usage.name,
                MemoryStats(working_set_bytes=usage.working_set_bytes) if usage.is_measured else None,
                FsStats(used_bytes=_value(rows[usage.name].disk), inodes_used=rows[usage.name].inodes),
            )
            for usage in measured
        ),
        memory=MemoryStats(working_set_bytes=sum(in_memory)) if in_memory else None,
        process_stats=ProcessStats(sum(usage.processes for usage in measured)),
    )


def _value(amount: Quantity | None) -> int | None:
    return None if amount is None else amount.value
