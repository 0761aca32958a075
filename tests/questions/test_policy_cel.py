"""``podqos policy cel`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from podqos.cli.main import main
from podqos.reading.shipped_scenarios import scenario_dir

ROOT = Path(__file__).parents[2]
EXAMPLE = scenario_dir("policy") / "policy.yaml"
RULES = """\
rules:
  - name: keep
    match: {kinds: [Pod, Rollout]}
    require: {minClass: Guaranteed}
    action: Deny
"""
POLICY = "apiVersion: podqos.dev/v1alpha1\nkind: Policy\nmetadata: {name: shop}\nspec:\n  " + RULES


def cel(capsys, *words) -> tuple[int, str, str]:
    code = main(["policy", "cel", *map(str, words)])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text(POLICY)
    return "policy.yaml"


def test_the_example_is_printed_as_yaml_and_as_the_same_objects_in_a_list(capsys):
    code, text, _ = cel(capsys, "-f", EXAMPLE, "--fill-limits")
    assert code == 0
    code, listed, _ = cel(capsys, "-f", EXAMPLE, "--fill-limits", "-o", "json")
    assert code == 0
    found = json.loads(listed)
    assert (found["apiVersion"], found["kind"]) == ("v1", "List")
    assert [each for each in yaml.safe_load_all(text) if each] == found["items"]
    kinds = {each["kind"] for each in found["items"]}
    assert {"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"} <= kinds
    assert all(line.startswith("# ") for line in text.partition("---")[0].splitlines())


def test_what_cel_cannot_say_is_said(capsys, shop):
    Path(shop).write_text(POLICY + "  budgets:\n  - {name: memory, resource: memory, limits: 1.2}\n")
    code, text, said = cel(capsys, "-f", shop)
    assert code == 0
    for words in ('checks budget "memory"', "objects of kind Rollout: only Kubernetes' own pods"):
        assert words in said
        assert words in text.replace("\n#   ", " ")
    _, listed, _ = cel(capsys, "-f", shop, "-o", "json")
    left = json.loads(listed)["notExpressed"]
    assert {each["what"]: each["of"] for each in left} == {"Budget": ["memory"], "Kind": ["keep"]}
    assert all(each["message"] in said for each in left)


def test_comments_say_which_rule_an_object_is_of_and_what_becomes_of_violations(capsys):
    _, text, _ = cel(capsys, "-f", EXAMPLE)
    assert "# Rule stated-class: pods that violate it are rejected.\n" in text
    assert "# Rule stated-class: workloads whose pods would violate it are warned about.\n" in text
    _, text, _ = cel(capsys, "-f", EXAMPLE, "--workloads", "Deny")
    assert "# Rule stated-class: workloads whose pods would violate it are rejected.\n" in text


def test_the_policy_of_the_configuration_is_printed_too(capsys, shop):
    Path(shop).unlink()
    Path(".podqos.yaml").write_text("policy:\n  " + RULES)
    Path("pod.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    code, text, _ = cel(capsys, "-f", ".")
    assert code == 0
    assert "Rule keep: pods that violate it are rejected" in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--kubernetes-version", "1.29"], "Kubernetes 1.29 has no ValidatingAdmissionPolicy"),
        (["--fill-limits", "cpu=lots"], "--fill-limits"),
        (["--fill-limits", "cpu=1"], "missing memory"),
        (["--fill-limits", "cpu=1,memory=-1Gi"], "--fill-limits"),
        (["--fill-limits", "cpu=1,memory=1Gi,storage=1"], "storage"),
        (["--workloads", "Refuse"], "Refuse"),
    ],
)
def test_an_option_that_makes_no_sense_is_one_message(capsys, shop, words, says):
    try:
        code, out, said = cel(capsys, "-f", shop, *words)
    except SystemExit as ended:
        out, said = capsys.readouterr()
        code = ended.code
    assert code == 2
    assert out == ""
    assert says in said
    assert len(said.strip().splitlines()) <= 2


def test_a_policy_that_is_wrong_is_reported_with_its_line_and_nothing_is_printed(capsys, shop):
    Path(shop).write_text(POLICY.replace("minClass", "minClas"))
    code, out, said = cel(capsys, "-f", shop)
    assert (code, out) == (2, "")
    assert "policy.yaml:8:" in said
    assert "minClas" in said


def test_files_without_a_policy_are_refused(capsys, shop):
    Path(shop).write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    code, out, said = cel(capsys, "-f", shop)
    assert (code, out) == (2, "")
    assert "no policy" in said
