"""`podqos simulate` and `podqos scenario new` of manifests: the pods of a node, and what grows."""

from __future__ import annotations

import re

import pytest

from podqos.cli.main import main

POD = """
apiVersion: {version}
kind: {kind}
metadata: {{name: {name}}}
spec:
  {more}template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers:
        - {{name: app, image: x, resources: {{requests: {{memory: {request}}}}}}}
"""


def deployment(name: str, request: str) -> str:
    more = f"selector: {{matchLabels: {{app: {name}}}}}\n  "
    return POD.format(version="apps/v1", kind="Deployment", name=name, request=request, more=more)


@pytest.fixture
def deploy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deploy").mkdir()
    names = {"app-04": "1Gi", "app-09": "512Mi", "db": "2Gi"}
    (tmp_path / "deploy/apps.yaml").write_text("---".join(deployment(*each) for each in names.items()))
    (tmp_path / "usage.csv").write_text("pod,memory\napp-04-0,900Mi\napp-09-0,600Mi\ndb-0,1Gi\n")
    return ["deploy", "--usage", "usage.csv", "--growing", "app-04", "--growing", "app-09=32Mi/s", "--rate", "64Mi/s"]


def shown(capsys, *arguments: str) -> str:
    assert main([*arguments]) == 0
    return capsys.readouterr().out


def test_manifests_run_as_they_are_and_the_first_victim_is_that_of_forecast(capsys, deploy):
    """4096Mi less 2524Mi and the kernel's reserve, at 96Mi/s."""
    memory = "--node-memory=4Gi"
    out = shown(capsys, "simulate", *deploy, memory, "--until", "1m")
    kills = re.findall(r"(?m)^([\d.]+) s .*◆ (\S+) OOM-killed", out)[:2]
    told = shown(capsys, "forecast", "-f", *deploy, memory)
    foretold = re.findall(r"\d  after ([\d.]+) s: default/(\S+) ", told)
    assert [(round(float(after), 1), pod) for after, pod in kills] == [(float(after), pod) for after, pod in foretold]
    assert foretold == [("15.5", "app-04-0"), ("26.2", "app-09-0")]


def test_the_run_is_written_as_a_scenario_to_edit(capsys, deploy):
    direct = shown(capsys, "simulate", *deploy, "--until", "2m", "-o", "jsonl")
    assert shown(capsys, "scenario", "new", "mine", "--from", *deploy, "--duration", "2m").startswith("mine.yaml\n")
    assert shown(capsys, "simulate", "mine.yaml", "-o", "jsonl") == direct


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("race", "--growing", "x"), "--growing: needs manifests (give a file or a directory of them)"),
        (("deploy", "--growing", "ap-04-0"), "no such pod: ap-04-0 (did you mean app-04-0?)"),
        (("deploy", "--node-memory", "2Gi"), "the pods use 3584Mi, but the node has 2Gi"),
    ],
)
def test_what_cannot_be_run_is_refused(capsys, deploy, arguments, message):
    assert main(["simulate", *arguments]) == 2
    assert message in capsys.readouterr().err
