from __future__ import annotations

import pytest

from placement.clusters import ZONE, away, near, node, pod, spread, term
from podqos.model.node import LABEL_HOSTNAME, Taint
from podqos.model.profile import profile_for
from podqos.model.scheduling import ContainerPort
from podqos.placement.place import PlacementSurroundings, place
from podqos.text.placement import no_node_message, refusal_message

TAINT = Taint("dedicated", "gpu", "NoSchedule")
WEB = {"app": "web"}


def message(one_pod, *nodes, others=(), **surroundings) -> str:
    placement = place([*others, one_pod], PlacementSurroundings(nodes, **surroundings))
    (view,) = placement.pending
    return refusal_message(placement.refusal(view))


def test_reasons_are_counted_over_the_nodes_and_sorted_as_text():
    nodes = [node(f"n{index}", cpu="1") for index in range(3)] + [
        node(f"t{index}", taints=(TAINT,)) for index in range(2)
    ]
    assert message(pod("p", "2"), *nodes) == (
        "0/5 nodes are available: 2 node(s) had untolerated taint(s), 3 Insufficient cpu. "
        "no new claims to deallocate, preemption: 0/5 nodes are available: "
        "5 Preemption is not helpful for scheduling."
    )


def test_a_node_that_lacks_two_resources_counts_for_both():
    assert no_node_message(2, ["Insufficient cpu", "Insufficient memory", "Insufficient cpu"]) == (
        "0/2 nodes are available: 1 Insufficient memory, 2 Insufficient cpu."
    )


def test_without_nodes_the_message_is_another():
    assert message(pod("p")) == "no nodes available to schedule pods"


def test_a_pod_that_never_preempts_is_told_so():
    others = (pod("low", "4", on="n0"),)
    asked = pod("p", "1", priority=9, preemption_policy="Never")
    assert message(asked, node("n0"), others=others).endswith("preemption: not eligible due to preemptionPolicy=Never.")


def test_nobody_to_displace_has_its_own_words():
    assert message(pod("p", "1"), node("n0"), others=(pod("same", "4", on="n0"),)).endswith(
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


@pytest.mark.parametrize(
    ("asked", "one_node", "others", "text"),
    [
        (pod("p"), node("n", pods=0), (), "1 Too many pods"),
        (pod("p"), node("n", unschedulable=True), (), "1 node(s) were unschedulable"),
        (pod("p"), node("n", taints=(TAINT,)), (), "1 node(s) had untolerated taint(s)"),
        (pod("p", node_selector=WEB), node("n"), (), "1 node(s) didn't match Pod's node affinity/selector"),
        (
            pod("p", ports=(ContainerPort(1, 80),)),
            node("n"),
            (pod("q", ports=(ContainerPort(1, 80),), on="n"),),
            "1 node(s) didn't have free ports for the requested pod ports",
        ),
        (
            pod("p", topology_spread_constraints=(spread(1),)),
            node("n"),
            (),
            "1 node(s) didn't match pod topology spread constraints (missing required label)",
        ),
        (
            pod("p", labels=WEB, topology_spread_constraints=(spread(1, min_domains=2),)),
            node("n", labels={ZONE: "a"}),
            (pod("q", labels=WEB, on="n"),),
            "1 node(s) didn't match pod topology spread constraints",
        ),
        (pod("p", affinity=near(term("db"))), node("n"), (), "1 node(s) didn't match pod affinity rules"),
        (
            pod("p", affinity=away(term("web", LABEL_HOSTNAME))),
            node("n"),
            (pod("q", labels=WEB, on="n"),),
            "1 node(s) didn't match pod anti-affinity rules",
        ),
        (
            pod("p", labels=WEB),
            node("n"),
            (pod("q", affinity=away(term("web", LABEL_HOSTNAME)), on="n"),),
            "1 node(s) didn't satisfy existing pods anti-affinity rules",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_reason_has_the_schedulers_words(asked, one_node, others, text):
    assert message(asked, one_node, others=others).startswith(f"0/1 nodes are available: {text}. ")


def test_before_1_12_conditions_had_their_own_words():
    pressed = node("n", conditions={"DiskPressure": "True"})
    assert "1 node(s) had disk pressure." in message(pod("p"), pressed, profile=profile_for((1, 11)))
