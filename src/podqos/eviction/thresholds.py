"""Eviction thresholds: when the kubelet acts, by its settings.

The numbers follow upstream's to the bit: a percentage is read as a 32-bit float, divided by 100 in 32 bits, multiplied
with the capacity in 64 bits and truncated. Whether a threshold is met at a moment is in ``manager``.

Settings with which no kubelet starts, such as a soft threshold without a grace period, are refused with their position
in the file; what is suspicious about others is a ``Warning``. Whether they fit a node is a question of allocatable
(``placement``).

Sources: Kubernetes v1.36 pkg/kubelet/eviction/helpers.go (ParseThresholdConfig, UpdateContainerFsThresholds),
pkg/kubelet/eviction/api/types.go (GetThresholdQuantity), pkg/kubelet/eviction/defaults_linux.go.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InvalidConfiguration, InvalidQuantity
from podqos.eviction.signals import Layout, Signal, containerfs_follows
from podqos.manifest.kubelet import KubeletSettings, located, settings_in
from podqos.model.go_text import divide_float32, parse_duration_ns, parse_float32
from podqos.model.kubelet_config import KubeletConfiguration, duration_fix
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU

# What a Go conversion to int64 gives on amd64 for what does not fit.
_INT64_INDEFINITE = -(2**63)
_INT64_END = 2.0**63


class ThresholdValue(Struct, frozen=True, gc=False):
    """An amount, or a share of the capacity."""

    quantity: Quantity | None = None
    fraction: float = 0.0
    """The share, 0.1 for 10 %, as a 32-bit float; counts only where there is no quantity. May be not-a-number."""

    def at(self, capacity: int) -> Quantity:
        """Return the amount at a capacity."""
        if self.quantity is not None:
            return self.quantity
        product = float(capacity) * self.fraction
        fits = math.isfinite(product) and -_INT64_END <= product < _INT64_END
        return Quantity.of_units(int(product) if fits else _INT64_INDEFINITE, "BinarySI")


class Threshold(Struct, frozen=True, gc=False):
    """The kubelet acts when less than ``value`` of a signal is left for longer than the grace period."""

    signal: Signal
    value: ThresholdValue
    grace_period_ns: int = 0
    min_reclaim: ThresholdValue | None = None
    """How much more must be free before the threshold clears."""

    @property
    def is_hard(self) -> bool:
        """Whether it acts at once. A soft threshold with a grace period of zero is a hard one."""
        return self.grace_period_ns == 0

    def amount(self, capacity: int, *, with_min_reclaim: bool = False) -> Quantity:
        """Return what must be left at a capacity for the threshold not to be met (or to clear)."""
        amount = self.value.at(capacity)
        if with_min_reclaim and self.min_reclaim is not None:
            return amount + self.min_reclaim.at(capacity)
        return amount


class ContainerFsThresholds(Struct, frozen=True, gc=False):
    """Thresholds once those of containerfs are derived from nodefs or imagefs."""

    in_place: tuple[Threshold, ...]
    """The configured ones; those of containerfs replaced, or gone where there is nothing to derive them from."""
    added: tuple[Threshold, ...]
    """Derived ones that were not configured."""
    ignored: tuple[Threshold, ...]
    """What was configured for containerfs and does not count."""


def default_eviction_hard(profile: Profile = LATEST) -> dict[str, str]:
    """Return the default hard thresholds of a kubelet on Linux."""
    defaults = {
        Signal.MEMORY.value: "100Mi",
        Signal.NODEFS.value: "10%",
        Signal.NODEFS_INODES.value: "5%",
        Signal.IMAGEFS.value: "15%",
    }
    if profile.imagefs_inodes_default:
        defaults[Signal.IMAGEFS_INODES.value] = "5%"
    return defaults


def parse_thresholds(settings: KubeletConfiguration, profile: Profile = LATEST) -> tuple[Threshold, ...]:
    """Return the thresholds in the order: hard, soft, and the copies for allocatable memory."""
    hard = _parse_section("evictionHard", effective_eviction_hard(settings, profile))
    soft = _parse_section("evictionSoft", settings.eviction_soft)
    grace_periods = _parse_grace_periods(settings.eviction_soft_grace_period)
    min_reclaims = _parse_min_reclaims(settings.eviction_minimum_reclaim)

    parsed = [Threshold(signal, value, 0, min_reclaims.get(signal)) for signal, value in hard]
    for signal, value in soft:
        if signal not in grace_periods:
            raise InvalidConfiguration(
                f"grace period must be specified for the soft eviction threshold {signal}",
                where=f'evictionSoft["{signal}"]',
                fix=f"add {signal} to evictionSoftGracePeriod",
            )
        parsed.append(Threshold(signal, value, grace_periods[signal], min_reclaims.get(signal)))
    if "pods" in settings.enforce_node_allocatable:
        parsed += [
            Threshold(Signal.ALLOCATABLE_MEMORY, threshold.value, 0, threshold.min_reclaim)
            for threshold in parsed
            if threshold.signal is Signal.MEMORY and threshold.is_hard
        ]
    return tuple(parsed)


def threshold_errors(settings: KubeletConfiguration, profile: Profile = LATEST) -> Iterator[InvalidConfiguration]:
    """Yield all for which ``parse_thresholds`` raises: every statement is tried by itself."""
    nothing = KubeletConfiguration(eviction_hard={})
    tries = [
        replace(nothing, **{section: {name: text}})
        for section, statements in (
            ("eviction_hard", settings.eviction_hard or {}),
            ("eviction_soft_grace_period", settings.eviction_soft_grace_period),
            ("eviction_minimum_reclaim", settings.eviction_minimum_reclaim),
        )
        for name, text in statements.items()
    ]
    tries += [
        # An invalid grace period is one, too, and is told by its own try.
        replace(nothing, eviction_soft={name: text}, eviction_soft_grace_period=dict.fromkeys(given, "1m"))
        for name, text in settings.eviction_soft.items()
        for given in [[name] if name in settings.eviction_soft_grace_period else []]
    ]
    for tried in tries:
        try:
            parse_thresholds(tried, profile)
        except InvalidConfiguration as error:
            yield error


def effective_eviction_hard(settings: KubeletConfiguration, profile: Profile = LATEST) -> dict[str, str]:
    """Return the hard statements that count: naming one drops all defaults, unless they are to be merged."""
    defaults = default_eviction_hard(profile)
    if settings.eviction_hard is None:
        return defaults
    if settings.merge_default_eviction_settings:
        return defaults | settings.eviction_hard
    return settings.eviction_hard


def pressure_transition_period_ns(settings: KubeletConfiguration) -> int:
    """Return how long a condition outlasts its cause."""
    return _parse_duration("evictionPressureTransitionPeriod", settings.eviction_pressure_transition_period)


def derive_containerfs(thresholds: Iterable[Threshold], layout: Layout) -> ContainerFsThresholds:
    """Let containerfs follow the filesystem it is on. Upstream does so at the first pass of the manager.

    Where a signal has two thresholds of a kind (a hard one and a soft one without grace), the later counts.
    """
    in_place: list[Threshold | None] = list(thresholds)
    configured = (Signal.CONTAINERFS, Signal.CONTAINERFS_INODES)
    ignored = tuple(threshold for threshold in in_place if threshold is not None and threshold.signal in configured)
    added: list[Threshold] = []
    for signal, source in zip(configured, containerfs_follows(layout) or (), strict=False):
        for hard in (True, False):
            origin = _last(in_place, source, hard=hard)
            derived = None
            if origin is not None:
                model = in_place[origin]
                assert model is not None
                derived = Threshold(signal, model.value, model.grace_period_ns, model.min_reclaim)
            place = _last(in_place, signal, hard=hard)
            if place is not None:
                in_place[place] = derived
            elif derived is not None:
                added.append(derived)
    return ContainerFsThresholds(tuple(item for item in in_place if item is not None), tuple(added), ignored)


def _last(thresholds: list[Threshold | None], signal: Signal, *, hard: bool) -> int | None:
    found = None
    for index, threshold in enumerate(thresholds):
        if threshold is not None and threshold.signal is signal and threshold.is_hard == hard:
            found = index
    return found


def _parse_section(section: str, statements: Mapping[str, str]) -> list[tuple[Signal, ThresholdValue]]:
    parsed = []
    for name, text in statements.items():
        where = f'{section}["{name}"]'
        signal = _parse_signal(name, where)
        # Exactly these spellings mean "no threshold".
        if text not in {"0%", "100%"}:
            parsed.append((signal, _parse_value(signal, text, where)))
    return parsed


def _parse_value(signal: Signal, text: str, where: str) -> ThresholdValue:
    if text.endswith("%"):
        fraction = _parse_percentage(text, where)
        if fraction < 0:
            what = f"eviction percentage threshold {signal} must be >= 0%: {text}"
            raise InvalidConfiguration(what, where=where, fix="write a percentage from 0% to 100%")
        if fraction > 1:
            what = f"eviction percentage threshold {signal} must be <= 100%: {text}"
            raise InvalidConfiguration(what, where=where, fix="write a percentage from 0% to 100%")
        return ThresholdValue(fraction=fraction)
    quantity = _parse_quantity(text, where)
    if quantity.sign <= 0:
        what = f"eviction threshold {signal} must be positive: {quantity}"
        raise InvalidConfiguration(what, where=where, fix="write an amount above zero, or 0% for no threshold")
    return ThresholdValue(quantity)


def _parse_min_reclaims(statements: Mapping[str, str]) -> dict[Signal, ThresholdValue]:
    parsed = {}
    for name, text in statements.items():
        where = f'evictionMinimumReclaim["{name}"]'
        signal = _parse_signal(name, where)
        if text.endswith("%"):
            fraction = _parse_percentage(text, where)
            if fraction <= 0:
                what = f"eviction percentage minimum reclaim {signal} must be positive: {text}"
                raise InvalidConfiguration(what, where=where, fix="write a percentage above 0%")
            parsed[signal] = ThresholdValue(fraction=fraction)
            continue
        quantity = _parse_quantity(text, where)
        if quantity.sign < 0:
            what = f"negative eviction minimum reclaim specified for {signal}"
            raise InvalidConfiguration(what, where=where, fix="write zero or more")
        parsed[signal] = ThresholdValue(quantity)
    return parsed


def _parse_grace_periods(statements: Mapping[str, str]) -> dict[Signal, int]:
    parsed = {}
    for name, text in statements.items():
        where = f'evictionSoftGracePeriod["{name}"]'
        signal = _parse_signal(name, where)
        period = _parse_duration(where, text)
        if period < 0:
            what = f"invalid eviction grace period specified: {text}, must be a positive value"
            raise InvalidConfiguration(what, where=where, fix="write zero or more, such as 1m30s")
        parsed[signal] = period
    return parsed


def _parse_signal(name: str, where: str) -> Signal:
    try:
        return Signal(name)
    except ValueError:
        close = difflib.get_close_matches(name, list(Signal), 1)
        fix = f"did you mean {close[0]}?" if close else f"one of {', '.join(Signal)}"
        raise InvalidConfiguration(f"unsupported eviction signal {name}", where=where, fix=fix) from None


def _parse_percentage(text: str, where: str) -> float:
    try:
        return _share(text)
    except ValueError as error:
        raise InvalidConfiguration(str(error), where=where, fix="write a percentage such as 10% or 7.5%") from None


@lru_cache(256)  # all nodes of a cluster have the same few, and exact arithmetic takes its time
def _share(text: str) -> float:
    return divide_float32(parse_float32(text.rstrip("%")), 100)


def _parse_quantity(text: str, where: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except InvalidQuantity as error:
        fix = error.fix or "write a quantity such as 500Mi, or a percentage such as 10%"
        raise InvalidConfiguration(error.what, where=where, fix=fix) from None


def _parse_duration(where: str, text: str) -> int:
    try:
        return parse_duration_ns(text)
    except ValueError as error:
        raise InvalidConfiguration(str(error), where=where, fix=duration_fix(text)) from None


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


def read_kubelet(source: str, data: bytes) -> KubeletSettings:
    """Return the one kubelet's settings in a text; ``source`` is the name to report it under."""
    try:
        settings = settings_in(source, data)
        check_alone(settings)
    except InvalidConfiguration as error:
        raise located(with_the_rest(error), source, data) from None
    return settings


