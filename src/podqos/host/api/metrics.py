"""The node's metrics in Prometheus' text format, under the names of the kubelet, cAdvisor and node_exporter.

podqos' own metrics begin with ``podqos_``; the main one is ``podqos_reaction_seconds``, from the kernel's signal that
memory crossed a threshold until the victim could no longer grow (held), got SIGTERM (terminated), and SIGKILL (killed).

Sources: Kubernetes v1.36 pkg/kubelet/metrics/metrics.go, pkg/kubelet/metrics/collectors/resource_metrics.go;
cAdvisor metrics/prometheus.go; https://prometheus.io/docs/instrumenting/exposition_formats/.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from podqos.agent.journal import Kind
from podqos.eviction.signals import NodeCondition, Signal
from podqos.exposition import family
from podqos.host.api.counters import Counters
from podqos.host.api.http_request import Pieces
from podqos.host.api.node_status import pressure, threshold_rows
from podqos.host.linux.procfs import PAGE_BYTES
from podqos.model.stats import PodStats, Summary

if TYPE_CHECKING:
    from podqos.host.node.node import Node

_LIMITS = ("emptydirfs.limit", "ephemeralpodfs.limit", "ephemeralcontainerfs.limit")

Sample = tuple[Mapping[str, str], float | None]
"""Labels and a value; samples without a value are left out."""


class _Measured(Struct):
    """A pod's figures."""

    labels: dict[str, str]
    stats: PodStats
    containers: dict[str, tuple[int | None, int]]
    """CPU time and start, by container."""


def metrics(node: Node, counters: Counters) -> Pieces:
    """Yield the answer to ``/metrics``."""
    pods = yield from _measured(node)
    yield from _of_node(node)
    yield from _of_kubelet(node, counters)
    yield from _of_pods(pods, counters)
    yield _text(counters.reaction_seconds.lines())
    yield b"".join(_of_process(counters))


def _measured(node: Node) -> Generator[bytes, None, list[_Measured]]:
    found = []
    for pod in list(node.world.pods.values()):
        runs = {run.id.name: (node.cgroups.cpu_usage_ns(run.cgroup), run.started_us) for run in pod.running}
        labels = {"namespace": pod.pod.metadata.namespace_or_default, "pod": pod.pod.metadata.name}
        found.append(_Measured(labels, node.figures.of_pod(pod), runs))
        yield b""
    return found


# ---- the families ----------------------------------------------------------------------------------------------------


def _of_node(node: Node) -> Iterator[bytes]:
    stats = node.figures.of_node()
    yield _gauge("kubelet_node_name", "The node's name. The count is always 1.", [({"node": stats.node_name}, 1)])
    if stats.memory is not None:
        yield _gauge("node_memory_working_set_bytes", "Working set of the node", stats.memory.working_set_bytes)
        yield _gauge(
            "podqos_node_memory_available_bytes",
            "Memory available on the node (memory.available)",
            stats.memory.available_bytes,
        )
    cpu_ns = node.cgroups.cpu_usage_ns(node.cgroups.own)
    yield _counter("node_cpu_usage_seconds_total", "CPU time of the node's pods", _seconds(cpu_ns))
    conditions = [
        ({"condition": condition.value}, float(node.world.conditions.get(condition, False)))
        for condition in NodeCondition
    ]
    yield _gauge("podqos_node_condition", "1 if the node condition is true, 0 if it is false", conditions)
    rows = [
        ({"eviction_signal": row.signal.value, "kind": "hard" if row.hard else "soft"}, row)
        for row in threshold_rows(node, Summary(stats))
    ]
    text = "Eviction threshold by signal, in the unit of the signal: bytes, inodes or process IDs"
    yield _gauge("podqos_eviction_threshold", text, [(labels, row.threshold) for labels, row in rows])
    text = "Available amount by signal, in the unit of the signal"
    yield _gauge("podqos_eviction_available", text, [(labels, row.available) for labels, row in rows])
    for kind, file in pressure(node).items():
        for state, who, stall in (("waiting", "some", file.some), ("stalled", "all", file.full)):
            name = f"node_pressure_{kind}_{state}_seconds_total"
            text = f"Time during which {who} tasks were stalled on {kind}"
            yield _counter(name, text, None if stall is None else stall.total_us / 1e6)


