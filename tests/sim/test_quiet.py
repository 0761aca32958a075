"""Which nodes rest, and that those that wake go on as if they had been there all the time."""

from __future__ import annotations

import pytest

from eviction.nodes import pod
from podqos.agent.journal import encode
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.sim.agenda import Agenda
from podqos.sim.cluster import SimCluster
from podqos.sim.curve import Clock, Curve
from podqos.sim.run import simulate
from podqos.sim.scenario import NodeGroup, NodeLost
from sim.worlds import MI, SECOND_US, node, ramp, scenario, using, workload


def resting(made) -> int:
    """Return how many nodes are not set up at the beginning."""
    return len(SimCluster(made, Agenda(made.duration_us), is_watched=lambda _: False).fleet.resting())


def fleet(demand, made="a", count=5, seconds=100, happenings=(), **fields):
    spread = {"nodes": (), "spread": True, "kind": "Deployment", "replicas": count * 2, "recreate": True}
    workloads = [workload(pod(made, limits="memory=100Mi,cpu=1"), demand, **{**spread, **fields})]
    groups = (NodeGroup(node(config=KubeletConfiguration(eviction_hard={"memory.available": "100Mi"})), count),)
    return scenario(*workloads, seconds=seconds, nodes=groups, happenings=happenings)


LOUD = {
    "beyond a limit": using(200 * MI),
    "beyond a quota": using(MI, cpu_milli=1500),
    "ending": using(MI, exits_after_us=SECOND_US),
    "too many processes": using(MI, pids=5_000_000),
    "a full disk": using(MI, logs_bytes=1 << 50),
}


@pytest.mark.parametrize("demand", LOUD.values(), ids=LOUD)
def test_a_node_with_something_to_do_is_set_up(demand):
    assert resting(fleet(demand)) == 0


QUIET = {
    "idle": using(),
    "steady": using(50 * MI, cpu_milli=500),
    "daily": using(ramp(0, 90 * MI, 60, clock=Clock.SCENARIO)),
}


@pytest.mark.parametrize("demand", QUIET.values(), ids=QUIET)
def test_a_node_with_nothing_to_do_rests_and_its_journal_is_the_same(demand):
    made = fleet(demand)
    assert resting(made) == 5
    assert encode(simulate(made).entries) == encode(simulate(made, check=True).entries)


WAKING = {
    "a leak that reaches its limit": fleet(using(ramp(0, 150 * MI, 60))),
    "a leak that begins late": fleet(using(Curve(((0, MI), (50 * SECOND_US, MI), (60 * SECOND_US, 120 * MI))))),
    "a deletion": fleet(using(MI), deleted_us=30 * SECOND_US),
    "a node that is lost": fleet(using(MI), seconds=500, happenings=(NodeLost(at_us=3 * SECOND_US, node="n-1"),)),
    "a late arrival": fleet(using(MI), arrives_us=40 * SECOND_US),
}


@pytest.mark.parametrize("made", WAKING.values(), ids=WAKING)
def test_a_node_that_wakes_goes_on_as_if_it_had_been_there_all_the_time(made):
    assert encode(simulate(made).entries) == encode(simulate(made, check=True).entries)


def test_many_quiet_nodes_cost_no_events():
    assert simulate(fleet(using(MI), count=300)).tallies.events == 1
