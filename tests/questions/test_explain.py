"""``podqos explain`` as a user meets it: outputs, options, bad input, exit codes."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from podqos.cli.main import main
from said import without_assumptions

GOOD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: article-service, namespace: production}
spec:
  replicas: 2
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers:
        - name: app
          image: app
          resources:
            requests: {cpu: "2", memory: 4Gi}
            limits: {cpu: "2", memory: 4Gi}
        - name: envoy-sidecar
          image: envoy
          resources:
            requests: {cpu: 100m, memory: 128Mi}
"""


@pytest.fixture
def good(tmp_path: Path) -> Path:
    file = tmp_path / "good.yaml"
    file.write_text(GOOD)
    return file


def explain(capsys, *arguments: object) -> tuple[int, str, str]:
    """Run the command and return exit code, standard output and what is said besides assumptions."""
    code = main(["explain", *map(str, arguments), "--node-memory", "64Gi"])
    captured = capsys.readouterr()
    return code, captured.out, without_assumptions(captured.err)


def test_text_is_class_reason_edit_and_scores_and_only_on_demand_cgroups_and_flags(capsys, good):
    _, short, _ = explain(capsys, "-f", good)
    assert "OOM_SCORE_ADJ" in short
    assert not re.search(r"cgroup|CGROUP|kubepods|--oom-score-adj", short)
    code, out, err = explain(capsys, "-f", good, "-v")
    assert (code, err) == (0, "")
    assert "Deployment production/article-service × 2  Burstable" in out
    assert "envoy-sidecar has no cpu limit and no memory limit" in out
    assert "spec.template.spec.containers[1].resources.limits.cpu: 100m" in out
    assert "spec.template.spec.containers[1].resources.limits.memory: 128Mi" in out
    assert "100m / no limit" in out
    assert "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice" in out
    assert "--oom-score-adj=938" in out


def test_verbose_text_shows_the_class_of_each_resource_the_sandbox_and_what_the_oci_runtime_is_given(capsys, tmp_path):
    (tmp_path / "mixed.yaml").write_text(MIXED)
    _, out, _ = explain(capsys, "-f", tmp_path, "-v")
    assert "classes app: cpu Burstable, memory Guaranteed" in out
    lines = [line.strip() for line in out.splitlines()]
    assert lines[lines.index("sandbox (pause): cri-containerd-<id>.scope") + 1] == "cpu.weight=1"
    assert "oci     kubepods-burstable-pod<uid>.slice:cri-containerd:<id>   # cgroupsPath, not a directory" in lines
    _, out, _ = explain(capsys, "-f", tmp_path, "-v", "--driver", "cgroupfs")
    assert "sandbox (pause): <id>" in out
    assert "cgroupsPath" not in out


MIXED = """\
apiVersion: v1
kind: Pod
metadata: {name: mixed}
spec:
  containers:
    - name: app
      image: app
      resources:
        requests: {cpu: 250m, memory: 1Gi}
        limits: {cpu: 500m, memory: 1Gi}
"""

NODES = "apiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {capacity: {cpu: 8, memory: %s}}\n"
POLICY = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: gold}\nvalue: 5\n"


NODE_FILES = {"a.yaml": NODES % ("a", "16Gi"), "b.yaml": NODES % ("b", "8Gi")}
# files, options → the node's memory, and what is assumed
STATED = {
    "nothing": ({}, (), 64, ["node memory", "kubelet settings", "cluster policies"]),
    "the memory": ({}, ("--node-memory", "32Gi"), 32, ["kubelet settings", "cluster policies"]),
    "nodes": (NODE_FILES, (), 8, ["kubelet settings", "cluster policies"]),
    "nodes and the memory": (NODE_FILES, ("--node-memory", "32Gi"), 32, ["kubelet settings", "cluster policies"]),
    "policies": ({"p.yaml": POLICY}, (), 64, ["node memory", "kubelet settings"]),
}


