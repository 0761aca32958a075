"""Terse pods, statistics and observations for the rows of tables."""

from __future__ import annotations

from admission.pods import container
from podqos.eviction.manager import ManagerConfig, ManagerState, Pass, configure, synchronize
from podqos.eviction.signals import Layout, Observation, Signal, SignalObservation
from podqos.eviction.thresholds import Threshold, ThresholdValue
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import Container, ObjectMeta, Pod, PodSpec, Volume
from podqos.model.quantity import Quantity
from podqos.model.stats import (
    ContainerStats,
    FsStats,
    MemoryStats,
    PodReference,
    PodStats,
    ProcessStats,
    VolumeStats,
)
from podqos.model.time_units import SECOND_US

MI = 1024 * 1024


def pod(name: str, requests: str = "", limits: str = "", **spec: object) -> Pod:
    """Make a pod of one container called ``main``."""
    return pod_of(name, container("main", requests=requests, limits=limits), **spec)


def pod_of(name: str, *containers: Container, annotations: dict[str, str] | None = None, **spec: object) -> Pod:
    """Make a pod of containers; its uid is its name."""
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=name, annotations=annotations or {}),
        spec=PodSpec(containers=containers, **spec),
    )


def guaranteed(name: str, memory: str = "64Mi", **spec: object) -> Pod:
    """Make a Guaranteed pod."""
    return pod(name, f"cpu=1,memory={memory}", f"cpu=1,memory={memory}", **spec)


def using(
    pod: Pod,
    memory_mi: int | None = None,
    *,
    rootfs: int | None = None,
    logs: int | None = None,
    volumes: dict[str, int] | None = None,
    processes: int | None = None,
    ephemeral: int | None = None,
) -> PodStats:
    """Make a pod's statistics; what its containers use is put on the first. Disk figures are bytes and inodes alike."""
    memory = None if memory_mi is None else MemoryStats(working_set_bytes=memory_mi * MI)
    return PodStats(
        pod_ref=PodReference(pod.metadata.name, pod.metadata.namespace, pod.metadata.uid),
        containers=(ContainerStats(pod.spec.containers[0].name, memory, _fs(rootfs), _fs(logs)),),
        memory=memory,
        volumes=tuple(VolumeStats(name, used, used) for name, used in (volumes or {}).items()),
        ephemeral_storage=_fs(ephemeral),
        process_stats=None if processes is None else ProcessStats(processes),
    )


def by_uid(*stats: PodStats) -> dict[str, PodStats]:
    """Key statistics as the manager looks them up."""
    return {entry.pod_ref.uid: entry for entry in stats}


def observed(signals: dict[Signal, tuple[int, int]], *stats: PodStats, time_us: int | None = None) -> Observation:
    """Make an observation from (available, capacity) per signal."""
    seen = {signal: SignalObservation(*figures, time_us) for signal, figures in signals.items()}
    return Observation(seen, by_uid(*stats))


def memory_left(available_mi: int, *stats: PodStats, time_us: int | None = None) -> Observation:
    """Make an observation of a node with 1000 Mi of memory."""
    return observed({Signal.MEMORY: (available_mi * MI, 1000 * MI)}, *stats, time_us=time_us)


def threshold(signal: Signal, amount: str, grace_seconds: float = 0, min_reclaim: str | None = None) -> Threshold:
    """Make a threshold with an amount."""
    return Threshold(
        signal,
        ThresholdValue(Quantity.parse(amount)),
        int(grace_seconds * 10**9),
        None if min_reclaim is None else ThresholdValue(Quantity.parse(min_reclaim)),
    )


def manager(layout: Layout = Layout.SINGLE, **settings: object) -> ManagerConfig:
    """Set a manager up; nothing is enforced on allocatable unless said."""
    return configure(KubeletConfiguration(**{"enforce_node_allocatable": (), **settings}), layout=layout)


def run(
    config: ManagerConfig, at_seconds: float, seen: Observation, *pods: Pod, state: ManagerState | None = None
) -> Pass:
    """Run the first phase of a pass."""
    return synchronize(config, state or ManagerState(), now_us=int(at_seconds * SECOND_US), observation=seen, pods=pods)


def volume(name: str, **sources: object) -> Volume:
    """Make a volume."""
    return Volume(name=name, **sources)


def _fs(used: int | None) -> FsStats | None:
    return None if used is None else FsStats(used_bytes=used, inodes_used=used)
