"""Advice where there is no history: what a live cluster measured at one moment, and what autoscalers recommend."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster.serving import Request
from library import clusters
from library.test_live_cluster import api_server, podqos
from podqos.advice.sizing.coverage import Shortfall
from podqos.objects.autoscaling import Autoscalers
from podqos.questions.advise_usage import measured_samples, recommended_samples
from podqos.reading.loading import load

MI = 1 << 20
PODS = [each["metadata"]["name"] for each in clusters.LISTS["PodList"][1]]
WEB_POD = next(name for name in PODS if name.startswith("web"))


def metrics(request: Request) -> object:
    """Answer as a cluster with a metrics server, whose kubelets nobody may ask."""
    if request.path.startswith("/apis/metrics.k8s.io/") and request.path.endswith("/pods"):
        used = {"name": "web", "usage": {"cpu": "250000000n", "memory": "204800Ki"}}
        item = {
            "metadata": {"name": WEB_POD, "namespace": "shop"},
            "timestamp": "2026-11-17T12:00:00Z",
            "window": "15s",
            "containers": [used],
        }
        body = {"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": [item]}
        return json.dumps(body).encode()
    return api_server(request)


def advised(report: dict, workload: str) -> dict:
    return next(each for each in report["workloads"] if each["workload"] == workload)["containers"][0]


def test_a_live_cluster_is_advised_by_what_its_metrics_api_says(served, capsys):
    server = served(metrics)
    code, out, err = podqos(capsys, "advise", "-n", "shop", "-o", "json")
    report = json.loads(out)

    assert code == 0, err
    container = advised(report, "Deployment shop/web")
    assert (container["memoryBytes"]["most"], container["cpuMilli"]["most"]) == (200 * MI, 250)
    assert container["memoryBytes"]["count"] == 1
    assert {"what": "usage over time", "value": "as measured at one moment"}.items() <= next(
        each for each in report["assumptions"] if each["what"] == "usage over time"
    ).items()
    assert not any("/proxy/" in request.path for request in server.requests), "kubelets take more rights"


def test_samples_that_are_named_count_alone(served, capsys):
    server = served(metrics)
    Path("usage.csv").write_text(f"pod,container,memory\nshop/{WEB_POD},web,300Mi\n")
    code, out, err = podqos(capsys, "advise", "-A", "--usage", "usage.csv", "-o", "json")
    assert code == 0, err
    assert advised(json.loads(out), "Deployment shop/web")["memoryBytes"]["most"] == 300 * MI
    assert not any("metrics.k8s.io" in request.path for request in server.requests)


def test_an_oom_kill_that_a_pod_tells_of_is_known(served, capsys):
    def killed(request: Request) -> object:
        answer = metrics(request)
        if not request.path.endswith("/pods") or "metrics" in request.path:
            return answer
        listing = json.loads(answer)
        for item in listing["items"]:
            ended = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
            status = {"name": "web", "restartCount": 3, "lastState": ended, "state": {"running": {}}}
            if item["metadata"]["name"] == WEB_POD:
                item["status"] = {**item.get("status", {}), "containerStatuses": [status]}
        return json.dumps(listing).encode()

    served(killed)
    code, out, err = podqos(capsys, "advise", "-n", "shop", "-o", "json")
    assert code == 0, err
    assert "NeedUnknown" in advised(json.loads(out), "Deployment shop/web")["doubts"]


def test_a_snapshot_is_advised_by_what_its_kubelets_measured():
    samples = measured_samples(clusters.snapshot())
    assert {(each.pod.partition("/")[0], len(each.memory_bytes)) for each in samples} == {("shop", 1)}
    assert all(each.where.startswith("kubelet of ") for each in samples)


MANIFESTS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: web, resources: {requests: {memory: 100Mi, cpu: 100m}}}]}
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web-vpa, namespace: shop}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy: {updateMode: "Off"}
  resourcePolicy: {containerPolicies: [{containerName: app, maxAllowed: {memory: 300Mi}}]}
status:
  recommendation:
    containerRecommendations:
    - containerName: app
      target: {cpu: 250m, memory: 300Mi}
      uncappedTarget: {cpu: 250m, memory: 400Mi}
      lowerBound: {cpu: 100m, memory: 200Mi}
      upperBound: {cpu: "1", memory: 300Mi}
"""


@pytest.fixture
def objects(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("web.yaml").write_text(MANIFESTS)
    return load("web.yaml")


def test_a_recommendation_counts_where_nothing_was_measured(objects, capsys):
    (samples,), (assumption,) = recommended_samples(objects, ())
    assert (samples.pod, samples.container, samples.is_recommendation) == ("shop/web", "app", True)
    assert (samples.memory_bytes, samples.cpu_milli) == ((400 * MI,), (250,)), "what it needs, not what is allowed"
    assert assumption.value == "the recommendation of VerticalPodAutoscaler web-vpa"

    code, out, err = podqos(capsys, "advise", "-f", "web.yaml", "-o", "json")
    assert code == 0, err
    assert advised(json.loads(out), "Deployment shop/web")["memoryBytes"]["most"] == 400 * MI

    _, out, _ = podqos(capsys, "advise", "-f", "web.yaml")
    assert "based on a VerticalPodAutoscaler's recommendation, not measurements" in out
    assert "used:" not in out
    assert "samples" not in out.replace("no samples", "")


def test_samples_count_before_a_recommendation(objects, capsys):
    Path("usage.csv").write_text("pod,memory\nweb-7d8b9c4f5-x2k9p,50Mi\n")
    code, out, err = podqos(capsys, "advise", "-f", "web.yaml", "--usage", "usage.csv", "-o", "json")
    assert code == 0, err
    assert advised(json.loads(out), "Deployment shop/web")["memoryBytes"]["most"] == 50 * MI


def test_a_recommendation_is_provisional():
    from podqos.advice.sizing.coverage import RECOMMENDED
    from podqos.questions.advice import coverage_line

    assert RECOMMENDED.is_provisional
    assert RECOMMENDED.shortfalls == (Shortfall.RECOMMENDATION,)
    assert "VerticalPodAutoscaler" in coverage_line(RECOMMENDED)


def test_an_autoscaler_that_only_recommends_is_found_with_its_bounds(objects):
    (web,) = objects.workloads
    autoscalers = Autoscalers(objects)
    assert autoscalers.vertical(web) is None, "it changes nothing"
    vertical = autoscalers.recommending(web)
    recommendation = vertical.recommendation_for("app")
    assert str(recommendation.target["memory"]) == "300Mi"
    assert str(vertical.policy_for("app").max_allowed["memory"]) == "300Mi"
    assert vertical.recommendation_for("other") is None
