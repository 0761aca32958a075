"""``podqos advise`` leaves a program's own settings alone, and no memory limit is below what they let it take."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from podqos.cli.main import main

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: shop{live}}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers:
      - name: web
        image: memcached:1
        {told}
        resources:
          requests: {{cpu: "1", memory: 1Gi}}
          limits: {limits}
"""


def env(name: str, value: str) -> str:
    return f"env: [{{name: {name}, value: {value!r}}}]"


@pytest.fixture
def advise(capsys, tmp_path: Path):
    """Run the command on a workload that is told so; it used at most 500Mi, or as much as stated."""

    def run(told: str, *options: str, limits: str = "{memory: 4Gi}", used_mib: int = 500, live: str = "") -> str:
        (tmp_path / "web.yaml").write_text(WEB.format(told=told or "stdin: false", limits=limits, live=live))
        rows = [f"web-7d8b9c4f5-aaaaa,web,{used_mib - number % 3}Mi,200m" for number in range(200)]
        (tmp_path / "usage.csv").write_text("\n".join(["pod,container,memory,cpu", *rows, ""]))
        usage = () if used_mib == 0 else ("--usage", str(tmp_path / "usage.csv"))
        assert main(["advise", "-f", str(tmp_path / "web.yaml"), *usage, *options]) == 0
        return capsys.readouterr().out

    return run


def limit_of(out: str) -> str | None:
    (workload,) = json.loads(out)["workloads"]
    return workload["containers"][0]["limits"].get("memory")


@pytest.mark.parametrize(
    ("told", "limit"),
    [
        pytest.param("", "565Mi", id="nothing"),
        pytest.param(env("JAVA_TOOL_OPTIONS", "-Xms2g -Xmx2g"), "2731Mi", id="java"),
        pytest.param(env("JDK_JAVA_OPTIONS", "-Xmx1536m"), "2Gi", id="java-of-the-launcher"),
        pytest.param(env("_JAVA_OPTIONS", "-XX:MaxHeapSize=1g"), "1366Mi", id="java-after-all-others"),
        pytest.param("command: [java, -Xms2g, -jar, app.jar]", "2731Mi", id="java-at-first"),
        # A quarter of what it takes the machine to have, unless another share is stated.
        pytest.param(env("JAVA_OPTS", "-XX:MaxRAM=6g"), "2Gi", id="java-on-a-machine"),
        pytest.param(env("JAVA_OPTS", "-XX:MaxRAM=3g -XX:MaxRAMPercentage=50"), "2Gi", id="java-share-of-a-machine"),
        pytest.param(env("ES_JAVA_OPTS", "-Xms1g -Xmx1g"), "1366Mi", id="elasticsearch"),
        pytest.param("command: [sh, -c, 'exec java $OPTS']\n        " + env("OPTS", "-Xmx1g"), "1366Mi", id="shell"),
        # What little there is besides a small heap is not that little.
        pytest.param("command: [java, -Xmx480m, -jar, app.jar]", "640Mi", id="java-small"),
        pytest.param(env("NODE_OPTIONS", "--max-old-space-size=2048"), "2560Mi", id="node"),
        pytest.param(env("GOMEMLIMIT", "900MiB"), "1000Mi", id="go"),
        pytest.param(env("DOTNET_GCHeapHardLimit", "0x40000000"), "1280Mi", id="dotnet"),
        pytest.param("args: [--maxmemory, 1gb]", "2Gi", id="redis-copies-while-it-saves"),
        pytest.param("args: [-m, '1024']", "1205Mi", id="memcached"),
        pytest.param("args: [-c, shared_buffers=1GB]", "2560Mi", id="postgres"),
        pytest.param("args: [--innodb-buffer-pool-size=1G]", "1366Mi", id="mysql"),
        pytest.param("args: [--wiredTigerCacheSizeGB, '1.5']", "2560Mi", id="mongodb"),
        # A share shrinks with the limit, and has to hold what was used.
        pytest.param(env("JAVA_OPTS", "-XX:MaxRAMPercentage=50"), "1000Mi", id="share"),
        pytest.param("command: [java, -jar, app.jar]", "2000Mi", id="java-takes-a-quarter"),
        pytest.param("command: [node, server.js]", "1000Mi", id="node-takes-half"),
    ],
)
def test_no_limit_is_below_what_the_program_is_told(advise, told, limit):
    out = advise(told, "-o", "json")
    assert limit_of(out) == limit
    decides = json.loads(out)["workloads"][0]["containers"][0]["setting"]
    assert (decides or {"decides": False})["decides"] == (told != "")


