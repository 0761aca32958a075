"""Scenarios whose answers are worked out by hand; the working stands in each test."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from admission.pods import container, resources
from eviction.nodes import pod, pod_of
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import profile_for
from podqos.model.time_units import SECOND_US
from podqos.report.simulation.journal_words import line
from podqos.sim.cluster.cluster import SimCluster
from podqos.sim.engine.curve import Curve
from podqos.sim.engine.event_queue import EventQueue
from podqos.sim.node.checkers import check_node
from podqos.sim.node.running import grow
from podqos.sim.run import simulate
from podqos.sim.scenario.scenario import NodeAdded, NodeGroup, NodeLost, Options
from podqos.sim.summary import run_summary
from sim.worlds import MI, lines, node, ramp, run, scenario, using, workload

# ---- a pod's CPU limit holds for the sum of its containers ---------------------------------------------------------


def throttled(done) -> list[tuple[float, str, int, str, bool]]:
    """Return time, container, what it gets, by what it is throttled, and whether the limit is its pod's."""
    return [
        (entry.time_us / SECOND_US, entry.container, because.granted_milli, because.throttled_by, because.pod_limit)
        for entry in done.entries
        if entry.kind == "Throttled" and (because := entry.because)
    ]


def two(limits: str = "cpu=1", first: str = "", second: str = "", *, requests: str = "cpu=100m"):
    """Return a pod of two containers with limits of their own, or none, under a pod-level limit."""
    return pod_of("p", container("a", limits=first), container("b", limits=second), resources=resources(requests, limits))


def test_two_containers_within_the_cpu_limit_of_their_pod_one_by_one_are_throttled_by_it_together():
    """700m + 700m > 1000m: equal weights give 500m each."""
    done = run(workload(two(), {"a": using(1, cpu_milli=700), "b": using(1, cpu_milli=700)}))
    assert throttled(done) == [(0.0, "a", 500, "quota", True), (0.0, "b", 500, "quota", True)]
    words = [line(entry) for entry in done.entries if entry.kind == "Throttled"]
    assert words[0] == "p (a) wants 700m CPU, its pod's limit grants 500m"


def test_two_containers_that_reach_the_cpu_limit_of_their_pod_and_no_more_are_not_throttled():
    done = run(workload(two(), {"a": using(1, cpu_milli=600), "b": using(1, cpu_milli=400)}))
    assert throttled(done) == []


def test_throttling_by_a_pods_limit_begins_and_ends_when_the_sum_crosses_it():
    """``a`` wants 400m. ``b`` rises by 100m a second from 300m: the sum is beyond 1000m after 3 s, at 601m (3.01 s and
    a microsecond of rounding), and falls below it again when ``b`` stops at 6 s. ``a`` wants less than half and keeps its 400m."""
    rising = Curve(((0, 300), (6 * SECOND_US, 900), (6 * SECOND_US, 0)))
    done = run(workload(two(), {"a": using(1, cpu_milli=400), "b": using(1, cpu_milli=rising)}))
    assert throttled(done) == [(3.010001, "b", 600, "quota", True), (6.0, "b", 0, "nothing", False)]
    assert [row.throttled_us for row in run_summary(done).workloads] == [2_989_999]


def test_a_containers_own_cpu_limit_binds_before_its_pods():
    """``a`` may use 200m of its 700m; 200m + 700m stay within the pod's limit, so only ``a`` is throttled, and by its
    own limit."""
    done = run(workload(two(first="cpu=200m"), {"a": using(1, cpu_milli=700), "b": using(1, cpu_milli=700)}))
    assert throttled(done) == [(0.0, "a", 200, "quota", False)]


def test_a_pod_that_ends_with_one_of_two_containers_no_longer_throttles_the_other():
    """From 5 s on ``b`` has the pod's 1000m to itself; it is restarted at once, at the next look (6 s)."""
    demands = {
        "a": using(1, cpu_milli=700),
        "b": using(1, cpu_milli=700, exits_after_us=5_500_000),
    }
    done = run(workload(two(), demands), seconds=7)
    assert throttled(done) == [
        (0.0, "a", 500, "quota", True),
        (0.0, "b", 500, "quota", True),
        (5.5, "a", 700, "nothing", False),
        (6.0, "a", 500, "quota", True),
        (6.0, "b", 500, "quota", True),
    ]


