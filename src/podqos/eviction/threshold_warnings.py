"""What looks wrong about eviction settings with which a kubelet does start.

Errors, with which it does not, are raised by ``thresholds``. Whether the reservations cover the thresholds is a
question of allocatable, in ``placement``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

from podqos.eviction.signals import Signal
from podqos.eviction.thresholds import Threshold, effective_eviction_hard, parse_thresholds
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity

ASSUMED_FILESYSTEM = Quantity.parse("100Gi")
"""The size of a filesystem that nothing is known about."""


class WarningKind(StrEnum):
    """What is suspicious."""

    SOFT_AFTER_HARD = "SoftAfterHard"
    """A soft threshold that is not reached before the hard one of its signal: it never gets its turn."""
    SOFT_WITHOUT_GRACE = "SoftWithoutGrace"
    """A soft threshold with a grace period of zero: it is a hard one."""
    UNUSED_GRACE_PERIOD = "UnusedGracePeriod"
    """A grace period without a soft threshold."""
    CONTAINERFS_IGNORED = "ContainerfsIgnored"
    """A threshold of containerfs: the kubelet overwrites it with that of nodefs or imagefs."""
    NEVER_MET = "NeverMet"
    """A share of zero, or not a number: nothing is ever less."""
    MEMORY_UNWATCHED = "MemoryUnwatched"
    """No hard threshold for memory: naming any other drops the default."""
    DISK_UNWATCHED = "DiskUnwatched"
    """No threshold for free space on a disk: naming any other drops the defaults."""
    ABOVE_CAPACITY = "AboveCapacity"
    """More free inodes or process ids than the node has: the threshold is met from the start, and stays met."""
    SWAP_HIDES_PRESSURE = "SwapHidesPressure"
    """Pods may use the node's swap: memory.available does not fall while they do."""


class Most(Struct, frozen=True, gc=False):
    """The largest number of inodes or process ids that there can be."""

    count: int
    filesystem: Quantity | None = None
    """The size of the filesystem that has so many inodes; None where they were counted, and for process ids."""
    is_ext4: bool = False
    """Whether only ext4 has so few."""


class ThresholdWarning(Struct, frozen=True, gc=False):
    """One thing that looks wrong, with its numbers where there are any."""

    kind: WarningKind
    signal: Signal
    hard: Quantity | None = None
    soft: Quantity | None = None
    assumed_capacity: Quantity | None = None
    """Of the filesystem, where that is not known and decides."""
    most: Most | None = None
    """How many inodes or process ids there are, where that is too few."""

    @property
    def demanded(self) -> int:
        """How much is to be left, where only one of the two thresholds is wrong."""
        amount = self.hard or self.soft
        return 0 if amount is None else amount.value


def threshold_warnings(
    settings: KubeletConfiguration,
    capacities: Mapping[Signal, int] | None = None,
    profile: Profile = LATEST,
    *,
    swap_bytes: int | None = None,
) -> tuple[ThresholdWarning, ...]:
    """Return what looks wrong, by kind, then in the order of the settings.

    A share and an amount are compared by the capacity of their signal; a filesystem whose size is not known is taken to
    have 100Gi. Of inodes and process ids, where they are not known, a node is assumed to have the most that such a
    filesystem, or such a memory, can have. ``swap_bytes`` is the node's swap, where that is known.
    """
    thresholds = [
        threshold
        for threshold in parse_thresholds(settings, profile)
        if threshold.signal is not Signal.ALLOCATABLE_MEMORY
    ]
    return (
        *_soft_after_hard(thresholds, capacities or {}),
        *_about_grace_periods(settings, thresholds),
        *_without_effect(thresholds),
        *_memory_unwatched(thresholds),
        *_disk_unwatched(settings, profile),
        *_above_capacity(thresholds, capacities or {}),
        *_swap(settings, swap_bytes, profile),
    )


def _soft_after_hard(thresholds: list[Threshold], capacities: Mapping[Signal, int]) -> Iterator[ThresholdWarning]:
    hard = {threshold.signal: threshold for threshold in thresholds if threshold.is_hard}
    for soft in thresholds:
        other = hard.get(soft.signal)
        if soft.is_hard or other is None:
            continue
        capacity, assumed = capacities.get(soft.signal), None
        if capacity is None and (soft.value.quantity is None) != (other.value.quantity is None):
            if soft.signal not in {Signal.NODEFS, Signal.IMAGEFS}:
                continue
            capacity, assumed = ASSUMED_FILESYSTEM.value, ASSUMED_FILESYSTEM
        # Two shares, or two amounts, compare the same at any capacity.
        of_soft, of_hard = (threshold.amount(10**9 if capacity is None else capacity) for threshold in (soft, other))
        if of_soft <= of_hard:
            yield ThresholdWarning(WarningKind.SOFT_AFTER_HARD, soft.signal, of_hard, of_soft, assumed)


def _about_grace_periods(settings: KubeletConfiguration, thresholds: list[Threshold]) -> Iterator[ThresholdWarning]:
    soft = settings.eviction_soft
    lasting = {threshold.signal for threshold in thresholds if not threshold.is_hard}
    for name in settings.eviction_soft_grace_period:
        if name not in soft:
            yield ThresholdWarning(WarningKind.UNUSED_GRACE_PERIOD, Signal(name))
        elif Signal(name) not in lasting and soft[name] not in {"0%", "100%"}:
            yield ThresholdWarning(WarningKind.SOFT_WITHOUT_GRACE, Signal(name))


