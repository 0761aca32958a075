from __future__ import annotations

import pytest
from msgspec.structs import replace

from admission.pods import amounts, container, pod, resources
from podqos.admission.pod_validation import validate_new_pod, validate_pod
from podqos.admission.validation import validate_resources
from podqos.model.pod import MIRROR_ANNOTATION, Container, ObjectMeta, PodOS, PodResourceClaim, Toleration
from podqos.model.resources import ResourceClaim, ResourceRequirements

PLACE = "spec.containers[0].resources"

CASES = [
    pytest.param(
        "cpu=2",
        "cpu=1",
        f'{PLACE}.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        id="over",
    ),
    pytest.param(
        "cpu=-1", "", f'{PLACE}.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0', id="-1"
    ),
    pytest.param(
        "example.com/gpu=1",
        "",
        f"{PLACE}.limits: Required value: Limit must be set for non overcommitable resources",
        id="device-without-limit",
    ),
    pytest.param(
        "example.com/gpu=1",
        "example.com/gpu=2",
        f'{PLACE}.requests: Invalid value: "1": must be equal to example.com/gpu limit of 2',
        id="device-overcommitted",
    ),
    pytest.param(
        "",
        "example.com/gpu=1500m",
        f'{PLACE}.limits[example.com/gpu]: Invalid value: "1500m": must be an integer',
        id="half-a-device",
    ),
    pytest.param(
        "", "hugepages-2Mi=2Mi", f"{PLACE}: Forbidden: HugePages require cpu or memory", id="huge-pages-alone"
    ),
    pytest.param(
        "",
        "memory=1Gi,hugepages-2Mi=3Mi",
        f'{PLACE}.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi',
        id="odd-huge-pages",
    ),
    pytest.param(
        "",
        "memory=1Gi,hugepages-big=2Mi",
        f'{PLACE}.limits[hugepages-big]: Invalid value: "2Mi": 2Mi is not positive integer multiple of hugepages-big',
        id="unreadable-page-size",
    ),
    pytest.param(
        "",
        "memory=1Gi,hugepages-0=2Mi",
        f'{PLACE}.limits[hugepages-0]: Invalid value: "2Mi": 2Mi is not positive integer multiple of hugepages-0',
        id="huge-pages-of-no-size",
    ),
    pytest.param(
        "pods=1",
        "",
        f'{PLACE}.requests[pods]: Invalid value: "pods": must be a standard resource for containers',
        id="pods",
    ),
    pytest.param(
        "",
        "requests.example.com/gpu=1",
        f'{PLACE}.limits[requests.example.com/gpu]: Invalid value: "requests.example.com/gpu": '
        "doesn't follow extended resource name standard",
        id="quota-name-in-a-container",
    ),
]


@pytest.mark.parametrize(("requests", "limits", "message"), CASES)
def test_each_rule_has_the_words_of_the_api_server(requests, limits, message):
    """One rule, one message."""
    assert [str(error) for error in validate_resources(pod(container(requests=requests, limits=limits)))] == [message]


def test_a_name_that_means_nothing_is_refused_twice_as_upstream_does():
    """Once as a resource and once as a resource of containers."""
    errors = validate_resources(pod(container(requests="gpu=1")))
    assert [error.detail for error in errors] == [
        "must be a standard resource type or fully qualified",
        "must be a standard resource for containers",
    ]


def test_init_containers_and_overhead_are_checked_too():
    """The paths say where."""
    given = pod(container(), init=(container("i", requests="cpu=2", limits="cpu=1"),), overhead=amounts("cpu=-1"))
    assert [error.path for error in validate_resources(given)] == [
        "spec.initContainers[0].resources.requests",
        "spec.overhead.limits[cpu]",
    ]


def test_a_pod_without_containers_is_refused():
    """Containers are required; init containers alone are no pod."""
    assert [str(error) for error in validate_resources(pod())] == ["spec.containers: Required value"]


POD_LEVEL = [
    pytest.param(
        resources("cpu=1", "cpu=2"),
        'spec.resources.requests[cpu]: Invalid value: "1": '
        "must be greater than or equal to aggregate container requests of 2",
        id="below-the-sum",
    ),
    pytest.param(
        resources("", "memory=1Gi"),
        'spec.resources.containers[0][memory].limits: Invalid value: "2Gi": '
        "must be less than or equal to pod limits of 1Gi",
        id="limit-below-a-container",
    ),
    pytest.param(resources("", "cpu=2"), "", id="absent-is-not-compared"),
    pytest.param(
        resources("ephemeral-storage=1Gi"),
        'spec.resources.requests[ephemeral-storage]: Unsupported value: "ephemeral-storage": '
        'supported values: "cpu", "hugepages-", "memory"',
        id="not-a-pod-level-resource",
    ),
    pytest.param(
        replace(resources(), claims=(ResourceClaim("gpu"),)),
        "spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level",
        id="claims",
    ),
]


