"""What a pod uses and what it asked for, as eviction counts them.

Usage comes from the kubelet's statistics, where a missing figure counts as zero. The request is the effective one with
two peculiarities: pod-level resources, once set, stand alone, and overhead is added only to what is requested at all.

Source: Kubernetes v1.36 pkg/kubelet/eviction/helpers.go (memoryUsage … podDiskUsage), pkg/api/v1/resource/helpers.go
(GetResourceRequestQuantity).
"""

from __future__ import annotations

from collections.abc import Collection

from podqos.eviction.signals import INODES, PIDS, DiskUse
from podqos.model.effective import pod_level_is_set, sum_of_containers
from podqos.model.pod import Pod
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import EPHEMERAL_STORAGE, MEMORY, ResourceList, is_pod_level
from podqos.model.stats import FsStats, MemoryStats, PodStats


def usage_of(pod: Pod, stats: PodStats, resource: str, disk_use: Collection[DiskUse] = ()) -> int:
    """Return what the pod uses of memory or disk (bytes), of inodes, or of process ids."""
    if resource == MEMORY:
        return memory_bytes(stats.memory)
    if resource == PIDS:
        return (stats.process_stats.process_count or 0) if stats.process_stats is not None else 0
    assert resource in {EPHEMERAL_STORAGE, INODES}
    return _disk_usage(pod, stats, disk_use, inodes=resource == INODES)


def memory_bytes(memory: MemoryStats | None) -> int:
    """Return the working set."""
    return (memory.working_set_bytes or 0) if memory is not None else 0


def disk_bytes(fs: FsStats | None) -> int:
    """Return the bytes used."""
    return (fs.used_bytes or 0) if fs is not None else 0


def request_of(pod: Pod, resource: str, profile: Profile = LATEST) -> Quantity:
    """Return the request that usage is held against."""
    spec = pod.spec
    if profile.pod_level_resources and pod_level_is_set(pod):
        assert spec.resources is not None
        request = spec.resources.requests.get(resource, ZERO) if is_pod_level(resource) else ZERO
    else:
        request = sum_of_containers(pod, lambda container: _only(container.resources.requests, resource)).get(
            resource, ZERO
        )
    overhead = spec.overhead.get(resource) if spec.overhead else None
    return request + overhead if overhead is not None and request else request


def _only(amounts: ResourceList, resource: str) -> ResourceList:
    amount = amounts.get(resource)
    return {} if amount is None else {resource: amount}


def _disk_usage(pod: Pod, stats: PodStats, disk_use: Collection[DiskUse], *, inodes: bool) -> int:
    used = _inodes if inodes else disk_bytes
    total = 0
    for container in stats.containers or ():
        if DiskUse.ROOTFS in disk_use:
            total += used(container.rootfs)
        if DiskUse.LOGS in disk_use:
            total += used(container.logs)
    if DiskUse.LOCAL_VOLUMES in disk_use and stats.volumes:
        local = {volume.name for volume in pod.spec.volumes if volume.is_local}
        for volume in stats.volumes:
            if volume.name in local:
                local.discard(volume.name)  # of two entries with one name the first counts
                total += (volume.inodes_used if inodes else volume.used_bytes) or 0
    return total


def _inodes(fs: FsStats | None) -> int:
    return (fs.inodes_used or 0) if fs is not None else 0
