from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.advice.sizing.memory_need import (
    CHEAPEST,
    SAFEST,
    USUAL,
    Caution,
    DecidedBy,
    MemorySeen,
    Replica,
    evidence_of,
    memory_need,
)
from podqos.model.time_units import DAY_US, MINUTE_US

MIB = 1 << 20
HOUR_US = 60 * MINUTE_US


def hourly(mebibytes, begin_us: int = 0) -> Replica:
    """Make a pod with a sample an hour."""
    values = tuple(int(value * MIB) for value in mebibytes)
    return Replica(values, tuple(begin_us + index * HOUR_US for index in range(len(values))))


def days(*peaks: float, base: float = 100) -> Replica:
    """Make a pod with one high sample a day."""
    return hourly([peak if hour == 12 else base for peak in peaks for hour in range(24)])


def need(*replicas: Replica, caution: Caution = USUAL, **more):
    found = memory_need(MemorySeen(replicas, **more), caution)
    assert found is not None
    return found


def mebibytes(count: int) -> float:
    return count / MIB


def test_the_need_follows_from_the_daily_peaks_and_their_spread():
    """Floor 303Mi, which three of seven exceed; spread (2 × 5 % × 310 + 7 + 5 + 2) / 5 = 9Mi."""
    found = need(days(300, 310, 302, 305, 301, 308, 303))
    assert found.most_bytes == 310 * MIB
    assert found.spread_bytes // MIB == 9
    expected = 303 + 9 * log(2048 * 3 / 9)
    assert mebibytes(found.need_bytes) == pytest.approx(expected, abs=0.1)
    assert found.decided_by is DecidedBy.PEAKS
    assert found.peaks == 7


def test_peaks_that_scatter_get_a_larger_margin_than_peaks_that_do_not():
    calm = need(days(300, 301, 300, 302, 300, 301, 300))
    wild = need(days(200, 300, 220, 260, 240, 280, 210))
    assert calm.margin_percent < 16
    assert wild.margin_percent > 2 * calm.margin_percent


def test_the_highest_peak_of_any_replica_counts():
    """One of three started with 900Mi, once."""
    start = days(900, 300, 300, 300, 300, 300, 300)
    found = need(days(*[300] * 7), start, days(*[300] * 7))
    assert found.most_bytes == 900 * MIB
    assert found.need_bytes >= 945 * MIB
    assert found.decided_by is DecidedBy.RARE_PEAKS


def test_rare_peaks_are_judged_by_themselves():
    """Two peaks of about 900Mi say little of a spread of 600Mi: the margin is that of peaks that hardly differ."""
    found = need(days(900, 300, 300, 305, 910, 300, 300))
    assert 5 <= found.margin_percent < 40


def test_never_less_than_a_twentieth_above_the_highest_sample():
    huge = need(days(*[100_000] * 7))
    assert huge.need_bytes >= 1.05 * 100_000 * MIB


def test_more_caution_reserves_more_and_leaves_less_chance_of_a_kill():
    replica = days(300, 310, 302, 305, 301, 308, 303)
    cheap, usual, safe = (need(replica, caution=caution) for caution in (CHEAPEST, USUAL, SAFEST))
    assert cheap.need_bytes < usual.need_bytes < safe.need_bytes
    assert cheap.kill_chance_percent > usual.kill_chance_percent > safe.kill_chance_percent


def test_a_leak_is_extrapolated_for_as_long_as_pods_live():
    """10Mi an hour for three days, from 100Mi; nobody has seen it end."""
    found = need(hourly(100 + 10 * hour for hour in range(72)))
    assert found.decided_by is DecidedBy.GROWTH
    assert found.growth_bytes_a_day == 240 * MIB
    assert found.life_seconds == 3 * 86_400
    assert found.need_bytes > (810 + 240) * MIB


def test_restarts_shorten_what_a_leak_grows_to():
    once = need(hourly(100 + 10 * (hour % 150) for hour in range(150)))
    restarted = need(hourly(100 + 10 * (hour % 50) for hour in range(150)))
    assert restarted.need_bytes < 0.7 * once.need_bytes


def test_growth_that_slows_down_ends():
    """A cache that fills: 1,000Mi, half of the rest every day; an eighth of it is left after three days."""
    filling = [1000 * (1 - 0.5 ** (hour / 24)) for hour in range(24 * 4)]
    found = need(hourly(filling))
    assert found.need_bytes < 1250 * MIB
    leaking = need(hourly(250 * hour / 24 for hour in range(24 * 4)))
    assert leaking.need_bytes > 1500 * MIB


