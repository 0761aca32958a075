"""Source 002 through the command: what a reader of "QoS Classes and the Scheduling Decision" would type."""

from __future__ import annotations

from pathlib import Path

import pytest

from podqos.cli.main import main

PODS = """\
apiVersion: v1
kind: Pod
metadata: {name: article-service}
spec: {containers: [{name: app, image: app:1, resources: {limits: {cpu: 2, memory: 4Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: log-collector}
spec: {containers: [{name: app, image: app:1}]}
"""
USAGE = "pod,memory\narticle-service,3Gi\nlog-collector,{log_collector}\n"


@pytest.fixture
def run(tmp_path: Path, capsys, monkeypatch):
    """Run a command beside the two pods and what they use; return its exit code and what it prints."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pods.yaml").write_text(PODS)
    (tmp_path / "usage.csv").write_text(USAGE.format(log_collector="250Mi"))

    def of(*arguments: str) -> tuple[int, str, str]:
        code = main([*arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return of


# The document counts in GB and MB, which are no quantities of Kubernetes.


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["rank", "pods.yaml", "--node-memory", "64GB"], "64G or 64Gi"),
        (["forecast", "pods.yaml", "--growing", "log-collector", "--rate", "4GB/s"], "4G or 4Gi"),
        (["thresholds", "--eviction-hard", "memory.available<500MB"], "500M or 500Mi"),
        (["thresholds", "--system-reserved", "memory=2GB"], "2G or 2Gi"),
        (["place", "pods.yaml", "--nodes", "1", "--node-capacity", "cpu=16,memory=64GB"], "64G or 64Gi"),
        (["simulate", "race", "--what-if", "requests.memory@article-service=4GB"], "4G or 4Gi"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_an_amount_in_gb_is_refused_with_the_quantities_that_may_be_meant(run, arguments, meant):
    code, out, err = run(*arguments)

    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert f"(did you mean {meant}?)" in err


def test_usage_of_250mb_is_refused_with_its_line_and_what_may_be_meant(run, tmp_path):
    (tmp_path / "usage.csv").write_text(USAGE.format(log_collector="250MB"))

    code, _, err = run("rank", "pods.yaml", "--usage", "usage.csv")

    assert code == 2
    assert err.startswith("podqos: error: usage.csv:3: memory: ")
    assert err.endswith("(did you mean 250M or 250Mi?)\n")


def test_8gi_in_2_seconds_is_a_rate_and_the_kernel_comes_before_the_kubelet_looks(run):
    """The document: a container that allocates 8GB in 2 seconds."""
    node = ["--usage", "usage.csv", "--node-memory", "8Gi", "--growing", "log-collector"]
    code, out, _ = run("forecast", "pods.yaml", *node, "--rate", "8Gi/2s")

    assert code == 0
    assert "default/log-collector (app) grows by 4Gi/s" in out
    assert "100 %  the kernel kills default/log-collector" in out
    assert run("forecast", "pods.yaml", *node, "--rate", "8Gi/soon")[2] == (
        "podqos: error: --rate: '8Gi/soon' is not a rate (for example 128Mi/s, 2Gi/h or 8Gi/2s)\n"
    )
