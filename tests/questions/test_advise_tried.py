"""``podqos advise`` tries what it advises: admitted, placed on the nodes at hand, run with the recorded usage."""

from __future__ import annotations

import csv
import io
import json
import tempfile
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
      - name: web           # the shop
        image: web:1
        resources:
          requests: {cpu: "1", memory: 2Gi}   # guessed
          limits:
            memory: 2Gi
"""
PLAIN = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: plain, namespace: shop}
spec:
  selector: {matchLabels: {app: plain}}
  template:
    metadata: {labels: {app: plain}}
    spec:
      containers:
      - {name: plain, image: plain:1}
"""
LIMITED = """\
apiVersion: v1
kind: LimitRange
metadata: {name: most, namespace: shop}
spec: {limits: [{type: Container, max: {memory: 2Gi}}]}
"""


def advise(capsys, *arguments: object) -> tuple[int, str, str]:
    """Run the command and return exit code, standard output and standard error."""
    code = main(["advise", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def usage(path: Path, rows: list[tuple[str, int, int]], count: int = 200) -> Path:
    """Write samples of pods: all the same, but for one peak in the middle of twice as much CPU."""
    lines = ["pod,container,memory,cpu"]
    for pod, memory_mib, cpu_milli in rows:
        name = pod.partition("-")[0]
        lines += [
            f"{pod},{name},{memory_mib}Mi,{cpu_milli * (2 if number == count // 2 else 1)}m" for number in range(count)
        ]
    path.write_text("\n".join([*lines, ""]))
    return path


@pytest.fixture
def web(tmp_path: Path) -> Path:
    file = tmp_path / "web.yaml"
    file.write_text(WEB)
    return file


def node(memory: str, cpu: str = "4", count: int = 1) -> tuple[object, ...]:
    """Return the option that names so many nodes of that size."""
    file = Path(tempfile.mkdtemp()) / "nodes.yaml"
    head = "apiVersion: v1\nkind: Node\nmetadata: {{name: node-{}}}\n"
    text = head + "status: {{capacity: {{cpu: {!r}, memory: {}, pods: 110}}}}\n"
    file.write_text("---\n".join(text.format(number, cpu, memory) for number in range(count)))
    return "-f", file


# ---- tried -------------------------------------------------------------------------------------------------------


def test_advice_says_how_it_was_tried_and_what_was_not(capsys, web, tmp_path):
    samples = usage(tmp_path / "u.csv", [("web-7d8b9c4f5-aaaaa", 500, 200)])
    _, out, _ = advise(capsys, "-f", web, "--usage", samples, "-o", "json")
    report = json.loads(out)
    (workload,) = report["workloads"]
    tried = workload["tried"]
    assert tried["passed"]
    assert (tried["after"]["oomKills"], tried["after"]["evictions"]) == (0, 0)
    assert tried["after"]["throttledSeconds"] <= tried["before"]["throttledSeconds"]
    assert "NoNodes" in tried["untried"]
    assert report["tried"]["nodes"] == 0
    assert "only each pod's own limits were tested" in report["tried"]["text"]
    _, out, _ = advise(capsys, "-f", web, "--usage", samples, *node("8Gi", count=2), "-o", "json")
    assert json.loads(out)["nodeMemoryBytes"] == 8 << 30
    tried = json.loads(out)["tried"]
    assert tried["nodes"] == 2
    assert tried["after"]["pending"] == 0
    assert "NoNodes" not in tried["untried"]


def test_guaranteed_gets_a_cpu_limit_above_the_peak_so_that_nothing_throttles(capsys, web, tmp_path):
    """Guaranteed needs a limit; that of a percentile would throttle, and nothing throttles now."""
    samples = usage(tmp_path / "u.csv", [("web-7d8b9c4f5-aaaaa", 500, 400)])
    _, out, _ = advise(capsys, "-f", web, "--usage", samples, "--goal", "guaranteed", "-o", "json")
    (workload,) = json.loads(out)["workloads"]
    (container,) = workload["containers"]
    assert container["limits"]["cpu"] == container["requests"]["cpu"] == "920m"
    assert container["doubts"] == ["CPULimitThrottles"]
    assert workload["tried"]["after"]["throttledSeconds"] == 0


def test_what_the_api_server_would_refuse_is_not_advised(capsys, tmp_path):
    """The namespace allows 2Gi, and the usage needs more."""
    manifest = tmp_path / "web.yaml"
    manifest.write_text(f"{WEB}---\n{LIMITED}")
    samples = usage(tmp_path / "u.csv", [("web-7d8b9c4f5-aaaaa", 2100, 200)])
    _, out, _ = advise(capsys, "-f", manifest, "--usage", samples)
    assert "not advised: the API server would reject it: " in out
    assert "maximum memory usage per Container is 2Gi" in out
    _, out, _ = advise(capsys, "-f", manifest, "--usage", samples, "-o", "json")
    (workload,) = json.loads(out)["workloads"]
    assert workload["isWithheld"]
    assert workload["containers"][0]["limits"] == {"memory": "2Gi"}
    _, out, _ = advise(capsys, "-f", manifest, "--usage", samples, "--patch", "kubectl")
    assert out == ""


def test_requests_that_let_pods_crowd_a_node_until_one_is_evicted_are_raised(capsys, tmp_path):
    """Both bursts come at once: with requests far below them the node runs short, with full requests it does not."""
    manifest = tmp_path / "two.yaml"
    manifest.write_text(
        "---\n".join(
            f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  replicas: 2\n"
            f"  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n"
            f"    spec: {{containers: [{{name: {name}, image: a, resources: "
            "{requests: {cpu: 100m, memory: 3Gi}, limits: {memory: 3Gi}}}]}\n"
            for name in ("a", "b")
        )
    )
    lines = ["pod,container,memory,cpu"]
    for name in ("a", "b"):
        lines += [f"{name}-1,{name},{2600 if 100 <= number < 104 else 300}Mi,50m" for number in range(200)]
    samples = tmp_path / "u.csv"
    samples.write_text("\n".join([*lines, ""]))
    _, out, _ = advise(capsys, "-f", manifest, "--usage", samples, *node("8Gi", count=2), "-o", "json")
    report = json.loads(out)
    assert (report["tried"]["after"]["oomKills"], report["tried"]["after"]["evictions"]) == (0, 0)
    for workload in report["workloads"]:
        assert workload["tried"]["failed"] or workload["tried"]["passed"]


# ---- goals -------------------------------------------------------------------------------------------------------


def test_making_everything_guaranteed_is_one_command_without_usage(capsys, tmp_path):
    """What changes, who would be pending, and whose amounts nobody knows."""
    manifest = tmp_path / "all.yaml"
    manifest.write_text(f"{WEB.replace('memory: 2Gi}', 'memory: 1Gi}')}---\n{PLAIN}")
    arguments = ("-f", manifest, "--goal", "guaranteed", *node("4Gi", count=1))
    code, out, _ = advise(capsys, *arguments, "-o", "json")
    assert code == 0
    report = json.loads(out)
    by_name = {each["workload"]: each for each in report["workloads"]}
    web = by_name["Deployment shop/web"]
    assert (web["before"]["qosClass"], web["after"]["qosClass"]) == ("Burstable", "Guaranteed")
    assert web["containers"][0]["limits"] == web["containers"][0]["requests"] == {"cpu": "1", "memory": "2Gi"}
    assert web["effect"]["total"] == {"cpuMilli": 0, "memoryBytes": 4 << 30}
    assert report["tried"]["pending"] == {"Deployment shop/web": 3}
    assert by_name["Deployment shop/plain"]["containers"][0]["needsChoice"]
    _, out, _ = advise(capsys, *arguments)
    told = " ".join(out.split())
    assert "3 pods of Deployment shop/web would be pending." in told
    assert "No requests or usage known for Deployment shop/plain" in told
    assert "new CPU limit, required for Guaranteed: throttled above 1" in told


def test_the_cheapest_lowers_nothing_that_was_not_measured(capsys, web):
    _, out, _ = advise(capsys, "-f", web, "--goal", "cheapest", "-o", "json")
    report = json.loads(out)
    assert report["total"] == {"cpuMilli": 0, "memoryBytes": 0}
    _, out, _ = advise(capsys, "-f", web, "--goal", "cheapest")
    assert "No usage data, so nothing is lowered." in out


def test_the_cheapest_raises_no_request(capsys, web, tmp_path):
    samples = usage(tmp_path / "u.csv", [("web-7d8b9c4f5-aaaaa", 500, 1500)], count=3000)
    _, out, _ = advise(capsys, "-f", web, "--usage", samples, "--goal", "cheapest", "-o", "json")
    (container,) = json.loads(out)["workloads"][0]["containers"]
    assert container["requests"]["cpu"] == "1"


def test_the_safest_lowers_nothing_and_requests_all_memory(capsys, tmp_path):
    manifest = tmp_path / "web.yaml"
    manifest.write_text(WEB.replace("memory: 2Gi}", "memory: 1Gi}"))
    samples = usage(tmp_path / "u.csv", [("web-7d8b9c4f5-aaaaa", 500, 100)], count=3000)
    for more in ((), ("--usage", samples)):
        _, out, _ = advise(capsys, "-f", manifest, "--goal", "safest", *more, "-o", "json")
        (container,) = json.loads(out)["workloads"][0]["containers"]
        assert container["requests"] == {"cpu": "1", "memory": "2Gi"}
        assert container["limits"] == {"memory": "2Gi"}


# ---- classes -----------------------------------------------------------------------------------------------------


def test_a_service_that_uses_memory_is_never_advised_best_effort(capsys, tmp_path):
    """Neither where nobody describes it, nor where it is described as expendable."""
    manifest = tmp_path / "plain.yaml"
    manifest.write_text(PLAIN)
    samples = usage(tmp_path / "u.csv", [("plain-7d8b9c4f5-aaaaa", 310, 20)])
    described = tmp_path / "d.yaml"
    described.write_text("{name: shop/plain, latencySensitive: no, restartCost: None}\n")
    for more in ((), ("--describe", described)):
        _, out, _ = advise(capsys, "-f", manifest, "--usage", samples, *more, "-o", "json")
        (workload,) = json.loads(out)["workloads"]
        assert workload["after"]["qosClass"] == "Burstable"
        assert workload["because"] == ["UsesMemory"]
        assert workload["containers"][0]["requests"]["memory"]


def test_a_daemon_set_is_not_advised_best_effort_without_its_caveat(capsys, tmp_path):
    manifest = tmp_path / "agent.yaml"
    manifest.write_text(
        "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec:\n  selector: {matchLabels: {a: b}}\n"
        "  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: agent, image: a}]}\n"
    )
    described = tmp_path / "d.yaml"
    described.write_text("{name: agent, latencySensitive: No, restartCost: none, burstPattern: N/A}\n")
    _, out, _ = advise(capsys, "-f", manifest, "--describe", described)
    assert "as a BestEffort DaemonSet it is evicted first on every node" in out


# ---- outputs -----------------------------------------------------------------------------------------------------


def test_the_total_comes_first_then_a_table_and_the_reasons_after_it(capsys, web, tmp_path):
    samples = usage(tmp_path / "u.csv", [("web-7d8b9c4f5-aaaaa", 500, 200)], count=3000)
    _, out, _ = advise(capsys, "-f", web, "--usage", samples)
    answer, _, heading, row, *rest = out.splitlines()
    assert answer.startswith("1 of 1 workload should change. Total change in requests: ")
    assert heading.split()[:2] == ["WORKLOAD", "PODS"]
    assert row.startswith("Deployment shop/web  4 ")
    assert row.endswith("critical")
    assert "Deployment shop/web" in rest
    assert any(line.startswith("    memory used: p50 500Mi") for line in rest)


def test_csv_has_a_row_per_container(capsys, web, tmp_path):
    samples = usage(tmp_path / "u.csv", [("web-7d8b9c4f5-aaaaa", 500, 200)], count=3000)
    _, out, _ = advise(capsys, "-f", web, "--usage", samples, "-o", "csv")
    (row,) = csv.DictReader(io.StringIO(out))
    assert (row["workload"], row["container"], row["replicas"]) == ("Deployment shop/web", "web", "4")
    assert (row["memoryRequestNow"], row["severity"]) == ("2Gi", "critical")
    assert int(row["addedMemoryBytes"]) < 0


def test_patches_are_for_the_tool_that_takes_them(capsys, web, tmp_path):
    samples = usage(tmp_path / "u.csv", [("web-7d8b9c4f5-aaaaa", 500, 200)], count=3000)
    arguments = ("-f", web, "--usage", samples)
    (workload,) = json.loads(advise(capsys, *arguments, "-o", "json")[1])["workloads"]
    memory = workload["containers"][0]["limits"]["memory"]
    _, out, _ = advise(capsys, *arguments, "--patch", "kubectl")
    assert out.startswith("kubectl patch deployment web -n shop --type strategic -p ")
    assert memory in out
    _, out, _ = advise(capsys, *arguments, "--patch", "kustomize")
    (patch,) = [each for each in yaml.safe_load_all(out) if each]
    assert patch["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"] == memory


def test_a_pod_that_can_be_resized_gets_a_command_that_resizes_it(capsys, tmp_path):
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: web, image: a, resources: "
        "{requests: {cpu: 1, memory: 2Gi}, limits: {memory: 4Gi}}}]}\n"
    )
    samples = usage(tmp_path / "u.csv", [("web", 3000, 1000)], count=3000)
    for version, expected in (("1.36", "--subresource resize"), ("1.32", "replace the object")):
        _, out, _ = advise(
            capsys, "-f", manifest, "--usage", samples, "--patch", "kubectl", "--kubernetes-version", version
        )
        assert expected in out


def test_advice_is_written_into_the_manifest_and_touches_only_its_lines(capsys, web, tmp_path):
    samples = usage(tmp_path / "u.csv", [("web-7d8b9c4f5-aaaaa", 500, 200)], count=3000)
    code, _, err = advise(capsys, "-f", web, "--fix", "--usage", samples, "-o", "name")
    assert code == 0
    assert f"{web}: changed 1 workload: Deployment shop/web" in err
    before, after = WEB.splitlines(), web.read_text().splitlines()
    assert [line for line in after if line not in before and "memory" not in line and "cpu" not in line] == []
    assert "      - name: web           # the shop" in after
    assert any(line.endswith("# guessed") for line in after)
    code, _, err = advise(capsys, "-f", web, "--fix", "--usage", samples, "-o", "name")
    assert (code, "nothing to change" in err) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--price", "cpu=1"], "unknown option --price (multiply the change in requests", id="price"),
        pytest.param(["--goal", "best"], "best", id="goal"),
        pytest.param(["--patch", "kubectl", "-o", "json"], "--patch and -o json cannot be combined", id="patch"),
    ],
)
def test_bad_options_are_one_message(capsys, web, arguments, message):
    code, _, err = advise(capsys, "-f", web, "--goal", "safest", *arguments)
    assert code == 2
    assert message in err


