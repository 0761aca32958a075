"""Pods that exceed their own limits on local storage, which are evicted whatever the state of the node.

Per pod the first of these counts: an emptyDir above its size limit (on any medium; zero is no limit), all ephemeral
storage above the pod's effective limit (zero *is* a limit), a container's logs and writable layer above its own limit
(zero is none; the layer counts only where it shares the filesystem with the logs; sidecars since 1.37).

Source: Kubernetes v1.36 pkg/kubelet/eviction/eviction_manager.go (localStorageEviction and what it calls).
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from podqos.eviction.signals import Layout
from podqos.eviction.usage import disk_bytes
from podqos.model.effective import pod_limits
from podqos.model.pod import Pod
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import NANOS, Quantity
from podqos.model.resources import EPHEMERAL_STORAGE
from podqos.model.stats import PodStats


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
