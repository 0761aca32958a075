"""Passes of the eviction manager, for tests of what would have changed them."""

from __future__ import annotations

from msgspec.structs import replace

from eviction.nodes import manager, observed
from podqos.eviction.manager import ManagerState
from podqos.eviction.ranking import Policy
from podqos.eviction.signals import Layout, Signal
from podqos.model.pod import Pod
from podqos.model.snapshot import Snapshot
from podqos.model.stats import PodStats
from podqos.orders.trials import KubeletMoment

CAPACITY = 64 << 30


def short_of(
    signal: Signal, *pods: tuple[Pod, PodStats | None], layout: Layout = Layout.SINGLE, policy: Policy | None = None
) -> KubeletMoment:
    """Make a pass on a node with 64Gi of something (bytes, inodes, process ids), of which too little is left."""
    config = replace(manager(layout, eviction_hard={signal.value: "10%"}), policy=policy)
    seen = observed({signal: (CAPACITY // 20, CAPACITY)}, *(stats for _, stats in pods if stats is not None))
    return KubeletMoment(config, ManagerState(), 10**7, seen, tuple(pod for pod, _ in pods))


def of_snapshot(node: Snapshot) -> KubeletMoment:
    """Make a pass on a node that is short of memory."""
    return short_of(Signal.MEMORY, *((entry.pod, entry.stats) for entry in node.pods))
