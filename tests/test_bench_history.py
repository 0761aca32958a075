"""Benchmarks keep what they measure, and two versions can be compared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import podqos

ROOT = Path(__file__).resolve().parents[1]


def bench(script: str, history: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "bench" / script), *arguments],
        env={**os.environ, "BENCH_HISTORY": str(history)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_benchmark_appends_what_it_measured_and_of_what(tmp_path):
    history = tmp_path / "history.jsonl"
    history.write_text("an earlier line\n")
    done = bench("cpu_model.py", history)
    assert done.returncode == 0, done.stderr
    earlier, *lines = history.read_text().splitlines()
    figures = [json.loads(line) for line in lines]
    assert earlier == "an earlier line"
    assert [figure["name"] for figure in figures] == [f"cpu model, {pods} pods" for pods in (110, 500, 5000)]
    assert {(figure["unit"], figure["version"]) for figure in figures} == {("ms", podqos.__version__)}
    assert all(figure["value"] > 0 and figure["commit"] and figure["date"] and figure["machine"] for figure in figures)


def line(name: str, value: float, commit: str, **others: str) -> str:
    figure = {"name": name, "value": value, "unit": "ms", "version": "1", "commit": commit, "date": "d", "machine": "m"}
    return json.dumps(figure | others) + "\n"


HISTORY = [
    line("rank", 8, "aaa1", version="0.1"),
    line("gone", 1, "aaa1", version="0.1"),
    line("start", 1.0, "aaa1", version="0.1", unit="ratio"),
    line("rank", 4, "bbb2"),
    line("rank", 6, "ccc3", version="0.2"),
    line("rank", 2, "ccc3", version="0.2"),
    line("start", 1.5, "ccc3", version="0.2", unit="ratio"),
    line("new", 1, "ccc3", version="0.2"),
]


@pytest.mark.parametrize(
    ("names", "ratios"),
    [
        pytest.param((), {"rank": "0.50"}, id="the last two commits, the best of each"),
        pytest.param(("aaa", "ccc"), {"rank": "0.25", "start": "1.50"}, id="two commits"),
        pytest.param(("0.2", "0.1"), {"rank": "4.00", "start": "0.67"}, id="two versions, the other way round"),
    ],
)
def test_two_commits_are_compared_by_what_both_measured(tmp_path, names, ratios):
    history = tmp_path / "history.jsonl"
    history.write_text("".join(HISTORY))
    done = bench("compare.py", history, *names)
    assert done.returncode == 0, done.stderr
    assert {row.split()[0]: row.split()[-1] for row in done.stdout.splitlines()[1:]} == ratios


def test_between_machines_only_ratios_are_compared(tmp_path):
    history = tmp_path / "history.jsonl"
    history.write_text("".join(each.replace('"m"', '"other"') if "ccc3" in each else each for each in HISTORY))
    done = bench("compare.py", history, "aaa", "ccc")
    assert [row.split()[0] for row in done.stdout.splitlines()[1:]] == ["start"]


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (("aaa", "ddd"), "nothing was measured for 'ddd': aaa1, bbb2, ccc3\n"),
        (("aaa",), "two commits are needed"),
    ],
)
def test_what_was_not_measured_is_named(tmp_path, names, complaint):
    history = tmp_path / "history.jsonl"
    history.write_text("".join(HISTORY))
    done = bench("compare.py", history, *names)
    assert done.returncode != 0
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_history_that_is_said(tmp_path):
    done = bench("compare.py", tmp_path / "none.jsonl")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "compare.py: error: two commits are needed, and 0 are there",
    )
