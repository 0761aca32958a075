"""Reasons in words."""

from __future__ import annotations

import pytest

from podqos.model.pod import Container, Pod, PodSpec
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceRequirements
from podqos.qos.cgroup_values import Rule, ValueReason
from podqos.qos.classes import classify
from podqos.qos.oom import OOMRule, OOMScore
from podqos.qos.run_flags import Note
from podqos.words import qos as words


def amounts(text: str) -> dict[str, Quantity]:
    return {name: Quantity.parse(amount) for name, amount in (part.split("=") for part in text.split())}


def container(name: str, requests: str = "", limits: str = "") -> Container:
    return Container(name, resources=ResourceRequirements(amounts(requests), amounts(limits)))


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        pytest.param(
            PodSpec(containers=(container("a"),)),
            "no container sets a cpu or memory request or limit",
            id="BestEffort",
        ),
        pytest.param(
            PodSpec(containers=(container("a", "cpu=1 memory=1Gi", "cpu=1 memory=1Gi"),)),
            "every container has cpu and memory limits, and requests equal limits",
            id="Guaranteed",
        ),
        pytest.param(
            PodSpec(containers=(container("a", "cpu=1 memory=1Gi", "cpu=1 memory=1Gi"), container("b", "cpu=1"))),
            "b has no cpu limit and no memory limit",
            id="two limits missing",
        ),
        pytest.param(
            PodSpec(containers=(container("a", "cpu=1 memory=1Gi", "cpu=2 memory=1Gi"),)),
            "a requests 1 of its cpu limit 2",
            id="request below limit",
        ),
        pytest.param(
            PodSpec(
                containers=(container("a", "cpu=1 memory=1Gi", "cpu=1 memory=1Gi"),),
                init_containers=(container("setup", "memory=1Gi", "memory=2Gi"),),
            ),
            "init container setup has no cpu limit; init container setup requests 1Gi of its memory limit 2Gi",
            id="init container",
        ),
        pytest.param(
            PodSpec(containers=(container("a", "cpu=1"),), resources=ResourceRequirements()),
            "spec.resources is present but sets neither cpu nor memory, and it overrides the containers",
            id="empty pod level",
        ),
        pytest.param(
            PodSpec(containers=(container("a"),), resources=ResourceRequirements(amounts("cpu=1"), amounts("cpu=1"))),
            "the pod has no memory limit",
            id="pod level without memory",
        ),
    ],
)
def test_why_a_pod_has_its_class(spec, sentence):
    assert words.why_class(classify(Pod(spec=spec))) == sentence


@pytest.mark.parametrize("rule", OOMRule)
def test_every_oom_rule_has_words(rule):
    assert words.oom_rule(OOMScore("c", 5, rule, 2**30), 2**36)


@pytest.mark.parametrize(("containers", "text"), [((), "the pod has"), (("a",), "a has"), (("a", "b"), "a and b have")])
def test_one_container_has_no_limit_and_several_have_none(containers, text):
    assert words.because_of(ValueReason(Rule.NO_LIMIT, containers=containers)) == f"{text} no limit"


def test_every_cgroup_rule_and_every_note_has_words():
    assert set(words._RULES) == set(Rule)
    assert set(words._NOTES) == set(Note)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (2**36, "64Gi"),
        (4130 * 2**20, "4130Mi"),
        (25_123_456_789, "23.4Gi"),
        (0, "0"),
        (1000, "0.0Mi"),
        (2**63 - 1, "8.0Ei"),
        (9 * 10**999, "9.0e999"),
    ],
)
def test_bytes_for_people(count, text):
    assert words.mebibytes(count) == text
