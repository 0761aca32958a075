"""Peaks: bounds that are never too low, and exact where it matters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podqos.sim.engine.curve import Curve, constant
from podqos.sim.engine.gauge import FRACTION_BITS
from podqos.sim.idle.peaks import Peaks
from sim.test_gauge import knots

UNTIL_US = 3 * 10**6

curves = st.builds(Curve, knots, st.sampled_from([None, 10**6 + 1]))


@given(curves, st.integers(0, UNTIL_US))
def test_no_curve_exceeds_its_ceiling(curve, time_us):
    assert curve.at(time_us) <= Peaks(UNTIL_US).ceiling(curve)


@given(st.lists(curves, min_size=1, max_size=5), st.integers(0, UNTIL_US))
def test_no_sum_exceeds_its_peak(made, time_us):
    peak = Peaks(UNTIL_US).of_sum([*made, made[0], constant(7)])
    assert (sum(curve.at(time_us) for curve in [*made, made[0]]) + 7) << FRACTION_BITS <= peak


@given(st.lists(curves, min_size=1, max_size=5))
def test_a_peak_is_no_more_than_that_of_all_curves_at_once(made):
    peaks = Peaks(UNTIL_US)
    assert peaks.of_sum(made) <= (sum(map(peaks.ceiling, made)) + len(made)) << FRACTION_BITS


def test_curves_that_take_turns_do_not_add_up():
    one = Curve(((0, 0), (10, 100), (20, 0)), period_us=20)
    other = Curve(((0, 100), (10, 0), (20, 100)), period_us=20)
    peaks = Peaks(1000)
    assert (peaks.ceiling(one), peaks.ceiling(other)) == (100, 100)
    assert peaks.of_sum([one, other]) == 100 << FRACTION_BITS


def test_what_comes_after_the_end_does_not_count():
    leak = Curve(((0, 0), (1000, 1000)))
    assert Peaks(100).ceiling(leak) <= 101
    assert Peaks(100).of_sum([leak]) <= 101 << FRACTION_BITS


def test_a_sum_that_bends_too_often_is_not_worked_out():
    restless = Curve(((0, 0), (1, 1), (2, 0)), period_us=2)
    slow = Curve(((0, 0), (5, 1)), period_us=7)
    assert Peaks(10**6).of_sum([restless, slow]) is None