@pytest.mark.parametrize(("pod_level", "message"), POD_LEVEL)
def test_containers_must_fit_into_pod_level_resources(pod_level, message):
    """Two containers of one cpu each; the first may use 2Gi."""
    given = pod(
        container("a", requests="cpu=1", limits="memory=2Gi"),
        container("b", requests="cpu=1"),
        resources=pod_level,
        resource_claims=(PodResourceClaim("gpu"),),
    )
    assert "; ".join(str(error) for error in validate_resources(given)) == message


def test_pod_level_huge_pages_cover_the_sum_of_the_containers():
    """Each container fits, both together do not."""
    fits = container("a", requests="hugepages-2Mi=4Mi,cpu=1", limits="hugepages-2Mi=4Mi")
    given = pod(fits, replace(fits, name="b"), resources=resources("cpu=2", "hugepages-2Mi=6Mi"))
    (error,) = validate_resources(given)
    assert error.path == "spec.resources.limits[hugepages-2Mi]"
    assert error.detail == "must be greater than or equal to aggregate container limits of 8Mi"


@pytest.mark.parametrize(
    ("claims", "complaints"),
    [
        pytest.param([("", "")], ["FieldValueRequired"], id="no-name"),
        pytest.param([("gpu", ""), ("gpu", "")], ["FieldValueDuplicate"], id="twice"),
        pytest.param([("gpu", "a"), ("gpu", "b")], [], id="two-requests-of-one-claim"),
        pytest.param([("gpu", "a"), ("gpu", "a")], ["FieldValueDuplicate"], id="one-request-twice"),
        pytest.param([("gpu", "a"), ("gpu", "")], ["FieldValueDuplicate"], id="part-then-whole"),
        pytest.param([("gpu", "A")], ["FieldValueInvalid"], id="bad-request-name"),
        pytest.param([("other", "")], ["FieldValueNotFound"], id="unknown"),
    ],
)
def test_claims_are_named_once_and_belong_to_the_pod(claims, complaints):
    """By the whole claim or by its requests."""
    requirements = ResourceRequirements(claims=tuple(ResourceClaim(*claim) for claim in claims))
    given = pod(Container(name="a", image="x", resources=requirements), resource_claims=(PodResourceClaim("gpu"),))
    assert [error.type for error in validate_resources(given)] == complaints


def test_container_names_are_labels_and_unique_across_init_containers():
    """An image is required as well."""
    given = pod(container("a"), Container(name="B_"), init=(container("a"),))
    assert [(error.path, error.type) for error in validate_pod(given)] == [
        ("spec.containers[1].name", "FieldValueInvalid"),
        ("spec.containers[1].image", "FieldValueRequired"),
        ("spec.initContainers[0].name", "FieldValueDuplicate"),
    ]


def test_a_mirror_pod_must_name_its_node():
    """Only the kubelet makes mirror pods, and it knows where it is."""
    mirror = replace(pod(container()), metadata=ObjectMeta(annotations={MIRROR_ANNOTATION: "x"}))
    assert [error.path for error in validate_pod(mirror)] == [f"metadata.annotations[{MIRROR_ANNOTATION}]"]
    assert validate_pod(replace(mirror, spec=replace(mirror.spec, node_name="n"))) == ()


def test_windows_pods_have_no_pod_level_resources():
    """Nothing more is said about them then."""
    given = pod(container(), resources=resources("cpu=2", "cpu=1"), os=PodOS("windows"))
    (error,) = validate_resources(given)
    assert str(error) == "spec.resources: Forbidden: may not be set for a windows pod"


def test_a_container_needs_a_name():
    """Of at least one character."""
    assert [str(error) for error in validate_pod(pod(container("")))] == ["spec.containers[0].name: Required value"]


TOLERATIONS = [
    pytest.param(Toleration("a", "Exists"), [], id="fine"),
    pytest.param(Toleration("", "Exists"), [], id="everything"),
    pytest.param(Toleration("a b", "Exists"), ["key"], id="bad-key"),
    pytest.param(Toleration("", "Equal", "x"), ["operator"], id="no-key"),
    pytest.param(Toleration("a", "Exists", "x"), ["operator"], id="exists-with-value"),
    pytest.param(Toleration("a", "Equal", "not a label"), ["operator"], id="bad-value"),
    pytest.param(Toleration("a", "", "x" * 64), ["operator"], id="long-value"),
    pytest.param(Toleration("a", "Lt", "5"), ["operator"], id="unknown-operator"),
    pytest.param(Toleration("a", "Exists", "", "NoSuchEffect"), ["effect"], id="unknown-effect"),
    pytest.param(Toleration("a", "Exists", "", "NoSchedule", 5), ["effect"], id="seconds-without-no-execute"),
]


@pytest.mark.parametrize(("toleration", "fields"), TOLERATIONS)
def test_tolerations_of_a_new_pod_are_checked(toleration, fields):
    """The paths say which and what about it."""
    errors = validate_new_pod(pod(container(), tolerations=(toleration,)))
    assert [error.path for error in errors] == [f"spec.tolerations[0].{field}" for field in fields]
