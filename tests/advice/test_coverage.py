"""How much history samples have, and what is too little."""

from __future__ import annotations

import pytest

from podqos.advice.sizing.coverage import NO_COVERAGE, Shortfall, coverage_of
from podqos.advice.sizing.samples import read_samples
from podqos.model.time_units import DAY_US, MINUTE_US, SECOND_US
from podqos.questions.advice import coverage_line

MI = 1 << 20
NOVEMBER = 1_794_268_800 * SECOND_US  # 2026-11-10


def every(minutes: int, days: float, start_us: int = NOVEMBER) -> list[int]:
    return list(range(start_us, start_us + int(days * DAY_US) + 1, minutes * MINUTE_US))


def test_a_week_of_every_replica_is_enough():
    coverage = coverage_of([every(5, 7), every(5, 7)], 2 * 2017)
    assert (coverage.first, coverage.last) == ("2026-11-10T00:00:00Z", "2026-11-17T00:00:00Z")
    assert (coverage.samples, coverage.replicas, coverage.gaps, coverage.step_seconds) == (4034, 2, 0, 300)
    assert coverage.shortfalls == ()
    assert coverage_line(coverage) == "7 d 0 h of history, 4,034 samples of 2 replicas, no gaps"


def test_a_time_without_any_replica_is_a_gap_and_a_time_without_one_is_none():
    monday, tuesday = every(5, 1), every(5, 1, NOVEMBER + DAY_US)
    assert coverage_of([monday, tuesday], 578).gaps == 0
    later = coverage_of([monday, every(5, 7, NOVEMBER + 2 * DAY_US)], 2306)
    assert (later.gaps, later.longest_gap_seconds, later.shortfalls) == (1, 86_400, ())
    assert "1 gap, the longest 1 d 0 h" in coverage_line(later)


def test_replicas_that_are_measured_at_different_seconds_have_no_gaps():
    first, second = every(1, 2), every(1, 2, NOVEMBER + 7 * SECOND_US)
    assert coverage_of([first, second], len(first) + len(second)).gaps == 0


@pytest.mark.parametrize(
    ("times_us", "samples", "shortfalls", "words"),
    [
        pytest.param([[NOVEMBER]], 1, (Shortfall.FEW_SAMPLES, Shortfall.SHORT_HISTORY), "one sample", id="1"),
        pytest.param([every(1, 0.5)], 721, (Shortfall.SHORT_HISTORY,), "12 h 0 min of history", id="half a day"),
        pytest.param([every(60, 3)], 73, (Shortfall.FEW_SAMPLES,), "73 samples", id="hourly"),
        pytest.param(
            [[*every(5, 1), *every(5, 1, NOVEMBER + 3 * DAY_US)]],
            578,
            (Shortfall.GAPS,),
            "1 gap, the longest 2 d 0 h",
            id="half of it missing",
        ),
        pytest.param([[]], 40, (Shortfall.FEW_SAMPLES, Shortfall.UNKNOWN_LENGTH), "without times", id="bare"),
    ],
)
def test_too_little_is_provisional(times_us, samples, shortfalls, words):
    coverage = coverage_of(times_us, samples)
    assert coverage.shortfalls == shortfalls
    assert coverage.is_provisional
    assert words in coverage_line(coverage)


def test_many_samples_without_times_are_taken_as_they_are():
    coverage = coverage_of([[]], 500)
    assert coverage.shortfalls == (Shortfall.UNKNOWN_LENGTH,)
    assert not coverage.is_provisional
    assert coverage_line(coverage) == "500 samples of 1 replica, without times"
    assert coverage_line(NO_COVERAGE) == "no samples"


def rows(*samples: tuple[int, str, int, int]) -> bytes:
    lines = [f"{minute * 60},{pod},{memory}Mi,{restarts}" for minute, pod, memory, restarts in samples]
    return "\n".join(["time,pod,memory,restarts", *lines]).encode()


def test_the_peak_of_a_start_is_that_of_pods_that_came_later_and_of_restarts():
    data = rows(
        *(
            (minute, "old", 900 if minute < 5 else 300 if minute != 62 else 700, int(minute > 60))
            for minute in range(99)
        ),
        *((minute, "new", 500 if minute < 45 else 100, 0) for minute in range(40, 99)),
    )
    old, new = read_samples("u", data)
    assert (old.restarts, old.startup_peak_bytes) == (1, 700 * MI), "its first minutes may not be those of a start"
    assert (new.restarts, new.startup_peak_bytes) == (0, 500 * MI)
