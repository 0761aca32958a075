"""``podqos blast`` as a user meets it."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path

import pytest

from podqos.cli.main import main

ROOT = Path(__file__).parents[2]
PLATFORM = ROOT / "scenarios" / "content-platform"
NODE = ["-f", str(PLATFORM / "platform"), "--usage", str(PLATFORM / "usage.csv"), "--node-memory", "64Gi"]
RACE = str(ROOT / "scenarios" / "race.yaml")


def _blast(capsys, *options: str) -> tuple[int, str, str]:
    code = main(["blast", *options])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_pipeline_of_the_race_takes_the_log_collector_with_it(capsys):
    code, out, _ = _blast(capsys, RACE)
    assert code == 0
    assert "batch/analytics-pipeline-0" in out
    assert "monitoring/log-collector-worker-1" in out
    assert out.startswith(
        "1 of 9 pods takes others down when it leaks: batch/analytics-pipeline-0. "
        "At 1Gi/s it takes down monitoring/log-collector-worker-1, OOM-killed after 5.95 s.\n"
    )
    assert json.loads(_blast(capsys, RACE, "-o", "json")[1])["headline"] == out.partition("\n")[0]


def test_where_nobody_harms_others_it_says_so(capsys):
    code, out, _ = _blast(capsys, *NODE)
    assert code == 0
    assert out.startswith("No pod takes others down: a leaking pod is always the first to be OOM-killed or evicted.\n")


def test_json_lists_the_most_dangerous_first_with_who_dies_when_and_by_whom(capsys):
    report = json.loads(_blast(capsys, RACE, "-o", "json")[1])
    assert (report["nodes"], report["pods"], len(report["leaks"])) == (1, 9, 18)
    worst = report["leaks"][0]
    assert worst["pod"] == "batch/analytics-pipeline-0"
    first = worst["others"][0]
    assert (first["pod"], first["by"], first["cause"]) == ("monitoring/log-collector-worker-1", "kernel", "node")
    assert worst["end"]["afterSeconds"] > first["afterSeconds"]
    assert not any(leak["takesCritical"] for leak in report["leaks"])


def test_the_matrix_has_the_victims_that_are_taken_down_most_often_first(capsys):
    report = json.loads(_blast(capsys, "graceful-degradation", "-o", "json")[1])
    times = Counter(pod for leak in report["leaks"] for pod in {death["pod"] for death in leak["others"]})
    assert report["victims"] == sorted(times, key=lambda pod: (-times[pod], pod))
    out = _blast(capsys, "graceful-degradation")[1]
    heading = next(line for line in out.splitlines() if line.startswith("  LEAKS"))
    assert heading.split()[1:] == report["victims"]
    assert len(report["victims"]) > 1


def test_daemons_that_leak_take_one_pod_after_the_other(capsys):
    code, out, _ = _blast(capsys, RACE, "--growing", "system")
    assert code == 0
    first, second, *_ = out.splitlines()
    assert first == "System daemons that leak 1Gi/s take 9 pods down, the first after 5.95 s."
    assert second == "System daemons on one node, leaking 4Mi/s (slow) and 1Gi/s (fast)."
    report = json.loads(_blast(capsys, RACE, "--growing", "system", "-o", "json")[1])
    for leak in report["leaks"]:
        assert (leak["pod"], leak["container"], leak["qosClass"], leak["end"]) == ("system", "", None, None)
        assert leak["others"][0]["pod"] == "monitoring/log-collector-worker-1"
        assert len({death["pod"] for death in leak["others"]}) == 9, "each has died once"


def test_one_pod_can_leak_alone(capsys):
    report = json.loads(_blast(capsys, RACE, "--growing", "analytics-pipeline", "-o", "json")[1])
    every = json.loads(_blast(capsys, RACE, "-o", "json")[1])
    assert report["leaks"] == [leak for leak in every["leaks"] if leak["pod"] == "batch/analytics-pipeline-0"]
    assert _blast(capsys, RACE, "--growing", "analytics-pipeline")[1].startswith(
        "batch/analytics-pipeline-0 takes others down when it leaks. At 1Gi/s it takes down monitoring/"
    )
    code, _, err = _blast(capsys, RACE, "--growing", "nothing")
    assert code == 2
    assert "--growing: no such pod: nothing" in err


def test_csv_has_a_line_per_pod_and_rate(capsys):
    rows = list(csv.DictReader(io.StringIO(_blast(capsys, RACE, "-o", "csv", "--slow", "1Mi/s")[1])))
    assert len(rows) == 18
    assert {row["rate_bytes_per_second"] for row in rows} == {str(1 << 20), str(1 << 30)}


BAD = {
    "nothing": ([], "no pods given"),
    "both": ([RACE, "--usage", "x.csv"], "cannot be combined"),
    "no rate": ([RACE, "--fast", "quick"], "--fast: 'quick'"),
    "no such scenario": (["nowhere.yaml"], "nowhere.yaml"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_told_and_exit_code_2(capsys, options, message):
    code, out, err = _blast(capsys, *options)
    assert (code, out) == (2, "")
    assert message in err


SCENARIO = """\
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: full}
spec:
  duration: 1m
  manifests: [pods.yaml]
  nodes:
    - name: worker
      capacity: {cpu: 4, memory: 8Gi}
      filesystems: {nodefs: {capacity: 100Gi}}
      kubelet: {evictionHard: {memory.available: 1Gi}}
  workloads:
    - {workload: other, nodes: [worker], demand: {memory: 2Gi}}
    - {workload: web, nodes: [worker], demand: {memory: WEB}}
