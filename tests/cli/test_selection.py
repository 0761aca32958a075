"""Files without -f; -n, -l, KIND/NAME and -o name: what they choose is shown and judged, the rest still counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podqos.cli.main import main
from podqos.errors import InvalidArgument
from podqos.objects.selection import Selection, kind_named, parse_selector


def workload(kind: str, name: str, namespace: str = "", labels: str = "{}") -> str:
    """Return a workload that is Burstable by accident: its second container has no limits."""
    place = f", namespace: {namespace}" if namespace else ""
    return f"""
apiVersion: apps/v1
kind: {kind}
metadata: {{name: {name}{place}, labels: {labels}}}
spec:
  selector: {{matchLabels: {{pod: {name}}}}}
  template:
    metadata: {{labels: {{pod: {name}}}}}
    spec:
      containers:
      - name: app
        image: app
        resources: {{requests: {{cpu: 1, memory: 1Gi}}, limits: {{cpu: 1, memory: 1Gi}}}}
      - name: proxy
        image: proxy
        resources: {{requests: {{cpu: 100m, memory: 128Mi}}}}
"""


SHOP = "---".join(
    [
        workload("Deployment", "web", "shop", "{tier: front}"),
        workload("StatefulSet", "db", "shop", "{tier: back}"),
        workload("Deployment", "batch", "jobs"),
        workload("Deployment", "loose"),
    ]
)
QUOTA = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: small, namespace: shop}
spec: {hard: {requests.cpu: 1500m}}
"""
READING = {
    "explain": (),
    "check": (),
    "admit": (),
    "place": ("--nodes", "1", "--node-capacity", "cpu=16,memory=64Gi,pods=110"),
    "rank": ("--node-memory", "64Gi"),
    "cpu": ("--cores", "2"),
}


@pytest.fixture(autouse=True)
def _in(tmp_path: Path, monkeypatch):
    (tmp_path / "shop.yaml").write_text(SHOP)
    (tmp_path / "quota.yaml").write_text(QUOTA)
    monkeypatch.chdir(tmp_path)


def podqos(capsys, *words: str) -> tuple[int, str, str]:
    code = main([*words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def names(capsys, command: str, *words: str) -> list[str]:
    _, out, _ = podqos(capsys, command, "shop.yaml", *READING[command], *words, "-o", "name")
    return out.split()


# ---- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", READING)
def test_a_file_can_be_named_without_f_before_or_behind_the_options(capsys, command):
    options = READING[command]
    expected = podqos(capsys, command, "-f", "shop.yaml", *options, "-o", "json")
    assert expected[1]
    assert podqos(capsys, command, "shop.yaml", *options, "-o", "json") == expected
    assert podqos(capsys, command, *options, "-o", "json", "shop.yaml") == expected


def test_files_stand_before_between_and_behind_options_in_their_order(capsys):
    for name in ("a", "b", "c", "d"):
        Path(f"{name}.yaml").write_text(workload("Deployment", name))
    _, out, _ = podqos(capsys, "explain", "b.yaml", "-f", "a.yaml", "-o", "name", "d.yaml", "--cgroup", "v1", "c.yaml")
    assert out.split() == [f"deployment/{name}" for name in "badc"]


def test_blast_tells_manifests_from_a_scenario(capsys):
    options = ("-l", "pod=web", "--node-memory", "64Gi", "-o", "json")
    expected = podqos(capsys, "blast", "-f", "shop.yaml", *options)
    assert {each["pod"] for each in json.loads(expected[1])["leaks"]} == {"shop/web-0"}
    assert podqos(capsys, "blast", "shop.yaml", *options) == expected
    Path("manifests").mkdir()
    Path("shop.yaml").rename("manifests/shop.yaml")
    assert podqos(capsys, "blast", "manifests", *options) == expected
    code, _, err = podqos(capsys, "blast", "no-such-scenario")
    assert (code, "no-such-scenario" in err) == (2, True)


def test_thresholds_takes_one_file_either_way(capsys):
    Path("kubelet.yaml").write_text(
        'kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\nevictionHard: {memory.available: "1Gi"}'
    )
    expected = podqos(capsys, "thresholds", "-f", "kubelet.yaml", "-o", "json")
    assert podqos(capsys, "thresholds", "kubelet.yaml", "-o", "json") == expected
    code, _, err = podqos(capsys, "thresholds", "kubelet.yaml", "-f", "kubelet.yaml")
    assert (code, err) == (2, "podqos: error: -f kubelet.yaml and kubelet.yaml cannot be combined (give one file)\n")


# ---- what is chosen ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        pytest.param((), ["web", "db", "batch", "loose"], id="all"),
        pytest.param(("-n", "shop"), ["web", "db", "loose"], id="namespace-also-of-what-names-none"),
        pytest.param(("-n", "jobs", "deploy/batch"), ["batch"], id="both"),
        pytest.param(("-l", "tier=front"), ["web"], id="label"),
        pytest.param(("-l", "pod=db"), ["db"], id="label-of-its-pods"),
        pytest.param(("-l", "tier"), ["web", "db"], id="label-exists"),
        pytest.param(("-l", "!tier"), ["batch", "loose"], id="label-missing"),
        pytest.param(("-l", "tier!=front"), ["db", "batch", "loose"], id="label-differs-or-is-missing"),
        pytest.param(("-l", "tier in (front, back),pod!=db"), ["web"], id="set-and-another"),
        pytest.param(("-l", "tier notin (front,back)"), ["batch", "loose"], id="not-in-set"),
        pytest.param(("sts/db",), ["db"], id="short-kind"),
        pytest.param(("Deployments/web", "statefulset/db"), ["web", "db"], id="kinds"),
    ],
)
@pytest.mark.parametrize("command", ["explain", "check", "admit"])
def test_a_selection_chooses_workloads(capsys, command, options, chosen):
    assert [name.partition("/")[2] for name in names(capsys, command, *options)] == chosen


