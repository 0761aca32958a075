from __future__ import annotations

import pytest

from podqos.advice.sizing.description import description_from_annotations, read_descriptions
from podqos.advice.sizing.matrix import BurstPattern, Description, RestartCost
from podqos.errors import InputError
from podqos.model.quantity import Quantity


def annotations(**texts: str) -> dict[str, str]:
    return {f"podqos.dev/{name.replace('_', '-')}": text for name, text in texts.items()}


def test_annotations_describe_a_workload():
    found = description_from_annotations(
        annotations(latency_sensitive="true", restart_cost="high", burst_pattern="spiky", keeps_state="true")
    )
    assert found == Description(True, RestartCost.HIGH, BurstPattern.SPIKY, keeps_state=True)


def test_other_annotations_describe_nothing():
    assert description_from_annotations({"podqos.dev/ignore": "PQ101", "a": "b"}) is None


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        pytest.param({"restart_cost": "low"}, "it lacks latency-sensitive", id="incomplete"),
        pytest.param({"latency_sensitive": "maybe"}, r"latency-sensitive\]: 'maybe' is neither", id="boolean"),
        pytest.param(
            {"latency_sensitive": "true", "restart_cost": "huge"},
            "'huge' is not one of none, low, medium, high",
            id="choice",
        ),
    ],
)
def test_an_annotation_that_says_nothing_is_refused(texts, message):
    with pytest.raises(InputError, match=message):
        description_from_annotations(annotations(**texts))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("name: web\nlatencySensitive: true\n", id="one"),
        pytest.param("- name: web\n  latencySensitive: true\n", id="list"),
        pytest.param("workloads:\n- {name: web, latencySensitive: true}\n", id="workloads"),
    ],
)
def test_a_file_has_one_workload_or_a_list(text):
    (found,) = read_descriptions("d.yaml", text.encode())
    assert (found.name, found.description) == ("web", Description(latency_sensitive=True))


def test_a_file_may_say_what_is_expected():
    text = b"name: prod/web\nlatencySensitive: false\nrestartCost: none\ncpu: 500m\nmemory: 1Gi\nimage: web:1\n"
    (found,) = read_descriptions("d.yaml", text)
    assert (found.cpu, found.memory, found.image) == (Quantity.parse("500m"), Quantity.parse("1Gi"), "web:1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "d.yaml: no descriptions", id="empty"),
        pytest.param("- name: web\n", "d.yaml:1:3: latencySensitive is missing", id="missing"),
        pytest.param("latencySensitive: true\n", "d.yaml:1:1: name is missing", id="no-name"),
        pytest.param(
            "name: web\nlatencySensitive: true\nrestartCosts: low\n",
            r"d.yaml:3:1: restartCosts: unknown field 'restartCosts' \(did you mean \"restartCost\"\?\)",
            id="misspelt",
        ),
        pytest.param(
            "name: web\nlatencySensitive: sometimes\n",
            "d.yaml:2:1: latencySensitive: 'sometimes' is neither",
            id="bool",
        ),
        pytest.param("name: web\nlatencySensitive: true\nmemory: lots\n", "d.yaml:3:1: memory: ", id="amount"),
        pytest.param("- 1\n", "d.yaml:1:3: not a description", id="number"),
        pytest.param(
            "- {name: a, latencySensitive: true}\n- {name: a, latencySensitive: true}\n",
            "a is described twice",
            id="twice",
        ),
        pytest.param("name: [\n", "d.yaml:", id="broken"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text, message):
    with pytest.raises(InputError, match=message):
        read_descriptions("d.yaml", text.encode())
