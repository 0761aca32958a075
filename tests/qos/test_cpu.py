"""CPU units: the kernel's bounds are kept, more never gives less, and conversions agree there and back."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.qos.cpu import (
    MAX_SHARES,
    MAX_WEIGHT,
    MIN_QUOTA_US,
    MIN_SHARES,
    MIN_WEIGHT,
    milli_from_quota,
    milli_from_shares,
    quota_from_milli,
    shares_from_milli,
    shares_from_weight,
    weight_from_shares,
)

MILLI = st.integers(0, 2_000_000)
SHARES = st.integers(MIN_SHARES, MAX_SHARES)
PERIODS = st.integers(1_000, 1_000_000)
CONVERSIONS = st.sampled_from(("linear", "quadratic"))


@pytest.mark.parametrize(
    ("shares", "linear", "quadratic"),
    [(2, 1, 1), (3, 1, 2), (256, 10, 35), (512, 20, 59), (1024, 39, 100), (4096, 157, 303), (262_144, 10_000, 10_000)],
)
def test_the_line_undervalues_one_cpu_and_the_curve_does_not(shares, linear, quadratic):
    assert (weight_from_shares(shares), weight_from_shares(shares, "quadratic")) == (linear, quadratic)


@given(MILLI)
def test_shares_stay_within_the_kernels_bounds(milli):
    assert MIN_SHARES <= shares_from_milli(milli) <= MAX_SHARES


@given(st.integers(), CONVERSIONS)
def test_weight_stays_within_the_kernels_bounds_whatever_it_is_given(shares, conversion):
    assert MIN_WEIGHT <= weight_from_shares(shares, conversion) <= MAX_WEIGHT


@given(MILLI, MILLI, CONVERSIONS)
def test_a_larger_request_never_weighs_less(a, b, conversion):
    small, large = (weight_from_shares(shares_from_milli(milli), conversion) for milli in sorted((a, b)))
    assert small <= large


def test_the_curve_never_falls():
    weights = [weight_from_shares(shares, "quadratic") for shares in range(MIN_SHARES, MAX_SHARES + 1)]
    assert all(a <= b for a, b in itertools.pairwise(weights))


@given(MILLI, MILLI, PERIODS)
def test_a_larger_limit_never_gives_less_quota(a, b, period):
    small, large = (quota_from_milli(milli, period) or 0 for milli in sorted((a, b)))
    assert small <= large


@given(st.integers(1, 2_000_000), PERIODS)
def test_a_limit_gives_at_least_the_kernels_smallest_quota(milli, period):
    quota = quota_from_milli(milli, period)
    assert quota is not None
    assert quota >= MIN_QUOTA_US


def test_no_limit_gives_no_quota():
    assert quota_from_milli(0) is None
    assert milli_from_quota(None) is None


@given(st.integers(2, 256_000))
def test_shares_stand_for_the_request_they_came_from(milli):
    assert milli_from_shares(shares_from_milli(milli)) == milli


@given(st.integers(10, 2_000_000))
def test_a_quota_stands_for_the_limit_it_came_from(milli):
    assert milli_from_quota(quota_from_milli(milli)) == milli


@given(st.integers(MIN_WEIGHT, MAX_WEIGHT))
def test_a_weight_comes_back_from_its_shares_at_most_one_lower(weight):
    assert weight - 1 <= weight_from_shares(shares_from_weight(weight)) <= weight


@given(st.integers(-10, 1))
def test_fewer_shares_than_the_minimum_stand_for_nothing(shares):
    assert milli_from_shares(shares) == 0