def test_a_daily_rhythm_is_not_growth():
    found = need(hourly(200 + 100 * (hour % 24 > 12) for hour in range(24 * 7)))
    assert found.growth_bytes_a_day == 0


def test_a_pod_that_is_gone_does_not_grow_any_more():
    gone = hourly(100 + 10 * hour for hour in range(72))
    found = need(gone, hourly([100] * 72, begin_us=3 * DAY_US))
    assert found.growth_bytes_a_day == 0


def test_an_oom_kill_means_that_the_need_is_above_the_limit():
    found = need(days(*[300] * 7), oom_kills=1, oom_limit_bytes=512 * MIB)
    assert found.decided_by is DecidedBy.OOM_KILLS
    assert found.most_bytes == 512 * MIB
    assert found.need_bytes > 600 * MIB
    often = need(days(*[300] * 7), oom_kills=20, oom_limit_bytes=512 * MIB)
    assert often.need_bytes > found.need_bytes


def test_too_little_data_has_a_wide_margin():
    replica = days(300)
    assert need(replica, is_provisional=True).margin_percent > 2 * need(days(*[300] * 7)).margin_percent


def test_a_moment_says_nothing_of_a_week_but_is_not_multiplied_by_it():
    moment = Replica((300 * MIB,), (0,))
    assert need(moment, is_provisional=True).margin_percent < 150


def test_runs_of_a_job_have_one_peak_each_and_do_not_leak():
    """They grow from start to end, and end."""
    runs = [hourly([100 + 10 * hour for hour in range(48)], begin_us=index * 2 * DAY_US) for index in range(5)]
    found = need(*runs, is_runs=True)
    assert found.peaks == 5
    assert found.growth_bytes_a_day == 0
    assert found.margin_percent < 20


def test_samples_without_times_are_cut_into_stretches():
    values = tuple((300 + index % 5) * MIB for index in range(200))
    found = need(Replica(values))
    assert found.peaks == 7
    assert found.margin_percent < 16


def test_pods_that_replace_each_other_are_one_replica():
    """Seven pods of a day each are as many peaks as one pod of seven days."""
    peaks = (300, 310, 302, 305, 301, 308, 303)
    one = evidence_of(MemorySeen([days(*peaks)]))
    many = evidence_of(
        MemorySeen(
            [
                Replica(pod.memory_bytes, tuple(index * DAY_US + time_us for time_us in pod.memory_times_us))
                for index, pod in enumerate(days(peak) for peak in peaks)
            ]
        )
    )
    assert (one.peaks, round(one.pods, 1)) == (many.peaks, round(many.pods, 1))


def test_only_a_comparison_may_give_up_rare_peaks():
    replica = days(900_000, 300, 300, 305, 300, 300, 300)
    assert need(replica).need_bytes > 900_000 * MIB
    given_up = need(replica, caution=Caution(USUAL.worth_bytes, gives_up_rare_peaks=True))
    assert given_up.need_bytes < 1000 * MIB


def test_nothing_measured_is_no_need():
    assert memory_need(MemorySeen([Replica()])) is None
    assert memory_need(MemorySeen([])) is None


REPLICAS = st.lists(
    st.lists(st.integers(0, 2**40), min_size=1, max_size=30).map(
        lambda values: Replica(tuple(values), tuple(index * HOUR_US for index in range(len(values))))
    ),
    min_size=1,
    max_size=4,
)


@given(REPLICAS, st.integers(0, 3), st.integers(0, 2**38), st.booleans())
def test_whatever_was_measured_the_need_is_above_it_and_more_caution_never_needs_less(replicas, kills, limit, is_runs):
    seen = MemorySeen(replicas, is_runs=is_runs, oom_kills=kills, oom_limit_bytes=limit)
    cheap, usual, safe = (memory_need(seen, caution) for caution in (CHEAPEST, USUAL, SAFEST))
    most = max(value for replica in replicas for value in replica.memory_bytes)
    assert cheap.need_bytes >= 1.05 * most
    assert cheap.need_bytes <= usual.need_bytes <= safe.need_bytes
    assert cheap.need_bytes > limit or not kills or not limit


def test_the_order_of_replicas_does_not_matter():
    replicas = [hourly((100 + 7 * hour * number) % 400 + 1 for hour in range(100)) for number in range(1, 5)]
    assert need(*replicas) == need(*reversed(replicas))