# ---- resizing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "outcome"), [("1.32", "Refused"), ("1.33", "Refused"), ("1.34", "InPlace"), ("1.36", "InPlace")]
)
def test_lowering_a_memory_limit_in_place_depends_on_the_version(capsys, web, tmp_path, version, outcome):
    """Until 1.33 the API server refuses it unless the container restarts."""
    samples = usage(tmp_path / "u.csv", [("web-7d8b9c4f5-aaaaa", 500, 200)], count=3000)
    _, out, _ = advise(capsys, "-f", web, "--usage", samples, "--kubernetes-version", version, "-o", "json")
    (workload,) = json.loads(out)["workloads"]
    assert workload["resize"]["outcome"] == outcome


# ---- settings ----------------------------------------------------------------------------------------------------


def pods(name: str, resources: str, kind: str = "Deployment") -> str:
    return (
        f"apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: shop}}\nspec:\n"
        f"  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n"
        f"    spec: {{containers: [{{name: {name}, image: a, resources: {resources}}}]}}\n"
    )


# ---- what nobody thinks of ---------------------------------------------------------------------------------------


def test_nodes_on_which_nothing_can_be_placed_keep_nobody_from_advice(capsys, web, tmp_path):
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: bare}\n")
    samples = usage(tmp_path / "u.csv", [("web-7d8b9c4f5-aaaaa", 500, 200)])
    code, out, err = advise(capsys, "-f", web, "-f", nodes, "--usage", samples, "-o", "json")
    assert code == 0
    assert "not used for placement: Node bare has neither capacity nor allocatable" in err
    assert json.loads(out)["tried"]["nodes"] == 0


