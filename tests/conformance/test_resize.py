from __future__ import annotations

from conformance.compare import difference, vectors
from conformance.test_admission_wide import parts
from podqos.cli.families import evaluate


def test_every_vector_of_the_family_agrees():
    """Resizes of stored pods, as a running API server answered them."""
    wrong = {
        line["id"]: found
        for line in vectors("resize")
        if (found := difference(line["expected"], evaluate("resize", line["input"]))) is not None
    }
    assert wrong == {}


def test_the_words_are_the_servers():
    """All of them, in any order."""
    wrong = {
        line["id"]: got["error"]
        for line in vectors("resize")
        if (got := evaluate("resize", line["input"])).get("error")
        and parts(line["expected"]["error"]) != parts(got["error"])
    }
    assert wrong == {}
