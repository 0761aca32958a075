"""The worked numbers of the content platform: 8 cores and 50Gi remaining, 32/14 and 16/8."""

from __future__ import annotations

from fractions import Fraction

import pytest

from placement.clusters import amounts, node, pod
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import Node, NodeStatus
from podqos.model.pod import Container, ObjectMeta, Pod, PodSpec
from podqos.model.resources import ResourceRequirements
from podqos.placement.allocatable import node_allocatable
from podqos.placement.overcommit import Overcommit, largest_shares, overcommit
from podqos.placement.pods import SchedulerNode, Views


def state_with(*pods: Pod, on: Node | None = None) -> SchedulerNode:
    state = SchedulerNode(on or platform_node())
    for one_pod in pods:
        state.add(Views().of(one_pod))
    return state


def platform_node() -> Node:
    """16 cores and 64Gi, of which 14 cores and 60Gi are allocatable."""
    reserved = {"cpu": "1", "memory": "2Gi"}
    config = KubeletConfiguration(kube_reserved=reserved, system_reserved=reserved, eviction_hard={})
    divided = node_allocatable(amounts(cpu="16", memory="64Gi"), config)
    return Node(ObjectMeta("node"), status=NodeStatus(divided.capacity, divided.allocatable))


def guaranteed(name: str, cpu: str, memory: str) -> Pod:
    return pod(name, cpu, memory, limits={"cpu": cpu, "memory": memory})


def burstable(name: str, cpu: str, limit: str) -> Pod:
    return pod(name, cpu, limits={"cpu": limit})


GUARANTEED = (
    guaranteed("article-service", "2", "4Gi"),
    guaranteed("search-api", "2", "2Gi"),
    guaranteed("cdn-origin", "2", "4Gi"),
)
SLOW = (
    *(burstable(f"analytics-{index}", "500m", "4") for index in range(1, 5)),
    *(burstable(f"indexer-{index}", "1", "4") for index in range(1, 5)),
)
FAST = tuple(burstable(f"{name}-{index}", "1", "2") for name in ("analytics", "indexer") for index in range(1, 5))


def of(state: SchedulerNode, resource: str) -> Overcommit:
    return {ratios.resource: ratios for ratios in overcommit(state)}[resource]


def test_after_the_guaranteed_pods_8_cores_and_50_gi_remain():
    state = state_with(*GUARANTEED)
    assert of(state, "cpu").remaining == 8000
    assert of(state, "memory").remaining == 50 * 2**30


def test_uncontrolled_bursting_promises_32_cores_of_14():
    """2.3 times what the node has; the listed pods request 6 cores, not 8."""
    cpu = of(state_with(*SLOW), "cpu")
    assert cpu.limits_to_allocatable == Fraction(32, 14)
    assert cpu.limits_to_requests == Fraction(32, 6)
    assert cpu.exceeds_budget


def test_with_a_burst_budget_16_cores_are_promised_of_the_8_that_remain():
    cpu = of(state_with(*GUARANTEED, *FAST), "cpu")
    assert cpu.others_to_rest == Fraction(16, 8)
    assert of(state_with(*FAST), "cpu").limits_to_requests == Fraction(16, 8)
    assert cpu.limits_to_allocatable == Fraction(22, 14)
    assert not cpu.exceeds_budget


@pytest.mark.parametrize(("limit", "exceeds"), [("28", False), ("28001m", True)])
def test_the_budget_of_two_for_cpu_may_be_reached_but_not_passed(limit, exceeds):
    assert of(state_with(burstable("p", "1", limit)), "cpu").exceeds_budget is exceeds


@pytest.mark.parametrize(("limit", "exceeds"), [("72Gi", False), ("73Gi", True)])
def test_memory_may_be_overcommitted_by_a_fifth(limit, exceeds):
    assert of(state_with(pod("p", memory="1Gi", limits={"memory": limit})), "memory").exceeds_budget is exceeds


def test_who_goes_furthest_beyond_its_request_comes_first():
    shares = largest_shares(state_with(*SLOW, *GUARANTEED, pod("no-limit", "1")), "cpu")
    assert [(share.pod, share.beyond_request) for share in shares[3:5]] == [
        ("default/analytics-4", 3500),
        ("default/indexer-1", 3000),
    ]
    assert len(shares) == 8


def test_pods_without_a_limit_are_named_because_they_may_take_everything():
    sidecar = Container("s", restart_policy="Always")
    limited = ResourceRequirements(limits=amounts(cpu="1", memory="1Gi"))
    pods = (
        pod("requests-only", "1", "1Gi"),
        pod("limited", limits={"cpu": "1", "memory": "1Gi"}),
        Pod(
            ObjectMeta("with-sidecar", "default"),
            PodSpec(containers=(Container("c", resources=limited),), init_containers=(sidecar,)),
        ),
        Pod(ObjectMeta("pod-level", "default"), PodSpec(containers=(Container("c"),), resources=limited)),
    )
    assert of(state_with(*pods), "cpu").unlimited == ("default/requests-only", "default/with-sidecar")


def test_a_node_with_nothing_has_no_ratio_but_may_be_overcommitted():
    cpu = of(state_with(burstable("p", "0", "1"), on=node("empty", cpu="0")), "cpu")
    assert cpu.limits_to_allocatable is None
    assert cpu.exceeds_budget
    assert not of(state_with(on=node("empty", cpu="0")), "cpu").exceeds_budget
