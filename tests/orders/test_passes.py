"""Which pass acts first, computed with spans, against a loop that is run at every phase."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podqos.orders.growing import Alarm, first_acts, lasting, overlap, union, without

INTERVAL = 7
END = 60
CUTS = st.lists(st.integers(0, END), max_size=10, unique=True).map(sorted)
SPANS = CUTS.map(lambda cuts: [*zip(cuts[::2], cuts[1::2], strict=False)])


def points(spans) -> set[int]:
    """Return the whole numbers in spans."""
    return {point for begin, end in spans for point in range(begin, end)}


@given(SPANS, SPANS)
def test_spans_behave_like_sets(one, other):
    assert points(overlap(one, other)) == points(one) & points(other)
    assert points(union(one, other)) == points(one) | points(other)
    assert points(without(one, other)) == points(one) - points(other)
    for found in (overlap(one, other), union(one, other), without(one, other)):
        assert all(begin < end for begin, end in found)
        assert found == sorted(found)


@given(SPANS, st.integers(0, 6))
def test_what_lasts_was_there_at_so_many_passes_before(spans, passes):
    inside = points(spans)
    expected = {point for point in inside if all(point - turn * INTERVAL in inside for turn in range(passes + 1))}
    assert points(lasting(spans, INTERVAL, passes)) == expected


@given(
    st.lists(SPANS, max_size=3),
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, INTERVAL)), max_size=3, unique_by=lambda each: each[0]),
)
def test_the_first_act_of_each_phase_is_that_of_a_loop_that_is_run(thresholds, told):
    alarms = [Alarm(at - length, at, at, 0) for at, length in told]
    found = {
        phase: (piece.first if piece.is_at_once else piece.first + phase - piece.begin, piece.place)
        for piece in first_acts(thresholds, INTERVAL, alarms if thresholds else ())
        for phase in range(piece.begin, piece.end)
    }
    for phase in range(INTERVAL):
        assert found.get(phase) == _run(thresholds, alarms if thresholds else [], phase)


def _run(thresholds, alarms, phase):
    for now in range(phase - INTERVAL, END, INTERVAL):
        for place, spans in enumerate(thresholds):
            if now in points(spans):
                return now, place
        looks = sorted(alarm.at for alarm in alarms if alarm.begin <= now < alarm.end)
        if looks:
            return looks[0], 0
    return None
