"""Source 003, "Allocating Node Resources" (OKD 3.9): what it says about resources, classes and cgroups.

Eviction, overcommit and admission have their own places.
"""

from __future__ import annotations

import pytest

from podqos.model.pod import QOSClass
from podqos.model.quantity import Quantity
from podqos.qos.cgroup import Level, node_cgroups, pod_cgroups
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion
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


# What becomes of requests and limits in the kernel

GIB = 2**30


def _app_cgroup(pod, version=CgroupVersion.V1):
    settings = CgroupSettings(node_memory_bytes=64 * GIB, cgroup_version=version)
    (cgroup,) = (each for each in pod_cgroups(pod, BURSTABLE, settings) if each.level is Level.CONTAINER)
    return cgroup


def test_excess_cpu_is_shared_in_proportion_to_requests(admitted):
    """500m to 250m is 2 to 1."""
    larger, smaller = (
        int(_app_cgroup(admitted(_container(f"{{requests: {{cpu: {cpu}}}}}"))).text("cpu.shares"))
        for cpu in ("500m", "250m")
    )

    assert larger == 2 * smaller


def test_cpu_limits_are_enforced_over_100_ms(admitted):
    cgroup = _app_cgroup(admitted(_container("{limits: {cpu: 250m}}")), CgroupVersion.V2)

    assert cgroup.text("cpu.max") == "25000 100000"


@pytest.mark.parametrize(
    ("percent", "burstable_gib", "best_effort_gib"),
    [
        pytest.param(0, 60, 60, id="nothing is kept for the higher class"),
        pytest.param(50, 55, 53, id="half"),
        pytest.param(100, 50, 46, id="everything a higher class requests is kept for it"),
    ],
)
def test_qos_reserved_keeps_the_memory_of_higher_classes(admitted, percent, burstable_gib, best_effort_gib):
    guaranteed = admitted(_container("{limits: {cpu: 2, memory: 10Gi}}"))
    burstable = admitted(_container("{requests: {memory: 4Gi}}"))
    settings = CgroupSettings(
        node_memory_bytes=64 * GIB,
        node_allocatable={"memory": Quantity.parse("60Gi")},
        qos_reserved_memory_percent=percent,
    )

    _, *classes = node_cgroups((guaranteed, burstable), settings)

    assert [int(cgroup.text("memory.max")) for cgroup in classes] == [burstable_gib * GIB, best_effort_gib * GIB]
