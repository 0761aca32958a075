from __future__ import annotations

from conformance.compare import vectors
from conformance.test_admission_wide import parts
from podqos.cli.eval.workload_admission import evaluate


def test_every_vector_of_the_family_agrees():
    """New workloads as a running API server answered them, words included; upstream walks maps in any order."""
    wrong = {}
    for line in vectors("workload_admission"):
        expected, got = line["expected"], evaluate(line["input"])
        if (expected["code"], parts(expected["message"])) != (got["code"], parts(got["message"])):
            wrong[line["id"]] = got
    assert wrong == {}


def test_nearly_all_messages_are_equal_to_the_letter():
    """In one row the API server happened to name memory before cpu."""
    lines = list(vectors("workload_admission"))
    equal = [line["id"] for line in lines if line["expected"]["message"] == evaluate(line["input"])["message"]]
    assert {line["id"] for line in lines} - set(equal) == {"wl-233"}
