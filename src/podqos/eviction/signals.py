"""The eviction signals as one table: signal → resource → node condition → ranking keys → disk measured → clean-up.

Everything that differs between signals is in ``SIGNALS`` and nowhere else; documentation is generated from it. The
order of the table is meaningful: where several thresholds are met at once, the kubelet takes memory first and leaves
the rest to chance; podqos goes by the order of the rows (see ``manager``).

Source: Kubernetes v1.36 pkg/kubelet/eviction/helpers.go (init, buildSignalToRankFunc, buildSignalToNodeReclaimFuncs).

An observation is what a kubelet summary says of each signal. ``memory.available`` counts the working set, which holds
active file pages that the kernel could reclaim. That is how the kubelet sees a node, and why it may evict where the
kernel would not kill (pkg/kubelet/eviction/helpers.go: makeSignalObservations).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import msgspec
from msgspec import Struct

from podqos.errors import InputError
from podqos.model.quantity import Format, Quantity
from podqos.model.resources import EPHEMERAL_STORAGE, MEMORY
from podqos.model.stats import SYSTEM_CONTAINER_PODS, FsStats, MemoryStats, PodStats, RlimitStats, Summary

INODES = "inodes"
PIDS = "pids"


class Signal(StrEnum):
    """What the kubelet watches."""

    MEMORY = "memory.available"
    ALLOCATABLE_MEMORY = "allocatableMemory.available"
    NODEFS = "nodefs.available"
    NODEFS_INODES = "nodefs.inodesFree"
    IMAGEFS = "imagefs.available"
    IMAGEFS_INODES = "imagefs.inodesFree"
    CONTAINERFS = "containerfs.available"
    CONTAINERFS_INODES = "containerfs.inodesFree"
    PID = "pid.available"


class NodeCondition(StrEnum):
    """What the node reports while it is short of something."""

    MEMORY_PRESSURE = "MemoryPressure"
    DISK_PRESSURE = "DiskPressure"
    PID_PRESSURE = "PIDPressure"


class Layout(StrEnum):
    """Which filesystems are apart."""

    SINGLE = "single"
    """Images, containers and the kubelet's files share one filesystem."""
    DEDICATED = "dedicated"
    """Images and containers have a filesystem of their own (imagefs)."""
    SPLIT = "split"
    """Images have a filesystem of their own; containers share the kubelet's (nodefs)."""
    CONTAINERS_APART = "containers-apart"
    """Images share the kubelet's filesystem, containers have their own. The kubelet knows no such layout: it treats it
    as a single filesystem and derives no containerfs thresholds."""


class DiskUse(StrEnum):
    """A part of what a pod keeps on the node's disks."""

    ROOTFS = "rootfs"
    LOGS = "logs"
    LOCAL_VOLUMES = "local volumes"


class CleanUp(StrEnum):
    """What the node can delete before it evicts a pod."""

    CONTAINERS = "dead containers"
    IMAGES = "unused images"


class RankKey(StrEnum):
    """A criterion of the order of eviction; each puts the pod to evict first in front."""

    NO_STATISTICS = "no statistics"
    OVER_REQUEST = "usage over request"
    PRIORITY = "lower priority"
    EXCESS = "larger usage - request"
    USAGE = "larger usage"
    QOS_CLASS = "lower QoS class"
    TIER = "lower tier"
    TIER_USAGE = "larger usage within the tier"
    NAME = "namespace and name"
    INPUT_ORDER = "order of the input"


class SignalRow(Struct, frozen=True, gc=False):
    """Everything that hangs on one signal."""

    signal: Signal
    resource: str
    condition: NodeCondition
    ranking: tuple[RankKey, ...]
    """The kubelet's criteria, first to last."""
    disk_use: Mapping[Layout, tuple[DiskUse, ...]]
    """What counts as a pod's usage."""
    clean_up: Mapping[Layout, tuple[CleanUp, ...]]
    """What is thrown away first, in this order."""

    @property
    def is_memory(self) -> bool:
        """Whether the signal goes before all others."""
        return self.resource == MEMORY