@pytest.mark.parametrize("case", STATED.values(), ids=STATED)
@pytest.mark.parametrize("threshold", [1 << 20, 0], ids=["in one", "over processes"])
def test_what_was_not_stated_is_an_assumption(capsys, good, monkeypatch, threshold, case):
    files, options, memory_gibibytes, assumed = case
    monkeypatch.setattr("podqos.parallel.WORTH_FORKING_BYTES", threshold)
    for name, text in {**files, "z.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n"}.items():
        (good.parent / name).write_text(text)
    assert main(["explain", "-f", str(good.parent), "-o", "json", *options]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert whole["nodeMemoryBytes"] == memory_gibibytes << 30
    assert [each["what"] for each in whole["assumptions"]] == assumed


def test_what_was_assumed_is_one_line_and_of_classes_and_scores_nothing_about_the_kubelet(capsys, good):
    main(["explain", "-f", str(good), "-v"])
    said = capsys.readouterr().err
    assert said == (
        "assumed: node memory: 64Gi (--node-memory); kubelet settings: defaults (--kubelet-config); "
        "cluster policies: none (-f POLICIES)\n"
    )
    for options in ((), ("-o", "csv")):
        main(["explain", "-f", str(good), *options])
        assert capsys.readouterr().err == said.replace(" kubelet settings: defaults (--kubelet-config);", "")


def test_pods_of_a_cluster_have_met_its_policies(capsys, good):
    pod = {"metadata": {"name": "a", "uid": "1"}, "spec": {"containers": [{"name": "c"}]}}
    (good.parent / "pods.json").write_text(json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [pod]}))
    main(["explain", "-f", str(good.parent / "pods.json"), "-o", "json", "--node-memory", "8Gi"])
    assert [each["what"] for each in json.loads(capsys.readouterr().out)["assumptions"]] == ["kubelet settings"]


def test_csv_has_one_row_per_container(capsys, good):
    _, out, _ = explain(capsys, "-f", good, "-o", "csv")
    assert list(csv.reader(io.StringIO(out))) == [
        ["namespace", "pod", "container", "class", "oom_score_adj"],
        ["production", "article-service", "app", "Burstable", "938"],
        ["production", "article-service", "envoy-sidecar", "Burstable", "999"],
    ]


def test_json_and_yaml_say_the_same(capsys, good):
    _, as_json, _ = explain(capsys, "-f", good, "-o", "json")
    _, as_yaml, _ = explain(capsys, "-f", good, "-o", "yaml")
    whole = json.loads(as_json)
    assert whole == yaml.safe_load(as_yaml)
    assert whole["kind"] == "ExplanationList"
    (item,) = whole["items"]
    assert item["qosClass"] == "Burstable"
    assert [edit["value"] for edit in item["editsToGuaranteed"]] == ["100m", "128Mi"]
    assert [container["oomScoreAdj"] for container in item["containers"]] == [938, 999]
    assert [container["oomScoreIdle"] for container in item["containers"]] == [1291, 1332]


def test_so_little_memory_is_no_node(capsys, good):
    assert main(["explain", "-f", str(good), "--node-memory", "1"]) == 2
    said = "--node-memory: 1 bytes is too little memory for a node (for example 64Gi)\n"
    assert capsys.readouterr().err.endswith(said)


def test_table_and_wide_have_a_line_per_pod_and_per_container(capsys, good):
    _, table, _ = explain(capsys, "-f", good, "-o", "table")
    _, wide, _ = explain(capsys, "-f", good, "-o", "wide")
    assert len(table.splitlines()) == 2
    assert len(wide.splitlines()) == 3
    assert "memory.max=4294967296" in wide


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--cgroup", "v1"], "memory.limit_in_bytes=4294967296"),
        (["--driver", "cgroupfs"], "/kubepods/burstable/pod<uid>"),
        (["--runtime", "cri-o"], "crio-<id>.scope"),
        (["--engine", "podman"], "--cpu-shares=2048"),
    ],
)
def test_the_node_can_be_described(capsys, good, options, expected):
    _, out, _ = explain(capsys, "-f", good, "-v", *options)
    assert expected in out


def test_older_kubernetes_has_other_scores(capsys, tmp_path):
    file = tmp_path / "pod.yaml"
    container = "{name: c, resources: {limits: {cpu: 1, memory: 1Gi}}}"
    file.write_text(f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {{containers: [{container}]}}\n")
    assert explain(capsys, "-f", file, "-o", "csv")[1].endswith("Guaranteed,-997\n")
    assert explain(capsys, "-f", file, "-o", "csv", "--kubernetes-version", "1.19")[1].endswith("Guaranteed,-998\n")


@pytest.mark.parametrize(("worst", "code"), [("BestEffort", 0), ("Burstable", 1), ("Guaranteed", 1)])
def test_a_class_that_must_not_be_is_a_finding(capsys, good, worst, code):
    assert explain(capsys, "-f", good, "--fail-on", worst)[0] == code


def test_colour_only_on_request_or_on_a_terminal(capsys, good, monkeypatch):
    assert "\x1b[" not in explain(capsys, "-f", good)[1]
    assert "\x1b[" in explain(capsys, "-f", good, "--color", "always")[1]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "90")
    assert "\x1b[" in explain(capsys, "-f", good)[1]
    monkeypatch.setenv("NO_COLOR", "1")
    plain = explain(capsys, "-f", good, "-o", "table")[1]
    assert "\x1b[" not in plain
    assert 80 < max(map(len, plain.splitlines())) <= 90


