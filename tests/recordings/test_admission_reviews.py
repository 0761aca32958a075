"""Reviews that an API server (v1.36.4) sent to webhooks: all are answered, with the class the server stored."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import pytest

from podqos.admission.json_patch import PatchOperation, apply_patch
from podqos.admission.review import encode_answer, read_review
from podqos.advice.checks.finding import FailOn
from podqos.advice.reviewing import Door, ReviewDecision, Reviewer, ReviewNotJudged, _live_pod, _object, _workload
from podqos.manifest.kinds import POD_HOLDERS
from podqos.policy.reading import read_policy
from podqos.questions.review import audit_line, response

with gzip.open(Path(__file__).parent / "admission_reviews.jsonl.gz") as file:
    ROWS = [json.loads(line) for line in file]

STRICT = read_policy({
    "apiVersion": "podqos.dev/v1alpha1",
    "kind": "Policy",
    "metadata": {"name": "strict"},
    "spec": {"rules": [{"name": "guaranteed", "require": {"minClass": "Guaranteed"}, "action": "Deny"}]},
}).policy  # fmt: skip
assert STRICT is not None


def decided(row: dict, reviewer: Reviewer) -> ReviewDecision:
    return reviewer.decide(Door(row["webhook"]), read_review(json.dumps(row["review"]).encode()))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['step']}-{row['webhook']}")
def test_every_recorded_review_is_answered_with_its_uid(row):
    for reviewer in (Reviewer(warn_on=FailOn.INFO), Reviewer((STRICT,))):
        decision = decided(row, reviewer)
        answer = json.loads(encode_answer(response(decision)))
        assert answer["response"]["uid"] == row["review"]["request"]["uid"]
        assert answer["apiVersion"] == "admission.k8s.io/v1"
        assert answer["kind"] == "AdmissionReview"
        line = json.loads(audit_line(decision, "", 0.0))
        assert line["requestId"] == row["review"]["request"]["uid"]
        assert line["allowed"] is answer["response"]["allowed"]


def test_the_class_of_every_validated_pod_is_the_one_the_server_stored():
    compared = 0
    for row in ROWS:
        pod = row["review"]["request"]["object"]
        decision = decided(row, Reviewer())
        if row["webhook"] == "validate" and decision.not_judged is None and pod["kind"] == "Pod":
            assert decision.qos_class == pod["status"]["qosClass"], row["step"]
            compared += 1
    assert compared >= 20


def test_the_class_of_a_template_is_that_of_the_pods_made_from_it():
    judged = {
        (decision.request.kind.kind, decision.qos_class)
        for row in ROWS
        if (decision := decided(row, Reviewer())).not_judged is None and row["webhook"] == "validate"
    }
    assert {kind for kind, _ in judged} == {
        "Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob",
    }  # fmt: skip


def test_what_is_not_judged_is_allowed_without_a_word():
    seen = set()
    for row in ROWS:
        decision = decided(row, Reviewer((STRICT,), warn_on=FailOn.INFO))
        if decision.not_judged is not None:
            seen.add(decision.not_judged)
            answer = response(decision)
            assert answer.allowed
            assert not answer.warnings
            assert answer.patch is None
    assert seen >= {
        ReviewNotJudged.OPERATION, ReviewNotJudged.KIND, ReviewNotJudged.SUBRESOURCE, ReviewNotJudged.UPDATE,
        ReviewNotJudged.UNCHANGED, ReviewNotJudged.NOT_MUTATED,
    }  # fmt: skip


def test_a_new_pod_read_in_one_pass_is_the_one_read_part_by_part():
    compared = 0
    for row in ROWS:
        request = read_review(json.dumps(row["review"]).encode())
        if request.operation == "CREATE" and request.kind.kind == "Pod" and not request.sub_resource:
            quick = _live_pod(request)
            assert quick is None or quick == _workload(POD_HOLDERS["Pod"], _object(request), request.namespace)
            compared += quick is not None
    assert compared >= 20


def test_scaling_and_deleting_what_violates_the_policy_still_works():
    for row in ROWS:
        if "scale" in row["step"] or "delete" in row["step"]:
            decision = decided(row, Reviewer((STRICT,)))
            if decision.request.kind.kind != "Pod":
                assert decision.allowed, row["step"]


def test_patches_apply_to_every_recorded_pod_and_asking_again_changes_nothing():
    patched = 0
    for row in ROWS:
        request = row["review"]["request"]
        if row["webhook"] != "mutate" or request["operation"] != "CREATE" or request["kind"]["kind"] != "Pod":
            continue
        asking = json.loads(json.dumps(row))
        metadata = asking["review"]["request"]["object"]["metadata"]
        metadata.setdefault("annotations", {}).update({
            "podqos.dev/keep-class": "Guaranteed", "podqos.dev/sidecar-limits": "cpu=100m,memory=64Mi",
        })  # fmt: skip
        spec = asking["review"]["request"]["object"]["spec"]
        main = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}
        spec["containers"].append({"name": "guaranteed", "image": "i", "resources": main})
        answer = response(decided(asking, Reviewer()))
        if answer.patch is None:
            continue
        patched += 1
        operations = [PatchOperation(**each) for each in json.loads(answer.patch)]
        after = apply_patch(asking["review"]["request"]["object"], operations)
        asking["review"]["request"]["object"] = after
        again = decided(asking, Reviewer())
        assert response(again).patch is None
        assert again.qos_class == "Guaranteed"
        wire = json.loads(encode_answer(answer))["response"]
        assert wire["patchType"] == "JSONPatch"
        assert json.loads(base64.b64decode(wire["patch"])) == json.loads(answer.patch)
    assert patched >= 5
