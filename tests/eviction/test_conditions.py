from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eviction.nodes import MI, threshold
from podqos.eviction.manager import (
    conditions_of,
    conditions_reported,
    first_observed,
    last_observed,
    merge,
    past_grace_period,
    thresholds_met,
    with_new_samples,
)
from podqos.eviction.signals import NodeCondition, Signal, SignalObservation
from podqos.model.time_units import SECOND_US

HARD = threshold(Signal.MEMORY, "100Mi", min_reclaim="50Mi")
SOFT = threshold(Signal.MEMORY, "200Mi", 30)
DISK = threshold(Signal.NODEFS, "1Gi")
MEMORY_PRESSURE, DISK_PRESSURE = NodeCondition.MEMORY_PRESSURE, NodeCondition.DISK_PRESSURE


def left(available_mi: float, time_us: int | None = None) -> dict[Signal, SignalObservation]:
    return {Signal.MEMORY: SignalObservation(int(available_mi * MI), 1000 * MI, time_us)}


@pytest.mark.parametrize(
    ("available_mi", "met"), [(300, ()), (200, ()), (150, (SOFT,)), (100, (SOFT,)), (99.9, (HARD, SOFT))]
)
def test_a_threshold_is_met_when_strictly_less_is_left(available_mi, met):
    assert thresholds_met([HARD, SOFT, DISK], left(available_mi)) == met


def test_a_signal_nobody_observes_meets_nothing():
    assert thresholds_met([DISK], left(0)) == ()


@pytest.mark.parametrize(("available_mi", "holds"), [(149.9, True), (150, False)])
def test_a_threshold_once_met_holds_until_the_minimum_reclaim_is_there(available_mi, holds):
    unresolved = thresholds_met([HARD], left(available_mi), with_min_reclaim=True)
    assert (merge((), unresolved) == (HARD,)) is holds


def test_merging_keeps_each_threshold_once():
    assert merge((HARD, SOFT), (SOFT, HARD)) == (HARD, SOFT)


def test_first_observed_is_kept_while_met_and_starts_anew_after():
    at_10 = first_observed([HARD], {}, 10)
    assert first_observed([HARD], at_10, 20) == {HARD: 10}
    assert first_observed([HARD], first_observed([], at_10, 20), 30) == {HARD: 30}


@pytest.mark.parametrize(("elapsed_seconds", "over"), [(0, False), (29.999999, False), (30, True), (31, True)])
def test_a_grace_period_is_over_once_it_has_passed(elapsed_seconds, over):
    assert (SOFT in past_grace_period({SOFT: 0}, int(elapsed_seconds * SECOND_US))) is over


def test_a_hard_threshold_is_past_its_grace_period_at_once():
    assert past_grace_period({HARD: 7}, 7) == (HARD,)


@pytest.mark.parametrize(
    ("before_us", "now_us", "fresh"),
    [(5, 6, True), (5, 5, False), (5, 4, False), (None, 5, True), (5, None, True), (None, None, True)],
)
def test_a_sample_that_has_not_advanced_drives_nothing(before_us, now_us, fresh):
    """A sample without a time counts as new."""
    assert (with_new_samples([HARD], left(0, now_us), left(0, before_us)) == (HARD,)) is fresh


def test_a_first_sample_is_new():
    assert with_new_samples([HARD], left(0, 5), {}) == (HARD,)


def test_a_signal_that_vanished_drives_nothing():
    """It may still hold a threshold met before."""
    assert with_new_samples([HARD], {}, left(0, 5)) == ()


def test_conditions_are_listed_once_and_in_order_of_name():
    assert conditions_of([HARD, SOFT, DISK]) == (DISK_PRESSURE, MEMORY_PRESSURE)


def test_a_condition_is_reported_until_the_transition_period_is_over():
    seen = last_observed([MEMORY_PRESSURE], {}, 0)
    seen = last_observed([DISK_PRESSURE], seen, 10 * SECOND_US)
    period = 30 * 10**9
    assert conditions_reported(seen, period, 29 * SECOND_US) == (DISK_PRESSURE, MEMORY_PRESSURE)
    assert conditions_reported(seen, period, 30 * SECOND_US) == (DISK_PRESSURE,)
    assert conditions_reported(seen, period, 40 * SECOND_US) == ()


def test_a_transition_period_of_zero_never_reports_anything():
    assert conditions_reported(last_observed([MEMORY_PRESSURE], {}, 5), 0, 5) == ()


@given(
    st.lists(st.tuples(st.integers(1, 20), st.booleans()), min_size=1, max_size=40),
    st.integers(1, 60),
)
def test_a_condition_never_leaves_before_the_transition_period_is_over(passes, period_seconds):
    """Whatever the thresholds do, between being seen and being gone lies at least the period."""
    now, seen, last_true = 0, {}, None
    for interval, under_pressure in passes:
        now += interval * SECOND_US
        seen = last_observed([MEMORY_PRESSURE] if under_pressure else [], seen, now)
        last_true = now if under_pressure else last_true
        reported = MEMORY_PRESSURE in conditions_reported(seen, period_seconds * 10**9, now)
        assert reported is (last_true is not None and now - last_true < period_seconds * SECOND_US)


@given(st.integers(0, 400), st.integers(0, 400))
def test_less_memory_never_meets_fewer_thresholds(one, other):
    less, more = sorted((one, other))
    assert set(thresholds_met([HARD, SOFT], left(more))) <= set(thresholds_met([HARD, SOFT], left(less)))


@given(st.integers(0, 400))
def test_what_is_met_is_also_not_resolved(available_mi):
    met = thresholds_met([HARD, SOFT], left(available_mi))
    assert set(met) <= set(thresholds_met([HARD, SOFT], left(available_mi), with_min_reclaim=True))