BAD = {
    "misspelt": ("resources: {request: {cpu: 1}}", 'did you mean "requests"?'),
    "quantity": ("resources: {requests: {memory: 128mi}}", "128Mi"),
    "request above limit": (
        "resources: {requests: {cpu: 2}, limits: {cpu: 1}}",
        "must be less than or equal to cpu limit",
    ),
    "wrong type": ("resources: none", "resources"),
    "misspelt resources": ("resource: {requests: {cpu: 1}}", 'did you mean "resources"?'),
}


@pytest.mark.parametrize("line", BAD.values(), ids=BAD)
def test_bad_input_is_one_line_with_its_place_and_the_rest_is_explained(capsys, tmp_path, line):
    text, hint = line
    file = tmp_path / "mixed.yaml"
    file.write_text(
        GOOD + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec:\n  containers:\n"
        f"    - name: c\n      image: i\n      {text}\n"
    )
    code, out, err = explain(capsys, "-f", file, "-o", "csv")
    assert code == 2
    assert "article-service" in out
    first, *rest = err.splitlines()
    line_number = len(GOOD.splitlines()) + 9
    assert first.startswith(f"{file}:{line_number}:")
    assert hint in first
    assert len(rest) == 1, err  # the sum at the end
    assert "1 pod explained" in rest[0]


def test_files_that_cannot_be_read_are_told_and_the_rest_is_explained(capsys, good):
    code, out, err = explain(capsys, "-f", good, "-f", good.parent / "missing.yaml", "-o", "csv")
    assert code == 2
    assert "article-service" in out
    assert "missing.yaml" in err
    assert "check the path" in err


def test_documents_without_pods_are_skipped_and_counted(capsys, good):
    (good.parent / "values.yaml").write_text(
        "replicaCount: 1\n---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\n"
    )
    code, _, err = explain(capsys, "-f", good.parent, "-o", "csv")
    assert code == 0
    assert "skipped 2 objects without pods" in err


def test_no_pods_at_all_is_bad_input(capsys, tmp_path):
    (tmp_path / "service.yaml").write_text("apiVersion: v1\nkind: Service\nmetadata: {name: s}\n")
    assert explain(capsys, "-f", tmp_path)[0] == 2


@pytest.mark.parametrize(
    "options",
    [["--node-memory", "lots"], ["--node-memory", "0"], ["--kubernetes-version", "1.99"]],
    ids=" ".join,
)
def test_bad_options_are_one_line(capsys, good, options):
    code = main(["explain", "-f", str(good), *options])
    err = capsys.readouterr().err
    assert code == 2
    assert len(err.splitlines()) == 1
    assert options[0] in err


def test_a_reader_that_goes_away_is_no_error(good):
    command = f"{sys.executable} -m podqos explain -f {good} -o wide | true"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_standard_input_is_read_for_a_dash(good):
    command = [sys.executable, "-m", "podqos", "explain", "-f", "-", "-o", "csv"]
    done = subprocess.run(command, input=GOOD, capture_output=True, text=True, check=True)
    assert "production,article-service,app,Burstable" in done.stdout


def test_names_that_need_quotes_get_them(capsys, tmp_path):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": 'a,"b', "uid": "u"},
        "spec": {"containers": [{"name": "c\n"}]},
    }
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(pod))
    _, out, _ = explain(capsys, "-f", file, "-o", "csv")
    assert list(csv.reader(io.StringIO(out)))[1] == ["default", 'a,"b', "c\n", "BestEffort", "1000"]


WINDOWS = """\
apiVersion: v1
kind: Pod
metadata: {name: w}
spec:
  os: {name: windows}
  containers: [{name: a, resources: {requests: {memory: 1Gi}}}]
"""


