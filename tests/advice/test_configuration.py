"""What ``.podqos.yaml`` says: which findings a rule fits, which severities fail, what the options become."""

from __future__ import annotations

from fractions import Fraction

import pytest
from msgspec.structs import replace

from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.configuration import FailOn, Ignore, StatedOptions, ignored, options_of
from podqos.advice.checks.finding import (
    CheckedObject,
    Consequence,
    Effect,
    Finding,
    FindingSeverity,
    Patch,
    SuppressedBy,
    Suppression,
)
from podqos.advice.checks.sizes import NoDiskLimit

FINDING = Finding(
    check="PQ108",
    severity=FindingSeverity.INFO,
    subject=CheckedObject("Deployment", "web", "shop"),
    path="spec",
    facts=NoDiskLimit(containers=("app",)),
    consequence=Consequence(Effect.ORDER),
    patch=Patch.write(),
    container="app",
)
FITTING = {
    "check": Ignore(reason="r", checks=("PQ101", "PQ108")),
    "checks by pattern": Ignore(reason="r", checks=("PQ1*",)),
    "object": Ignore(reason="r", objects=("Deployment/web",)),
    "object by pattern": Ignore(reason="r", objects=("*/w*",)),
    "namespace": Ignore(reason="r", namespaces=("shop",)),
    "container": Ignore(reason="r", containers=("app",)),
    "path": Ignore(reason="r", paths=("vendor/*",)),
    "everything together": Ignore(reason="r", checks=("PQ*",), namespaces=("s*",), paths=("*.yaml",)),
}
NOT_FITTING = {
    "another check": Ignore(reason="r", checks=("PQ101",)),
    "another kind": Ignore(reason="r", objects=("Pod/web",)),
    "another namespace": Ignore(reason="r", namespaces=("shop2", "sho")),
    "another path": Ignore(reason="r", paths=("vendor/other/*",)),
    "one of two": Ignore(reason="r", checks=("PQ108",), namespaces=("other",)),
    "nothing stated": Ignore(reason="r"),
}


@pytest.mark.parametrize("rule", FITTING.values(), ids=FITTING.keys())
def test_a_rule_fits_when_all_it_states_does(rule: Ignore):
    expected = Suppression(SuppressedBy.CONFIGURATION, "r")
    assert ignored(FINDING, [rule], "vendor/chart/web.yaml") == expected


@pytest.mark.parametrize("rule", NOT_FITTING.values(), ids=NOT_FITTING.keys())
def test_a_rule_does_not_fit_when_one_thing_differs(rule: Ignore):
    assert ignored(FINDING, [rule], "vendor/chart/web.yaml") is None


def test_the_first_rule_that_fits_gives_the_reason():
    rules = [
        Ignore(reason="no", checks=("PQ9*",)),
        Ignore(reason="yes", checks=("PQ*",)),
        Ignore(reason="late", checks=("*",)),
    ]
    assert ignored(FINDING, rules, "a") == Suppression(SuppressedBy.CONFIGURATION, "yes")


def test_a_finding_about_no_container_fits_no_container():
    assert ignored(replace(FINDING, container=None), [Ignore(reason="r", containers=("app",))], "a") is None


@pytest.mark.parametrize(
    ("fail_on", "failing"),
    [
        (FailOn.ERROR, {"error"}),
        (FailOn.WARNING, {"error", "warning"}),
        (FailOn.INFO, {"error", "warning", "info"}),
        (FailOn.NEVER, set()),
    ],
)
def test_a_gate_fails_from_its_severity_on(fail_on: FailOn, failing: set[str]):
    assert {severity.value for severity in FindingSeverity if fail_on.fails(severity)} == failing


def test_options_keep_their_defaults_unless_stated():
    assert options_of(StatedOptions(), CheckOptions()) == CheckOptions()


def test_stated_options_are_exact():
    settings = StatedOptions(memory_ratio=1.1, growth_per_second="10Mi", node_memory="16Gi", important_priority=5)
    options = options_of(settings, CheckOptions())
    assert options.memory_ratio == Fraction(11, 10)
    assert options.growth_bytes_per_second == 10 << 20
    assert options.node_memory_bytes == 16 << 30
    assert options.important_priority == 5