def _without_effect(thresholds: list[Threshold]) -> Iterator[ThresholdWarning]:
    for threshold in thresholds:
        value = threshold.value
        if threshold.signal in {Signal.CONTAINERFS, Signal.CONTAINERFS_INODES}:
            yield ThresholdWarning(WarningKind.CONTAINERFS_IGNORED, threshold.signal)
        elif value.quantity is None and (value.fraction == 0 or math.isnan(value.fraction)):
            yield ThresholdWarning(WarningKind.NEVER_MET, threshold.signal)


def _memory_unwatched(thresholds: list[Threshold]) -> Iterator[ThresholdWarning]:
    if not any(threshold.signal is Signal.MEMORY and threshold.is_hard for threshold in thresholds):
        yield ThresholdWarning(WarningKind.MEMORY_UNWATCHED, Signal.MEMORY)


def _disk_unwatched(settings: KubeletConfiguration, profile: Profile) -> Iterator[ThresholdWarning]:
    """Find disks that nothing watches. With 0% or 100% somebody says that it is meant, as with no threshold at all."""
    named = {*effective_eviction_hard(settings, profile), *settings.eviction_soft}
    if settings.eviction_hard and not named & {Signal.NODEFS, Signal.IMAGEFS}:
        yield ThresholdWarning(WarningKind.DISK_UNWATCHED, Signal.NODEFS)


_INODES_OF = {Signal.NODEFS_INODES: Signal.NODEFS, Signal.IMAGEFS_INODES: Signal.IMAGEFS}
_MOST_PIDS = 1 << 22  # PID_MAX_LIMIT of a 64-bit kernel
_BYTES_PER_THREAD = 8 * (16 << 10)  # the kernel allows one thread for each eight stacks that fit into memory
_EXT4_BYTES_PER_INODE = 16 << 10
_XFS_INODE_BYTES = 512
# Which percentage of its space XFS gives to inodes at most, up to a size.
_XFS_PERCENT = ((10**12, 25), (50 * 10**12, 5))
_XFS_LEAST_PERCENT = 1
_BYTE_UNITS = ("Ki", "Mi", "Gi", "Ti")


def _above_capacity(thresholds: list[Threshold], capacities: Mapping[Signal, int]) -> Iterator[ThresholdWarning]:
    """Find amounts of inodes and process ids that no node has; shares are of what there is."""
    for threshold in thresholds:
        amount, signal = threshold.value.quantity, threshold.signal
        if amount is None or signal not in {*_INODES_OF, Signal.PID}:
            continue
        most = _most_pids(capacities) if signal is Signal.PID else _most_inodes(signal, amount, capacities)
        if amount.value > most.count:
            is_assumed = most.filesystem is not None and _INODES_OF[signal] not in capacities
            soft, hard = (None, amount) if threshold.is_hard else (amount, None)
            assumed = ASSUMED_FILESYSTEM if is_assumed else None
            yield ThresholdWarning(WarningKind.ABOVE_CAPACITY, signal, hard, soft, assumed, most)


def _most_pids(capacities: Mapping[Signal, int]) -> Most:
    """Return how many process ids a kernel has: as counted, or as its memory allows.

    Source: Linux kernel/fork.c (set_max_threads), include/linux/threads.h.
    """
    if Signal.PID in capacities:
        return Most(capacities[Signal.PID])
    memory_bytes = capacities.get(Signal.MEMORY)
    return Most(_MOST_PIDS if memory_bytes is None else min(_MOST_PIDS, memory_bytes // _BYTES_PER_THREAD))


def _most_inodes(signal: Signal, amount: Quantity, capacities: Mapping[Signal, int]) -> Most:
    """Return how many inodes a filesystem has: as counted, or as mke2fs and mkfs.xfs make it unless told otherwise.

    XFS has more. Nobody counts inodes in mebibytes, though: an amount in bytes that ext4 does not have is a mistake.
    """
    if signal in capacities:
        return Most(capacities[signal])
    size = capacities.get(_INODES_OF[signal], capacities.get(Signal.NODEFS, ASSUMED_FILESYSTEM.value))
    filesystem = Quantity.of_units(size, "BinarySI")
    ext4 = size // _EXT4_BYTES_PER_INODE
    percent = next((percent for end, percent in _XFS_PERCENT if size < end), _XFS_LEAST_PERCENT)
    most = max(ext4, size * percent // 100 // _XFS_INODE_BYTES)
    if amount.value <= most and str(amount.written or amount).endswith(_BYTE_UNITS):
        return Most(ext4, filesystem, is_ext4=True)
    return Most(most, filesystem)


def _swap(settings: KubeletConfiguration, swap_bytes: int | None, profile: Profile) -> Iterator[ThresholdWarning]:
    if swap_bytes != 0 and settings.lets_pods_swap(profile):
        yield ThresholdWarning(WarningKind.SWAP_HIDES_PRESSURE, Signal.MEMORY)
