"""What happens while the victims of a preemption stop: their room is kept, and others preempt elsewhere.

All nodes have 1000Mi, and every pod takes three seconds to stop. Worked by hand from Kubernetes v1.36.4.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from eviction.nodes import pod
from podqos.model.disruption import PodDisruptionBudget, PodDisruptionBudgetSpec
from podqos.model.pod import ObjectMeta
from podqos.model.profile import profile_for
from podqos.model.scheduling import Affinity, PodAffinity, PodAffinityTerm
from podqos.model.selector import LabelSelector
from podqos.model.time_units import SECOND_US
from podqos.sim.run import simulate
from podqos.sim.scenario.scenario import NodeGroup, Options
from sim.worlds import lines, node, scenario, using, workload

ZONE = "topology.kubernetes.io/zone"
STOPS = Options(container_stop_us=3 * SECOND_US)


def app(name: str, memory: int, priority: int = 0, at: int = 10, **fields):
    """Return a pod that looks for a node; ``on`` binds it to one, ``spec`` is its own."""
    on, spec = fields.pop("on", None), fields.pop("spec", {})
    made = pod(name, f"memory={memory}Mi" if memory else "", priority=priority, **spec)
    labelled = replace(made, metadata=replace(made.metadata, labels={"app": name}))
    there = {"nodes": (on,), "arrives_us": 0} if on else {"nodes": (), "arrives_us": at * SECOND_US}
    return workload(labelled, using(1), **{**there, **fields})


def happened(*works, count: int = 2, **fields) -> list[tuple[float, str, str]]:
    """Return when which pods were preempted and placed."""
    groups = (NodeGroup(node(labels={ZONE: "z"}), count),)
    done = simulate(scenario(*works, nodes=groups, options=STOPS, **fields), check=True)
    return [(time, kind, key.partition("/")[2]) for time, kind, key in lines(done, "Preempted", "Placed")]


def near(kind: str, other: str, key: str) -> dict[str, Affinity]:
    """Return a required affinity (``pod_affinity``) or anti-affinity to the pods of another app."""
    term = PodAffinityTerm(topology_key=key, label_selector=LabelSelector(match_labels={"app": other}))
    return {"affinity": Affinity(**{kind: PodAffinity(required=(term,))})}


def test_a_second_pod_preempts_on_another_node_at_once():
    """The first is nominated to n-0 at 10 s; beside it (600Mi) the second (600Mi) fits nowhere there.

    On n-1 it does without low-1, which is deleted in the same second. Source: pkg/scheduler/framework/preemption
    preemption.go (Preempt): only the pod that is nominated waits for its victims.
    """
    high = app("high", 600, 1000, replicas=2)
    assert happened(app("low-0", 600, on="n-0"), app("low-1", 600, on="n-1"), high) == [
        (10.0, "Preempted", "low-0"),
        (10.0, "Preempted", "low-1"),
        (13.0, "Placed", "high-0"),
        (13.0, "Placed", "high-1"),
    ]


def test_a_second_pod_preempts_on_the_same_node_beside_the_first():
    """1000Mi, two of 450Mi there, two of 450Mi wanted: the first deletes one and the second the other.

    With the nominated pod as if it ran, and both low pods away, 900Mi of 1000Mi are taken; neither low pod is spared.
    The one that stops already is a victim again, but is deleted once. Source: prepareCandidateAsync (executor.go).
    """
    low = app("low", 450, on="n", replicas=2)
    assert happened(low, app("high", 450, 1000, replicas=2), count=1) == [
        (10.0, "Preempted", "low-1"),
        (10.0, "Preempted", "low-0"),
        (13.0, "Placed", "high-0"),
        (13.0, "Placed", "high-1"),
    ]


def test_a_nominated_pod_preempts_no_others_while_its_victims_stop():
    """At 11 s it is tried again, because a pod comes; low-1 would do as well, but low-0 still stops.

    Source: default_preemption.go (PodEligibleToPreemptOthers).
    """
    works = app("low-0", 600, on="n-0"), app("low-1", 600, 5, on="n-1"), app("high", 600, 1000), app("late", 10, at=11)
    assert happened(*works) == [
        (10.0, "Preempted", "low-0"),
        (11.0, "Placed", "late"),
        (13.0, "Placed", "high"),
    ]


@pytest.mark.parametrize(("version", "second"), [((1, 36), 13.0), ((1, 34), 13.0), ((1, 33), 11.0)])
def test_a_more_important_pod_takes_the_room_that_was_made_for_another(version, second):
    """``mid`` preempts low-0 at 10 s. ``high`` comes at 11 s and needs no more victims than that one.

    So it deletes nobody, and since 1.34 ``mid`` stays nominated (prepareCandidateAsync returns before it clears lower
    nominations) and waits for low-0; at 13 s ``high`` has the place, and ``mid`` preempts low-1. Up to 1.33 the
    nomination ends at 11 s, and ``mid`` preempts low-1 at once.
    """
    works = app("low-0", 600, on="n-0"), app("low-1", 600, 5, on="n-1"), app("mid", 600, 100)
    assert happened(*works, app("high", 600, 1000, at=11), profile=profile_for(version)) == sorted(
        [
            (10.0, "Preempted", "low-0"),
            (second, "Preempted", "low-1"),
            (13.0, "Placed", "high"),
            (second + 3, "Placed", "mid"),
        ],
        key=lambda line: (line[0], line[1] == "Preempted"),
    )


def test_a_pod_that_its_user_deleted_is_not_preempted_as_well():
    """It is deleted at 9 s and ends at 12 s: the room is awaited, and nobody is deleted a second time."""
    low = app("low", 600, on="n", deleted_us=9 * SECOND_US)
    assert happened(low, app("high", 600, 1000), count=1) == [(12.0, "Placed", "high")]


def test_a_pod_that_wants_to_be_near_a_nominated_pod_waits_until_it_runs():
    """It requests nothing, so there is room at 10 s, and with the nominated pod as if it ran its affinity is met.

    Nodes are asked a second time without it. Source: framework.go (RunFilterPluginsWithNominatedPods).
    """
    friend = app("friend", 0, 1000, spec=near("pod_affinity", "high", "kubernetes.io/hostname"))
    assert happened(app("low", 600, on="n"), app("high", 600, 1000), friend, count=1) == [
        (10.0, "Preempted", "low"),
        (13.0, "Placed", "high"),
        (13.0, "Placed", "friend"),
    ]


def test_what_is_nominated_to_another_node_of_the_zone_does_not_count():
    """``shy`` avoids the zone of ``high``, which is nominated to n-0: n-1 is asked without it, and takes ``shy``.

    Source: framework.go (addGENominatedPods: those of the one node).
    """
    works = app("low", 600, on="n-0"), app("equal", 600, 1000, on="n-1"), app("high", 600, 1000)
    shy = app("shy", 10, 1000, at=11, spec=near("pod_anti_affinity", "high", ZONE))
    assert happened(*works, shy)[:2] == [(10.0, "Preempted", "low"), (11.0, "Placed", "shy")]


def test_what_a_budget_allows_counts_the_victims_of_the_same_second():
    """One of two may go: the first preempts low-0 within the budget, and the second breaks it."""
    selector = LabelSelector(match_labels={"app": "low"})
    budget = PodDisruptionBudget(ObjectMeta("low", "default"), PodDisruptionBudgetSpec(selector, min_available=1))
    low = app("low", 600, on="n-0", replicas=2)
    works = replace(low, nodes=("n-0", "n-1")), app("high", 600, 1000, replicas=2)
    groups = (NodeGroup(node(), 2),)
    done = simulate(scenario(*works, nodes=groups, options=STOPS, budgets=(budget,)), check=True)
    preempted = [entry for entry in done.entries if entry.kind == "Preempted"]
    assert [(entry.pod, entry.because.breaks_budget) for entry in preempted] == [
        ("default/low-0", False),
        ("default/low-1", True),
    ]
