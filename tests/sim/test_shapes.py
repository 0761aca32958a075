"""Shapes become the curves that people mean by them."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.errors import InputError
from podqos.manifest.times import parse_duration_us
from podqos.sim.engine.curve import Clock, Curve, constant
from podqos.sim.scenario_format.shape_text import Unit, parse_shape, shape_curve
from podqos.sim.scenario_format.shapes import (
    WaveForm,
    delayed,
    leak,
    line,
    raised,
    ramp,
    random_values,
    steps,
    total,
    wave,
)

MI = 2**20
GI = 2**30
S = 10**6
MINUTE = 60 * S


def curve(text, unit=Unit.WHOLE, duration_us=10 * MINUTE):
    return shape_curve(parse_shape(text), unit, duration_us)


@pytest.mark.parametrize(
    ("text", "knots"),
    [
        pytest.param("2Gi", ((0, 2 * GI),), id="an amount is a constant"),
        pytest.param("8Gi over 2s", ((0, 0), (2 * S, 8 * GI)), id="over: a ramp"),
        pytest.param("8Gi over 2s at 1s", ((S, 0), (3 * S, 8 * GI)), id="over at: a later ramp"),
        pytest.param("1Gi at 5s", ((0, 0), (5 * S, 0), (5 * S, GI)), id="at: a step"),
        pytest.param("1Gi + 1Gi over 2s", ((0, GI), (2 * S, 2 * GI)), id="plus: both"),
        pytest.param("3Gi - 1Gi at 5s", ((0, 3 * GI), (5 * S, 3 * GI), (5 * S, 2 * GI)), id="minus: taken off again"),
        pytest.param("1Mi per second", ((0, 0), (600 * S, 600 * MI)), id="per: a rate as long as the run"),
        pytest.param("64Mi per minute up to 96Mi", ((0, 0), (90 * S, 96 * MI)), id="up to: a rate with a ceiling"),
        pytest.param(
            "256Mi + 64Mi per 1m at 30s up to 64Mi",
            ((0, 256 * MI), (30 * S, 256 * MI), (90 * S, 320 * MI)),
            id="a base and a later leak",
        ),
        pytest.param("1e3", ((0, 1000),), id="an exponent is no term"),
    ],
)
def test_one_line_says_it(text, knots):
    assert curve(text).knots == knots


def test_cpu_is_counted_in_thousandths():
    assert curve("1.5", Unit.MILLI) == constant(1500)


def test_a_rate_counts_from_the_start_of_the_container_everything_else_from_that_of_the_scenario():
    assert curve("1Gi over 2s").clock is Clock.SCENARIO
    assert curve("1Gi + 64Mi per minute").clock is Clock.CONTAINER


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "an amount is missing"),
        ("8Gi ower 2s", '"ower" is not expected'),
        ("8Gi over", "a duration is missing"),
        ("8Gi over 2", '"2" is not a duration'),
        ("8gi", '"8gi" is not a quantity'),
        ("-1Gi", "-1Gi is below zero"),
        ("0 per minute", "never grows"),
        ("1Gi per 0s", "never grows"),
        ("1Gi - 1Mi per minute", "cannot be subtracted"),
        ("1Gi over 2s per minute", '"per" is not expected'),
        ("1Gi up to 2Gi", '"up" is not expected'),
    ],
)
def test_a_line_that_makes_no_sense_is_refused_with_an_example(text, what):
    with pytest.raises(InputError, match=what) as caught:
        parse_shape(text)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [("1.5s", 1_500_000), ("2m30s", 150 * S), ("7d", 7 * 24 * 3600 * S), ("1d12h", 36 * 3600 * S), ("minute", MINUTE)],
)
def test_durations(text, microseconds):
    assert parse_duration_us(text) == microseconds


@pytest.mark.parametrize("text", ["10", "soon", "-1s", "999999999h", True, None, []])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(InputError):
        parse_duration_us(text)


def test_steps_keep_each_value_until_the_next():
    made = steps([(0, 1), (10, 5), (20, 2)])
    assert [made.at(time) for time in (0, 9, 10, 19, 20, 99)] == [1, 1, 5, 5, 2, 2]


def test_a_leak_keeps_its_rate_exactly_and_outlasts_the_run():
    made = leak(7, 3, until_us=100)
    assert made.knots == ((0, 0), (102, 238))
    assert [made.at(3 * periods) for periods in range(5)] == [0, 7, 14, 21, 28]


def test_a_ramp_over_no_time_is_a_step():
    made = ramp(8, 0, 5)
    assert (made.at(4), made.at(5)) == (0, 8)


@pytest.mark.parametrize("form", WaveForm)
@pytest.mark.parametrize("peak", [0, 1, 7, 30, 59, 61])
def test_a_wave_stays_between_low_and_high_and_repeats(form, peak):
    made = wave(form, 10, 50, 60, peak_us=peak)
    values = [made.at(time) for time in range(240)]
    assert values[:60] * 4 == values
    assert (min(values), max(values)) == (10, 50) if form is not WaveForm.SAW else min(values) == 10
    if form is not WaveForm.SAW:
        assert made.at(peak) == 50


@pytest.mark.parametrize(
    ("form", "values"),
    [
        (WaveForm.SINE, [1000, 750, 500, 250, 0, 250, 500, 750, 1000]),
        (WaveForm.TRIANGLE, [1000, 667, 500, 333, 0, 333, 500, 667, 1000]),
    ],
)
def test_a_wave_is_high_at_its_ends_and_low_in_the_middle(form, values):
    """At the twelfths at which a cosine has simple values: 0, 2, 3, 4, 6 and back."""
    made = wave(form, 0, 1000, 12 * S)
    times = [twelfth * S for twelfth in (0, 2, 3, 4, 6, 8, 9, 10, 12)]
    assert [made.at(time) for time in times] == pytest.approx(values, abs=1)


def test_a_square_is_high_for_its_share():
    made = wave(WaveForm.SQUARE, 0, 1, 100, share=30)
    assert sum(made.at(time) for time in range(100)) == 30


def test_the_same_seed_gives_the_same_values_and_another_seed_others():
    arguments = {"low": 0, "high": 10**9, "every_us": S, "until_us": 20 * S}
    assert random_values("a", **arguments) == random_values("a", **arguments)
    assert random_values("a", **arguments) != random_values("b", **arguments)


def test_the_values_of_a_seed_are_these_on_every_machine():
    assert [*random_values("1/web", 0, 999, every_us=1, until_us=3)] == [(0, 413), (1, 995), (2, 611), (3, 0)]


@given(st.text(max_size=5), st.integers(-50, 1 << 70), st.integers(0, 50), st.sampled_from([None, 0, 3, 1 << 65]))
def test_random_values_are_those_of_the_generator_asked_for_one_after_the_other(seed, low, size, step):
    generator, high = Random(seed), low + size  # noqa: S311 - repeatable on purpose
    expected: list[tuple[int, int]] = []
    for time_us in range(0, 350, 7):
        last = expected[-1][1] if expected else low
        far = high - low if step is None or not expected else step
        least, most = max(low, last - far), min(high, last + far)
        expected.append((time_us, least + ((most - least + 1) * generator.getrandbits(32) >> 32)))
    drawn = random_values(seed, low, high, step, every_us=7, until_us=349 - 6)
    assert [*drawn] == expected
    assert line(drawn) == line(expected)
    assert steps(drawn) == steps(expected)


@given(st.text(max_size=5), st.integers(0, 50), st.integers(0, 50), st.integers(0, 10))
def test_a_walk_stays_between_low_and_high_and_takes_no_larger_steps(seed, low, size, step):
    values = [value for _, value in random_values(seed, low, low + size, step, every_us=1, until_us=50)]
    assert all(low <= value <= low + size for value in values)
    assert all(abs(after - before) <= step for before, after in pairwise(values))


POINTS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 99)), min_size=1, max_size=5, unique_by=lambda p: p[0])
CURVES = st.one_of(POINTS.map(sorted).map(steps), POINTS.map(sorted).map(line))


@given(CURVES, CURVES)
def test_a_sum_is_the_sum_at_every_knot_and_less_than_two_off_between(one, other):
    both = total([one, other])
    for time in range(50):
        assert 0 <= one.at(time) + other.at(time) - both.at(time) + 2 <= 4
    for time, _ in (*one.knots, *other.knots):
        assert both.at(time) == one.at(time) + other.at(time)


@given(CURVES, st.integers(0, 30), st.integers(0, 30))
def test_raised_and_delayed_move_a_curve_and_nothing_else(made, amount, by):
    assert raised(made, amount).at(20) == made.at(20) + amount
    assert delayed(made, by).at(20 + by) == made.at(20)


def test_the_sum_of_nothing_is_nothing():
    assert total([constant(0), constant(0)]) == Curve(((0, 0),))
