from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.pods import amounts, resources
from podqos.advice.sizing.coverage import Coverage, Shortfall
from podqos.advice.sizing.matrix import BurstPattern
from podqos.advice.sizing.memory_need import DecidedBy, Replica
from podqos.advice.sizing.sizing import MIB, Doubt, Percentiles, Share, UsageHistory, percentile, size
from podqos.model.pod import QOSClass
from podqos.model.resources import ResourceRequirements

# 100 samples: 10Mi, 20Mi, … 1000Mi, and 10m, 20m, … 1000m.
STAIRS = UsageHistory(tuple(step * 10 * MIB for step in range(1, 101)), tuple(step * 10 for step in range(1, 101)))


@pytest.mark.parametrize(("percent", "expected"), [(50, 5), (95, 10), (99, 10), (100, 10), (10, 1), (11, 2), (0, 1)])
def test_percentiles_are_measured_values_by_nearest_rank(percent, expected):
    assert percentile([10, 3, 5, 7, 2, 8, 1, 9, 4, 6], percent) == expected


# STAIRS without times are seven stretches; their peaks are 150, 300 … 900, 1000Mi. The three highest are a quarter
# above the others, so 750Mi is their floor. Spread (2 × 5 % × 1000 + 250 + 150) / 4 = 125,
# need 750 + 125 × ln(2048 × 3 / 125).
NEED = "memory=1237Mi"


