"""``podqos advise`` as a user meets it: described by annotations, a file or answers; manifests, patches, a node."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from podqos.cli.main import main

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "scenarios" / "content-platform"

DESCRIPTIONS = """\
workloads:
- {name: production/article-service, latencySensitive: true, restartCost: high, burstPattern: steady}
- {name: production/search-api, latencySensitive: true, restartCost: medium, burstPattern: spiky}
- {name: production/cdn-origin, latencySensitive: true, restartCost: low, burstPattern: steady}
- {name: batch/analytics-pipeline, latencySensitive: false, restartCost: low, burstPattern: bursty}
- {name: batch/content-generator, latencySensitive: false, restartCost: low, burstPattern: bursty}
- {name: batch/search-indexer, latencySensitive: false, restartCost: medium, burstPattern: bursty}
- {name: monitoring/log-collector, latencySensitive: false, restartCost: none}
- {name: monitoring/debug-tools, latencySensitive: false, restartCost: none}
"""


def advise(capsys, *arguments: object) -> tuple[int, str, str]:
    """Run the command and return exit code, standard output and standard error."""
    code = main(["advise", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def patches(out: str) -> list[dict]:
    """Return what ``--patch kustomize`` prints."""
    return [each for each in yaml.safe_load_all(out) if each]


@pytest.fixture
def described(tmp_path: Path) -> Path:
    file = tmp_path / "describe.yaml"
    file.write_text(DESCRIPTIONS)
    return file


@pytest.fixture
def incident(tmp_path: Path) -> Path:
    """Return the platform with article-service as it was on the day of the incident."""
    folder = Path(shutil.copytree(SCENARIO / "platform", tmp_path / "incident"))
    shutil.copy(SCENARIO / "accidental" / "article-service.yaml", folder)
    return folder


def samples(path: Path, memory_mib: int, cpu_milli: int, count: int = 100, oom_kills: int = 0) -> Path:
    """Write samples of article-service that are all the same."""
    rows = [f"article-service-7d8b9c4f5-x2k9p,article-service,{memory_mib}Mi,{cpu_milli}m,0"] * (count - 1)
    rows.append(f"article-service-7d8b9c4f5-x2k9p,article-service,{memory_mib}Mi,{cpu_milli}m,{oom_kills}")
    path.write_text("\n".join(["pod,container,memory,cpu,oomKills", *rows, ""]))
    return path


def test_the_platform_as_it_is_needs_no_advice(capsys, described):
    """Its manifests are what the matrix says, so there is nothing to patch."""
    code, out, _ = advise(capsys, "-f", SCENARIO / "platform", "--describe", described, "--patch", "kubectl")
    assert (code, out) == (0, "")


def test_the_incident_is_mended_by_a_patch_of_one_workload(capsys, incident, described):
    code, out, _ = advise(capsys, "-f", incident, "--describe", described, "--patch", "kustomize")
    assert code == 0
    (patch,) = patches(out)
    assert patch == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "article-service", "namespace": "production"},
        "spec": {
            "template": {
                "spec": {
                    "priorityClassName": "latency-critical",
                    "containers": [
                        {"name": "envoy-sidecar", "resources": {"limits": {"cpu": "100m", "memory": "128Mi"}}}
                    ],
                }
            }
        },
    }


def test_the_manifests_with_the_advice_in_them_have_the_advised_class_and_nothing_to_advise(
    capsys, incident, described, tmp_path
):
    """With samples as well: the same samples give the same sizes. Only the lines concerned change."""
    usage = samples(tmp_path / "usage.csv", 3000, 1000)
    arguments = ("-f", incident, "--describe", described, "--usage", usage, "--node-memory", "64Gi")
    before = (incident / "article-service.yaml").read_text().splitlines()
    code, _, err = advise(capsys, *arguments, "--fix", "-o", "name")
    assert code == 0
    assert "changed 1 workload: Deployment production/article-service" in err
    after = (incident / "article-service.yaml").read_text().splitlines()
    assert not [line for line in after if line not in before and not re.search("cpu|memory|priority|limits", line)]
    main(["explain", "-f", str(incident), "-o", "json"])
    classes = {each["name"]: each["qosClass"] for each in json.loads(capsys.readouterr().out)["items"]}
    assert classes["article-service"] == "Guaranteed"
    assert advise(capsys, *arguments, "--patch", "kubectl")[:2] == (0, "")


def test_the_text_says_why_and_what_follows(capsys, incident, described):
    code, out, _ = advise(capsys, "-f", incident, "--describe", described)
    assert code == 0
    told = out.partition("Deployment production/article-service\n")[2].partition("\n\n")[0]
    assert "Burstable → Guaranteed, priority 0 → 1000000 (latency-critical)" in told
    assert "like article-service in the matrix" in told
    assert "users wait for it" in told
    assert "CronJob batch/content-generator is now evicted before it (lower priority)" in told


def test_annotations_describe_a_workload(capsys, tmp_path):
    manifest = tmp_path / "web.yaml"
    manifest.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  annotations:\n"
        '    podqos.dev/latency-sensitive: "true"\n    podqos.dev/restart-cost: low\n'
        "spec:\n  containers:\n  - {name: app, image: a, resources: {requests: {cpu: 1, memory: 1Gi}}}\n"
    )
    code, out, _ = advise(capsys, "-f", manifest, "-o", "json")
    (workload,) = json.loads(out)["workloads"]
    assert code == 0
    assert (workload["wantedClass"], workload["priorityClass"]) == ("Guaranteed", "user-facing")
    assert workload["containers"][0]["limits"] == {"cpu": "1", "memory": "1Gi"}
    assert [each["name"] for each in json.loads(out)["priorityClasses"]] == ["user-facing"]
    _, out, _ = advise(capsys, "-f", manifest, "--patch", "kustomize")
    first, second = patches(out)
    assert (first["kind"], first["value"]) == ("PriorityClass", 500_000)
    assert second["spec"]["priorityClassName"] == "user-facing"


def test_an_annotation_that_says_nothing_is_bad_input(capsys, tmp_path):
    manifest = tmp_path / "web.yaml"
    manifest.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web, annotations: {podqos.dev/latency-sensitive: perhaps}}\n"
        "spec: {containers: [{name: app, image: a}]}\n"
    )
    code, _, err = advise(capsys, "-f", manifest)
    assert code == 2
    assert "web.yaml:1:1" in err
    assert "'perhaps' is neither true nor false" in err


def test_samples_size_a_workload_that_nobody_describes(capsys, tmp_path):
    """It keeps its class: 1000Mi + 20 % and 1000m + 15 %, both as request and limit."""
    usage = samples(tmp_path / "usage.csv", 1000, 1000)
    code, out, err = advise(capsys, "-f", SCENARIO / "platform", "--usage", usage, "-o", "json")
    assert code == 0
    assert "left out 7 workloads without a description or usage" in err
    (workload,) = json.loads(out)["workloads"]
    assert workload["description"] is None
    assert workload["wantedClass"] == "Guaranteed"
    (container,) = workload["containers"]
    assert container["requests"] == container["limits"] == {"cpu": "1150m", "memory": "1115Mi"}
    assert container["risk"]["memoryOverLimit"] == {"count": 0, "of": 100}
    assert container["doubts"] == ["CPULimitThrottles"]


def test_an_oom_kill_and_few_samples_are_said(capsys, tmp_path):
    usage = samples(tmp_path / "usage.csv", 4096, 1000, count=10, oom_kills=2)
    _, out, _ = advise(capsys, "-f", SCENARIO / "platform", "--usage", usage)
    assert "memory 4Gi / 4Gi → 5262Mi / 5262Mi" in out
    assert "it was OOM-killed" in out
    assert "fewer than 100 samples" in out


def test_an_answer_of_prometheus_can_be_given(capsys, tmp_path):
    metric = {"namespace": "production", "pod": "article-service-7d8b9c4f5-x2k9p", "container": "article-service"}
    metric["__name__"] = "container_memory_working_set_bytes"
    series = {"metric": metric, "values": [[3600 * hour, str(1000 << 20)] for hour in range(120)]}
    memory = tmp_path / "memory.json"
    memory.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [series]}}))
    _, out, _ = advise(capsys, "-f", SCENARIO / "platform", "--usage", memory, "-o", "json")
    (workload,) = json.loads(out)["workloads"]
    assert workload["containers"][0]["limits"]["memory"] == "1136Mi"


def test_samples_of_strangers_are_said(capsys, tmp_path):
    usage = tmp_path / "usage.csv"
    usage.write_text("pod,memory\nproduction/article-service,1Gi\nnobody,1Gi\n")
    code, _, err = advise(capsys, "-f", SCENARIO / "platform", "--usage", usage)
    assert code == 0
    assert "no workload matches the samples of nobody" in err


def test_of_many_strangers_a_few_are_named(capsys, tmp_path):
    usage = tmp_path / "usage.csv"
    strangers = "".join(f"stranger-{number},1Gi\n" for number in range(500))
    usage.write_text(f"pod,memory\nproduction/article-service,1Gi\n{strangers}")
    code, _, err = advise(capsys, "-f", SCENARIO / "platform", "--usage", usage)
    assert code == 0
    assert err.count("no workload matches the samples of stranger-") == 3
    assert "nor those of 497 more containers" in err


def test_a_workload_without_a_manifest_gets_one(capsys, tmp_path):
    """A Deployment, sized by what is expected: 300Mi + 20 % and 500m + 15 %, up to whole hundredths of a core."""
    described = tmp_path / "d.yaml"
    described.write_text("{name: prod/new, latencySensitive: true, cpu: 500m, memory: 300Mi, image: new:1}\n")
    code, out, _ = advise(capsys, "--describe", described, "--patch", "kubectl")
    assert code == 0
    assert out.startswith("kubectl apply -f - <<'EOF'\napiVersion: scheduling.k8s.io/v1\n")
    _, deployment = patches(advise(capsys, "--describe", described, "--patch", "kustomize")[1])
    assert deployment["metadata"] == {"name": "new", "namespace": "prod"}
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "new:1"
    assert container["resources"]["limits"] == {"cpu": "580m", "memory": "360Mi"}


def test_amounts_that_nobody_knows_are_named(capsys, tmp_path):
    described = tmp_path / "d.yaml"
    described.write_text("{name: new, latencySensitive: true}\n")
    _, out, err = advise(capsys, "--describe", described)
    assert "Guaranteed is not achieved" in out
    assert "no measurements" in out
    _, _, err = advise(capsys, "--describe", described, "--patch", "kubectl")
    assert "Deployment default/new: choose the requests and limits of new" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--ask"], "unknown option --ask (describe workloads with annotations", id="asked"),
        pytest.param([], "nothing to advise about", id="nothing"),
        pytest.param(["-f", SCENARIO / "platform"], "no usage or description for 8 workloads", id="nothing-known"),
        pytest.param(["--describe", "none.yaml"], "none.yaml", id="no-file"),
    ],
)
def test_bad_input_is_one_line(capsys, monkeypatch, arguments, message):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    code, _, err = advise(capsys, *arguments)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def advised_kubelet(capsys, cores, *arguments):
    code = main(["thresholds", "--advise", "--node-cpu", cores, *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param([], "the node's number of cores is missing", id="no-cores"),
        pytest.param(["--node-cpu", "4", "--probability", "2"], "'2' is not a probability", id="chance"),
        pytest.param(["--node-cpu", "4", "--node-memory", "8Gi", "--growth", "1Gi"], "% of the node's", id="growth"),
        pytest.param(["--node-cpu", "4", "--soft-grace", "0"], "--soft-grace", id="grace"),
        pytest.param(["--node-cpu", "4", "-o", "csv"], "-o csv has no advised settings", id="csv"),
        pytest.param(["--eviction-hard", "memory.available<1Gi"], "--advise and --eviction-hard", id="flag"),
    ],
)
def test_a_kubelet_that_cannot_be_advised_is_one_line(capsys, arguments, message):
    assert main(["thresholds", "--advise", *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_settings_of_a_kubelet_are_elsewhere(capsys):
    _, _, err = advise(capsys, "--node")
    assert "unknown option --node (`podqos thresholds --advise` advises kubelet settings)" in err


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(("--node-memory", "64Gi", "--nodefs-capacity", "200Gi"), id="large"),
        pytest.param(("--node-memory", "4Gi"), id="small"),
    ],
)
def test_the_advised_kubelet_passes_our_own_judge(capsys, tmp_path, node):
    """``podqos thresholds --fail-on warning`` finds nothing wrong with it."""
    code, out, _ = advised_kubelet(capsys, "16", *node)
    assert code == 0
    file = tmp_path / "kubelet.yaml"
    file.write_text(out)
    assert main(["thresholds", "-f", str(file), *node, "--fail-on", "warning"]) == 0
    assert "No warnings." in capsys.readouterr().out


@pytest.mark.parametrize("memory", ["8Gi", "16Gi", "64Gi"])
def test_the_advised_kubelet_passes_check(capsys, tmp_path, memory):
    node = ("--node-memory", memory)
    _, out, _ = advised_kubelet(capsys, "4", *node)
    (tmp_path / "kubelet.yaml").write_text(out)
    assert main(["check", str(tmp_path / "kubelet.yaml"), *node]) == 0


@pytest.mark.parametrize("memory", ["4Gi", "16Gi", "64Gi"])
def test_check_agrees_with_the_advised_kubelet_as_the_advice_says(capsys, tmp_path, memory):
    """It withstands the 50Mi/s that ``check`` assumes; a node too small for that says in a line how they agree."""
    node = ("--node-memory", memory)
    _, out, _ = advised_kubelet(capsys, "16", *node)
    (tmp_path / "kubelet.yaml").write_text(out)
    option = re.search(r"`(options: .*?)`", out.replace("\n# ", " "))
    assert (option is None) == (memory != "4Gi")
    (tmp_path / ".podqos.yaml").write_text(option[1] if option else "options: {}")
    assert main(["check", str(tmp_path / "kubelet.yaml"), *node]) == 0
    assert "no findings" in capsys.readouterr().out


def test_a_node_as_json_has_its_numbers(capsys):
    _, out, _ = advised_kubelet(
        capsys,
        "16",
        "--node-memory",
        "64Gi",
        "--growth",
        "100Mi",
        "--probability",
        "0.5",
        "-o",
        "json",
    )
    node = json.loads(out)["node"]
    assert node["growthBytesPerSecond"] == 100 << 20
    assert 0.5 <= node["hardWins"] < 0.51
    assert node["configuration"]["kind"] == "KubeletConfiguration"


def test_yaml_says_the_same_as_json(capsys, incident, described):
    _, as_json, _ = advise(capsys, "-f", incident, "--describe", described, "-o", "json")
    _, as_yaml, _ = advise(capsys, "-f", incident, "--describe", described, "-o", "yaml")
    assert yaml.safe_load(as_yaml) == json.loads(as_json)
