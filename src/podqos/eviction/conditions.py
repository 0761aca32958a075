"""From thresholds and observations to node conditions: which thresholds are met, since when, and what the node reports.

Pure functions that take ``now``; the manager combines them. Three pieces of state keep a node from flapping: when a
threshold was first seen met (its grace period runs from there), when a condition was last seen (it is reported for the
transition period after that), and that a threshold once met clears only at its value plus the minimum reclaim.

Times are integer microseconds. Where upstream keeps unordered maps, the order here is that of the configuration.

Source: Kubernetes v1.36 pkg/kubelet/eviction/helpers.go, from thresholdsMet to mergeThresholds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from podqos.eviction.observation import SignalObservation
from podqos.eviction.signals import SIGNALS, NodeCondition, Signal
from podqos.eviction.thresholds import Threshold
from podqos.model.quantity import NANOS
from podqos.model.time_units import MICROSECOND_NS

Observations = Mapping[Signal, SignalObservation]


def thresholds_met(
    thresholds: Iterable[Threshold], observed: Observations, *, with_min_reclaim: bool = False
) -> tuple[Threshold, ...]:
    """Return the thresholds of which strictly less is left, whatever their grace period.

    A signal that is not observed meets nothing. ``with_min_reclaim`` asks whether a threshold may clear yet.
    """
    return tuple(
        threshold
        for threshold in thresholds
        if (seen := observed.get(threshold.signal)) is not None
        and threshold.amount(seen.capacity, with_min_reclaim=with_min_reclaim).nanos > seen.available * NANOS
    )


def merge(met: tuple[Threshold, ...], unresolved: Iterable[Threshold]) -> tuple[Threshold, ...]:
    """Add those that were met before and have not cleared."""
    return met + tuple(threshold for threshold in unresolved if threshold not in met)


def first_observed(met: Iterable[Threshold], before: Mapping[Threshold, int], now_us: int) -> dict[Threshold, int]:
    """Return since when each is met; one that cleared starts anew."""
    return {threshold: before.get(threshold, now_us) for threshold in met}


def past_grace_period(first_observed_us: Mapping[Threshold, int], now_us: int) -> tuple[Threshold, ...]:
    """Return the thresholds that have been met for at least their grace period."""
    return tuple(
        threshold
        for threshold, since_us in first_observed_us.items()
        if (now_us - since_us) * MICROSECOND_NS >= threshold.grace_period_ns
    )


def with_new_samples(
    thresholds: Iterable[Threshold], observed: Observations, before: Observations
) -> tuple[Threshold, ...]:
    """Return the thresholds whose sample is newer than at the last pass: no second eviction for one figure.

    A sample without a time always counts as new.
    """
    return tuple(
        threshold
        for threshold in thresholds
        if (seen := observed.get(threshold.signal)) is not None and _is_new(seen, before.get(threshold.signal))
    )


def conditions_of(met: Iterable[Threshold]) -> tuple[NodeCondition, ...]:
    """Return the conditions behind thresholds, grace periods over or not, in order of name."""
    return tuple(sorted({SIGNALS[threshold.signal].condition for threshold in met}))


def last_observed(
    conditions: Iterable[NodeCondition], before: Mapping[NodeCondition, int], now_us: int
) -> dict[NodeCondition, int]:
    """Return when each condition was last seen, now included."""
    return {**before, **dict.fromkeys(conditions, now_us)}


def conditions_reported(
    last_observed_us: Mapping[NodeCondition, int], transition_period_ns: int, now_us: int
) -> tuple[NodeCondition, ...]:
    """Return the conditions the node reports: those seen less than the transition period ago, in order of name.

    With a period of zero none is ever reported, though evictions happen.
    """
    return tuple(
        sorted(
            condition
            for condition, at_us in last_observed_us.items()
            if (now_us - at_us) * MICROSECOND_NS < transition_period_ns
        )
    )


def _is_new(seen: SignalObservation, last: SignalObservation | None) -> bool:
    if last is None or seen.time_us is None or last.time_us is None:
        return True
    return seen.time_us > last.time_us