@pytest.mark.parametrize("output", ["text", "table", "wide", "csv", "json"])
def test_a_windows_pod_has_a_class_but_neither_oom_score_nor_cgroup(tmp_path, capsys, output):
    file = tmp_path / "pod.yaml"
    file.write_text(WINDOWS)
    assert main(["explain", "-f", str(file), "-o", output]) == 0
    out = capsys.readouterr().out.replace(str(tmp_path), "")
    assert "Burstable" in out
    assert "985" not in out
    assert "cri-containerd" not in out
    if output == "csv":
        assert out.splitlines()[1] == "default,w,a,Burstable,"
    if output == "json":
        (item,) = json.loads(out)["items"]
        assert item["containers"][0]["oomScoreAdj"] is None
        assert item["cgroups"] == []


def test_objects_without_pods_are_counted(tmp_path, capsys):
    file = tmp_path / "all.yaml"
    file.write_text(
        WINDOWS + "---\napiVersion: v1\nkind: ConfigMap\ndata: []\n---\napiVersion: v1\nkind: Service\n"
        "---\napiVersion: e.com/v1\nkind: Widget\n"
    )
    assert main(["explain", "-f", str(file), "-o", "csv"]) == 0
    assert "1 pod explained; skipped 3 objects without pods" in capsys.readouterr().err


_NODE = """apiVersion: v1
kind: Node
metadata: {{name: {name}}}
status: {{capacity: {{memory: {memory}}}}}
"""
_BOUND = """apiVersion: v1
kind: Pod
metadata: {{name: on-{node}}}
spec: {{nodeName: {node}, containers: [{{name: c, image: x, resources: {{requests: {{memory: 1Gi}}}}}}]}}
"""


@pytest.mark.parametrize("padding", [0, 600_000], ids=["read as one", "spread over cores"])
def test_a_pod_that_is_bound_has_the_scores_of_its_own_node(tmp_path, capsys, padding):
    nodes = {"small": "4Gi", "large": "16Gi"}
    for name, memory in nodes.items():
        (tmp_path / f"{name}.yaml").write_text(_NODE.format(name=name, memory=memory) + "#" * padding + "\n")
    pods = "---\n".join(_BOUND.format(node=node) for node in ("small", "large", "unknown"))
    (tmp_path / "pods.yaml").write_text(pods + "#" * padding + "\n")
    scores = {}
    for words in ((), ("--node-memory", "8Gi")):
        assert main(["explain", "-f", str(tmp_path), "-o", "csv", *words]) == 0
        scores[words] = [line.split(",")[-1] for line in capsys.readouterr().out.splitlines()[1:]]

    assert scores[()] == ["750", "938", "750"]
    assert scores["--node-memory", "8Gi"] == ["875"] * 3


@pytest.mark.parametrize("output", ["text", "wide", "json", "csv"])
@pytest.mark.parametrize("amount", ["9e999", "1.5e400", "1000E", "9e18"])
def test_an_amount_that_64_bits_do_not_hold_is_shown_as_written_and_counts_as_the_most_that_they_do(
    capsys, tmp_path, amount, output
):
    limits = f"resources: {{limits: {{cpu: {amount}, memory: {amount}}}}}"
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: large}\nspec:\n"
    (tmp_path / "pod.yaml").write_text(f"{pod}  containers: [{{name: c, image: i, {limits}}}]\n")
    assert main(["explain", str(tmp_path / "pod.yaml"), "-v", "-o", output]) == 0
    said = capsys.readouterr().out
    assert "Guaranteed" in said
    assert not re.search("[0-9]{25}", said)


def test_of_a_cluster_pods_count_and_their_controllers_only_where_the_list_has_no_pods(tmp_path, capsys):
    """What is written counts in any case, and what has ended in none."""
    deployment = yaml.safe_load(GOOD)
    deployment["metadata"]["uid"] = "d"
    spec = deployment["spec"]["template"]["spec"]
    made = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{number}", **live}, "spec": spec, "status": status}
        for number, (live, status) in enumerate(
            [({}, {}), ({"uid": "1"}, {}), ({"uid": "2"}, {}), ({"uid": "3"}, {"phase": "Succeeded"})]
        )
    ]
    for objects, count in (([deployment, *made], 3), ([deployment, *made[:1]], 2), (made[:1], 1), (made[1:2], 1)):
        (tmp_path / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        assert main(["explain", "-f", str(tmp_path / "all.json"), "-o", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["node"]["pods"] == count