def _of_kubelet(node: Node, counters: Counters) -> Iterator[bytes]:
    pods = list(node.world.pods.values())
    running = sum(bool(pod.running) for pod in pods)
    yield _gauge("kubelet_running_pods", "Pods with a running container", running)
    ended = sum(not run.is_running for pod in pods for run in (*pod.runs.values(), *pod.dead))
    states = {"running": sum(len(pod.running) for pod in pods), "exited": ended}
    yield _gauge("kubelet_running_containers", "Containers by state", _labelled("container_state", states))
    yield _gauge("kubelet_desired_pods", "Pods that the manifests declare", len(node.manifests.wanted))
    evictions = {name: counters.evictions[name] for name in (*(signal.value for signal in Signal), *_LIMITS)}
    yield _counter("kubelet_evictions", "Pods evicted, by eviction signal", _labelled("eviction_signal", evictions))
    entries = {kind.value: counters.entries[kind] for kind in Kind if counters.entries[kind]}
    yield _counter("podqos_journal_entries_total", "Entries written to the journal", _labelled("kind", entries))


def _of_pods(pods: list[_Measured], counters: Counters) -> Iterator[bytes]:
    for name, text, member in (
        ("container_memory_working_set_bytes", "Working set of a container", "working_set_bytes"),
        ("container_memory_usage_bytes", "Memory usage of a container, including page cache", "usage_bytes"),
        ("container_memory_rss", "Anonymous memory of a container", "rss_bytes"),
    ):
        yield _gauge(
            name,
            text,
            [
                ({"container": container.name, **pod.labels}, getattr(container.memory, member, None))
                for pod in pods
                for container in pod.stats.containers or ()
            ],
        )
    sets = [(pod.labels, getattr(pod.stats.memory, "working_set_bytes", None)) for pod in pods]
    yield _gauge("pod_memory_working_set_bytes", "Working set of a pod", sets)
    runs = [({"container": name, **pod.labels}, *run) for pod in pods for name, run in pod.containers.items()]
    used = [(labels, _seconds(cpu_ns)) for labels, cpu_ns, _ in runs]
    yield _counter("container_cpu_usage_seconds_total", "CPU time of a container", used)
    starts = [(labels, started_us / 1e6) for labels, _, started_us in runs]
    yield _gauge("container_start_time_seconds", "Start time of a container, since the Unix epoch", starts)
    yield _counter("container_oom_events_total", "OOM kills of a container", _oom_kills(pods, counters))


def _oom_kills(pods: Iterable[_Measured], counters: Counters) -> Iterator[Sample]:
    """Yield zero for containers without a kill: a counter that appears with its first kill hides it."""
    alive = {(f"{pod.labels['namespace']}/{pod.labels['pod']}", name): 0 for pod in pods for name in pod.containers}
    for (key, container), count in {**alive, **counters.oom_kills}.items():
        namespace, _, name = key.partition("/")
        yield {"container": container, "namespace": namespace, "pod": name}, count


def _of_process(counters: Counters) -> Iterator[bytes]:
    yield _counter("process_cpu_seconds_total", "CPU time used by the agent", time.process_time())
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - as cheap as it gets
        virtual, resident, *_ = map(int, file.read().split())
    yield _gauge("process_resident_memory_bytes", "Resident memory of the agent", resident * PAGE_BYTES)
    yield _gauge("process_virtual_memory_bytes", "Virtual memory of the agent", virtual * PAGE_BYTES)
    yield _gauge("process_open_fds", "Open file descriptors of the agent", len(os.listdir("/proc/self/fd")))  # noqa: PTH208 - as above
    yield _gauge(
        "process_max_fds", "Maximum number of open file descriptors", resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    )
    yield _gauge("process_start_time_seconds", "Start time of the agent, since the Unix epoch", counters.start_us / 1e6)


# ---- the text format -------------------------------------------------------------------------------------------------


def _family(kind: str, name: str, text: str, samples: float | Iterable[Sample] | None) -> bytes:
    """Return a metric family of one value or several labelled ones; unknown values are left out."""
    if samples is None:
        return b""
    every = [({}, samples)] if isinstance(samples, int | float) else samples
    return _text(family(name, kind, text, ((labels, value) for labels, value in every if value is not None)))


_gauge, _counter = partial(_family, "gauge"), partial(_family, "counter")


def _text(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _labelled(label: str, values: Mapping[str, int]) -> list[Sample]:
    return [({label: name}, value) for name, value in values.items()]


def _seconds(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / 1e9
