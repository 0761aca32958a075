from __future__ import annotations

import pytest

from podqos.admission.decoding import read_pod
from podqos.admission.refusal import Code, Refusal
from podqos.model.pod import Pod

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
        pytest.param(_manifest(resources={"limits": {"cpu": True}}), "quantities are texts or numbers", id="boolean"),
        pytest.param(_manifest(name=7), "Expected `str`, got `int` - at `$.spec.containers[0].name`", id="wrong-type"),
        pytest.param({"spec": {"containers": {}}}, "Expected `array`, got `object`", id="object-for-list"),
        pytest.param([], "Expected `object`, got `array`", id="not-an-object"),
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
    value: dict = {}
    manifest = _manifest(env=value)
    for _ in range(5000):
        value["a"] = value = {}
    assert isinstance(read_pod(manifest), Refusal)


def test_null_is_absent_and_numbers_are_amounts():
    """As Kubernetes reads JSON."""
    pod = read_pod(_manifest(resources={"limits": {"cpu": 0.5, "memory": 1024}, "requests": None}, restartPolicy=None))
    assert isinstance(pod, Pod)
    limits = pod.spec.containers[0].resources.limits
    assert (limits["cpu"].milli_value, limits["memory"].value) == (500, 1024)


def test_what_podqos_does_not_read_is_taken_as_it_is():
    """The insides of probes, volumes and security contexts."""
    assert isinstance(read_pod(_manifest(livenessProbe={"anything": 1}, env=[{"name": "A"}])), Pod)