def test_before_pod_level_resources_such_a_limit_does_not_exist():
    """The API server drops the field up to 1.33 (alpha, off): no limit, and four idle cores."""
    demands = {"a": using(1, cpu_milli=700), "b": using(1, cpu_milli=700)}
    assert throttled(run(workload(two(), demands), profile=profile_for((1, 33)))) == []
    assert throttled(run(workload(two(), demands), profile=profile_for((1, 34))))


def test_limits_of_all_containers_add_up_to_the_pods_and_throttle_each_for_itself():
    """500m and 1500m make 2000m: ``a`` wants 700m and gets 500m though the pod would have 800m left."""
    made = pod_of("p", container("a", limits="cpu=500m"), container("b", limits="cpu=1500m"))
    done = run(workload(made, {"a": using(1, cpu_milli=700), "b": using(1, cpu_milli=700)}))
    assert throttled(done) == [(0.0, "a", 500, "quota", False)]


def test_a_pods_cpu_limit_is_not_its_neighbours():
    """Two such pods on four cores: each wants 1400m and has 1000m."""
    other = replace(two(), metadata=replace(two().metadata, name="q", uid="q"))
    demands = {"a": using(1, cpu_milli=700), "b": using(1, cpu_milli=200)}
    done = run(workload(two(), {"a": using(1, cpu_milli=700), "b": using(1, cpu_milli=700)}), workload(other, demands))
    assert {entry.pod for entry in done.entries if entry.kind == "Throttled"} == {"default/p"}


# ---- when the eviction loop looks ----------------------------------------------------------------------------------

SHORT = KubeletConfiguration(eviction_hard={"memory.available": "100Mi"}, enforce_node_allocatable=())


@pytest.mark.parametrize(("phase", "looks_at"), [(0, 10), (3, 3), (9, 9), (10, 10), (12, 12), (25, 25)])
def test_the_eviction_loop_looks_first_at_its_phase_and_then_every_ten_seconds(phase, looks_at):
    """At 2 s the pod steps to 950Mi of 1000Mi: the first look after that evicts it, and there is none before the
    phase, even if that is longer than the interval."""
    step = Curve(((0, 10 * MI), (2 * SECOND_US, 10 * MI), (2 * SECOND_US, 950 * MI)))
    done = run(workload(pod("a"), using(step)), spec=node(config=SHORT, loop_phase_us=phase * SECOND_US))
    assert lines(done, "Evicted") == [(looks_at, "Evicted", "default/a")]


