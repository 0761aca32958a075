from __future__ import annotations

import pytest

from placement.clusters import ZONE, node, pod, spread
from podqos.model.node import Taint
from podqos.model.pod import Toleration
from podqos.model.scheduling import TopologySpreadConstraint
from podqos.model.selector import LabelSelector
from podqos.placement.place import PlacementSurroundings, place
from podqos.placement.reasons import MissingTopologyLabel, SkewTooLarge

pytestmark = pytest.mark.usefixtures("each_chooser")

WEB = {"app": "web"}


def zones(*names: str, **properties: object):
    return [node(f"n{index}", labels={ZONE: name}, **properties) for index, name in enumerate(names)]


def homes(pods, nodes) -> list[str | None]:
    placement = place(pods, PlacementSurroundings(tuple(nodes)))
    return [outcome.node for outcome in placement.outcomes]


def reasons(one_pod, others, nodes):
    """Return the first reason of every node against the pod that is pending."""
    placement = place([*others, one_pod], PlacementSurroundings(tuple(nodes)))
    (view,) = placement.pending
    return {refusal.node: refusal.first[0] for refusal in placement.refusal(view).nodes}


def test_pods_spread_evenly_over_zones_however_large_the_nodes():
    nodes = [node("big", cpu="64", memory="256Gi", labels={ZONE: "a"}), *zones("b")]
    pods = [pod(f"p{index}", "100m", labels=WEB, topology_spread_constraints=(spread(1),)) for index in range(4)]
    assert sorted(homes(pods, nodes)) == ["big", "big", "n0", "n0"]


def test_a_pod_that_would_make_it_too_uneven_waits():
    others = [pod("a", "100m", labels=WEB, on="n0")]
    full = [*zones("a"), node("n1", cpu="0", labels={ZONE: "b"})]
    found = reasons(pod("p", "100m", labels=WEB, topology_spread_constraints=(spread(1),)), others, full)
    assert found["n0"] == SkewTooLarge(ZONE, "a", 1, 0, 1)


def test_a_node_without_the_label_takes_no_part_and_no_pod():
    found = reasons(
        pod("p", labels=WEB, topology_spread_constraints=(spread(1),)), [pod("a", labels=WEB, on="n1")], [node("n1")]
    )
    assert found == {"n1": MissingTopologyLabel(ZONE)}


def test_of_a_node_that_lacks_one_of_the_labels_that_one_is_named_however_even_the_others_are():
    constraints = (spread(1), spread(1, key="rack"))
    found = reasons(pod("p", labels=WEB, topology_spread_constraints=constraints), [], zones("a"))
    assert found == {"n0": MissingTopologyLabel("rack")}


@pytest.mark.parametrize(
    ("other", "counts"),
    [
        pytest.param(pod("a", labels=WEB, on="n0"), True, id="one of them"),
        pytest.param(pod("a", labels=WEB, namespace="other", on="n0"), False, id="of another namespace"),
        pytest.param(pod("a", labels={"app": "db"}, on="n0"), False, id="of another app"),
        pytest.param(pod("a", labels=WEB, on="n0", leaving="2026-01-01T00:00:00Z"), False, id="on its way out"),
    ],
)
def test_only_pods_of_the_kind_and_namespace_that_stay_are_counted(other, counts):
    """Zone b is empty but full: a second pod of the kind in zone a would be one too many."""
    nodes = [*zones("a"), node("n1", pods=0, labels={ZONE: "b"})]
    one_pod = pod("p", labels=WEB, topology_spread_constraints=(spread(1),))
    assert (homes([other, one_pod], nodes)[1] is None) is counts


def test_a_pod_that_stays_counts_beside_one_with_the_same_labels_that_leaves():
    nodes = [*zones("a"), node("n1", pods=0, labels={ZONE: "b"})]
    others = [pod("a", labels=WEB, on="n0", leaving="2026-01-01T00:00:00Z"), pod("b", labels=WEB, on="n0")]
    assert homes([*others, pod("p", labels=WEB, topology_spread_constraints=(spread(1),))], nodes)[2] is None