def with_the_rest(error: InvalidConfiguration) -> InvalidConfiguration:
    """Return what is wrong with settings that cannot be read, with what is wrong with those of them that can."""
    if not isinstance(error.rest, KubeletSettings):
        return error
    rest = error.rest.configuration
    if any("evictionSoftGracePeriod" in each.where for each in error.all):
        rest = replace(rest, eviction_soft={})  # which of them have none is not known then
    thresholds = KubeletConfiguration(
        eviction_hard=rest.eviction_hard,
        eviction_soft=rest.eviction_soft,
        eviction_soft_grace_period=rest.eviction_soft_grace_period,
        eviction_minimum_reclaim=rest.eviction_minimum_reclaim,
    )
    try:
        check_alone(replace(error.rest, configuration=thresholds))
    except InvalidConfiguration as further:
        return InvalidConfiguration.of((*error.all, *further.all)) or error
    return error


def check_alone(settings: KubeletSettings) -> None:
    """Refuse settings with which the kubelet starts on no node; the error names their place in the document."""
    try:
        check_settings(settings.configuration)
    except InvalidConfiguration as error:
        raise error.placed(settings.notation.place, settings.notation.words) from None


def check_settings(config: KubeletConfiguration, profile: Profile = LATEST) -> None:
    """Raise ``InvalidConfiguration`` for the settings with which the kubelet does not start."""
    error = InvalidConfiguration.of(_wrong(config, profile))
    if error is not None:
        raise error


def _wrong(config: KubeletConfiguration, profile: Profile) -> Iterator[InvalidConfiguration]:
    for error in threshold_errors(config, profile):
        what = f"{error.what}: the kubelet does not start"
        yield InvalidConfiguration(what, where=error.where, fix=error.fix)
    if not config.cgroups_per_qos and config.enforce_node_allocatable:
        what = "without cgroupsPerQOS there are no cgroups to enforce it on: the kubelet does not start"
        yield InvalidConfiguration(what, where="enforceNodeAllocatable", fix="write enforceNodeAllocatable: []")
    reserved = (config.reserved_for_kube, config.reserved_for_system)
    if config.cpu_manager_policy == "static" and not any(amounts.get(CPU) for amounts in reserved):
        what = "static needs CPUs reserved for the system: the kubelet does not start"
        yield InvalidConfiguration(what, where="cpuManagerPolicy", fix='add reservedSystemCPUs: "0"')
