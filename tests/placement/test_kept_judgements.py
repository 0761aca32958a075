"""What is kept of nodes between pods, against judging every node anew."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from placement.clusters import (
    REPLICA_SET,
    ZONE,
    away,
    clusters,
    near,
    node,
    pod,
    rather_away,
    rather_near,
    spread,
    term,
)
from podqos.model.node import LABEL_HOSTNAME, Taint
from podqos.model.profile import profile_for
from podqos.placement.filters import SchedulerCluster
from podqos.placement.place import PlacementSurroundings, QueueOrder, Status, place
from podqos.placement.schedule import Chooser


class Forgetful(Chooser):
    """Judges every node anew for every pod."""

    def __init__(self, cluster, *, explains=False):
        super().__init__(cluster, explains=explains)
        self._lasting = cluster

    def choose(self, view):
        lasting = self._lasting
        self._cluster = SchedulerCluster(lasting.states, lasting.namespaces, lasting.profile, lasting.nominations)
        return super().choose(view)


def assert_both_agree(pods, surroundings, order=QueueOrder.PRIORITY):
    kept = place(pods, surroundings, order=order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("podqos.placement.place.Chooser", Forgetful)
        fresh = place(pods, surroundings, order=order)
    assert kept.outcomes == fresh.outcomes
    assert kept.displacements == fresh.displacements
    assert kept.scores == fresh.scores
    return kept


@pytest.mark.slow
@pytest.mark.parametrize("order", QueueOrder)
@given(clusters())
@settings(max_examples=120, deadline=None)
def test_every_pod_gets_the_node_that_it_would_get_if_nothing_were_kept(order, cluster):
    assert_both_agree(*cluster, order=order)


@given(clusters())
@settings(max_examples=50, deadline=None)
def test_it_does_so_where_conditions_are_not_taints(cluster):
    pods, surroundings = cluster
    assert_both_agree(pods, replace(surroundings, profile=profile_for((1, 11))))


@given(clusters())
@settings(max_examples=50, deadline=None)
def test_it_does_so_where_the_balance_with_the_pod_counts(cluster):
    pods, surroundings = cluster
    assert_both_agree(pods, replace(surroundings, profile=profile_for((1, 32))))


@given(clusters())
@settings(max_examples=15, deadline=None)
def test_it_does_so_by_the_rules_of_1_37(cluster):
    pods, surroundings = cluster
    assert_both_agree(pods, replace(surroundings, profile=profile_for((1, 37))))


@pytest.mark.parametrize(
    "like",
    [
        {"owners": (REPLICA_SET,)},
        {
            "topology_spread_constraints": tuple(
                spread(1, "w", key, when="ScheduleAnyway") for key in (ZONE, LABEL_HOSTNAME)
            )
        },
    ],
)
def test_it_does_so_where_some_nodes_lack_a_label_that_pods_are_spread_over(like):
    """Such a node takes part where the scheduler spreads of its own accord, and else is the last choice."""
    nodes = (node("a", labels={ZONE: "a"}), node("b", labels={ZONE: "b"}), node("plain", "8", "16Gi"))
    pods = [pod(f"w{index}", "100m", labels={"app": "w"}, **like) for index in range(6)]
    placement = assert_both_agree(pods, PlacementSurroundings(nodes))
    assert ("plain" in {outcome.node for outcome in placement.outcomes}) is ("owners" in like)


def larger_cluster(seed: int):
    """Make 30 nodes and 500 pods of twenty workloads in any order: more than fit, of several priorities."""
    chance = random.Random(seed)  # noqa: S311 - the same cluster every time
    nodes = tuple(
        node(
            f"n{index:02}",
            chance.choice(("4", "8", "16")),
            f"{chance.randint(8_000_000, 32_000_000)}Ki",
            labels={ZONE: f"z{index % 3}"},
            taints=(Taint("dedicated", "gpu", "PreferNoSchedule" if index % 2 else "NoSchedule"),)
            if index % 7 == 0
            else (),
        )
        for index in range(30)
    )
    constraints = [
        {},
        {},
        {"topology_spread_constraints": (spread(1, "w2"),)},
        {"affinity": away(term("w3", LABEL_HOSTNAME))},
        {"affinity": near(term("w0"))},
        {"affinity": away(term("w1", ZONE))},
        {"affinity": rather_near(10, term("w7"))},
        {"affinity": rather_away(10, term("w0", LABEL_HOSTNAME))},
        {"topology_spread_constraints": (spread(1, "w8", when="ScheduleAnyway"),)},
        {"owners": (REPLICA_SET,)},
    ]
    templates = [
        pod(
            f"w{index}",
            f"{chance.randint(50, 1500)}m",
            f"{chance.randint(64, 4096)}Mi",
            labels={"app": f"w{index}"},
            priority=chance.choice((None, 10, 1000)),
            **constraints[index % 10],
        )
        for index in range(20)
    ]
    chosen = [chance.choice(templates) for _ in range(500)]
    return [
        replace(template, metadata=replace(template.metadata, name=f"p{index}"))
        for index, template in enumerate(chosen)
    ], PlacementSurroundings(nodes)


@pytest.mark.parametrize("order", QueueOrder)
@pytest.mark.parametrize("seed", range(3))
def test_it_does_so_while_hundreds_of_pods_come_and_go(order, seed):
    placement = assert_both_agree(*larger_cluster(seed), order=order)
    assert {outcome.status for outcome in placement.outcomes} == {Status.PLACED, Status.PENDING}
    assert bool(placement.displacements) is (order is QueueOrder.ARRIVAL)
