"""The examples of the catalogue are what they claim to be, and every complete patch does what it promises."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from advice.bundles import apply_patch, bundle_of, check_example, plain_objects
from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.catalogue import CHECKS
from podqos.advice.checks.checking import check

ALL = [pytest.param(each, id=each.id) for each in CHECKS.values()]


def test_ids_are_in_order_and_names_are_unique():
    assert list(CHECKS) == sorted(CHECKS)
    assert all(re.fullmatch(r"PQ[1-5]\d\d", each) for each in CHECKS)
    names = [each.name for each in CHECKS.values()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in names)


@pytest.mark.parametrize("each", ALL)
def test_the_bad_example_yields_this_finding_and_no_other(each):
    findings = check_example(each.bad)

    assert [finding.check for finding in findings] == [each.id]
    assert findings[0].severity is each.severity


@pytest.mark.parametrize("each", ALL)
def test_the_good_example_yields_nothing(each):
    assert check_example(each.good) == ()


@pytest.mark.parametrize("each", ALL)
def test_the_patch_makes_the_finding_go_away_or_says_what_to_choose(each):
    (finding,) = check_example(each.bad)
    patch = finding.patch
    if not patch.is_complete:
        assert patch.needs_choice is not None
        assert not patch.edits
        return
    objects = plain_objects(each.bad.text)
    apply_patch(objects[finding.subject.position[0]], patch)

    options = replace(CheckOptions(), inject=each.bad.inject)
    after = check(bundle_of(objects, plain_objects(each.bad.replaces)), options)
    assert [other.check for other in after] == []
