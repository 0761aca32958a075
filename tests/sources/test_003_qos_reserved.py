"""Source 003, "Allocating Node Resources": qos-reserved keeps requested memory from pods of lower classes.

The source's node has it as ``experimental-qos-reserved``; since Kubernetes 1.11 it is ``qosReserved`` behind the
feature gate QOSReserved. Everything here goes through the commands.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from podqos.cli.main import main

MI, GI = 1 << 20, 1 << 30
PODS = """\
apiVersion: v1
kind: Pod
metadata: {name: db}
spec: {containers: [{name: app, image: db:1, resources: {limits: {cpu: 1, memory: 10Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: scratch}
spec: {restartPolicy: Never, containers: [{name: app, image: scratch:1}]}
"""
WEB = """\
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: app, image: web:1, resources: {requests: {memory: 2Gi}}}]}
"""
KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
RESERVED = (
    "qosReserved: {memory: PERCENT}\nfeatureGates: {QOSReserved: true}\nevictionHard: {memory.available: 500Mi}\n"
)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pods.yaml").write_text(PODS)
    return tmp_path


def _kubelet(folder: Path, percent: str = "100%", text: str = RESERVED) -> None:
    (folder / "kubelet.yaml").write_text(KUBELET + text.replace("PERCENT", percent))


def _simulate(folder: Path, capsys, *, version: int = 2, memory: str = "14Gi over 30s", **parts: str) -> list[dict]:
    """Run the scenario of the source's two pods on a node of 16Gi; return what the journal says of pods killed."""
    db, web = parts.get("db", ""), parts.get("web", "")
    scenario = f"""\
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {{name: reserved}}
spec:
  duration: 200s
  manifests: [pods.yaml]
  nodes:
    - name: worker
      cgroupVersion: {version}
      capacity: {{cpu: 8, memory: 16Gi}}
      kubelet: kubelet.yaml
  workloads:
    - {{workload: db, demand: {{memory: 1Gi}}{db}}}
    - {{workload: scratch, demand: {{memory: {memory}}}}}
    {web}
"""
    (folder / "scenario.yaml").write_text(scenario)
    assert main(["simulate", "scenario.yaml", "-o", "jsonl"]) == 0
    entries = map(json.loads, capsys.readouterr().out.splitlines())
    return [entry for entry in entries if entry["kind"] in {"OOMKilled", "Evicting"}]


def _killed(entry: dict) -> tuple[str, str, int, float]:
    """Return who was killed, which cgroup had nothing left, of how many MiB, and when."""
    because = entry["because"]
    return entry["pod"], because["domain"], because["limitBytes"] // MI, entry["time_us"] / 1e6


@pytest.mark.parametrize("version", [1, 2])
def test_best_effort_is_stopped_at_what_guaranteed_pods_leave(folder, capsys, version):
    """The Guaranteed pod uses 1Gi of its 10Gi; BestEffort gets 6Gi of 16Gi all the same."""
    _kubelet(folder)
    (entry,) = _simulate(folder, capsys, version=version)
    pod, domain, limit, at = _killed(entry)
    assert (pod, domain, limit) == ("default/scratch", "/kubepods/besteffort", 6 * 1024)
    assert at == pytest.approx(30 * 6 / 14, abs=0.001)


@pytest.mark.parametrize(
    ("percent", "limit_mib"), [("0%", None), ("50%", 11 * 1024), ("100%", 6 * 1024)], ids=["none", "half", "all"]
)
def test_the_percentage_decides_how_much_is_kept(folder, capsys, percent, limit_mib):
    _kubelet(folder, percent)
    limits = [_killed(entry)[2] for entry in _simulate(folder, capsys)]
    assert limits == ([] if limit_mib is None else [limit_mib])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("qosReserved: {memory: 100%}\n", True, id="without its feature gate"),
        pytest.param("maxPods: 20\n", False, id="not set"),
        pytest.param(RESERVED + "cgroupsPerQOS: false\nenforceNodeAllocatable: []\n", False, id="no QoS cgroups"),
    ],
)
def test_without_a_ceiling_best_effort_takes_what_is_there(folder, capsys, text, said):
    _kubelet(folder, text=text)
    assert not _simulate(folder, capsys)
    main(["simulate", "scenario.yaml"])
    err = capsys.readouterr().err
    assert ("qosReserved has no effect without featureGates.QOSReserved: true" in err) is said


def test_burstable_requests_are_kept_from_best_effort_alone(folder, capsys):
    (folder / "pods.yaml").write_text(PODS + WEB)
    _kubelet(folder)
    (entry,) = _simulate(folder, capsys, web="- {workload: web, demand: {memory: 5Gi}}")
    assert _killed(entry)[:3] == ("default/scratch", "/kubepods/besteffort", 4 * 1024)


def test_the_ceiling_rises_when_the_pod_goes_that_it_was_for(folder, capsys):
    _kubelet(folder)
    assert not _simulate(folder, capsys, memory="{points: {0s: 1Gi, 30s: 1Gi, 60s: 14Gi}}", db=", deleted: 10s")


def test_on_cgroup_v2_the_kernel_kills_when_a_ceiling_falls_below_what_is_in_use(folder, capsys):
    _kubelet(folder)
    (entry,) = _simulate(folder, capsys, memory="8Gi", db=", arrives: 10s")
    assert _killed(entry) == ("default/scratch", "/kubepods/besteffort", 6 * 1024, 10.0)


