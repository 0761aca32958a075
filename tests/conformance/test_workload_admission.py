from __future__ import annotations

from conformance.compare import difference, vectors
from podqos.cli.eval.workload_admission import evaluate


def test_every_vector_of_the_family_agrees():
    """New workloads as a running API server answered them, messages included."""
    wrong = {
        line["id"]: found
        for line in vectors("workload_admission")
        if (found := difference(line["expected"], evaluate(line["input"]), texts=True)) is not None
    }
    assert wrong == {}


def test_every_rule_is_the_servers():
    """About nine hundred hostile workloads, at least one for each message that a running v1.36.4 gave to thousands."""
    wrong = {
        line["id"]: found
        for line in vectors("workload_admission_hostile")
        if (found := difference(line["expected"], evaluate(line["input"]), texts=True)) is not None
    }
    assert wrong == {}
