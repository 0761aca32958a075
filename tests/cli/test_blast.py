"""``podqos blast`` as a user meets it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from podqos.cli.main import main
from podqos.report.simulation.html import SLOT

ROOT = Path(__file__).parents[2]
PLATFORM = ROOT / "scenarios" / "content-platform"
NODE = ["-f", str(PLATFORM / "platform"), "--usage", str(PLATFORM / "usage.csv"), "--node-memory", "64Gi"]
RACE = str(ROOT / "scenarios" / "race.yaml")


def _blast(capsys, *options: str) -> tuple[int, str, str]:
    code = main(["blast", *options])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_pipeline_of_the_race_takes_the_log_collector_with_it(capsys):
    code, out, _ = _blast(capsys, RACE)
    assert code == 0
    assert "batch/analytics-pipeline-0" in out
    assert "monitoring/log-collector-worker-1" in out
    assert "8 of 9 pods affect no other pod." in out


def test_where_nobody_harms_others_it_says_so(capsys):
    code, out, _ = _blast(capsys, *NODE)
    assert code == 0
    assert "no pod takes others down" in out


def test_json_lists_the_most_dangerous_first_with_who_dies_when_and_by_whom(capsys):
    report = json.loads(_blast(capsys, RACE, "-o", "json")[1])
    assert (report["nodes"], report["pods"], len(report["leaks"])) == (1, 9, 18)
    worst = report["leaks"][0]
    assert worst["pod"] == "batch/analytics-pipeline-0"
    first = worst["others"][0]
    assert (first["pod"], first["by"], first["cause"]) == ("monitoring/log-collector-worker-1", "kernel", "node")
    assert worst["end"]["afterSeconds"] > first["afterSeconds"]
    assert not any(leak["takesCritical"] for leak in report["leaks"])


def test_csv_has_a_line_per_pod_and_rate(capsys):
    rows = list(csv.DictReader(io.StringIO(_blast(capsys, RACE, "-o", "csv", "--slow", "1Mi/s")[1])))
    assert len(rows) == 18
    assert {row["rate_bytes_per_second"] for row in rows} == {str(1 << 20), str(1 << 30)}


def test_the_page_is_that_of_runs_with_the_leaks_in_it(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path)
    (tmp_path / "viewer.html").write_text(f"<html>{SLOT}</html>")
    page = tmp_path / "blast.html"
    _, out, _ = _blast(capsys, RACE, "--html", str(page), "-o", "json")
    start, end = f"<html>{SLOT}</html>".split("null")
    data = page.read_text().removeprefix(start).removesuffix(end)
    assert json.loads(data) == json.loads(out)


def test_a_page_that_is_not_built_is_said_before_the_leaks_are_simulated(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path)
    monkeypatch.setattr("podqos.cli.commands.blast.blast", None)
    code, out, err = _blast(capsys, RACE, "--html", str(tmp_path / "blast.html"))
    assert (code, out) == (3, "")
    assert "make viewer" in err


def test_the_published_schema_is_that_of_the_output(capsys):
    assert main(["blast", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((ROOT / "docs/schema/blast.json").read_text())


BAD = {
    "nothing": ([], "no pods given"),
    "both": ([RACE, "--usage", "x.csv"], "cannot be combined"),
    "no rate": ([RACE, "--fast", "quick"], "--fast: 'quick'"),
    "no such scenario": (["nowhere.yaml"], "nowhere.yaml"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_told_and_exit_code_2(capsys, options, message):
    code, out, err = _blast(capsys, *options)
    assert (code, out) == (2, "")
    assert message in err
