from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.admission.coverage import not_judged
from podqos.admission.decoding import read_pod
from podqos.admission.pod_validation import validate_new_pod
from podqos.admission.refusal import Code, Refusal
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity

NAMES = ("name", "labels", "containers", "resources", "limits", "cpu", "env", "volumes", "nodeAffinity", "ports")
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


@pytest.mark.parametrize(
    ("part", "words"),
    [
        pytest.param(
            {"env": [{"name": "A", "value": 5}]},
            "json: cannot unmarshal number into Go struct field EnvVar.spec.containers.env.value of type string",
            id="number-for-text",
        ),
        pytest.param(
            {"command": "sh"},
            "json: cannot unmarshal string into Go struct field Container.spec.containers.command of type []string",
            id="text-for-list",
        ),
        pytest.param(
            {"ports": [{"containerPort": 2**31}]},
            "json: cannot unmarshal number 2147483648 into Go struct field "
            "ContainerPort.spec.containers.ports.containerPort of type int32",
            id="overflow",
        ),
        pytest.param(
            {"livenessProbe": {"periodSeconds": 1.0}},
            "json: cannot unmarshal number 1.0 into Go struct field "
            "Probe.spec.containers.livenessProbe.periodSeconds of type int32",
            id="fraction-for-int",
        ),
        pytest.param(
            {"livenessProbe": {"httpGet": {"port": True}}},
            "json: cannot unmarshal bool into Go struct field "
            "HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
            id="embedded-struct",
        ),
        pytest.param(
            {"restartPolicy": 1},
            "json: cannot unmarshal number into Go struct field "
            "Container.spec.containers.restartPolicy of type v1.ContainerRestartPolicy",
            id="named-type",
        ),
        pytest.param(
            {"tty": "yes", "resources": {"limits": {"cpu": "1x"}}},
            "quantities must match the regular expression",
            id="a-quantity-ends-decoding",
        ),
        pytest.param(
            {"securityContext": {"foo": 1}, "env": [{"Name": "A"}]},
            'strict decoding error: unknown field "spec.containers[0].securityContext.foo", '
            'unknown field "spec.containers[0].env[0].Name"',
            id="unknown-fields-in-the-order-of-the-text",
        ),
    ],
)
def test_types_and_names_are_checked_at_every_depth(part, words):
    """In the words of the API server's decoder."""
    refusal = read_pod(_manifest(**part))
    assert isinstance(refusal, Refusal)
    assert refusal.message.startswith(PREFIX + words)


@pytest.mark.parametrize(
    ("time", "accepted"),
    [
        ("2026-01-01T00:00:00Z", True),
        ("2026-01-01T00:00:00.5+02:00", True),
        ("2026-13-01T00:00:00Z", False),
        ("yesterday", False),
        ("2026-01-01", False),
        (None, True),
        (5, False),
    ],
)
def test_times_are_those_of_rfc_3339(time, accepted):
    manifest = _manifest()
    manifest["metadata"]["creationTimestamp"] = time
    assert isinstance(read_pod(manifest), Pod) is accepted


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ({"kind": "Podd"}, 'Podd in version "v1" cannot be handled as a Pod: no kind "Podd" is registered'),
        ({"apiVersion": "v2"}, 'Pod in version "v2" cannot be handled as a Pod: no kind "Pod" is registered'),
        ({"kind": 5}, 'Pod in version "v1" cannot be handled as a Pod: couldn\'t get version/kind; json parse error'),
    ],
)
def test_what_is_of_another_kind_is_no_pod(head, words):
    assert read_pod(_manifest() | head).message.startswith(words)


@pytest.mark.parametrize("head", [{}, {"kind": None}, {"kind": "", "apiVersion": ""}])
def test_a_kind_that_is_not_stated_is_the_one_of_the_address(head):
    manifest = {name: part for name, part in _manifest().items() if name not in {"kind", "apiVersion"}}
    assert isinstance(read_pod(manifest | head), Pod)


def test_no_more_than_a_hundred_unknown_fields_are_listed():
    refusal = read_pod(_manifest(**{f"x{index}": 1 for index in range(300)}))
    assert refusal.message.count("unknown field") == 100


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(PLAIN)
def test_whatever_is_sent_is_read_or_refused_with_400(value):
    """And what is refused is refused for fields that are there."""
    answer = read_pod({"spec": value})
    assert isinstance(answer, Pod) or answer.code is Code.BAD_REQUEST


@given(PLAIN)
def test_whatever_is_read_can_be_judged(value):
    """Validation and the list of what is not judged never fail."""
    manifest = {"metadata": value, "spec": {"containers": [value], "affinity": value}}
    not_judged(manifest)
    pod = read_pod(manifest)
    if isinstance(pod, Pod):
        assert validate_new_pod(pod)


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
