"""Every kind that holds a pod is found, in every list, and nothing else is taken for one."""

from __future__ import annotations

import pytest

from podqos.manifest.objects import interpret, objects_in
from podqos.manifest.plain import Plain
from podqos.manifest.problems import Severity
from podqos.model.pod import QOSClass

SPEC: Plain = {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]}
TEMPLATE: Plain = {"metadata": {"name": "x", "labels": {"app": "b"}, "annotations": {"c": "d"}}, "spec": SPEC}
JOB: Plain = {"template": TEMPLATE}

HOLDERS: dict[str, tuple[str, dict[str, Plain], str]] = {
    "Pod": ("v1", {"spec": SPEC}, ""),
    "PodTemplate": ("v1", {"template": TEMPLATE}, "template"),
    "ReplicationController": ("v1", {"spec": {"template": TEMPLATE}}, "spec.template"),
    "Deployment": ("apps/v1", {"spec": {"template": TEMPLATE}}, "spec.template"),
    "ReplicaSet": ("apps/v1", {"spec": {"template": TEMPLATE}}, "spec.template"),
    "StatefulSet": ("apps/v1", {"spec": {"template": TEMPLATE}}, "spec.template"),
    "DaemonSet": ("extensions/v1beta1", {"spec": {"template": TEMPLATE}}, "spec.template"),
    "Job": ("batch/v1", {"spec": {"template": TEMPLATE}}, "spec.template"),
    "CronJob": ("batch/v1", {"spec": {"jobTemplate": {"spec": JOB}}}, "spec.jobTemplate.spec.template"),
}


def make(kind: str, api_version: str, **rest: Plain) -> dict[str, Plain]:
    return {"kind": kind, "apiVersion": api_version, "metadata": {"name": "n", "namespace": "s"}, **rest}


@pytest.mark.parametrize("kind", HOLDERS)
def test_the_pod_is_found_in_every_kind_that_holds_one(kind: str):
    api_version, body, pod_path = HOLDERS[kind]
    (found,) = objects_in(make(kind, api_version, **body))
    workload = interpret(found).workload
    assert workload is not None
    assert (workload.kind, workload.pod_path, workload.metadata.name) == (kind, pod_path, "n")
    assert workload.pod.key == "s/n"
    assert str(workload.pod.spec.containers[0].resources.requests["cpu"]) == "1"


def test_a_template_lends_its_labels_and_the_owner_its_name():
    (found,) = objects_in(make("Deployment", "apps/v1", spec={"replicas": 3, "template": TEMPLATE}))
    workload = interpret(found).workload
    assert workload is not None
    metadata = workload.pod.metadata
    assert (metadata.name, metadata.labels, metadata.annotations) == ("n", {"app": "b"}, {"c": "d"})
    assert workload.replicas == 3


LISTS: dict[str, tuple[Plain, list[tuple[str, str]]]] = {
    "kubectl": (
        {"kind": "List", "apiVersion": "v1", "items": [make("Pod", "v1", spec=SPEC), make("Service", "v1")]},
        [("Pod", "v1"), ("Service", "v1")],
    ),
    "typed": ({"kind": "PodList", "apiVersion": "v1", "items": [{"spec": SPEC}]}, [("Pod", "v1")]),
    "typed of a group": (
        {"kind": "DeploymentList", "apiVersion": "apps/v1", "items": [{}, {}]},
        [("Deployment", "apps/v1")] * 2,
    ),
    "empty": ({"kind": "List", "apiVersion": "v1", "items": []}, []),
    "null": ({"kind": "PodList", "apiVersion": "v1", "items": None}, []),
    "lists in a list": (
        {"kind": "List", "apiVersion": "v1", "items": [{"kind": "PodList", "apiVersion": "v1", "items": [{}]}]},
        [("Pod", "v1")],
    ),
    "item without a kind": ({"kind": "List", "apiVersion": "v1", "items": [{"spec": SPEC}]}, [("", "")]),
    "a list only by name": (make("AllowList", "example.com/v1", spec={}), [("AllowList", "example.com/v1")]),
}


@pytest.mark.parametrize(("value", "expected"), LISTS.values(), ids=LISTS.keys())
def test_lists_are_taken_apart(value: Plain, expected: list[tuple[str, str]]):
    assert [(found.kind, found.api_version) for found in objects_in(value)] == expected


def test_items_know_their_way():
    value: Plain = {"kind": "PodList", "apiVersion": "v1", "items": [{}, {}]}
    assert [found.path for found in objects_in(value)] == [("items", 0), ("items", 1)]


@pytest.mark.parametrize(
    "value", [None, 1, "a", [], {}, {"kind": "Thing"}, {"apiVersion": "v1"}, {"kind": 5, "apiVersion": "v1"}], ids=repr
)
def test_other_documents_have_no_kind(value: Plain):
    assert [found.kind for found in objects_in(value)] == [""]


OTHERS = {
    "another kind": make("Service", "v1"),
    "a custom resource of the same name": make("Job", "batch.volcano.sh/v1alpha1", spec={"tasks": []}),
    "a custom resource in lower case": make("pod", "example.com/v1"),
}


@pytest.mark.parametrize("value", OTHERS.values(), ids=OTHERS.keys())
def test_other_objects_are_left_alone(value: Plain):
    (found,) = objects_in(value)
    assert interpret(found) == interpret(found).__class__()


MISTAKES = {
    "group": (make("Deployment", "v1"), "apiVersion", 'no kind "Deployment" in version "v1"', "use apps/v1"),
    "spelling": (make("deployment", "apps/v1"), "kind", 'unknown kind "deployment"', "did you mean Deployment?"),
    "no version": ({"kind": "Pod", "spec": SPEC}, "", "apiVersion not set", "add apiVersion: v1"),
}


@pytest.mark.parametrize(("value", "field", "what", "fix"), MISTAKES.values(), ids=MISTAKES.keys())
def test_kinds_that_were_probably_meant_are_named(value: Plain, field: str, what: str, fix: str):
    (found,) = objects_in(value)
    (finding,) = interpret(found).findings
    assert (".".join(map(str, finding.path)), finding.what, finding.fix) == (field, what, fix)


def test_a_live_pod_keeps_its_class():
    value = make("Pod", "v1", spec=SPEC, status={"phase": "Running", "qosClass": "Burstable"})
    value["metadata"] = {"name": "n", "uid": "u"}
    (found,) = objects_in(value)
    workload = interpret(found).workload
    assert workload is not None
    assert workload.is_live
    assert workload.pod.status.qos_class is QOSClass.BURSTABLE


def test_the_status_of_a_manifest_is_ignored_with_a_warning():
    (found,) = objects_in(make("Pod", "v1", spec=SPEC, status={"qosClass": "Guaranteed"}))
    interpretation = interpret(found)
    assert interpretation.workload is not None
    assert interpretation.workload.pod.status.qos_class is None
    assert [(finding.path, finding.severity) for finding in interpretation.findings] == [
        (("status",), Severity.WARNING)
    ]


def test_an_empty_status_is_not_worth_a_word():
    (found,) = objects_in(make("Pod", "v1", spec=SPEC, status={}))
    assert interpret(found).findings == ()