@pytest.mark.parametrize("tool", ["json", "kubectl", "kustomize"])
@pytest.mark.parametrize(
    "told", [env("JAVA_TOOL_OPTIONS", "-Xms2g -Xmx2g"), "args: [--maxmemory, 1gb]", env("GOMEMLIMIT", "900MiB")]
)
def test_what_the_program_is_told_is_not_written(advise, told, tool):
    out = advise(told, "--patch", tool)
    assert "memory" in out
    assert not any(field in out for field in ("env", "args", "command", "Xm", "maxmemory", "GOMEMLIMIT"))


def test_the_sentence_says_which_setting_it_is_and_who_decides(advise):
    words = " ".join(advise(env("JAVA_OPTS", "-Xmx2g")).split())
    assert (
        "! -Xmx2g in JAVA_OPTS lets Java use 2Gi, and at most 500Mi was measured: the memory limit has to be at least "
        "2731Mi until the program's owner lowers the setting"
    ) in words


def test_a_setting_that_usage_needs_anyway_is_not_mentioned(advise):
    assert "owner" not in advise(env("JAVA_OPTS", "-Xmx300m"))


@pytest.mark.parametrize("goal", ["guaranteed", "cheapest", "safest"])
def test_no_goal_goes_below_it(advise, goal):
    (container,) = json.loads(advise(env("JAVA_OPTS", "-Xmx2g"), "--goal", goal, "-o", "json"))["workloads"][0][
        "containers"
    ]
    assert container["limits"]["memory"] == ("4Gi" if goal == "safest" else "2731Mi")


def test_a_limit_that_is_too_small_for_it_is_raised(advise):
    """The limit is 2Gi, as the heap: nothing beside it would fit."""
    out = advise(env("JAVA_OPTS", "-Xmx2g"), "--goal", "safest", "-o", "json", limits="{memory: 2Gi}", used_mib=0)
    assert limit_of(out) == "2731Mi"


def test_a_limit_that_the_checks_are_content_with_stays(advise):
    """1700m of 2Gi is 81 %."""
    assert limit_of(advise(env("JAVA_OPTS", "-Xmx1600m"), "-o", "json", limits="{memory: 2Gi}")) == "2Gi"
    assert limit_of(advise(env("JAVA_OPTS", "-Xmx1700m"), "-o", "json", limits="{memory: 2Gi}")) == "2267Mi"


def test_a_variable_that_follows_the_limit_asks_for_none(advise):
    reference = "{resourceFieldRef: {resource: limits.memory}}"
    told = f"env: [{{name: GOMEMLIMIT, valueFrom: {reference}}}]"
    assert limit_of(advise(told, "-o", "json")) == limit_of(advise("", "-o", "json"))


HELD = "env: [{name: JAVA_OPTS, valueFrom: {configMapKeyRef: {name: app, key: options}}}]"


def test_a_setting_that_is_not_known_keeps_the_limit(advise):
    out = advise(HELD)
    assert "memory 1Gi / 4Gi\n" in out
    assert "the memory limit is not lowered: JAVA_OPTS comes from ConfigMap app" in " ".join(out.split())


def test_a_setting_that_is_not_known_gets_no_new_limit(advise):
    out = advise(HELD, limits="{}")
    assert "no memory limit is added: JAVA_OPTS comes from ConfigMap app" in " ".join(out.split())
    assert limit_of(advise(HELD, "-o", "json", limits="{}")) is None


