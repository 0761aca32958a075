"""What an edit changes beyond one node: replicas elsewhere, pods that no longer fit, what quotas and bounds refuse."""

import json

import pytest
from msgspec.structs import replace

from podqos.answers.admit import admit
from podqos.answers.page.places import is_safer, turn
from podqos.answers.page.pod import PodStanding
from podqos.answers.page.what_if import KubeletEdit, PodEdit, ResizeWait, WhatIf
from podqos.answers.place import PlaceOptions
from podqos.errors import InputError
from podqos.library.place import place
from podqos.library.rank import rank
from podqos.web.ui.pages import page_about
from podqos.web.ui.source_files import read_given


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
        again = rank(_with_pods(state, entries), profile=shown.nodes.profile)
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
    expected = place(read_given(given(*THREE, *items[4:], items[3], anew)).objects, PlaceOptions())
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


def test_what_did_not_fit_before_is_not_blamed_on_an_edit():
    crowded = [node("a"), pod("web-1", "a", cpu="3"), pod("x", "a", cpu="3")]
    view = page(*crowded, node("b")).what_if(WhatIf(edits=(request("web-1", "2Gi"),)))
    assert view.moved == ()


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


@pytest.mark.parametrize(
    ("now", "after", "turned", "safer"),
    [
        pytest.param(standing(1, 1), standing(3, 2), (2, 1), True, id="later in both"),
        pytest.param(standing(3, 2), standing(1, 2), (-2, 0), False, id="sooner in one"),
        pytest.param(standing(1, 1), standing(1, 1, spared="critical"), (1, 0), True, id="never evicted then"),
        pytest.param(standing(1, 1, spared="critical"), standing(1, 1), (-1, 0), False, id="evicted then"),
        pytest.param(standing(1, 1, spared="critical"), standing(5, 1, spared="static"), (0, 0), False, id="as before"),
        pytest.param(standing(1, None), standing(2, 1), (1, 0), True, id="without a process there is no kill order"),
    ],
)  # fmt: skip
def test_a_pod_is_safer_if_it_goes_later_in_one_order_and_sooner_in_none(now, after, turned, safer):
    assert turn(now, after) == turned
    assert is_safer(now, after) is safer


def test_of_two_edited_pods_the_more_important_one_keeps_its_place():
    edits = (request("low", "3Gi"), request("high", "2Gi"))
    shown = page(*THREE, pod("high", "a", priority=100), pod("low", "a"))
    view = shown.what_if(WhatIf(edits=edits))
    assert [each.pod for each in view.moved] == ["shop/low"]


def test_what_one_node_can_never_hold_is_infeasible_however_little_else_is_lacking():
    """Memory for it there will never be; CPU there may be once another pod is gone."""
    shown = page(node("a"), pod("web", "a", cpu="2"), pod("other", "a", cpu="2"))
    (moved,) = shown.what_if(WhatIf(edits=(PodEdit("shop/web", "main", {"memory": "5Gi", "cpu": "3"}),))).moved
    assert moved.resize is ResizeWait.INFEASIBLE
    (moved,) = shown.what_if(WhatIf(edits=(PodEdit("shop/web", "main", {"cpu": "3"}),))).moved
    assert moved.resize is ResizeWait.DEFERRED


def test_a_workload_that_was_refused_before_is_not_blamed_on_an_edit():
    """As many of its pods are admitted as were before; one that would have fewer is named."""
    items = [deployment("web", 1), deployment("wide", 5), quota("4Gi")]
    shown = page(*items)
    assert shown.what_if(WhatIf(edits=(request("web-0", "512Mi"),))).notes == ()
    (note,) = shown.what_if(WhatIf(edits=(request("web-0", "2Gi"),))).notes
    assert note.startswith("Deployment shop/wide is then rejected")
