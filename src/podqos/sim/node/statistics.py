"""What the kubelet of a simulated node sees: its ``/stats/summary``."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from podqos.model.stats import (
    SYSTEM_CONTAINER_PODS,
    ContainerStats,
    FsStats,
    MemoryStats,
    NodeStats,
    PodReference,
    PodStats,
    ProcessStats,
    RlimitStats,
    RuntimeStats,
    Summary,
    SwapStats,
    VolumeStats,
)
from podqos.sim.node.disks import BYTES, INODES
from podqos.sim.node.pods import SimContainer, SimPod
from podqos.sim.node.resources import NodeResources

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EMPTY = FsStats(used_bytes=0, inodes_used=0)


def summary(world: NodeResources, time_us: int) -> Summary:
    """Take the figures of node and pods."""
    time = _EPOCH + timedelta(microseconds=time_us)
    pods = tuple(pod_stats(pod, time_us, time) for pod in world.pods.values() if not pod.is_gone)
    return Summary(_node(world, time_us, time), pods)


def working_set_bytes(world: NodeResources, time_us: int) -> int:
    """Return the working set of the whole node."""
    memory = world.memory
    pods = sum(container.working_set_bytes(time_us) for container in memory.running.values())
    kept = sum(pod.kept_bytes(time_us) for pod in memory.keeping.values())
    return memory.system_working_set_bytes(time_us) + pods + kept


def _node(world: NodeResources, time_us: int, time: datetime) -> NodeStats:
    memory, disks = world.memory, world.disks
    total_bytes = memory.machine.total_bytes
    used = working_set_bytes(world, time_us)
    pods = used - memory.system_working_set_bytes(time_us)
    limit = world.pods_limit_bytes
    rest = () if limit is None else (_memory(limit, pods, pods, pods, time),)
    swap = memory.machine.swap_bytes
    return NodeStats(
        node_name=world.name,
        system_containers=tuple(ContainerStats(SYSTEM_CONTAINER_PODS, stats) for stats in rest),
        memory=_memory(total_bytes, used, memory.usage.at(time_us), memory.anon_bytes(time_us), time),
        fs=disks.stats(disks.nodefs, time_us, time),
        runtime=RuntimeStats(
            image_fs=disks.stats(disks.imagefs, time_us, time),
            container_fs=disks.stats(disks.containerfs, time_us, time),
        ),
        rlimit=RlimitStats(time, world.pids.limit, world.pids.used(time_us)),
        swap=SwapStats(swap - memory.swap_used_bytes(), memory.swap_used_bytes()) if swap else None,
    )


def _memory(capacity: int, working_set: int, usage: int, anon: int, time: datetime) -> MemoryStats:
    return MemoryStats(
        time=time,
        available_bytes=max(0, capacity - working_set),
        usage_bytes=usage,
        working_set_bytes=working_set,
        rss_bytes=anon,
    )


def pod_stats(pod: SimPod, time_us: int, time: datetime | None = None) -> PodStats:
    """Return the figures of a pod."""
    metadata = pod.pod.metadata
    usage_bytes = working_set_bytes = pod.kept_bytes(time_us)
    anon_bytes = pids = 0
    containers = []
    for container in pod.running:
        usage, working_set = container.usage_bytes(time_us), container.working_set_bytes(time_us)
        anon = container.anon_bytes(time_us)
        usage_bytes += usage
        working_set_bytes += working_set
        anon_bytes += anon
        pids += 0 if container.pids is None else container.pids.at(time_us)
        memory = MemoryStats(usage_bytes=usage, working_set_bytes=working_set, rss_bytes=anon)
        rootfs, logs = _used(container, "rootfs", time_us), _used(container, "logs", time_us)
        containers.append(ContainerStats(container.name, memory, rootfs, logs))
    volumes, ephemeral = _disk(pod, time_us)
    return PodStats(
        pod_ref=PodReference(metadata.name, metadata.namespace, metadata.uid),
        containers=tuple(containers),
        memory=MemoryStats(
            time=time, usage_bytes=usage_bytes, working_set_bytes=working_set_bytes, rss_bytes=anon_bytes
        ),
        volumes=volumes,
        ephemeral_storage=ephemeral,
        process_stats=ProcessStats(pids),
    )


def _disk(pod: SimPod, time_us: int) -> tuple[tuple[VolumeStats, ...], FsStats]:
    """Return what is in its volumes, and all that counts as ephemeral storage."""
    if not pod.tmpfs and not any(container.disk for container in pod.containers.values()):
        return (), _EMPTY
    volumes = tuple(_volumes(pod, time_us))
    return volumes, _ephemeral(pod, volumes, time_us)


def _used(container: SimContainer, what: str, time_us: int) -> FsStats:
    if not container.disk:
        return _EMPTY
    return FsStats(
        used_bytes=_amount(container, what, BYTES, time_us), inodes_used=_amount(container, what, INODES, time_us)
    )


def _amount(container: SimContainer, what: str, unit: str, time_us: int) -> int:
    want = container.disk.get((what, unit))
    return 0 if want is None else want.at(time_us)


def _volumes(pod: SimPod, time_us: int) -> Iterable[VolumeStats]:
    used = {name: [supply.used(time_us), 0] for name, supply in pod.tmpfs.items()}
    for container in pod.containers.values():
        for (what, unit), want in container.disk.items():
            kind, _, name = what.partition("/")
            if kind == "volume":
                used.setdefault(name, [0, 0])[unit == INODES] += want.at(time_us)
    return (VolumeStats(name, size, inodes) for name, (size, inodes) in sorted(used.items()))


def _ephemeral(pod: SimPod, volumes: tuple[VolumeStats, ...], time_us: int) -> FsStats:
    local = {volume.name for volume in pod.pod.spec.volumes if volume.is_local}
    used = sum(volume.used_bytes or 0 for volume in volumes if volume.name in local)
    inodes = sum(volume.inodes_used or 0 for volume in volumes if volume.name in local)
    for container in pod.containers.values():
        for what in ("rootfs", "logs"):
            used += _amount(container, what, BYTES, time_us)
            inodes += _amount(container, what, INODES, time_us)
    return FsStats(used_bytes=used, inodes_used=inodes)