def test_on_cgroup_v1_a_class_above_its_ceiling_is_held_at_what_it_uses(folder, capsys):
    """The kernel refuses the limit; the kubelet sets it to what is in use, and lowers it once that allows."""
    _kubelet(folder)
    points = "{points: {0s: 8Gi, 30s: 8Gi, 40s: 5Gi, 100s: 5Gi, 130s: 14Gi}}"
    (entry,) = _simulate(folder, capsys, version=1, memory=points, db=", arrives: 10s")
    assert _killed(entry)[:3] == ("default/scratch", "/kubepods/besteffort", 6 * 1024)
    (entry,) = _simulate(
        folder, capsys, version=1, memory="{points: {0s: 8Gi, 30s: 8Gi, 40s: 14Gi}}", db=", arrives: 10s"
    )
    assert _killed(entry)[2:] == (8 * 1024, pytest.approx(30, abs=0.001))


def test_place_shows_the_ceilings_on_every_node(folder, capsys):
    (folder / "pods.yaml").write_text(PODS + WEB)
    _kubelet(folder)
    arguments = ["place", "-f", "pods.yaml", "--kubelet-config", "kubelet.yaml"]
    arguments += ["--nodes", "1", "--node-capacity", "cpu=8,memory=16Gi"]
    assert main([*arguments, "-o", "json"]) == 0
    (node,) = json.loads(capsys.readouterr().out)["nodes"]
    assert node["memoryCeilings"] == {"Burstable": "6Gi", "BestEffort": "4Gi"}
    main(arguments)
    assert "(qosReserved)\n  node-1: Burstable 6Gi, BestEffort 4Gi" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "version", "ceilings"),
    [
        ("", "1.9", ["11Gi", "10Gi"]),
        ("  feature-gates: [QOSReserved=true]\n", "1.36", ["11Gi", "10Gi"]),
        ("", "1.36", []),
    ],
    ids=["the source's version", "with its gate", "without its gate"],
)
def test_explain_shows_the_ceilings_that_the_sources_own_file_asks_for(folder, capsys, flags, version, ceilings):
    (folder / "pods.yaml").write_text(PODS + WEB)
    (folder / "node.yaml").write_text(f"kubeletArguments:\n  experimental-qos-reserved: ['memory=50%']\n{flags}")
    node = ["--kubelet-config", "node.yaml", "--node-memory", "16Gi", "--kubernetes-version", version]
    assert main(["explain", "-f", "pods.yaml", "-v", *node]) == 0
    assert re.findall(r"qosReserved leaves (\w+) to this class", capsys.readouterr().out) == ceilings


def test_thresholds_shows_from_what_the_ceilings_are_taken(folder, capsys):
    """Reservations come off first, hard thresholds do not: the cgroup of all pods leaves them out."""
    _kubelet(folder, "50%", RESERVED + "systemReserved: {memory: 1Gi}\n")
    assert main(["thresholds", "-f", "kubelet.yaml", "--node-memory", "16Gi"]) == 0
    out = capsys.readouterr().out
    assert "  Burstable   15Gi minus 50% of what Guaranteed pods request\n" in out
    assert "  BestEffort  that minus 50% of what Burstable pods request\n" in out
    assert main(["thresholds", "-f", "kubelet.yaml", "--node-memory", "16Gi", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["qosReserved"] == {"memoryPercent": 50, "podsMemory": 15 * GI}


def test_forecast_knows_that_the_class_is_full_first(folder, capsys):
    _kubelet(folder)
    (folder / "usage.csv").write_text("pod,memory\ndefault/db,1Gi\ndefault/scratch,1Gi\n")
    figures = ["-f", "pods.yaml", "--usage", "usage.csv", "--node-memory", "16Gi", "--kubelet-config", "kubelet.yaml"]
    assert main(["forecast", *figures, "--growing", "scratch", "--rate", "100Mi/s"]) == 0
    assert "The class reaches its limit after 51.2 s" in capsys.readouterr().out


def test_a_sweep_varies_it(folder, capsys):
    _kubelet(folder)
    _simulate(folder, capsys)
    assert main(["simulate", "scenario.yaml", "--vary", "kubelet.qosReserved.memory=0%,100%", "-o", "csv"]) == 0
    rows = capsys.readouterr().out.splitlines()
    kills = {tuple(row.split(",")[:3:2]): float(row.split(",")[4]) for row in rows if "scratch" in row}
    assert kills == {("0%", "default/scratch"): 0, ("100%", "default/scratch"): 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("qosReserved: {memory: 200%}", "qosReserved.memory: '200%' is not a percentage from 0% to 100%"),
        ("qosReserved: {cpu: 50%}", "qosReserved: 'cpu' cannot be reserved (the kubelet can reserve memory only)"),
        ("qosReserved: {memory: 50}", "qosReserved.memory: Expected `str`, got `int` (write 50%)"),
    ],
)
def test_what_the_kubelet_would_not_start_with_is_refused(folder, capsys, text, message):
    _kubelet(folder, text=f"{text}\n")
    assert main(["thresholds", "-f", "kubelet.yaml"]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert len(captured.err.splitlines()) == 1
