"""Every defect that a warning or an error is about is reported without options; what good teams write is not.

The seeded defects are the examples of the checks, one file for each (docs/reference/checks.md shows them);
``good_manifests`` is what a shop, its databases, batch jobs, an operator, a monitoring stack and a platform look like
when they are in order.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podqos.advice.checks.catalogue import CHECKS
from podqos.advice.checks.finding import FindingSeverity
from podqos.cli.main import main

GOOD = Path(__file__).parent / "good_manifests"
DEFECTS = [each for each in CHECKS.values() if each.severity is not FindingSeverity.INFO]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """Work in a repository of its own, so that no configuration above it is found."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("each", DEFECTS, ids=lambda each: each.id)
def test_a_seeded_defect_is_reported_without_options(capsys, each):
    options = []
    if each.example.inject:
        Path(".podqos.yaml").write_text(f"inject: [{', '.join(each.example.inject)}]\n")
    Path("defect.yaml").write_text(each.example.replaces or each.example.text)
    if each.example.replaces:
        Path("resized.yaml").write_text(each.example.text)
        options += ["--resize", "resized.yaml"]

    assert main(["check", "defect.yaml", *options]) == 1
    out = capsys.readouterr().out
    assert f"{each.id} {each.name}" in out
    assert str(each.severity) in out


def test_good_manifests_have_at_most_one_finding_for_two_workloads(capsys):
    main(["explain", str(GOOD), "-o", "json"])
    workloads = len(json.loads(capsys.readouterr().out)["items"])
    main(["check", str(GOOD), "-o", "json"])
    findings = [each for each in json.loads(capsys.readouterr().out)["items"] if each["severity"] != "info"]

    assert workloads >= 25
    assert len(findings) <= workloads / 2, [(each["check"], each["name"]) for each in findings]


CHARTS = Path(__file__).parent / "well_kept_charts"
ADDED = [*(f"PQ{number}" for number in range(120, 127)), "PQ414"]


def test_well_kept_charts_have_at_most_one_finding_for_two_workloads_and_none_of_the_latest_checks(capsys):
    """Default values of gatekeeper, kyverno, kubernetes-dashboard, strimzi-kafka-operator and coredns."""
    main(["explain", str(CHARTS), "-o", "json"])
    workloads = len(json.loads(capsys.readouterr().out)["items"])
    main(["check", str(CHARTS), "-o", "json"])
    findings = [each for each in json.loads(capsys.readouterr().out)["items"] if each["severity"] != "info"]

    assert workloads >= 18
    assert len(findings) <= workloads / 2, [(each["check"], each["name"]) for each in findings]
    assert not [each["name"] for each in findings if each["check"] in ADDED]


def test_one_class_among_many_workloads_makes_none_of_them_lack_one(capsys):
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {{name: p{}}}\nspec:\n  {}\n  containers:\n"
    resources = "    - {name: c, image: i, resources: {requests: {cpu: 1, memory: 1Gi}, limits: {memory: 1Gi}}}\n"
    priority = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: gold}\nvalue: 1000\n"
    texts = [pod.format(number, "" if number else "priorityClassName: gold") + resources for number in range(55)]
    Path("all.yaml").write_text("---\n".join([priority, *texts]))

    assert main(["check", "all.yaml"]) == 0
    assert "PQ301" not in capsys.readouterr().out
