"""A cluster's overview in Prometheus' text format. One series per node, namespace or check; never one per pod.

Source: https://prometheus.io/docs/practices/naming/.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from podqos.answers.node_figures import NodeOverview, Share
from podqos.answers.overview import Overview
from podqos.exposition import sample

Sample = tuple[Mapping[str, str], float | None]
"""Labels and a value; samples without one are left out."""


def overview_metrics(whole: Overview, pressure_seconds: Mapping[str, float]) -> str:
    """Return the metrics of a cluster; ``pressure_seconds`` is when nodes evict if usage goes on growing."""
    return "".join(f"{line}\n" for family in _families(whole, pressure_seconds) for line in family)


def gauge(name: str, about: str, samples: Iterable[Sample]) -> Iterator[str]:
    """Yield one metric."""
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} gauge"
    for labels, value in samples:
        if value is not None:
            yield sample(name, labels, value)


def _families(whole: Overview, pressure_seconds: Mapping[str, float]) -> Iterator[Iterator[str]]:
    nodes, namespaces = whole.nodes, [namespace for namespace in whole.namespaces if namespace.namespace]
    yield gauge("podqos_cluster_info", "The cluster.", [({"version": whole.server_version}, 1)])
    yield gauge(
        "podqos_pods",
        "Pods that have not ended, by class.",
        (
            ({"namespace": namespace.namespace, "qos_class": name}, count)
            for namespace in namespaces
            for name, count in namespace.classes.items()
        ),
    )
    yield gauge("podqos_pods_pending", "Pods without a node.", [({}, len(whole.pending))])
    yield gauge(
        "podqos_pods_stored_otherwise",
        "Pods whose stored class is not the one their resources make.",
        [({}, len(whole.stored_otherwise))],
    )
    yield gauge(
        "podqos_findings",
        "What podqos check finds, by namespace.",
        (
            ({"namespace": namespace.namespace, "severity": severity}, count)
            for namespace in whole.namespaces
            for severity, count in (("error", namespace.errors), ("warning", namespace.warnings))
        ),
    )
    yield gauge("podqos_check_findings", "The same by check.", (({"check": key}, n) for key, n in whole.checks.items()))
    yield gauge(
        "podqos_node_memory_headroom_bytes",
        "Memory until the kubelet evicts, by the threshold that is nearest; negative where it does already.",
        (({"node": node.name}, node.headroom_bytes) for node in nodes),
    )
    yield gauge(
        "podqos_node_memory_headroom_threshold_bytes",
        "That threshold: its signal, memory.available or allocatableMemory.available, and whether it is hard or soft.",
        (
            ({"node": node.name, "signal": by.signal, "type": by.type}, by.threshold_bytes)
            for node in nodes
            if (by := node.headroom) is not None
        ),
    )
    yield gauge(
        "podqos_node_memory_kernel_left_bytes",
        "Memory until the kernel kills; not more than the headroom where it acts before the kubelet.",
        (({"node": node.name}, node.kernel_left_bytes) for node in nodes if node.kernel_left_bytes is not None),
    )
    yield gauge(
        "podqos_node_memory_pressure_seconds",
        "Time until the kubelet evicts if usage goes on growing as it did; absent where it does not grow.",
        (({"node": name}, seconds) for name, seconds in pressure_seconds.items()),
    )
    yield gauge(
        "podqos_node_usage_measured",
        "Whether a kubelet measured what the node uses; otherwise it is what pods request.",
        (({"node": node.name}, int(node.is_measured)) for node in nodes),
    )
    for what, amount in (("requests", "requests"), ("limits", "limits")):
        yield gauge(
            f"podqos_node_{what}_ratio",
            f"The {what} of a node's pods against its allocatable.",
            (
                ({"node": node.name, "resource": resource}, _ratio(share, amount))
                for node in nodes
                for resource, share in (("cpu", node.cpu), ("memory", node.memory))
            ),
        )
    yield gauge("podqos_node_next_victim_info", "The pod that dies next on a node.", _victims(nodes))


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
