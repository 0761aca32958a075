from __future__ import annotations

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from placement.clusters import clusters, near, node, pod, term
from podqos.errors import InvalidManifest
from podqos.model.node import LABEL_HOSTNAME
from podqos.model.scheduling import PodSchedulingGate
from podqos.placement.filters import lacking
from podqos.placement.place import Outcome, PlacementSurroundings, QueueOrder, Status, place
from podqos.placement.reasons import Insufficient


def outcomes(pods, *nodes) -> list[tuple[Status, str | None]]:
    return [(outcome.status, outcome.node) for outcome in place(pods, PlacementSurroundings(nodes)).outcomes]


@pytest.mark.parametrize(
    ("one_pod", "status", "home"),
    [
        pytest.param(pod("p"), Status.PLACED, "n0", id="placed"),
        pytest.param(pod("p", on="n0"), Status.BOUND, "n0", id="bound already"),
        pytest.param(pod("p", "99", on="n0"), Status.BOUND, "n0", id="bound however full the node"),
        pytest.param(pod("p", on="n7"), Status.ELSEWHERE, None, id="bound to a node that was not given"),
        pytest.param(pod("p", on="n0", phase="Succeeded"), Status.FINISHED, None, id="run to its end"),
        pytest.param(pod("p", "5"), Status.PENDING, None, id="too large"),
        pytest.param(pod("p", scheduling_gates=(PodSchedulingGate("g"),)), Status.GATED, None, id="gated"),
    ],
)
def test_every_pod_has_an_outcome(one_pod, status, home):
    assert outcomes([one_pod], node("n0")) == [(status, home)]


def test_of_what_a_node_does_not_have_there_is_nothing_and_nothing_is_used():
    found = lacking({"cpu": 1000, "example.com/gpu": 1}, {}, {"cpu": 999}, pods=0, allowed_pods=1)
    assert set(found) == {Insufficient("cpu", 1000, 0, 999), Insufficient("example.com/gpu", 1, 0, 0)}
    assert lacking({"cpu": 1000}, {}, {"cpu": 1000}, pods=0, allowed_pods=1) == ()


def test_a_finished_pod_takes_nothing():
    assert outcomes([pod("done", "4", on="n0", phase="Failed"), pod("p", "4")], node("n0"))[1] == (
        Status.PLACED,
        "n0",
    )


def test_higher_priorities_choose_first_and_outcomes_keep_the_order_given():
    pods = [pod("low", "4", priority=1), pod("high", "4", priority=9)]
    assert outcomes(pods, node("n0")) == [(Status.PENDING, None), (Status.PLACED, "n0")]


def test_among_equal_priorities_the_earlier_chooses_first():
    assert outcomes([pod("a", "4"), pod("b", "4")], node("n0"))[0] == (Status.PLACED, "n0")


def test_a_node_takes_no_more_pods_than_it_allows():
    assert outcomes([pod("a"), pod("b")], node("n0", pods=1))[1] == (Status.PENDING, None)


def test_a_refusal_tells_every_resource_that_is_missing_with_its_numbers():
    pods = [pod("there", "3", "1Gi", on="n0"), pod("p", "2", "9Gi")]
    placement = place(pods, PlacementSurroundings((node("n0", pods=1),)))
    (refusal,) = placement.refusal(placement.pending[0]).nodes
    assert refusal.reasons == (
        Insufficient("pods", 1, 1, 1),
        Insufficient("cpu", 2000, 3000, 4000),
        Insufficient("memory", 9 * 2**30, 2**30, 8 * 2**30),
    )
    assert [reason.unresolvable for reason in refusal.reasons] == [False, False, True]


def test_a_refusal_tells_what_later_filters_would_say_too():
    placement = place(
        [pod("p", "9", node_selector={"disk": "ssd"})], PlacementSurroundings((node("n0", unschedulable=True),))
    )
    (refusal,) = placement.refusal(placement.pending[0]).nodes
    assert [reason.plugin for reason in refusal.first] == ["NodeUnschedulable"]
    assert [reason.plugin for reason in refusal.reasons] == ["NodeUnschedulable", "NodeAffinity", "NodeResourcesFit"]


def test_an_overfull_node_still_takes_pods_that_ask_for_nothing_of_that():
    pods = [pod("huge", "99", on="n0"), pod("none"), pod("memory", memory="1Gi"), pod("cpu", "1m")]
    assert [status for status, _ in outcomes(pods, node("n0"))] == [
        Status.BOUND,
        Status.PLACED,
        Status.PLACED,
        Status.PENDING,
    ]