@pytest.mark.parametrize(
    ("qos_class", "burst", "expected"),
    [
        # most 1000m + 15 %, for every pattern: a limit below what was used would throttle
        pytest.param(
            QOSClass.GUARANTEED,
            BurstPattern.STEADY,
            resources(f"cpu=1150m,{NEED}", f"cpu=1150m,{NEED}"),
            id="guaranteed",
        ),
        pytest.param(
            QOSClass.GUARANTEED,
            BurstPattern.SPIKY,
            resources(f"cpu=1150m,{NEED}", f"cpu=1150m,{NEED}"),
            id="guaranteed-spiky",
        ),
        # p95 950Mi + 10 %; p95 950m, no limit of CPU
        pytest.param(
            QOSClass.BURSTABLE, BurstPattern.STEADY, resources("cpu=950m,memory=1045Mi", NEED), id="burstable"
        ),
        # p50 500m
        pytest.param(
            QOSClass.BURSTABLE, BurstPattern.BURSTY, resources("cpu=500m,memory=1045Mi", NEED), id="burstable-bursty"
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
    """Of 100 samples of cpu 50 are above p50."""
    found = size(STAIRS, QOSClass.BURSTABLE, BurstPattern.BURSTY)
    assert found.risk.cpu_over_request == Share(50, 100)
    assert found.risk.memory_over_request == Share(0, 100)
    assert found.memory == Percentiles(100, 500 * MIB, 950 * MIB, 990 * MIB, 1000 * MIB)
    best_effort = size(STAIRS, QOSClass.BEST_EFFORT, BurstPattern.STEADY)
    assert best_effort.risk.memory_over_request == Share(100, 100)
    assert best_effort.risk.memory_over_limit == Share(0, 100)


def test_an_oom_kill_raises_the_limit_and_leaves_the_need_unknown():
    """It was stopped at 1Gi, so it needs more than 1Gi, whatever the samples say."""
    current = resources("memory=512Mi", "memory=1Gi")
    killed = UsageHistory((600 * MIB,) * 100, (), oom_kills=3)
    found = size(killed, QOSClass.BURSTABLE, BurstPattern.STEADY, current)
    assert found.resources.limits["memory"] > amounts("memory=1200Mi")["memory"]
    assert found.need.decided_by is DecidedBy.OOM_KILLS
    assert Doubt.NEED_UNKNOWN in found.doubts
    calm = size(UsageHistory((600 * MIB,) * 100), QOSClass.BURSTABLE, BurstPattern.STEADY, current)
    assert calm.resources.limits["memory"] < amounts("memory=750Mi")["memory"]
    assert Doubt.NEED_UNKNOWN not in calm.doubts


def test_the_limit_under_which_it_was_killed_counts_and_not_that_of_today():
    current = resources("memory=512Mi", "memory=2Gi")
    killed = UsageHistory((600 * MIB,) * 100, (), oom_kills=1, oom_limit_bytes=700 * MIB)
    found = size(killed, QOSClass.BURSTABLE, BurstPattern.STEADY, current)
    assert 700 * MIB < found.resources.limits["memory"].value < 2048 * MIB


def test_a_container_that_was_killed_without_a_limit_needs_more_than_it_ever_used():
    killed = UsageHistory((600 * MIB,) * 100, (), oom_kills=1)
    found = size(killed, QOSClass.BURSTABLE, BurstPattern.STEADY, resources("memory=512Mi"))
    assert found.resources.limits["memory"].value > 700 * MIB


def test_an_oom_kill_of_a_guaranteed_container_raises_its_limit():
    killed = UsageHistory((1000 * MIB,) * 100, (100,) * 100, oom_kills=1)
    found = size(killed, QOSClass.GUARANTEED, BurstPattern.STEADY, resources("", "memory=1Gi"))
    assert found.resources.limits["memory"].value > 1200 * MIB


def test_limits_alone_stay_alone():
    """The API server copies them to the requests; nobody has to write them twice."""
    found = size(STAIRS, QOSClass.GUARANTEED, BurstPattern.STEADY, resources("", "cpu=2,memory=4Gi"))
    assert found.resources == resources("", f"cpu=1150m,{NEED}")
    assert found.risk.memory_over_request == Share(0, 100)


@pytest.mark.parametrize(
    ("current", "limit"),
    [
        pytest.param("", None, id="none-is-added"),
        pytest.param("cpu=2", "2", id="a-wide-one-stays"),
        # p99 990m + 20 %
        pytest.param("cpu=1", "1190m", id="one-that-throttles-is-raised"),
    ],
)
def test_a_burstable_container_gets_no_cpu_limit_and_keeps_the_one_it_has(current, limit):
    found = size(STAIRS, QOSClass.BURSTABLE, BurstPattern.STEADY, resources("", current)).resources
    assert found.limits.get("cpu") == (None if limit is None else amounts(f"cpu={limit}")["cpu"])


@pytest.mark.parametrize(
    ("current", "throttles"),
    [("", True), ("cpu=4,memory=1Gi", True), ("cpu=1,memory=1Gi", False)],
    ids=["new", "lower", "higher"],
)
def test_a_cpu_limit_that_guaranteed_demands_says_that_it_throttles(current, throttles):
    found = size(STAIRS, QOSClass.GUARANTEED, BurstPattern.STEADY, resources("", current))
    assert (Doubt.CPU_LIMIT_THROTTLES in found.doubts) is throttles


# Three samples, of 100Mi and 50m: spread 2 × 15 % × 100 / 3 = 10, 100 + 10 × ln(2048 / 10) = 153.2Mi.
THREE = UsageHistory((100 * MIB,) * 3, (50,) * 3)


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        pytest.param(
            resources("cpu=1,memory=1Gi", "cpu=2,memory=2Gi"),
            resources("cpu=1,memory=1Gi", "cpu=2,memory=2Gi"),
            id="nothing-shrinks",
        ),
        # A limit that was not there would be a shrink, too; what is missing is requested with a wide margin.
        pytest.param(resources("cpu=1"), resources("cpu=1,memory=154Mi"), id="no-limit-is-added"),
        pytest.param(
            resources("cpu=10m,memory=10Mi", "memory=20Mi"),
            resources("cpu=50m,memory=154Mi", "memory=154Mi"),
            id="what-is-too-small-grows",
        ),
    ],
)
def test_too_little_data_shrinks_nothing_and_has_a_wide_margin(current, expected):
    found = size(THREE, QOSClass.BURSTABLE, BurstPattern.STEADY, current)
    assert found.is_provisional
    assert found.resources == expected


@pytest.mark.parametrize("shortfall", [Shortfall.SHORT_HISTORY, Shortfall.GAPS])
def test_a_short_history_or_one_with_gaps_is_too_little_data(shortfall):
    many = UsageHistory((100 * MIB,) * 200, (50,) * 200, coverage=Coverage(200, 1, shortfalls=(shortfall,)))
    found = size(many, QOSClass.BURSTABLE, BurstPattern.STEADY, resources("cpu=1,memory=1Gi", "memory=2Gi"))
    assert found.is_provisional
    assert found.resources == resources("cpu=1,memory=1Gi", "memory=2Gi")
    assert Doubt(shortfall.value) in found.doubts


def test_a_leak_is_said_and_a_heap_that_grows_in_steps_is_none():
    """10Mi more every hour; and one step of 300Mi in the last day."""
    hours = range(168)
    times = tuple(hour * 3_600_000_000 for hour in hours)
    leak = tuple((100 + 10 * hour) * MIB for hour in hours)
    step = tuple((500 if hour >= 144 else 200) * MIB for hour in hours)
    found = [
        size(
            UsageHistory(values, (50,) * 168, replicas=(Replica(values, times),)),
            QOSClass.BURSTABLE,
            BurstPattern.STEADY,
        )
        for values in (leak, step)
    ]
    assert [Doubt.GROWS in sizing.doubts for sizing in found] == [True, False]
    assert found[0].resources.limits["memory"].value > 2000 * MIB


def test_ten_runs_of_a_job_are_enough_however_short_they_are():
    runs = tuple(Replica((100 * MIB, 110 * MIB)) for _ in range(10))
    values = tuple(value for run in runs for value in run.memory_bytes)
    usage = UsageHistory(values, (50,) * 20, replicas=runs, is_runs=True)
    found = size(usage, QOSClass.BURSTABLE, BurstPattern.STEADY, resources("cpu=1,memory=1Gi", "memory=2Gi"))
    assert not found.is_provisional
    assert found.resources.limits["memory"].value < 150 * MIB


def test_what_is_expected_at_most_gets_a_fifth_on_top():
    expected = UsageHistory((1000 * MIB,), (500,), is_expected=True)
    found = size(expected, QOSClass.GUARANTEED, BurstPattern.STEADY)
    assert found.resources == resources("cpu=580m,memory=1200Mi", "cpu=580m,memory=1200Mi")


def test_a_peak_of_any_replica_or_start_counts_even_if_it_is_not_among_the_samples():
    usage = UsageHistory((100 * MIB,) * 100, replica_peaks_bytes=(150 * MIB,), startup_peak_bytes=300 * MIB)
    found = size(usage, QOSClass.BURSTABLE, BurstPattern.STEADY)
    assert found.resources.limits == amounts("memory=315Mi")


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
    assert found.resources == resources("nvidia.com/gpu=1,cpu=1,memory=110Mi", "nvidia.com/gpu=1,cpu=2,memory=117Mi")


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
