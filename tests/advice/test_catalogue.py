"""The examples of the catalogue are what they claim to be, and every complete patch does what it promises."""

from __future__ import annotations

import re

import pytest

from advice.bundles import apply_patch, check_example, check_text, plain_objects
from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.catalogue import CHECKS
from podqos.questions.check_formats import good_example

BEFORE_ALL_RULES = ("PQ111", "PQ112")
ALL = [pytest.param(each, id=each.id) for each in CHECKS.values()]


def test_ids_are_in_order_and_names_are_unique():
    assert list(CHECKS) == sorted(CHECKS)
    assert all(re.fullmatch(r"PQ[1-7]\d\d", each) for each in CHECKS)
    names = [each.name for each in CHECKS.values()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in names)


@pytest.mark.parametrize("each", ALL)
def test_a_check_is_found_by_a_rule(each):
    assert each.rule is not None or each.bundle_rule is not None or each.id in BEFORE_ALL_RULES


@pytest.mark.parametrize("each", ALL)
def test_the_bad_example_yields_this_finding_and_no_other(each):
    findings = check_example(each)

    assert [finding.check for finding in findings] == [each.id]
    assert findings[0].severity is each.severity


@pytest.mark.parametrize("each", ALL)
def test_the_good_example_yields_nothing(each):
    options = CheckOptions(inject=each.example.inject)

    assert check_text(good_example(each), options, each.example.replaces) == ()


@pytest.mark.parametrize("each", ALL)
def test_the_good_example_is_the_bad_one_with_its_patch(each):
    (finding,) = check_example(each)
    patch, example = finding.patch, each.example
    if not patch.is_complete:
        assert patch.needs_choice is not None
        assert not patch.edits
        assert bool(example.chosen) != bool(example.good)
        return
    assert not example.chosen
    assert not example.good
    objects = plain_objects(example.text)
    apply_patch(objects[finding.subject.position[0]], patch)

    assert plain_objects(good_example(each)) == objects


@pytest.mark.parametrize("each", [each for each in CHECKS.values() if each.example.chosen], ids=lambda each: each.id)
def test_what_is_chosen_is_written_where_the_patch_says(each):
    (finding,) = check_example(each)
    places = [path.removesuffix(".requests") for path in finding.patch.paths]

    assert not places or any(chosen.startswith(tuple(places)) for chosen in each.example.chosen)
