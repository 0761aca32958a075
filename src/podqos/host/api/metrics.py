"""The node's metrics in the text format of Prometheus, under the names the kubelet, cAdvisor and node_exporter use.

What only podqos has begins with ``podqos_``; first of all ``podqos_reaction_seconds``, from the kernel's signal that
memory crossed a threshold until the victim could not grow any more (held), was asked to end (terminated), and was
killed.

Sources: Kubernetes v1.36 pkg/kubelet/metrics/metrics.go, pkg/kubelet/metrics/collectors/resource_metrics.go;
cAdvisor metrics/prometheus.go; https://prometheus.io/docs/instrumenting/exposition_formats/.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from podqos.agent.journal import Kind
from podqos.eviction.signals import NodeCondition, Signal
from podqos.host.api.counters import REACTION_BUCKETS, Counters, Histogram
from podqos.host.api.http_request import Pieces
from podqos.host.api.node_status import pressure, threshold_rows
from podqos.model.stats import NodeStats, PodStats, Summary

if TYPE_CHECKING:
    from podqos.host.node.node import Node

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_PAGE_BYTES = resource.getpagesize()
_LIMITS = ("emptydirfs.limit", "ephemeralpodfs.limit", "ephemeralcontainerfs.limit")

Labels = Mapping[str, str]
Sample = tuple[Labels, float]


class _Measured(Struct):
    """A pod as the metrics need it."""

    labels: dict[str, str]
    stats: PodStats
    cpu_ns: int | None
    started_us: int
    containers: dict[str, tuple[int | None, int]]
    """CPU time and start, by container."""


def metrics(node: Node, counters: Counters) -> Pieces:
    """Yield the answer to ``/metrics``."""
    pods = yield from _measured(node)
    yield from _of_node(node, node.figures.of_node())
    yield from _of_kubelet(node, counters)
    yield from _of_pods(pods, counters)
    yield b"".join(_of_reactions(counters))
    yield b"".join(_of_process(counters))


def _measured(node: Node) -> Generator[bytes, None, list[_Measured]]:
    found = []
    for pod in list(node.world.pods.values()):
        runs = {run.id.name: (node.cgroups.cpu_usage_ns(run.cgroup), run.started_us) for run in pod.running}
        labels = {"namespace": pod.pod.metadata.namespace or "default", "pod": pod.pod.metadata.name}
        cpu = node.cgroups.cpu_usage_ns(pod.cgroup)
        found.append(_Measured(labels, node.figures.of_pod(pod), cpu, pod.state.started_us, runs))
        yield b""
    return found


# ---- the families ----------------------------------------------------------------------------------------------------


def _of_node(node: Node, stats: NodeStats) -> Iterator[bytes]:
    yield _family(
        "kubelet_node_name", "gauge", "The node's name. The count is always 1.", [({"node": stats.node_name}, 1)]
    )
    if stats.memory is not None:
        yield _one("node_memory_working_set_bytes", "gauge", "Working set of the node", stats.memory.working_set_bytes)
        yield _one("podqos_node_memory_available_bytes", "gauge", "memory.available", stats.memory.available_bytes)
    cpu_ns = node.cgroups.cpu_usage_ns(node.cgroups.own)
    yield _one("node_cpu_usage_seconds_total", "counter", "CPU time of the node's pods", _seconds(cpu_ns))
    conditions = [({"condition": each.value}, float(node.world.conditions.get(each, False))) for each in NodeCondition]
    yield _family("podqos_node_condition", "gauge", "Whether the node reports a condition", conditions)
    rows = list(threshold_rows(node, Summary(stats)))
    for name, text, member in (
        ("podqos_eviction_threshold", "What must be left of a signal: bytes, inodes, process ids", "threshold"),
        ("podqos_eviction_available", "What is left of a signal", "available"),
    ):
        samples = [
            ({"eviction_signal": row.signal.value, "kind": "hard" if row.hard else "soft"}, float(getattr(row, member)))
            for row in rows
            if getattr(row, member) is not None
        ]
        yield _family(name, "gauge", text, samples)
    for kind, file in pressure(node).items():
        yield _one(
            f"node_pressure_{kind}_waiting_seconds_total", "counter", f"Time in which some tasks waited for {kind}",
            file.some.total_us / 1e6,
        )  # fmt: skip
        if file.full is not None:
            yield _one(
                f"node_pressure_{kind}_stalled_seconds_total", "counter", f"Time in which all tasks waited for {kind}",
                file.full.total_us / 1e6,
            )  # fmt: skip


def _of_kubelet(node: Node, counters: Counters) -> Iterator[bytes]:
    pods = list(node.world.pods.values())
    yield _one(
        "kubelet_running_pods", "gauge", "Pods that have a container running", sum(bool(each.running) for each in pods)
    )
    states = {
        "running": sum(len(pod.running) for pod in pods),
        "exited": sum(not run.is_running for pod in pods for run in (*pod.runs.values(), *pod.dead)),
    }
    yield _family(
        "kubelet_running_containers", "gauge", "Containers by state",
        [({"container_state": state}, count) for state, count in states.items()],
    )  # fmt: skip
    yield _one("kubelet_desired_pods", "gauge", "Pods that the manifests ask for", len(node.wanted))
    known = [*(signal.value for signal in Signal), *_LIMITS]
    yield _family(
        "kubelet_evictions", "counter", "Pods evicted, by eviction signal",
        [({"eviction_signal": name}, counters.evictions[name]) for name in known],
    )  # fmt: skip
    yield _one(
        "podqos_requested_evictions_total", "counter", "Pods evicted because somebody asked for it",
        counters.requested_evictions,
    )  # fmt: skip
    yield _family(
        "podqos_journal_entries_total", "counter", "Entries written to the journal",
        [({"kind": kind.value}, counters.entries[kind]) for kind in Kind if counters.entries[kind]],
    )  # fmt: skip


def _of_pods(pods: list[_Measured], counters: Counters) -> Iterator[bytes]:
    for name, text, member in (
        ("container_memory_working_set_bytes", "Working set of a container", "working_set_bytes"),
        ("container_memory_usage_bytes", "Memory of a container with all page cache", "usage_bytes"),
        ("container_memory_rss", "Anonymous memory of a container", "rss_bytes"),
    ):
        yield _family(name, "gauge", text, _container_memory(pods, member))
    yield _family(
        "pod_memory_working_set_bytes", "gauge", "Working set of a pod",
        [
            (pod.labels, float(pod.stats.memory.working_set_bytes))
            for pod in pods
            if pod.stats.memory is not None and pod.stats.memory.working_set_bytes is not None
        ],
    )  # fmt: skip
    yield _family(
        "container_cpu_usage_seconds_total", "counter", "CPU time of a container",
        [
            ({"container": name, **pod.labels}, cpu_ns / 1e9)
            for pod in pods
            for name, (cpu_ns, _) in pod.containers.items()
            if cpu_ns is not None
        ],
    )  # fmt: skip
    yield _family(
        "container_start_time_seconds", "gauge", "Start of a container, since the epoch",
        [
            ({"container": name, **pod.labels}, started_us / 1e6)
            for pod in pods
            for name, (_, started_us) in pod.containers.items()
        ],
    )  # fmt: skip
    yield _family("container_oom_events_total", "counter", "Ends by the OOM killer", _oom_kills(pods, counters))


def _container_memory(pods: Iterable[_Measured], member: str) -> Iterator[Sample]:
    for pod in pods:
        for container in pod.stats.containers or ():
            value = getattr(container.memory, member) if container.memory is not None else None
            if value is not None:
                yield {"container": container.name, **pod.labels}, value


def _oom_kills(pods: Iterable[_Measured], counters: Counters) -> Iterator[Sample]:
    """Yield zero for those who were spared so far: a counter that appears with its first kill hides it."""
    alive = {(f"{pod.labels['namespace']}/{pod.labels['pod']}", name): 0 for pod in pods for name in pod.containers}
    for (key, container), count in {**alive, **counters.oom_kills}.items():
        namespace, _, name = key.partition("/")
        yield {"container": container, "namespace": namespace, "pod": name}, count


def _of_reactions(counters: Counters) -> Iterator[bytes]:
    name = "podqos_reaction_seconds"
    yield _head(name, "histogram", "From the kernel's signal to what was done about an eviction for memory")
    for stage, histogram in counters.reaction_seconds.items():
        yield from _histogram(name, stage, histogram)


def _histogram(name: str, stage: str, histogram: Histogram) -> Iterator[bytes]:
    count = 0
    for bound, more in zip((*map(str, REACTION_BUCKETS), "+Inf"), histogram.counts, strict=True):
        count += more
        yield _sample(f"{name}_bucket", {"stage": stage, "le": bound}, count)
    yield _sample(f"{name}_sum", {"stage": stage}, histogram.total)
    yield _sample(f"{name}_count", {"stage": stage}, count)


def _of_process(counters: Counters) -> Iterator[bytes]:
    yield _one("process_cpu_seconds_total", "counter", "CPU time of the agent", time.process_time())
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - as cheap as it gets
        virtual, resident, *_ = map(int, file.read().split())
    yield _one("process_resident_memory_bytes", "gauge", "Memory of the agent", resident * _PAGE_BYTES)
    yield _one("process_virtual_memory_bytes", "gauge", "Address space of the agent", virtual * _PAGE_BYTES)
    yield _one("process_open_fds", "gauge", "Open descriptors of the agent", len(os.listdir("/proc/self/fd")))  # noqa: PTH208 - as above
    yield _one("process_max_fds", "gauge", "The most it may have", resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    yield _one("process_start_time_seconds", "gauge", "Start of the agent, since the epoch", counters.start_us / 1e6)


# ---- the text format -------------------------------------------------------------------------------------------------


def _one(name: str, kind: str, text: str, value: float | None) -> bytes:
    return b"" if value is None else _family(name, kind, text, [({}, value)])


def _family(name: str, kind: str, text: str, samples: Iterable[Sample]) -> bytes:
    return _head(name, kind, text) + b"".join(_sample(name, labels, value) for labels, value in samples)


def _head(name: str, kind: str, text: str) -> bytes:
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n".encode()


def _sample(name: str, labels: Labels, value: float) -> bytes:
    inside = ",".join(f'{label}="{text.translate(_ESCAPES)}"' for label, text in labels.items())
    return f"{name}{f'{{{inside}}}' if inside else ''} {value!r}\n".encode()


def _seconds(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / 1e9
