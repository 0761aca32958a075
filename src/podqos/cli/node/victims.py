"""The next victims on a running node: evicted by the kubelet, killed by the kernel."""

from __future__ import annotations

from msgspec.structs import replace

from podqos.cli.node.client import NodeClient
from podqos.eviction.observation import decode_summary
from podqos.eviction.ranking import Ranking, rank
from podqos.eviction.signals import Signal
from podqos.host.api.status_document import NodeStatus, PodListDocument
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.model.snapshot import Snapshot
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion
from podqos.report.node.lines import NextVictims
from podqos.survival.node.processes import ContainerProcesses, container_processes
from podqos.survival.node.snapshots import from_summary, node_of
from podqos.survival.orders.orders import kernel_order
from podqos.survival.orders.outlook import outlook


def next_victims(client: NodeClient, status: NodeStatus) -> NextVictims:
    """Query the node's pods and figures, and rank them for memory in both orders."""
    pods = client.value("/pods", PodListDocument).items
    summary = decode_summary(client.get("/stats/summary"))
    node = node_of(summary)
    measured = {stats.pod_ref.uid for stats in summary.pods or () if stats.containers}
    running = [pod for pod in pods if pod.metadata.uid in measured]
    if node is None or not running:
        return NextVictims()
    snapshot = from_summary(running, summary, node)
    settings = CgroupSettings(
        node_memory_bytes=node.memory_bytes,
        node_swap_bytes=node.swap_bytes,
        node_allocatable=_allocatable(status),
        cgroup_version=CgroupVersion(status.cgroup_version),
    )
    evicted = (ranked for ranked in rank(running, snapshot.stats, Ranking(Signal.MEMORY)) if ranked.spared is None)
    killed = kernel_order(_as_kept(snapshot, settings, status), outlook(snapshot, settings).domain)
    return NextVictims(next(evicted, None), killed[0] if killed else None)


def _allocatable(status: NodeStatus) -> dict[str, Quantity]:
    limit = status.pods_memory_limit_bytes
    return {} if limit is None else {MEMORY: Quantity.of_units(limit, "BinarySI")}


def _as_kept(snapshot: Snapshot, settings: CgroupSettings, status: NodeStatus) -> list[ContainerProcesses]:
    """Return the processes with the kernel's adjustments, which may differ from the planned ones."""
    kept = {
        (pod.uid, container.name): container.kept_oom_score_adj
        for pod in status.pods
        for container in pod.containers
        if container.kept_oom_score_adj is not None
    }
    found = []
    for container_process in container_processes(snapshot, settings):
        score = kept.get((container_process.pod.pod.metadata.uid, container_process.usage.name))
        processes = container_process.processes
        if score is not None:
            processes = tuple(replace(process, oom_score_adj=score) for process in processes)
        found.append(replace(container_process, processes=processes))
    return found
