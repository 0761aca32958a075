"""PQ3xx at their edges."""

from __future__ import annotations

import json

import pytest

from advice.bundles import check_text
from advice.test_checks_class import BURST, FULL, pod
from podqos.cli.main import main


def priority_class(name: str, value: int, *, default: bool = False) -> str:
    """Return a PriorityClass."""
    return (
        f"---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {name}}}\nvalue: {value}\n"
        f"globalDefault: {str(default).lower()}\n"
    )


def named(text: str, name: str, priority: str = "") -> str:
    """Return a pod under another name and with a priority class."""
    text = text.replace("{name: p,", f"{{name: {name},", 1)
    return text.replace("spec:\n", f"spec:\n  priorityClassName: {priority}\n", 1) if priority else text


def found(text):
    """Return the findings but for those about the disk."""
    return [(finding.subject.name, finding.check) for finding in check_text(text) if finding.check != "PQ108"]


CLASSES = priority_class("high", 1000) + priority_class("low", 10)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(pod(BURST), [], id="alone"),
        pytest.param(CLASSES + "---\n" + pod(BURST), [], id="nobody has one"),
        pytest.param(
            CLASSES + "---\n" + pod(BURST) + "---\n" + named(pod(BURST), "q", "low"), [("p", "PQ301")], id="another has"
        ),
        pytest.param(
            CLASSES + priority_class("usual", 10, default=True) + "---\n" + pod(BURST) + "---\n"
            + named(pod(BURST), "q", "low"),
            [],
            id="the default is as high",
        ),
        pytest.param(
            CLASSES + priority_class("usual", -10, default=True) + "---\n" + pod(BURST) + "---\n"
            + named(pod(BURST), "q", "low"),
            [],
            id="there is a default",
        ),
        pytest.param(
            pod(BURST) + "---\n" + named(pod(BURST), "q", "unheard-of"), [("p", "PQ301")], id="of unknown height"
        ),
        pytest.param(
            CLASSES + "---\n" + pod("{}") + "---\n" + named(pod(BURST), "q", "low"),
            [("p", "PQ102")],
            id="nothing asked for, nothing promised",
        ),
        pytest.param(
            pod(BURST) + "---\n" + named(pod(BURST), "q", "system-node-critical"),
            [("q", "PQ304")],
            id="nobody is held against the system",
        ),
    ],
)  # fmt: skip
def test_no_priority(text, expected):
    assert found(text) == expected


def test_classes_to_choose_from_are_listed_highest_first():
    text = CLASSES + "---\n" + pod(BURST) + "---\n" + named(pod(BURST), "q", "low")
    (finding,) = (each for each in check_text(text) if each.check == "PQ301")

    assert finding.patch.candidates == ("high", "low")
    assert finding.patch.paths == ("spec.priorityClassName",)


@pytest.mark.parametrize(
    ("priority", "expected"),
    [("high", "; its priority of 1,000 delays its eviction, not an OOM kill"), ("none", "")],
    ids=["above zero", "zero"],
)
def test_what_a_priority_does_for_a_pod_that_requests_nothing_is_part_of_the_finding(priority, expected):
    text = CLASSES + priority_class("none", 0) + "---\n" + named(pod("{}"), "p", priority)
    (finding,) = check_text(text)

    assert finding.check == "PQ102"
    assert finding.facts.sentence("") == f"c0 requests no cpu and no memory{expected}"


@pytest.fixture
def checked(tmp_path, capsys):
    """Return what ``podqos check`` finds in a text, by the rules of a version."""

    def check(text, version):
        (tmp_path / "pods.yaml").write_text(text)
        main(["check", "-f", str(tmp_path), "-o", "json", "--kubernetes-version", version])
        return json.loads(capsys.readouterr().out)["items"]

    return check


JOB = (
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: job}\nspec: {template: {spec: {priorityClassName: high, "
    "restartPolicy: Never, containers: [{name: c, image: i}]}}}\n"
)
OTHERS = "---\n" + named(pod("{}"), "best-effort-0") + "---\n" + named(pod(BURST), "burstable-0")


@pytest.mark.parametrize(
    ("version", "evicted_before", "does"),
    [
        pytest.param("1.36", None, "delays its eviction, not an OOM kill", id="by priority"),
        pytest.param("1.8", "default/burstable-0", "delays neither its eviction nor an OOM kill", id="by class"),
    ],
)
@pytest.mark.parametrize("text", [named(pod("{}"), "be-1k", "high"), JOB], ids=["PQ102", "PQ302"])
def test_check_says_of_a_priority_what_its_own_order_shows(checked, text, version, evicted_before, does):
    name = "job" if text is JOB else "be-1k"
    findings = [each for each in checked(CLASSES + "---\n" + text + OTHERS, version) if each["name"] == name]
    (finding,) = (each for each in findings if each["check"] in {"PQ102", "PQ302"})
    assert f"its priority of 1,000 {does}" in finding["reason"]
    assert finding["effects"]["evictedBefore"] == evicted_before


def test_a_guaranteed_pod_below_a_burstable_one():
    text = CLASSES + "---\n" + named(pod(FULL), "p", "low") + "---\n" + named(pod(BURST), "q", "high")

    assert found(text) == [("p", "PQ303")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(named(pod(BURST), "p", "unheard-of"), [], id="nothing is known about classes"),
        pytest.param(CLASSES + "---\n" + named(pod(BURST), "p", "hihg"), [("p", "PQ305")], id="misspelt"),
        pytest.param(CLASSES + "---\n" + named(pod(BURST), "p", "unheard-of"), [("p", "PQ305")], id="unknown"),
    ],
)
def test_unknown_classes(text, expected):
    assert found(text) == expected


@pytest.mark.parametrize(("name", "value"), [("hihg", "high"), ("unheard-of", None)], ids=["close", "far"])
def test_a_misspelt_class_is_mended_where_it_is_clear_which_was_meant(name, value):
    (finding,) = (
        each for each in check_text(CLASSES + "---\n" + named(pod(BURST), "p", name)) if each.check == "PQ305"
    )

    assert [edit.value for edit in finding.patch.edits] == ([value] if value else [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(named(pod(BURST), "p", "system-cluster-critical"), [("p", "PQ304")], id="borrowed"),
        pytest.param(
            named(pod(BURST), "p", "system-cluster-critical").replace("{name: p,", "{name: p, namespace: kube-system,"),
            [],
            id="of the system",
        ),
    ],
)
def test_system_priorities(text, expected):
    assert found(text) == expected


def test_a_budget_of_another_namespace_covers_nobody():
    budget = (
        "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b, namespace: elsewhere}\n"
        "spec: {minAvailable: 1, selector: {matchLabels: {app: p}}}\n"
    )

    assert found(pod(BURST) + budget) == []
    assert found(pod(BURST) + budget.replace("namespace: elsewhere", "namespace: default")) == [("p", "PQ306")]
