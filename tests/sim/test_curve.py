"""Curves are exact: what is computed from their pieces is what looking at every microsecond would find."""

from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.sim.engine.curve import Curve, Piece, above, below, constant

STEP = Curve(((0, 10), (5, 10), (5, 30), (9, 30)))
RAMP = Curve(((2, 0), (5, 10)))
SAW = Curve(((0, 0), (4, 8)), period_us=6)


@pytest.mark.parametrize(
    ("curve", "values"),
    [
        pytest.param(constant(7), {-5: 7, 0: 7, 10**15: 7}, id="a constant has its value for all time"),
        pytest.param(STEP, {0: 10, 4: 10, 5: 30, 9: 30, 99: 30}, id="at a step the later value counts"),
        pytest.param(RAMP, {0: 0, 2: 0, 3: 3, 4: 6, 5: 10, 6: 10}, id="between knots the value is rounded down"),
        pytest.param(Curve(((0, 0), (3, -10))), {1: -4, 2: -7}, id="down, also below zero"),
        pytest.param(SAW, {0: 0, 3: 6, 4: 8, 5: 8, 6: 0, 9: 6, 6 * 10**9 + 3: 6}, id="with a period it repeats"),
    ],
)
def test_values(curve, values):
    assert {time: curve.at(time) for time in values} == values


def test_a_piece_knows_where_it_ends_and_what_it_heads_for():
    assert STEP.piece(2) == Piece(0, 10, 5, 10)
    assert STEP.piece(5) == Piece(5, 30, 9, 30)
    assert STEP.piece(9) == Piece(9, 30, None, 30)
    assert SAW.piece(8) == Piece(6, 0, 10, 8)
    assert SAW.piece(11) == Piece(10, 8, 12, 8)


TIMES = st.integers(min_value=0, max_value=60)
VALUES = st.integers(min_value=-50, max_value=50)


@st.composite
def curves(draw):
    times = sorted(draw(st.lists(TIMES, min_size=1, max_size=6)))
    knots = tuple((time, draw(VALUES)) for time in times)
    period = draw(st.none() | st.integers(min_value=max(1, times[-1]), max_value=80))
    return Curve(knots, period)


def exact(curve, time):
    """Return the value by definition: find the knots around the time, draw the line."""
    if curve.period_us is not None:
        time %= curve.period_us
    before = [knot for knot in curve.knots if knot[0] <= time]
    after = [knot for knot in curve.knots if knot[0] > time]
    if not before:
        return after[0][1]
    (start, value) = before[-1]
    if not after:
        return value
    (end, target) = after[0]
    return floor(value + Fraction(target - value) * (time - start) / (end - start))


@given(curves(), st.integers(min_value=0, max_value=200))
def test_the_value_is_the_line_between_the_knots_rounded_down(curve, time):
    assert curve.at(time) == exact(curve, time)


@given(curves(), st.integers(min_value=0, max_value=200))
def test_a_piece_holds_from_its_time_to_its_end(curve, time):
    piece = curve.piece(time)
    assert piece.start_us <= time
    end = time + 40 if piece.end_us is None else piece.end_us
    assert time < end
    assert [piece.at(each) for each in range(time, end)] == [curve.at(each) for each in range(time, end)]


@given(curves(), VALUES)
def test_a_curve_is_what_is_below_a_level_and_what_is_above_it(curve, level):
    """Between two knots it is so to a microsecond: there a curve crosses the level at the next whole one."""
    low, high = below(curve, level), above(curve, level)
    for time in range(130):
        assert low.at(time) <= level
        assert high.at(time) >= 0
    for time, _ in curve.knots:
        assert low.at(time) + high.at(time) == curve.at(time)


def test_a_curve_that_crosses_a_level_bends_there():
    """It rises by 10 a microsecond from 0 to 100, and stays: it is at 40 after 4 µs. The saw falls by a step."""
    ramp = Curve(((0, 0), (10, 100)))
    assert below(ramp, 40).knots == ((0, 0), (4, 40), (10, 40))
    assert above(ramp, 40).knots == ((0, 0), (4, 0), (10, 60))
    assert [below(SAW, 4).at(time) for time in range(8)] == [0, 2, 4, 4, 4, 4, 0, 2]
    assert [above(SAW, 4).at(time) for time in range(8)] == [0, 0, 0, 2, 4, 4, 0, 0]
