from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.advice.sizing.matrix import (
    BATCH,
    DEFAULT,
    INDEXING,
    LATENCY_CRITICAL,
    MATRIX,
    USER_FACING,
    Because,
    BurstPattern,
    Description,
    RestartCost,
    recommend,
)
from podqos.model.pod import QOSClass

DESCRIPTIONS = st.builds(
    Description,
    st.booleans(),
    st.sampled_from(RestartCost),
    st.sampled_from(BurstPattern),
    st.booleans(),
    st.booleans(),
)


@pytest.mark.parametrize("row", MATRIX, ids=lambda row: row.service)
def test_every_row_of_the_matrix_gets_what_it_says(row):
    """The services of the content platform."""
    found = recommend(row.description)
    assert (found.qos_class, found.tier) == (row.qos_class, row.tier)
    assert found.like
    assert Because.NEAREST_ROW not in found.because


@pytest.mark.parametrize(
    ("service", "qos_class", "priority"),
    [
        ("article-service", "Guaranteed", 1_000_000),
        ("search-api", "Guaranteed", 1_000_000),
        ("cdn-origin", "Guaranteed", 500_000),
        ("analytics-pipeline", "Burstable", 100_000),
        ("content-generator", "Burstable", 100_000),
        ("search-indexer", "Burstable", 200_000),
        ("log-collector", "BestEffort", 0),
        ("debug-tools", "BestEffort", 0),
    ],
)
def test_the_matrix_is_that_of_the_source(service, qos_class, priority):
    row = next(row for row in MATRIX if row.service == service)
    assert (row.qos_class, row.tier.value) == (qos_class, priority)


@pytest.mark.parametrize(
    ("description", "qos_class", "priority", "reason"),
    [
        pytest.param(
            Description(False, RestartCost.NONE, keeps_state=True),
            QOSClass.BURSTABLE,
            200_000,
            Because.KEEPS_STATE,
            id="state-that-cannot-be-made-again",
        ),
        pytest.param(
            Description(False, RestartCost.NONE, slow_start=True),
            QOSClass.BURSTABLE,
            100_000,
            Because.SLOW_START,
            id="a-cold-start",
        ),
        pytest.param(
            Description(False, RestartCost.HIGH), QOSClass.BURSTABLE, 200_000, Because.NEAREST_ROW, id="no-such-row"
        ),
        pytest.param(
            Description(True, RestartCost.NONE), QOSClass.GUARANTEED, 500_000, Because.SOMEBODY_WAITS, id="user-traffic"
        ),
    ],
)
def test_cases_between_the_rows_say_why(description, qos_class, priority, reason):
    found = recommend(description)
    assert (found.qos_class, found.tier.value) == (qos_class, priority)
    assert reason in found.because


@pytest.mark.parametrize("burst", BurstPattern)
def test_a_row_that_only_bursts_otherwise_is_not_between_the_rows(burst):
    assert Because.NEAREST_ROW not in recommend(Description(False, RestartCost.LOW, burst)).because


@given(DESCRIPTIONS)
def test_best_effort_is_never_advised_for_what_it_does_not_suit(description):
    """User traffic, state that cannot be made again, a cold start, or any cost of a restart."""
    if recommend(description).qos_class is QOSClass.BEST_EFFORT:
        assert not description.latency_sensitive
        assert not description.keeps_state
        assert not description.slow_start
        assert description.restart_cost is RestartCost.NONE


@given(DESCRIPTIONS)
def test_a_dearer_restart_never_lowers_the_priority(description):
    costs = list(RestartCost)
    values = [
        recommend(Description(description.latency_sensitive, cost, description.burst_pattern)).tier.value
        for cost in costs
    ]
    assert values == sorted(values)


@given(DESCRIPTIONS, DESCRIPTIONS)
def test_what_somebody_waits_for_outlives_what_nobody_waits_for(one, other):
    if one.latency_sensitive and not other.latency_sensitive:
        assert recommend(one).tier.value > recommend(other).tier.value


def test_the_tiers_fall():
    tiers = LATENCY_CRITICAL, USER_FACING, INDEXING, BATCH, DEFAULT
    assert [tier.value for tier in tiers] == [1_000_000, 500_000, 200_000, 100_000, 0]
