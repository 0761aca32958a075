"""``podqos autopsy``: what a node and its kubelet are known to be enters what was behind an OOM and what saves."""

from __future__ import annotations

import json

import pytest

from kernel.oom_logs import CONTAINER, cgroup
from podqos.cli.main import main
from survival.test_autopsy_causes import KUBEPODS, SANDBOX, memory_info, on_node

UID = "11111111-2222-3333-4444-555555555555"
NODE = """
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {capacity: {memory: 16Gi, cpu: "4"}}
"""
KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
WEB = f"""
apiVersion: v1
kind: Pod
metadata: {{name: web, namespace: shop, uid: {UID}}}
spec:
  nodeName: node-1
  containers:
  - {{name: main, resources: {{requests: {{memory: 1639Mi}}}}}}
"""


@pytest.fixture
def said(tmp_path, capsys):
    """Return the kill that the command finds in a log."""

    def say(lines, *arguments, **files):
        (tmp_path / "log").write_text("\n".join(lines))
        for name, text in files.items():
            (tmp_path / f"{name}.yaml").write_text(text)
        given = [str(tmp_path / each) if each.endswith(".yaml") else each for each in arguments]
        assert main(["autopsy", str(tmp_path / "log"), *given, "-o", "json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        (kill,) = answer["kills"]
        return kill, {each["change"]: each for each in kill["savedBy"]}, answer["assumptions"]

    return say


def test_the_size_of_the_node_comes_from_its_object(said):
    rows = [(102, 1000, 150_000, 300, 0, 900, "java"), (7, 1000, 100_000, 0, 0, 899, "rival")]
    lines = [line.replace(f"oom_memcg={CONTAINER}", f"oom_memcg={KUBEPODS}") for line in cgroup(rows, 102, "java")]
    assert said(lines)[1]["request"]["amountBytes"] is None
    _, saved, _ = said(lines, "-f", "node.yaml", "-f", "pod.yaml", node=NODE, pod=WEB)
    assert saved["request"]["amountBytes"] - saved["request"]["moreBytes"] == 1639 << 20
    assert saved["request"]["instead"]["pid"] == 7


def test_the_kubelets_settings_and_the_growth_say_which_threshold_is_in_time(said):
    lines = on_node(SANDBOX, info=memory_info(active_anon=230_000, inactive_file=1_000))
    kill, saved, assumed = said(lines, "--growth", "20Mi/s")
    assert kill["causes"][-1]["againstBytes"] == 100 << 20
    assert saved["threshold"]["moreBytes"] == saved["threshold"]["amountBytes"] - (100 << 20)
    assert [each["stateWith"] for each in assumed] == ["--kubelet-config"]
    config = f"{KUBELET}evictionHard: {{memory.available: 150Mi}}\nsystemReserved: {{memory: 10Mi}}\n"
    kill, again, assumed = said(lines, "--growth", "20Mi/s", "--kubelet-config", "kubelet.yaml", kubelet=config)
    assert kill["causes"][-1]["againstBytes"] == 150 << 20
    assert again["threshold"]["amountBytes"] == saved["threshold"]["amountBytes"]
    assert assumed == []


def test_a_growth_that_is_none_is_refused(capsys):
    assert main(["autopsy", "-", "--growth", "fast"]) != 0
    assert "--growth" in capsys.readouterr().err
