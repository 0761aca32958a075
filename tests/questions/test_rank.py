"""``podqos rank`` as a user meets it: three kinds of input, four outputs, options, bad input."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from podqos.cli.main import main

SCENARIO = Path(__file__).parents[2] / "scenarios" / "content-platform" / "platform"
RECORDINGS = Path(__file__).parents[1] / "recordings" / "kubelet"

USAGE = """\
pod,memory,processes
article-service,3Gi,1
search-api,1800Mi,1
cdn-origin,3500Mi,1
analytics-pipeline,6Gi,2
search-indexer,10Gi,1
content-generator,9Gi,1
log-collector,250Mi,1
debug-tools,20Mi,1
"""


@pytest.fixture
def usage(tmp_path: Path) -> Path:
    file = tmp_path / "usage.csv"
    file.write_text(USAGE)
    return file


def rank(capsys, *arguments: object) -> tuple[int, str, str]:
    """Run the command and return exit code, standard output and standard error."""
    code = main(["rank", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def platform(capsys, usage: Path, *arguments: object) -> dict:
    """Rank the content platform and return the JSON."""
    code, out, _ = rank(capsys, "-f", SCENARIO, "--usage", usage, "--node-memory", "64Gi", "-o", "json", *arguments)
    assert code == 0
    return json.loads(out)


def test_the_content_platform_degrades_from_logs_to_readers(capsys, usage):
    whole = platform(capsys, usage)
    assert [place["pod"].partition("/")[2] for place in whole["evictionOrder"]] == [
        "log-collector",
        "debug-tools",
        "analytics-pipeline-0",
        "content-generator-0",
        "content-generator-1",
        "search-indexer-0",
        "search-indexer-1",
        "cdn-origin-0",
        "search-api-0",
        "article-service-0",
    ]
    assert {place["qosClass"] for place in whole["killOrder"][-3:]} == {"Guaranteed"}
    reversed_pairs = [(each["evictedFirst"], each["killedFirst"]) for each in whole["disagreements"]]
    assert len(reversed_pairs) == whole["reversedPairs"] == 7
    assert {
        ("batch/content-generator-1", "batch/search-indexer-0"),
        ("production/search-api-0", "production/article-service-0"),
    } <= {*reversed_pairs}


def test_every_place_says_why_it_is_before_the_next(capsys, usage):
    whole = platform(capsys, usage)
    for order in (whole["evictionOrder"], whole["killOrder"]):
        assert [place["place"] for place in order] == list(range(1, len(order) + 1))
        assert all(place["reason"] and place["beforeNextBy"] for place in order[:-1])
        assert (order[-1]["reason"], order[-1]["beforeNextBy"]) == ("", None)
    analytics = next(place for place in whole["killOrder"] if place["pod"] == "batch/analytics-pipeline-0")
    assert (analytics["oomScoreAdj"], analytics["processes"], analytics["usedBytes"]) == (937, 2, 3 << 30)


def test_table_shows_both_orders_and_what_they_disagree_about(capsys, usage):
    before = SCENARIO.parent / "accidental" / "article-service.yaml"
    code, out, err = rank(capsys, "-f", before, "-f", SCENARIO, "--usage", usage, "--node-memory", "64Gi")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "monitoring/log-collector is evicted first and OOM-killed first."
    assert lines[2] == "Eviction order (kubelet), first to last: memory.available, hard, policy kubelet"
    assert "OOM kill order (kernel), first to last, when the machine runs out of memory" in lines
    assert "The orders disagree about 7 pairs of pods; 3 of them (-v):" in lines
    assert any("2 × 3Gi" in line and "937" in line for line in lines)
    assert (
        f"article-service.yaml:2:1: warning: Deployment production/article-service replaces the one of {before}" in err
    )


@pytest.mark.parametrize("options", [(), ("--node-memory", "63Gi")], ids=str)
def test_share_and_oom_score_adj_add_up_to_points_in_the_kernels_order(capsys, usage, options):
    arguments = ("-f", SCENARIO, "--usage", usage, "--node-memory", "64Gi", *options)
    out = rank(capsys, *arguments, "-v")[1]
    reckoned = re.findall(r"([\d.]+) ([+−]) (\d+) = (−?[\d.]+) ", out)
    kills = json.loads(rank(capsys, *arguments, "-o", "json")[1])["killOrder"]
    assert len(reckoned) == len(kills) == 10
    sums = []
    for (share, sign, adjustment, total), kill in zip(reckoned, kills, strict=True):
        points = float(total.replace("−", "-"))
        adj = int(adjustment) * (1 if sign == "+" else -1)
        assert (adj, float(share), points) == (kill["oomScoreAdj"], kill["sharePoints"], kill["points"])
        assert points == pytest.approx(float(share) + adj, abs=1e-9)
        sums.append(points)
    assert sums == sorted(sums, reverse=True)


def test_orders_that_agree_are_said_to(capsys, tmp_path, usage):
    usage.write_text("pod,memory\nlog-collector,1Gi\n")
    out = rank(capsys, "-f", SCENARIO / "log-collector.yaml", "--usage", usage, "--node-memory", "64Gi")[1]
    assert "Both orders agree." in out


def test_csv_has_a_row_per_pod(capsys, usage):
    out = rank(capsys, "-f", SCENARIO, "--usage", usage, "--node-memory", "64Gi", "-o", "csv")[1]
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["eviction_place"] for row in rows] == [str(place) for place in range(1, 11)]
    assert sorted(row["kernel_place"] for row in rows) == sorted(row["eviction_place"] for row in rows)
    assert rows[2]["pod"] == "batch/analytics-pipeline-0"
    assert rows[2]["oom_score_adj"] == "937"


@pytest.fixture
def kubelet(tmp_path: Path) -> list[object]:
    """Return the options for a recorded kubelet's answers."""
    summary, pods = (
        json.loads(gzip.decompress((RECORDINGS / f"{name}.json.gz").read_bytes())) for name in ("stats_summary", "pods")
    )
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "PodList", "apiVersion": "v1", **pods}))
    return ["--stats", tmp_path / "summary.json", "--pods", tmp_path / "pods.json"]


