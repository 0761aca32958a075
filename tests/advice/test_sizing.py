from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.pods import amounts, resources
from podqos.advice.sizing.matrix import BurstPattern
from podqos.advice.sizing.sizing import MIB, Doubt, Percentiles, Share, UsageHistory, percentile, size
from podqos.model.pod import QOSClass
from podqos.model.resources import ResourceRequirements

# 100 samples: 10Mi, 20Mi, … 1000Mi, and 10m, 20m, … 1000m.
STAIRS = UsageHistory(tuple(step * 10 * MIB for step in range(1, 101)), tuple(step * 10 for step in range(1, 101)))


@pytest.mark.parametrize(("percent", "expected"), [(50, 5), (95, 10), (99, 10), (100, 10), (10, 1), (11, 2), (0, 1)])
def test_percentiles_are_measured_values_by_nearest_rank(percent, expected):
    assert percentile([10, 3, 5, 7, 2, 8, 1, 9, 4, 6], percent) == expected


@pytest.mark.parametrize(
    ("qos_class", "burst", "expected"),
    [
        # most 1000Mi + 20 %; p99 990m + 15 % = 1138.5m, up to whole 10m
        pytest.param(
            QOSClass.GUARANTEED,
            BurstPattern.STEADY,
            resources("cpu=1140m,memory=1200Mi", "cpu=1140m,memory=1200Mi"),
            id="guaranteed",
        ),
        # most 1000m + 15 %
        pytest.param(
            QOSClass.GUARANTEED,
            BurstPattern.SPIKY,
            resources("cpu=1150m,memory=1200Mi", "cpu=1150m,memory=1200Mi"),
            id="guaranteed-spiky",
        ),
        # p95 950Mi + 10 %, most + 25 %; p95 950m, p99 990m + 20 % = 1188m
        pytest.param(
            QOSClass.BURSTABLE,
            BurstPattern.STEADY,
            resources("cpu=950m,memory=1045Mi", "cpu=1190m,memory=1250Mi"),
            id="burstable",
        ),
        # p50 500m
        pytest.param(
            QOSClass.BURSTABLE,
            BurstPattern.BURSTY,
            resources("cpu=500m,memory=1045Mi", "cpu=1190m,memory=1250Mi"),
            id="burstable-bursty",
        ),
        pytest.param(QOSClass.BEST_EFFORT, BurstPattern.STEADY, resources(), id="best-effort"),
    ],
)
def test_sizes_follow_the_policy_of_the_class(qos_class, burst, expected):
    assert size(STAIRS, qos_class, burst).resources == expected


def test_memory_is_advised_in_whole_mebibytes_and_at_least_one():
    tiny = size(UsageHistory((1,) * 100, (1,) * 100), QOSClass.GUARANTEED, BurstPattern.STEADY).resources
    assert tiny == resources("cpu=10m,memory=1Mi", "cpu=10m,memory=1Mi")


def test_the_risk_is_counted_from_the_samples():
    """Of 100 samples of cpu 50 are above p50, none above p99 + 20 %."""
    found = size(STAIRS, QOSClass.BURSTABLE, BurstPattern.BURSTY)
    assert found.risk.cpu_over_request == Share(50, 100)
    assert found.risk.cpu_over_limit == Share(0, 100)
    assert found.risk.memory_over_request == Share(0, 100)
    assert found.memory == Percentiles(100, 500 * MIB, 950 * MIB, 990 * MIB, 1000 * MIB)
    best_effort = size(STAIRS, QOSClass.BEST_EFFORT, BurstPattern.STEADY)
    assert best_effort.risk.memory_over_request == Share(100, 100)
    assert best_effort.risk.memory_over_limit == Share(0, 100)


