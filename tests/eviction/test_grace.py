from __future__ import annotations

import pytest

from eviction.nodes import pod
from podqos.eviction.pods import hard_grace_seconds, soft_grace_seconds
from podqos.model.profile import parse_version

OWN_60 = pod("own-60", termination_grace_period_seconds=60)
NO_OWN = pod("no-own")


@pytest.mark.parametrize(
    ("version", "given", "seconds"),
    [
        ("1.21", OWN_60, 0),
        ("1.22", OWN_60, 60),
        ("1.22", NO_OWN, 30),
        ("1.30", OWN_60, 60),
        ("1.31", OWN_60, 1),
        ("1.36", NO_OWN, 1),
    ],
)
def test_the_grace_of_a_hard_eviction_depends_on_the_version(version, given, seconds):
    """None up to 1.21; then zero was taken for unset; one second since 1.31."""
    assert hard_grace_seconds(given, parse_version(version)) == seconds


@pytest.mark.parametrize(
    ("version", "given", "maximum", "seconds"),
    [
        ("1.36", OWN_60, 90, 60),
        ("1.36", OWN_60, 30, 30),
        ("1.36", OWN_60, 0, 0),
        ("1.36", NO_OWN, 90, 90),
        ("1.32", OWN_60, 90, 60),
        ("1.31", OWN_60, 90, 90),
        ("1.25", OWN_60, 0, 60),
        ("1.21", OWN_60, 0, 0),
    ],
)
def test_the_grace_of_a_soft_eviction_is_the_maximum_and_since_1_32_at_most_the_pods_own(
    version, given, maximum, seconds
):
    assert soft_grace_seconds(given, maximum, parse_version(version)) == seconds
