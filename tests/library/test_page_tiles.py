"""The figures on top of the cluster view: none looks calm that is not, whatever the source."""

from __future__ import annotations

import json

import pytest

from browser.fleet import fleet
from podqos.web.ui.pages import page_about
from podqos.web.ui.source_files import read_given, read_paths

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "worker-1"},
    "status": {
        "capacity": {"memory": "64Gi", "cpu": "16", "pods": "110"},
        "allocatable": {"memory": "64Gi", "cpu": "16", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


def pod(name, resources=None, node="worker-1"):
    spec = {"containers": [{"name": "main", "image": "web", "resources": resources or {}}]}
    spec |= {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": name},
        "spec": spec,
        "status": {"phase": "Running"},
    }


def tiles(*objects):
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    return shown(read_given({"objects.json": text.encode()}))


def shown(source):
    """Return value, note and kind of the tiles by what they count."""
    return {tile.name: (tile.value, tile.note, str(tile.kind)) for tile in page_about(source).cluster().tiles}


LIMITED = {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}


def test_limits_that_leave_out_pods_without_one_say_how_many():
    found = tiles(NODE, pod("web", LIMITED), *(pod(f"free-{number}") for number in range(3)))
    assert found["pods without a memory limit"] == ("3", "of 4; limits of the others: <0.1× allocatable", "warned")
    assert "memory limits" not in found


def test_limits_of_all_pods_are_a_ratio_and_slightly_more_than_one_is_not_one():
    assert tiles(NODE, pod("web", LIMITED))["memory limits"] == ("<0.1×", "not overcommitted", "")
    high = {"requests": {"memory": "1Gi"}, "limits": {"memory": "65Gi"}}
    assert tiles(NODE, pod("web", high))["memory limits"] == ("1.02×", "overcommitted", "warned")


def test_where_no_pod_has_a_limit_nothing_but_the_memory_of_the_node_stops_them():
    found = tiles(NODE, pod("free"))
    assert found["pod without a memory limit"] == ("1", "nothing but the node's memory stops them", "warned")


def test_more_pods_than_a_node_can_run_are_an_alarm():
    found = tiles(NODE, *(pod(f"web-{number}", LIMITED) for number in range(60)))
    assert found["pods"][2] == ""
    found = tiles(NODE, *(pod(f"web-{number}", {"limits": {"memory": "10Mi"}}) for number in range(111)))
    assert found["pods"] == ("111", "worker-1 has 111, but can run only 110", "alarm")


def test_requests_beyond_what_is_allocatable_are_an_alarm_and_pods_without_one_are_counted():
    found = tiles(NODE, pod("web", {"requests": {"memory": "65Gi"}}), pod("free"))
    note = "of 64Gi allocatable, does not fit, 1 of 2 pods requests none"
    assert found["memory requested"] == ("102 %", note, "alarm")


def test_pods_without_a_node_are_said_to_be_not_scheduled():
    found = tiles(NODE, pod("web", LIMITED), pod("waits", LIMITED, node=""))
    assert found["pods"] == ("2", "1 not scheduled", "warned")


def test_usage_that_is_assumed_is_said_to_be_where_no_node_seems_to_evict():
    assert tiles(NODE, pod("web", LIMITED))["nodes evicting"] == ("0", "usage is assumed", "")


def test_a_node_past_its_threshold_by_assumed_usage_is_not_said_to_evict():
    found = tiles(NODE, pod("web", {"requests": {"memory": "70Gi"}}))
    assert found["node over the threshold"] == ("1", "past the eviction threshold, usage is assumed", "alarm")
    assert found["node"] == ("1", "1 without a kill order", "warned")
    assert not any("first victim" in name for name in found)


def test_kubelet_and_kernel_that_choose_different_pods_are_two_first_victims():
    found = tiles(
        NODE,
        {
            **pod("low", {"requests": {"memory": "1Gi"}, "limits": {"memory": "1Gi"}}),
            "spec": {
                "nodeName": "worker-1",
                "priority": -10,
                "containers": [
                    {
                        "name": "main",
                        "image": "web",
                        "resources": {
                            "requests": {"memory": "1Gi", "cpu": "1"},
                            "limits": {"memory": "1Gi", "cpu": "1"},
                        },
                    }
                ],
            },
        },
        pod("free", {"requests": {"memory": "1Gi"}}),
    )
    assert found["first victims"][0] == "2"


def test_manifests_without_a_node_say_that_theirs_is_assumed():
    found = tiles(pod("web", LIMITED, node=""))
    assert found["node (assumed)"] == ("1", "", "")
    assert found["pod"] == ("1", "0 BestEffort", "")


def test_a_node_without_pods_has_no_figures_about_them():
    found = tiles(NODE)
    assert set(found) == {"node", "pods", "memory requested"}


def test_many_nodes_say_on_how_many_kubelet_and_kernel_differ():
    found = shown(read_given({"fleet.json": fleet(40, 4).encode()}))
    assert found["nodes"] == ("4", "1 with conditions", "warned")
    [name] = [name for name in found if "killed first" in name]
    assert name == "of 4 nodes: evicted and OOM-killed first differ"


@pytest.mark.parametrize("scenario", ["race", "oom-by-class"])
def test_a_scenario_states_its_usage(scenario):
    [note] = [note for name, (_, note, _) in shown(read_paths([scenario])).items() if name.endswith("evicting")]
    assert "assumed" not in note
