from __future__ import annotations

from conformance.compare import difference, vectors
from podqos.cli.families import evaluate


def test_every_vector_of_the_family_agrees():
    """Upstream's recorded answers, all of them, with messages, annotations and conditions to the letter."""
    wrong = {
        line["id"]: found
        for line in vectors("eviction_manager")
        if (found := difference(line["expected"], evaluate("eviction_manager", line["input"]), texts=True)) is not None
    }
    assert wrong == {}


def test_the_comparison_takes_one_of_the_alternatives_and_no_other():
    """What holds the others must itself be able to fail."""
    alternatives = [{"evictions": [{"pod": "a", "message": "m"}]}, {"evictions": [{"pod": "b", "message": "n"}]}]
    expected = {"actionAlternatives": alternatives}
    assert difference(expected, {"evictions": [{"pod": "b", "message": "n"}]}, texts=True) is None
    assert difference(expected, {"evictions": [{"pod": "c", "message": "n"}]}) is not None
    assert difference(expected, {"evictions": [{"pod": "b", "message": "m"}]}, texts=True) is not None
