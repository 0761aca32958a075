from __future__ import annotations

import pytest

from placement.clusters import ZONE, away, near, node, pod, term
from podqos.model.node import LABEL_HOSTNAME
from podqos.model.selector import LabelSelector
from podqos.placement.outcome import Status
from podqos.placement.place import PlacementSurroundings, place
from podqos.placement.reasons import AffinityUnmet, AntiAffinityViolated, ExistingAntiAffinity

pytestmark = pytest.mark.usefixtures("each_chooser")

NODES = (node("n0", labels={ZONE: "a"}), node("n1", labels={ZONE: "a"}), node("n2", labels={ZONE: "b"}))
WEB = {"app": "web"}


def homes(*pods, nodes=NODES, **surroundings) -> list[str | None]:
    return [outcome.node for outcome in place(pods, PlacementSurroundings(nodes, **surroundings)).outcomes]


def reasons(*pods, nodes=NODES) -> dict[str, object]:
    placement = place(pods, PlacementSurroundings(nodes))
    (view,) = placement.pending
    return {refusal.node: refusal.first[0] for refusal in placement.refusal(view).nodes}


def test_a_pod_goes_where_the_pods_it_wants_to_be_near_to_are():
    assert homes(pod("db", labels={"app": "db"}, on="n2"), pod("web", affinity=near(term("db"))))[1] == "n2"


def test_near_is_the_value_of_the_topology_label_not_the_node():
    crowded = pod("db", "4", labels={"app": "db"}, on="n0")
    assert homes(crowded, pod("web", "1", affinity=near(term("db"))))[1] == "n1"


def test_without_such_pods_a_pod_waits_and_the_reason_says_where():
    found = reasons(pod("web", affinity=near(term("db"))))
    assert found == {"n0": AffinityUnmet(ZONE, "a"), "n1": AffinityUnmet(ZONE, "a"), "n2": AffinityUnmet(ZONE, "b")}
    assert all(reason.unresolvable for reason in found.values())


def test_the_first_pod_of_a_group_that_wants_to_be_together_may_go_anywhere_with_the_label():
    nodes = (node("bare"), *NODES)
    web = [pod(f"web{index}", "1", labels=WEB, affinity=near(term("web"))) for index in range(3)]
    assert homes(*web, nodes=nodes) == ["n0", "n1", "n0"]


def test_it_is_not_the_first_of_its_group_where_one_of_them_has_any_of_the_labels():
    """The other pod's node has a zone and no rack: nobody may start a new group elsewhere."""
    nodes = (node("n0", labels={ZONE: "a"}), node("n1", labels={ZONE: "b", "rack": "r"}))
    together = near(term("web"), term("web", "rack"))
    assert homes(pod("first", labels=WEB, on="n0"), pod("p", labels=WEB, affinity=together), nodes=nodes)[1] is None
    assert homes(pod("p", labels=WEB, affinity=together), nodes=nodes) == ["n1"]


def test_all_terms_must_mean_the_same_pod():
    both = near(term("db"), term("cache"))
    db, cache = (pod(app, labels={"app": app}, on="n0") for app in ("db", "cache"))
    assert homes(db, cache, pod("web", affinity=both))[2] is None


def test_anti_affinity_keeps_replicas_apart():
    apart = away(term("web", LABEL_HOSTNAME))
    web = [pod(f"web{index}", labels=WEB, affinity=apart) for index in range(4)]
    assert homes(*web) == ["n0", "n1", "n2", None]
    assert set(reasons(*web).values()) == {
        AntiAffinityViolated(LABEL_HOSTNAME, "n0"),
        AntiAffinityViolated(LABEL_HOSTNAME, "n1"),
        AntiAffinityViolated(LABEL_HOSTNAME, "n2"),
    }


def test_anti_affinity_works_both_ways():
    """The pod itself asks for nothing, but those that are there do."""
    jealous = [pod(f"j{index}", on=f"n{index}", affinity=away(term("web"))) for index in (0, 2)]
    found = reasons(*jealous, pod("web", labels=WEB))
    assert found["n1"] == ExistingAntiAffinity(ZONE, "a")
    assert found["n2"] == ExistingAntiAffinity(ZONE, "b")


@pytest.mark.parametrize(
    ("scope", "placed"),
    [
        pytest.param({}, False, id="by default the pod's own namespace"),
        pytest.param({"namespaces": ("data",)}, True, id="listed"),
        pytest.param({"namespace_selector": LabelSelector({"team": "x"})}, True, id="selected by label"),
        pytest.param({"namespace_selector": LabelSelector({"team": "y"})}, False, id="not selected"),
        pytest.param({"namespace_selector": LabelSelector()}, True, id="an empty selector means all"),
        pytest.param(
            {"namespace_selector": LabelSelector({"kubernetes.io/metadata.name": "data"})}, True, id="by its name"
        ),
    ],
)
def test_a_term_speaks_of_the_namespaces_it_names(scope, placed):
    db = pod("db", labels={"app": "db"}, namespace="data", on="n2")
    web = pod("web", affinity=near(term("db", **scope)))
    assert (homes(db, web, namespaces={"data": {"team": "x"}})[1] == "n2") is placed


def test_match_label_keys_mean_pods_of_the_same_revision():
    apart = away(term("web", LABEL_HOSTNAME, match_label_keys=("hash",)))
    old = [pod(f"old{index}", labels={**WEB, "hash": "1"}, on=f"n{index}") for index in range(3)]
    assert homes(*old, pod("new", labels={**WEB, "hash": "2"}, affinity=apart))[3] is not None
    assert homes(*old, pod("same", labels={**WEB, "hash": "1"}, affinity=apart))[3] is None


def test_mismatch_label_keys_mean_pods_of_other_tenants():
    apart = away(term("web", LABEL_HOSTNAME, mismatch_label_keys=("tenant",)))
    own = pod("own", labels={**WEB, "tenant": "a"}, on="n0")
    foreign = [pod(f"f{index}", labels={**WEB, "tenant": "b"}, on=f"n{index}") for index in (1, 2)]
    assert homes(own, *foreign, pod("new", labels={**WEB, "tenant": "a"}, affinity=apart))[3] == "n0"


def test_a_pod_that_arrives_later_lets_an_earlier_one_in():
    """The scheduler tries pending pods again when something has changed."""
    placement = place(
        [pod("web", affinity=near(term("db"))), pod("db", labels={"app": "db"})], PlacementSurroundings(NODES)
    )
    assert [outcome.status for outcome in placement.outcomes] == [Status.PLACED, Status.PLACED]
    assert not placement.pending
