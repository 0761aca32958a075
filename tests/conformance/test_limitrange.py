from __future__ import annotations

from conformance.compare import difference, vectors
from podqos.cli.families import evaluate


def test_every_vector_of_the_family_agrees():
    """Upstream's recorded answers, all of them, messages and annotations included."""
    wrong = {
        line["id"]: found
        for line in vectors("limitrange")
        if (found := difference(line["expected"], evaluate("limitrange", line["input"]), texts=True)) is not None
    }
    assert wrong == {}