@pytest.mark.parametrize("command", ["place", "rank", "cpu"])
def test_and_the_pods_of_a_node(capsys, command):
    assert sorted(names(capsys, command, "-l", "pod in (web,loose)", "-n", "shop")) == ["pod/loose-0", "pod/web-0"]


def test_names_are_printed_as_kubectl_takes_them_each_once(capsys):
    assert names(capsys, "check", "-n", "jobs", "deploy/batch") == ["deployment/batch"]
    assert names(capsys, "explain") == ["deployment/web", "statefulset/db", "deployment/batch", "deployment/loose"]


def test_the_names_of_checks_are_their_ids(capsys):
    _, out, _ = podqos(capsys, "check", "--list", "-o", "name")
    assert out.split()[:2] == ["PQ101", "PQ102"]


def test_how_many_are_not_shown_is_said(capsys):
    _, _, err = podqos(capsys, "explain", "shop.yaml", "sts/db")
    assert "3 of 4 workloads not shown; they still count\n" in err
    assert "not shown" not in podqos(capsys, "explain", "shop.yaml")[2]


@pytest.mark.parametrize("command", READING)
def test_a_selection_of_nothing_is_bad_input(capsys, command):
    code, _, err = podqos(capsys, command, "shop.yaml", *READING[command], "-l", "app=nothing")
    assert code == 2
    assert "podqos: error: -n, -l, KIND/NAME: none of 4 " in err


# ---- what still counts -------------------------------------------------------------------------------------------


def test_places_are_those_among_all_pods(capsys):
    _, out, _ = podqos(capsys, "rank", "shop.yaml", "--node-memory", "64Gi", "-o", "json")
    whole = {each["pod"]: each["place"] for each in json.loads(out)["evictionOrder"]}
    _, out, _ = podqos(capsys, "rank", "shop.yaml", "--node-memory", "64Gi", "-o", "json", "sts/db")
    report = json.loads(out)
    assert [(each["pod"], each["place"]) for each in report["evictionOrder"]] == [("shop/db-0", whole["shop/db-0"])]
    assert {each["pod"] for each in report["killOrder"]} == {"shop/db-0"}
    assert report["node"]["availableBytes"] < 61 << 30


def test_that_the_orders_disagree_about_others_is_said(capsys):
    """Page cache counts for the kubelet and not for the kernel."""
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {containers: [{name: app, image: app}]}}"
    Path("pods.yaml").write_text("\n---\n".join(pod % name for name in ("cache", "heap", "small")))
    Path("usage.csv").write_text("pod,memory,anon\ncache,2Gi,10Mi\nheap,100Mi,100Mi\nsmall,1Mi,1Mi\n")
    line = ("rank", "pods.yaml", "--usage", "usage.csv", "--node-memory", "64Gi")
    assert "the kubelet evicts default/cache before default/heap" in podqos(capsys, *line)[1]
    assert "the kubelet evicts default/cache before default/heap" in podqos(capsys, *line, "pod/heap")[1]
    assert "The orders disagree only about other pods.\n" in podqos(capsys, *line, "pod/small")[1]


def test_the_others_have_their_share_of_the_cpu(capsys):
    _, out, _ = podqos(capsys, "cpu", "shop.yaml", "--cores", "2", "sts/db", "-o", "json")
    (pod,) = json.loads(out)["pods"]
    assert pod["grantedMilli"] == 500


def test_the_others_are_charged_to_quotas(capsys):
    """web, the first of its namespace, uses up what the quota has."""
    code, out, _ = podqos(capsys, "admit", "shop.yaml", "--policies", "quota.yaml", "sts/db", "-o", "json")
    (item,) = json.loads(out)["items"]
    assert (code, item["name"], item["outcome"]) == (1, "db", "refused")


def test_the_others_are_in_the_cgroups_above_the_pods(capsys):
    _, out, _ = podqos(capsys, "explain", "shop.yaml", "sts/db", "-o", "json")
    report = json.loads(out)
    assert [item["name"] for item in report["items"]] == ["db"]
    assert report["node"]["pods"] == 4


