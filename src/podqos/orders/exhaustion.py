"""What happens as a node runs out of a resource: every threshold as an amount, and what acts in which order.

For memory the kernel acts, too: below its ``low`` watermark it reclaims, at its ``min`` watermark it kills. A threshold
just above that mark leaves the kubelet little time, one below it none. Which of the two acts first is not decided here:
``growing`` does that, and ``plain_node`` asks it about a kubelet alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

from podqos.eviction.pods import PodGrace, hard_pod_grace, soft_pod_grace
from podqos.eviction.signals import SIGNALS, Layout, NodeCondition, Signal
from podqos.eviction.thresholds import (
    Threshold,
    ThresholdValue,
    ThresholdWarning,
    derive_containerfs,
    parse_thresholds,
    pressure_transition_period_ns,
    threshold_warnings,
)
from podqos.kernel.memory import Watermarks, machine
from podqos.model.go_text import parse_duration_ns
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import MEMORY
from podqos.model.time_units import SECOND_NS, SECOND_US
from podqos.placement.allocatable import Allocatable, Division, SoftCoverage

HARD, SOFT = "hard", "soft"
_OF_PODS = Signal.ALLOCATABLE_MEMORY
_ORDER = {signal: place for place, signal in enumerate(SIGNALS)}


class Actor(StrEnum):
    """What acts when this much is left."""

    SOFT_THRESHOLD = "soft threshold"
    HARD_THRESHOLD = "hard threshold"
    KSWAPD = "kswapd"
    """The kernel reclaims page cache in the background."""
    OOM_KILLER = "OOM killer"


class WatchedThreshold(Struct, frozen=True, gc=False, rename="camel"):
    """One threshold, on this node."""

    signal: Signal
    type: str
    """``hard`` or ``soft``."""
    value: str
    """As configured: ``100Mi`` or ``10%``."""
    amount: int | None
    """In bytes, inodes or process ids on this node; null where its capacity is not known."""
    lets_go_at: int | None
    """It clears when this much is left: its amount and the minimum reclaim."""
    grace_seconds: float
    condition: NodeCondition
    is_derived: bool
    """Whether it follows from another signal's: containerfs, allocatableMemory."""
    sure_growth_bytes_per_second: int | None = None
    """Of memory: up to this growth rate the kubelet certainly acts before the kernel, by this threshold alone; null
    where it does not, or does not apply."""
    min_reclaim: str | None = None
    """As configured; null where there is none."""

    @property
    def is_hard(self) -> bool:
        """Whether it acts at once."""
        return self.type == HARD

    @property
    def grace_period_us(self) -> int:
        """How long it has to be met before it acts."""
        return round(self.grace_seconds * SECOND_US)


class ActorLevel(Struct, frozen=True, gc=False, rename="camel"):
    """What happens when this much is left."""

    signal: Signal
    left: int
    actor: Actor


class QOSReserved(Struct, frozen=True, gc=False, rename="camel"):
    """``qosReserved``: the memory that is kept from lower classes."""

    memory_percent: int
    """Of what higher classes request."""
    pods_memory: int
    """In bytes: what all pods may use together, from which that is taken off."""


class Exhaustion(Struct, frozen=True, gc=False):
    """A kubelet's thresholds on one node."""

    thresholds: tuple[WatchedThreshold, ...]
    """By signal, in the order in which the kubelet acts when several are met; within a signal the first met first."""
    steps: tuple[ActorLevel, ...]
    """By signal, then by what is left, most first. Only where amounts are known."""
    warnings: tuple[ThresholdWarning, ...]
    watermarks: Watermarks | None
    """The kernel's marks; None where the node's memory is not known."""
    divisions: tuple[Division, ...] = ()
    """How allocatable is computed; empty where that was not requested."""
    coverage: tuple[SoftCoverage, ...] = ()
    """Whether pods within their allocatable stay clear of the soft thresholds."""
    pressure_transition_period_ns: int = 0
    """How long the node keeps reporting pressure after it has ended."""
    node_status_update_ns: int = 0
    """How often the node updates its status, in which the scheduler sees pressure."""
    soft_grace: PodGrace = PodGrace()
    hard_grace: PodGrace = PodGrace()
    qos_reserved: QOSReserved | None = None

    @property
    def uncovered(self) -> tuple[SoftCoverage, ...]:
        """Soft thresholds that pods within their allocatable can meet, because no reservation covers them."""
        return tuple(coverage for coverage in self.coverage if not coverage.is_covered)

    @property
    def too_late(self) -> tuple[WatchedThreshold, ...]:
        """The thresholds of memory that are met only after the kernel has begun to kill."""
        marks = self.watermarks
        return tuple(
            threshold
            for threshold in self.thresholds
            if marks is not None
            and threshold.signal is Signal.MEMORY
            and threshold.amount is not None
            and threshold.amount <= marks.min_bytes
        )


