"""The answer card: who dies first and why, kubelet or kernel, and a fix that was tried; never what is not known."""

import json
import re
from pathlib import Path

import msgspec
import pytest
from tests.library.clusters import PODS, kept, lines, owner, pod
from tests.library.page_sources import deployment, node
from tests.library.page_sources import pod as written_pod
from tests.library.shop import shop

from podqos.answers.page.answer import MOST_NEXT
from podqos.answers.page.forecast import ForecastRequest
from podqos.answers.page.source import PageSource, SourceKind
from podqos.answers.page.what_if import KubeletEdit, PodEdit, WhatIf
from podqos.cli.main import main
from podqos.manifest.encoding import json_line
from podqos.model.quantity import Quantity
from podqos.objects.cluster_snapshot import ClusterSnapshot, End
from podqos.web.ui.pages import page_about
from podqos.web.ui.source_files import read_given, read_paths

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


def test_the_reason_says_by_how_much_a_pod_exceeds_its_request():
    panel = first(measured())
    assert panel.next_evicted.pod == "shop/web-0"
    assert panel.next_evicted.explanation.startswith("it uses 644Mi more than it requests")
    assert panel.next_killed.explanation.startswith("it is Burstable with oom_score_adj 997")


def test_what_is_only_assumed_is_not_told_as_measured():
    panel = first(page(**{"pods.yaml": shop()}))
    assert panel.next_evicted.is_assumed
    assert panel.next_evicted.explanation == "it requests no memory, and all others stay within their requests"
    assert "64Mi" not in panel.next_killed.explanation


def test_a_lower_priority_is_a_reason_of_its_own():
    low = written_pod("a") + b"  priorityClassName: low\n"
    classes = b"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: low}\nvalue: -5\n"
    low = low.replace(b"spec: {", b"spec: {priorityClassName: low, ").replace(b"  priorityClassName: low\n", b"")
    panel = first(page(**{"a.yaml": low, "b.yaml": written_pod("b"), "c.yaml": classes}))
    assert panel.next_evicted.pod == "default/a"
    assert panel.next_evicted.explanation == "its priority is -5 (next pod: 0)"


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


def test_rank_and_the_card_tell_one_amount(capsys):
    files = [str(SCENARIOS / "content-platform" / name) for name in ("platform", "usage.csv")]
    main(["rank", "-f", files[0], "--usage", files[1]])
    told = re.findall(r"request (\d+Mi) of memory", capsys.readouterr().out)
    fix = page_about(read_paths(files)).answer().fix
    assert len(told) == 2  # it is first in both orders
    assert {*told} == {edit.requests["memory"] for edit in fix.edit.tries}
    assert fix.edit.still_first == ()


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


def test_check_prints_no_patch_of_what_another_object_manages_but_names_that_one(capsys, tmp_path):
    (tmp_path / "set.yaml").write_text(OWNED)
    assert main(["check", "-f", str(tmp_path), "--patch-format", "kubectl"]) == 1
    out = capsys.readouterr().out
    assert "kubectl patch" not in out
    assert "# ReplicaSet shop/web-5f6d: it is managed by Deployment web; change that instead" in out


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


def test_pods_of_a_scenario_are_of_the_workload_that_its_manifest_names():
    shown = page_about(read_paths(["race"]))
    made_by = {block.workload for block in shown.cluster().pods}
    assert "Deployment batch/analytics-pipeline" in made_by
    assert "CronJob batch/content-generator" in made_by
    assert not any(name.startswith(("ReplicaSet", "Job")) for name in made_by)
    assert shown.pod("batch/analytics-pipeline-0").workload == "Deployment batch/analytics-pipeline"


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
