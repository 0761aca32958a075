"""``--kubernetes-version`` and its like: every command takes 1.37, and says that its rules are approximate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from documents.grammar import grammars
from library import clusters
from podqos.cli.main import main
from podqos.reading.snapshot_files import write_snapshot

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web, annotations: {podqos.dev/latency-sensitive: "true"}}
spec:
  containers:
  - name: main
    image: app:1
    resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 200m, memory: 128Mi}}
"""
SCENARIO = """\
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: short}
spec:
  kubernetesVersion: "%s"
  duration: 10s
  manifests: [pod.yaml]
  nodes:
  - {name: worker, capacity: {cpu: 2, memory: 1Gi}}
  workloads:
  - {workload: web, demand: {memory: 32Mi}}
"""

COMMANDS = {
    "explain": ["-f", "pod.yaml"],
    "check": ["-f", "pod.yaml", "--fail-on", "error"],
    "drift": ["pod.yaml", "pod.yaml"],
    "advise": ["-f", "pod.yaml"],
    "thresholds --advise": ["--node-memory", "16Gi", "--node-cpu", "4"],
    "admit": ["-f", "pod.yaml"],
    "rank": ["-f", "pod.yaml"],
    "place": ["-f", "pod.yaml", "--nodes", "1", "--node-capacity", "cpu=4,memory=8Gi"],
    "cpu": ["-f", "pod.yaml", "--cores", "2"],
    "thresholds": ["--node-memory", "16Gi"],
    "forecast": ["-f", "pod.yaml", "--growing", "web"],
    "blast": ["-f", "pod.yaml"],
    "overview": ["--snapshot", "cluster.json"],
    "autopsy": ["pod.yaml"],
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "pod.yaml").write_text(POD)
    write_snapshot(clusters.lines(), str(tmp_path / "cluster.json"))
    for version in ("1.36", "1.37"):
        (tmp_path / f"scenario-{version}.yaml").write_text(SCENARIO % version)
    monkeypatch.chdir(tmp_path)


def approximate(text: str) -> list[dict[str, str]]:
    return [each for each in json.loads(text)["assumptions"] if each["value"] == "approximate"]


SAID = {
    "what": "rules of Kubernetes 1.37",
    "value": "approximate",
    "stateWith": "read from a release candidate's source; --kubernetes-version 1.36 is exact",
}


