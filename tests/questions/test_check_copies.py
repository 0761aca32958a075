"""``podqos check`` over a repository: copies of a workload, tests and examples, what others wrote."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from podqos.cli.main import main
from podqos.objects.purposes import Purpose, purpose
from questions.sarif_rules import problems as sarif_problems

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: web, image: "web:1"}
"""
SIDECAR = WEB.replace(
    '- {name: web, image: "web:1"}\n',
    '- {name: web, image: "web:1", resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}}}\n'
    "        - {name: proxy, image: proxy, resources: {requests: {cpu: 1, memory: 1Gi}, limits: {memory: 1Gi}}}\n",
)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(**texts: str) -> None:
    """Write files; ``_`` in a name stands for a slash."""
    for name, text in texts.items():
        path = Path(f"{name.replace('_', '/')}.yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def checked(capsys, *arguments):
    """Return the report of the current directory."""
    main(["check", "-o", "json", *(arguments or ["."])])
    return json.loads(capsys.readouterr().out)


def of(report, check):
    """Return its findings of one check."""
    return [item for item in report["items"] if item["check"] == check]


def test_a_workload_that_is_in_two_files_is_reported_once_and_names_the_other(capsys):
    write(base_web=WEB, dist_install=f"# rendered\n{WEB}")
    report = checked(capsys)

    (item,) = of(report, "PQ102")
    assert (item["source"], item["line"]) == ("./base/web.yaml", 11)
    assert [(also["source"], also["line"], also["name"]) for also in item["also"]] == [
        ("./dist/install.yaml", 12, "web")
    ]
    assert (report["summary"]["objects"], report["summary"]["copies"], report["summary"]["files"]) == (1, 1, 2)
    assert report["summary"]["warnings"] == len([item for item in report["items"] if item["severity"] == "warning"])


def test_another_release_of_the_image_is_a_copy(capsys):
    write(v1_web=WEB, v2_web=WEB.replace("web:1", "web:2"))

    assert len(of(checked(capsys), "PQ102")) == 1


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(WEB.replace("replicas: 2", "replicas: 3"), id="replicas"),
        pytest.param(WEB.replace("namespace: shop", "namespace: staging"), id="namespace"),
        pytest.param(WEB.replace("name: web, image", "name: server, image"), id="containers"),
        pytest.param(
            WEB.replace("      containers:", "      priorityClassName: high\n      containers:"), id="priority"
        ),
    ],
)
def test_a_workload_with_other_content_is_judged_by_itself(capsys, other):
    write(a_web=WEB, b_web=other)
    report = checked(capsys)

    assert len(of(report, "PQ102")) == 2
    assert (report["summary"]["objects"], report["summary"]["copies"]) == (2, 0)


def test_the_table_names_copies_and_says_that_they_are_not_counted_again(capsys):
    write(base_web=WEB, dist_install=WEB)
    main(["check", "."])
    printed = capsys.readouterr().out

    assert "    also ./dist/install.yaml:11\n" in printed
    assert "1 warning; 1 object in 2 files checked" in printed
    assert "1 copy of workloads in other files not counted again" in printed


def test_every_copy_is_fixed(capsys):
    write(base_web=SIDECAR, dist_install=SIDECAR)

    main(["check", "--fix", "--only", "PQ101", "."])
    capsys.readouterr()

    assert Path("base/web.yaml").read_text() == Path("dist/install.yaml").read_text() != SIDECAR


def test_copies_are_related_locations_in_sarif_and_are_named_in_junit_and_github(capsys):
    write(base_web=WEB, dist_install=WEB)
    main(["check", "-o", "sarif", "."])
    log = json.loads(capsys.readouterr().out)
    main(["check", "-o", "junit", "."])
    cases = list(ET.fromstring(capsys.readouterr().out).iter("testcase"))  # noqa: S314 - our own
    main(["check", "-o", "github", "."])
    commands = capsys.readouterr().out

    assert sarif_problems(log) == []
    (result,) = (result for result in log["runs"][0]["results"] if result["ruleId"] == "PQ102")
    (related,) = result["relatedLocations"]
    assert related["physicalLocation"]["artifactLocation"]["uri"] == "dist/install.yaml"
    assert all(case.get("name") != "no findings" for case in cases)
    assert "%0Aalso: ./dist/install.yaml:11" in commands


