"""A running scheduler's decisions, one pod at a time."""

from __future__ import annotations

from functools import cache

from conformance.compare import vectors
from podqos.cli.families import evaluate

# The recorded scheduler knew of pods that the recorded state does not have: a pod that is listed as waiting got its
# place first.
RECORDED_IN_BETWEEN = {
    "scheduling-affinity-110 s-a/p03",
    "scheduling-mixed-142 s-a/p14",
}


@cache
def decisions() -> tuple[tuple[str, dict, dict], ...]:
    """Return the name, the recorded answer and ours for every decision."""
    return tuple(
        (f"{line['id']} {expected['pod']}", _settled(expected), got)
        for line in vectors("scheduling")
        for expected, got in zip(line["expected"]["steps"], evaluate("scheduling", line["input"])["steps"], strict=True)
    )


def _settled(expected: dict) -> dict:
    """Return the recorded answer; a pod nominated to a node where none has to go was caught on its way there."""
    if expected["outcome"] == "Preempts" and expected.get("victims") == []:
        return {"pod": expected["pod"], "outcome": "Placed", "nodeAmongBest": expected["nominatedNode"]}
    return expected


def test_every_pod_is_placed_pending_gated_or_preempts_as_recorded():
    wrong = {
        name: (expected["outcome"], got["outcome"])
        for name, expected, got in decisions()
        if expected["outcome"] != got["outcome"]
    }
    assert wrong == {}


def test_every_message_is_the_recorded_one():
    wrong = {
        name: (expected["message"], got.get("message"))
        for name, expected, got in decisions()
        if "message" in expected and expected["message"] != got.get("message")
    }
    assert wrong == {}


def test_every_preemption_takes_the_recorded_node_and_victims():
    keys = ("nominatedNode", "victims")
    wrong = {
        name: (expected, got)
        for name, expected, got in decisions()
        if "victims" in expected and [expected[key] for key in keys] != [got.get(key) for key in keys]
    }
    assert wrong == {}


def test_every_recorded_node_is_among_those_with_the_highest_score():
    wrong = {
        name
        for name, expected, got in decisions()
        if "nodeAmongBest" in expected and expected["nodeAmongBest"] not in got["best"]
    }
    assert wrong == RECORDED_IN_BETWEEN


def test_most_decisions_leave_no_choice_so_that_agreeing_means_something():
    alone = sum(len(got["best"]) == 1 for _, expected, got in decisions() if expected["outcome"] == "Placed")
    assert alone > 1500
