"""The answer card, and the findings by check."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from tests.library.clusters import PODS, kept, lines, owner, pod
from tests.library.page_sources import deployment, node
from tests.library.page_sources import pod as written_pod
from tests.library.shop import shop

from podqos.advice.checks import trying
from podqos.manifest.encoding import json_line
from podqos.model.quantity import Quantity
from podqos.objects.cluster_snapshot import ClusterSnapshot, End
from podqos.page.fixes import MOST_NEXT, FixRequest
from podqos.page.session import PageSource, SourceKind
from podqos.page.what_if import ForecastRequest, KubeletEdit, PodEdit, WhatIf
from podqos.serve.sources import read_given, read_paths
from podqos.serve.work import page_about

MI = 1 << 20
SCENARIOS = Path(__file__).parents[2] / "scenarios"


def page(**files):
    return page_about(read_given(files))


def measured(web="900Mi", **more):
    """Return a page about the shop: web uses more than it requests, unless told otherwise."""
    table = f"pod,container,memory\nweb-0,main,{web}\nweb-1,main,{web}\ndb,db,300Mi\nshell,shell,50Mi\n"
    return page(**{"shop.yaml": shop(), "usage.csv": table.encode(), **more})


def of_cluster(**replaced):
    """Return a page about the cluster, some of whose lists are others."""
    made = [line for line in lines() if not any(f'"kind":"{kind}"'.encode() in line[:200] for kind in replaced)]
    made[1:1] = [kept(kind, items) for kind, items in replaced.items() if items]
    made[-1] = msgspec.json.encode(End(len(made) - 1))
    return page_about(PageSource(SourceKind.SNAPSHOT, "acme", cluster=ClusterSnapshot(made, "cluster.json")))


def first(shown):
    (panel,) = (each for each in shown.cluster().nodes if each.next_evicted is not None)
    return panel


# ---- who, and why ----------------------------------------------------------------------------------------------------


def test_what_is_only_assumed_is_not_told_as_measured():
    panel = first(page(**{"pods.yaml": shop()}))
    assert panel.next_evicted.is_assumed
    assert panel.next_evicted.explanation == "it requests no memory, and all others stay within their requests"
    assert "64Mi" not in panel.next_killed.explanation


def test_without_pods_there_is_no_answer_and_no_error():
    answer = page(**{"empty.yaml": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: nothing}\n"}).answer()
    assert (answer.node, answer.growth, answer.fix, answer.no_fix, answer.problem) == ("", None, None, "", "")


def test_a_pod_that_is_alone_has_no_one_to_go_before_it_and_no_fix():
    shown = page(**{"a.yaml": written_pod("a")})
    assert first(shown).next_evicted.explanation == "it is the only pod the kubelet can evict"
    answer = shown.answer()
    assert answer.fix is None
    assert "only pod on its node" in answer.no_fix


# ---- kubelet or kernel -----------------------------------------------------------------------------------------------


def test_the_card_and_the_forecast_give_the_same_answer():
    shown = page_about(read_paths(["race"]))
    growth, forecast = shown.answer().growth, shown.forecast(ForecastRequest(node="worker-1"))
    assert growth.growing == forecast.growing
    assert growth.kubelet_first == forecast.report.growths[0].kubelet_first == 0
    assert growth.first_by == "kernel"
    assert [end.text for end in growth.ends] == [end.text for end in forecast.report.growths[0].outcomes]
    assert growth.turning == forecast.report.turning


def test_the_growth_at_which_the_kernel_takes_over_is_that_of_the_forecast():
    shown = page_about(read_paths(["race"]))
    growth = shown.answer().growth

    def kubelet_first(rate):
        return (
            shown.forecast(ForecastRequest(growth.growing, rate_bytes_per_second=rate)).report.growths[0].kubelet_first
        )

    assert kubelet_first(growth.turning.kubelet_up_to) == 1
    assert kubelet_first(growth.turning.kubelet_up_to + 1) < 1
    assert kubelet_first(growth.turning.kernel_from) == 0
    assert kubelet_first(growth.turning.kernel_from - 1) > 0
    assert growth.text == "Up to 1.3Mi/s the kubelet evicts before the kernel kills; above 1.5Mi/s the kernel is first."


def test_a_node_on_which_the_kernel_is_always_first_says_why():
    growth = page(**{"a.yaml": written_pod("a"), "b.yaml": written_pod("b")}).answer().growth
    assert growth.turning.kernel_from == 1
    assert growth.text.startswith("The kernel acts first at every growth rate: the machine runs out of memory while ")


# ---- the fix ---------------------------------------------------------------------------------------------------------


def test_the_fix_has_headroom_adds_no_cpu_limit_and_does_what_it_says():
    shown = measured()
    fix = shown.answer().fix
    (edit,) = fix.edit.tries
    assert edit.limits.get("cpu") is None
    for amounts in (edit.requests, edit.limits):
        assert all(Quantity.parse(amount).value > 900 * MI for name, amount in amounts.items() if name == "memory")
    view = shown.what_if(WhatIf(edits=fix.edit.tries))
    after = next(each.after for each in view.pods if each.pod == fix.pod)
    assert after == fix.edit.after
    assert (after.eviction_place if fix.by == "kubelet" else after.kill_place) > 1
    assert view.edited[0].costs == fix.edit.remedy.costs != ()


def test_what_leaves_a_pod_first_is_no_fix_and_of_a_scenario_the_time_is_told():
    answer = page_about(read_paths(["race"])).answer()
    assert answer.fix is None
    assert " as the scenario begins. Request " in answer.no_fix
    assert answer.no_fix.endswith("; but it is still evicted first.")
    assert answer.unknowns[0].text == "This is the node as the scenario begins."


def test_the_fix_is_written_into_what_made_the_pod_and_not_into_the_pod():
    shown = of_cluster()
    for block in shown.cluster().pods:
        if block.node:
            for way in shown.pod(f"{block.namespace}/{block.name}", block.node).safer:
                if way.tries:
                    assert way.target == {"web": "Deployment shop/web", "db-0": "StatefulSet shop/db"}.get(
                        block.name.partition("-7d")[0], "Pod shop/shell"
                    )
                    assert way.patch is None or way.patch.kubectl is None or "patch pod " not in way.patch.kubectl


def _owned(name, controller, **labels):
    made = pod(name, PODS[3]["spec"], "atlas-1", "BestEffort", ownerReferences=controller)
    made["metadata"]["labels"] |= labels
    return made


@pytest.mark.parametrize(
    ("controller", "labels", "target"),
    [
        (owner("ReplicaSet", "api-5f6d"), {"pod-template-hash": "5f6d"}, "Deployment shop/api"),
        (owner("ReplicaSet", "bare"), {}, "ReplicaSet shop/bare"),
        (owner("StatefulSet", "api"), {}, "StatefulSet shop/api"),
        (owner("DaemonSet", "api"), {}, "DaemonSet shop/api"),
        (owner("Job", "report-29384756"), {}, "CronJob shop/report"),
        (owner("Job", "import"), {}, "Job shop/import"),
        (owner("Node", "atlas-1"), {}, "static pod file on atlas-1"),
    ],
)
def test_the_owner_that_a_user_edits_is_named_even_where_it_is_not_in_the_snapshot(controller, labels, target):
    own = _owned("shell", controller, **labels)
    shown = of_cluster(PodList=[*PODS[:3], own], DeploymentList=[], StatefulSetList=[])
    (edited,) = shown.what_if(WhatIf(edits=(PodEdit("shop/shell", "shell", {"memory": "200Mi"}),))).edited
    fix = next(iter(shown.pod("shop/shell", "atlas-1").safer))
    assert fix.target == target
    command = edited.patch and edited.patch.kubectl
    if target.startswith(("Job", "static")):
        assert command is None, "the API server refuses another template of a Job"
    else:
        kind, _, name = target.partition(" shop/")
        assert command.startswith(f"kubectl patch {kind.lower()} {name} -n shop --type strategic")
    assert "memory: 200Mi" in edited.lines


def test_no_amount_is_offered_for_a_pod_of_which_it_is_not_known_what_it_uses():
    shown = page(**{"pods.yaml": shop()})
    answer = shown.answer()
    assert answer.fix is None
    unknown = "What shop/shell uses is not known, so no request or limit can be computed for it."
    (usage,) = (each for each in answer.unknowns if "usage" in each.text)
    assert answer.no_fix == f"{unknown} {usage.how}"
    assert {each.text.partition(" is not")[0].partition(" are not")[0] for each in answer.unknowns} == {
        "Where the pods run",
        "The memory of the node",
        "Memory usage",
        "The kubelet's settings",
    }
    assert all(each.how for each in answer.unknowns)
    own = shown.pod("shop/shell")
    assert not [way for way in own.safer if way.edits]
    assert own.unknown == unknown


def test_a_fix_that_the_node_has_no_room_for_is_not_offered_and_that_is_said():
    answer = page_about(read_paths(["ingress-leak"])).answer()
    assert answer.fix is None
    assert answer.no_fix.startswith(
        "No safe fix for ingress-nginx/ingress-nginx-0 as the scenario begins. Request 2950Mi of memory: "
    )
    assert "but it does not fit: pods on the node would request" in answer.no_fix


def test_a_fix_that_a_quota_refuses_is_not_offered():
    quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: shop}\nspec: {hard: {%s}}\n"
    allowed = measured(**{"quota.yaml": (quota % "requests.memory: 20Gi").encode()})
    assert [way for way in allowed.pod("shop/web-0").safer if way.edits]
    refused = measured(**{"quota.yaml": (quota % "requests.memory: 2700Mi").encode()})
    assert not [way for way in refused.pod("shop/web-0").safer if way.edits]


# ---- many nodes ------------------------------------------------------------------------------------------------------


def test_the_next_ten_to_die_are_on_the_nodes_with_the_least_headroom():
    files = {
        f"{number}.yaml": node(f"n{number:02}", f"{20 - number}Gi")
        + b"---\n"
        + deployment(f"d{number}", f"n{number:02}", 2, "1Gi")
        for number in range(15)
    }
    view = page(**files).cluster()
    assert len(view.next_deaths) == MOST_NEXT
    assert [each.node for each in view.next_deaths] == [f"n{number:02}" for number in range(14, 4, -1)]
    panels = {each.name: each for each in view.nodes}
    for death in view.next_deaths:
        panel = panels[death.node]
        victim = panel.next_killed if death.by == "kernel" else panel.next_evicted
        assert (death.pod, death.by) == (victim.pod, panel.first_by)
        assert death.headroom_bytes == min(panel.headroom_bytes, panel.kernel_left_bytes)


def test_every_source_with_pods_has_an_answer_that_can_be_written_as_json():
    for shown in (measured(), page(**{"pods.yaml": shop()}), of_cluster(), page_about(read_paths(["race"]))):
        answer = json.loads(json_line(shown.answer()))
        assert answer["kind"] == "AnswerView"
        assert answer["node"] == shown.cluster().next_deaths[0].node


OWNED = """apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-5f6d
  namespace: shop
  uid: u
  labels: {pod-template-hash: 5f6d}
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}]
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: i, resources: {requests: {memory: 400m}, limits: {memory: 1Gi}}}]}
"""


def test_a_priority_that_makes_another_pod_first_in_both_orders_is_no_fix():
    answer = page_about(read_paths(["scenarios/accidental-burstable.yaml"])).answer()
    assert answer.fix is None
    both = "production/article-service-0 would be evicted and OOM-killed first"
    assert answer.no_fix.startswith(f"Only a higher priority would protect batch/analytics-job-2, and then {both}.")
    assert answer.no_fix.endswith(answer.withheld.text)


def test_a_change_that_adds_a_cpu_limit_is_only_offered_to_be_tried_and_the_pod_says_the_same():
    shown = page_about(read_paths(["scenarios/accidental-burstable.yaml"]))
    withheld = shown.answer().withheld
    assert withheld.text == "Make it Guaranteed: that protects it, but adds a CPU limit, which can throttle it."
    (edit,) = withheld.tries
    assert edit.limits["cpu"]
    (compared,) = (each for each in shown.what_if(WhatIf(edits=withheld.tries)).pods if each.pod == edit.pod)
    assert (compared.before.kill_place, compared.after.kill_place) == (1, compared.after.pods)
    own = shown.pod(edit.pod)
    assert not any("cpu" in str(way.edits) for way in own.safer)
    assert own.withheld == (withheld,)


def test_a_fix_that_is_offered_leaves_nothing_to_be_tried_anyway():
    answer = measured().answer()
    assert answer.fix is not None
    assert answer.withheld is None


def test_headroom_in_a_what_if_is_that_of_whoever_acts_first_as_on_the_card():
    shown = measured()
    panel = first(shown)
    edit = PodEdit("shop/web-0", "main", {"memory": "1Gi"})
    view = shown.what_if(WhatIf(edits=(edit,)))
    assert (view.first_by, view.kernel_left_before_bytes) == (panel.first_by, panel.kernel_left_bytes)
    assert view.kernel_left_after_bytes == panel.kernel_left_bytes
    late = shown.what_if(WhatIf(edits=(edit,), kubelet=KubeletEdit(eviction_hard="4Gi")))
    assert (view.first_by, late.first_by) == ("kernel", "kubelet")


def test_a_change_to_a_job_is_tried_on_all_of_its_pods():
    shown = page_about(read_paths(["scenarios/accidental-burstable.yaml"]))
    answer = shown.what_if(WhatIf(node="worker-1", edits=(PodEdit("batch/analytics-job-2", priority=1),)))
    edited = {compared.pod for compared in answer.pods if compared.is_edited}
    assert edited == {f"batch/analytics-job-{number}" for number in range(4)}


GUARANTEED = {"cpu": "1", "memory": "1Gi"}


def _pod(name: str, container: dict[str, object], **spec: object) -> dict[str, object]:
    main = {"name": "app", "image": "app", **container}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"containers": [main], **spec},
    }


def _page(*objects: dict[str, object]):
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": objects})
    return page_about(read_given({"all.json": text.encode()}))


def _limited(name: str) -> dict[str, object]:
    return _pod(name, {"resources": {"limits": GUARANTEED}})


def _bare(name: str) -> dict[str, object]:
    return _pod(name, {})


def test_every_finding_is_in_exactly_one_group_and_the_most_severe_come_first():
    view = _page(*(_limited(f"web-{number}") for number in range(4)), _bare("shell")).check()
    assert sorted(index for group in view.groups for index in group.items) == list(range(len(view.items)))
    for group in view.groups:
        assert {view.items[index].check for index in group.items} == {group.check}
    order = ["error", "warning", "info"]
    severities = [order.index(group.severity) for group in view.groups]
    assert severities == sorted(severities)
    same = [len(group.items) for group in view.groups if group.severity == "info"]
    assert same == sorted(same, reverse=True)


def test_a_group_names_some_objects_and_counts_the_rest():
    view = _page(*(_limited(f"web-{number}") for number in range(4))).check()
    group = next(group for group in view.groups if group.check == "PQ106")
    assert group.objects == 4
    assert group.subjects == "Pod shop/web-0, Pod shop/web-1 and 2 more"


def test_what_all_findings_of_a_group_have_in_common_is_in_the_group():
    view = _page(_limited("web-0"), _limited("web-1")).check()
    group = next(group for group in view.groups if group.check == "PQ106")
    assert group.reason == view.items[group.items[0]].reason == view.items[group.items[1]].reason
    assert "resources.requests.memory: 1Gi" in group.patch
    other = _pod("web-2", {"resources": {"limits": {"cpu": "1", "memory": "2Gi"}}})
    mixed = next(each for each in _page(_limited("web-0"), other).check().groups if each.check == "PQ106")
    assert mixed.reason == ""
    assert "requests.memory" not in mixed.patch


def test_one_request_fixes_all_findings_of_a_group():
    page = _page(*(_limited(f"web-{number}") for number in range(3)), _bare("shell"))
    group = next(group for group in page.check().groups if group.check == "PQ106")
    assert (group.fixable, group.fix) == (3, "Fix all 3")
    fixed = page.fix(FixRequest(checks=("PQ106",)))
    assert fixed.remaining == 0
    assert len(fixed.files[0].findings) == 3
    unfixable = next(group for group in page.check().groups if group.check == "PQ102")
    assert (unfixable.fixable, unfixable.fix) == (0, "")


def test_in_a_large_tree_a_fix_is_tried_when_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(trying, "_TREE", 1)
    monkeypatch.setattr(trying, "_LARGEST_TREE", 2)
    page = _page(*(_limited(f"web-{number}") for number in range(3)))
    view = page.check()
    group = next(group for group in view.groups if group.check == "PQ106")
    assert not any(view.items[index].is_fixed for index in group.items)
    assert group.patch == "With this many objects, a fix is tried only when you ask for it."
    assert group.fix == "Fix all 3"
    assert len(page.fix(FixRequest(checks=("PQ106",))).files[0].findings) == 3
