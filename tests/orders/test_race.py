"""The race in closed form, against a race that is run."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podqos.model.time_units import SECOND_US
from podqos.orders.race import Race, run_race, winning_growth_bytes_per_second, winning_threshold_bytes

MI, GI = 1 << 20, 1 << 30
SOON = Race(available_bytes=6 * GI, until_oom_bytes=6 * GI, threshold_bytes=100 * MI, growth_bytes_per_second=6 * GI)


def test_a_fast_leak_is_the_kernels():
    """Six GiB in a second: a threshold of 100 MiB is crossed 16 ms before the end, in an interval of 10 s."""
    result = run_race(SOON)
    assert (result.oom_us, float(result.window_us)) == (SECOND_US, pytest.approx(16_276, abs=1))
    assert float(result.kubelet_first) == pytest.approx(0.0016, abs=1e-4)


def test_a_slow_leak_is_the_kubelets():
    assert run_race(replace(SOON, growth_bytes_per_second=10 * MI)).kubelet_first == 1
    assert run_race(replace(SOON, growth_bytes_per_second=10 * MI + 1)).kubelet_first < 1


def test_a_threshold_below_what_the_kernel_keeps_never_acts():
    race = replace(SOON, until_oom_bytes=6 * GI - 300 * MI, growth_bytes_per_second=1)
    assert run_race(race).kubelet_first == 0
    assert winning_growth_bytes_per_second(race) is None
    assert winning_threshold_bytes(race) > 300 * MI


DELAYS = {
    "old figures": {"statistics_age_us": 5 * SECOND_US},
    "a slow end": {"reaction_us": 5 * SECOND_US},
}


@pytest.mark.parametrize("delay", DELAYS.values(), ids=DELAYS)
def test_delays_narrow_the_window(delay):
    race = replace(SOON, growth_bytes_per_second=10 * MI, **delay)
    assert run_race(race).kubelet_first == Fraction(1, 2)


@pytest.mark.parametrize(("grace", "looks"), [(0, 0), (1, 1), (10, 1), (11, 2), (120, 12)])
def test_a_soft_threshold_waits_for_whole_looks(grace, looks):
    race = replace(SOON, growth_bytes_per_second=MI, grace_period_us=grace * SECOND_US)
    assert run_race(race).window_us == (100 - 10 * looks) * SECOND_US


RACES = st.builds(
    Race,
    available_bytes=st.integers(0, 1000),
    until_oom_bytes=st.integers(0, 1000),
    threshold_bytes=st.integers(0, 1000),
    growth_bytes_per_second=st.integers(1, 200),
    interval_us=st.sampled_from((1, 7, 10)).map(lambda seconds: seconds * SECOND_US),
    grace_period_us=st.integers(0, 25).map(lambda seconds: seconds * SECOND_US),
    statistics_age_us=st.integers(0, 3).map(lambda seconds: seconds * SECOND_US),
    reaction_us=st.integers(0, 3).map(lambda seconds: seconds * SECOND_US),
)
PROBABILITIES = st.fractions(Fraction(1, 100), 1)


def acts_first(race: Race, phase: Fraction) -> bool:
    """Run a race: look, look again, and see whether memory is given back before it is gone."""
    result = run_race(race)
    look = phase * race.interval_us
    seen_since = None
    while look + race.reaction_us < result.oom_us:
        if look - race.statistics_age_us >= result.threshold_us:
            seen_since = look if seen_since is None else seen_since
            if look - seen_since >= race.grace_period_us:
                return True
        look += race.interval_us
    return False


@given(RACES, st.fractions(0, 1, max_denominator=1000).filter(lambda phase: phase < 1))
def test_the_probability_is_the_share_of_phases_that_win(race, phase):
    """Certain and impossible are so for every phase; otherwise the latest look of the window decides."""
    result = run_race(race)
    if result.kubelet_first == 1:
        assert acts_first(race, phase) or result.window_us == race.interval_us
    elif result.kubelet_first == 0:
        assert not acts_first(race, phase)
    else:
        first_look = result.threshold_us + race.statistics_age_us
        since = (phase * race.interval_us - first_look) % race.interval_us
        assert acts_first(race, phase) == (since < result.window_us)


@given(RACES, PROBABILITIES)
def test_the_winning_threshold_wins_and_one_byte_less_does_not(race, probability):
    threshold = winning_threshold_bytes(race, probability)
    if threshold <= race.available_bytes:
        assert run_race(replace(race, threshold_bytes=threshold)).kubelet_first >= probability
    if 0 < threshold <= race.available_bytes:
        assert run_race(replace(race, threshold_bytes=threshold - 1)).kubelet_first < probability


@given(RACES, PROBABILITIES)
def test_the_winning_growth_wins_and_more_does_not(race, probability):
    growth = winning_growth_bytes_per_second(race, probability)
    if growth:
        assert run_race(replace(race, growth_bytes_per_second=growth)).kubelet_first >= probability
    if growth is not None:
        assert run_race(replace(race, growth_bytes_per_second=growth + 1)).kubelet_first < probability


@given(RACES, st.integers(1, 100))
def test_a_higher_threshold_never_makes_it_worse(race, more):
    higher = replace(race, threshold_bytes=race.threshold_bytes + more)
    assert run_race(higher).kubelet_first >= run_race(race).kubelet_first
