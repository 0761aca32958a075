"""Prometheus' text format."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from podqos.exposition import FORMER_NAMES, FORMER_NAMES_UNTIL, Counter, Histogram, family

DOCS = Path(__file__).parents[1] / "docs"


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


def test_a_renamed_metric_is_exported_under_both_names_with_the_same_values():
    former = f"Deprecated: use podqos_guard_evictions_blocked. Will be removed in podqos {FORMER_NAMES_UNTIL}."
    samples = ((labels, value) for labels, value in [({"reason": "shadow", "node": "atlas-1"}, 1)])
    assert list(family("podqos_guard_evictions_blocked", "gauge", "Why.", samples)) == [
        "# HELP podqos_guard_evictions_blocked Why.",
        "# TYPE podqos_guard_evictions_blocked gauge",
        'podqos_guard_evictions_blocked{reason="shadow",node="atlas-1"} 1',
        f"# HELP podqos_guard_held_back {former}",
        "# TYPE podqos_guard_held_back gauge",
        'podqos_guard_held_back{why="shadow",node="atlas-1"} 1',
    ]


def test_a_renamed_counter_keeps_counting_under_its_former_name():
    mutations = Counter("podqos_webhook_mutations_total", "Changed.")
    mutations.add()
    values = [line for line in mutations.lines() if not line.startswith("#")]
    assert values == ["podqos_webhook_mutations_total 1", "podqos_webhook_mutated_total 1"]


@pytest.mark.parametrize("name", FORMER_NAMES)
def test_the_documents_name_the_replacement_of_every_renamed_metric(name):
    row = rf"^\| `{FORMER_NAMES[name].name}`[^|]*\| `{name}`"
    assert any(re.search(row, page.read_text(encoding="utf-8"), re.MULTILINE) for page in DOCS.rglob("*.md"))


@pytest.mark.parametrize("name", FORMER_NAMES)
def test_new_names_follow_the_naming_rules_of_prometheus(name):
    """As ``promtool check metrics`` has them: snake case, no type, no abbreviated unit; counters end in ``_total``."""
    assert re.fullmatch(r"podqos(_[a-z]+)+", name)
    assert not re.search(r"_(counter|gauge|histogram|summary|s|ms|us|ns|sec|secs|kb|mb|gb|b)(_|$)", name)
    assert name.endswith("_total") == FORMER_NAMES[name].name.endswith("_total")
