"""``podqos sweep`` as a user meets it: values, seeds, resuming, engines."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from podqos.cli.main import main

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
    "no such parameter": (["sweep", RACE, "--vary", "speed=1"], "there is no parameter speed"),
    "twice": (["sweep", RACE, "--vary", "phase=0s", "--vary", "phase=1s"], "phase is varied twice"),
    "no seeds": (["sweep", RACE, "--seeds", "0"], "'0' is not a number of seeds"),
    "no such engine": (["sweep", RACE, "--engine", "spark=x"], "unknown engine 'spark=x'"),
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
    assert "all 2 seeds gave the same results; one would do\n" in _sweep(capsys, *PHASES, "--seeds", "2")[2]
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


def test_no_scheduler_at_an_address_is_the_machines_fault(capsys):
    pytest.importorskip("distributed")
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


@pytest.mark.slow
def test_an_interrupted_sweep_goes_on_where_it_was(capsys, tmp_path):
    results = tmp_path / "results.jsonl"
    options = ["--vary", "phase=0s,1s,2s,3s", "--seeds", "50", "-o", "csv"]
    command = [sys.executable, "-m", "podqos", "sweep", RACE, *options, "--results", str(results), "--jobs", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not results.exists() or results.read_bytes().count(b"\n") < 5):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert err == "podqos: interrupted\n"
    before = results.read_bytes().splitlines()
    assert 5 <= len(before) < 200
    code, again, _ = _sweep(capsys, *options, "--results", str(results))
    assert code == 0
    assert results.read_bytes().splitlines()[: len(before)] == before
    assert again == _sweep(capsys, *options)[1]
