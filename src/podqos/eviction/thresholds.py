"""Eviction thresholds: when the kubelet acts, by its settings.

The numbers follow upstream's to the bit: a percentage is read as a 32-bit float, divided by 100 in 32 bits, multiplied
with the capacity in 64 bits and truncated. Whether a threshold is met at a moment is in ``conditions``; what looks
wrong about a set of thresholds is in ``threshold_warnings``.

Sources: Kubernetes v1.36 pkg/kubelet/eviction/helpers.go (ParseThresholdConfig, UpdateContainerFsThresholds),
pkg/kubelet/eviction/api/types.go (GetThresholdQuantity), pkg/kubelet/eviction/defaults_linux.go.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InvalidConfiguration, InvalidQuantity
from podqos.eviction.signals import Layout, Signal, containerfs_follows
from podqos.model.go_text import divide_float32, parse_duration_ns, parse_float32
from podqos.model.kubelet_config import KubeletConfiguration, duration_fix
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity

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
