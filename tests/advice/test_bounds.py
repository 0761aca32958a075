from __future__ import annotations

import pytest

from admission.pods import amounts, resources
from podqos.advice.sizing.bounds import Bound, bounded, quota_shortfalls
from podqos.model.autoscaling import (
    ContainerResourcePolicy,
    PodResourcePolicy,
    ScaleTarget,
    VerticalPodAutoscaler,
    VerticalPodAutoscalerSpec,
    VerticalUpdatePolicy,
)
from podqos.model.pod import ObjectMeta
from podqos.model.policy import (
    LimitRange,
    LimitRangeItem,
    LimitRangeSpec,
    ResourceQuota,
    ResourceQuotaSpec,
    ResourceQuotaStatus,
)


def limit_range(least: str = "", most: str = "", ratio: str = "", kind: str = "Container") -> LimitRange:
    item = LimitRangeItem(kind, max=amounts(most), min=amounts(least), max_limit_request_ratio=amounts(ratio))
    return LimitRange(ObjectMeta("limits", "shop"), LimitRangeSpec((item,)))


def autoscaler(least: str = "", most: str = "", mode: str = "Auto") -> VerticalPodAutoscaler:
    policy = ContainerResourcePolicy("app", min_allowed=amounts(least), max_allowed=amounts(most))
    spec = VerticalPodAutoscalerSpec(
        ScaleTarget("Deployment", "web"), VerticalUpdatePolicy(mode), PodResourcePolicy((policy,))
    )
    return VerticalPodAutoscaler(ObjectMeta("web", "shop"), spec)


def said(found):
    return [(change.field, change.bound, str(change.wanted), str(change.amount)) for change in found.changes]


def test_sizes_within_the_bounds_stay():
    given = resources("cpu=1,memory=1Gi", "memory=2Gi")
    found = bounded(given, [limit_range("memory=512Mi", "memory=4Gi", "memory=2")], autoscaler("memory=512Mi"), "app")
    assert (found.resources, found.changes) == (given, ())


def test_a_limit_range_holds_requests_and_limits_and_says_what_was_wanted():
    found = bounded(resources("cpu=10m,memory=3Gi", "memory=6Gi"), [limit_range("cpu=50m", "memory=4Gi")])
    assert found.resources == resources("cpu=50m,memory=3Gi", "memory=4Gi")
    assert said(found) == [("limits.memory", Bound.MOST, "6Gi", "4Gi"), ("requests.cpu", Bound.LEAST, "10m", "50m")]
    assert [(change.by, change.is_below_need) for change in found.changes] == [
        ("LimitRange shop/limits", True),
        ("LimitRange shop/limits", False),
    ]


def test_a_ratio_raises_the_request():
    """The limit covers the need, so that it stays."""
    found = bounded(resources("memory=1000Mi", "memory=4000Mi"), [limit_range(ratio="memory=2")])
    assert found.resources == resources("memory=2000Mi", "memory=4000Mi")
    assert said(found) == [("requests.memory", Bound.RATIO, "1000Mi", "2000Mi")]


@pytest.mark.parametrize(
    ("request_text", "default", "limits"),
    [
        pytest.param("memory=800Mi", "memory=512Mi", "memory=800Mi", id="too-low"),
        pytest.param("memory=800Mi", "memory=1Gi", "", id="high-enough"),
    ],
)
def test_a_default_limit_below_the_request_is_overridden(request_text, default, limits):
    """The API server would refuse the pod."""
    item = LimitRangeItem("Container", default=amounts(default))
    found = bounded(resources(request_text), [LimitRange(ObjectMeta("limits", "shop"), LimitRangeSpec((item,)))])
    assert found.resources == resources(request_text, limits)
    assert [change.bound for change in found.changes] == ([Bound.DEFAULT] if limits else [])


def test_bounds_of_whole_pods_are_not_those_of_a_container():
    given = resources("memory=3Gi")
    assert bounded(given, [limit_range(most="memory=1Gi", kind="Pod")]).resources == given


@pytest.mark.parametrize(("mode", "expected"), [("Auto", "512Mi"), ("Off", "100Mi")])
def test_a_vpa_that_changes_pods_would_raise_a_request_to_what_it_allows(mode, expected):
    found = bounded(resources("memory=100Mi", "memory=200Mi"), [], autoscaler("memory=512Mi", mode=mode), "app")
    assert str(found.resources.requests["memory"]) == expected
    assert found.resources.requests["memory"] <= found.resources.limits["memory"]


def quota(hard: str, used: str = "") -> ResourceQuota:
    return ResourceQuota(
        ObjectMeta("team", "shop"), ResourceQuotaSpec(amounts(hard)), ResourceQuotaStatus(amounts(hard), amounts(used))
    )


@pytest.mark.parametrize(
    ("hard", "used", "left"),
    [
        pytest.param("requests.memory=10Gi", "requests.memory=9Gi", "1Gi", id="not-enough-left"),
        pytest.param("memory=10Gi", "memory=9Gi", "1Gi", id="the-short-name"),
        pytest.param("requests.memory=10Gi", "requests.memory=8Gi", None, id="enough-left"),
        pytest.param("requests.memory=10Gi", "requests.memory=11Gi", "0", id="used-up"),
        pytest.param("requests.cpu=1", "requests.cpu=1", None, id="another-resource"),
    ],
)
def test_a_quota_that_has_not_enough_left_is_named(hard, used, left):
    found = quota_shortfalls([quota(hard, used)], amounts("requests.memory=2Gi"))
    assert [(each.quota, str(each.left)) for each in found] == ([] if left is None else [("shop/team", left)])
