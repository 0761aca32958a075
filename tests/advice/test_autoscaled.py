from __future__ import annotations

import pytest

from admission.pods import container, pod
from podqos.advice.sizing.autoscaled import replicas_after
from podqos.model.autoscaling import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    Metric,
    MetricTarget,
    ResourceMetric,
)
from podqos.model.pod import ObjectMeta
from podqos.model.quantity import Quantity


def autoscaler(*metrics: ResourceMetric, least: int = 1, most: int = 20) -> HorizontalPodAutoscaler:
    spec = HorizontalPodAutoscalerSpec(
        min_replicas=least, max_replicas=most, metrics=tuple(Metric(resource=metric) for metric in metrics)
    )
    return HorizontalPodAutoscaler(ObjectMeta("web", "shop"), spec)


CPU_AT_50 = ResourceMetric("cpu", target=MetricTarget(50))
MEMORY_AT_80 = ResourceMetric("memory", target=MetricTarget(80))


def requests(text: str, sidecar: str = ""):
    return pod(container("app", requests=text), *((container("proxy", requests=sidecar),) if sidecar else ()))


@pytest.mark.parametrize(
    ("new", "replicas", "same_target"),
    [
        pytest.param("cpu=500m", 8, 100, id="half-the-request-doubles-the-replicas"),
        pytest.param("cpu=2", 2, 25, id="twice-the-request-halves-them"),
        pytest.param("cpu=950m", 4, 53, id="within-the-tolerance-they-stay"),
        pytest.param("cpu=300m", 14, 167, id="rounded-up"),
    ],
)
def test_a_target_in_percent_of_the_request_changes_the_replicas_with_the_request(new, replicas, same_target):
    found = replicas_after(autoscaler(CPU_AT_50), 4, requests("cpu=1"), requests(new))
    assert (found.replicas_before, found.replicas, found.same_target_percent) == (4, replicas, same_target)
    assert (found.autoscaler, found.resource, found.target_percent) == ("shop/web", "cpu", 50)


def test_known_usage_decides_instead_of_the_target():
    """200m in a request of 500m is 40 %, below the target of 50 %: ceil(4 × 0.8)."""
    used = {"cpu": {"app": 200}}
    assert replicas_after(autoscaler(CPU_AT_50), 4, requests("cpu=1"), requests("cpu=500m"), used).replicas == 4
    used = {"cpu": {"app": 100}}
    assert replicas_after(autoscaler(CPU_AT_50), 4, requests("cpu=1"), requests("cpu=500m"), used).replicas == 2


def test_the_replicas_stay_between_the_bounds():
    found = replicas_after(autoscaler(CPU_AT_50, most=6), 4, requests("cpu=1"), requests("cpu=500m"))
    assert (found.replicas, found.is_at_most) == (6, True)
    found = replicas_after(autoscaler(CPU_AT_50, least=3), 4, requests("cpu=1"), requests("cpu=4"))
    assert (found.replicas, found.is_at_most) == (3, False)


def test_of_several_metrics_the_one_that_wants_most_decides():
    found = replicas_after(
        autoscaler(CPU_AT_50, MEMORY_AT_80), 4, requests("cpu=1,memory=1Gi"), requests("cpu=2,memory=512Mi")
    )
    assert (found.resource, found.replicas) == ("memory", 8)


def test_all_containers_count_unless_one_is_named():
    before, after = requests("cpu=1", "cpu=1"), requests("cpu=1", "cpu=200m")
    assert replicas_after(autoscaler(CPU_AT_50), 3, before, after).replicas == 5
    named = HorizontalPodAutoscaler(
        ObjectMeta("web"),
        HorizontalPodAutoscalerSpec(
            max_replicas=20,
            metrics=(Metric(container_resource=ResourceMetric("cpu", "app", target=MetricTarget(50))),),
        ),
    )
    assert replicas_after(named, 3, before, after) is None


@pytest.mark.parametrize(
    ("metric", "before", "after"),
    [
        pytest.param(
            ResourceMetric("cpu", target=MetricTarget(None, Quantity.parse("1"))), "cpu=1", "cpu=2", id="amount"
        ),
        pytest.param(CPU_AT_50, "cpu=1", "cpu=1", id="same-request"),
        pytest.param(CPU_AT_50, "memory=1Gi", "cpu=1", id="no-request-before"),
    ],
)
def test_what_does_not_depend_on_the_request_changes_nothing(metric, before, after):
    assert replicas_after(autoscaler(metric), 4, requests(before), requests(after)) is None
