"""The two phases together: order, options, suppression, and values that travel."""

from __future__ import annotations

import pickle

import msgspec
import pytest
from msgspec.structs import replace

from advice.bundles import Bundle, bundle_of, check, check_example, check_text, first_phase, plain_objects
from advice.test_checks_class import BURST, FULL, pod
from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.catalogue import CHECKS
from podqos.advice.checks.checking import check_bundle, check_workload
from podqos.advice.checks.finding import SuppressedBy, Suppression
from podqos.advice.checks.trying import tries_of_each
from podqos.advice.checks.view import CheckContext
from podqos.model.pod import PodSpec
from podqos.questions.findings import FindingReport, finding_report

BAD = "---\n".join(
    each.example.text for each in CHECKS.values() if each.id.startswith("PQ1") and not each.example.replaces
)


def test_nothing_is_found_in_nothing():
    assert check(Bundle()) == ()


def test_a_pod_without_containers_is_refused_and_disturbs_nobody():
    bundle = bundle_of(plain_objects(pod(FULL, "{}")))
    found = bundle.workloads[0]
    empty = replace(found.workload, pod=replace(found.workload.pod, spec=PodSpec()))
    workloads = (found, replace(found, workload=empty, subject=replace(found.subject, name="empty")))

    findings = check(replace(bundle, workloads=workloads))
    assert [(each.subject.name, each.check) for each in findings] == [
        ("empty", "PQ112"),
        ("p", "PQ101"),
        ("p", "PQ108"),
    ]


def test_findings_come_in_the_order_of_their_objects():
    findings = check_text(BAD)

    assert len(findings) > 10
    assert [finding.order for finding in findings] == sorted(finding.order for finding in findings)


def test_two_phases_apart_give_what_both_give_together():
    bundle, options = bundle_of(plain_objects(BAD)), CheckOptions()
    context = CheckContext(bundle.surroundings, options)
    results = first_phase(bundle, context)

    assert check_bundle(pickle.loads(pickle.dumps(results)), context) == check(bundle, options)  # noqa: S301


@pytest.mark.parametrize("each", [pytest.param(each, id=each.id) for each in CHECKS.values()])
def test_a_finding_survives_json(each):
    reports = tuple(finding_report(finding, "a.yaml", (1, 1)) for finding in check_example(each))

    assert msgspec.json.decode(msgspec.json.encode(reports), type=tuple[FindingReport, ...]) == reports


def test_disabled_checks_find_nothing():
    options = replace(CheckOptions(), disabled=frozenset({"PQ101", "PQ108"}))

    assert {finding.check for finding in check_text(BAD)} >= {"PQ101", "PQ108"}
    assert not {finding.check for finding in check_text(BAD, options)} & {"PQ101", "PQ108"}


def test_beyond_a_number_of_workloads_nobody_is_compared():
    text = pod(FULL, "{}") + "---\n" + pod(BURST).replace("{name: p,", "{name: q,")
    compared, alone = check_text(text)[0], check_text(text, replace(CheckOptions(), compare_up_to=1))[0]

    assert (compared.check, alone.check) == ("PQ101", "PQ101")
    assert compared.consequence.repaired is not None
    assert alone.consequence.repaired is None
    assert alone.consequence.now == compared.consequence.now
    assert (alone.facts, alone.patch) == (compared.facts, compared.patch)


@pytest.mark.parametrize("names", ["PQ102", "PQ101, PQ102", "accidental-best-effort"])
@pytest.mark.parametrize("kind", ["Pod", "Deployment"])
def test_an_annotation_suppresses_findings_of_its_object(names, kind):
    annotations = f'annotations: {{podqos.dev/ignore: "{names}", podqos.dev/ignore-reason: on purpose}}'
    text = pod("{}", kind=kind).replace("{name: p", f"{{name: p, {annotations}", 1)
    (finding,) = check_text(text)

    assert finding.check == "PQ102"
    assert finding.suppression == Suppression(SuppressedBy.ANNOTATION, "on purpose")


def test_an_annotation_of_the_template_counts_as_well():
    text = pod("{}", kind="Deployment").replace("{labels:", "{annotations: {podqos.dev/ignore: PQ102}, labels:", 1)

    assert check_text(text)[0].suppression is not None


def test_an_annotation_suppresses_nothing_else():
    text = pod("{}").replace("{name: p,", "{name: p, annotations: {podqos.dev/ignore: PQ108},", 1)

    assert check_text(text)[0].suppression is None


def test_in_a_large_tree_fixes_that_wait_for_a_request_are_not_tried_and_beyond_it_none():
    text = pod("{requests: {memory: 64Mi}, limits: {memory: 8Gi, ephemeral-storage: 1Gi}}", "{limits: {memory: 512m}}")
    bundle = bundle_of(plain_objects(text))
    context = CheckContext(bundle.surroundings, CheckOptions())

    def tried(workloads: int) -> list[str]:
        result = check_workload(bundle.workloads[0], context, keep_pod=False, tries=tries_of_each(workloads))
        return sorted({finding.check for finding in result.findings if finding.patch.is_tried})

    assert tried(1_000) == ["PQ105", "PQ117"]
    assert tried(1_001) == tried(20_000) == ["PQ117"]
    assert tried(20_001) == []
