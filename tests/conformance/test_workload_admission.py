from __future__ import annotations

from conformance.compare import difference, vectors
from podqos.cli.families import evaluate


def test_every_vector_of_the_family_agrees():
    """New workloads as a running API server answered them, messages included."""
    wrong = {
        line["id"]: found
        for line in vectors("workload_admission")
        if (found := difference(line["expected"], evaluate("workload_admission", line["input"]), texts=True))
        is not None
    }
    assert wrong == {}


def test_every_rule_is_the_servers():
    """Six hundred hostile workloads, at least one for each message about what podqos judges."""
    wrong = {
        line["id"]: found
        for line in vectors("workload_admission_hostile")
        if (found := difference(line["expected"], evaluate("workload_admission", line["input"]), texts=True))
        is not None
    }
    assert wrong == {}