def test_a_kubelets_own_figures_are_ranked(capsys, kubelet):
    code, out, err = rank(capsys, *kubelet, "-o", "json")
    assert (code, err) == (0, "")
    whole = json.loads(out)
    assert len(whole["evictionOrder"]) == 12
    assert whole["node"]["name"] == "node-real"
    assert whole["node"]["memoryBytes"] == 19676319744 + 5598806016


PODS_READING = """\
apiVersion: v1
kind: Pod
metadata: {name: reader, namespace: default}
spec: {containers: [{name: main, image: a, resources: {requests: {memory: 1Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: other, namespace: default}
spec:
  containers:
    - {name: main, image: a, resources: {requests: {memory: 2Gi, cpu: 1}, limits: {memory: 2Gi, cpu: 1}}}
"""
USAGE_READING = "- {pod: reader, memory: 14Gi, anon: 1Gi}\n- {pod: other, memory: 1900Mi}\n"


@pytest.fixture
def snapshot(tmp_path: Path) -> list[object]:
    """Return options for a node one pod of which reads files."""
    pods, usage = tmp_path / "pods.yaml", tmp_path / "usage.yaml"
    pods.write_text(PODS_READING)
    usage.write_text(USAGE_READING)
    return ["-f", pods, "--usage", usage, "--node-memory", "16Gi"]


def test_a_reader_of_files_is_evicted_though_the_kernel_has_plenty(capsys, snapshot):
    whole = json.loads(rank(capsys, *snapshot, "-o", "json")[1])
    assert whole["evictionOrder"][0]["pod"] == "default/reader"
    assert whole["node"]["availableBytes"] == 148 << 20
    assert whole["node"]["kernelLeftBytes"] > 12 << 30