def test_a_node_that_is_given_twice_is_one_node(capsys, web, tmp_path):
    node = (
        'apiVersion: v1\nkind: Node\nmetadata: {name: one}\nstatus: {capacity: {cpu: "8", memory: 16Gi, pods: "110"}}\n'
    )
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(node)
    arguments = ("-f", web, "-f", tmp_path / "a.yaml", "-f", tmp_path / "b.yaml", "--goal", "guaranteed")
    assert json.loads(advise(capsys, *arguments, "-o", "json")[1])["tried"]["nodes"] == 1


def test_a_million_replicas_are_not_tried_one_by_one(capsys, web):
    web.write_text(WEB.replace("replicas: 4", "replicas: 900000"))
    report = json.loads(advise(capsys, "-f", web, "--goal", "guaranteed", *node("64Gi", count=9), "-o", "json")[1])
    assert report["tried"]["untried"][-1] == "TooMany"


def test_devices_do_not_keep_a_pod_from_being_replayed(capsys, web, tmp_path):
    web.write_text(
        WEB.replace("            memory: 2Gi\n", "            memory: 2Gi\n            example.com/gpu: 1\n")
    )
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text(
        "apiVersion: v1\nkind: Node\nmetadata: {name: gpu}\n"
        'status: {capacity: {cpu: "8", memory: 16Gi, pods: "110", example.com/gpu: "8"}}\n'
    )
    samples = usage(tmp_path / "u.csv", [("web-7d8b9c4f5-aaaaa", 1900, 200)])
    report = json.loads(advise(capsys, "-f", web, "-f", nodes, "--usage", samples, "-o", "json")[1])
    assert report["tried"]["after"] == {"pending": 0, "oomKills": 0, "evictions": 0, "throttledSeconds": 0}
    limits = report["workloads"][0]["containers"][0]["limits"]
    assert limits["example.com/gpu"] == "1"


