"""What pods use: rows of a usage table, a kubelet's own figures, or an assumption.

A usage table is CSV or YAML, one row per container (or per pod of one container); amounts as in manifests. ``pod`` is
``namespace/name`` or a name; it may be the name of a Deployment, which then stands for each of its pods.
``manifest.usage_tables`` reads the forms of tables: the output of `kubectl top pods`, exports of Grafana and
Prometheus. Of a table over time the newest sample of each container counts, and what was last seen long before the
newest is gone. The columns::

    pod, container          what the figures belong to
    memory                  the working set, which is what `kubectl top` shows
    anon                    private memory, of that (default: all of it)
    inactiveFile            page cache on top of the working set
    swap, pageTables        further memory of its processes
    processes               how many processes share the memory evenly (default: 1)
    disk, inodes            of its writable layer and logs

What was not measured is left out or empty. Nothing is guessed: a row that matches no pod, or is ambiguous, is an error.
No container uses more than its limit: a row that says so counts as the limit, and the caller is told.

A container without a measurement is assumed to use what it requests; of two versions, what the older one requests, so
that a lowered request leaves its pod above it, and nothing else changes. One without a request uses a nominal amount.
So no pod goes first because nothing is known of it; only statistics that a kubelet itself has not got count as missing.

A kubelet's statistics say how much of a container's memory is private (``rssBytes``) and how much is page cache, but
not how many processes hold it nor their page tables; that is taken as one process without any.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import NoReturn

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.amounts import mebibytes
from podqos.errors import InputError, InvalidQuantity
from podqos.eviction.signals import Signal, observe
from podqos.manifest.decode import convert
from podqos.manifest.documents import plain_documents
from podqos.manifest.plain import Plain
from podqos.manifest.samples import PrometheusSeries, SampleRow, is_bare_top, is_top, read_amount, read_matrix
from podqos.manifest.times import read_time
from podqos.manifest.usage_tables import is_measured, is_usage_table, read_usage_table, table_text
from podqos.model.pod import Container, Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.model.snapshot import ContainerUsage, NodeUsage, PodUsage, Snapshot
from podqos.model.stats import (
    SYSTEM_CONTAINER_PODS,
    ContainerStats,
    FsStats,
    MemoryStats,
    PodReference,
    PodStats,
    ProcessStats,
    Summary,
)
from podqos.model.time_units import MINUTE_US
from podqos.orders.pods import NodePod


class UsageRow(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One row. An amount that is None was not measured."""

    pod: str
    container: str = ""
    memory: Quantity | None = None
    anon: Quantity | None = None
    inactive_file: Quantity | None = None
    swap: Quantity | None = None
    page_tables: Quantity | None = None
    processes: int = 1
    disk: Quantity | None = None
    inodes: int | None = None
    where: str = ""
    """Place of the row, for messages."""
    is_listed: bool = False
    """Whether it is from a list of all pods there are: of one that is not among the manifests, nothing is wrong."""