def test_an_oom_kill_raises_the_limit_and_leaves_the_need_unknown():
    """It was stopped at 1Gi, so its limit becomes 1.5Gi, whatever the percentiles say."""
    current = resources("memory=512Mi", "memory=1Gi")
    killed = UsageHistory((600 * MIB,) * 100, (), oom_kills=3)
    found = size(killed, QOSClass.BURSTABLE, BurstPattern.STEADY, current)
    assert found.resources.limits == amounts("memory=1536Mi")
    assert found.resources.requests == amounts("memory=660Mi")
    assert Doubt.NEED_UNKNOWN in found.doubts
    calm = size(UsageHistory((600 * MIB,) * 100), QOSClass.BURSTABLE, BurstPattern.STEADY, current)
    assert calm.resources.limits == amounts("memory=750Mi")
    assert Doubt.NEED_UNKNOWN not in calm.doubts


def test_an_oom_kill_of_a_guaranteed_container_raises_its_limit():
    killed = UsageHistory((1000 * MIB,) * 100, (100,) * 100, oom_kills=1)
    found = size(killed, QOSClass.GUARANTEED, BurstPattern.STEADY, resources("", "memory=1Gi"))
    assert found.resources.limits["memory"] == amounts("memory=1536Mi")["memory"]


def test_limits_alone_stay_alone():
    """The API server copies them to the requests; nobody has to write them twice."""
    found = size(STAIRS, QOSClass.GUARANTEED, BurstPattern.STEADY, resources("", "cpu=2,memory=2Gi"))
    assert found.resources == resources("", "cpu=1140m,memory=1200Mi")
    assert found.risk.memory_over_request == Share(0, 100)


@pytest.mark.parametrize(
    ("usage", "doubts"),
    [
        pytest.param(STAIRS, set(), id="enough"),
        pytest.param(UsageHistory((MIB,) * 99, (1,) * 99), {Doubt.FEW_SAMPLES}, id="few"),
        pytest.param(UsageHistory((MIB,), (1,), is_expected=True), {Doubt.EXPECTED_ONLY}, id="expected"),
        pytest.param(UsageHistory((MIB,) * 100), {Doubt.NO_CPU_SAMPLES}, id="no-cpu"),
        pytest.param(UsageHistory((), (1,) * 100), {Doubt.NO_MEMORY_SAMPLES}, id="no-memory"),
    ],
)
def test_what_is_doubtful_is_said(usage, doubts):
    assert set(size(usage, QOSClass.BURSTABLE, BurstPattern.STEADY).doubts) == doubts


def test_what_was_not_measured_stays_as_it_is():
    """And other resources are left alone."""
    current = resources("cpu=1,nvidia.com/gpu=1", "cpu=2,nvidia.com/gpu=1")
    found = size(UsageHistory((100 * MIB,) * 100), QOSClass.BURSTABLE, BurstPattern.STEADY, current)
    assert found.resources == resources("nvidia.com/gpu=1,cpu=1,memory=110Mi", "nvidia.com/gpu=1,cpu=2,memory=125Mi")


def test_guaranteed_takes_the_larger_of_request_and_limit_where_nothing_is_measured():
    """A request without a limit becomes both."""
    found = size(
        UsageHistory(), QOSClass.GUARANTEED, BurstPattern.STEADY, resources("cpu=100m,memory=128Mi", "memory=256Mi")
    )
    assert found.resources == resources("cpu=100m,memory=256Mi", "cpu=100m,memory=256Mi")


USAGES = st.builds(
    UsageHistory,
    st.lists(st.integers(0, 2**36), max_size=30).map(tuple),
    st.lists(st.integers(0, 64_000), max_size=30).map(tuple),
    st.integers(0, 2),
)


@given(USAGES, st.sampled_from(QOSClass), st.sampled_from(BurstPattern))
def test_requests_are_never_above_limits_and_guaranteed_ones_equal(usage, qos_class, burst):
    found: ResourceRequirements = size(usage, qos_class, burst).resources
    for name, limit in found.limits.items():
        assert found.requests[name] <= limit
        if qos_class is QOSClass.GUARANTEED:
            assert found.requests[name] == limit


@given(USAGES, st.sampled_from(BurstPattern))
def test_no_sample_of_memory_is_above_an_advised_limit(usage, burst):
    """A future like the past is survived."""
    for qos_class in (QOSClass.GUARANTEED, QOSClass.BURSTABLE):
        share = size(usage, qos_class, burst).risk.memory_over_limit
        assert share is None or share.count == 0