def layout_of(*, dedicated_image_fs: bool, split_container_fs: bool) -> Layout:
    """Return the layout by the kubelet's two questions.

    They are: are the images apart from the kubelet's files, and the containers apart from the images?
    """
    if split_container_fs:
        return Layout.SPLIT if dedicated_image_fs else Layout.CONTAINERS_APART
    return Layout.DEDICATED if dedicated_image_fs else Layout.SINGLE


def containerfs_follows(layout: Layout) -> tuple[Signal, Signal] | None:
    """Return the signals (bytes, inodes) whose thresholds containerfs takes over; None where it takes none."""
    if layout is Layout.CONTAINERS_APART:
        return None
    if layout is Layout.DEDICATED:
        return Signal.IMAGEFS, Signal.IMAGEFS_INODES
    return Signal.NODEFS, Signal.NODEFS_INODES


_USAGE_RANKING = (RankKey.NO_STATISTICS, RankKey.OVER_REQUEST, RankKey.PRIORITY, RankKey.EXCESS)
_PID_RANKING = (RankKey.PRIORITY, RankKey.NO_STATISTICS, RankKey.USAGE)

_ALL_USE = (DiskUse.ROOTFS, DiskUse.LOGS, DiskUse.LOCAL_VOLUMES)
_KUBELET_USE = (DiskUse.LOGS, DiskUse.LOCAL_VOLUMES)
_ALL_CLEAN_UP = (CleanUp.CONTAINERS, CleanUp.IMAGES)


def _disk_use(dedicated: tuple[DiskUse, ...], split: tuple[DiskUse, ...]) -> Mapping[Layout, tuple[DiskUse, ...]]:
    return {
        Layout.SINGLE: _ALL_USE,
        Layout.DEDICATED: dedicated,
        Layout.SPLIT: split,
        Layout.CONTAINERS_APART: _ALL_USE,
    }


def _clean_up(dedicated: tuple[CleanUp, ...], split: tuple[CleanUp, ...]) -> Mapping[Layout, tuple[CleanUp, ...]]:
    return {
        Layout.SINGLE: _ALL_CLEAN_UP,
        Layout.DEDICATED: dedicated,
        Layout.SPLIT: split,
        Layout.CONTAINERS_APART: _ALL_CLEAN_UP,
    }


_NODEFS_USE = _disk_use(dedicated=_KUBELET_USE, split=_ALL_USE)
# On a split layout nothing of a pod is on imagefs: usage is zero there and priority decides.
_IMAGEFS_USE = _disk_use(dedicated=(DiskUse.ROOTFS,), split=())
_CONTAINERFS_USE = _disk_use(dedicated=(DiskUse.ROOTFS,), split=_ALL_USE)
_NO_USE = dict.fromkeys(Layout, ())

_NODEFS_CLEAN_UP = _clean_up(dedicated=(), split=(CleanUp.CONTAINERS,))
_IMAGEFS_CLEAN_UP = _clean_up(dedicated=_ALL_CLEAN_UP, split=(CleanUp.IMAGES,))
_CONTAINERFS_CLEAN_UP = _clean_up(dedicated=_ALL_CLEAN_UP, split=(CleanUp.CONTAINERS,))
_NO_CLEAN_UP = dict.fromkeys(Layout, ())

_MEMORY, _DISK, _PID = NodeCondition.MEMORY_PRESSURE, NodeCondition.DISK_PRESSURE, NodeCondition.PID_PRESSURE

_ROWS = (
    SignalRow(Signal.MEMORY, MEMORY, _MEMORY, _USAGE_RANKING, _NO_USE, _NO_CLEAN_UP),
    SignalRow(Signal.ALLOCATABLE_MEMORY, MEMORY, _MEMORY, _USAGE_RANKING, _NO_USE, _NO_CLEAN_UP),
    SignalRow(Signal.NODEFS, EPHEMERAL_STORAGE, _DISK, _USAGE_RANKING, _NODEFS_USE, _NODEFS_CLEAN_UP),
    SignalRow(Signal.NODEFS_INODES, INODES, _DISK, _USAGE_RANKING, _NODEFS_USE, _NODEFS_CLEAN_UP),
    SignalRow(Signal.IMAGEFS, EPHEMERAL_STORAGE, _DISK, _USAGE_RANKING, _IMAGEFS_USE, _IMAGEFS_CLEAN_UP),
    SignalRow(Signal.IMAGEFS_INODES, INODES, _DISK, _USAGE_RANKING, _IMAGEFS_USE, _IMAGEFS_CLEAN_UP),
    SignalRow(Signal.CONTAINERFS, EPHEMERAL_STORAGE, _DISK, _USAGE_RANKING, _CONTAINERFS_USE, _CONTAINERFS_CLEAN_UP),
    SignalRow(Signal.CONTAINERFS_INODES, INODES, _DISK, _USAGE_RANKING, _CONTAINERFS_USE, _CONTAINERFS_CLEAN_UP),
    SignalRow(Signal.PID, PIDS, _PID, _PID_RANKING, _NO_USE, _NO_CLEAN_UP),
)

