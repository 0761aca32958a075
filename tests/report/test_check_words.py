"""Findings in words."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from advice.bundles import check_example, check_text
from podqos.advice.checks import examples
from podqos.advice.checks.catalogue import CHECKS, Facts
from podqos.advice.checks.finding import Choice, Fact, Patch
from podqos.words.consequences import consequence

ALL = [pytest.param(each, id=each.id) for each in CHECKS.values()]


def test_every_kind_of_fact_is_in_the_schema():
    assert set(get_args(Facts)) == set(Fact.__subclasses__())


def test_every_choice_has_words():
    assert all(Patch.choose(choice).text for choice in Choice)


@pytest.mark.parametrize("each", ALL)
def test_the_words_of_an_example_are_whole_sentences_without_their_stop(each):
    (finding,) = check_example(each)

    for text in (finding.facts.sentence(finding.container or ""), finding.patch.text):
        assert text
        assert not re.search(r"None|\{|  |<", text.replace("{medium", ""))
        assert not text.endswith(".")
    assert "None" not in consequence(finding)


@pytest.mark.parametrize(
    ("check_id", "reason", "patch"),
    [
        (
            "PQ101",
            "envoy-sidecar has no cpu limit and no memory limit, unlike article-service",
            "spec.containers[1].resources.limits.cpu: 100m\nspec.containers[1].resources.limits.memory: 128Mi",
        ),
        (
            "PQ105",
            "web may use 8Gi of memory, 32.0× the 256Mi it requests (at most 4×)",
            "spec.containers[0].resources.requests.memory: 2Gi (was 256Mi)",
        ),
        (
            "PQ204",
            "the default memory limit can come from small 512Mi or team 2Gi",
            "choose which LimitRange sets the default: small or team (spec.limits)",
        ),
        (
            "PQ404",
            (
                "at 50Mi/s the kernel kills before the kubelet evicts in 80% of cases (memory.available 100Mi, checked "
                "every 10 s); with 500Mi the kubelet always evicts first, with 825Mi even if the system uses its "
                "whole reservation"
            ),
            "evictionHard[memory.available]: 825Mi (was 100Mi)",
        ),
        ("PQ116", "web has a cpu limit of zero", "remove spec.containers[0].resources.limits.cpu"),
        ("PQ408", "enforceNodeAllocatable does not include pods", "enforceNodeAllocatable: [pods] (was none)"),
        (
            "PQ502",
            "limits add up to 12Gi of memory, 1.50× the 8Gi allocatable on the node (budget 1.2×); largest: web",
            "choose whose limits to lower, or add nodes",
        ),
    ],
)
def test_what_was_found_and_what_to_write(check_id, reason, patch):
    (finding,) = check_example(CHECKS[check_id])

    assert finding.facts.sentence(finding.container or "") == reason
    assert finding.patch.text == patch


def test_what_follows_alone_and_beside_others():
    alone = check_example(CHECKS["PQ101"])[0]
    batch = examples.pod(examples.container("web", *examples.USUAL), name="batch", spec="  priority: 7\n")
    beside = check_text(CHECKS["PQ101"].example.text + "---\n" + batch)[0]

    place = (
        "Burstable, oom_score_adj 999 (envoy-sidecar), evicted once it uses more than it requests; "
        "once fixed, Guaranteed, oom_score_adj -997"
    )
    assert consequence(alone) == place
    assert consequence(beside) == (
        f"because of this, the kubelet evicts it before batch when every pod is at its memory limit; {place}"
    )