def test_a_phase_step_stays_within_the_ten_seconds_of_the_first_look():
    """8, 11 and 14 s are 8, 1 and 4 s of the first ten seconds; 28, 31 and 34 s those of the third."""
    for rounds in (0, 20):
        group = NodeGroup(node(loop_phase_us=(rounds + 8) * SECOND_US), 3, phase_step_us=3 * SECOND_US)
        assert [group.loop_phase_us(index) // SECOND_US - rounds for index in range(3)] == [8, 1, 4]


# ---- memory of a pod that held none --------------------------------------------------------------------------------


def test_a_pod_that_held_nothing_counts_what_it_grows_to():
    """The leaker holds nothing and requests 10Mi; its neighbour holds 100Mi and requests nothing. At 100 MiB/s the machine
    of 1000Mi is full after 9 s. The leaker then uses 890Mi beyond its request: the kubelet would evict it first."""
    queue = EventQueue(60 * SECOND_US)
    still = scenario(workload(pod("leaker", "memory=10Mi"), using()), workload(pod("other"), using(100 * MI)))
    cluster = SimCluster(still, queue)
    while queue.next[0] == 0:
        queue.step()
    (leaker, _) = cluster.fleet.awake["n"].world.pods.values()
    grow(cluster.fleet.awake["n"].world, leaker.containers["main"], ramp(0, 2000 * MI, 20), 0)
    while queue.next is not None:
        queue.step()
        check_node(cluster.fleet.awake["n"], queue.now_us, settled=False)
    first = next(entry for entry in cluster.entries if entry.kind == "OOMKilled")
    assert (first.pod, first.time_us) == ("default/leaker", pytest.approx(9 * SECOND_US, abs=100))
    other = first.because.would_evict
    assert (other.pod, other.over_request, other.next_pod) == ("default/leaker", True, "default/other")
    assert other.usage == pytest.approx(900 * MI, rel=1e-5)


# ---- a pod that is told to stop is gone with its last container -----------------------------------------------------

SLOW_STOP = Options(container_stop_us=20 * SECOND_US)


def stopped(*workloads, **fields) -> list[float]:
    """Return when pods stop; containers take 20 s of their 30 s of grace."""
    return [time for time, _, _ in lines(run(*workloads, **{"options": SLOW_STOP, **fields}), "Stopped")]


def test_a_deleted_pod_whose_containers_take_their_time_is_gone_when_they_have_stopped():
    assert stopped(workload("a", using(MI), deleted_us=10 * SECOND_US)) == [30]


def test_a_deleted_pod_whose_container_ends_by_itself_is_gone_then():
    """Deleted at 10 s, at an end at 13.3 s, which is not 30 s: 10 s and the 20 s that stopping takes at most."""
    assert stopped(workload("a", using(MI, exits_after_us=13_300_000), deleted_us=10 * SECOND_US)) == [13.3]


def test_a_deleted_pod_of_two_containers_is_gone_when_the_last_of_them_has_ended():
    made = pod_of("a", container("one"), container("two"))
    ends = {"one": using(MI, exits_after_us=12 * SECOND_US), "two": using(MI, exits_after_us=14 * SECOND_US)}
    assert stopped(workload(made, ends, deleted_us=10 * SECOND_US)) == [14]
    lasting = {**ends, "two": using(MI)}
    assert stopped(workload(made, lasting, deleted_us=10 * SECOND_US)) == [30]


def test_a_deleted_pod_of_which_no_container_runs_is_gone_at_once():
    """It exits at 2 s, runs again from 2 to 4 s (looked at every second) and then waits ten seconds for its restart."""
    crashing = workload("a", using(MI, exits_after_us=1_500_000, exit_code=1), deleted_us=10 * SECOND_US)
    assert stopped(crashing) == [10]


def test_a_pod_that_is_killed_by_the_kernel_while_it_stops_is_gone_then():
    """100Mi at 10 MiB/s from its start on: the limit is reached at 10 s and a byte; deleted at 9 s."""
    grows = workload(pod("a", limits="memory=100Mi"), using(ramp(0, 200 * MI, 20)), deleted_us=9 * SECOND_US)
    (time,) = stopped(grows)
    assert time == pytest.approx(10, abs=1e-5)


def test_a_pod_that_has_come_to_its_end_is_gone_when_that_is_seen():
    """It ends at 5.5 s and is looked at every second; nothing is left to be stopped."""
    made = pod("a", restart_policy="Never")
    assert stopped(workload(made, using(MI, exits_after_us=5_500_000))) == [6]


def test_a_place_is_free_and_a_replacement_made_when_the_last_container_has_ended():
    """The first is deleted at 10 s and ends at 13 s; the second waits for its place. What is preempted for the third at
    20 s has ended at 23 s: it takes the place then, and the replacement is made a second later."""
    first = workload(
        pod("first", "memory=700Mi"), using(MI, exits_after_us=13 * SECOND_US), deleted_us=10 * SECOND_US
    )
    second = workload(
        pod("second", "memory=700Mi", priority=0),
        using(MI, exits_after_us=10 * SECOND_US),
        nodes=(),
        kind="Deployment",
        recreate=True,
    )
    third = workload(pod("third", "memory=700Mi", priority=1), using(MI), nodes=(), arrives_us=20 * SECOND_US)
    done = run(first, second, third, options=SLOW_STOP)
    assert lines(done, "Placed", "Preempted", "Stopped", "Replaced") == [
        (13.0, "Stopped", "default/first"),
        (13.0, "Placed", "default/second-0"),
        (20.0, "Preempted", "default/second-0"),
        (23.0, "Stopped", "default/second-0"),
        (23.0, "Placed", "default/third"),
        (24.0, "Replaced", "default/second-0-r1"),
    ]


def test_an_evicted_pod_that_ends_by_itself_lets_the_kubelet_look_again_sooner():
    """Two pods of 475Mi leave 50Mi of 1000Mi, at 100Mi the kubelet evicts. Soft eviction gives the first up to 20 s, but
    it ends after 2 s: the threshold is no longer met, and the second stays."""
    config = KubeletConfiguration(
        eviction_hard={},
        eviction_soft={"memory.available": "100Mi"},
        eviction_soft_grace_period={"memory.available": "1s"},
        eviction_max_pod_grace_period=60,
        enforce_node_allocatable=(),
    )
    one = workload(pod("one", restart_policy="Never"), using(475 * MI, exits_after_us=12 * SECOND_US))
    other = workload(pod("two", "memory=400Mi"), using(475 * MI))
    done = run(one, other, spec=node(config=config), options=SLOW_STOP)
    assert lines(done, "Evicted", "Stopped") == [(10.0, "Evicted", "default/one"), (12.0, "Stopped", "default/one")]


# ---- at one moment --------------------------------------------------------------------------------------------------


def full(name: str, **fields):
    """Return a pod that needs more than half of its node."""
    return workload(pod(name, "memory=600Mi"), using(MI), **fields)


def test_a_pod_finds_the_room_that_another_leaves_at_that_moment_wherever_the_two_stand():
    leaves, comes = full("a", deleted_us=10 * SECOND_US), full("b", arrives_us=10 * SECOND_US)
    for order in ((leaves, comes), (comes, leaves)):
        assert lines(run(*order), "Admitted", "Rejected", "Stopped") == [
            (0.0, "Admitted", "default/a"),
            (10.0, "Stopped", "default/a"),
            (10.0, "Admitted", "default/b"),
        ]


def test_pods_that_leave_at_one_moment_leave_their_cpu_at_once():
    """Four pods of 2 cores on 4 cores have 1 core each. When three of them end, the fourth has its 2 cores: it does not
    get 1333m for no time, and those that end get no more."""
    works = [workload(pod(name), using(1, cpu_milli=2000), deleted_us=5 * SECOND_US) for name in "abc"]
    done = run(*works, workload(pod("d"), using(1, cpu_milli=2000)))
    assert [entry[:3] for entry in throttled(done) if entry[0]] == [(5.0, "main", 2000)]


def test_a_machine_that_joins_at_the_moment_at_which_a_pod_arrives_takes_it():
    late = full("a", nodes=("late",), arrives_us=10 * SECOND_US)
    groups = NodeGroup(node("n")), NodeGroup(node("late"))
    done = simulate(scenario(late, nodes=groups, happenings=(NodeAdded(10 * SECOND_US, "late"),)), check=True)
    assert lines(done, "Admitted") == [(10.0, "Admitted", "default/a")]


def test_a_machine_that_is_lost_and_joins_at_one_moment_is_empty_then():
    """Its pod is gone with it: noticed after 50 s, replaced 300 s and a second later."""
    again = NodeLost(10 * SECOND_US, "n"), NodeAdded(10 * SECOND_US, "n")
    done = run(full("a", recreate=True, kind="Deployment"), seconds=400, happenings=again)
    assert lines(done, "Lost", "Replaced", "Placed") == [
        (10.0, "Lost", None),
        (361.0, "Replaced", "default/a-0-r1"),
        (361.0, "Placed", "default/a-0-r1"),
    ]


# ---- deleted the moment it arrives ---------------------------------------------------------------------------------


@pytest.mark.parametrize("at_us", [0, 10 * SECOND_US])
@pytest.mark.parametrize("where", [{"nodes": ("n",)}, {"nodes": (), "spread": True}, {"nodes": ()}])
def test_what_is_deleted_the_moment_it_arrives_never_runs_and_disturbs_no_other_pod(at_us, where):
    """Its 950Mi would make the kernel kill, and its request would push the other out; so would a replacement."""
    short = workload(
        pod("short", "memory=900Mi", priority=10),
        using(950 * MI),
        arrives_us=at_us,
        deleted_us=at_us,
        replicas=2,
        kind="Deployment",
        recreate=True,
        **where,
    )
    other = workload(pod("other", "memory=500Mi", priority=0), using(400 * MI))
    alone = lines(run(other))
    deleted = [(at_us / SECOND_US, "Deleted", f"default/short-{number}") for number in range(2)]
    for order in ((short, other), (other, short)):
        done = run(*order)
        assert sorted(lines(done)) == sorted([*alone, *deleted])
        assert [row.pods for row in run_summary(done).workloads if row.workload.endswith("short")] in ([0], [])


def test_a_daemon_set_that_is_deleted_the_moment_it_arrives_never_runs():
    agent = workload(pod("agent"), using(MI), kind="DaemonSet", nodes=(), arrives_us=SECOND_US, deleted_us=SECOND_US)
    assert [kind for _, kind, _ in lines(run(agent))] == ["Deleted"]