def test_tests_and_examples_are_infos_and_it_is_said_how_many(capsys):
    write(deploy_web=WEB, docs_examples_web=WEB.replace("name: web, n", "name: demo, n"))
    report = checked(capsys)

    assert {item["source"]: (item["severity"], item["purpose"]) for item in of(report, "PQ102")} == {
        "./deploy/web.yaml": ("warning", None),
        "./docs/examples/web.yaml": ("info", "example"),
    }
    assert report["summary"]["lowered"] == 1
    main(["check", "."])
    assert "1 finding in tests and examples is an info" in capsys.readouterr().out


def test_a_directory_of_examples_that_is_named_is_judged_like_any_other(capsys):
    write(docs_examples_a=WEB, docs_examples_b=WEB.replace("name: web, n", "name: other, n"))

    assert {item["severity"] for item in of(checked(capsys, "docs/examples"), "PQ102")} == {"warning"}
    assert {item["severity"] for item in of(checked(capsys, "docs/examples/a.yaml"), "PQ102")} == {"warning"}


def test_an_example_that_the_api_server_rejects_is_still_an_error_and_a_test_is_not(capsys):
    broken = WEB.replace("selector: {matchLabels: {app: web}}", "selector: {matchLabels: {app: other}}")
    write(examples_web=broken, tests_web=broken.replace("name: web, n", "name: tested, n"))

    assert {item["source"]: item["severity"] for item in of(checked(capsys), "PQ127")} == {
        "./examples/web.yaml": "error",
        "./tests/web.yaml": "info",
    }


def test_a_policy_beside_an_example_may_be_another_examples(capsys):
    small = "apiVersion: v1\nkind: LimitRange\nmetadata: {name: small, namespace: shop}\nspec:\n  limits:\n"
    small += "  - {type: Container, max: {memory: 1Mi}, default: {memory: 8Mi}}\n"
    write(examples_web=WEB, examples_small=small)

    assert {item["severity"] for item in of(checked(capsys), "PQ203")} == {"info"}


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        pytest.param(".", None, id="the named directory"),
        pytest.param("deploy", None, id="to be applied"),
        pytest.param("e2e-tests/conf", Purpose.TEST, id="a word of a name"),
        pytest.param("internal/testdata", Purpose.TEST, id="testdata"),
        pytest.param("policies/test_fixtures/web", Purpose.TEST, id="fixtures"),
        pytest.param("cmd/_testdata", Purpose.TEST, id="hidden from tools"),
        pytest.param("e2e/expectedfailures", Purpose.TEST, id="meant to fail"),
        pytest.param("api/src/test/resources", Purpose.TEST, id="of a build tool"),
        pytest.param("clusters/test/web", None, id="a cluster's name"),
        pytest.param("latest", None, id="not a part of a word"),
        pytest.param("config/samples", Purpose.EXAMPLE, id="samples"),
        pytest.param("config-samples", Purpose.EXAMPLE, id="the last word of a name"),
        pytest.param("vendor/k8s.io/api/testdata", Purpose.VENDORED, id="vendored"),
        pytest.param("_archived/redis", Purpose.ARCHIVED, id="archived"),
        pytest.param("archiver", None, id="what archives"),
    ],
)
def test_what_files_are_for_follows_from_the_names_of_directories(folder, expected):
    assert purpose(folder) is expected


def test_an_overlay_of_ytt_is_not_a_manifest(capsys):
    overlay = '#@ load("@ytt:overlay", "overlay")\n#@overlay/match by=overlay.all\n---\n'
    write(config_web=WEB, config_ytt_pull=f"{overlay}spec:\n  template:\n    spec:\n      containers: [{{name: a}}]\n")

    assert {item["source"] for item in checked(capsys)["items"]} == {"./config/web.yaml"}
