"""Prometheus' text format."""

from __future__ import annotations

from podqos.exposition import Histogram


def test_a_histogram_has_its_own_bounds_and_counts_up_to_each():
    seconds = Histogram("took_seconds", "How long.", bounds=(0.1, 1.0))
    for value in (0.1, 0.5, 7.0):
        seconds.add(value, (("stage", "held"),))
    assert list(seconds.lines()) == [
        "# HELP took_seconds How long.",
        "# TYPE took_seconds histogram",
        'took_seconds_bucket{stage="held",le="0.1"} 1',
        'took_seconds_bucket{stage="held",le="1.0"} 2',
        'took_seconds_bucket{stage="held",le="+Inf"} 3',
        'took_seconds_sum{stage="held"} 7.6',
        'took_seconds_count{stage="held"} 3',
    ]


def test_known_labels_are_there_before_anything_is_counted():
    seconds = Histogram("took_seconds", "How long.", bounds=(1.0,), known=[(("stage", "held"),)])
    assert 'took_seconds_count{stage="held"} 0' in list(seconds.lines())
    assert 'took_seconds_sum{stage="held"} 0.0' in list(seconds.lines())
