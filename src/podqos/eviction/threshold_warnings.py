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
from podqos.eviction.thresholds import Threshold, parse_thresholds
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
    SWAP_HIDES_PRESSURE = "SwapHidesPressure"
    """Pods may use the node's swap: memory.available does not fall while they do."""


class ThresholdWarning(Struct, frozen=True, gc=False):
    """One thing that looks wrong, with its numbers where there are any."""

    kind: WarningKind
    signal: Signal
    hard: Quantity | None = None
    soft: Quantity | None = None
    assumed_capacity: Quantity | None = None
    """Of the filesystem, where that is not known and decides between a share and an amount."""


def threshold_warnings(
    settings: KubeletConfiguration,
    capacities: Mapping[Signal, int] | None = None,
    profile: Profile = LATEST,
    *,
    swap_bytes: int | None = None,
) -> tuple[ThresholdWarning, ...]:
    """Return what looks wrong, by kind, then in the order of the settings.

    A share and an amount are compared by the capacity of their signal; a filesystem whose size is not known is taken to
    have 100Gi, and of inodes and processes nothing is assumed. ``swap_bytes`` is the node's swap, where that is known.
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
        of_soft, of_hard = (each.amount(10**9 if capacity is None else capacity) for each in (soft, other))
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


def _swap(settings: KubeletConfiguration, swap_bytes: int | None, profile: Profile) -> Iterator[ThresholdWarning]:
    if swap_bytes != 0 and settings.lets_pods_swap(profile):
        yield ThresholdWarning(WarningKind.SWAP_HIDES_PRESSURE, Signal.MEMORY)