def exhaustion(
    settings: KubeletConfiguration,
    capacities: Mapping[Signal, int],
    *,
    layout: Layout = Layout.SINGLE,
    allocatable: Allocatable | None = None,
    profile: Profile = LATEST,
    swap_bytes: int | None = None,
) -> Exhaustion:
    """Return what thresholds mean on a node with these capacities; ``allocatable`` is what it leaves to pods.

    ``swap_bytes`` is its swap, where that is known.
    """
    qos_reserved = None
    if allocatable is not None and MEMORY in allocatable.enforced:
        pods_bytes = allocatable.enforced[MEMORY].value
        percent = settings.qos_reserved_memory_percent(profile) if settings.cgroups_per_qos else None
        qos_reserved = None if percent is None else QOSReserved(percent, pods_bytes)
        capacities = {**capacities, Signal.ALLOCATABLE_MEMORY: pods_bytes}
    configured = parse_thresholds(settings, profile)
    derived = derive_containerfs(configured, layout)
    memory_bytes = capacities.get(Signal.MEMORY)
    marks = None if memory_bytes is None else machine(memory_bytes).watermarks
    found = [
        _watched(threshold, capacities, is_derived=threshold not in configured or threshold.signal is _OF_PODS)
        for threshold in (*derived.in_place, *derived.added)
    ]
    found.sort(key=lambda threshold: (_ORDER[threshold.signal], -(threshold.amount or 0), threshold.grace_seconds))
    steps = (*_threshold_steps(found), *_kernel_steps(marks))
    return Exhaustion(
        thresholds=tuple(found),
        steps=tuple(sorted(steps, key=lambda step: (_ORDER[step.signal], -step.left, step.actor is not Actor.KSWAPD))),
        warnings=threshold_warnings(settings, capacities, profile, swap_bytes=swap_bytes),
        watermarks=marks,
        divisions=() if allocatable is None else allocatable.divisions,
        coverage=() if allocatable is None else allocatable.soft_coverage,
        pressure_transition_period_ns=pressure_transition_period_ns(settings),
        node_status_update_ns=parse_duration_ns(settings.node_status_update_frequency),
        soft_grace=soft_pod_grace(settings.eviction_max_pod_grace_period, profile),
        hard_grace=hard_pod_grace(profile),
        qos_reserved=qos_reserved,
    )


def configured_value(value: ThresholdValue) -> str:
    """Return a threshold's value as it is configured."""
    if value.quantity is not None:
        return str(value.quantity)
    return "NaN%" if math.isnan(value.fraction) else f"{value.fraction * 100:.4g}%"


def _watched(threshold: Threshold, capacities: Mapping[Signal, int], *, is_derived: bool) -> WatchedThreshold:
    capacity = capacities.get(threshold.signal)
    amount = _amount(threshold, capacity)
    return WatchedThreshold(
        signal=threshold.signal,
        type=HARD if threshold.is_hard else SOFT,
        value=configured_value(threshold.value),
        amount=amount,
        lets_go_at=_amount(threshold, capacity, with_min_reclaim=True),
        grace_seconds=threshold.grace_period_ns / SECOND_NS,
        condition=SIGNALS[threshold.signal].condition,
        is_derived=is_derived,
        min_reclaim=None if threshold.min_reclaim is None else configured_value(threshold.min_reclaim),
    )


def _amount(threshold: Threshold, capacity: int | None, *, with_min_reclaim: bool = False) -> int | None:
    """Return what a threshold asks for; amounts are known without a capacity, shares are not."""
    values = [threshold.value]
    if with_min_reclaim and threshold.min_reclaim is not None:
        values.append(threshold.min_reclaim)
    if capacity is None and any(value.quantity is None for value in values):
        return None
    return threshold.amount(capacity or 0, with_min_reclaim=with_min_reclaim).value


def _threshold_steps(thresholds: Iterable[WatchedThreshold]) -> Iterator[ActorLevel]:
    for threshold in thresholds:
        if threshold.amount is not None:
            actor = Actor.HARD_THRESHOLD if threshold.is_hard else Actor.SOFT_THRESHOLD
            yield ActorLevel(threshold.signal, threshold.amount, actor)


def _kernel_steps(marks: Watermarks | None) -> Iterator[ActorLevel]:
    if marks is not None:
        yield ActorLevel(Signal.MEMORY, marks.low_bytes, Actor.KSWAPD)
        yield ActorLevel(Signal.MEMORY, marks.min_bytes, Actor.OOM_KILLER)
