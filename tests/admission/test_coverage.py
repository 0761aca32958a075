"""The fields that podqos does not judge are named, and only those a pod has."""

from __future__ import annotations

import pytest

from podqos.admission.coverage import not_judged
from podqos.model.pod import ObjectMeta
from podqos.model.policy import Namespace


def pod(spec: dict | None = None, **container: object) -> dict:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main"} | container]} | (spec or {})}


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        pytest.param(pod(), (), id="nothing-special"),
        pytest.param(pod(command=["sh"], tty=True, resources={"limits": {"cpu": 1}}), (), id="nothing-to-judge"),
        pytest.param(
            pod(env=[{"name": "A"}], livenessProbe={}, securityContext={"windowsOptions": {}, "runAsUser": 0}),
            ("spec.containers[0].securityContext.windowsOptions",),
            id="of-a-container",
        ),
        pytest.param(pod(ports=[], imagePullPolicy="", stdin=False), (), id="empty"),
        pytest.param(
            pod({"hostNetwork": True, "securityContext": {}, "serviceAccount": None, "serviceAccountName": "x"}),
            ("spec.serviceAccountName",),
            id="of-the-pod",
        ),
        pytest.param(
            pod({"volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "hostPath": {}}, {"name": "c", "rbd": {}}]}),
            ("spec.volumes[2].rbd",),
            id="volumes-of-few-kinds",
        ),
        pytest.param(
            pod({"volumes": [{"name": "a", "projected": {"sources": [{"secret": {}}, {"podCertificate": {}}]}}]}),
            ("spec.volumes[0].projected.sources[1].podCertificate",),
            id="parts-of-a-projected-volume",
        ),
        pytest.param(
            {
                "metadata": {
                    "finalizers": ["x"],
                    "annotations": {"a": "", "seccomp.security.alpha.kubernetes.io/pod": ""},
                }
            },
            ("metadata.finalizers", "metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]"),
            id="metadata",
        ),
        pytest.param({"spec": {"containers": "many", "volumes": [3], "initContainers": [None]}}, (), id="malformed"),
        pytest.param([], (), id="not-a-pod"),
    ],
)
def test_the_fields_present_are_listed(value, fields):
    assert not_judged(value) == fields


def test_of_a_template_they_have_the_path_in_their_object():
    deployment = {"spec": {"template": pod({"serviceAccountName": "x"})}}
    assert not_judged(deployment, ("spec", "template")) == ("spec.template.spec.serviceAccountName",)
    assert not_judged({"spec": None}, ("spec", "template")) == ()


@pytest.mark.parametrize(
    ("labels", "fields"),
    [
        ({}, ()),
        ({"pod-security.kubernetes.io/enforce": "privileged"}, ()),
        ({"pod-security.kubernetes.io/warn": "restricted"}, ()),
        ({"pod-security.kubernetes.io/enforce": "restricted"}, ("PodSecurity restricted",)),
    ],
)
def test_a_pod_security_level_that_is_enforced_is_listed(labels, fields):
    assert not_judged(pod(), namespace=Namespace(ObjectMeta("n", labels=labels))) == fields
