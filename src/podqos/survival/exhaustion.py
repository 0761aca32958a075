"""What happens as a node runs out of something: every threshold in amounts, and who acts in which order.

For memory the kernel is one of those who act: below its ``low`` mark it begins to reclaim, at its ``min`` mark it
kills. A threshold not far above that mark leaves the kubelet little time, one below it none. How fast memory may grow
for the kubelet to come first is worked out in ``race``, for memory that cannot be reclaimed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

from podqos.eviction.grace import PodGrace, hard_pod_grace, soft_pod_grace
from podqos.eviction.signals import SIGNALS, Layout, Signal
from podqos.eviction.threshold_warnings import ThresholdWarning, threshold_warnings
from podqos.eviction.thresholds import (
    Threshold,
    derive_containerfs,
    parse_thresholds,
    pressure_transition_period_ns,
)
from podqos.kernel.memory import Watermarks, machine
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import MEMORY
from podqos.model.time_units import MICROSECOND_NS
from podqos.placement.allocatable import Allocatable, Division, SoftCoverage
from podqos.survival.race import Race, winning_growth_bytes_per_second

_ORDER = {signal: place for place, signal in enumerate(SIGNALS)}


class Actor(StrEnum):
    """Who does something when so much is left."""

    SOFT_THRESHOLD = "soft threshold"
    HARD_THRESHOLD = "hard threshold"
    KSWAPD = "kswapd"
    """The kernel reclaims page cache in the background."""
    OOM_KILLER = "OOM killer"


class ThresholdFacts(Struct, frozen=True, gc=False):
    """A threshold on this node."""

    threshold: Threshold
    is_derived: bool
    """Whether nobody wrote it: it follows from that of another signal."""
    capacity: int | None
    """Of its signal: bytes, inodes or process ids; None where that is not known."""
    amount: int | None
    """What must be left for it not to be met; None for a share of an unknown capacity."""
    let_go: int | None
    """What must be left for it to let go again."""
    sure_growth_bytes_per_second: int | None = None
    """Of memory: up to this growth the kubelet acts before the kernel, wherever its loop is; None where it never does,
    or where that is not the question."""


class Step(Struct, frozen=True, gc=False):
    """Something that happens when so much of a signal is left."""

    signal: Signal
    left: int
    actor: Actor
    threshold: Threshold | None = None


class Exhaustion(Struct, frozen=True, gc=False):
    """A kubelet's thresholds on one node."""

    thresholds: tuple[ThresholdFacts, ...]
    """By signal, in the order in which the kubelet acts when several are met; of one signal the first met first."""
    steps: tuple[Step, ...]
    """By signal, then by what is left, most first. Only where amounts are known."""
    warnings: tuple[ThresholdWarning, ...]
    watermarks: Watermarks | None
    """The kernel's marks; None where the node's memory is not known."""
    divisions: tuple[Division, ...] = ()
    """How what pods may request comes about; empty where that was not asked for."""
    coverage: tuple[SoftCoverage, ...] = ()
    """Whether pods within their allocatable stay clear of the soft thresholds."""
    pressure_transition_period_ns: int = 0
    """How long the node reports pressure after it has ended."""
    soft_grace: PodGrace = PodGrace()
    hard_grace: PodGrace = PodGrace()

    @property
    def uncovered(self) -> tuple[SoftCoverage, ...]:
        """Soft thresholds that pods within their allocatable can meet, because no reservation covers them."""
        return tuple(each for each in self.coverage if not each.is_covered)

    @property
    def too_late(self) -> tuple[Threshold, ...]:
        """The thresholds of memory that are met only after the kernel has begun to kill."""
        marks = self.watermarks
        return tuple(
            facts.threshold
            for facts in self.thresholds
            if marks is not None
            and facts.threshold.signal is Signal.MEMORY
            and facts.amount is not None
            and facts.amount <= marks.min_bytes
        )