def test_what_is_not_chosen_is_not_edited_and_fails_no_gate(capsys):
    def edited(*options: str) -> list[bool]:
        Path("shop.yaml").write_text(SHOP)
        podqos(capsys, "check", "shop.yaml", "--fix", "--only", "PQ101", *options)
        after = Path("shop.yaml").read_text().split("---")
        return [one != other for one, other in zip(SHOP.split("---"), after, strict=True)]

    assert edited() == [True, True, True, True]
    assert edited("sts/db") == [False, True, False, False]
    gate = ("check", "shop.yaml", "--fail-on", "warning")
    assert [podqos(capsys, *gate, *options)[0] for options in ((), ("quota/small", "quota.yaml"))] == [1, 0]


def test_other_objects_are_chosen_by_kind_namespace_and_name(capsys):
    _, out, _ = podqos(capsys, "check", "shop.yaml", "quota.yaml", "quota/small", "-o", "json")
    assert {item["kind"] for item in json.loads(out)["items"]} <= {"ResourceQuota"}


def test_the_class_that_is_required_is_that_of_the_chosen_in_any_case(capsys):
    Path("best.yaml").write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: best}, spec: {containers: [{name: app, image: app}]}}"
    )
    line = ("explain", "shop.yaml", "best.yaml", "-o", "csv")
    assert podqos(capsys, *line, "--fail-on", "besteffort")[0] == 1
    assert podqos(capsys, *line, "--fail-on", "BESTEFFORT", "-l", "pod")[0] == 0
    assert podqos(capsys, *line, "--fail-on", "burstable", "-l", "pod")[0] == 1


def test_a_large_list_is_selected_from_as_well(capsys):
    """Files of more than a megabyte are spread over the cores."""
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{n}", "namespace": "shop" if n % 2 else "jobs"},
         "spec": {"containers": [{"name": "app", "image": "x" * 600}]}}
        for n in range(2000)
    ]  # fmt: skip
    for name, items in (("one", pods[:1999]), ("two", pods[1999:])):
        Path(f"{name}.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    for files in (("one.json",), ("one.json", "two.json")):
        _, out, _ = podqos(capsys, "explain", *files, "-n", "shop", "-o", "csv")
        assert {line.partition(",")[0] for line in out.splitlines()[1:]} == {"shop"}
        assert len(out.splitlines()) == 1000 + (len(files) - 1)


# ---- reading the options -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a=b c", "=b", "a in b", "a in (b", "a,,b", "(a)", "a==b==c"])
def test_what_is_no_selector_is_bad_input(text):
    with pytest.raises(InvalidArgument, match="is not a valid label selector"):
        parse_selector(text)


def test_kinds_have_many_names():
    assert {kind_named(text) for text in ("deploy", "Deployment", "deployments", "deployments.apps")} == {"deployment"}
    assert kind_named("priorityclasses") == kind_named("pc") == kind_named("PriorityClass") == "priorityclass"


def test_an_object_without_labels_meets_only_conditions_that_want_none():
    assert Selection(selector=parse_selector("a!=b,!c")).takes_object("Pod", "x", "y")
    assert not Selection(selector=parse_selector("a")).takes_object("Pod", "x", "y")


@pytest.mark.parametrize(
    "words",
    [("blast", "race", "-n", "shop")],
    ids=" ".join,
)
def test_where_there_are_no_manifests_there_is_nothing_to_choose(capsys, words):
    code, _, err = podqos(capsys, *words)
    assert code == 2
    assert "-n, -l" in err


def test_classes_of_the_cluster_and_a_selection_go_together(capsys):
    urgent = workload("Deployment", "urgent", "shop").replace(
        "      containers:", "      priorityClassName: top\n      containers:"
    )
    Path("urgent.yaml").write_text(urgent)
    _, out, _ = podqos(capsys, "rank", ".", "deploy/urgent", "--priority", "top=7", "-o", "json")
    (place,) = json.loads(out)["evictionOrder"]
    assert (place["pod"], place["priority"]) == ("shop/urgent-0", 7)


@pytest.mark.parametrize("is_large", [False, True])
def test_policies_of_a_directory_apply_to_the_chosen_of_that_directory_only(capsys, monkeypatch, is_large):
    if is_large:
        monkeypatch.setattr("podqos.parallel.WORTH_FORKING_BYTES", 1)
    limits = "spec: {limits: [{type: Container, default: {memory: 1Gi}}]}"
    for folder in ("a", "b"):
        Path(folder).mkdir()
        pod = "spec: {containers: [{name: app, image: app}]}"
        Path(folder, "pod.yaml").write_text(f"{{apiVersion: v1, kind: Pod, metadata: {{name: {folder}}}, {pod}}}")
    Path("a", "limits.yaml").write_text(f"{{apiVersion: v1, kind: LimitRange, metadata: {{name: l}}, {limits}}}")
    Path("b", "other.yaml").write_text(workload("Deployment", "other", "elsewhere"))
    code, out, err = podqos(capsys, "explain", "a", "b", "-n", "team", "-o", "csv")
    assert code == 0
    assert [line.split(",")[:4] for line in out.splitlines()[1:]] == [
        ["team", "a", "app", "Burstable"],
        ["team", "b", "app", "BestEffort"],
    ]
    assert "1 of 3 workloads not shown" in err
