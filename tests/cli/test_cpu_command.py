"""``podqos cpu`` as a user meets it."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pytest
import yaml

from podqos.cli.main import main

SCENARIO = Path(__file__).parents[2] / "scenarios" / "content-platform" / "platform"


def cpu(capsys, *arguments: object) -> tuple[int, str, str]:
    """Run the command and return exit code, standard output and standard error."""
    code = main(["cpu", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def deployment(name: str, request: str, limit: str = "", replicas: int = 1, memory: str = "") -> str:
    """Write a Deployment of one container."""
    limits = {key: value for key, value in (("cpu", limit), ("memory", memory)) if value}
    requests = {key: value for key, value in (("cpu", request), ("memory", memory)) if value}
    container = {"name": "c", "image": "i", "resources": {"requests": requests, "limits": limits}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return yaml.safe_dump({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})


USER_FACING = [deployment(name, "2", "2", memory="1Gi") for name in ("article-service", "search-api", "cdn-origin")]
OVERCOMMITTED = [*USER_FACING, deployment("analytics", "500m", "4", 4), deployment("indexer", "1", "4", 4)]
BUDGETED = [*USER_FACING, deployment("analytics", "1", "2", 4), deployment("indexer", "1", "2", 4)]


def shares(capsys, tmp_path: Path, documents: list[str], *options: object) -> dict[str, dict]:
    """Return the pods of the answer by name."""
    (tmp_path / "all.yaml").write_text("---\n".join(documents))
    out = cpu(capsys, "-f", tmp_path / "all.yaml", "-o", "json", *options)[1]
    return {pod["pod"].partition("/")[2]: pod for pod in json.loads(out)["pods"]}


def test_500m_and_250m_are_two_to_one(capsys, tmp_path):
    got = shares(capsys, tmp_path, [deployment("a", "500m"), deployment("b", "250m")], "--cores", 3)
    assert (got["a-0"]["grantedMilli"], got["b-0"]["grantedMilli"]) == (2000, 1000)


def test_the_cores_of_this_machine_are_an_assumption(capsys, tmp_path):
    (tmp_path / "all.yaml").write_text(deployment("a", "500m"))
    assumed = json.loads(cpu(capsys, "-f", tmp_path, "-o", "json")[1])["assumptions"]
    assert assumed[0] == {"what": "cores", "value": f"{os.cpu_count()}, all of this machine", "stateWith": "--cores"}
    stated = json.loads(cpu(capsys, "-f", tmp_path, "-o", "json", "--cores", 3)[1])["assumptions"]
    assert stated == assumed[1:]


def test_32_cores_wanted_are_severe_for_everybody_who_bursts(capsys, tmp_path):
    got = shares(capsys, tmp_path, OVERCOMMITTED, "--cores", 14, "--cgroup", "v1")
    assert [got[name]["deniedPercent"] for name in ("article-service-0", "analytics-0", "indexer-0")] == pytest.approx(
        [0, 83.3, 66.7], abs=0.1
    )


def test_16_cores_wanted_are_half_for_everybody_who_bursts(capsys, tmp_path):
    got = shares(capsys, tmp_path, BUDGETED, "--cores", 14)
    assert {pod["deniedPercent"] for pod in got.values()} == {0, 50}
    assert got["cdn-origin-0"]["bound"] is None
    assert got["indexer-3"]["bound"] == "contention"


def test_table_has_a_line_per_pod_and_one_for_all(capsys):
    code, out, _ = cpu(capsys, "-f", SCENARIO, "--cores", 14)
    assert code == 0
    lines = out.splitlines()
    assert len(lines) == 1 + 10 + 2
    assert any(
        line.split()[:2] == ["production/article-service-0", "Guaranteed"] and line.split()[-1] == "–" for line in lines
    )
    assert (
        lines[0] == "All pods together want 44.00 cores; 14 are available, 14.00 are used. A CPU shortage kills no pod."
    )


def test_csv_and_yaml(capsys):
    rows = list(csv.DictReader(io.StringIO(cpu(capsys, "-f", SCENARIO, "--cores", 14, "-o", "csv")[1])))
    whole = yaml.safe_load(cpu(capsys, "-f", SCENARIO, "--cores", 14, "-o", "yaml")[1])
    assert [row["pod"] for row in rows] == [pod["pod"] for pod in whole["pods"]]


@pytest.mark.parametrize("cores", ["none", "0", "-1"])
def test_a_number_of_cores_is_an_amount_above_zero(capsys, cores):
    code, out, err = cpu(capsys, "-f", SCENARIO, f"--cores={cores}")
    assert (code, out) == (2, "")
    assert err.startswith(f"podqos: error: --cores: '{cores}'")
    assert "for example 16 or 500m" in err


def test_parts_of_cores_are_divided_too(capsys):
    whole = json.loads(cpu(capsys, "-f", SCENARIO, "--cores", "13800m", "-o", "json")[1])
    assert (whole["cores"], whole["grantedMilli"]) == (13.8, 13800)
    assert "; 13.8 are available, 13.80 are used." in cpu(capsys, "-f", SCENARIO, "--cores", 13.8)[1]
    assert json.loads(cpu(capsys, "-f", SCENARIO, "--cores", 14, "-o", "json")[1])["cores"] == 14


def test_no_pods_are_bad_input(capsys, tmp_path):
    (tmp_path / "empty.yaml").write_text("apiVersion: v1\nkind: Service\nmetadata: {name: s}\n")
    assert cpu(capsys, "-f", tmp_path, "--cores", 2)[0] == 2