def test_with_a_limit_for_all_pods_the_kernel_kills_there_first(capsys, tmp_path, snapshot):
    snapshot[3].write_text(USAGE_READING.replace("anon: 1Gi", "anon: 10Gi"))
    kubelet = tmp_path / "kubelet.yaml"
    kubelet.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nsystemReserved: {memory: 3Gi}\n"
    )
    whole = json.loads(rank(capsys, *snapshot, "--kubelet-config", kubelet, "-o", "json")[1])
    assert whole["node"]["oomCgroup"] == "/kubepods.slice"
    assert whole["node"]["oomTotalBytes"] == 13 << 30
    assert "/kubepods.slice runs out of memory" in rank(capsys, *snapshot, "--kubelet-config", kubelet)[1]


# ---- a table that can be read at a glance ------------------------------------------------------------------------

REPLICAS = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 30
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: i, resources: {requests: {memory: 1Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: batch, namespace: shop}
spec: {containers: [{name: app, image: i}]}
"""


def test_pods_of_one_workload_that_nothing_tells_apart_are_one_row(capsys, tmp_path):
    (tmp_path / "pods.yaml").write_text(REPLICAS)
    lines = rank(capsys, "-f", tmp_path / "pods.yaml")[1].splitlines()
    assert len(lines) < 30
    rows = [line.split() for line in lines if "×30" in line]
    assert [row[:5] for row in rows] == [["2", "…", "31", "shop/web", "×30"]] * 2
    assert not any("NODE COMPONENT" in line for line in lines)
    everything = rank(capsys, "-f", tmp_path / "pods.yaml", "-v")[1]
    assert everything.count("shop/web-") >= 60
    assert "NODE COMPONENT" in everything


def test_of_many_workloads_the_first_ten_places_are_shown_and_how_many_more_there_are(capsys, tmp_path):
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p%02d}\nspec: {containers: [{name: app, image: i}]}\n"
    (tmp_path / "pods.yaml").write_text("---\n".join(pod % number for number in range(25)))
    out = rank(capsys, "-f", tmp_path / "pods.yaml")[1]
    assert out.count("… and 15 more") == 2
    assert "… and" not in rank(capsys, "-f", tmp_path / "pods.yaml", "-v")[1]
    assert "… and 22 more pods" in rank(capsys, "-f", tmp_path / "pods.yaml", "--top", "3")[1]


# ---- pods that have not started ----------------------------------------------------------------------------------

WAITING = "shop/waits"


def _stored(name: str, phase: str, *containers: str, **annotations: str) -> dict:
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": name, "annotations": annotations},
        "spec": {"nodeName": "worker-1", "containers": [{"name": each} for each in containers]},
        "status": {"phase": phase, "startTime": "2026-11-15T00:00:00Z"},
    }


def _measured(name: str, container: str) -> dict:
    memory = {"workingSetBytes": 1 << 30, "usageBytes": 1 << 30, "rssBytes": 1 << 30}
    own = {"name": name, "namespace": "shop", "uid": name}
    return {"podRef": own, "containers": [{"name": container, "memory": memory}], "memory": memory}


def of_kubelet(folder: Path, pods: list[dict], measured: list[dict]) -> list[object]:
    """Return the options for what a kubelet says about its pods."""
    node = {"nodeName": "worker-1", "memory": {"availableBytes": 6 << 30, "workingSetBytes": 2 << 30}}
    (folder / "stats.json").write_text(json.dumps({"node": node, "pods": measured}))
    (folder / "pods.json").write_text(json.dumps({"kind": "PodList", "apiVersion": "v1", "items": pods}))
    return ["--stats", folder / "stats.json", "--pods", folder / "pods.json"]


def test_a_pod_that_waits_for_its_image_is_evicted_first_and_cannot_be_killed(capsys, tmp_path):
    pods = [_stored("runs", "Running", "main"), _stored("waits", "Pending", "main")]
    given = of_kubelet(tmp_path, pods, [_measured("runs", "main")])

    whole = json.loads(rank(capsys, *given, "-o", "json")[1])
    assert [(each["pod"], each["kernelPlace"]) for each in whole["evictionOrder"]] == [
        (WAITING, None),
        ("shop/runs", 1),
    ]
    assert [each["pod"] for each in whole["killOrder"]] == ["shop/runs"]
    assert (whole["disagreements"], whole["reversedPairs"]) == ([], 0)
    table = rank(capsys, *given)[1]
    assert "No process to kill yet, because no container has started: shop/waits." in table
    assert next(line.split()[6] for line in table.splitlines() if f" {WAITING}  " in line) == "–"
    in_csv = csv.DictReader(io.StringIO(rank(capsys, *given, "-o", "csv")[1]))
    assert next((row["kernel_place"], row["oom_score_adj"]) for row in in_csv if row["pod"] == WAITING) == ("", "")


def test_of_a_pod_that_waits_for_one_image_the_other_containers_are_killed(capsys, tmp_path):
    pods = [_stored("waits", "Pending", "late", "early")]
    whole = json.loads(rank(capsys, *of_kubelet(tmp_path, pods, [_measured("waits", "early")]), "-o", "json")[1])

    assert [(each["pod"], each["container"]) for each in whole["killOrder"]] == [(WAITING, "early")]


def _told(pod: dict, **states: dict) -> dict:
    """Return a pod with what its node says of its containers."""
    pod["status"]["containerStatuses"] = [{"name": name, "state": state} for name, state in states.items()]
    return pod


CRASHING = {"waiting": {"reason": "CrashLoopBackOff"}}


@pytest.mark.parametrize("is_measured", [True, False])
def test_a_container_in_back_off_has_no_process_and_its_pod_uses_what_the_others_do(capsys, tmp_path, is_measured):
    pods = [
        _told(_stored("half", "Running", "main", "helper"), main=CRASHING, helper={"running": {}}),
        _told(_stored("down", "Running", "main"), main=CRASHING),
        _told(
            _stored("ended", "Running", "main", "job"), main={"running": {}}, job={"terminated": {"reason": "Error"}}
        ),
    ]
    given = of_kubelet(tmp_path, pods, [_measured("half", "helper"), _measured("ended", "main")])
    if not is_measured:
        given = ["-f", tmp_path / "pods.json"]

    whole = json.loads(rank(capsys, *given, "-o", "json")[1])
    assert {(each["pod"], each["container"]) for each in whole["killOrder"]} == {
        ("shop/half", "helper"),
        ("shop/ended", "main"),
    }
    # Without a container that runs there are no statistics of a pod, which the kubelet evicts first of all.
    used = 1 << 30 if is_measured else 64 << 20
    assert [(each["pod"], each["usage"]) for each in whole["evictionOrder"]] == [
        ("shop/down", None),
        ("shop/half", used),
        ("shop/ended", used),
    ]
    assert {(each["pod"], each["container"], each["reason"]) for each in whole["withoutProcess"]} == {
        ("shop/half", "main", "CrashLoopBackOff"),
        ("shop/down", "main", "CrashLoopBackOff"),
        ("shop/ended", "job", "Error"),
    }
    table = rank(capsys, *given)[1]
    assert "because the node reports CrashLoopBackOff: main of shop/half and shop/down." in table
    assert "because the node reports Error: job of shop/ended." in table
    assert "not running" in table
    assert "?" not in table


def test_what_was_measured_runs_whatever_the_status_said_a_moment_before(capsys, tmp_path):
    pods = [_told(_stored("runs", "Running", "main"), main=CRASHING)]
    whole = json.loads(rank(capsys, *of_kubelet(tmp_path, pods, [_measured("runs", "main")]), "-o", "json")[1])

    assert ([each["pod"] for each in whole["killOrder"]], whole["withoutProcess"]) == (["shop/runs"], [])


def test_a_static_pod_runs_whatever_the_kubelet_calls_its_phase(capsys, tmp_path):
    static = _stored("waits", "Pending", "main", **{"kubernetes.io/config.source": "file"})
    whole = json.loads(rank(capsys, *of_kubelet(tmp_path, [static], []), "-o", "json")[1])

    assert [each["pod"] for each in whole["killOrder"]] == [WAITING]


def test_pods_are_ranked_as_if_they_ran_where_no_node_has_them_yet(capsys, tmp_path):
    unplaced = _stored("waits", "Pending", "main")
    del unplaced["spec"]["nodeName"]
    (tmp_path / "pod.json").write_text(json.dumps({"kind": "Pod", "apiVersion": "v1", **unplaced}))
    whole = json.loads(rank(capsys, "-f", tmp_path / "pod.json", "-o", "json")[1])

    assert [each["pod"] for each in whole["killOrder"]] == [WAITING]


def test_what_a_waiting_pod_requests_is_not_assumed_to_be_used(capsys, tmp_path):
    pods = [_stored("runs", "Running", "main"), _stored("waits", "Pending", "main")]
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "PodList", "apiVersion": "v1", "items": pods}))
    whole = json.loads(rank(capsys, "-f", tmp_path / "pods.json", "-o", "json")[1])

    assert [each["pod"] for each in whole["killOrder"]] == ["shop/runs"]
    assert [each["usage"] for each in whole["evictionOrder"]] == [None, 64 << 20]


# ---- options -----------------------------------------------------------------------------------------------------

IMPORTANT = """\
apiVersion: v1
kind: Pod
metadata: {name: important}
spec: {priorityClassName: latency-critical, containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: ordinary}
spec: {containers: [{name: c, image: i, resources: {requests: {memory: 512Mi}}}]}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: latency-critical}
value: 1000000
"""


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ([], "ordinary"),
        (["--policy", "kubelet"], "ordinary"),
        (["--policy", "qos-tiers"], "important"),
        (["--policy", "qos-usage"], "important"),
        (["--kubernetes-version", "1.8"], "important"),
        (["--kubernetes-version", "1.9"], "ordinary"),
    ],
    ids=" ".join,
)
def test_a_best_effort_pod_with_a_priority_of_a_million(capsys, tmp_path, options, first):
    (tmp_path / "pods.yaml").write_text(IMPORTANT)
    (tmp_path / "usage.csv").write_text("pod,memory\nimportant,1Gi\nordinary,1Gi\n")
    given = ["-f", tmp_path / "pods.yaml", "--usage", tmp_path / "usage.csv", "--node-memory", "8Gi", "-o", "csv"]
    out = rank(capsys, *given, *options)[1]
    assert out.splitlines()[1].startswith(f"default/{first},")


def test_signals_other_than_memory_rank_by_their_own_figures(capsys, tmp_path):
    (tmp_path / "pods.yaml").write_text(IMPORTANT)
    (tmp_path / "usage.yaml").write_text("- {pod: important, disk: 9Gi, processes: 5}\n- {pod: ordinary, disk: 1Gi}\n")
    given = ["-f", tmp_path / "pods.yaml", "--usage", tmp_path / "usage.yaml", "--node-memory", "8Gi", "-o", "json"]
    whole = json.loads(rank(capsys, *given, "--signal", "nodefs.available")[1])
    assert {place["pod"]: place["usage"] for place in whole["evictionOrder"]} == {
        "default/ordinary": 1 << 30,
        "default/important": 9 << 30,
    }
    assert json.loads(rank(capsys, *given, "--signal", "pid.available")[1])["resource"] == "pids"


def test_a_pod_without_a_row_of_usage_is_taken_to_use_what_it_requests_and_does_not_go_first(capsys, tmp_path):
    """Nothing known of a pod is no reason to evict it: the one that is known to be over its request goes."""
    requesting = IMPORTANT.replace("image: i}", "image: i, resources: {requests: {memory: 512Mi}}}")
    requesting = requesting.replace("1000000", "-1")
    assert requesting.count("512Mi") == 2
    (tmp_path / "pods.yaml").write_text(requesting)
    (tmp_path / "usage.csv").write_text("pod,memory\nordinary,1Gi\n")
    given = ["-f", tmp_path / "pods.yaml", "--usage", tmp_path / "usage.csv", "--node-memory", "8Gi"]
    code, out, err = rank(capsys, *given)
    assert code == 0
    assert "assumed: usage of default/important: their requests (--usage)" in err
    assert out.splitlines()[4].split()[:2] == ["1", "default/ordinary"]


def test_a_container_without_a_row_and_without_a_request_is_taken_to_use_64mi(capsys, tmp_path):
    (tmp_path / "pods.yaml").write_text(IMPORTANT)
    (tmp_path / "usage.csv").write_text("pod,memory\nordinary,1Gi\n")
    given = ["-f", tmp_path / "pods.yaml", "--usage", tmp_path / "usage.csv", "--node-memory", "8Gi"]
    assumed = rank(capsys, *given)[2]
    assert "usage of default/important: their requests, or 64Mi without one (--usage)" in assumed
    out = rank(capsys, *given, "-o", "json")[1]
    used = {each["pod"]: each["usage"] for each in json.loads(out)["evictionOrder"]}
    assert used == {"default/important": 64 << 20, "default/ordinary": 1 << 30}


def test_the_pods_of_one_node_are_chosen_by_its_name(capsys, tmp_path):
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "d", "uid": name},
            "spec": {"nodeName": node, "containers": [{"name": "c"}]},
        }
        for name, node in (("a", "n1"), ("b", "n2"), ("c", "n2"), ("pending", ""))
    ]
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": pods}))
    (tmp_path / "usage.csv").write_text("pod,memory\nb,1Gi\nc,2Gi\n")
    given = ["-f", tmp_path / "pods.json", "--usage", tmp_path / "usage.csv", "--node-memory", "8Gi", "-o", "csv"]
    code, _, err = rank(capsys, *given)
    assert code == 2
    assert "these are the pods of 2 nodes (choose one with --node: n1, n2)" in err
    assert len(rank(capsys, *given, "--node", "n2")[1].splitlines()) == 3
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": pods[1:]}))
    assert len(rank(capsys, *given)[1].splitlines()) == 3  # one node, and a pod that waits for one
    assert rank(capsys, *given, "--node", "n3")[0] == 2


def test_two_hash_seeds_give_the_same_bytes(usage):
    command = [
        sys.executable,
        "-m",
        "podqos",
        "rank",
        "-f",
        SCENARIO,
        "--usage",
        usage,
        "--node-memory",
        "64Gi",
        "-o",
        "json",
    ]
    source = str(Path(__file__).parents[2] / "src")
    outputs = {
        subprocess.run(
            command, env={"PYTHONHASHSEED": seed, "PYTHONPATH": source}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1


# ---- bad input ---------------------------------------------------------------------------------------------------

BAD = {
    "nothing": ([], "no pods given"),
    "two kinds of figures": (["--usage", "u.csv", "--snapshot", "s.yaml"], "--usage and --snapshot cannot be combined"),
    "figures without pods": (["--stats", "summary.json"], "the pods are missing"),
    "a missing file": (["--snapshot", "missing.yaml"], "missing.yaml: No such file or directory"),
    "not a summary": (["--stats", "u.csv", "--pods", "pods.yaml"], "u.csv: not a kubelet summary"),
    "not a snapshot": (["--snapshot", "pods.yaml"], "pods.yaml: not a snapshot of a cluster"),
    "an unknown pod": (["-f", "pods.yaml", "--usage", "wrong.csv"], "wrong.csv:2: no such pod: nobody"),
    "memory": (["-f", "pods.yaml", "--usage", "u.csv", "--node-memory", "much"], "--node-memory"),
    "version": (["-f", "pods.yaml", "--usage", "u.csv", "--kubernetes-version", "2.0"], "--kubernetes-version"),
    "a signal that version ranks nobody for": (
        ["-f", "pods.yaml", "--usage", "u.csv", "--kubernetes-version", "1.13", "--signal", "pid.available"],
        "Kubernetes 1.13 evicts no pods for pid.available",
    ),
    "manifests with a snapshot": (["-f", "pods.yaml", "--snapshot", "s.yaml"], "-f and --snapshot cannot be combined"),
    "hardly any memory": (["-f", "pods.yaml", "--usage", "u.csv", "--node-memory", "1"], "too little memory for a"),
    "no pods": (["-f", "empty.yaml"], "no pods to rank"),
    "usage in a directory": (["-f", "pods.yaml", "--usage", "."], ".: Is a directory (give a file, not a directory)"),
    "no amount": (
        ["-f", "pods.yaml", "--usage", "lots.csv"],
        "lots.csv:2: memory: 'lots' is not a valid quantity (write amounts as in manifests: 100Mi, 2Gi)",
    ),
    "no rows": (["-f", "pods.yaml", "--usage", "none.csv"], "none.csv: there are no rows below the heading"),
    "more than the node has": (
        ["-f", "pods.yaml", "--usage", "u.csv", "--node-memory", "1Gi"],
        "the pods use 2Gi, but the node has 1Gi",
    ),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_exit_code_2(capsys, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    Path("pods.yaml").write_text(IMPORTANT)
    Path("u.csv").write_text("pod,memory\nimportant,1Gi\nordinary,1Gi\n")
    Path("wrong.csv").write_text("pod,memory\nnobody,1Gi\n")
    Path("none.csv").write_text("pod,memory\n")
    Path("lots.csv").write_text("pod,memory\nimportant,lots\n")
    Path("empty.yaml").write_text("apiVersion: v1\nkind: Service\nmetadata: {name: s}\n")
    code, out, err = rank(capsys, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_where_every_pod_has_an_error_the_advice_is_to_fix_it_not_to_give_manifests(capsys, tmp_path):
    manifest = tmp_path / "pod.yaml"
    manifest.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{nam: a}]}\n")
    code, _, err = rank(capsys, "-f", str(manifest))
    assert code == 2
    assert err.endswith("podqos: error: no pods left to rank (fix the errors above)\n")


def test_what_live_pods_were_made_from_is_not_ranked_with_them(capsys, tmp_path):
    """``kubectl get all -o json`` holds a Deployment and its pods; alone, the Deployment stands for them."""
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}}}
    spec["template"]["spec"] = {"containers": [container]}
    items = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "uid": "1"}, "spec": spec},
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web-x2k9p", "uid": "2"},
            "spec": {"nodeName": "n", "containers": [container]},
        },
    ]
    (tmp_path / "all.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    (tmp_path / "one.json").write_text(json.dumps(items[0]))
    (tmp_path / "usage.csv").write_text("pod,memory\nweb-x2k9p,1Gi\n")
    given = ["--usage", tmp_path / "usage.csv", "--node-memory", "8Gi", "-o", "csv"]
    for file in ("all.json", "one.json"):
        _, row = rank(capsys, "-f", tmp_path / file, *given)[1].splitlines()
        assert row.startswith("default/web-x2k9p,")
    assert ",Guaranteed," in row  # its template is admitted first: requests follow from limits


def test_a_pod_that_would_not_be_stored_is_told_and_the_rest_is_ranked(capsys, tmp_path):
    (tmp_path / "pods.yaml").write_text(IMPORTANT.replace("{priorityClassName:", "{priority: 5, priorityClassName:"))
    (tmp_path / "usage.csv").write_text("pod,memory\nordinary,1Gi\n")
    given = ["-f", tmp_path / "pods.yaml", "--usage", tmp_path / "usage.csv", "--node-memory", "8Gi", "-o", "csv"]
    code, out, err = rank(capsys, *given)
    assert code == 2
    assert "the integer value of priority (5) must not be provided in pod spec" in err
    assert len(out.splitlines()) == 2


# ---- what saves the first ------------------------------------------------------------------------------------------

HUNGRY = """\
apiVersion: v1
kind: Pod
metadata: {name: hungry, namespace: shop}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 512Mi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: modest, namespace: shop}
spec: {containers: [{name: c, image: i, resources: {requests: {memory: 256Mi}}}]}
"""
BOUND = """\
---
apiVersion: v1
kind: LimitRange
metadata: {name: bound, namespace: shop}
spec: {limits: [{type: Container, max: {memory: 512Mi}}]}
"""


def remedies(capsys, tmp_path, manifests, *more):
    (tmp_path / "pods.yaml").write_text(manifests)
    (tmp_path / "usage.csv").write_text("pod,memory\nhungry,500Mi\nmodest,250Mi\n")
    given = ["-f", tmp_path / "pods.yaml", "--usage", tmp_path / "usage.csv", *more]
    found = json.loads(rank(capsys, *given, "-o", "json")[1])["remedies"]
    return {(each["by"], remedy["kind"]): remedy for each in found for remedy in each["remedies"]}


def test_what_saves_the_first_of_each_order_is_listed_with_yaml_first_costs_and_who_goes_instead(capsys, tmp_path):
    found = remedies(capsys, tmp_path, HUNGRY, "--node-memory", "4Gi")
    kubelet = [kind for by, kind in found if by == "kubelet"]
    assert kubelet == ["request more", "limits equal to requests", "use less"]
    more = found["kubelet", "request more"]
    assert more["edits"] == ["spec.containers[0].resources.requests.memory: 512Mi   # was 128Mi"]
    assert (more["saves"], more["instead"]) == (True, ["shop/modest"])
    assert more["costs"] == ["384Mi more memory requested on the node, which has room"]
    guaranteed = found["kubelet", "limits equal to requests"]
    assert "spec.containers[0].resources.limits.memory: 600Mi   # was 512Mi" in guaranteed["edits"]
    assert "a new CPU limit, above which it is throttled" in guaranteed["costs"]
    given = ["-f", tmp_path / "pods.yaml", "--usage", tmp_path / "usage.csv", "--node-memory", "4Gi"]
    out = rank(capsys, *given)[1]
    assert "What saves shop/hungry, the first to be evicted" in out
    assert "request 512Mi of memory → 2nd of 2 in the eviction order; shop/modest is evicted instead" in out


def test_a_remedy_that_a_limit_range_forbids_does_not_save(capsys, tmp_path):
    found = remedies(
        capsys,
        tmp_path,
        HUNGRY.replace("memory: 256Mi}}", "memory: 256Mi}, limits: {memory: 256Mi}}") + BOUND,
        "--node-memory",
        "4Gi",
    )
    guaranteed = found["kubelet", "limits equal to requests"]
    assert not guaranteed["saves"]
    assert "the API server rejects it: " in guaranteed["effect"]
    assert "maximum memory usage per Container is 512Mi" in guaranteed["effect"]
    assert found["kubelet", "request more"]["saves"], "512Mi is within the bound"


def test_a_remedy_for_which_the_node_has_no_room_does_not_save(capsys, tmp_path):
    found = remedies(capsys, tmp_path, HUNGRY, "--node-memory", "860Mi")
    assert not found["kubelet", "limits equal to requests"]["saves"]
    assert (
        "but it does not fit: pods on the node would request 856Mi of 760Mi memory"
        in (found["kubelet", "limits equal to requests"]["effect"])
    )


def test_no_amount_is_told_of_a_pod_whose_usage_is_assumed(capsys, tmp_path):
    (tmp_path / "pods.yaml").write_text(HUNGRY.replace("memory: 128Mi", "memory: 0"))
    given = ["-f", tmp_path / "pods.yaml", "--node-memory", "4Gi"]
    found = json.loads(rank(capsys, *given, "-o", "json")[1])["remedies"]
    assert {each["pod"] for each in found} == {"shop/hungry"}
    assert {remedy["kind"] for each in found for remedy in each["remedies"]} <= {"higher priority"}
    text = rank(capsys, *given)[1]
    assert "\n  What shop/hungry uses is not known, so no request or limit can be computed for it.\n" in text


def test_a_pod_that_is_guaranteed_is_not_told_to_become_it(capsys, tmp_path):
    """Limits alone: the API server copies them to the requests."""
    (tmp_path / "pod.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: g}\nspec:\n  containers:\n"
        "  - {name: g, image: g, resources: {limits: {cpu: 1, memory: 1Gi}}}\n"
    )
    (tmp_path / "usage.csv").write_text("pod,memory\ng,900Mi\n")
    code, out, _ = rank(capsys, "-f", tmp_path / "pod.yaml", "--usage", tmp_path / "usage.csv")
    assert code == 0
    assert "Guaranteed" in out
    assert "make it Guaranteed" not in out
