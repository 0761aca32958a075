"""The values of the page: each is what the command of that name prints; an edit is what the edited manifest makes."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.library.clusters import snapshot
from tests.library.shop import shop

from podqos.api import check
from podqos.cli.output import _unindented
from podqos.errors import InputError
from podqos.manifest.encoding import json_bytes, json_schema
from podqos.model.quantity import Quantity
from podqos.orders.usage import UsageRow
from podqos.page.fixes import FixRequest
from podqos.page.page import PageValues
from podqos.page.session import PageSource, SourceKind
from podqos.page.what_if import ForecastRequest, KubeletEdit, PodEdit, WhatIf
from podqos.questions.admit import admit
from podqos.questions.explain import explain
from podqos.questions.forecast import forecast
from podqos.questions.node import cluster_state, node_state
from podqos.questions.rank import rank
from podqos.runs.comparison import compare_runs
from podqos.runs.run import simulate
from podqos.serve.sources import read_given, read_paths, varied
from podqos.serve.work import page_about

ROOT = Path(__file__).parents[2]
PLATFORM = ROOT / "scenarios" / "content-platform" / "platform"


def page(**files):
    return page_about(read_given(files or {"shop.yaml": shop()}))


def platform():
    return page_about(read_given({path.name: path.read_bytes() for path in sorted(PLATFORM.rglob("*.yaml"))}))


def of_cluster():
    cluster = snapshot()
    return page_about(PageSource(SourceKind.SNAPSHOT, "acme", cluster=cluster)), cluster


def test_the_schema_of_the_page_is_published():
    schema = msgspec.json.decode(msgspec.json.encode(_unindented(json_schema(PageValues))))
    assert schema == json.loads((ROOT / "docs/schema/page.json").read_text())


def test_the_orders_of_the_cluster_view_are_those_of_rank():
    shown = platform()
    view = shown.cluster()
    report = rank(shown.nodes.objects)
    pods = {f"{each.namespace}/{each.name}": each for each in view.pods}
    assert [f"{each.namespace}/{each.name}" for each in view.pods] == [each.pod for each in report.eviction_order]
    for place in report.eviction_order:
        block = pods[place.pod]
        assert (block.eviction_place, block.kill_place) == (place.place, place.kernel_place)
        assert (block.qos_class, block.priority, block.spared) == (place.qos_class, place.priority, place.spared)
        assert (block.requested_bytes, block.used_bytes) == (place.request, place.usage)
    assert view.nodes[0].reversed_pairs == report.reversed_pairs


def test_usage_that_a_table_states_for_all_pods_is_not_called_assumed():
    (node,) = page().cluster().nodes
    assert not node.is_measured
    rows = "pod,memory\n"
    (some,) = page(**{"shop.yaml": shop(), "usage.csv": f"{rows}shop/db,1Gi\n".encode()}).cluster().nodes
    assert not some.is_measured
    pods = {f"{each.namespace}/{each.name}" for each in page().cluster().pods}
    every = rows + "".join(f"{pod},1Gi\n" for pod in sorted(pods))
    (node,) = page(**{"shop.yaml": shop(), "usage.csv": every.encode()}).cluster().nodes
    assert node.is_measured


def test_an_assumed_node_is_large_enough_for_its_pods_and_that_is_said():
    view = page(**{"shop.yaml": shop("60Gi", "60Gi")}).cluster()
    (node,) = view.nodes
    assert node.memory_bytes == 256 << 30
    assert not node.problem
    assert "256Gi" in {each.value for each in view.assumptions if each.what == "node memory"}
    assert all(each.eviction_place for each in view.pods)


def test_a_named_node_that_is_too_small_has_pods_without_an_order_and_says_why():
    node = b"---\napiVersion: v1\nkind: Node\nmetadata: {name: one}\nstatus: {capacity: {memory: 1Gi}}\n"
    bound = shop().replace(b"      containers:", b"      nodeName: one\n      containers:")
    view = page(**{"shop.yaml": bound + node}).cluster()
    (panel,) = view.nodes
    assert panel.name == "one"
    assert "the node has 1Gi" in panel.problem
    assert len(view.pods) == 4
    assert all(each.eviction_place is None for each in view.pods)


def test_pods_of_several_nodes_are_ranked_where_they_run_and_others_wait():
    pods = "".join(
        f"---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p{n}}}\nspec:\n  nodeName: node-{n % 2}\n"
        "  containers: [{name: main, image: 'a:1'}]\n"
        for n in range(4)
    )
    view = page(**{"pods.yaml": pods.encode(), "shop.yaml": shop()}).cluster()
    assert sorted(node.name for node in view.nodes) == ["node-0", "node-1"]
    assert {each.name: each.node for each in view.pods if each.node} == {f"p{n}": f"node-{n % 2}" for n in range(4)}
    assert [each.eviction_place for each in view.pods] == [1, 2, 1, 2, None, None, None, None]


def test_a_pod_of_a_snapshot_has_the_place_that_rank_gives_it():
    shown, cluster = of_cluster()
    for block in shown.cluster().pods:
        if block.node:
            report = rank(cluster_state(cluster, block.node))
            own = shown.pod(f"{block.namespace}/{block.name}", block.node)
            assert own.eviction in report.eviction_order
            assert set(own.kills) <= set(report.kill_order)
            assert own.admission is None, "it is stored already"


def test_a_pod_is_explained_and_admitted_as_the_commands_do():
    shown = platform()
    objects = shown.nodes.objects
    explained = {(each.kind, each.namespace, each.name): each for each in explain(objects).items}
    admitted = {(each.kind, each.namespace, each.name): each for each in admit(objects).items}
    for block in shown.cluster().pods:
        own = shown.pod(f"{block.namespace}/{block.name}")
        key = own.explanation.kind, own.explanation.namespace, own.explanation.name
        assert own.explanation == explained[key]
        assert own.admission == admitted[key]
        assert own.standing.eviction_place == block.eviction_place


def test_a_pod_that_is_gone_is_an_error_that_names_it():
    with pytest.raises(InputError, match="no such pod: shop/none"):
        page().pod("shop/none")


# ---- what if ---------------------------------------------------------------------------------------------------------


def load_text(data):
    return read_given({"shop.yaml": data}).objects


def rows(shown):
    """Return what the pods of the only node use, as a usage file would say it."""
    (node,) = shown.nodes.nodes.values()
    return [
        UsageRow(entry.pod.key, usage.name, memory=quantity(usage.working_set_bytes))
        for entry in node.state.snapshot.pods
        for usage in entry.containers
    ]


def quantity(amount):
    return Quantity.of_units(amount, "BinarySI")


def test_without_an_edit_everything_is_as_it_is():
    view = platform().what_if(WhatIf())
    assert view.pods
    assert all(each.before == each.after and not each.is_edited for each in view.pods)
    assert view.headroom_before_bytes == view.headroom_after_bytes
    assert not view.edited


@given(request=st.integers(1, 1023), limit=st.sampled_from(["1Gi", "2Gi"]))
def test_an_edit_is_what_the_edited_manifest_makes(request, limit):
    shown = page()
    edit = PodEdit("shop/web-1", "main", {"memory": f"{request}Mi"}, {"memory": limit})
    view = shown.what_if(WhatIf(edits=(edit,)))
    again = rank(node_state(load_text(shop(f"{request}Mi", limit)), rows(shown)))
    assert [each.pod for each in view.pods] == [each.pod for each in again.eviction_order]
    for each, place in zip(view.pods, again.eviction_order, strict=True):
        assert (each.after.eviction_place, each.after.kill_place) == (place.place, place.kernel_place)
        assert each.is_edited == each.pod.startswith("shop/web")
    (edited,) = view.edited
    assert edited.pods == 2
    assert edited.class_after == explain(load_text(shop(f"{request}Mi", limit))).items[0].qos_class


def test_an_edit_changes_class_and_score_and_removing_a_limit_too():
    shown = page()
    (edited,) = shown.what_if(
        WhatIf(edits=(PodEdit("shop/web-1", "main", {"memory": "1Gi", "cpu": "1"}, {"cpu": "1"}),))
    ).edited
    assert (edited.class_before, edited.class_after) == ("Burstable", "Guaranteed")
    assert [(each.before, each.after) for each in edited.scores] == [(997, -997)]
    (edited,) = shown.what_if(WhatIf(edits=(PodEdit("shop/db", "db", limits={"cpu": None, "memory": None}),))).edited
    assert (edited.class_before, edited.class_after) == ("Guaranteed", "BestEffort")


def test_a_higher_priority_goes_later_for_the_kubelet_alone():
    view = page().what_if(WhatIf(edits=(PodEdit("shop/web-1", priority=1000),)))
    web = [each for each in view.pods if each.is_edited]
    assert [(each.before.eviction_place, each.after.eviction_place) for each in web] == [(2, 3), (3, 4)]
    assert all(each.before.kill_place == each.after.kill_place for each in web)


def test_a_refused_edit_says_so_in_the_words_of_the_api_server_every_time():
    shown = page()
    for _ in range(2):
        with pytest.raises(InputError, match="less than or equal to memory limit"):
            shown.what_if(WhatIf(edits=(PodEdit("shop/web-1", "main", {"memory": "3Gi"}),)))


def test_a_limit_below_what_is_used_is_noted():
    view = page().what_if(WhatIf(edits=(PodEdit("shop/db", "db", limits={"memory": "1Gi"}),)))
    assert view.notes == ("shop/db db uses 2Gi: it is killed at its limit of 1Gi",)


def test_edits_of_a_live_pod_change_all_pods_of_its_owner_and_ignore_the_recorded_class():
    shown, _ = of_cluster()
    block = next(each for each in shown.cluster().pods if each.name.startswith("web") and each.node)
    key = f"{block.namespace}/{block.name}"
    view = shown.what_if(WhatIf(node=block.node, edits=(PodEdit(key, "web", {"cpu": "1", "memory": "2Gi"}, {}),)))
    (edited,) = view.edited
    assert (edited.class_before, edited.class_after) == ("Burstable", "Guaranteed")


def test_a_higher_threshold_takes_from_the_headroom_and_helps_the_kubelet():
    shown = page()
    view = shown.what_if(WhatIf(kubelet=KubeletEdit(eviction_hard="4Gi"), growing="shop/shell:shell"))
    assert view.headroom_before_bytes - view.headroom_after_bytes == (4 << 30) - (100 << 20)
    assert all(
        new.kubelet_first >= old.kubelet_first
        for old, new in zip(view.forecast.before, view.forecast.after, strict=False)
    )
    assert view.forecast.before != view.forecast.after


@pytest.mark.parametrize(
    "kubelet", [KubeletEdit("lots"), KubeletEdit(eviction_soft="-1"), KubeletEdit(kube_reserved="x")]
)
def test_settings_with_which_no_kubelet_starts_are_an_error(kubelet):
    with pytest.raises(InputError):
        page().what_if(WhatIf(kubelet=kubelet))


# ---- forecast, check, deaths, runs -----------------------------------------------------------------------------------


def test_the_forecast_is_that_of_the_command():
    shown = page()
    view = shown.forecast(ForecastRequest("shop/shell:shell", interval_seconds=5, rate_bytes_per_second=64 << 20))
    (node,) = shown.nodes.nodes.values()
    expected = forecast(node.state, growing="shop/shell:shell", rates=(64 << 20,), interval_us=5_000_000)
    assert view.report == expected
    assert view.race.startswith("The machine runs out of memory after ")
    assert view.as_it_is == forecast(node.state, growing="shop/shell:shell", rates=()).curve
    assert view.choices[0] == "shop/shell:shell", "the only one without a limit of its own"


def test_the_forecast_chooses_what_grows_where_nothing_is_said():
    assert page().forecast(ForecastRequest()).growing == "shop/shell:shell"


def test_the_findings_are_those_of_check_and_the_fixes_those_of_check_fix():
    shown = page()
    report = check(load_text(shop()))
    view = shown.check()
    assert [(each.check, each.reason, each.fingerprint) for each in view.items] == [
        (each.check, each.reason, each.fingerprint) for each in report.items
    ]
    fixed = shown.fix(FixRequest())
    (file,) = fixed.files
    assert file.diff.startswith("--- shop.yaml\n+++ shop.yaml\n")
    again = page_about(read_given({"shop.yaml": file.text.encode()})).check()
    assert len(again.items) == fixed.remaining < len(view.items)


def test_only_the_chosen_checks_are_fixed():
    shown = page()
    chosen = next(each.check for each in shown.check().items if each.is_fixed)
    (file,) = shown.fix(FixRequest((chosen,))).files
    assert {each.partition(" ")[0] for each in file.findings} == {chosen}
    with pytest.raises(InputError, match="no check"):
        shown.fix(FixRequest(("PQ999",)))


def test_a_cluster_is_fixed_with_patches_alone():
    shown, _ = of_cluster()
    assert not shown.check().can_fix
    fixed = shown.fix(FixRequest())
    assert not fixed.files
    assert all(each.startswith(("kubectl patch ", "# ")) for each in fixed.patches)


def test_every_value_can_be_written_as_json():
    shown = page()
    values = (
        shown.cluster(),
        shown.pod("shop/web-1"),
        shown.what_if(WhatIf(edits=(PodEdit("shop/db", "db", limits={"memory": "1Gi"}),), growing="shop/db:db")),
        shown.forecast(ForecastRequest()),
        shown.check(),
        shown.fix(FixRequest()),
        shown.autopsy(),
    )
    for value in values:
        assert json.loads(json_bytes(value))["kind"] == type(value).__name__


def test_pods_that_the_api_server_refuses_leave_a_page_that_says_so():
    refused = b"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {restartPolicy: '<b>', containers: [{name: c}]}\n"
    view = page_about(read_given({"refused.yaml": refused})).cluster()
    assert view.pods == ()
    assert any("Unsupported value" in note for note in view.notes)


def test_two_runs_are_compared_victim_by_victim():
    covered = "requests.memory@article-service:envoy-sidecar=1Gi"
    before, after = run("accidental-burstable"), run("accidental-burstable", covered)
    same = compare_runs(before, before)
    assert {each.verdict for each in same.deaths} == {"same"}
    assert not any(each.is_different for each in same.workloads)
    assert same.headline == "Both runs: no OOM kills and 1 eviction."
    view = compare_runs(before, after)
    turned = "production/article-service 0 instead of 1 and batch/analytics-job 1 instead of 0"
    assert view.headline == f"Both runs: no OOM kills and 1 eviction, but {turned}."
    assert len(view.deaths) >= len(before.kills)
    for death in view.deaths:
        for number, kills in ((death.before, before.kills), (death.after, after.kills)):
            assert number is None or kills[number].pod == death.pod


def test_a_pod_that_finds_no_room_is_not_told_as_saved():
    before, after = run("race"), run("race", "kubelet.evictionHard.memory.available=2Gi")
    view = compare_runs(before, after)
    assert [(each.pod, each.after, each.runs_in_both) for each in view.deaths] == [
        ("monitoring/log-collector-worker-1", None, True),
        ("batch/analytics-pipeline-0", None, False),
    ]
    assert view.headline.endswith(" Fewer pods run: batch/analytics-pipeline 0 instead of 1.")


def test_a_shortage_of_cpu_that_differs_is_told_though_nothing_was_killed_in_either_run():
    before = run("cpu-burst")
    words = compare_runs(before, run("cpu-burst", "requests.cpu@wide/analytics=2")).headline
    assert words.startswith("Both runs: no OOM kills and no evictions. 4 of 22 pods unaffected instead of 6 of 22. ")
    assert "16 pods short of CPU in both, down to 25 % instead of 17 % of the CPU wanted." in words
    calm = compare_runs(before, run("cpu-burst", "spec.duration=10s")).headline
    assert calm.endswith(" 22 of 22 pods unaffected instead of 6 of 22. No pods short of CPU instead of 16.")
    assert compare_runs(before, before).headline == "Both runs: no OOM kills and no evictions."


def test_a_replacement_that_was_not_needed_is_told_as_saved():
    before, after = run("slow-leak", "kubelet.evictionHard.memory.available=2Gi"), run("slow-leak")
    [last] = [each for each in compare_runs(before, after).deaths if each.pod == "default/session-cache-0-r5"]
    assert (last.after, last.runs_in_both) == (None, True)
    assert "Fewer pods" not in compare_runs(before, after).headline


def run(name, *edits):
    return simulate(varied(read_paths([str(ROOT / "scenarios" / f"{name}.yaml")]), edits)).report


def test_a_scenario_is_shown_as_it_begins():
    source = read_paths([str(ROOT / "scenarios" / "slow-leak.yaml")])
    shown = page_about(source)
    view = shown.cluster()
    assert sorted(node.name for node in view.nodes) == ["worker-0", "worker-1", "worker-2"]
    assert all(each.eviction_place and each.used_bytes for each in view.pods)
    block = view.pods[0]
    key = f"{block.namespace}/{block.name}"
    (container,) = shown.pod(key).explanation.containers
    (edited,) = shown.what_if(WhatIf(edits=(PodEdit(key, container.name, limits={"memory": None}),))).edited
    assert edited.class_before == block.qos_class
    assert edited.patch is not None
