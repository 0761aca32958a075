from __future__ import annotations

import pytest

from placement.clusters import expression, node, on_nodes, pod
from podqos.model.node import Taint
from podqos.model.pod import ObjectMeta, Workload
from podqos.placement.node_rules import named_nodes
from podqos.placement.place import PlacementSurroundings, Status, place
from podqos.placement.workloads import pods_of


def workload(kind: str, template=None, **properties: object) -> Workload:
    return Workload(kind, ObjectMeta("web", "default"), template or pod("web"), "spec.template", **properties)


def names(made) -> list[str]:
    return [one.metadata.name for one in made]


@pytest.mark.parametrize(
    ("kind", "replicas", "expected"),
    [
        ("Pod", None, ["web"]),
        ("Deployment", 3, ["web-0", "web-1", "web-2"]),
        ("Deployment", None, ["web-0"]),
        ("StatefulSet", 2, ["web-0", "web-1"]),
        ("ReplicaSet", 0, []),
        ("Job", 2, ["web-0", "web-1"]),
        ("Job", None, ["web-0"]),
        ("PodTemplate", None, []),
    ],
)
def test_a_workload_has_as_many_pods_as_it_says(kind, replicas, expected):
    assert names(pods_of(workload(kind, replicas=replicas))) == expected


def test_replicas_share_their_specification():
    first, second = pods_of(workload("Deployment", replicas=2))
    assert first.spec is second.spec
    assert first.metadata.labels is second.metadata.labels


def test_a_daemon_set_has_a_pod_for_every_node_that_suits_it_and_for_it_alone():
    nodes = (
        node("plain"),
        node("ssd", labels={"disk": "ssd"}),
        node("cordoned", labels={"disk": "ssd"}, unschedulable=True),
    )
    made = list(pods_of(workload("DaemonSet", pod("web", node_selector={"disk": "ssd"})), nodes))
    assert names(made) == ["web-ssd", "web-cordoned"]
    placement = place(made, PlacementSurroundings(nodes))
    assert [(outcome.status, outcome.node) for outcome in placement.outcomes] == [
        (Status.PLACED, "ssd"),
        (Status.PLACED, "cordoned"),
    ]


def test_a_daemon_set_runs_under_pressure_but_not_behind_other_taints():
    nodes = (
        node("pressed", conditions={"MemoryPressure": "True"}),
        node("tainted", taints=(Taint("dedicated", "gpu", "NoSchedule"),)),
    )
    assert names(pods_of(workload("DaemonSet"), nodes)) == ["web-pressed"]


def test_a_full_node_keeps_its_daemon_pod_waiting_instead_of_sending_it_elsewhere():
    nodes = (node("full", pods=0), node("empty"))
    placement = place(pods_of(workload("DaemonSet"), nodes), PlacementSurroundings(nodes))
    assert [outcome.node for outcome in placement.outcomes] == [None, "empty"]


def test_terms_of_the_templates_own_affinity_stay():
    nodes = (node("a", labels={"zone": "a"}), node("b", labels={"zone": "b"}))
    (made,) = pods_of(workload("DaemonSet", pod("web", affinity=on_nodes(expression("zone", "In", "b")))), nodes)
    assert named_nodes(made.spec) == {"b"}
    (term,) = made.spec.affinity.node_affinity.required.node_selector_terms
    assert term.match_expressions[0].key == "zone"
