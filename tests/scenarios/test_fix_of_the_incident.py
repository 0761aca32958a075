"""What docs/scenarios/accidental-burstable-fixed.md says the two lines rest on and cost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from podqos.cli.main import main

SCENARIOS = Path(__file__).parents[2] / "scenarios"


@pytest.mark.parametrize(
    ("memory", "expected"),
    [pytest.param("128Mi", (7, 0), id="the two lines"), pytest.param("2Gi", (0, 1), id="the peak and a third more")],
)
def test_under_the_demand_of_the_incident_only_a_limit_above_the_peak_is_a_fix(
    capsys, tmp_path, monkeypatch, memory, expected
):
    for name in ("content-platform", "accidental-burstable"):
        shutil.copytree(SCENARIOS / name, tmp_path / name)
    fixed = tmp_path / "content-platform/accidental/article-service-fixed.yaml"
    fixed.write_text(fixed.read_text().replace("memory: 128Mi", f"memory: {memory}"))
    calm, demand = "envoy-sidecar: { memory: 96Mi, cpu: 50m }", "envoy-sidecar: { memory: 1536Mi, cpu: 100m }"
    assert demand in (SCENARIOS / "accidental-burstable.yaml").read_text()
    text = (SCENARIOS / "accidental-burstable-fixed.yaml").read_text()
    assert calm in text
    (tmp_path / "same.yaml").write_text(text.replace(calm, demand))
    monkeypatch.chdir(tmp_path)
    main(["simulate", "same.yaml", "-o", "json"])
    summary = json.loads(capsys.readouterr().out)["summary"]
    assert (summary["oomKills"], summary["neverRan"]) == expected