@pytest.mark.parametrize(("min_domains", "placed"), [(None, True), (1, True), (2, False)])
def test_too_few_domains_count_as_one_that_is_empty(min_domains, placed):
    """With one zone of two, the smallest number of pods is zero whatever is there."""
    others = [pod("a", labels=WEB, on="n0")]
    one_pod = pod("p", labels=WEB, topology_spread_constraints=(spread(1, min_domains=min_domains),))
    assert (homes([*others, one_pod], zones("a"))[1] is not None) is placed


@pytest.mark.parametrize(("policy", "placed"), [("Honor", True), ("Ignore", False)])
def test_nodes_that_the_pod_cannot_use_are_left_out_unless_the_policy_says_otherwise(policy, placed):
    """The empty zone b is out of the pod's reach; counted in, it forbids a second pod in zone a."""
    others = [pod("a", labels=WEB, on="n0")]
    one_pod = pod(
        "p",
        labels=WEB,
        node_selector={ZONE: "a"},
        topology_spread_constraints=(spread(1, node_affinity_policy=policy),),
    )
    assert (homes([*others, one_pod], zones("a", "b"))[1] is not None) is placed


@pytest.mark.parametrize(("policy", "placed"), [("Honor", True), ("Ignore", False)])
def test_tainted_nodes_count_unless_the_policy_honours_taints(policy, placed):
    tainted = node("n9", labels={ZONE: "b"}, taints=(Taint("k", "v", "NoSchedule"),))
    others = [pod("a", labels=WEB, on="n0")]
    one_pod = pod("p", labels=WEB, topology_spread_constraints=(spread(1, node_taints_policy=policy),))
    assert (homes([*others, one_pod], [*zones("a"), tainted])[1] is not None) is placed


def test_nodes_without_taints_and_tolerated_ones_count_where_taints_are_honoured():
    taint = Taint("k", "v", "NoSchedule")
    others = [pod("a", labels=WEB, on="n0")]
    constraint = spread(1, node_taints_policy="Honor")
    for taints, tolerations in (((), ()), ((taint,), (Toleration("k", "Exists"),))):
        full = node("n1", cpu="0", labels={ZONE: "b"}, taints=taints)
        one_pod = pod("p", "1m", labels=WEB, topology_spread_constraints=(constraint,), tolerations=tolerations)
        assert homes([*others, one_pod], [*zones("a"), full])[1] is None


def test_a_pod_that_waits_has_its_turn_as_soon_as_one_arrives_that_any_of_its_constraints_counts():
    """Its zone has one pod too many until the second arrives in the other; the third would take its place."""
    of_tier = TopologySpreadConstraint(1, ZONE, "DoNotSchedule", LabelSelector({"tier": "x"}))
    waiting = pod(
        "waiting",
        "3",
        labels={**WEB, "tier": "x"},
        priority=10,
        node_selector={ZONE: "a"},
        topology_spread_constraints=(spread(1, node_affinity_policy="Ignore"), of_tier),
    )
    first = pod("first", labels=WEB, priority=100, on="n0")
    second = pod("second", labels=WEB, priority=5, node_selector={ZONE: "b"})
    third = pod("third", "3", node_selector={ZONE: "a"})
    placement = place([first, waiting, second, third], PlacementSurroundings(tuple(zones("a", "b"))))
    assert [outcome.node for outcome in placement.outcomes] == ["n0", "n0", "n1", None]
    assert placement.displacements == ()


def test_match_label_keys_count_only_pods_of_the_same_revision():
    constraint = spread(1, match_label_keys=("pod-template-hash",))
    old = [pod(f"old{index}", labels={**WEB, "pod-template-hash": "1"}, on="n0") for index in range(3)]
    new = pod("new", labels={**WEB, "pod-template-hash": "2"}, topology_spread_constraints=(constraint,))
    assert homes([*old, new], [*zones("a"), node("n1", cpu="1", memory="1Gi", labels={ZONE: "b"})])[3] is not None
    placement = place([*old, new], PlacementSurroundings((*zones("a"), node("n1", pods=0, labels={ZONE: "b"}))))
    assert placement.outcomes[3].node == "n0"


def test_a_preference_forbids_nothing():
    constraint = TopologySpreadConstraint(1, ZONE, "ScheduleAnyway", LabelSelector(WEB))
    others = [pod("a", labels=WEB, on="n0")]
    assert homes([*others, pod("p", labels=WEB, topology_spread_constraints=(constraint,))], zones("a"))[1] == "n0"