COLUMNS = tuple(name for name in UsageRow.__struct_encode_fields__ if name not in {"where", "isListed"})
_COLUMNS = f"write a list of rows, or CSV with the columns {', '.join(COLUMNS)}"
_COUNTS = ("processes", "inodes")
_READ = (*COLUMNS, "time", "namespace")
_MEMORY_METRICS = ("", "container_memory_working_set_bytes", "container_memory_usage_bytes", "container_memory_rss")
_GONE_AFTER_US = 15 * MINUTE_US
"""A pod whose last sample is so much older than the newest of all does not run any more."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Each becomes a process of the model. No container comes near; a typo does.
_MOST_PROCESSES = 100_000


def read_usage(source: str, data: bytes) -> tuple[UsageRow, ...]:
    """Read a usage file: a table in any of the forms that there are, otherwise YAML or JSON."""
    text = table_text(data)
    if not text.strip():
        raise InputError("it is empty", where=source, fix=_COLUMNS)
    if not is_usage_table(text):
        return tuple(_yaml_rows(source, data.removeprefix(_BYTE_ORDER_MARK)))
    is_answer = text.lstrip().startswith("{") and " =>" not in text.partition("\n")[0]
    table = read_matrix(source, text, takes_moment=True).series if is_answer else read_usage_table(source, data, _READ)
    if isinstance(table, tuple):
        return _newest(_series_rows(source, table))
    is_list = is_top(text) or is_bare_top(text)
    rows = [_table_row(row, is_list=is_list) for row in table]
    if not rows:
        raise InputError("there are no rows below the heading", where=source, fix="leave it out to assume usage")
    return (
        _newest(rows) if is_list or any(time_us is not None for time_us, _ in rows) else tuple(row for _, row in rows)
    )


def usage_row(fields: object, where: str) -> UsageRow:
    """Make a row of a mapping; raises ``InputError``."""
    if not isinstance(fields, dict):
        raise InputError("a row must be a mapping", where=where, fix="write {pod: a, memory: 100Mi}")
    _check_columns(fields, where)
    try:
        row = convert({**fields, "where": where}, UsageRow)
    except (msgspec.ValidationError, InvalidQuantity) as error:
        _refuse(error, fields, where)
    _check(row)
    return row


def _check_columns(names: Iterable[object], where: str) -> None:
    for name in names:
        if name not in COLUMNS:
            close = get_close_matches(str(name), COLUMNS, 1)
            fix = f"did you mean {close[0]}?" if close else f"the columns are {', '.join(COLUMNS)}"
            raise InputError(f"unknown column {name!r}", where=where, fix=fix)


def _check(row: UsageRow) -> None:
    amounts = (row.memory, row.anon, row.inactive_file, row.swap, row.page_tables, row.disk)
    if any(amount is not None and amount.sign < 0 for amount in amounts) or row.processes < 1 or (row.inodes or 0) < 0:
        raise InputError(
            "amounts can't be negative, and processes must be at least 1", where=row.where, fix="leave it out"
        )
    if row.processes > _MOST_PROCESSES:
        raise InputError(f"{row.processes} processes", where=row.where, fix=f"at most {_MOST_PROCESSES}")
    if not row.pod:
        raise InputError("the row has no pod", where=row.where, fix="write pod: namespace/name")
    if row.memory is not None and row.anon is not None and row.anon > row.memory:
        what = f"anon ({row.anon}) is part of memory ({row.memory}) and cannot be more"
        raise InputError(what, where=row.where, fix="memory is the working set: anon plus active page cache")


_Timed = tuple[int | None, UsageRow]


def _table_row(row: SampleRow, *, is_list: bool) -> _Timed:
    counts = {name: _number(text) for name, text in row.fields.items() if name in _COUNTS}
    fields = {name: value for name, value in row.fields.items() if name in COLUMNS and is_measured(value)}
    time_us = _time_us(row.fields["time"], row.where) if "time" in row.fields else None
    read = usage_row({**fields, **counts}, row.where)
    return time_us, replace(read, is_listed=is_list or time_us is not None)


def _series_rows(source: str, table: Iterable[PrometheusSeries]) -> Iterator[_Timed]:
    """Yield the last sample of every series of memory."""
    for index, series in enumerate(table):
        labels, where = series.metric, f"{source}: result[{index}]"
        container = labels.get("container", labels.get("container_name", ""))
        is_container = container not in {"", "POD"} or not {"container", "container_name"} & labels.keys()
        measured = [(time, text) for time, text in series.values if is_measured(text)]
        if labels.get("__name__", "") not in _MEMORY_METRICS or not is_container or not measured:
            continue
        pod, namespace = labels.get("pod", labels.get("pod_name", "")), labels.get("namespace", "")
        if not pod:
            raise InputError("the series has no pod label", where=where, fix="keep pod and container in the result")
        time, text = max(measured)
        try:
            memory = read_amount(text)
        except InputError as error:
            raise InputError(error.what, where=where, fix=error.fix) from None
        name = f"{namespace}/{pod}" if namespace else pod
        yield _time_us(time, where), UsageRow(name, container, memory, where=where, is_listed=True)


def _newest(rows: Iterable[_Timed]) -> tuple[UsageRow, ...]:
    """Return the newest row of each container, without those that were last seen long before the newest of all."""
    newest: dict[tuple[str, str], tuple[int, UsageRow]] = {}
    for time_us, row in rows:
        known = newest.get((row.pod, row.container))
        if known is None or (time_us or 0) >= known[0]:
            newest[row.pod, row.container] = time_us or 0, row
    last_us = max((time_us for time_us, _ in newest.values()), default=0)
    return tuple(row for time_us, row in newest.values() if last_us - time_us <= _GONE_AFTER_US)


def _time_us(value: Plain, where: str) -> int:
    try:
        return read_time(value)[0]
    except InputError as error:
        raise InputError(error.what, where=where, fix=error.fix) from None


def _number(text: Plain) -> Plain:
    return int(text) if isinstance(text, str) and text.isdecimal() else text


def _yaml_rows(source: str, data: bytes) -> Iterator[UsageRow]:
    for document in plain_documents(source, data):
        rows = document.value
        if not isinstance(rows, list):
            raise InputError("not a usage file", where=source, fix=_COLUMNS)
        for index, fields in enumerate(rows):
            line, _ = document.locate((index,))
            yield usage_row(fields, f"{source}:{line}")


def _refuse(error: Exception, fields: Mapping[str, object], where: str) -> NoReturn:
    what, _, path = str(error).partition(" - at `$.")
    field = f"{path.rstrip('`')}: " if path else ""
    quantity = error if isinstance(error, InvalidQuantity) else error.__cause__
    fix = "write amounts as in manifests: 100Mi, 2Gi"
    if isinstance(quantity, InvalidQuantity):
        what, fix = f"{fields.get(field.removesuffix(': '))!r} is not a valid quantity", quantity.fix or fix
    raise InputError(f"{field}{what}", where=where, fix=fix) from error


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


NOMINAL_BYTES = 64 << 20
NOMINAL = Quantity.of_units(NOMINAL_BYTES, "BinarySI")
"""Assumed usage of a container that requests no memory, in every command."""


def is_nominal(pods: Iterable[Pod]) -> bool:
    """Whether any of these pods has a container that requests no memory."""
    return any(MEMORY not in container.resources.requests for pod in pods for container in pod.running_containers)


def assumed_amounts(pods: Iterable[Pod], requested: str = "the pods' requests") -> str:
    """Return what is assumed of pods, in words."""
    return f"{requested}, or {mebibytes(NOMINAL_BYTES)} without one" if is_nominal(pods) else requested


def is_unmeasured(entry: PodUsage, idle: Collection[str]) -> bool:
    """Whether the memory of a container that has a process is not known."""
    return any(not container.is_measured and container.name not in idle for container in entry.containers)


def with_assumed(entry: PodUsage, older: Pod | None = None, *, idle: Collection[str] = ()) -> PodUsage:
    """Return a pod with assumed memory for those of its containers whose memory is not known."""
    if not is_unmeasured(entry, idle):
        return entry
    assumed = assumed_usage(entry.pod, older, idle=idle)
    if entry.stats is None or assumed.stats is None:
        return assumed
    amounts = {container.name: container for container in assumed.containers if container.name not in idle}
    filled = {
        container.name: amounts[container.name]
        for container in entry.containers
        if not container.is_measured and container.name in amounts
    }
    containers = tuple(
        replace(container, anon_bytes=filled[container.name].anon_bytes, is_measured=True)
        if container.name in filled
        else container
        for container in entry.containers
    )
    memory = {name: MemoryStats(working_set_bytes=usage.working_set_bytes) for name, usage in filled.items()}
    seen = {container.name: container for container in entry.stats.containers or ()}
    seen |= {name: replace(seen.get(name, ContainerStats(name)), memory=stats) for name, stats in memory.items()}
    whole = sum(container.working_set_bytes for container in containers if container.is_measured)
    stats = replace(
        entry.stats,
        containers=tuple(seen[container.name] for container in containers if container.name in seen),
        memory=MemoryStats(working_set_bytes=whole),
    )
    return replace(entry, containers=containers, stats=stats)


def assumed_usage(
    pod: Pod, older: Pod | None = None, measured: Mapping[str, int] | None = None, *, idle: Collection[str] = ()
) -> PodUsage:
    """Return a pod with assumed memory usage; ``older`` is the version that it is taken from.

    ``measured`` are bytes by container, where known. ``idle`` have no process, and no
    statistics.
    """
    known: Mapping[str, Container] = (
        {} if older is None else {container.name: container for container in older.running_containers}
    )
    amounts = {container.name: _memory(known.get(container.name, container)) for container in pod.running_containers}
    for name, known_bytes in (measured or {}).items():
        if name in amounts:
            amounts[name] = Quantity.of_units(known_bytes, "BinarySI")
    rows = {name: UsageRow(pod.key, name, memory=amount) for name, amount in amounts.items() if name not in idle}
    return pod_usage(pod, rows)


def _memory(container: Container) -> Quantity:
    requested = container.resources.requests.get(MEMORY)
    return requested or NOMINAL


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
