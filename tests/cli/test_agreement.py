"""Commands that look at the same manifest agree about its pods: all see them as the API server stores them."""

from __future__ import annotations

import json

import pytest

from podqos.cli.main import main

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  {more}
  containers:
  - {name: app, image: app, resources: {resources}}
"""
REQUEST = "{requests: {cpu: 100m, memory: 1Gi}}"
LIMIT_RANGE = """\
---
apiVersion: v1
kind: LimitRange
metadata: {name: defaults}
spec: {limits: [{type: Container, default: {cpu: 1, memory: 4Gi}, defaultRequest: {cpu: 100m, memory: 2Gi}}]}
"""
RUNTIME_CLASS = """\
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: kata}
handler: kata
overhead: {podFixed: {cpu: 250m, memory: 512Mi}}
"""
GLOBAL_DEFAULT = """\
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: normal}
value: 1000
globalDefault: true
"""


def manifest(policy: str = "", *, more: str = "hostNetwork: false", resources: str = REQUEST) -> str:
    return POD.replace("{more}", more).replace("{resources}", resources) + policy


MANIFESTS = pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            manifest(more="priorityClassName: system-node-critical"),
            ("Burstable", -997, 2000001000),
            id="node-critical",
        ),
        pytest.param(
            manifest(more="priorityClassName: system-cluster-critical"),
            ("Burstable", 938, 2000000000),
            id="cluster-critical has an ordinary score",
        ),
        pytest.param(manifest(LIMIT_RANGE, resources="{}"), ("Burstable", 875, 0), id="defaults of a LimitRange"),
        pytest.param(manifest(resources="{limits: {cpu: 1, memory: 1Gi}}"), ("Guaranteed", -997, 0), id="limits only"),
        pytest.param(
            manifest(RUNTIME_CLASS, more="runtimeClassName: kata"),
            ("Burstable", 938, 0),
            id="overhead of a runtime class",
        ),
        pytest.param(manifest(GLOBAL_DEFAULT), ("Burstable", 938, 1000), id="global default priority"),
    ],
)


@pytest.fixture
def answers(capsys, tmp_path):
    """Return what one command says of the pod: class, score and priority."""

    def of(command: str, text: str) -> tuple[str, int, int | None]:
        (tmp_path / "pod.yaml").write_text(text)
        (tmp_path / "usage.csv").write_text("pod,memory\napp,1Gi\n")
        given = {
            "explain": ["-f", tmp_path / "pod.yaml"],
            "check": [tmp_path / "pod.yaml", "--fail-on", "never"],
            "rank": ["-f", tmp_path / "pod.yaml", "--usage", tmp_path / "usage.csv"],
        }[command]
        assert main([command, *map(str, given), "--node-memory", "16Gi", "-o", "json"]) == 0
        return {"explain": _explained, "check": _checked, "rank": _ranked}[command](json.loads(capsys.readouterr().out))

    return of


def _explained(report):
    (item,) = report["items"]
    return item["qosClass"], item["containers"][0]["oomScoreAdj"], item["priority"]


def _checked(report):
    standing = next(item["effects"]["now"] for item in report["items"] if item["effects"]["now"] is not None)
    return standing["qosClass"], standing["oomScoreAdj"], standing["priority"]


def _ranked(report):
    (evicted,), (killed,) = report["evictionOrder"], report["killOrder"]
    return evicted["qosClass"], killed["oomScoreAdj"], evicted["priority"]


@MANIFESTS
@pytest.mark.parametrize("command", ["explain", "check", "rank"])
def test_explain_check_and_rank_give_a_pod_the_same_class_score_and_priority(answers, command, text, expected):
    assert answers(command, text) == expected


@MANIFESTS
@pytest.mark.parametrize("command", ["drift", "advise"])
def test_drift_and_advise_start_from_the_same_pod(capsys, tmp_path, command, text, expected):
    (tmp_path / "pod.yaml").write_text(
        text.replace("{name: app}", "{name: app, annotations: {podqos.dev/latency-sensitive: 'true'}}")
    )
    (tmp_path / "none.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: none}\n")
    old, new = str(tmp_path / "none.yaml"), str(tmp_path / "pod.yaml")
    given, side = {"drift": ([old, new], "after"), "advise": (["-f", new], "before")}[command]

    main([command, *given, "--node-memory", "16Gi", "-o", "json"])

    (workload,) = json.loads(capsys.readouterr().out)["workloads"]
    seen = workload[side]
    assert (seen["qosClass"], seen["scores"][0]["oomScoreAdj"], seen["priority"]) == expected


@MANIFESTS
def test_cpu_gives_a_pod_the_same_class(capsys, tmp_path, text, expected):
    (tmp_path / "pod.yaml").write_text(text)
    assert main(["cpu", "-f", str(tmp_path / "pod.yaml"), "--cores", "4", "-o", "json"]) == 0
    (pod,) = json.loads(capsys.readouterr().out)["pods"]
    assert pod["qosClass"] == expected[0]


def test_place_counts_what_policies_add(capsys, tmp_path):
    (tmp_path / "pod.yaml").write_text(
        manifest(LIMIT_RANGE + RUNTIME_CLASS, more="runtimeClassName: kata", resources="{}")
    )
    node = ["--nodes", "1", "--node-capacity", "cpu=4,memory=16Gi"]
    assert main(["place", "-f", str(tmp_path / "pod.yaml"), *node, "-o", "json"]) == 0
    (node_report,) = json.loads(capsys.readouterr().out)["nodes"]
    assert node_report["requested"] == {"cpu": "350m", "memory": "2560Mi"}


def test_the_overhead_of_a_runtime_class_is_in_the_cgroup_that_explain_shows(capsys, tmp_path):
    (tmp_path / "pod.yaml").write_text(
        manifest(RUNTIME_CLASS, more="runtimeClassName: kata", resources="{limits: {cpu: 1, memory: 1Gi}}")
    )
    main(["explain", "-f", str(tmp_path / "pod.yaml"), "--node-memory", "16Gi", "-o", "json"])
    (item,) = json.loads(capsys.readouterr().out)["items"]
    (pod,) = (cgroup for cgroup in item["cgroups"] if cgroup["level"] == "pod")
    values = {file["name"]: file["value"] for file in pod["files"]}
    assert values["memory.max"] == str(1536 << 20)
