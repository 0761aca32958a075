from __future__ import annotations

import pytest

from admission.pods import container, limit_range, pod, resources
from podqos.admission.changes import Change, Why
from podqos.admission.resource_override import PROFILES, apply_override, is_overridden, validate_override
from podqos.model.pod import ObjectMeta
from podqos.model.policy import ClusterResourceOverride, Namespace

QUARTER = ClusterResourceOverride(
    memory_request_to_limit_percent=25, cpu_request_to_limit_percent=25, limit_cpu_to_memory_percent=200
)
LABEL = PROFILES["current"].opt_in_label
ANNOTATION = PROFILES["okd-3.9"].opt_out_annotation


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES.keys())
def test_requests_become_a_percentage_of_limits_and_cpu_follows_memory(profile):
    """The example of source 003: 25 %, 25 %, 200 %. The cpu request follows the new cpu limit."""
    given = pod(container(requests="cpu=1,memory=1Gi", limits="cpu=1,memory=1Gi"))
    after = apply_override(given, QUARTER, profile=profile)
    assert after.spec.containers[0].resources == resources("cpu=500m,memory=256Mi", "cpu=2,memory=1Gi")


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES.keys())
def test_containers_without_limits_are_left_alone(profile):
    """There is nothing to take a percentage of."""
    given = pod(container(requests="cpu=1,memory=1Gi"))
    assert apply_override(given, QUARTER, profile=profile).spec == given.spec


def test_init_containers_are_overridden_too():
    """They count for the class and for the node."""
    after = apply_override(pod(container(), init=(container("i", limits="memory=1Gi"),)), QUARTER)
    assert after.spec.init_containers[0].resources == resources("cpu=500m,memory=256Mi", "cpu=2,memory=1Gi")


@pytest.mark.parametrize(
    ("limit", "request_after"),
    [
        pytest.param("memory=3Mi", "1Mi", id="whole-mebibytes"),
        pytest.param("memory=5M", "2M", id="whole-megabytes-in-powers-of-ten"),
        pytest.param("memory=1Ki", "1Mi", id="at-least-one"),
    ],
)
def test_memory_is_cut_to_whole_mebibytes(limit, request_after):
    """Down, but never below one MiB."""
    half = ClusterResourceOverride(memory_request_to_limit_percent=50)
    after = apply_override(pod(container(limits=limit)), half)
    assert str(after.spec.containers[0].resources.requests["memory"]) == request_after


@pytest.mark.parametrize(("profile", "milli"), [("okd-3.9", "28m"), ("current", "29m")])
def test_the_old_plug_in_multiplied_by_a_fraction(profile, milli):
    """29 % of 100m: 100 × 0.29 is a little less than 29."""
    override = ClusterResourceOverride(cpu_request_to_limit_percent=29)
    after = apply_override(pod(container(limits="cpu=100m")), override, profile=PROFILES[profile])
    assert str(after.spec.containers[0].resources.requests["cpu"]) == milli


def test_the_present_webhook_keeps_within_the_bounds_of_a_limit_range():
    """Raised to the smallest minimum, lowered to the largest maximum."""
    bounds = (limit_range("a", min="cpu=1", max="cpu=3"), limit_range("b", min="cpu=800m"))
    after = apply_override(pod(container(limits="memory=2Gi")), QUARTER, bounds)
    assert after.spec.containers[0].resources == resources("cpu=800m,memory=512Mi", "cpu=3,memory=2Gi")


def test_the_record_names_each_rule():
    """Before, after, why."""
    record: list[Change] = []
    apply_override(pod(container(requests="memory=1Gi", limits="memory=1Gi")), QUARTER, record=record)
    place = "spec.containers[0].resources"
    assert [(change.path, change.resource, str(change.before), str(change.after), change.why) for change in record] == [
        (f"{place}.requests", "memory", "1Gi", "256Mi", Why.MEMORY_REQUEST_FROM_LIMIT),
        (f"{place}.limits", "cpu", "None", "2", Why.CPU_LIMIT_FROM_MEMORY),
        (f"{place}.requests", "cpu", "None", "500m", Why.CPU_REQUEST_FROM_LIMIT),
    ]


@pytest.mark.parametrize(
    ("profile", "metadata", "takes_part"),
    [
        pytest.param("okd-3.9", ObjectMeta("shop"), True, id="okd-by-default"),
        pytest.param("okd-3.9", ObjectMeta("shop", annotations={ANNOTATION: "false"}), False, id="okd-opt-out"),
        pytest.param("okd-3.9", ObjectMeta("shop", annotations={ANNOTATION: "true"}), True, id="okd-said-so"),
        pytest.param("current", ObjectMeta("shop"), False, id="current-not-by-default"),
        pytest.param("current", ObjectMeta("shop", labels={LABEL: "true"}), True, id="current-opt-in"),
        pytest.param("current", ObjectMeta("shop", labels={LABEL: "yes"}), False, id="current-only-true"),
        pytest.param("current", ObjectMeta("kube-system", labels={LABEL: "true"}), False, id="current-exempt"),
    ],
)
def test_namespaces_opt_out_of_the_old_one_and_into_the_new_one(profile, metadata, takes_part):
    """By annotation, by label."""
    assert is_overridden(Namespace(metadata), PROFILES[profile]) is takes_part


@pytest.mark.parametrize(
    ("override", "paths"),
    [
        pytest.param(QUARTER, [], id="fine"),
        pytest.param(ClusterResourceOverride(), ["ClusterResourceOverride"], id="nothing-set"),
        pytest.param(ClusterResourceOverride(101), ["memoryRequestToLimitPercent"], id="over-100"),
        pytest.param(ClusterResourceOverride(1, -1), ["cpuRequestToLimitPercent"], id="below-0"),
        pytest.param(ClusterResourceOverride(1, 1, -5), ["limitCPUToMemoryPercent"], id="negative"),
    ],
)
def test_percentages_are_checked(override, paths):
    """1–100 for requests, positive for cpu by memory."""
    assert [error.path for error in validate_override(override)] == paths
