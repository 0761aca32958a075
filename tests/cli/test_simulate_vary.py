"""``podqos simulate --vary`` as a user meets it: values, seeds, engines."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.dask_cluster import DaskCluster
from podqos.api import sweep
from podqos.cli.main import main
from podqos.errors import HostError

ROOT = Path(__file__).parents[2]
RACE = str(ROOT / "scenarios" / "race.yaml")
PHASES = ["--vary", "phase=0s,2s"]


def _varied(capsys, *options: str) -> tuple[int, str, str]:
    code = main(["simulate", RACE, *options])
    out, err = capsys.readouterr()
    return code, out, err


def _rows(out: str) -> dict[tuple[str, str], dict[str, str]]:
    rows = list(csv.DictReader(io.StringIO(out)))
    first = next(iter(rows[0]))
    return {(row[first], row["workload"]): row for row in rows}


def test_who_goes_depends_on_where_the_kubelet_is_in_its_loop(capsys):
    """A look at 2 s comes between the kernel's two kills, and the second is an eviction instead."""
    code, out, _ = _varied(capsys, *PHASES, "-o", "csv")
    rows = _rows(out)
    assert code == 0
    pipeline = "batch/analytics-pipeline"
    assert (rows["0s", pipeline]["oom_kills_mean"], rows["0s", pipeline]["evictions_mean"]) == ("1.0", "0.0")
    assert (rows["2s", pipeline]["oom_kills_mean"], rows["2s", pipeline]["evictions_mean"]) == ("0.0", "1.0")
    assert rows["0s", "production/article-service"]["survived"] == "1.0"


def test_a_pod_that_never_ran_has_not_survived(capsys):
    _, out, _ = _varied(capsys, "--vary", "kubelet.evictionHard.memory.available=2Gi", "-o", "csv")
    row = _rows(out)["2Gi", "batch/analytics-pipeline"]
    assert (row["survived"], row["never_ran_mean"]) == ("0.0", "1.0")


def test_the_table_says_who_acts_first(capsys):
    _, out, _ = _varied(capsys, *PHASES)
    assert "FIRST VICTIM" in out
    assert "monitoring/log-collector 100 %" in out


def test_seeds_are_runs_of_their_own(capsys):
    _, out, _ = _varied(capsys, *PHASES, "--seeds", "3", "-o", "json")
    report = json.loads(out)
    assert (report["runs"], [each["runs"] for each in report["combinations"]]) == (6, [3, 3])


BAD = {
    "no scenario": (["simulate", "--vary", "phase=0s"], "nothing to simulate"),
    "no such parameter": (["simulate", RACE, "--vary", "speed=1"], "unknown parameter speed"),
    "twice": (["simulate", RACE, "--vary", "phase=0s", "--vary", "phase=1s"], "phase is varied twice"),
    "no seeds": (["simulate", RACE, "--seeds", "0"], "'0' is not a number of seeds"),
    "the journal": (["simulate", RACE, *PHASES, "-o", "jsonl"], "the journal is that of one run"),
    "a page": (["simulate", RACE, *PHASES, "--html", "page.html"], "--html and --vary cannot be combined"),
    "a seed": (["simulate", RACE, *PHASES, "--seed", "0"], "--seed and --vary cannot be combined"),
    "an end": (["simulate", RACE, *PHASES, "--until", "9s"], "--until and --vary cannot be combined"),
    "a cluster": (["simulate", "--from", "cluster", *PHASES], "--from and --vary cannot be combined"),
    "results": (["simulate", RACE, *PHASES, "--results", "x"], "finished runs are not kept"),
    "sweep": (["sweep", RACE, *PHASES], "did you mean `podqos simulate --vary`?"),
}


@pytest.mark.parametrize(("command", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_exit_code_2(capsys, command, message):
    assert main(command) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


def test_that_seeds_change_nothing_is_said(capsys):
    assert "all 2 seeds gave the same results; one is enough\n" in _varied(capsys, *PHASES, "--seeds", "2")[2]
    assert "seeds" not in _varied(capsys, *PHASES)[2]


def _children(pid: int) -> set[int]:
    """Return the workers of a process, without Python's own tracker of their semaphores."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(child) for child in children if b"resource_tracker" not in Path(f"/proc/{child}/cmdline").read_bytes()}


def test_ctrl_c_ends_all_runs_and_says_so_in_one_line():
    """The plan is far too long to be through when the interruption comes; like a terminal's, it goes to all."""
    command = [sys.executable, "-m", "podqos", "simulate", RACE, *PHASES, "--seeds", "50000"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        while process.poll() is None and len(_children(process.pid)) < 2:
            time.sleep(0.02)
        children = _children(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (130, "", "podqos: interrupted\n")
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()], "its workers are gone"


@pytest.mark.parametrize("times", [1, 2])
def test_what_a_killed_worker_was_doing_is_done_again_once(monkeypatch, times):
    # Beside a thread that an earlier test left, workers would be started afresh, with one more child to track them.
    monkeypatch.setattr("podqos.parallel.forks", lambda: True)
    others = _children(os.getpid())
    killed: list[int] = []

    def kill(_done: int, _total: int) -> None:
        if len(killed) < times:
            killed.append(min(_children(os.getpid()) - others))
            os.kill(killed[-1], signal.SIGKILL)

    vary = [f"phase={','.join(f'{number}ms' for number in range(0, 8000, 100))}"]
    if times == 1:
        assert sweep(RACE, vary, jobs=2, progress=kill) == sweep(RACE, vary, jobs=1)
    else:
        with pytest.raises(HostError, match="a worker process died before finishing"):
            sweep(RACE, vary, jobs=2, progress=kill)
    assert len(killed) == times
    assert _children(os.getpid()) == others


@pytest.fixture
def dask_cluster(tmp_path):
    cluster = DaskCluster(tmp_path, 2)
    yield cluster
    cluster.kill(*cluster.workers, cluster.scheduler)


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["workers", "scheduler"])
def test_the_loss_of_a_dask_cluster_is_an_error(monkeypatch, dask_cluster, lost):
    monkeypatch.setattr("podqos.parallel.NO_WORKERS_SECONDS", 0.0)

    def lose(done: int, _total: int) -> None:
        if done == 3:  # at most as many are under way as keep two threads busy
            dask_cluster.kill(*(dask_cluster.workers if lost == "workers" else [dask_cluster.scheduler]))

    vary = ["phase=0s,1s,2s,3s,4s", "policy=kubelet,qos-tiers,qos-usage"]
    message = {"workers": "it has no workers left", "scheduler": "the scheduler no longer answers"}[lost]
    with pytest.raises(HostError, match=f"the Dask cluster at {dask_cluster.address}: {message}"):
        sweep(RACE, vary, engine=f"dask={dask_cluster.address}", progress=lose)
