"""Baselines: a finding is recognised while its file is edited around it, and nothing else is."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from podqos.advice.checks.baseline import Baseline, baseline_of, compare, fingerprint, stable_path
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
from podqos.manifest.text import Chunk, Place

FINDING = Finding(
    check="PQ108",
    severity=FindingSeverity.INFO,
    subject=CheckedObject("Deployment", "web", "shop", "a.yaml", Place(Chunk(0, 10, "yaml"))),
    path="spec.template.spec.containers[0].resources",
    facts=NoDiskLimit(containers=("app",)),
    consequence=Consequence(Effect.ORDER),
    patch=Patch.write(),
    container="app",
)
OBJECTS = {("Deployment", "shop", "web")}


def moved(finding: Finding) -> Finding:
    """Return the same finding after its file was renamed and edited above it."""
    subject = replace(finding.subject, source="b.yaml", place=Place(Chunk(90, 100, "yaml", (7, 1))))
    return replace(finding, subject=subject, path=finding.path.replace("[0]", "[2]"), severity=FindingSeverity.ERROR)


def test_a_finding_is_the_same_wherever_its_object_and_container_move():
    assert fingerprint(moved(FINDING)) == fingerprint(FINDING)


@pytest.mark.parametrize(
    "other",
    [
        replace(FINDING, check="PQ101"),
        replace(FINDING, container="proxy"),
        replace(FINDING, container=None),
        replace(FINDING, path="spec.template.spec.containers[0].resources.limits"),
        replace(FINDING, subject=replace(FINDING.subject, name="web2")),
        replace(FINDING, subject=replace(FINDING.subject, namespace="other")),
        replace(FINDING, subject=replace(FINDING.subject, kind="StatefulSet")),
    ],
    ids=["check", "container", "no container", "field", "name", "namespace", "kind"],
)
def test_another_finding_has_another_fingerprint(other: Finding):
    assert fingerprint(other) != fingerprint(FINDING)


def test_a_fingerprint_stays_from_version_to_version():
    """Baselines in repositories hold it."""
    assert fingerprint(FINDING) == "db0deefaf4c39ea8"


def test_a_container_goes_by_its_name():
    assert stable_path(FINDING) == "spec.template.spec.containers[app].resources"


def test_what_is_known_is_marked_and_what_is_new_is_not():
    new = replace(FINDING, check="PQ101")
    compared = compare([moved(FINDING), new], baseline_of([FINDING]), OBJECTS)
    assert [finding.suppression for finding in compared.findings] == [Suppression(SuppressedBy.BASELINE), None]
    assert compared.stale == ()


def test_the_same_finding_once_more_is_new():
    baseline = baseline_of([FINDING, FINDING])
    assert [entry.count for entry in baseline.findings] == [2]
    compared = compare([FINDING] * 3, baseline, OBJECTS)
    assert [finding.suppression is None for finding in compared.findings] == [False, False, True]


def test_an_entry_is_stale_once_its_object_is_checked_without_the_finding():
    baseline = baseline_of([FINDING, replace(FINDING, subject=replace(FINDING.subject, name="elsewhere"))])
    compared = compare([], baseline, OBJECTS)
    assert [entry.name for entry in compared.stale] == ["web"]


def test_what_is_suppressed_otherwise_leaves_its_entry_stale():
    suppressed = replace(FINDING, suppression=Suppression(SuppressedBy.ANNOTATION, "known"))
    compared = compare([suppressed], baseline_of([FINDING]), OBJECTS)
    assert compared.findings == (suppressed,)
    assert len(compared.stale) == 1


def test_a_baseline_is_sorted_and_does_not_depend_on_the_order_of_findings():
    findings = [replace(FINDING, check=check) for check in ("PQ301", "PQ101", "PQ108")]
    baseline = baseline_of(findings)
    assert baseline == baseline_of(reversed(findings))
    assert [entry.check for entry in baseline.findings] == ["PQ101", "PQ108", "PQ301"]


def test_an_empty_baseline_knows_nothing():
    assert compare([FINDING], Baseline(), OBJECTS).findings == (FINDING,)
