"""What advice would do to classes and kill orders: the workloads as they are against the workloads as advised.

One pod of each workload stands for all. Memory is what was measured (the 95th percentile), or what the workload
requests now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction.ranking import Ranking
from podqos.eviction.signals import Signal
from podqos.model.pod import Pod
from podqos.model.profile import LATEST, Profile
from podqos.model.snapshot import NodeUsage, Snapshot
from podqos.orders.drift import (
    Identity,
    ManifestVersion,
    VersionWorkload,
    WorkloadDrift,
    drift,
)
from podqos.orders.usage import assumed_usage
from podqos.qos.cgroup_settings import CgroupSettings


class Advised(Struct, frozen=True):
    """A workload before and after; pods as the API server stores them."""

    identity: Identity
    before: Pod | None
    """None for a workload that does not exist yet."""
    after: Pod
    memory_bytes: Mapping[str, int] = {}
    """What its containers were measured to use."""


def effect(
    workloads: Sequence[Advised], settings: CgroupSettings, profile: Profile = LATEST
) -> dict[Identity, WorkloadDrift]:
    """Compare both states of all workloads on one node."""
    node_memory_bytes = settings.node_memory_bytes
    old = _version(workloads, node_memory_bytes, is_after=False)
    new = _version(workloads, node_memory_bytes, is_after=True)
    return {change.identity: change for change in drift(old, new, Ranking(Signal.MEMORY, profile=profile), settings)}


def _version(workloads: Sequence[Advised], node_memory_bytes: int, *, is_after: bool) -> ManifestVersion:
    entries = []
    usages = []
    for workload in workloads:
        stored = workload.after if is_after else workload.before
        if stored is None:
            continue
        pod = replace(stored, metadata=replace(stored.metadata, uid=str(workload.identity)))
        entries.append(VersionWorkload(workload.identity, pod, (pod.metadata.uid,)))
        usages.append(assumed_usage(pod, workload.before, workload.memory_bytes))
    return ManifestVersion(tuple(entries), Snapshot(NodeUsage(node_memory_bytes), tuple(usages)))
