"""What stands around a workload has a say in its sizes: LimitRanges, autoscalers, quotas, and its own runtime."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from podqos.cli.main import main

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web:1
        command: [java, -Xmx3g, -jar, app.jar]
        env:
        - {name: OTHER, value: "1"}
        - {name: GOMEMLIMIT, value: 3GiB}
        resources:
          requests: {cpu: "1", memory: 4Gi}
          limits: {memory: 4Gi}
"""
AUTOSCALER = """\
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 10
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
"""
LIMITED = """\
---
apiVersion: v1
kind: LimitRange
metadata: {name: limits, namespace: shop}
spec: {limits: [{type: Container, min: {cpu: 300m}}]}
"""
QUOTA = """\
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: team, namespace: shop}
spec: {hard: {requests.memory: 20Gi}}
status: {hard: {requests.memory: 20Gi}, used: {requests.memory: 18Gi}}
"""


@pytest.fixture
def advise(capsys, tmp_path: Path):
    """Run the command on a manifest whose pods use so much, and return what it prints."""

    def run(manifest: str, *options: str, memory_mib: int = 1000) -> str:
        (tmp_path / "web.yaml").write_text(manifest)
        rows = [f"web-7d8b9c4f5-aaaaa,web,{memory_mib}Mi,{200 + number % 3 * 20}m" for number in range(200)]
        (tmp_path / "usage.csv").write_text("\n".join(["pod,container,memory,cpu", *rows, ""]))
        files = ("-f", str(tmp_path / "web.yaml"), "--usage", str(tmp_path / "usage.csv"))
        assert main(["advise", *files, *options]) == 0
        return capsys.readouterr().out

    return run


def test_runtime_settings_are_lowered_together_with_the_limit(advise):
    (patch,) = yaml.safe_load_all(advise(WEB, "-o", "patch"))
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    # 75 % and 90 % of it
    assert container["resources"]["limits"] == {"memory": "1115Mi"}
    assert container["command"] == ["java", "-Xmx836m", "-jar", "app.jar"]
    assert container["env"] == [{"name": "GOMEMLIMIT", "value": "1003MiB"}]
    assert "-Xmx3g → -Xmx836m: Java needs to leave room" in advise(WEB)


@pytest.mark.parametrize("output", [("-o", "manifests"), ("--patch", "kubectl")], ids=["manifests", "kubectl"])
def test_every_form_of_the_advice_has_the_runtime_settings(advise, output):
    out = advise(WEB, *output)
    assert "-Xmx836m" in out
    assert "1003MiB" in out
    assert "-Xmx3g" not in out


def test_an_autoscaler_in_percent_of_the_request_makes_more_replicas_of_a_smaller_one(advise):
    """220m on average in a request of 240m is 92 %, and 50 % is the target."""
    (workload,) = json.loads(advise(WEB + AUTOSCALER, "-o", "json"))["workloads"]
    scaled = workload["autoscaled"]
    assert (scaled["replicasBefore"], scaled["replicas"], scaled["sameTargetPercent"]) == (4, 8, 208)
    assert "replicas 4 → 8; a target of 208 % keeps" in advise(WEB + AUTOSCALER)


def test_a_limit_range_holds_sizes_and_is_named(advise):
    out = advise(WEB + LIMITED)
    assert "cpu 1 / – → 300m / –" in out
    assert "requests.cpu is 300m instead of 240m: LimitRange shop/limits allows at least this" in out


def test_a_quota_that_has_not_enough_left_is_named(advise):
    """4 pods of 1Gi more each, and 2Gi is left."""
    out = advise(WEB + QUOTA, memory_mib=4600)
    assert "ResourceQuota shop/team is too small: " in out
    assert "2Gi is left" in out


def test_the_need_is_explained_in_one_line(advise):
    words = " ".join(advise(WEB).split())
    assert "memory needs 1115Mi: peaks up to 1000Mi that spread by 20Mi; 0.97 % chance of an OOM kill per pod" in words


def test_a_goal_decides_how_much_memory_an_oom_kill_is_worth(advise):
    def limit(*goal: str) -> int:
        (workload,) = json.loads(advise(WEB, *goal, "-o", "json"))["workloads"]
        return workload["containers"][0]["memoryNeed"]["needBytes"]

    assert limit("--goal", "cheapest") < limit() < limit("--goal", "safest")
