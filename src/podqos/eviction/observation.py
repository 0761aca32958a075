"""What is left of each resource, from a kubelet summary: one observation per signal, and the pods' own figures.

``memory.available`` counts the working set, which holds active file pages that the kernel could reclaim. That is how
the kubelet sees a node, and why it may evict where the kernel would not kill.

Source: Kubernetes v1.36 pkg/kubelet/eviction/helpers.go (makeSignalObservations), helpers_others.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Struct

from podqos.errors import InputError
from podqos.eviction.signals import INODES, PIDS, SIGNALS, Signal
from podqos.model.quantity import Format, Quantity
from podqos.model.stats import SYSTEM_CONTAINER_PODS, FsStats, MemoryStats, PodStats, RlimitStats, Summary

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