def test_without_nodes_everybody_waits():
    assert outcomes([pod("p")]) == [(Status.PENDING, None)]


def test_pods_of_one_workload_wait_for_one_and_the_same_reason():
    template = pod("p", "9", labels={"app": "web"})
    replicas = [replace(template, metadata=replace(template.metadata, name=f"p{index}")) for index in range(3)]
    again = [pod(f"q{index}", "9", labels={"app": "web"}) for index in range(2)]
    placement = place(
        [*replicas, *again, pod("other", "9", labels={"app": "db"})], PlacementSurroundings((node("n0"),))
    )
    assert [[view.pod.metadata.name for view in group] for group in placement.alike()] == [
        ["p0", "p1", "p2", "q0", "q1"],
        ["other"],
    ]


@pytest.mark.parametrize(
    ("pods", "nodes", "message"),
    [
        ([pod("a"), pod("a")], [node("n")], "2 pods have the same name, default/a"),
        ([], [node("n"), node("n")], "2 nodes have the same name, n"),
        ([], [node("")], "a Node without a name"),
    ],
)
def test_names_must_be_unique(pods, nodes, message):
    with pytest.raises(InvalidManifest, match=message):
        place(pods, PlacementSurroundings(tuple(nodes)))


def test_progress_is_told_now_and_then():
    told = []
    place([pod(f"p{index}") for index in range(600)], PlacementSurroundings((node("n", pods=1),)), progress=told.append)
    assert told == [256, 512]


@given(clusters())
@settings(max_examples=50, deadline=None)
def test_no_node_is_filled_beyond_what_it_has_by_placing(cluster):
    pods, surroundings = cluster
    placement = place(pods, surroundings)
    placed = {outcome.pod for outcome in placement.outcomes if outcome.status is Status.PLACED}
    for state in placement.cluster.states:
        if placed & set(state.pods):
            asked = {name for key in placed & set(state.pods) for name in state.pods[key].shape.demand.requested}
            positive = {
                name for name in asked if any(_wants(state.pods[key], name) for key in placed & set(state.pods))
            }
            assert all(state.requested[name] <= state.allocatable.get(name, 0) for name in positive)
            assert len(state.pods) <= state.allowed_pods


def _wants(view, name: str) -> bool:
    return view.shape.demand.requested.get(name, 0) > 0


@given(clusters())
@settings(max_examples=50, deadline=None)
def test_a_pending_pod_is_refused_by_every_node_and_can_displace_nobody(cluster):
    pods, surroundings = cluster
    for order in QueueOrder:
        placement = place(pods, surroundings, order=order)
        for view in placement.pending:
            assert all(node_refusal.first for node_refusal in placement.refusal(view).nodes)


@given(clusters())
@settings(max_examples=50, deadline=None)
def test_the_order_in_which_nodes_are_listed_does_not_matter(cluster):
    pods, surroundings = cluster
    turned = replace(surroundings, nodes=surroundings.nodes[::-1])
    assert place(pods, surroundings).outcomes == place(pods, turned).outcomes


def test_an_outcome_is_a_plain_value():
    assert place([pod("p")], PlacementSurroundings((node("n"),))).outcomes == (
        Outcome("default/p", Status.PLACED, "n"),
    )


def test_a_pending_pod_is_tried_as_soon_as_another_has_left_and_before_later_arrivals():
    """``large`` displaces ``small`` and leaves room, which ``waiting`` takes before ``late`` comes."""
    pods = [
        pod("small", "4", priority=0),
        pod("waiting", "1", priority=0, preemption_policy="Never"),
        pod("large", "3", priority=10),
        pod("late", "1", priority=0),
    ]
    placement = place(pods, PlacementSurroundings((node("n"),)), order=QueueOrder.ARRIVAL, bare={"default/small"})
    assert [outcome.status for outcome in placement.outcomes] == [
        Status.DISPLACED,
        Status.PLACED,
        Status.PLACED,
        Status.PENDING,
    ]


def test_a_pod_that_must_be_near_another_is_tried_as_soon_as_that_one_has_come():
    pods = [
        pod("follower", "1", affinity=near(term("web", LABEL_HOSTNAME))),
        pod("web", "3", labels={"app": "web"}),
        pod("late", "1"),
    ]
    placement = place(pods, PlacementSurroundings((node("n"),)), order=QueueOrder.ARRIVAL)
    assert [outcome.status for outcome in placement.outcomes] == [
        Status.PLACED,
        Status.PLACED,
        Status.PENDING,
    ]