def exhaustion(
    settings: KubeletConfiguration,
    capacities: Mapping[Signal, int],
    *,
    layout: Layout = Layout.SINGLE,
    allocatable: Allocatable | None = None,
    profile: Profile = LATEST,
) -> Exhaustion:
    """Work out what thresholds mean on a node with these capacities; ``allocatable`` is what it leaves to pods."""
    if allocatable is not None and MEMORY in allocatable.enforced:
        capacities = {**capacities, Signal.ALLOCATABLE_MEMORY: allocatable.enforced[MEMORY].value}
    configured = parse_thresholds(settings, profile)
    derived = derive_containerfs(configured, layout)
    memory_bytes = capacities.get(Signal.MEMORY)
    marks = None if memory_bytes is None else machine(memory_bytes).watermarks
    facts = sorted(
        (
            _facts(threshold, capacities, marks, is_derived=threshold not in configured)
            for threshold in (*derived.in_place, *derived.added)
        ),
        key=_acting_order,
    )
    steps = (*_threshold_steps(facts), *_kernel_steps(marks))
    return Exhaustion(
        thresholds=tuple(facts),
        steps=tuple(sorted(steps, key=lambda step: (_ORDER[step.signal], -step.left, step.actor is not Actor.KSWAPD))),
        warnings=threshold_warnings(settings, capacities, profile),
        watermarks=marks,
        divisions=() if allocatable is None else allocatable.divisions,
        coverage=() if allocatable is None else allocatable.soft_coverage,
        pressure_transition_period_ns=pressure_transition_period_ns(settings),
        soft_grace=soft_pod_grace(settings.eviction_max_pod_grace_period, profile),
        hard_grace=hard_pod_grace(profile),
    )


def _facts(
    threshold: Threshold, capacities: Mapping[Signal, int], marks: Watermarks | None, *, is_derived: bool
) -> ThresholdFacts:
    capacity = capacities.get(threshold.signal)
    amount = _amount(threshold, capacity)
    return ThresholdFacts(
        threshold=threshold,
        is_derived=is_derived,
        capacity=capacity,
        amount=amount,
        let_go=_amount(threshold, capacity, with_min_reclaim=True),
        sure_growth_bytes_per_second=_sure_growth(threshold, amount, marks),
    )


def _amount(threshold: Threshold, capacity: int | None, *, with_min_reclaim: bool = False) -> int | None:
    """Return what a threshold asks for; amounts are known without a capacity, shares are not."""
    values = [threshold.value]
    if with_min_reclaim and threshold.min_reclaim is not None:
        values.append(threshold.min_reclaim)
    if capacity is None and any(value.quantity is None for value in values):
        return None
    return threshold.amount(capacity or 0, with_min_reclaim=with_min_reclaim).value


def _sure_growth(threshold: Threshold, amount: int | None, marks: Watermarks | None) -> int | None:
    if amount is None or not SIGNALS[threshold.signal].is_memory:
        return None
    if threshold.signal is Signal.ALLOCATABLE_MEMORY:
        kept_bytes = 0  # a cgroup can be used up to its last page
    elif marks is not None:
        kept_bytes = marks.min_bytes
    else:
        return None
    available_bytes = max(amount, kept_bytes)
    race = Race(
        available_bytes=available_bytes,
        until_oom_bytes=available_bytes - kept_bytes,
        threshold_bytes=amount,
        growth_bytes_per_second=1,
        grace_period_us=threshold.grace_period_ns // MICROSECOND_NS,
    )
    return winning_growth_bytes_per_second(race)


def _acting_order(facts: ThresholdFacts) -> tuple[int, int, int]:
    threshold = facts.threshold
    return _ORDER[threshold.signal], -(facts.amount or 0), threshold.grace_period_ns


def _threshold_steps(facts: list[ThresholdFacts]) -> Iterator[Step]:
    for each in facts:
        if each.amount is not None:
            actor = Actor.HARD_THRESHOLD if each.threshold.is_hard else Actor.SOFT_THRESHOLD
            yield Step(each.threshold.signal, each.amount, actor, each.threshold)


def _kernel_steps(marks: Watermarks | None) -> Iterator[Step]:
    if marks is not None:
        yield Step(Signal.MEMORY, marks.low_bytes, Actor.KSWAPD)
        yield Step(Signal.MEMORY, marks.min_bytes, Actor.OOM_KILLER)
