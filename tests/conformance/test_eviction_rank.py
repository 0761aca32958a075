from __future__ import annotations

from conformance.compare import difference, vectors
from podqos.cli.families import evaluate


def test_every_vector_of_the_family_agrees():
    """Upstream's recorded answers, all of them."""
    wrong = {
        line["id"]: found
        for line in vectors("eviction_rank")
        if (found := difference(line["expected"], evaluate("eviction_rank", line["input"]))) is not None
    }
    assert wrong == {}


def test_the_comparison_sees_a_wrong_order_and_lets_ties_be():
    """What holds the others must itself be able to fail."""
    expected = {"order": ["a", "b", "c"], "tieGroups": [["b", "c"]]}
    assert difference(expected, {"order": ["a", "c", "b"]}) is None
    assert difference(expected, {"order": ["b", "a", "c"]}) is not None
    assert difference({"order": ["a", "b"]}, {"order": ["b", "a"]}) is not None
