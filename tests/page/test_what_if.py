"""What-if, and the container whose growth is worst."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from podqos.errors import InputError
from podqos.page.pod import PodStanding
from podqos.page.what_if import ForecastRequest, KubeletEdit, PodEdit, ResizeWait, WhatIf
from podqos.questions.admit import admit
from podqos.questions.place import place
from podqos.questions.rank import rank
from podqos.serve.sources import read_given, read_paths
from podqos.serve.work import page_about


def node(name, memory="4Gi", **spec):
    amounts = {"cpu": "4", "memory": memory, "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def pod(name, at, memory="1Gi", limit=None, *, owner="", priority=0, cpu="100m"):
    resources = {"requests": {"memory": memory, "cpu": cpu}} | ({"limits": {"memory": limit}} if limit else {})
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}"}
    if owner:
        reference = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": f"{owner}-5d",
            "uid": "u",
            "controller": True,
        }
        metadata |= {"ownerReferences": [reference], "labels": {"app": owner, "pod-template-hash": "5d"}}
    spec = {
        "nodeName": at,
        "priority": priority,
        "containers": [{"name": "main", "image": "a:1", "resources": resources}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


def deployment(name, replicas, memory="1Gi"):
    container = {"name": "main", "image": "a:1", "resources": {"requests": {"memory": memory, "cpu": "100m"}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def quota(memory):
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "shop"},
        "spec": {"hard": {"requests.memory": memory}},
    }


def given(*items):
    return {"all.json": json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()}


def page(*items):
    return page_about(read_given(given(*items)))


def request(name, memory, **more):
    return PodEdit(f"shop/{name}", "main", {"memory": memory}, **more)


THREE = [node("a"), node("b"), node("c")]
WEB = [pod("web-1", "a", owner="web"), pod("web-2", "b", owner="web")]


def test_replicas_change_on_all_nodes_and_one_alone_where_that_is_asked():
    shown = page(*THREE, *WEB, pod("other", "b"))
    view = shown.what_if(WhatIf(edits=(request("web-1", "512Mi"),), is_whole=True))
    (edited,) = view.edited
    assert (edited.pods, edited.nodes) == (2, 2)
    assert [each.node for each in view.nodes] == ["a", "b"]
    assert view.node == "a", "that of the pod that is named"
    alone = shown.what_if(WhatIf(edits=(request("web-1", "512Mi", alone=True),), is_whole=True))
    assert [(each.pods, each.nodes) for each in alone.edited] == [(1, 1)]
    assert [each.node for each in alone.nodes] == ["a"]


def test_the_orders_of_every_touched_node_are_those_of_rank():
    shown = page(*THREE, *WEB, pod("small", "b", "64Mi"), pod("large", "b", "2Gi"))
    edits = (request("web-1", "1Mi"),)
    changed = [*THREE, *(pod(f"web-{n}", at, "1Mi", owner="web") for n, at in ((1, "a"), (2, "b")))]
    expected = page(*changed, pod("small", "b", "64Mi"), pod("large", "b", "2Gi"))
    for name in ("a", "b"):
        view = shown.what_if(WhatIf(node=name, edits=edits))
        before = shown.nodes.nodes[name].state
        used = {entry.pod.key: entry for entry in before.snapshot.pods}
        state = expected.nodes.nodes[name].state
        entries = tuple(_with_usage(entry, used[entry.pod.key]) for entry in state.snapshot.pods)
        again = rank(_with_pods(state, entries))
        assert [each.pod for each in view.pods] == [each.pod for each in again.eviction_order]


def _with_usage(entry, other):
    return replace(other, pod=entry.pod)


def _with_pods(state, pods):
    return replace(state, snapshot=replace(state.snapshot, pods=pods))


def test_safer_and_at_risk_count_pods_of_all_touched_nodes_once_that_is_asked():
    shown = page(*THREE, *WEB, pod("x", "a", "10Mi"), pod("y", "b", "10Mi"))
    edits = (PodEdit("shop/web-1", priority=1000),)
    first = shown.what_if(WhatIf(edits=edits))
    assert not first.is_whole
    assert [each.safer for each in first.nodes] == [1, None]
    whole = shown.what_if(WhatIf(edits=edits, is_whole=True))
    assert whole.is_whole
    assert (whole.safer, whole.at_risk) == (2, 2), "a web each goes later, and a neighbour each sooner"
    assert [(each.node, each.safer, each.at_risk) for each in whole.nodes] == [("a", 1, 1), ("b", 1, 1)]


def test_a_pod_that_no_longer_fits_goes_where_the_scheduler_puts_it():
    items = [*THREE, *WEB, pod("big", "a", "2Gi"), pod("half", "b", "1Gi")]
    view = page(*items).what_if(WhatIf(edits=(request("web-1", "2500Mi", alone=True),), is_whole=True))
    (moved,) = view.moved
    assert (moved.pod, moved.node, moved.resize) == ("shop/web-1", "a", ResizeWait.DEFERRED)
    assert moved.lacks == "memory: requests 2500Mi, 2Gi of 4Gi already requested"
    anew = pod("web-1", "", "2500Mi", owner="web")
    expected = place(read_given(given(*THREE, *items[4:], items[3], anew)).objects)
    assert moved.to == next(each.node for each in expected.pods if each.name == "web-1") == "c"
    standing = {each.pod: each for each in view.pods}["shop/web-1"]
    assert standing.before is not None
    assert standing.after is None, "it has left the node"
    assert [each.node for each in view.nodes] == ["a", "c"]
    assert (view.safer, view.at_risk) == (0, 0), "those that stay keep their order"
    there = page(*items).what_if(WhatIf(node="c", edits=(request("web-1", "2500Mi", alone=True),)))
    assert [(each.pod, each.before) for each in there.pods] == [("shop/web-1", None)]


def test_a_pod_that_fits_nowhere_runs_on_as_it_is_and_the_scheduler_says_why():
    shown = page(*THREE, *WEB)
    (before,) = (each for each in shown.cluster().pods if each.name == "web-1")
    view = shown.what_if(WhatIf(edits=(request("web-1", "5Gi", alone=True),), is_whole=True))
    (moved,) = view.moved
    assert moved.to is None
    assert moved.message.startswith("0/3 nodes are available: 3 Insufficient memory")
    assert moved.resize is ResizeWait.INFEASIBLE, "no node has so much"
    assert {each.pod: each.after.qos_class for each in view.pods} == {"shop/web-1": before.qos_class}


def test_a_higher_priority_preempts_and_the_victim_is_named():
    full = [pod(f"full-{at}", at, "3Gi") for at in "bc"]
    items = [*THREE, pod("web-1", "a", "1Gi", priority=1000), pod("big", "a", "2Gi", priority=1000), *full]
    view = page(*items).what_if(WhatIf(edits=(request("web-1", "3Gi"),), is_whole=True))
    (preempted,) = view.preempted
    assert preempted.by == "shop/web-1"
    assert view.moved[0].to == preempted.node


def test_a_node_that_is_only_assumed_has_room_for_everything():
    view = page(deployment("web", 2)).what_if(WhatIf(edits=(request("web-0", "30Gi"),)))
    assert view.moved == ()


@pytest.mark.parametrize(("memory", "is_in_place"), [("2Gi", True), (None, False)])
def test_whether_running_pods_can_have_it_in_place(memory, is_in_place):
    view = page(*THREE, *WEB).what_if(WhatIf(edits=(request("web-1", memory),)))
    resize = view.edited[0].resize
    assert (resize.outcome == "InPlace") is is_in_place
    assert resize.text.startswith("running pods can be resized" if is_in_place else "needs new pods")


def test_the_patch_of_replicas_that_run_is_one_of_what_made_them():
    maker = deployment("web", 2) | {"metadata": {"name": "web", "namespace": "shop", "uid": "d"}}
    shown = page(*THREE, *WEB, maker)
    (edited,) = shown.what_if(WhatIf(edits=(request("web-1", "2Gi"),))).edited
    assert edited.workload == "Deployment shop/web"
    assert "kubectl patch deployment web" in edited.patch.kubectl
    (alone,) = shown.what_if(WhatIf(edits=(request("web-1", "2Gi", alone=True),))).edited
    assert alone.workload == "Pod shop/web-1"
    assert alone.patch.kubectl.startswith("kubectl patch pod web-1 -n shop --subresource resize ")
    (anew,) = shown.what_if(WhatIf(edits=(request("web-1", None, alone=True),))).edited
    assert anew.patch.kubectl is None, "what is stated cannot be taken away from a pod that runs"


def test_a_pod_that_runs_is_held_to_what_the_api_server_accepts():
    shown = page(*THREE, pod("web-1", "a", "1Gi", "1Gi"))
    with pytest.raises(InputError, match="less than or equal to memory limit"):
        shown.what_if(WhatIf(edits=(request("web-1", "2Gi"),)))


def test_a_limit_range_refuses_a_pod_that_runs():
    bounds = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "bounds", "namespace": "shop"},
        "spec": {"limits": [{"type": "Container", "max": {"memory": "2Gi"}}]},
    }
    shown = page(*THREE, pod("web-1", "a", "1Gi", "1Gi"), bounds)
    with pytest.raises(InputError, match="maximum memory usage per Container is 2Gi"):
        shown.what_if(WhatIf(edits=(PodEdit("shop/web-1", "main", {"memory": "3Gi"}, {"memory": "3Gi"}),)))


def test_a_quota_charges_running_pods_for_what_they_want_more():
    used = quota("3Gi") | {"status": {"hard": {"requests.memory": "3Gi"}, "used": {"requests.memory": "2Gi"}}}
    shown = page(*THREE, *WEB, used)
    shown.what_if(WhatIf(edits=(request("web-1", "1536Mi"),)))
    with pytest.raises(InputError, match=r"exceeded quota: team.*room for 1 of 2 pods"):
        shown.what_if(WhatIf(edits=(request("web-1", "1800Mi"),)))


def test_a_quota_refuses_manifests_as_admit_does_and_other_workloads_because_of_them():
    items = [deployment("web", 2), deployment("later", 1), quota("4Gi")]
    shown = page(*items)
    with pytest.raises(InputError, match=r"exceeded quota: team.*room for 1 of 2 pods"):
        shown.what_if(WhatIf(edits=(request("web-0", "3Gi"),)))
    expected = admit(read_given(given(deployment("web", 2, "2Gi"), *items[1:])).objects)
    refused = {each.name: each.refusal.message for each in expected.items if each.refusal is not None}
    view = shown.what_if(WhatIf(edits=(request("web-0", "2Gi"),)))
    assert view.notes == (f"Deployment shop/later is then rejected: {refused['later']}",)


def test_settings_of_all_kubelets_change_the_headroom_of_all_nodes():
    shown = page(*THREE, *WEB)
    view = shown.what_if(WhatIf(kubelet=KubeletEdit("1Gi"), everywhere=True, is_whole=True))
    assert sorted(each.node for each in view.nodes) == ["a", "b"]
    assert all(each.headroom_before_bytes - each.headroom_after_bytes == (1 << 30) - (100 << 20) for each in view.nodes)
    assert len(shown.what_if(WhatIf(kubelet=KubeletEdit("1Gi"), is_whole=True)).nodes) == 1


def test_the_forecast_is_of_a_pods_first_container_and_none_of_one_that_leaves_or_comes():
    shown = page(*THREE, *WEB)
    view = shown.what_if(WhatIf(edits=(request("web-1", "900Mi"),), growing="shop/web-1"))
    assert view.forecast.growing == "shop/web-1:main"
    away = [*THREE, *WEB, pod("big", "a", "2Gi")]
    for name in ("a", "c"):
        edits = (request("web-1", "3Gi", alone=True),)
        assert page(*away).what_if(WhatIf(name, edits, growing="shop/web-1")).forecast is None


def standing(evicted, killed, *, spared=None):
    return PodStanding("Burstable", 999, evicted, killed, 5, spared)


def test_of_two_edited_pods_the_more_important_one_keeps_its_place():
    edits = (request("low", "3Gi"), request("high", "2Gi"))
    shown = page(*THREE, pod("high", "a", priority=100), pod("low", "a"))
    view = shown.what_if(WhatIf(edits=edits))
    assert [each.pod for each in view.moved] == ["shop/low"]


SCENARIOS = Path(__file__).parents[2] / "scenarios"


def _node(name: str, memory: str = "16Gi") -> dict[str, object]:
    amounts = {"memory": memory, "cpu": "8", "pods": "100"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _pod(name: str, node: str, requests: str = "", limits: str = "") -> dict[str, object]:
    resources: dict[str, object] = {}
    if requests:
        resources["requests"] = {"memory": requests}
    if limits:
        resources["limits"] = {"memory": limits}
    container = {"name": "app", "image": "app", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": name},
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": "Running"},
    }


def _page(*objects: dict[str, object]):
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": objects})
    return page_about(read_given({"all.json": text.encode()}))


def test_a_container_without_a_limit_is_riskier_than_a_larger_one_with_a_limit():
    page = _page(_node("a"), _pod("large", "a", "8Gi", "8Gi"), _pod("small", "a", "1Gi"))
    view = page.forecast(ForecastRequest())
    assert view.growing == "shop/small:app"
    assert "no memory limit" in view.chosen


def test_one_whose_growth_hits_another_pod_is_riskier_than_one_that_is_hit_itself():
    page = page_about(read_paths([str(SCENARIOS / "oom-by-class.yaml")]))
    view = page.forecast(ForecastRequest())
    (outcome,) = view.report.growths[0].outcomes
    assert (view.growing, outcome.pod) == ("default/pod1:app", "default/pod3")
    assert view.chosen == "Selected because its growth does the most harm: another pod is evicted or killed first."
    assert view.verdict.endswith("instead, and the growth continues.")


def test_a_node_on_which_every_container_is_limited_is_passed_over_for_one_with_a_risk():
    page = _page(
        _node("full", "8Gi"),
        _node("roomy", "64Gi"),
        _pod("limited", "full", "7Gi", "7Gi"),
        _pod("open", "roomy", "1Gi"),
    )
    view = page.forecast(ForecastRequest())
    assert (view.node, view.growing) == ("roomy", "shop/open:app")
    named = page.forecast(ForecastRequest(node="full"))
    assert named.growing == "shop/limited:app"


def test_where_no_growth_can_use_up_the_node_that_is_said():
    view = _page(_node("a"), _pod("one", "a", "1Gi", "2Gi"), _pod("two", "a", "2Gi", "2Gi")).forecast(ForecastRequest())
    assert view.chosen == (
        "Every container here has a memory limit that stops its growth: none can use up the node alone."
    )
    assert view.by_rate == (
        "The container's own memory limit ends the growth at every rate: the kubelet has no reason to act."
    )
    assert view.verdict.endswith(", at its own memory limit.")
