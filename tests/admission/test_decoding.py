from __future__ import annotations

import pytest

from podqos.admission.decoding import read_pod
from podqos.admission.refusal import Code, Refusal
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity

PREFIX = 'Pod in version "v1" cannot be handled as a Pod: '


def _manifest(**container) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "main", "image": "app:1"} | container]},
    }


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        pytest.param(
            _manifest(resource={"limits": {"cpu": "1"}}),
            'strict decoding error: unknown field "spec.containers[0].resource"',
            id="resource-for-resources",
        ),
        pytest.param(
            _manifest(resources={"request": {}, "limit": {}}),
            'strict decoding error: unknown field "spec.containers[0].resources.request", '
            'unknown field "spec.containers[0].resources.limit"',
            id="singulars-of-source-000",
        ),
        pytest.param(
            {"spec": {"containers": [], "priorityclassname": "high"}},
            'strict decoding error: unknown field "spec.priorityclassname"',
            id="case-matters",
        ),
        pytest.param(
            _manifest(resources={"limits": {"memory": "128mi"}}), "unable to parse quantity's suffix", id="bad-suffix"
        ),
        pytest.param(
            _manifest(resources={"limits": {"memory": "lots"}}), "quantities must match the regular", id="not-an-amount"
        ),
        pytest.param(_manifest(resources={"limits": {"cpu": True}}), "quantities must match the regular", id="boolean"),
        pytest.param(
            _manifest(name=7),
            "json: cannot unmarshal number into Go struct field Container.spec.containers.name of type string",
            id="wrong-type",
        ),
        pytest.param(
            {"spec": {"containers": {}}},
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
            id="object-for-list",
        ),
        pytest.param(
            [],
            "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct {",
            id="not-an-object",
        ),
    ],
)
def test_what_cannot_be_read_is_a_bad_request(manifest, words):
    """Before anything else looks at it."""
    refusal = read_pod(manifest)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.BAD_REQUEST
    assert refusal.message.startswith(PREFIX + words)


def test_an_object_of_bottomless_depth_is_a_bad_request():
    """Not a crash."""
    containers: list = []
    for _ in range(5000):
        containers = [containers]
    assert isinstance(read_pod({"spec": {"containers": containers}}), Refusal)


def test_a_value_that_does_not_fit_is_reported_before_unknown_fields():
    """The API server then knows nothing of them."""
    refusal = read_pod(_manifest(resource={}, resources={"limits": {"memory": "128mi"}}))
    assert refusal.message == f"{PREFIX}unable to parse quantity's suffix"


def test_a_null_amount_is_zero_and_any_other_null_is_absent():
    """As Go decodes JSON."""
    pod = read_pod(_manifest(resources={"limits": {"cpu": None}, "requests": None}, restartPolicy=None))
    assert pod.spec.containers[0].resources.limits["cpu"] == Quantity.parse("0")


def test_a_template_is_read_like_a_pod_with_the_paths_of_the_object_around_it():
    """Whoever holds it."""
    template = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resource": {}}]}}
    refusal = read_pod({"spec": {"template": template}}, "Deployment", "apps/v1", ("spec", "template"))
    assert refusal.message == (
        'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: '
        'unknown field "spec.template.spec.containers[0].resource"'
    )


def test_numbers_are_amounts():
    """As Kubernetes reads JSON."""
    pod = read_pod(_manifest(resources={"limits": {"cpu": 0.5, "memory": 1024}}))
    assert isinstance(pod, Pod)
    limits = pod.spec.containers[0].resources.limits
    assert (limits["cpu"].milli_value, limits["memory"].value) == (500, 1024)
