"""What eviction says of one pod: what it uses and requests, its own limits, its grace.

*Usage* comes from the kubelet's statistics, where a missing figure counts as zero. The request is the effective one
with two peculiarities: pod-level resources, once set, stand alone, and overhead is added only to what is requested.

*Local storage*: pods that exceed their own limits are evicted whatever the state of the node. Per pod the first of
these counts: an emptyDir above its size limit (on any medium; zero is no limit), all ephemeral storage above the pod's
effective limit (zero *is* a limit), a container's logs and writable layer above its own limit (zero is none; the layer
counts only where it shares the filesystem with the logs; sidecars since 1.37).

Source: Kubernetes v1.36 pkg/kubelet/eviction/helpers.go (memoryUsage … podDiskUsage), eviction_manager.go (synchronize,
localStorageEviction), pkg/api/v1/resource/helpers.go (GetResourceRequestQuantity); for the grace of 1.22 to 1.30
also pkg/kubelet/pod_workers.go, which took an override of zero for none. What differed before is in ``Profile``.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from msgspec import Struct

from podqos.eviction.signals import INODES, PIDS, DiskUse, Layout
from podqos.model.effective import pod_level_is_set, pod_limits, sum_of_containers
from podqos.model.pod import Pod
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import NANOS, ZERO, Quantity
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


class LocalStorageLimit(StrEnum):
    """Which limit; the names are those of the kubelet's eviction metric."""

    EMPTY_DIR = "emptydirfs.limit"
    POD = "ephemeralpodfs.limit"
    CONTAINER = "ephemeralcontainerfs.limit"


class LocalStorageExcess(Struct, frozen=True, gc=False):
    """A limit that is exceeded."""

    kind: LocalStorageLimit
    name: str
    """Of the volume or container; empty for the pod."""
    used_bytes: int
    limit: Quantity


def local_storage_excess(
    pod: Pod, stats: PodStats, layout: Layout, profile: Profile = LATEST
) -> LocalStorageExcess | None:
    """Return the limit for which the pod must go, or None."""
    return _empty_dir_excess(pod, stats) or _pod_excess(pod, stats) or _container_excess(pod, stats, layout, profile)


def _empty_dir_excess(pod: Pod, stats: PodStats) -> LocalStorageExcess | None:
    used = {volume.name: volume.used_bytes for volume in stats.volumes if volume.used_bytes is not None}
    for volume in pod.spec.volumes:
        limit = volume.empty_dir.size_limit if volume.empty_dir is not None else None
        bytes_used = used.get(volume.name)
        if bytes_used is not None and limit is not None and limit.sign > 0 and _exceeds(bytes_used, limit):
            return LocalStorageExcess(LocalStorageLimit.EMPTY_DIR, volume.name, bytes_used, limit)
    return None


def _pod_excess(pod: Pod, stats: PodStats) -> LocalStorageExcess | None:
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    if not any(EPHEMERAL_STORAGE in container.resources.limits for container in containers):
        return None
    limit = pod_limits(pod).get(EPHEMERAL_STORAGE)
    bytes_used = disk_bytes(stats.ephemeral_storage)
    if limit is not None and _exceeds(bytes_used, limit):
        return LocalStorageExcess(LocalStorageLimit.POD, "", bytes_used, limit)
    return None


def _container_excess(pod: Pod, stats: PodStats, layout: Layout, profile: Profile) -> LocalStorageExcess | None:
    held = [*pod.spec.containers]
    if profile.sidecar_storage_limits:
        held += [container for container in pod.spec.init_containers if container.is_sidecar]
    limits = {
        container.name: limit for container in held if (limit := container.resources.limits.get(EPHEMERAL_STORAGE))
    }
    if not limits:
        return None
    with_rootfs = layout in {Layout.SINGLE, Layout.CONTAINERS_APART}
    for container in stats.containers or ():
        limit = limits.get(container.name)
        bytes_used = disk_bytes(container.logs) + (disk_bytes(container.rootfs) if with_rootfs else 0)
        if limit is not None and _exceeds(bytes_used, limit):
            return LocalStorageExcess(LocalStorageLimit.CONTAINER, container.name, bytes_used, limit)
    return None


def _exceeds(bytes_used: int, limit: Quantity) -> bool:
    return bytes_used * NANOS > limit.nanos


_IMMEDIATE_SECONDS = 1
_DEFAULT_TERMINATION_SECONDS = 30


class PodGrace(Struct, frozen=True, gc=False):
    """The rule for every pod of a node."""

    most_seconds: int | None = None
    """None: whatever the pod's own grace period is."""
    is_capped_by_pod: bool = False
    """Whether a shorter grace period of the pod's own counts."""

    def seconds(self, pod: Pod) -> int:
        """Return what a pod is given."""
        own = pod.spec.termination_grace_period_seconds
        if self.most_seconds is None:
            return _DEFAULT_TERMINATION_SECONDS if own is None else own
        return min(self.most_seconds, own) if self.is_capped_by_pod and own is not None else self.most_seconds


def hard_pod_grace(profile: Profile = LATEST) -> PodGrace:
    """Return the rule under a hard threshold or an exceeded local storage limit."""
    if profile.hard_eviction_grace == "one-second":
        return PodGrace(_IMMEDIATE_SECONDS)
    return PodGrace() if profile.hard_eviction_grace == "pod" else PodGrace(0)


def soft_pod_grace(max_pod_grace_seconds: int, profile: Profile = LATEST) -> PodGrace:
    """Return the rule under a soft threshold: the configured maximum, since 1.32 at most the pod's own."""
    if max_pod_grace_seconds == 0 and profile.hard_eviction_grace == "pod" and not profile.soft_grace_capped_by_pod:
        return PodGrace()
    return PodGrace(max_pod_grace_seconds, profile.soft_grace_capped_by_pod)


def hard_grace_seconds(pod: Pod, profile: Profile = LATEST) -> int:
    """Return the grace period of a pod under a hard threshold or an exceeded local storage limit."""
    return hard_pod_grace(profile).seconds(pod)


def soft_grace_seconds(pod: Pod, max_pod_grace_seconds: int, profile: Profile = LATEST) -> int:
    """Return the grace period of a pod under a soft threshold."""
    return soft_pod_grace(max_pod_grace_seconds, profile).seconds(pod)
