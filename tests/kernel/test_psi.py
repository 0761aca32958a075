"""Pressure averages: how fast they rise, how fast they forget, and what rounding does to them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.kernel.psi import Pressure, advanced, observed, sampling_usec, shown

SECOND = 1_000_000


def test_the_interval_is_two_seconds_and_a_tick():
    assert (sampling_usec(), sampling_usec(hz=1000)) == (2_004_000, 2_001_000)


def test_nothing_is_shown_before_the_first_sample():
    """Only the total moves at once."""
    early = advanced(Pressure(), SECOND, SECOND)
    assert (early.avg10, early.total_usec) == (0, SECOND)


def test_ten_seconds_of_stall_show_63_in_the_first_average():
    pressure = advanced(Pressure(), 10 * SECOND + 20_000, 10 * SECOND + 20_000)
    assert (pressure.avg10, pressure.avg60, pressure.avg300) == pytest.approx((63.2, 15.4, 3.3), abs=0.5)


def test_pressure_that_lasts_is_shown_in_full():
    pressure = advanced(Pressure(), 3600 * SECOND, 3600 * SECOND)
    assert (pressure.avg10, pressure.avg60, pressure.avg300) == (100, 100, 100)


@pytest.mark.parametrize(("window", "average"), [(10, "avg10"), (60, "avg60"), (300, "avg300")])
def test_pressure_that_is_over_decays_by_its_window(window, average):
    pressure = advanced(advanced(Pressure(), 3600 * SECOND, 3600 * SECOND), (3600 + window) * SECOND, 0)
    # The sampling interval is a tick longer than the decay assumes, and a last sample may be half full.
    assert getattr(pressure, average) == pytest.approx(100 / math.e, abs=8)


def test_less_than_a_percent_does_not_show_at_all():
    """The share of each interval is cut to whole percent before it enters."""
    pressure = advanced(Pressure(), 600 * SECOND, 5 * SECOND)
    assert (pressure.avg300, pressure.total_usec) == (0, 5 * SECOND)


def test_time_beyond_an_interval_is_kept_for_the_next():
    """Three seconds reported at the end of two: one second enters a sample later."""
    first = observed(Pressure(), 2_004_000, 3 * SECOND)
    second = observed(first, 4_008_000, 3 * SECOND)
    assert first.avg10 == pytest.approx(18.1, abs=0.1)
    assert (first.sampled_usec, second.sampled_usec) == (2_004_000, 3 * SECOND)
    assert second.avg10 > first.avg10


def test_intervals_nobody_looked_at_count_as_free():
    """The kernel's clock stops while nothing runs; averages catch up at once."""
    busy = advanced(Pressure(), 300 * sampling_usec(), 300 * sampling_usec())
    later = observed(busy, busy.next_update_usec + 30 * sampling_usec(), busy.total_usec)
    assert later.avg10 < 0.5 < later.avg60 < later.avg300


def test_averages_are_cut_not_rounded():
    assert (shown(2048), shown(2047), shown(2048 + 1024 + 20)) == (1.0, 0.99, 1.5)


stretches = st.lists(st.tuples(st.integers(1, 20 * SECOND), st.floats(0, 1)), max_size=12)


def followed(stretches, pressure=None):
    pressure = pressure or Pressure()
    for length, share in stretches:
        pressure = advanced(pressure, pressure.now_usec + length, int(length * share))
    return pressure


@given(stretches)
def test_averages_stay_between_0_and_100_and_the_total_adds_up(stretches):
    pressure = followed(stretches)
    assert all(0 <= average <= 100 for average in (pressure.avg10, pressure.avg60, pressure.avg300))
    assert pressure.total_usec == sum(int(length * share) for length, share in stretches)


@given(stretches, st.integers(0, 100))
def test_it_does_not_matter_where_a_steady_stretch_is_cut(stretches, percent):
    """An event-driven simulation may advance in any steps."""
    start = followed(stretches)
    whole = advanced(start, start.now_usec + 100 * SECOND, percent * SECOND)
    steps = start
    for _ in range(100):
        steps = advanced(steps, steps.now_usec + SECOND, percent * SECOND // 100)
    assert steps.total_usec == whole.total_usec
    assert (steps.avg10, steps.avg60, steps.avg300) == pytest.approx((whole.avg10, whole.avg60, whole.avg300), abs=1)
