"""Autoscalers in the input: what is written is not what runs, and every command says so."""

from __future__ import annotations

import json

import pytest

from podqos.cli.main import main

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  template:
    spec:
      containers:
        - {name: app, image: app, resources: {requests: {memory: 1Gi}}}
"""
VERTICAL = """\
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: sizes}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy: {updateMode: MODE}
  resourcePolicy:
    containerPolicies:
      - {containerName: "*", minAllowed: {memory: 512Mi}, maxAllowed: {memory: 16Gi}}
"""
HORIZONTAL = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: counts}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 10
"""


def explained(capsys, *files) -> dict:
    assert main(["explain", "-o", "json", *(part for file in files for part in ("-f", str(file)))]) == 0
    return json.loads(capsys.readouterr().out)["items"][0]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "web.yaml").write_text(DEPLOYMENT)
    (tmp_path / "vpa.yaml").write_text(VERTICAL.replace("MODE", "Auto"))
    return tmp_path


def test_explain_shows_class_and_score_at_the_bounds_of_a_vertical_autoscaler(folder, capsys):
    item = explained(capsys, folder)
    assert item["verticalScaling"] == {
        "autoscaler": "sizes",
        "updateMode": "Auto",
        "atMinAllowed": {"qosClass": "Burstable", "containers": [{"container": "app", "oomScoreAdj": 993}]},
        "atMaxAllowed": {"qosClass": "Burstable", "containers": [{"container": "app", "oomScoreAdj": 750}]},
    }
    assert "changes its resources at run time" in item["notes"][-1]


@pytest.mark.parametrize(
    ("mode", "counts"), [("Recreate", True), ("InPlaceOrRecreate", True), ("Initial", True), ('"Off"', False)]
)
def test_an_autoscaler_that_is_off_changes_nothing(folder, capsys, mode, counts):
    (folder / "vpa.yaml").write_text(VERTICAL.replace("MODE", mode))
    assert (explained(capsys, folder)["verticalScaling"] is not None) is counts


@pytest.mark.parametrize("policy", ['mode: "Off"', "controlledResources: []"])
def test_an_autoscaler_that_controls_no_container_changes_nothing(folder, capsys, policy):
    text = VERTICAL.replace("MODE", "Auto").replace('containerName: "*"', f'containerName: "*", {policy}')
    (folder / "vpa.yaml").write_text(text)
    assert explained(capsys, folder)["verticalScaling"] is None


def test_without_an_update_policy_an_autoscaler_is_on(folder, capsys):
    (folder / "vpa.yaml").write_text(VERTICAL.replace("  updatePolicy: {updateMode: MODE}\n", "  updatePolicy:\n"))
    assert explained(capsys, folder)["verticalScaling"]["updateMode"] == "Auto"


def test_an_autoscaler_of_another_namespace_or_directory_does_not_count(tmp_path, capsys):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "web.yaml").write_text(DEPLOYMENT)
    (tmp_path / "b" / "vpa.yaml").write_text(VERTICAL.replace("MODE", "Auto"))
    assert explained(capsys, tmp_path)["verticalScaling"] is None
    assert explained(capsys, tmp_path / "a", tmp_path / "b" / "vpa.yaml")["verticalScaling"] is not None
    elsewhere = VERTICAL.replace("MODE", "Auto").replace("{name: sizes}", "{name: sizes, namespace: other}")
    (tmp_path / "b" / "vpa.yaml").write_text(elsewhere)
    assert explained(capsys, tmp_path / "a", tmp_path / "b" / "vpa.yaml")["verticalScaling"] is None


def test_autoscalers_count_where_files_are_explained_on_all_cores(folder, capsys):
    (folder / "large.yaml").write_text("# " + "x" * (1 << 20) + "\n" + DEPLOYMENT.replace("web", "other"))
    names = {item["name"]: item for item in _all(folder, capsys)}
    assert names["web"]["verticalScaling"]["autoscaler"] == "sizes"
    assert names["other"]["verticalScaling"] is None


def _all(folder, capsys):
    assert main(["explain", "-o", "json", "-f", str(folder)]) == 0
    return json.loads(capsys.readouterr().out)["items"]


def test_explain_shows_how_many_pods_a_horizontal_autoscaler_runs(folder, capsys):
    (folder / "hpa.yaml").write_text(HORIZONTAL)
    assert explained(capsys, folder)["horizontalScaling"] == {
        "autoscaler": "counts",
        "minReplicas": 2,
        "maxReplicas": 10,
    }


@pytest.mark.parametrize(
    "command", ["check", "place --nodes 1 --node-capacity cpu=8,memory=32Gi", "rank", "cpu --cores 4"]
)
def test_other_commands_assume_what_is_written_and_say_so(folder, capsys, command):
    (folder / "hpa.yaml").write_text(HORIZONTAL)
    main([*command.split(), "-f", str(folder)])
    said = capsys.readouterr().err
    assert "resources of web: as written (a VerticalPodAutoscaler changes them)" in said
    assert "replicas of web: as written (a HorizontalPodAutoscaler changes them)" in said


def test_an_autoscaler_that_cannot_be_read_is_a_problem_with_its_place(folder, capsys):
    (folder / "vpa.yaml").write_text(VERTICAL.replace("MODE", "Auto").replace("512Mi", "lots"))
    assert main(["explain", "-f", str(folder)]) == 2
    assert "vpa.yaml:9:" in capsys.readouterr().err
