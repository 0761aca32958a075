"""What a live cluster knows about deaths: pods and events first, then the nodes on which something died."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from podqos.cluster import resources
from podqos.cluster.cluster import Cluster
from podqos.cluster.node_logs import kernel_log, kubelet_log
from podqos.errors import Refused
from podqos.model.assumption import Assumption
from podqos.objects.cluster_snapshot import ClusterSnapshot, End, Missing
from podqos.objects.spreading import Progress
from podqos.questions.autopsy_ended import is_killed
from podqos.questions.autopsy_eviction import event_sign, event_trace, status_trace
from podqos.reading.cluster_part import Part
from podqos.reading.live_cluster import list_lines, measured, snapshot_lines
from podqos.reading.logs import Log

MOST_NODES = 20
"""The maximum number of nodes to query for logs and usage."""


def scene_of_deaths(
    cluster: Cluster, namespace: str = "", pod: str = "", *, progress: Progress | None = None
) -> tuple[ClusterSnapshot, list[Log]]:
    """Return what a cluster knows about deaths, or about one pod's, and the logs of their nodes.

    An empty ``namespace`` means all. Whatever podqos has no permission to read is listed among the assumptions.
    """
    part = Part(namespace=namespace, policies=False, workloads=False, usage=False, events=True)
    lines = list(snapshot_lines(cluster, part))[:-1]
    nodes = list(_nodes_of(_snapshot(lines, cluster), pod))
    logs = []
    for node in nodes[:MOST_NODES]:
        if namespace:
            lines += _around(cluster, node)
        for read in (kernel_log, kubelet_log):
            found = read(cluster, node)
            if found.value is not None:
                logs.append(Log(f"{read.__name__.replace('_', ' ')} of {node}", found.value))
            lines += (msgspec.json.encode(Missing(assumption)) for assumption in found.assumptions)
    if nodes[MOST_NODES:]:
        what = f"usage and logs of {len(nodes) - MOST_NODES} more nodes"
        lines.append(msgspec.json.encode(Missing(Assumption(what, "not read", "podqos autopsy POD"))))
    if nodes:
        lines += measured(cluster, nodes[:MOST_NODES], replace(part, namespace=""), progress)
    return _snapshot(lines, cluster), logs


def _snapshot(lines: list[bytes], cluster: Cluster) -> ClusterSnapshot:
    return ClusterSnapshot([*lines, msgspec.json.encode(End(len(lines)))], cluster.name)


def _nodes_of(found: ClusterSnapshot, name: str) -> dict[str, None]:
    """Return the nodes on which something died, or on which a pod is or was."""
    nodes: dict[str, None] = {}
    for pod in found.fated_pods:
        is_meant = pod.metadata.name == name if name else status_trace(pod) is not None or is_killed(pod)
        if is_meant and pod.spec.node_name:
            nodes[pod.spec.node_name] = None
    for event in found.events:
        trace, sign = event_trace(event), event_sign(event)
        if trace is not None and trace.node and name in {"", event.about.name}:
            nodes[trace.node] = None
        if sign is not None and sign.node and not name:
            nodes[sign.node] = None
    # A node that is gone cannot be asked.
    return {node: None for node in nodes if node in found.nodes}


def _around(cluster: Cluster, node: str) -> Iterator[bytes]:
    """Yield the pods of a node in all namespaces, and the events of the node itself."""
    wanted = (
        (resources.PODS, "", f"spec.nodeName={node}"),
        (resources.EVENTS, "default", f"involvedObject.kind=Node,involvedObject.name={node}"),
    )
    for resource, namespace, selector in wanted:
        try:
            yield from list_lines(cluster, resource, namespace, field_selector=selector)
        except Refused as error:
            what = f"other {resource.plural} of node {node} ({error.what})"
            fix = f"permission to list {resource.plural} in all namespaces"
            yield msgspec.json.encode(Missing(Assumption(what, "none", fix)))
