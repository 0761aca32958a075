"""Source 003, "Allocating Node Resources" (OKD 3.9): what it says about resources, classes and cgroups.

Eviction, overcommit and admission have their own places.
"""

from __future__ import annotations

import pytest

from podqos.model.pod import QOSClass
from podqos.model.quantity import Quantity
from podqos.qos.classes import class_per_resource

BEST_EFFORT, BURSTABLE, GUARANTEED = QOSClass.BEST_EFFORT, QOSClass.BURSTABLE, QOSClass.GUARANTEED


def _container(resources: str) -> str:
    return f"containers: [{{name: app, resources: {resources}}}]"


def _resources(pod):
    (container,) = pod.spec.containers
    return container.resources


def test_limits_are_the_default_of_requests(admitted):
    resources = _resources(admitted(_container("{limits: {cpu: 500m, memory: 1Gi}}")))

    assert resources.requests == {"cpu": Quantity.parse("500m"), "memory": Quantity.parse("1Gi")}


def test_a_request_that_is_stated_stays(admitted):
    resources = _resources(admitted(_container("{requests: {cpu: 100m}, limits: {cpu: 500m, memory: 1Gi}}")))

    assert resources.requests == {"cpu": Quantity.parse("100m"), "memory": Quantity.parse("1Gi")}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param("{requests: {cpu: 1}, limits: {cpu: 1}}", GUARANTEED, id="0 < requests == limits"),
        pytest.param("{requests: {cpu: 1}, limits: {cpu: 2}}", BURSTABLE, id="0 < requests < limits"),
        pytest.param("{requests: {cpu: 1}}", BURSTABLE, id="0 < requests, no limit"),
        pytest.param("{}", BEST_EFFORT, id="neither"),
    ],
)
def test_class_of_each_compute_resource(admitted, resources, expected):
    assert class_per_resource(_resources(admitted(_container(resources))))["cpu"] is expected


def test_cpu_and_memory_of_one_container_can_have_different_classes(admitted):
    view = class_per_resource(
        _resources(admitted(_container("{requests: {cpu: 100m, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}}")))
    )

    assert view == {"cpu": BURSTABLE, "memory": GUARANTEED}
