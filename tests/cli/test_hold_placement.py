"""The least threshold that wins, with placement held fixed: what forecast says, `simulate` confirms."""

from __future__ import annotations

import json

import pytest

from podqos.cli.main import main

RAISED = "kubelet.evictionHard.memory.available"
PODS = """\
apiVersion: v1
kind: Pod
metadata: {name: grower}
spec: {containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: large}
spec: {containers: [{name: c, image: i, resources: {requests: {memory: 8070Mi}}}]}
"""
KUBELET = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
evictionHard: {memory.available: 100Mi}
"""
SCENARIO = """\
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: leak}
spec:
  duration: 100s
  manifests: [pods.yaml]
  nodes:
    - name: worker
      capacity: {cpu: 4, memory: 8Gi}
      filesystems: {nodefs: {capacity: 200Gi}}
      kubelet: kubelet.yaml
  workloads:
    - workload: grower
      demand: {memory: {points: {0s: 1700Mi, 100s: 2200Mi}}}
    - workload: large
      demand: {memory: 6Gi}
"""


@pytest.fixture
def asked(tmp_path, capsys):
    """Return what a command prints as JSON, and what it says besides, about a node that a large pod fills."""
    files = {"pods.yaml": PODS, "kubelet.yaml": KUBELET, "leak.yaml": SCENARIO, "usage.csv": "pod,memory\n"}
    files["usage.csv"] += "grower,1700Mi\nlarge,6Gi\n"
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    def ask(command: str, *words: str) -> tuple[dict, str]:
        given = [each.replace("DIR", str(tmp_path)) for each in words]
        assert main([command, *given, "-o", "json"]) == 0
        out, err = capsys.readouterr()
        return json.loads(out), err

    return ask


def forecast(asked) -> dict:
    node = (
        "-f",
        "DIR/pods.yaml",
        "--usage",
        "DIR/usage.csv",
        "--node-memory",
        "8Gi",
        "--kubelet-config",
        "DIR/kubelet.yaml",
    )
    growth = ("--growing", "grower", "--rate", "5Mi/s", "--win", "100")
    return asked("forecast", *node, *growth)[0]["growths"][0]["needed"]


def test_forecast_says_what_the_threshold_takes_and_which_pod_no_longer_fits(asked):
    needed = forecast(asked)
    mebibytes = needed["evictionHardBytes"] >> 20
    assert needed["takesBytes"] == needed["evictionHardBytes"] - (100 << 20)
    assert needed["allocatableBytes"] == (8192 - mebibytes) << 20
    assert needed["displaced"] == ["default/large"]
    said = f"It would reduce allocatable by {mebibytes - 100}Mi; default/large no longer fits."
    assert said in needed["text"]


def test_with_placement_held_the_needed_threshold_wins_at_every_phase_and_a_mebibyte_less_does_not(asked):
    mebibytes = forecast(asked)["evictionHardBytes"] >> 20
    # Of 8Gi 348Mi are left: the worst phases are those that look just before the threshold is crossed.
    crossed_ms = (348 - mebibytes + 1) * 200
    phases = ",".join(f"{(crossed_ms + ms) % 10_000}ms" for ms in (-300, -200, -100, -50, 50, 100, 2000, 5000))
    vary = ("--vary", f"{RAISED}={mebibytes}Mi,{mebibytes - 1}Mi", "--vary", f"phase={phases}")
    found, said = asked("simulate", "DIR/leak.yaml", *vary, "--hold-placement")
    assert found["placementHeld"]
    assert "--hold-placement" not in said
    first = {amount: [] for amount in (f"{mebibytes}Mi", f"{mebibytes - 1}Mi")}
    for each in found["combinations"]:
        first[each["values"][0]].append(each["kubeletFirst"])
        assert each["kubeletFirst"] + each["kernelFirst"] == 1
        assert each["neverRan"]["most"] == 0
    assert set(first[f"{mebibytes}Mi"]) == {1}
    assert set(first[f"{mebibytes - 1}Mi"]) == {0, 1}


def test_without_it_the_raised_threshold_displaces_the_pod_and_that_is_said(asked):
    mebibytes = forecast(asked)["evictionHardBytes"] >> 20
    found, said = asked("simulate", "DIR/leak.yaml", "--vary", f"{RAISED}=100Mi,{mebibytes}Mi")
    assert [each["neverRan"]["most"] for each in found["combinations"]] == [0, 1]
    assert f"pods that never ran: {RAISED} also changes allocatable; --hold-placement keeps pods" in said
    what_if = ("--what-if", f"{RAISED}={mebibytes}Mi")
    _, said = asked("simulate", "DIR/leak.yaml", *what_if)
    assert f"{RAISED}={mebibytes}Mi changes allocatable: default/large did not fit" in said
    held, said = asked("simulate", "DIR/leak.yaml", *what_if, "--hold-placement")
    assert "did not fit" not in said
    assert held["summary"]["evictions"] + held["summary"]["oomKills"] > 0


def test_the_race_is_not_won_by_leaving_a_pod_pending(capsys):
    """The scenario `race`: with 4Gi the pod that grows has no node; where it keeps it, the kernel is still first."""
    words = ["race", "--vary", f"{RAISED}=4Gi", "--vary", "phase=0s"]
    assert main(["simulate", *words]) == 0
    out, err = capsys.readouterr()
    assert "NEVER RAN" in out
    assert "--hold-placement" in err
    assert main(["simulate", *words, "--hold-placement", "-o", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["combinations"]
    assert (found["kernelFirst"], found["neverRan"]["most"]) == (1, 0)


NODE = """\
apiVersion: v1
kind: Node
metadata: {{name: worker}}
status:
  capacity: {{cpu: "4", memory: 8Gi, pods: "110"}}
  allocatable: {{cpu: "4", memory: {memory}Mi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {{name: grower}}
spec: {{nodeName: "{bound}", containers: [{{name: c, image: i, resources: {{requests: {{memory: 7156Mi}}}}}}]}}
"""


@pytest.mark.parametrize(("left", "displaced"), [(12, ["default/grower"]), (50, ["default/grower"]), (51, [])])
def test_what_a_node_states_as_allocatable_counts_in_forecast_as_in_place(tmp_path, capsys, left, displaced):
    """With 151Mi the kubelet acts first in 99 % at 15.2Mi/s, which takes 51Mi from allocatable.

    The Node keeps 8192Mi − 7156Mi − 100Mi − ``left`` for its system, whatever the kubelet's defaults would.
    """
    usage = tmp_path / "usage.csv"
    usage.write_text("namespace,pod,container,memory\ndefault,grower,c,6500Mi\n")

    def asked(command: str, memory: int, *words: str, bound: str = "") -> dict:
        path = tmp_path / "all.yaml"
        path.write_text(NODE.format(memory=memory, bound=bound))
        main([command, "-f", str(path), *words, "-o", "json"])
        return json.loads(capsys.readouterr().out)

    stated = 7156 + left
    (there,) = asked("place", stated)["nodes"]
    assert there["remaining"]["memory"] == f"{left}Mi"
    growth = ("--growing", "grower", "--rate", "15.2Mi/s", "--usage", str(usage))
    needed = asked("forecast", stated, *growth, bound="worker")["growths"][0]["needed"]
    assert needed["takesBytes"] == 51 << 20
    assert needed["allocatableBytes"] == (stated - 51) << 20
    assert needed["displaced"] == displaced
    pods = asked("place", stated - 51)["pods"]
    assert [f"default/{pod['name']}" for pod in pods if pod["status"] == "Pending"] == displaced