def test_these_are_all_commands_that_take_a_version():
    taking = {
        name
        for name, grammar in grammars().items()
        if any("--kubernetes-version" in option.names for group in grammar.groups for option in group.options)
    }
    assert taking == {"webhook", *(name.split()[0] for name in COMMANDS)}  # whose output is the API server's to define


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("version", "said"), [("1.36", []), ("1.37", [SAID])])
def test_a_command_says_that_the_rules_of_1_37_are_approximate(files, capsys, command, version, said):
    code = main([*command.split(), *COMMANDS[command], "--kubernetes-version", version, "-o", "json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    assert approximate(out) == said


@pytest.mark.parametrize("command", ["simulate", "blast", "simulate --seeds 1"])
@pytest.mark.parametrize(("version", "said"), [("1.36", []), ("1.37", [SAID])])
def test_a_scenario_of_1_37_says_so(files, capsys, command, version, said):
    assert main([*command.split(), f"scenario-{version}.yaml", "-o", "json"]) == 0
    assert approximate(capsys.readouterr().out) == said


@pytest.mark.parametrize("output", ["text", "jsonl", "csv"])
@pytest.mark.parametrize(("version", "is_said"), [("1.36", False), ("1.37", True)])
def test_every_output_of_a_simulation_of_1_37_says_so(files, capsys, output, version, is_said):
    assert main(["simulate", f"scenario-{version}.yaml", "-o", output]) == 0
    assert ("assumed: rules of Kubernetes 1.37: approximate" in capsys.readouterr().err) == is_said


def test_a_reader_of_text_is_told_in_the_line_of_assumptions(files, capsys):
    assert main(["explain", "-f", "pod.yaml", "--kubernetes-version", "1.37"]) == 0
    assert "assumed: rules of Kubernetes 1.37: approximate" in capsys.readouterr().err


def test_the_default_stays_1_36(files, capsys):
    assert main(["explain", "-f", "pod.yaml", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["kubernetesVersion"] == "1.36"


def test_a_kubelet_of_1_37_does_not_start_with_a_throttling_factor_and_without_memory_qos(files, capsys):
    Path("kubelet.yaml").write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        "memoryThrottlingFactor: 0.8\nfeatureGates: {MemoryQoS: false}\n"
    )
    asked = ["explain", "-f", "pod.yaml", "--kubelet-config", "kubelet.yaml"]
    assert main([*asked, "--kubernetes-version", "1.36"]) == 0
    assert main([*asked, "--kubernetes-version", "1.37"]) == 2
    assert "kubelet.yaml: memoryThrottlingFactor: is set, but featureGates turns MemoryQoS off" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("version", "gates", "high"),
    [("1.36", "{}", ""), ("1.36", "{MemoryQoS: true}", "120795136"), ("1.37", "{}", "120795136")],
)
def test_a_throttling_factor_counts_since_1_37_without_its_gate(files, capsys, version, gates, high):
    """64Mi + 0.8 × 64Mi = 120795955.2 in whole pages."""
    Path("kubelet.yaml").write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        f"memoryThrottlingFactor: 0.8\nfeatureGates: {gates}\n"
    )
    asked = ["explain", "-f", "pod.yaml", "--kubelet-config", "kubelet.yaml", "--kubernetes-version", version]
    assert main([*asked, "-o", "json"]) == 0
    cgroups = json.loads(capsys.readouterr().out)["items"][0]["cgroups"]
    written = [file["value"] for cgroup in cgroups for file in cgroup["files"] if file["name"] == "memory.high"]
    assert "".join(written) == high


NODE = """\
apiVersion: v1
kind: Node
metadata: {name: worker}
status:
  capacity: {cpu: "4", memory: 8Gi, hugepages-2Mi: 2Gi, pods: "110"}
  allocatable: {cpu: "4", memory: 6Gi, hugepages-2Mi: 2Gi, pods: "110"}
"""


@pytest.mark.parametrize(("version", "available_mib"), [("1.36", 8192 - 64), ("1.37", 8192 - 2048 - 64)])
def test_since_1_37_huge_pages_are_not_available_to_the_kubelet(files, capsys, version, available_mib):
    """Gate HugepageAwareEviction; the kernel has them for nothing else in any version."""
    Path("node.yaml").write_text(NODE)
    asked = ["rank", "-f", "pod.yaml", "-f", "node.yaml", "--kubernetes-version", version, "-o", "json"]
    assert main(asked) == 0
    memory = json.loads(capsys.readouterr().out)["node"]
    assert (memory["memoryBytes"], memory["availableBytes"]) == (8 << 30, available_mib << 20)
    assert memory["kernelLeftBytes"] < 6 << 30


STORIES = {
    "logs.yaml": """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  initContainers:
  - {name: proxy, image: p:1, restartPolicy: Always, resources: {limits: {ephemeral-storage: 10Mi}}}
  containers:
  - {name: main, image: app:1, resources: {limits: {ephemeral-storage: 1Gi}}}
""",
    "rule.yaml": """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: app:1
    restartPolicy: Never
    restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}]
  - {name: other, image: app:1}
""",
}


def journal(capsys, version: str, manifest: str, containers: str) -> list[tuple[float, str, str]]:
    """Simulate a pod for half a minute; return when what happened to which container after it had started."""
    Path(manifest).write_text(STORIES[manifest])
    scenario = SCENARIO.replace("pod.yaml", manifest).replace("demand: {memory: 32Mi}", f"containers: {containers}")
    Path("story.yaml").write_text(scenario.replace("10s", "30s") % version)
    assert main(["simulate", "story.yaml", "-o", "jsonl"]) == 0
    entries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [
        (each["time_us"] / 1e6, each["kind"], each.get("container") or "")
        for each in entries
        if each["time_us"] and each["kind"] not in {"Observed", "ConditionChanged"}
    ]


@pytest.mark.parametrize(
    ("version", "happened"), [("1.36", []), ("1.37", [(10.0, "Evicted", ""), (10.0, "Stopped", "")])]
)
def test_a_simulated_sidecar_that_logs_too_much_has_its_pod_evicted_since_1_37(files, capsys, version, happened):
    seen = journal(capsys, version, "logs.yaml", "{proxy: {logs: 20Mi over 5s}}")
    assert [each for each in seen if each[1] != "CleanedUp"] == happened


@pytest.mark.parametrize(
    ("version", "happened"),
    [
        ("1.35", [(6.0, "Exited", "main"), (8.0, "Exited", "other"), (8.0, "Failed", ""), (8.0, "Stopped", "")]),
        (
            "1.36",
            [
                (6.0, "Exited", "main"),
                (6.0, "Exited", "other"),
                (6.0, "Restarted", "main"),
                (6.0, "Restarted", "other"),
            ],
        ),
    ],
)
def test_a_simulated_pod_begins_again_by_its_rule_since_1_36(files, capsys, version, happened):
    """The kubelet hears of an end a second later. With 1.35 the other container goes on until it ends by itself."""
    ends = "{main: {exits: {after: 5s, code: 42}}, other: {exits: {after: 7s, code: 0}}}"
    seen = journal(capsys, version, "rule.yaml", ends)
    assert seen[:4] == happened
