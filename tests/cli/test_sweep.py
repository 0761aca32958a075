"""``podqos sweep`` as a user meets it: values, seeds, resuming, engines."""

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
from podqos.cli.main import main
from podqos.errors import HostError
from podqos.library.sweeping import sweep

ROOT = Path(__file__).parents[2]
RACE = str(ROOT / "scenarios" / "race.yaml")
PHASES = ["--vary", "phase=0s,2s"]


def _sweep(capsys, *options: str) -> tuple[int, str, str]:
    code = main(["sweep", RACE, "--jobs", "1", *options])
    out, err = capsys.readouterr()
    return code, out, err


def _rows(out: str) -> dict[tuple[str, str], dict[str, str]]:
    rows = list(csv.DictReader(io.StringIO(out)))
    first = next(iter(rows[0]))
    return {(row[first], row["workload"]): row for row in rows}


def test_who_goes_depends_on_where_the_kubelet_is_in_its_loop(capsys):
    """A look at 2 s comes between the kernel's two kills, and the second is an eviction instead."""
    code, out, _ = _sweep(capsys, *PHASES, "-o", "csv")
    rows = _rows(out)
    assert code == 0
    pipeline = "batch/analytics-pipeline"
    assert (rows["0s", pipeline]["oom_kills_mean"], rows["0s", pipeline]["evictions_mean"]) == ("1.0", "0.0")
    assert (rows["2s", pipeline]["oom_kills_mean"], rows["2s", pipeline]["evictions_mean"]) == ("0.0", "1.0")
    assert rows["0s", "production/article-service"]["survived"] == "1.0"


def test_a_pod_that_never_ran_has_not_survived(capsys):
    _, out, _ = _sweep(capsys, "--vary", "kubelet.evictionHard.memory.available=2Gi", "-o", "csv")
    row = _rows(out)["2Gi", "batch/analytics-pipeline"]
    assert (row["survived"], row["never_ran_mean"]) == ("0.0", "1.0")


def test_the_table_says_who_acts_first(capsys):
    _, out, _ = _sweep(capsys, *PHASES)
    assert "FIRST VICTIM" in out
    assert "monitoring/log-collector 100 %" in out


def test_seeds_are_runs_of_their_own(capsys):
    _, out, _ = _sweep(capsys, *PHASES, "--seeds", "3", "-o", "json")
    report = json.loads(out)
    assert (report["runs"], [each["runs"] for each in report["combinations"]]) == (6, [3, 3])


def test_finished_runs_are_kept_and_not_run_again(capsys, tmp_path, monkeypatch):
    results = tmp_path / "results.jsonl"
    options = [*PHASES, "--results", str(results), "-o", "csv"]
    _, first, _ = _sweep(capsys, *options)
    kept = results.read_bytes()
    assert len(kept.splitlines()) == 2
    monkeypatch.setattr("podqos.library.sweeping._run", None)  # nothing is left to run
    assert _sweep(capsys, *options)[1] == first
    assert results.read_bytes() == kept


def test_a_line_that_was_cut_off_is_run_again(capsys, tmp_path):
    results = tmp_path / "results.jsonl"
    options = [*PHASES, "--results", str(results), "-o", "csv"]
    _, first, _ = _sweep(capsys, *options)
    kept = results.read_bytes()
    results.write_bytes(kept[:-40])
    code, again, err = _sweep(capsys, *options)
    assert (code, again) == (0, first)
    assert "its last line is incomplete" in err
    assert sorted(results.read_bytes().splitlines()) == sorted(kept.splitlines())


BAD = {
    "no scenario": (["sweep"], "nothing to sweep"),
    "no such parameter": (["sweep", RACE, "--vary", "speed=1"], "unknown parameter speed"),
    "twice": (["sweep", RACE, "--vary", "phase=0s", "--vary", "phase=1s"], "phase is varied twice"),
    "no seeds": (["sweep", RACE, "--seeds", "0"], "'0' is not a number of seeds"),
    "no such engine": (["sweep", RACE, "--engine", "spark=x"], "unknown engine 'spark=x'"),
    "no jobs": (["sweep", RACE, "--jobs", "0"], "'0' is not a number of jobs"),
}


