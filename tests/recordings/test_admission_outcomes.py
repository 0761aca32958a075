"""Pods sent to a running API server (v1.36.4, dryRun, strict): what it stored or how it refused.

Trimmed to what podqos models. Where the server itself has more than one answer the row carries all of them.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import pytest

from podqos.admission.chain import Admission, admit
from podqos.admission.decoding import read_pod
from podqos.admission.limit_range import ANNOTATION
from podqos.admission.policies import Policies
from podqos.admission.refusal import Refusal
from podqos.model.policy import LimitRange, Namespace, PriorityClass, ResourceQuota, RuntimeClass
from podqos.model.quantity import Quantity

# PodSecurity judges security contexts, which podqos does not model.
NOT_MODELLED = {"psa-restricted/host-network", "psa-restricted/privileged", "psa-baseline/privileged"}

CLASSES = [
    {"metadata": {"name": "latency-critical"}, "value": 1_000_000},
    {"metadata": {"name": "batch-processing"}, "value": 100_000, "preemptionPolicy": "Never"},
    {"metadata": {"name": "default"}, "value": 0, "globalDefault": True},
    {"metadata": {"name": "system-cluster-critical"}, "value": 2_000_000_000},
    {"metadata": {"name": "system-node-critical"}, "value": 2_000_001_000},
]
RUNTIMES = [{"metadata": {"name": "sandboxed"}, "overhead": {"podFixed": {"cpu": "250m", "memory": "160Mi"}}}]


def _rows() -> list[dict]:
    path = Path(__file__).with_name("admission_outcomes.jsonl.gz")
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def _convert(value, kind):
    return msgspec.convert(value, kind, dec_hook=lambda _, text: Quantity.from_json(str(text)))


def _answer(row: dict) -> Admission | Refusal:
    given = row["policies"]
    policies = Policies(
        namespace=given and _convert(given["namespace"], Namespace),
        limit_ranges=_convert(given["limitRanges"], tuple[LimitRange, ...]) if given else (),
        resource_quotas=_convert(given["resourceQuotas"], tuple[ResourceQuota, ...]) if given else (),
        priority_classes=_convert(CLASSES, tuple[PriorityClass, ...]),
        runtime_classes=_convert(RUNTIMES, tuple[RuntimeClass, ...]),
    )
    manifest = row["input"] | {"metadata": row["input"]["metadata"] | {"namespace": row["namespace"]}}
    pod = read_pod(manifest)
    return pod if isinstance(pod, Refusal) else admit(pod, policies)


def _shown(answer: Admission | Refusal, *, ordered: bool) -> dict:
    refusal = answer if isinstance(answer, Refusal) else answer.refusal
    if refusal is not None:
        message = refusal.message if ordered else sorted(refusal.message)
        return {"http_status": int(refusal.code), "message": message, "fields": list(refusal.fields)}
    spec = msgspec.to_builtins(answer.pod.spec, enc_hook=Quantity.canonical)
    return {
        "http_status": 201,
        "annotation": answer.pod.metadata.annotations.get(ANNOTATION, ""),
        "qosClass": answer.pod.status.qos_class,
        **_spec_shown(spec),
    }


def _expected(outcome: dict, *, ordered: bool) -> dict:
    if "error" in outcome:
        message = outcome["error"]["message"]
        return {
            "http_status": outcome["http_status"],
            "message": message if ordered else sorted(message),
            "fields": outcome["error"].get("fields", []),
        }
    admitted = outcome["admitted"]
    return {
        "http_status": 201,
        "annotation": admitted["metadata"]["annotations"].get(ANNOTATION, ""),
        "qosClass": admitted["status"]["qosClass"],
        **_spec_shown(admitted["spec"]),
    }


def _spec_shown(spec: dict) -> dict:
    def requirements(resources: dict | None) -> dict:
        return {side: (resources or {}).get(side, {}) for side in ("requests", "limits")}

    return {
        "containers": {c["name"]: requirements(c.get("resources")) for c in spec["containers"]},
        "initContainers": {c["name"]: requirements(c.get("resources")) for c in spec.get("initContainers", ())},
        "resources": requirements(spec["resources"]) if spec.get("resources") is not None else None,
        "overhead": spec.get("overhead") or {},
        "priority": (spec["priority"], spec["priorityClassName"], spec["preemptionPolicy"]),
        "tolerations": [{k: v for k, v in t.items() if v not in ("", None)} for t in spec["tolerations"]],
    }


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in _rows() if row["id"] not in NOT_MODELLED])
def test_the_answer_is_one_of_the_api_servers(row):
    """Stored object, class, annotation, tolerations and priority; or status, words and fields."""
    ordered = row.get("varies") != "message order"
    answer = _shown(_answer(row), ordered=ordered)
    assert answer in [_expected(outcome, ordered=ordered) for outcome in row.get("variants", [row])]


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in _rows() if row.get("varies") == "outcome"])
def test_a_warning_is_given_where_the_server_itself_has_several_answers(row):
    """Two LimitRanges default the same resource, and nobody knows which comes first."""
    answer = _answer(row)
    assert isinstance(answer, Admission)
    assert {conflict.resource for conflict in answer.conflicts} == {"cpu", "memory"}


def test_only_pod_security_is_not_modelled():
    """The rows left out are refusals of that plug-in and nothing else."""
    left_out = [row for row in _rows() if row["id"] in NOT_MODELLED]
    assert len(left_out) == len(NOT_MODELLED)
    assert all("violates PodSecurity" in row["error"]["message"] for row in left_out)
