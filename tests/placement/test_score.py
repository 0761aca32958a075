from __future__ import annotations

import pytest

from placement.clusters import amounts, node, pod
from podqos.model.pod import Container, Pod, PodSpec
from podqos.model.resources import ResourceRequirements
from podqos.placement.demand import demand_of
from podqos.placement.node_state import NodeState
from podqos.placement.place import Surroundings, place
from podqos.placement.pod_view import PodView, Shape
from podqos.placement.score import balanced_allocation, least_allocated


def state(*pods, **properties) -> NodeState:
    made = NodeState(node("n", **properties))
    for one_pod in pods:
        made.add(PodView(one_pod, Shape(one_pod)))
    return made


def test_least_allocated_is_the_mean_of_what_is_left():
    """4 cores and 8Gi: 1 core leaves 75 %, 6Gi leave 25 %."""
    assert least_allocated(demand_of(pod("p", "1", "6Gi")), state()) == 50


def test_every_share_is_rounded_down_and_so_is_the_mean():
    """1 of 3 cores leaves 66.6 %, 1Gi of 8Gi 87.5 %."""
    assert least_allocated(demand_of(pod("p", "1", "1Gi")), state(cpu="3")) == (66 + 87) // 2


def test_balanced_allocation_loses_half_the_difference():
    assert balanced_allocation(demand_of(pod("p", "1", "6Gi")), state()) == 75
    assert balanced_allocation(demand_of(pod("p", "1", "2Gi")), state()) == 100


def test_pods_on_the_node_count():
    assert least_allocated(demand_of(pod("p", "1", "2Gi")), state(pod("q", "1", "2Gi"))) == 50


@pytest.mark.usefixtures("each_chooser")
def test_containers_without_requests_count_for_something_when_nodes_are_compared():
    """100m and 200Mi each; otherwise BestEffort pods would pile up on one node."""
    demand = demand_of(pod("p"))
    assert (demand.requested, demand.scored_cpu_milli, demand.scored_memory_bytes) == ({}, 100, 200 * 2**20)
    assert balanced_allocation(demand, state()) == 0
    nodes = tuple(node(f"n{index}") for index in range(3))
    placement = place([pod(f"p{index}") for index in range(6)], Surroundings(nodes))
    assert [outcome.node for outcome in placement.outcomes] == ["n0", "n1", "n2"] * 2


@pytest.mark.parametrize(
    ("pod_level", "cpu_milli", "memory_bytes"),
    [
        pytest.param(None, 100 + 300, 200 * 2**20 * 2, id="assumed per container"),
        pytest.param({"cpu": "2"}, 2000, 200 * 2**20 * 2, id="pod-level cpu speaks for all containers"),
        pytest.param({"cpu": "2", "memory": "1Gi"}, 2000, 2**30, id="pod-level cpu and memory"),
    ],
)
def test_what_is_assumed_depends_on_pod_level_requests(pod_level, cpu_milli, memory_bytes):
    containers = (Container("a"), Container("b", resources=ResourceRequirements(amounts(cpu="300m"))))
    own = ResourceRequirements(amounts(**pod_level)) if pod_level else None
    demand = demand_of(Pod(spec=PodSpec(containers=containers, resources=own)))
    assert (demand.scored_cpu_milli, demand.scored_memory_bytes) == (cpu_milli, memory_bytes)


def test_overhead_counts_too():
    demand = demand_of(pod("p", overhead=amounts(cpu="50m", memory="1Mi")))
    assert (demand.scored_cpu_milli, demand.scored_memory_bytes) == (150, 201 * 2**20)
    assert demand.requested == {"cpu": 50, "memory": 2**20}


@pytest.mark.usefixtures("each_chooser")
def test_the_emptier_node_is_taken_and_the_first_by_name_among_equals():
    nodes = (node("b"), node("a"), node("c"))
    pods = [pod("there", "1", "2Gi", on="a"), pod("p", "1", "2Gi")]
    assert place(pods, Surroundings(nodes)).outcomes[1].node == "b"


def test_a_node_without_any_memory_is_scored_by_its_cpu():
    assert least_allocated(demand_of(pod("p", "1")), state(memory="0")) == 75
    assert balanced_allocation(demand_of(pod("p", "1")), state(memory="0")) == 100
    assert least_allocated(demand_of(pod("p")), state(cpu="0", memory="0")) == 0
