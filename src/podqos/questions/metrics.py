"""A cluster's overview in Prometheus' text format. One series per node, namespace or check; never one per pod.

Source: https://prometheus.io/docs/practices/naming/.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from podqos.exposition import family
from podqos.questions.overview import NodeOverview, Overview, Share

Sample = tuple[Mapping[str, str], float | None]
"""Labels and a value; samples without a value are left out."""


def overview_metrics(whole: Overview, pressure_seconds: Mapping[str, float]) -> str:
    """Return a cluster's metrics; ``pressure_seconds``: until nodes evict, if memory keeps growing as it did."""
    return "".join(f"{line}\n" for lines in _families(whole, pressure_seconds) for line in lines)


def gauge(name: str, about: str, samples: Iterable[Sample]) -> Iterator[str]:
    """Yield a gauge."""
    yield from family(name, "gauge", about, ((labels, value) for labels, value in samples if value is not None))


def _families(whole: Overview, pressure_seconds: Mapping[str, float]) -> Iterator[Iterator[str]]:
    nodes, namespaces = whole.nodes, [namespace for namespace in whole.namespaces if namespace.namespace]
    yield gauge(
        "podqos_cluster_info",
        "The Kubernetes version of the cluster; the value is always 1.",
        [({"version": whole.server_version}, 1)],
    )
    yield gauge(
        "podqos_pods",
        "Pods that have not terminated, by namespace and QoS class.",
        (
            ({"namespace": namespace.namespace, "qos_class": name}, count)
            for namespace in namespaces
            for name, count in namespace.classes.items()
        ),
    )
    yield gauge("podqos_pods_pending", "Pods that are not scheduled to a node.", [({}, len(whole.pending))])
    yield gauge(
        "podqos_pods_qos_mismatch",
        "Pods whose status.qosClass differs from the class that their resources give them.",
        [({}, len(whole.stored_otherwise))],
    )
    yield gauge(
        "podqos_findings",
        "Findings of podqos check, by namespace and severity.",
        (
            ({"namespace": namespace.namespace, "severity": severity}, count)
            for namespace in whole.namespaces
            for severity, count in (("error", namespace.errors), ("warning", namespace.warnings))
        ),
    )
    yield gauge(
        "podqos_check_findings",
        "Findings of podqos check, by check.",
        (({"check": key}, n) for key, n in whole.checks.items()),
    )
    yield gauge(
        "podqos_node_memory_headroom_bytes",
        "Memory headroom before eviction, for the nearest threshold; negative once the threshold is crossed.",
        (({"node": node.name}, node.headroom_bytes) for node in nodes),
    )
    yield gauge(
        "podqos_node_memory_headroom_threshold_bytes",
        "The nearest eviction threshold, with its signal (memory.available, allocatableMemory.available) and type.",
        (
            ({"node": node.name, "signal": by.signal, "type": by.type}, by.threshold_bytes)
            for node in nodes
            if (by := node.headroom) is not None
        ),
    )
    yield gauge(
        "podqos_node_memory_oom_headroom_bytes",
        "Memory headroom before an OOM kill; at most the eviction headroom where the kernel acts before the kubelet.",
        (({"node": node.name}, node.kernel_left_bytes) for node in nodes if node.kernel_left_bytes is not None),
    )
    yield gauge(
        "podqos_node_time_to_eviction_seconds",
        "Time until the kubelet evicts if memory keeps growing at its recent rate; absent where it does not grow.",
        (({"node": name}, seconds) for name, seconds in pressure_seconds.items()),
    )
    yield gauge(
        "podqos_node_usage_measured",
        "1 if a kubelet measured the node's usage; 0 if it comes from metrics.k8s.io or the pods' requests.",
        (({"node": node.name}, int(node.is_measured)) for node in nodes),
    )
    for what, amount in (("requests", "requests"), ("limits", "limits")):
        yield gauge(
            f"podqos_node_{what}_ratio",
            f"Sum of the pods' {what}, as a multiple of the node's allocatable.",
            (
                ({"node": node.name, "resource": resource}, _ratio(share, amount))
                for node in nodes
                for resource, share in (("cpu", node.cpu), ("memory", node.memory))
            ),
        )
    yield gauge(
        "podqos_node_next_victim_info",
        "The next pod to be evicted (order=eviction) or OOM-killed (order=kill) on a node; the value is always 1.",
        _victims(nodes),
    )


def _ratio(share: Share, amount: str) -> float | None:
    part: int = getattr(share, amount)
    return part / share.allocatable if share.allocatable else None


def _victims(nodes: Iterable[NodeOverview]) -> Iterator[Sample]:
    for node in nodes:
        for order, victim in (("eviction", node.next_evicted), ("kill", node.next_killed)):
            if victim is not None:
                namespace, _, pod = victim.pod.partition("/")
                labels = {"node": node.name, "order": order, "namespace": namespace, "pod": pod}
                yield {**labels, "qos_class": victim.qos_class}, 1