def test_what_a_cluster_keeps_to_itself_keeps_the_limit(advise):
    """Commands and environments are left out of what is read from a cluster: they may hold secrets."""
    live = ", uid: 1f0c, creationTimestamp: '2026-01-01T00:00:00Z', resourceVersion: '1'"
    out = advise("", live=live)
    assert "the memory limit is not lowered: what its heap or cache is set to is not read" in " ".join(out.split())
    assert limit_of(advise("terminationMessagePath: /dev/termination-log", "-o", "json", live=live)) == "565Mi"


def test_what_the_checks_would_warn_about_is_not_advised(capsys, tmp_path: Path):
    """Spikes: usually 60Mi, and once as much as 1000Mi. PQ105 allows a limit of four times the request."""
    (tmp_path / "web.yaml").write_text(WEB.format(told="stdin: false", limits="{memory: 2Gi}", live=""))
    rows = [f"web-7d8b9c4f5-aaaaa,web,{1000 if number == 77 else 60}Mi,200m" for number in range(200)]
    (tmp_path / "usage.csv").write_text("\n".join(["pod,container,memory,cpu", *rows, ""]))
    arguments = ["advise", "-f", str(tmp_path / "web.yaml"), "--usage", str(tmp_path / "usage.csv")]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "No change advised for 1 workload." in out
    assert "not advised: podqos check would find: web may use" in " ".join(out.split())
    assert "(PQ105)" in out
    before = (tmp_path / "web.yaml").read_bytes()
    assert main([*arguments, "--fix", "--patch", "kubectl"]) == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "web.yaml").read_bytes() == before


def test_usage_that_is_only_the_request_again_is_no_test(advise):
    out = advise("", "--goal", "safest", used_mib=0)
    assert "No usage given: not tested." in out
    assert "tested: " not in out


def test_a_patch_of_the_class_takes_the_number_along(capsys, tmp_path: Path):
    """The API server refuses a class beside the number of another."""
    manifest = yaml.safe_load(WEB.format(told="stdin: false", limits="{memory: 1Gi, cpu: 1}", live=""))
    template = manifest["spec"]["template"]
    template["spec"] |= {"priorityClassName": "old", "priority": 7}
    manifest["metadata"]["annotations"] = {"podqos.dev/latency-sensitive": "true", "podqos.dev/restart-cost": "high"}
    (tmp_path / "web.yaml").write_text(yaml.safe_dump(manifest))
    assert main(["advise", "-f", str(tmp_path / "web.yaml"), "--patch", "kustomize"]) == 0
    documents = yaml.safe_load_all(capsys.readouterr().out)
    patch = next(each for each in documents if each and each["kind"] == "Deployment")
    spec = patch["spec"]["template"]["spec"]
    assert spec["priorityClassName"] != "old"
    assert spec["priority"] is None


def test_what_comes_to_the_same_is_neither_advised_nor_written(capsys, tmp_path: Path):
    """Requests as large as the limits are what the API server fills in."""
    text = WEB.format(told="stdin: false", limits="{cpu: 1, memory: 2Gi}", live="")
    file = tmp_path / "web.yaml"
    file.write_text("".join(line for line in text.splitlines(keepends=True) if "requests:" not in line))
    (tmp_path / "usage.csv").write_text("pod,container,memory\nweb-7d8b9c4f5-aaaaa,web,700Mi\n")
    arguments = ["advise", "-f", str(file), "--usage", str(tmp_path / "usage.csv"), "--goal", "cheapest"]
    before = file.read_bytes()
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "No change advised for 1 workload." in out
    assert not any(said in out for said in ("warning", "not achieved", "No requests or usage known", "choose its"))
    for tool in ("kubectl", "kustomize"):
        assert main([*arguments, "--patch", tool]) == 0
        assert capsys.readouterr().out == ""
    assert main([*arguments, "--fix"]) == 0
    assert "nothing to change" in capsys.readouterr().err
    assert file.read_bytes() == before
