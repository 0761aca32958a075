"""What happens around the nodes: arrivals, deletions, controllers, the scheduler, nodes that are lost and join."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from eviction.nodes import pod
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import Taint
from podqos.model.profile import profile_for
from podqos.model.time_units import SECOND_US
from podqos.sim.run import simulate
from podqos.sim.scenario.scenario import NodeAdded, NodeGroup, NodeLost, Options
from sim.worlds import MI, lines, node, ramp, scenario, using, workload

PRESSURE = KubeletConfiguration(eviction_hard={"memory.available": "100Mi"}, enforce_node_allocatable=())


def cluster(*workloads, count=2, seconds=120, spec=None, **fields):
    groups = (NodeGroup(spec or node(), count),)
    return simulate(scenario(*workloads, seconds=seconds, nodes=groups, **fields), check=True)


def placed(made, demand, **fields):
    return workload(made, demand, **{"nodes": (), "kind": "Deployment", "recreate": True, **fields})


def where(done) -> dict[str, str]:
    return {entry.pod.removeprefix("default/"): entry.node for entry in done.entries if entry.kind == "Placed"}


def test_pods_are_spread_evenly_or_placed_by_the_scheduler():
    done = cluster(
        placed(pod("even"), using(1), replicas=4, spread=True),
        placed(pod("free", "memory=300Mi"), using(1), replicas=4),
    )
    started = [(entry.node, entry.pod) for entry in done.entries if entry.kind == "Started"]
    assert [name for name, key in started if "even" in key] == ["n-0", "n-0", "n-1", "n-1"]
    assert sorted(where(done).values()) == ["n-0", "n-0", "n-1", "n-1"]


def test_the_scheduler_keeps_replicas_apart_though_one_node_has_less_left():
    """By room alone, all three would lie on the empty node."""
    made = pod("web", "memory=10Mi")
    labelled = replace(made, metadata=replace(made.metadata, labels={"app": "web"}))
    other = placed(pod("other", "memory=500Mi"), using(1), nodes=("n-0",))
    done = cluster(other, placed(labelled, using(1), replicas=3, arrives_us=SECOND_US))
    assert where(done) == {"web-0": "n-1", "web-1": "n-0", "web-2": "n-1"}
    bare = cluster(other, placed(labelled, using(1), replicas=3, arrives_us=SECOND_US, kind="Job"))
    assert set(where(bare).values()) == {"n-1"}


def test_the_scheduler_prefers_nodes_without_a_taint_that_says_rather_not():
    groups = (
        NodeGroup(node("a", taints=(Taint("slow", "", "PreferNoSchedule"),))),
        NodeGroup(node("b")),
    )
    works = (placed(pod("big", "memory=900Mi"), using(1), nodes=("b",)), placed(pod("p", "memory=10Mi"), using(1)))
    done = simulate(scenario(*works, nodes=groups), check=True)
    assert where(done) == {"p-0": "b"}


def test_a_pod_that_fits_nowhere_waits_until_somebody_leaves():
    done = cluster(
        placed(pod("first", "memory=700Mi"), using(1), deleted_us=20 * SECOND_US),
        placed(pod("second", "memory=700Mi"), using(1)),
        count=1,
    )
    kinds = [(seconds, kind) for seconds, kind, key in lines(done) if key == "default/second-0"]
    assert kinds[:2] == [(0.0, "Pending"), (20.0, "Placed")]


def test_a_more_important_pod_displaces_a_lesser_one_which_then_waits():
    done = cluster(
        placed(pod("low", "memory=700Mi", priority=0), using(1)),
        placed(pod("high", "memory=700Mi", priority=10), using(1), arrives_us=10 * SECOND_US),
        count=1,
    )
    assert lines(done, "Preempted") == [(10.0, "Preempted", "default/low-0")]
    assert (10.0, "Placed", "default/high-0") in lines(done)
    assert lines(done, "Replaced", "Pending")[-2:] == [
        (11.0, "Replaced", "default/low-0-r1"),
        (11.0, "Pending", "default/low-0-r1"),
    ]


def test_an_evicted_pod_is_replaced_elsewhere_because_the_node_is_tainted():
    done = cluster(
        placed(pod("grows"), using(ramp(0, 950 * MI, 9)), spread=True),
        spec=node(config=PRESSURE),
        seconds=15,
    )
    assert lines(done, "Evicted") == [(10.0, "Evicted", "default/grows-0")]
    assert where(done) == {"grows-0-r1": "n-1"}


def test_the_pods_of_a_lost_node_are_replaced_when_they_have_waited_long_enough():
    done = cluster(
        placed(pod("a"), using(MI), replicas=2, spread=True),
        seconds=600,
        happenings=(NodeLost(at_us=100 * SECOND_US, node="n-0"),),
    )
    assert lines(done, "Lost", "Replaced") == [
        (100.0, "Lost", None),
        (100.0 + 50 + 300 + 1, "Replaced", "default/a-0-r1"),
    ]
    assert where(done) == {"a-0-r1": "n-1"}


def test_a_node_that_joins_takes_those_who_wait():
    done = cluster(
        placed(pod("a", "memory=700Mi"), using(1), replicas=2),
        happenings=(NodeAdded(at_us=30 * SECOND_US, node="n-1"),),
    )
    assert where(done) == {"a-0": "n-0", "a-1": "n-1"}


def test_a_workload_that_is_deleted_goes_and_stays_away():
    done = cluster(placed(pod("a"), using(MI), replicas=2, spread=True, deleted_us=10 * SECOND_US))
    assert [kind for _, kind, _ in lines(done, "Deleted", "Stopped", "Replaced")] == ["Deleted", "Stopped"] * 2


def test_a_daemon_set_runs_on_every_node():
    done = cluster(placed(pod("agent"), using(MI), kind="DaemonSet"), count=3)
    assert sorted(where(done).values()) == ["n-0", "n-1", "n-2"]


def test_a_daemon_set_runs_on_a_node_that_joins_later():
    """It is not there before it joins, though it is lost afterwards."""
    happenings = NodeAdded(10 * SECOND_US, "late"), NodeLost(20 * SECOND_US, "late")
    groups = NodeGroup(node("n")), NodeGroup(node("late"))
    agent = placed(pod("agent"), using(MI), kind="DaemonSet", arrives_us=5 * SECOND_US)
    done = simulate(scenario(agent, nodes=groups, happenings=happenings), check=True)
    assert lines(done, "Placed") == [(5.0, "Placed", "default/agent-n"), (10.0, "Placed", "default/agent-late")]


def flapping(version=(1, 36), **fields):
    """Let a DaemonSet use more than its node can spare, from the beginning."""
    agent = placed(pod("agent", "memory=10Mi"), using(950 * MI), kind="DaemonSet", **fields)
    return cluster(agent, count=1, spec=node(config=PRESSURE), seconds=30, profile=profile_for(version))


def test_an_evicted_pod_of_a_daemon_set_comes_back_to_the_same_node_with_its_controllers_back_off():
    """Removed at 0, 1, 4 (2 s + 2 s of back-off), 13 and 22 s (14 s + 8 s); made anew a second later."""
    done = flapping()
    assert [time for time, _, _ in lines(done, "Evicted")] == [0, 1, 2, 13, 14, 25]
    assert [time for time, _, _ in lines(done, "Replaced")] == [1, 2, 5, 14, 23]
    waited = [entry.because.back_off_seconds for entry in done.entries if entry.kind == "Replaced"]
    assert waited == [0, 0, 2, 0, 8]
    assert set(where(done).values()) == {"n"}


def test_before_1_12_the_controller_does_not_wait():
    done = flapping((1, 11))
    assert [time for time, _, _ in lines(done, "Evicted")] == list(range(31))
    assert [time for time, _, _ in lines(done, "Replaced")] == list(range(1, 31))


def test_a_daemon_set_that_is_deleted_during_the_back_off_stays_away():
    done = flapping(deleted_us=4 * SECOND_US)
    assert [time for time, _, _ in lines(done, "Replaced")] == [1, 2]


@pytest.mark.parametrize(("after_us", "replaced"), [(0, [1]), (1, [1, 2])])
def test_what_is_deleted_the_moment_its_pod_would_be_made_anew_stays_away(after_us, replaced):
    done = flapping(deleted_us=2 * SECOND_US + after_us)
    assert [time for time, _, _ in lines(done, "Replaced")] == replaced


def test_a_deployment_does_not_back_off_and_waits_for_the_taint_to_go():
    done = cluster(placed(pod("web"), using(950 * MI)), count=1, spec=node(config=PRESSURE), seconds=30)
    assert lines(done, "Evicted", "Replaced", "Pending") == [
        (0.0, "Evicted", "default/web-0"),
        (1.0, "Replaced", "default/web-0-r1"),
        (1.0, "Pending", "default/web-0-r1"),
    ]


def test_replicas_take_turns_with_their_demands():
    base = placed(pod("a", limits="memory=10Mi"), using(1), replicas=4, spread=True)
    done = cluster(replace(base, demands=({"main": using(1)}, {"main": using(20 * MI)})), seconds=5)
    assert {key for _, _, key in lines(done, "OOMKilled")} == {"default/a-1", "default/a-3"}


def test_the_room_that_a_pod_preempts_others_for_is_kept_from_less_important_and_equal_pods():
    """The small pod fits as soon as the victim is gone, but not beside the large one, which came first."""
    victim = placed(pod("low", "memory=600Mi"), using(1), nodes=("n",), kind="Pod")
    arriving = [
        placed(pod(name, f"memory={size}", priority=1000), using(1), arrives_us=10 * SECOND_US)
        for name, size in (("large", "800Mi"), ("small", "500Mi"))
    ]
    done = cluster(victim, *arriving, count=1, options=Options(container_stop_us=3 * SECOND_US))
    assert lines(done, "Preempted", "Placed") == [
        (10.0, "Preempted", "default/low"),
        (13.0, "Placed", "default/large-0"),
    ]
    why = {entry.pod: entry.because for entry in done.entries if entry.kind == "Pending"}
    assert [(each.reason, each.what) for each in why["default/small-0"].refusing] == [("Insufficient", "memory")]


def test_a_pod_that_waits_has_every_resource_that_is_short_as_its_reason():
    done = cluster(placed(pod("a", "cpu=64,memory=64Gi"), using(1)), count=1)
    (entry,) = (entry for entry in done.entries if entry.kind == "Pending")
    assert [(each.reason, each.what) for each in entry.because.refusing] == [
        ("Insufficient", "cpu"),
        ("Insufficient", "memory"),
    ]


def test_beside_a_nominated_pod_and_victims_that_still_stop_there_is_room_for_few():
    """What fits beside the large pod waits until its victim is gone, too: both count in the meantime."""
    victim = placed(pod("low", "memory=600Mi"), using(1), nodes=("n",), kind="Pod")
    arriving = [
        placed(pod(name, f"memory={size}", priority=1000), using(1), arrives_us=10 * SECOND_US)
        for name, size in (("large", "800Mi"), ("tiny", "50Mi"))
    ]
    done = cluster(victim, *arriving, count=1, options=Options(container_stop_us=3 * SECOND_US))
    assert lines(done, "Placed") == [(13.0, "Placed", "default/large-0"), (13.0, "Placed", "default/tiny-0")]