"""
PODS = """\
apiVersion: v1
kind: Pod
metadata: {name: other, namespace: shop}
spec: {containers: [{name: main, image: x}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: x, resources: {requests: {memory: 1Gi}, limits: {memory: 3Gi}}}]}
"""


def _scenario(folder: Path, web: str) -> str:
    (folder / "pods.yaml").write_text(PODS)
    (folder / "full.yaml").write_text(SCENARIO.replace("WEB", web))
    return str(folder / "full.yaml")


def test_a_demand_above_its_own_limit_is_refused_with_its_place(capsys, tmp_path):
    path = _scenario(tmp_path, "4Gi")
    code, out, err = _blast(capsys, path)
    assert (code, out) == (2, "")
    assert f"error: {path}:14:7: shop/web-0 main uses 4Gi, above its limit of 3Gi" in err


def test_more_than_the_node_has_is_refused(capsys, tmp_path):
    path = _scenario(tmp_path, "3Gi")
    code, out, err = _blast(capsys, path)
    assert (code, out) == (2, "")
    assert f"error: {path}: pods and system use more memory than worker has (7.9Gi)" in err


def test_pods_that_are_evicted_without_a_leak_are_named(capsys, tmp_path):
    code, out, _ = _blast(capsys, _scenario(tmp_path, "2816Mi"))
    assert code == 0
    assert "Evicted without any leak: shop/other on worker. Leaks begin when it is gone." in out
    assert "2 pods on one node" in out


def test_where_every_pod_is_evicted_without_a_leak_none_is_left_to_leak(capsys, tmp_path):
    pods, usage, kubelet = (tmp_path / name for name in ("pods.yaml", "usage.csv", "kubelet.yaml"))
    pods.write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: lone}, spec: {nodeName: n1, containers: [{name: c, image: i}]}}"
    )
    usage.write_text("pod,container,memory\ndefault/lone,c,14Gi\n")
    kubelet.write_text(
        "{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration, evictionHard: {memory.available: 4Gi}}"
    )
    given = *map(str, ("-f", pods, "--usage", usage, "--kubelet-config", kubelet)), "--node-memory", "16Gi"
    code, out, _ = _blast(capsys, *given)
    assert (code, out) == (0, "No pod is left to leak. Evicted without any leak: default/lone on n1.\n")
    code, out, _ = _blast(capsys, *given, "-o", "json")
    radius = json.loads(out)
    assert (code, radius["leaks"], radius["evictedBefore"]) == (0, [], [{"node": "n1", "pod": "default/lone"}])


def test_a_measured_usage_above_a_limit_is_refused_with_its_place(capsys, tmp_path):
    _scenario(tmp_path, "1Gi")
    usage = tmp_path / "usage.csv"
    usage.write_text("pod,memory\nother,1Gi\nweb,4Gi\n")
    given = ["-f", str(tmp_path / "pods.yaml"), "--usage", str(usage), "--node-memory", "16Gi"]
    place = f"{usage}:3: web"
    code, out, err = _blast(capsys, *given)
    assert (code, out) == (2, "")
    assert f"error: {place} main uses 4Gi, above its limit of 3Gi" in err
