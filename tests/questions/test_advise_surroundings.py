"""What stands around a workload has a say in its sizes: LimitRanges, autoscalers and quotas."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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


def test_an_autoscaler_in_percent_of_a_request_that_changes_is_named(advise):
    (workload,) = json.loads(advise(WEB + AUTOSCALER, "-o", "json"))["workloads"]
    assert workload["autoscaler"] == "shop/web"
    assert "HorizontalPodAutoscaler shop/web targets a share of the request" in " ".join(
        advise(WEB + AUTOSCALER).split()
    )
    of_memory = AUTOSCALER.replace(
        "{type: Utilization, averageUtilization: 50}", "{type: AverageValue, averageValue: 1}"
    )
    assert "HorizontalPodAutoscaler" not in advise(WEB + of_memory)


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