@pytest.mark.parametrize(("command", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_exit_code_2(capsys, command, message):
    assert main(command) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


@pytest.mark.parametrize(
    "text",
    ["{", '{"key":"', '{"key":"notes', '{"key":"notes","values":1}', '{"key":"' + "0" * 32 + '","mine":true}', "a\nb"],
)
def test_a_file_that_is_not_its_own_is_refused_and_left_as_it_is(capsys, tmp_path, text):
    results = tmp_path / "mine.json"
    results.write_text(text)
    code, _, err = _sweep(capsys, *PHASES, "--results", str(results))
    assert (code, results.read_text()) == (2, text)
    assert "not a result of a sweep" in err


def test_a_last_line_without_its_end_is_run_again(capsys, tmp_path):
    results = tmp_path / "results.jsonl"
    options = [*PHASES, "--results", str(results), "-o", "csv"]
    first = _sweep(capsys, *options)
    kept = results.read_bytes()
    results.write_bytes(kept.removesuffix(b"\n"))
    assert _sweep(capsys, *options)[:2] == first[:2]
    assert sorted(results.read_bytes().splitlines()) == sorted(kept.splitlines())


def test_values_that_are_written_differently_are_told_apart_though_they_mean_the_same(capsys, tmp_path):
    results = tmp_path / "results.jsonl"
    _, out, _ = _sweep(capsys, "--vary", "phase=0s,0ms,2s", "-o", "json", "--results", str(results))
    found = [(each["values"], each["runs"]) for each in json.loads(out)["combinations"]]
    assert found == [(["0s"], 1), (["0ms"], 1), (["2s"], 1)]
    assert len(results.read_text().splitlines()) == 2, "what means the same is run once"


def test_that_seeds_change_nothing_is_said(capsys):
    assert "all 2 seeds gave the same results; one is enough\n" in _sweep(capsys, *PHASES, "--seeds", "2")[2]
    assert "seeds" not in _sweep(capsys, *PHASES)[2]


def test_a_file_of_something_else_is_no_results_file(capsys, tmp_path):
    results = tmp_path / "notes.txt"
    results.write_text("milk\n")
    code, _, err = _sweep(capsys, *PHASES, "--results", str(results))
    assert code == 2
    assert f"{results}:1: not a result of a sweep" in err
    assert results.read_text() == "milk\n"


@pytest.mark.parametrize("text", ["milk", '{"name": "a notebook"'])
def test_a_file_of_something_else_without_a_last_newline_is_left_as_it_is(capsys, tmp_path, text):
    results = tmp_path / "notes.txt"
    results.write_text(text)
    code, _, err = _sweep(capsys, *PHASES, "--results", str(results))
    assert (code, results.read_text()) == (2, text)
    assert f"{results}:1: not a result of a sweep" in err


def test_no_scheduler_at_an_address_is_the_machines_fault(capsys, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("podqos.library.engines.dask_cluster._ANSWER_SECONDS", 0.5)
    assert main(["sweep", RACE, "--engine", "dask=127.0.0.1:9"]) == 3
    assert "no Dask scheduler answers at 127.0.0.1:9" in capsys.readouterr().err


def test_the_published_schema_is_that_of_the_output(capsys):
    assert main(["sweep", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((ROOT / "docs/schema/sweep.json").read_text())


# ---- engines ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_cores_of_this_machine_give_the_same_answer(capsys):
    _, *expected = _sweep(capsys, *PHASES, "--seeds", "3", "-o", "csv")
    command = [sys.executable, "-m", "podqos", "sweep", RACE, *PHASES, "--seeds", "3", "-o", "csv", "--jobs", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert [done.stdout, done.stderr] == expected


@pytest.mark.slow
def test_a_dask_cluster_of_two_worker_processes_gives_the_same_answer(capsys):
    """The cluster is a real one: a scheduler and two workers, each a process of its own, on loopback."""
    distributed = pytest.importorskip("distributed")
    _, expected, _ = _sweep(capsys, *PHASES, "--seeds", "4", "-o", "csv")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        assert len({worker.pid for worker in cluster.workers.values()}) == 2
        command = [sys.executable, "-m", "podqos", "sweep", RACE, *PHASES, "--seeds", "4", "-o", "csv"]
        done = subprocess.run(
            [*command, "--engine", f"dask={cluster.scheduler_address}"],
            capture_output=True,
            text=True,
            check=True,
            timeout=180,
        )
    assert done.stdout == expected


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupted_sweep_keeps_what_is_done_and_goes_on_from_there(capsys, tmp_path, jobs):
    """The plan is far too long to be through when the interruption comes; a shorter one asks for what was kept."""
    results = tmp_path / "results.jsonl"
    plan = [*PHASES, "--results", str(results), "-o", "csv", "--seeds"]
    command = [sys.executable, "-m", "podqos", "sweep", RACE, "--jobs", jobs, *plan, "50000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and (not results.exists() or results.read_bytes().count(b"\n") < 3):
            time.sleep(0.02)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    kept = results.read_bytes()
    assert (process.returncode, out) == (130, "")
    assert kept.endswith(b"\n"), "no line is half written"
    before = kept.splitlines()
    said = f"{results} keeps the {len(before)} finished runs; the same command continues from there\n"
    assert err == said + "podqos: interrupted\n"
    assert len(children) == (2 if jobs == "2" else 0)
    assert not [pid for pid in children if Path("/proc", pid).exists()], "its workers are gone"
    code, again, _ = _sweep(capsys, *plan, "4")
    after = results.read_bytes().splitlines()
    assert (code, after[: len(before)]) == (0, before)
    keys = [json.loads(line)["key"] for line in after]
    assert len(keys) == len(set(keys)), "nothing is run twice"
    assert again == _sweep(capsys, *PHASES, "-o", "csv", "--seeds", "4")[1]


def _children() -> set[int]:
    return set(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))


def test_a_worker_that_is_killed_ends_the_sweep_with_an_error_and_kept_results(capsys, tmp_path):
    results = tmp_path / "results.jsonl"
    others = _children()
    killed: set[int] = set()

    def kill(_done: int, _total: int) -> None:
        for pid in _children() - others - killed:
            killed.add(pid)
            os.kill(pid, signal.SIGKILL)

    phases = [f"{number}ms" for number in range(0, 8000, 20)]  # too many to be through before the first is heard of
    with pytest.raises(HostError, match="a worker process died before finishing"):
        sweep(RACE, [f"phase={','.join(phases)}"], results=str(results), jobs=2, progress=kill)
    assert len(killed) == 2
    assert 1 <= len(results.read_bytes().splitlines()) < len(phases)


@pytest.fixture
def dask_cluster(tmp_path):
    cluster = DaskCluster(tmp_path, 2)
    yield cluster
    cluster.kill(*cluster.workers, cluster.scheduler)


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["workers", "scheduler"])
def test_the_loss_of_a_dask_cluster_is_an_error_and_what_is_done_is_kept(
    capsys, tmp_path, monkeypatch, dask_cluster, lost
):
    monkeypatch.setattr("podqos.library.engines.dask_cluster.NO_WORKERS_SECONDS", 0.0)
    results = tmp_path / "results.jsonl"
    vary = ["phase=0s,1s,2s,3s,4s", "policy=kubelet,qos-tiers,qos-usage"]
    said: list[str] = []

    def lose(done: int, _total: int) -> None:
        if done == 3:  # at most as many are under way as keep two threads busy
            dask_cluster.kill(*(dask_cluster.workers if lost == "workers" else [dask_cluster.scheduler]))

    message = {"workers": "it has no workers left", "scheduler": "the scheduler no longer answers"}[lost]
    with pytest.raises(HostError, match=f"the Dask cluster at {dask_cluster.address}: {message}"):
        sweep(
            RACE,
            vary,
            results=str(results),
            engine=f"dask={dask_cluster.address}",
            progress=lose,
            say=said.append,
        )
    kept = results.read_bytes().splitlines()
    assert 3 <= len(kept) < 15
    assert said == [f"{results} keeps the {len(kept)} finished runs; the same command continues from there"]
    again = sweep(RACE, vary, results=str(results), jobs=1)
    assert results.read_bytes().splitlines()[: len(kept)] == kept
    assert again == sweep(RACE, vary, jobs=1)