def test_a_pod_that_outgrows_its_node_is_pending(capsys, tmp_path):
    """It would be made anew: the node that it is on has no room for it."""
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {nodeName: one, containers: [{name: web, image: a, "
        "resources: {requests: {cpu: 1, memory: 1Gi}, limits: {memory: 6Gi}}}]}\n---\n"
        "apiVersion: v1\nkind: Node\nmetadata: {name: one}\n"
        'status: {capacity: {cpu: "4", memory: 4Gi, pods: "110"}}\n'
    )
    report = json.loads(advise(capsys, "-f", manifest, "--goal", "safest", "-o", "json")[1])
    assert report["tried"]["pending"] == {"Pod default/web": 1}


def test_simulate_agrees_that_advice_holds(capsys, tmp_path, monkeypatch):
    """The advised manifests, run by ``scenario from-usage`` and ``simulate`` with the same samples and nodes."""
    monkeypatch.chdir(tmp_path)
    equal = "{requests: {cpu: 1, memory: 2Gi}, limits: {memory: 2Gi}}"
    Path("all.yaml").write_text(f"{pods('web', equal)}---\n{pods('batch', '{}')}")
    lines = ["time,pod,container,memory,cpu"]
    for number in range(300):
        time = f"2026-11-01T{number // 60:02}:{number % 60:02}:00Z"
        peak = number % 100 == 50
        lines += [
            f"{time},shop/web-7d8b9c4f5-aaaaa,web,{1400 if peak else 600}Mi,{700 if peak else 150}m",
            f"{time},shop/batch-7d8b9c4f5-bbbbb,batch,{300 + number % 7}Mi,50m",
        ]
    Path("u.csv").write_text("\n".join([*lines, ""]))
    _, out, _ = advise(capsys, "-f", "all.yaml", "--usage", "u.csv", *node("4Gi", "2"), "-o", "json")
    report = json.loads(out)
    assert "NoTimes" not in report["tried"]["untried"]
    assert report["tried"]["replayedSeconds"] == 300 * 60
    advise(capsys, "-f", "all.yaml", "--usage", "u.csv", *node("4Gi", "2"), "--fix", "-o", "name")
    nodes = ("--nodes", "1", "--node-capacity", "cpu=2,memory=4Gi")
    made = ["scenario", "from-usage", "again", "-f", "all.yaml", "--usage", "u.csv", *nodes]
    assert main(made) == 0
    capsys.readouterr()
    main(["simulate", "again.yaml", "-o", "json"])
    summary = json.loads(capsys.readouterr().out)["summary"]
    assert (summary["oomKills"], summary["evictions"], summary["throttled"]) == (0, 0, 0)


def test_a_dump_of_a_cluster_is_advised_by_what_made_its_pods(capsys, tmp_path):
    """``kubectl get all`` has a Deployment, its ReplicaSet and its pods: they are one workload."""

    def made_by(kind: str, name: str) -> dict:
        return {"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": True}]}

    resources = {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "2Gi"}}
    spec = {"containers": [{"name": "web", "image": "a", "resources": resources}]}
    labels = {"app": "web", "pod-template-hash": "7d8b9c4f5"}

    def owner(kind: str, name: str, uid: str, **more: object) -> dict:
        template = {"metadata": {"labels": labels}, "spec": spec}
        own = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        metadata = {"name": name, "namespace": "shop", "uid": uid, "labels": labels, **more}
        return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": own}

    items = [
        owner("Deployment", "web", "d"),
        owner("ReplicaSet", "web-7d8b9c4f5", "r", **made_by("Deployment", "web")),
    ]
    for number in range(2):
        metadata = {"name": f"web-7d8b9c4f5-aaaa{number}", "namespace": "shop", "uid": f"p{number}", "labels": labels}
        metadata |= made_by("ReplicaSet", "web-7d8b9c4f5")
        items.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**spec, "nodeName": "one"}})
    size = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    items.append({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"}, "status": {"capacity": size}})
    dump = tmp_path / "all.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    samples = usage(tmp_path / "u.csv", [("web-7d8b9c4f5-aaaa0", 500, 100), ("web-7d8b9c4f5-aaaa1", 600, 100)])
    _, out, err = advise(capsys, "-f", dump, "--usage", samples, "-o", "json")
    report = json.loads(out)
    assert [each["workload"] for each in report["workloads"]] == ["Deployment shop/web"]
    assert report["workloads"][0]["containers"][0]["memoryBytes"]["most"] == 600 << 20
    assert (report["tried"]["pods"], report["tried"]["after"]["pending"]) == (2, 0)
    assert "left out" not in err