SIGNALS: Mapping[Signal, SignalRow] = {row.signal: row for row in _ROWS}


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ZERO_YEAR = 1  # of Go's zero time, which means "no time"


class SignalObservation(Struct, frozen=True, gc=False):
    """How much of a signal there is and is left, in bytes, inodes or process ids."""

    available: int
    capacity: int
    time_us: int | None = None
    """When the sample was taken; None where the kubelet does not say."""


class Observation(Struct, frozen=True, gc=False):
    """One look at the node."""

    signals: Mapping[Signal, SignalObservation]
    pods: Mapping[str, PodStats]
    """By uid. A pod that has just started may be missing."""


_decoder = msgspec.json.Decoder(Summary)


def decode_summary(data: bytes) -> Summary:
    """Read the answer of the kubelet's ``/stats/summary``."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not a kubelet summary: {error}", fix="give the answer of /stats/summary") from error


def observe(summary: Summary) -> Observation:
    """Return what the eviction manager sees. A signal whose figures are incomplete is not observed."""
    node = summary.node
    signals: dict[Signal, SignalObservation] = {}
    _add_memory(signals, Signal.MEMORY, node.memory)
    for container in node.system_containers:
        if container.name == SYSTEM_CONTAINER_PODS:
            _add_memory(signals, Signal.ALLOCATABLE_MEMORY, container.memory)
            break
    _add_filesystem(signals, Signal.NODEFS, Signal.NODEFS_INODES, node.fs)
    if node.runtime is not None:
        _add_filesystem(signals, Signal.IMAGEFS, Signal.IMAGEFS_INODES, node.runtime.image_fs)
        _add_filesystem(signals, Signal.CONTAINERFS, Signal.CONTAINERFS_INODES, node.runtime.container_fs)
    _add_processes(signals, node.rlimit)
    return Observation(signals, {pod.pod_ref.uid: pod for pod in summary.pods or ()})


def available_quantity(signal: Signal, observation: SignalObservation) -> Quantity:
    """Return what is left as the kubelet prints it."""
    counted = SIGNALS[signal].resource in {INODES, PIDS}
    notation: Format = "DecimalSI" if counted else "BinarySI"
    return Quantity.of_units(observation.available, notation)


def _add_memory(signals: dict[Signal, SignalObservation], signal: Signal, memory: MemoryStats | None) -> None:
    if memory is None or memory.available_bytes is None or memory.working_set_bytes is None:
        return
    capacity = memory.available_bytes + memory.working_set_bytes
    signals[signal] = SignalObservation(memory.available_bytes, capacity, _microseconds(memory.time))


def _add_filesystem(
    signals: dict[Signal, SignalObservation], available: Signal, inodes: Signal, fs: FsStats | None
) -> None:
    if fs is None:
        return
    if fs.available_bytes is not None and fs.capacity_bytes is not None:
        signals[available] = SignalObservation(fs.available_bytes, fs.capacity_bytes, _microseconds(fs.time))
    if fs.inodes_free is not None and fs.inodes is not None:
        signals[inodes] = SignalObservation(fs.inodes_free, fs.inodes, _microseconds(fs.time))


def _add_processes(signals: dict[Signal, SignalObservation], rlimit: RlimitStats | None) -> None:
    if rlimit is None or rlimit.maxpid is None or rlimit.curproc is None:
        return
    signals[Signal.PID] = SignalObservation(rlimit.maxpid - rlimit.curproc, rlimit.maxpid, _microseconds(rlimit.time))


def _microseconds(time: datetime | None) -> int | None:
    if time is None or time.year == _ZERO_YEAR:
        return None
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND
