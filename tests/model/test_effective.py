"""Effective pod amounts: sidecars, init containers, pod-level amounts, overhead."""

from __future__ import annotations

import pytest
from hypothesis import given

from podqos.model.effective import pod_level_is_set, pod_limits, pod_requests
from podqos.model.pod import Container, Pod, PodSpec
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceRequirements
from strategies import pods


def requesting(memory: str, *, sidecar: bool = False) -> Container:
    return Container(
        resources=ResourceRequirements(requests={"memory": Quantity.parse(memory)}),
        restart_policy="Always" if sidecar else "",
    )


@pytest.mark.parametrize(
    ("containers", "init_containers", "expected"),
    [
        pytest.param([requesting("1Gi"), requesting("2Gi")], [], "3Gi", id="containers run together"),
        pytest.param([requesting("1Gi")], [requesting("4Gi")], "4Gi", id="the largest init container counts"),
        pytest.param([requesting("3Gi")], [requesting("1Gi"), requesting("2Gi")], "3Gi", id="init run one by one"),
        pytest.param([requesting("1Gi")], [requesting("2Gi", sidecar=True)], "3Gi", id="a sidecar stays"),
        pytest.param(
            [requesting("1Gi")],
            [requesting("2Gi", sidecar=True), requesting("3Gi")],
            "5Gi",
            id="an init container starts beside the sidecars before it",
        ),
        pytest.param(
            [requesting("1Gi")],
            [requesting("3Gi"), requesting("2Gi", sidecar=True)],
            "3Gi",
            id="but not beside those after it",
        ),
    ],
)
def test_effective_request_is_the_larger_of_start_and_run(containers, init_containers, expected):
    pod = Pod(spec=PodSpec(containers=tuple(containers), init_containers=tuple(init_containers)))
    assert pod_requests(pod) == {"memory": Quantity.parse(expected)}


def test_overhead_is_added_to_requests_always_and_to_limits_only_where_one_exists():
    cpu, memory = Quantity.parse("1"), Quantity.parse("1Gi")
    resources = ResourceRequirements(requests={"cpu": cpu}, limits={"memory": memory})
    pod = Pod(spec=PodSpec(containers=(Container(resources=resources),), overhead={"cpu": cpu, "memory": memory}))
    assert pod_requests(pod) == {"cpu": cpu + cpu, "memory": memory}
    assert pod_limits(pod) == {"memory": memory + memory}


def test_pod_level_amounts_replace_sums_but_only_of_cpu_memory_and_huge_pages():
    one, two = Quantity.parse("1"), Quantity.parse("2")
    pod = Pod(
        spec=PodSpec(
            containers=(Container(resources=ResourceRequirements(requests={"cpu": one, "ephemeral-storage": one})),),
            resources=ResourceRequirements(requests={"cpu": two, "ephemeral-storage": two}),
        )
    )
    assert pod_requests(pod) == {"cpu": two, "ephemeral-storage": one}


@given(pods())
def test_a_pod_needs_at_least_what_each_of_its_containers_needs(pod):
    total = pod_requests(pod, pod_level=False)
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        for name, amount in container.resources.requests.items():
            assert total[name] >= amount


@given(pods())
def test_pod_level_resources_are_set_only_where_an_amount_of_theirs_is(pod):
    if pod.spec.resources is None:
        assert not pod_level_is_set(pod)
    else:
        named = {*pod.spec.resources.requests, *pod.spec.resources.limits}
        assert pod_level_is_set(pod) == bool(named & {"cpu", "memory"})
