"""``podqos simulate --engine`` as a user meets it: the same output, a reason where it cannot be split, Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.dask_cluster import DaskCluster
from podqos.cli.main import main

PODS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 20
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: web, resources: {limits: {memory: 200Mi}}}]
"""
SCENARIO = """
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: fleet}
spec:
  duration: 4m
  manifests: [pods.yaml]
  nodes: [{name: node, count: 5, capacity: {cpu: "4", memory: 2Gi}}]
  workloads: [{workload: web, spread: true, demand: {memory: {random: {low: 1Mi, high: 220Mi, every: 30s}}}}]
"""


@pytest.fixture
def fleet(tmp_path) -> str:
    (tmp_path / "pods.yaml").write_text(PODS)
    path = tmp_path / "fleet.yaml"
    path.write_text(SCENARIO)
    return str(path)


@pytest.mark.parametrize("output", ["jsonl", "csv", "text"])
def test_the_output_is_the_same_to_the_byte(capsysbinary, fleet, output):
    command = ["simulate", fleet, "-o", output, "--node", "node-3"]
    assert main(command) == 0
    expected = capsysbinary.readouterr()
    assert main([*command, "--engine", "processes", "--jobs", "2"]) == 0
    assert capsysbinary.readouterr().out == expected.out  # a slow one tells its progress
    assert b"OOM" in expected.out or b"oom" in expected.out


def test_a_scenario_that_cannot_be_split_runs_and_says_why(capsys, fleet):
    Path(fleet).write_text(SCENARIO.replace("spread: true, ", ""))
    assert main(["simulate", fleet, "-o", "csv", "--jobs", "2"]) == 0
    out, err = capsys.readouterr()
    assert "default/web" in out
    why = "the scheduler places the pods of default/web (`nodes` or `spread` bind them)"
    assert err == f"podqos: ran in one process: {why}\n"


BAD = {
    "an engine": (["--engine", "spark"], "--engine: unknown engine 'spark' (processes or dask=HOST:PORT)"),
    "no jobs": (["--jobs", "0"], "--jobs: '0' is not a number of jobs"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_bad_options_are_one_line_and_exit_code_2(capsys, fleet, options, message):
    assert main(["simulate", fleet, *options]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


def test_ctrl_c_ends_all_workers_and_writes_nothing(fleet, tmp_path):
    """The run would take far longer than the test."""
    Path(fleet).write_text(SCENARIO.replace("4m", "2d"))
    page = tmp_path / "page.svg"
    command = [sys.executable, "-m", "podqos", "simulate", fleet, "--jobs", "2", "-o", "jsonl", "--svg", str(page)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        children: list[str] = []
        while process.poll() is None and len(children) < 2:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert err.endswith("podqos: interrupted\n")
    assert not [pid for pid in children if Path("/proc", pid).exists()]
    assert not page.exists()


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same_journal(capsysbinary, fleet, tmp_path):
    assert main(["simulate", fleet, "-o", "jsonl"]) == 0
    expected = capsysbinary.readouterr()
    cluster = DaskCluster(tmp_path, 2)
    try:
        assert main(["simulate", fleet, "-o", "jsonl", "--engine", f"dask={cluster.address}"]) == 0
        assert capsysbinary.readouterr().out == expected.out  # a slow one tells its progress
    finally:
        cluster.kill(*cluster.workers, cluster.scheduler)
