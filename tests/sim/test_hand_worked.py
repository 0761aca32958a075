"""Scenarios whose answers are worked out by hand; the working stands in each test."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from admission.pods import container, resources
from eviction.nodes import pod, pod_of
from podqos.model.disruption import PodDisruptionBudget, PodDisruptionBudgetSpec
from podqos.model.kubelet_config import KubeletConfiguration, MemorySwapConfiguration
from podqos.model.pod import EmptyDir, ExitCodes, ObjectMeta, RestartRule, Toleration, Volume
from podqos.model.profile import profile_for
from podqos.model.quantity import Quantity
from podqos.model.selector import LabelSelector
from podqos.model.snapshot import NodeUsage
from podqos.model.stats import ContainerStats, MemoryStats, PodReference, PodStats, Summary, VolumeStats
from podqos.model.time_units import SECOND_US
from podqos.orders.usage import from_summary
from podqos.reading.scenario_files import load_scenario, read_scenario
from podqos.sim.blast import BlastNode, leaks, nodes_now
from podqos.sim.cluster.cluster import SimCluster
from podqos.sim.engine.curve import Clock, Curve, constant
from podqos.sim.engine.event_queue import EventQueue
from podqos.sim.node.checkers import check_node
from podqos.sim.node.running import grow
from podqos.sim.run import simulate
from podqos.sim.scenario.scenario import NodeAdded, NodeGroup, NodeLost, Options, VolumeDemand
from podqos.sim.summary import run_summary
from podqos.text.journal import line, reasons
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
    return pod_of(
        "p", container("a", limits=first), container("b", limits=second), resources=resources(requests, limits)
    )


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
    """``a`` wants 400m.

    ``b`` rises by 100m a second from 300m: the sum is beyond 1000m after 3 s, at 601m (3.01 s and a microsecond of
    rounding), and falls below it again when ``b`` stops at 6 s. ``a`` wants less than half and keeps its 400m.
    """
    rising = Curve(((0, 300), (6 * SECOND_US, 900), (6 * SECOND_US, 0)))
    done = run(workload(two(), {"a": using(1, cpu_milli=400), "b": using(1, cpu_milli=rising)}))
    assert throttled(done) == [(3.010001, "b", 600, "quota", True), (6.0, "b", 0, "nothing", False)]
    assert [row.throttled_us for row in run_summary(done).workloads] == [2_989_999]


def test_a_containers_own_cpu_limit_binds_before_its_pods():
    """``a`` may use 200m of its 700m, and 200m + 700m stay within the pod's limit: only ``a`` is throttled."""
    done = run(workload(two(first="cpu=200m"), {"a": using(1, cpu_milli=700), "b": using(1, cpu_milli=700)}))
    assert throttled(done) == [(0.0, "a", 200, "quota", False)]


def test_a_container_that_is_throttled_by_its_own_limit_and_then_by_its_pods_is_said_to_be():
    """``a`` has 500m of 700m to itself. From 5 s on the pod's 600m are for both, by weight."""
    steps = Curve(((0, 0), (5 * SECOND_US, 0), (5 * SECOND_US, 400)))
    made = two("cpu=600m", first="cpu=500m", requests="")
    done = run(workload(made, {"a": using(1, cpu_milli=700), "b": using(1, cpu_milli=steps)}))
    first, *later = throttled(done)
    assert first == (0.0, "a", 500, "quota", False)
    assert sorted((time, name, of_pod) for time, name, _, _, of_pod in later) == [(5.0, "a", True), (5.0, "b", True)]
    assert sum(granted for _, _, granted, _, _ in later) in {599, 600}


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
    """The pod steps to 950Mi of 1000Mi at 2 s.

    The first look after that evicts it, and there is none before the phase, even if that is longer than the interval.
    """
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
    """The leaker holds nothing and requests 10Mi; its neighbour holds 100Mi and requests nothing.

    At 100 MiB/s the machine of 1000Mi is full after 9 s. The leaker then uses 890Mi beyond its request: the kubelet
    would evict it first.
    """
    queue = EventQueue(60 * SECOND_US)
    still = scenario(workload(pod("leaker", "memory=10Mi"), using()), workload(pod("other"), using(100 * MI)))
    cluster = SimCluster(still, queue)
    while queue.next is not None and queue.next[0] == 0:
        queue.step()
    (leaker, _) = cluster.fleet.present["n"].world.pods.values()
    grow(cluster.fleet.present["n"].world, leaker.containers["main"], ramp(0, 2000 * MI, 20), 0)
    while queue.next is not None:
        queue.step()
        check_node(cluster.fleet.present["n"], queue.now_us, settled=False)
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


def test_a_place_is_free_when_the_last_container_has_ended_but_a_deleted_pod_is_replaced_before():
    """The first is deleted at 10 s and ends at 13 s; the second waits for its place.

    What is preempted for the third at 20 s has ended at 23 s: it takes the place then. A ReplicaSet does not count a
    pod that is being deleted, so the replacement is made a second after that (replica_set.go: updatePod,
    FilterActivePods).
    """
    first = workload(pod("first", "memory=700Mi"), using(MI, exits_after_us=13 * SECOND_US), deleted_us=10 * SECOND_US)
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
        (21.0, "Replaced", "default/second-0-r1"),
        (23.0, "Stopped", "default/second-0"),
        (23.0, "Placed", "default/third"),
    ]


def test_an_evicted_pod_that_ends_by_itself_lets_the_kubelet_look_again_sooner():
    """Two pods of 475Mi leave 50Mi of 1000Mi, at 100Mi the kubelet evicts.

    Soft eviction gives the first up to 20 s, but it ends after 2 s: the threshold is no longer met, and the second
    stays.
    """
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


# ---- killed the moment it starts -----------------------------------------------------------------------------------


def test_a_pod_that_starts_all_over_again_without_back_off_and_is_killed_at_once_lets_time_go_on():
    """1100Mi of 1000Mi are one too many at every start, from the first at 0 on.

    That one, and all that ran before the scenario begins, is heard of at once; every next one at the next look, a
    second later.
    """
    rule = RestartRule("RestartAllContainers", ExitCodes("In", (137,)))
    again = replace(container("main"), restart_policy="Never", restart_policy_rules=(rule,))
    done = run(workload(pod_of("a", again), using(1100 * MI)), seconds=2.5)
    assert (
        lines(done, "OOMKilled", "Restarted")
        == [(time, kind, "default/a") for time in (0, 0, 1, 2) for kind in ("Restarted", "OOMKilled")][1:]
    )


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
    """Four pods of 2 cores on 4 cores have 1 core each.

    When three of them end, the fourth has its 2 cores: it does not get 1333m for no time, and those that end get no
    more.
    """
    works = [workload(pod(name), using(1, cpu_milli=2000), deleted_us=5 * SECOND_US) for name in "abc"]
    done = run(*works, workload(pod("d"), using(1, cpu_milli=2000)))
    assert [entry[:3] for entry in throttled(done) if entry[0]] == [(5.0, "main", 2000)]


def test_a_machine_that_joins_at_the_moment_at_which_a_pod_arrives_takes_it():
    late = full("a", nodes=("late",), arrives_us=10 * SECOND_US)
    groups = NodeGroup(node("n")), NodeGroup(node("late"))
    done = simulate(scenario(late, nodes=groups, happenings=(NodeAdded(10 * SECOND_US, "late"),)), check=True)
    assert lines(done, "Admitted") == [(10.0, "Admitted", "default/a")]


# ---- a machine that was lost joins again -----------------------------------------------------------------------------


def back(*happenings, **fields):
    """Return when one pod of a Deployment runs on a machine that comes and goes, and when it is replaced."""
    made = full("a", **{"recreate": True, "kind": "Deployment", **fields})
    events = tuple(kind(at * SECOND_US, "n") for kind, at in happenings)
    return lines(run(made, seconds=700, happenings=events), "Lost", "Started", "Deleted", "Replaced", "Placed")


@pytest.mark.parametrize("joins", [10, 100, 359])
def test_a_machine_that_joins_again_starts_the_pods_still_bound_to_it(joins):
    """The node controller notices after 50 s; the pod tolerates that for 300 s, so until 360 s it is bound there."""
    assert back((NodeLost, 10), (NodeAdded, joins)) == [
        (0.0, "Started", "default/a-0"),
        (10.0, "Lost", None),
        (float(joins), "Started", "default/a-0"),
    ]


@pytest.mark.parametrize(
    ("tolerated", "replaced"),
    [
        pytest.param((), 361.0, id="300 s unless it says otherwise"),
        pytest.param((20, 100), 81.0, id="the shortest counts"),
        pytest.param((None, 20), 81.0, id="one for ever leaves it to the others"),
        pytest.param((0,), 61.0, id="not at all"),
        pytest.param((-60,), 61.0, id="less than nothing is nothing"),
        pytest.param((None,), None, id="for ever"),
    ],
)
def test_a_pod_is_given_up_after_it_has_tolerated_a_lost_node_for_so_long(tolerated, replaced):
    own = tuple(Toleration("node.kubernetes.io/unreachable", "Exists", "", "NoExecute", each) for each in tolerated)
    made = workload(pod("a", "memory=600Mi", tolerations=own), using(MI), recreate=True, kind="Deployment")
    done = run(made, seconds=700, happenings=(NodeLost(10 * SECOND_US, "n"),))
    assert [at for at, _, _ in lines(done, "Replaced")] == ([] if replaced is None else [replaced])


def test_a_pod_that_was_given_up_is_not_started_again():
    assert back((NodeLost, 10), (NodeAdded, 400)) == [
        (0.0, "Started", "default/a-0"),
        (10.0, "Lost", None),
        (361.0, "Replaced", "default/a-0-r1"),
        (400.0, "Placed", "default/a-0-r1"),
        (400.0, "Started", "default/a-0-r1"),
    ]


def test_a_machine_that_is_lost_again_has_its_pods_given_up_for_the_second_time_only():
    assert back((NodeLost, 10), (NodeAdded, 100), (NodeLost, 200))[3:] == [
        (200.0, "Lost", None),
        (200.0 + 50 + 300 + 1, "Replaced", "default/a-0-r1"),
    ]


def test_a_pod_that_was_deleted_while_its_machine_was_away_is_not_started_again():
    assert back((NodeLost, 10), (NodeAdded, 100), deleted_us=50 * SECOND_US) == [
        (0.0, "Started", "default/a-0"),
        (10.0, "Lost", None),
        (50.0, "Deleted", "default/a-0"),
    ]


def test_what_starts_again_on_a_machine_is_room_that_the_scheduler_does_not_have():
    """Each pod requests more than half of the only machine."""
    events = NodeLost(10 * SECOND_US, "n"), NodeAdded(100 * SECOND_US, "n")
    old = workload(pod("old", "memory=600Mi"), using(MI))
    new = workload(pod("new", "memory=600Mi"), using(MI), nodes=(), arrives_us=150 * SECOND_US)
    done = run(old, new, seconds=200, happenings=events)
    assert lines(done, "Started", "Pending") == [
        (0.0, "Started", "default/old"),
        (100.0, "Started", "default/old"),
        (150.0, "Pending", "default/new"),
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


@pytest.mark.parametrize("at_us", [0, 10 * SECOND_US])
def test_what_is_deleted_the_moment_it_arrives_is_written_once(at_us):
    short = workload("short", using(MI), nodes=(), spread=True, replicas=3, arrives_us=at_us, deleted_us=at_us)
    bound_there = workload("there", using(MI), nodes=("n-1",), arrives_us=at_us, deleted_us=at_us)
    made = scenario(short, workload("other", using(MI), nodes=("n-0",)), bound_there, nodes=(NodeGroup(node(), 2),))
    whole = simulate(made).entries
    gone = [("n-0", "short-0"), ("n-0", "short-2"), ("n-1", "short-1"), ("n-1", "there")]
    assert [(each.node, each.pod) for each in whole if each.kind == "Deleted"] == [
        (where, f"default/{name}") for where, name in gone
    ]
    assert simulate(made, check=True).entries == whole


def test_a_daemon_set_that_is_deleted_the_moment_it_arrives_never_runs():
    agent = workload(pod("agent"), using(MI), kind="DaemonSet", nodes=(), arrives_us=SECOND_US, deleted_us=SECOND_US)
    assert [kind for _, kind, _ in lines(run(agent))] == ["Deleted"]


# ---- a volume in memory lives as long as its pod --------------------------------------------------------------------


def in_memory(made, size_limit: str | None = None):
    """Return a pod with the volume ``v`` in memory."""
    directory = EmptyDir("Memory", None if size_limit is None else Quantity.parse(size_limit))
    return replace(made, spec=replace(made.spec, volumes=(Volume("v", empty_dir=directory),)))


def writing(curve, anon=0, **fields):
    """Return the demand of a container that writes into the volume ``v``."""
    return using(anon, volumes={"v": VolumeDemand(constant(curve) if isinstance(curve, int) else curve)}, **fields)


def killed(done) -> list[tuple[float, str, str, int]]:
    """Return when the kernel kills, which pod, at which level, and how many MiB that frees."""
    return [
        (round(entry.time_us / SECOND_US, 3), entry.pod, entry.because.level, round(entry.because.freed_bytes / MI))
        for entry in done.entries
        if entry.kind == "OOMKilled"
    ]


def test_what_a_container_wrote_into_memory_is_held_while_it_waits_for_its_restart():
    """It runs from 0 to 2 s and, looked at every second, from 3 to 5 s; then it waits until 15 s.

    Its 500Mi stay. The neighbour grows by 100 MiB/s from 8 s on and has the other 500Mi at 13 s; were the volume empty,
    it would be 18 s.
    """
    crashing = workload(in_memory(pod("a")), writing(500 * MI, 100 * MI, exits_after_us=2 * SECOND_US, exit_code=1))
    grows = workload(pod("b"), using(ramp(0, 2000 * MI, 20, after=8, clock=Clock.SCENARIO)))
    assert killed(run(crashing, grows, seconds=13.5)) == [(13.0, "default/b", "node", 500)]


def test_a_container_that_fills_its_limit_with_a_volume_in_memory_is_killed_again_as_soon_as_it_starts():
    """20Mi of its own and 10 MiB/s into the volume reach the limit of 100Mi at 8 s.

    The kill frees 20Mi, and 80Mi stay with the pod, whose limit is the same: the next run (9 s) starts with 20Mi, and
    its first byte is one too many. So is that of the third, ten seconds after the second ended, and of the fourth,
    twenty seconds after that.
    """
    leak = ramp(0, 1000 * MI, 100)
    done = run(workload(in_memory(pod("a", limits="memory=100Mi")), writing(leak, 20 * MI)))
    assert killed(done) == [
        (8.0, "default/a", "container", 20),
        (9.0, "default/a", "pod", 20),
        (19.0, "default/a", "pod", 20),
        (39.0, "default/a", "pod", 20),
    ]


def test_a_volume_in_memory_that_is_written_at_once_holds_what_fitted():
    """Of 300Mi at 5 s only 80Mi fit beside the 20Mi under the limit of 100Mi.

    The machine then holds 80Mi for it: the neighbour, from 8 s on at 100 MiB/s, is killed when it has the other 920Mi,
    at 17.2 s.
    """
    step = Curve(((0, 0), (5 * SECOND_US, 0), (5 * SECOND_US, 300 * MI)))
    once = workload(in_memory(pod("a", limits="memory=100Mi", restart_policy="Never")), writing(step, 20 * MI))
    grows = workload(pod("b", restart_policy="Never"), using(ramp(0, 2000 * MI, 20, after=8)))
    done = run(replace(once, pod=two_containers(once.pod)), grows)
    assert killed(done) == [(5.0, "default/a", "container", 20), (17.2, "default/b", "node", 920)]
    first = next(entry for entry in done.entries if entry.kind == "OOMKilled")
    assert "80Mi in memory-backed volumes stays with the pod." in reasons(first)


def test_swap_does_not_keep_a_container_alive_whose_volume_in_memory_takes_all_of_its_limit():
    """100Mi of files, which the kubelet mounts without swap, fill the limit of 100Mi from the start.

    What the container then wants could be swapped byte by byte, but a process without a page in memory cannot run: it
    is killed at its first byte, and so is its next run, at 1 s.
    """
    config = KubeletConfiguration(
        eviction_hard={},
        enforce_node_allocatable=(),
        fail_swap_on=False,
        memory_swap=MemorySwapConfiguration("LimitedSwap"),
    )
    full = in_memory(pod("a", "memory=100Mi", "memory=100Mi"), "100Mi")
    grows = workload(full, writing(100 * MI, ramp(0, 60 * MI, 60)))
    done = run(grows, spec=node(config=config, swap_bytes=1000 * MI), seconds=5)
    assert killed(done) == [(0.0, "default/a", "container", 0), (1.0, "default/a", "pod", 0)]


def two_containers(made):
    """Return a pod with an idle container beside the first, so that it does not end with that."""
    return replace(made, spec=replace(made.spec, containers=(*made.spec.containers, container("idle"))))


def test_what_the_scenario_says_a_volume_in_memory_holds_it_holds_after_a_restart():
    """300Mi until 20 s and 100Mi then, whoever wrote it.

    The container ends at 10.5 s and is started at 11 s. A neighbour of 850Mi that comes at 15 s does not fit beside
    300Mi; another at 25 s does beside 100Mi.
    """
    falls = Curve(((0, 300 * MI), (20 * SECOND_US, 300 * MI), (20 * SECOND_US, 100 * MI)))
    held = workload(in_memory(pod("a")), writing(falls, exits_after_us=10_500_000))
    first = workload(pod("b", restart_policy="Never"), using(850 * MI), arrives_us=15 * SECOND_US)
    second = workload(pod("c", restart_policy="Never"), using(850 * MI), arrives_us=25 * SECOND_US)
    assert [(time, who) for time, who, _, _ in killed(run(held, first, second, seconds=30))] == [(15.0, "default/b")]


def test_what_an_init_container_wrote_into_memory_counts_against_the_limit_of_the_pod():
    """300Mi of the pod's 400Mi are taken before the container starts. It grows by 10 MiB/s to 100Mi, not to 400Mi."""
    main, init = container("main", limits="memory=400Mi"), container("init", limits="memory=400Mi")
    made = in_memory(pod_of("a", main, init_containers=(init,)))
    done = run(workload(made, {"init": writing(300 * MI), "main": using(ramp(0, 1000 * MI, 100))}), seconds=15)
    assert killed(done) == [(10.0, "default/a", "pod", 100)]


def test_a_pod_is_ranked_by_what_its_ended_containers_left_in_memory():
    """At 9 s the kubelet sees 50Mi of 1000Mi.

    ``a`` waits for its restart and holds 500Mi in its volume, ``b`` 450Mi: ``a`` is evicted, and its memory is free at
    once, so that ``b`` stays.
    """
    first = workload(in_memory(pod("a")), writing(500 * MI, exits_after_us=2 * SECOND_US))
    other = workload(pod("b"), using(450 * MI))
    done = run(first, other, spec=node(config=SHORT, loop_phase_us=9 * SECOND_US), seconds=40)
    (entry,) = (entry for entry in done.entries if entry.kind == "Evicted")
    assert (entry.pod, entry.because.usage // MI) == ("default/a", 500)
    assert lines(done, "Evicted", "Stopped") == [(9.0, "Evicted", "default/a"), (9.0, "Stopped", "default/a")]


@pytest.mark.parametrize(("clean_up", "at"), [(0, 13.0), (2, 15.0)])
def test_a_volume_in_memory_is_gone_when_nothing_is_left_of_its_pod(clean_up, at):
    """Deleted at 13 s. A pod of 600Mi beside its 500Mi is killed until then, and lives from then on."""
    options = Options(clean_up_us=clean_up * SECOND_US)
    going = workload(in_memory(pod("a")), writing(500 * MI), deleted_us=13 * SECOND_US)
    comes = [
        workload(
            pod(f"b{time}", restart_policy="Never"),
            using(600 * MI),
            arrives_us=time * SECOND_US,
            deleted_us=(time + 1) * SECOND_US,
        )
        for time in (12, 14, 16)
    ]
    assert [time for time, *_ in killed(run(going, *comes, options=options))] == [float(t) for t in (12, 14) if t < at]


def test_a_volume_in_memory_takes_no_more_than_its_size():
    """At 10 MiB/s the 50Mi are full at 5 s: writing fails, and no one is killed or evicted for it."""
    made = in_memory(pod("a", limits="memory=100Mi"), "50Mi")
    done = run(workload(made, writing(ramp(0, 1000 * MI, 100), 20 * MI)), spec=node(config=SHORT))
    (entry,) = (entry for entry in done.entries if entry.kind in {"Refused", "OOMKilled", "Evicted"})
    assert (entry.kind, entry.because.resource, entry.because.limit) == ("Refused", "emptyDir.v.bytes", 50 * MI)
    assert entry.time_us == pytest.approx(5 * SECOND_US, abs=10)


def test_a_volume_in_memory_that_is_full_empties_when_its_container_wants_less_than_fits():
    """150Mi at 0, falling by 10 MiB/s: 100Mi fit until 5 s, and 70Mi are left at 8 s.

    A neighbour of 925Mi does not fit beside 80Mi at 7 s, but beside 70Mi: it is killed at 7 s, and lives at 8 s.
    """
    falls = workload(in_memory(pod("a", "memory=999Mi"), "100Mi"), writing(ramp(150 * MI, 0, 15)))
    comes = [
        workload(
            pod(f"b{at}", restart_policy="Never"),
            using(925 * MI),
            arrives_us=at * SECOND_US,
            deleted_us=at * SECOND_US + SECOND_US // 2,
        )
        for at in (4, 7, 8)
    ]
    assert [time for time, *_ in killed(run(falls, *comes))] == [4.0, 7.0]


def test_containers_share_the_size_of_a_volume_in_memory():
    """30Mi of the first leave 20Mi to the second, which it has written after 2 s."""
    made = in_memory(pod_of("a", container("one"), container("two")), "50Mi")
    done = run(workload(made, {"one": writing(30 * MI), "two": writing(ramp(0, 1000 * MI, 100))}))
    assert [
        (entry.container, round(entry.time_us / SECOND_US, 3)) for entry in done.entries if entry.kind == "Refused"
    ] == [("two", 2.0)]


def test_one_of_two_containers_that_is_killed_leaves_its_files_to_the_pod():
    """The pod may have 200Mi.

    ``one`` writes 10 MiB/s into memory and is killed by its own limit of 100Mi at 10 s; its 100Mi stay. ``two`` grows
    by 5 MiB/s: 100Mi at 20 s fill the pod. Between the two (11 s) ``one`` is started again and writes on, so the pod is
    full when 100 + 10 (t - 11) + 5 t = 200, at 14 s; ``two`` has the worse process.
    """
    made = in_memory(pod_of("a", container("one", limits="memory=100Mi"), container("two", limits="memory=100Mi")))
    demands = {"one": writing(ramp(0, 1000 * MI, 100)), "two": using(ramp(0, 1000 * MI, 200))}
    assert killed(run(workload(made, demands), seconds=14.5)) == [
        (10.0, "default/a", "container", 0),
        (14.0, "default/a", "pod", 70),
    ]


# ---- the kubelet makes room for critical pods ----------------------------------------------------------------------

CRITICAL = 2_000_000_000


def critical(name: str = "critical", requests: str = "memory=300Mi", *, at: int = 10, **fields):
    """Return a critical pod that is bound to a node without the scheduler."""
    made = pod(name, requests, priority=fields.pop("priority", CRITICAL))
    return workload(made, using(MI), arrives_us=at * SECOND_US, **fields)


def bound(name: str, requests: str = "", limits: str = "", **fields):
    return workload(pod(name, requests, limits, priority=fields.pop("priority", 0)), using(MI), **fields)


def gone_for(*others, requests: str = "memory=300Mi", **fields) -> list[str]:
    """Return which pods make room for a critical pod on a node of 1000Mi and 4 cores, in that order."""
    done = run(*others, critical(requests=requests, **fields))
    assert "Rejected" not in {entry.kind.value for entry in done.entries}
    assert (10.0, "Admitted", "default/critical") in lines(done)
    return [entry.pod.partition("/")[2] for entry in done.entries if entry.kind == "Preempted"]


def test_a_critical_pod_for_which_there_is_room_pushes_no_one_out():
    assert gone_for(bound("a", "memory=700Mi")) == []


def test_a_critical_pod_pushes_out_a_burstable_pod_before_a_guaranteed_one():
    """600Mi and 300Mi leave 100Mi: 200Mi lack. Either would do; the Burstable one goes, though it requests more."""
    big = bound("burstable", "memory=600Mi")
    assert gone_for(big, bound("guaranteed", *["cpu=1,memory=300Mi"] * 2)) == ["burstable"]


def test_a_guaranteed_pod_goes_only_if_all_others_are_not_enough_and_then_the_others_only_as_far_as_needed():
    """Full, so 300Mi lack.

    All Burstable (100Mi) leave 200Mi: the Guaranteed one of 300Mi is nearest (both free enough, and it requests less
    than 600Mi), and with it gone nothing lacks: the Burstable one stays.
    """
    others = (
        bound("g6", *["cpu=1,memory=600Mi"] * 2),
        bound("g3", *["cpu=1,memory=300Mi"] * 2),
        bound("burstable", "memory=100Mi"),
    )
    assert gone_for(*others) == ["g3"]


def test_the_pod_goes_that_leaves_least_of_what_lacks_and_then_the_next():
    """Of 150, 250, 280 and 320Mi all 1000Mi are taken: 300Mi lack.

    320Mi leave nothing, so distance 0: it goes alone.
    """
    others = [bound(f"p{size}", f"memory={size}Mi") for size in (150, 250, 280, 320)]
    assert gone_for(*others) == ["p320"]
    # 500Mi lack: 320Mi leave (180 / 500)², the least. Of the 180Mi then all but 150Mi leave nothing: the smaller goes.
    assert gone_for(*others, requests="memory=500Mi") == ["p320", "p250"]


def test_of_pods_that_request_the_same_the_last_to_come_goes():
    assert gone_for(*(bound(name, "memory=500Mi") for name in "ab")) == ["b"]


def test_best_effort_pods_go_only_where_there_are_too_many_pods():
    """Four pods may run. They request nothing, so none would free memory; but one is one less."""
    config = KubeletConfiguration(eviction_hard={}, enforce_node_allocatable=(), max_pods=3)
    works = bound("a"), bound("b", "memory=10Mi"), bound("c", *["cpu=1,memory=10Mi"] * 2), critical()
    done = run(*works, spec=node(config=config))
    assert lines(done, "Preempted") == [(10.0, "Preempted", "default/a")]


def test_two_resources_that_lack_weigh_the_same():
    """4 cores and 1000Mi are taken; 1 core and 300Mi lack.

    ``cpu`` leaves (300/300)² = 1, ``memory`` (1000/1000)² = 1, ``both`` (600/1000)² + (100/300)² = 0.471: it goes, and
    600m and 100Mi lack. Now ``cpu`` leaves 1 (all memory) and ``memory`` 1 (all cpu): of these equals the one that
    requests less memory goes, ``cpu``; then ``memory``.
    """
    others = (bound("cpu", "cpu=3600m"), bound("memory", "memory=800Mi"), bound("both", "cpu=400m,memory=200Mi"))
    assert gone_for(*others, requests="cpu=1,memory=300Mi") == ["both", "cpu", "memory"]


def test_a_critical_pod_goes_only_for_one_of_higher_priority():
    first = bound("first", "memory=900Mi", priority=CRITICAL)
    done = run(first, critical())
    (entry,) = (entry for entry in done.entries if entry.kind == "Rejected")
    assert (entry.pod, entry.because.resource) == ("default/critical", "memory")
    assert gone_for(first, priority=CRITICAL + 1000) == ["first"]


def test_a_pod_that_is_not_critical_is_rejected_whatever_its_priority():
    done = run(bound("a", "memory=900Mi"), critical(priority=CRITICAL - 1))
    assert lines(done, "Rejected", "Preempted") == [(10.0, "Rejected", "default/critical")]


def test_no_pod_goes_if_all_together_would_not_be_enough():
    """1000Mi can be had at most, 1100Mi are asked for."""
    done = run(bound("a", "memory=900Mi"), critical(requests="memory=1100Mi"))
    assert lines(done, "Rejected", "Preempted", "Stopped") == [(10.0, "Rejected", "default/critical")]


def test_a_critical_pod_waits_for_those_it_pushes_out_one_after_the_other_and_others_wait_for_it():
    """Two go, each within 3 s: at 13 and 16 s.

    A pod that comes at 11 s is heard of then: of 1000Mi 150Mi are left beside 850Mi, too few for its 200Mi. One that
    comes at 12 s is started then and stopped, as it has been deleted.
    """
    works = [bound(name, "memory=400Mi") for name in "ab"]
    late = bound("late", "memory=200Mi", arrives_us=11 * SECOND_US)
    small = bound("small", "memory=50Mi", arrives_us=12 * SECOND_US, deleted_us=14 * SECOND_US)
    done = run(*works, critical(requests="memory=850Mi"), late, small, options=Options(container_stop_us=3 * SECOND_US))
    assert [each for each in lines(done) if each[0] >= 10 and each[1] not in {"Started", "CleanedUp"}] == [
        (10.0, "Preempted", "default/b"),
        (13.0, "Stopped", "default/b"),
        (13.0, "Preempted", "default/a"),
        (14.0, "Deleted", "default/small"),
        (16.0, "Stopped", "default/a"),
        (16.0, "Admitted", "default/critical"),
        (16.0, "Rejected", "default/late"),
        (16.0, "Admitted", "default/small"),
        (19.0, "Stopped", "default/small"),
    ]


def test_a_pod_that_made_room_for_a_critical_one_is_replaced_and_the_journal_says_why():
    replaced = bound("a", "memory=900Mi", kind="Deployment", recreate=True)
    done = run(replaced, critical())
    (entry,) = (entry for entry in done.entries if entry.kind == "Preempted")
    assert line(entry) == "a-0 preempted: makes room for critical pod default/critical, which needs 200Mi more memory"
    (again,) = (entry for entry in done.entries if entry.kind == "Replaced")
    assert (again.time_us, again.because.why) == (11 * SECOND_US, "Preempting")


def test_pods_with_pod_level_resources_free_what_the_pod_requests():
    """The container of ``a`` requests 700Mi of the pod's 800Mi."""
    made = pod_of("a", container("main", requests="memory=700Mi"), priority=0, resources=resources("memory=800Mi"))
    assert gone_for(workload(made, using(MI)), bound("b", "memory=150Mi"), requests="memory=500Mi") == ["a"]


# ---- preemption heeds disruption budgets ---------------------------------------------------------------------------


def budget(app: str, **amounts) -> PodDisruptionBudget:
    """Return a budget for the pods of an app."""
    selector = LabelSelector(match_labels={"app": app})
    return PodDisruptionBudget(ObjectMeta(app, "default"), PodDisruptionBudgetSpec(selector, **amounts))


def app(name: str, priority: int = 0, demand=None, **fields):
    """Return a workload whose pods fill more than half of a node each; bound, if not said otherwise."""
    made = pod(name, "memory=700Mi", priority=priority)
    labelled = replace(made, metadata=replace(made.metadata, labels={"app": name}))
    return workload(labelled, demand or using(MI), **{"kind": "Deployment", "recreate": True, **fields})


def high(name: str = "high", at: int = 10, priority: int = 100):
    """Return a pod of higher priority that looks for a node."""
    return app(name, priority, nodes=(), arrives_us=at * SECOND_US)


def pushed_out(*works, count: int = 2, budgets=(), **fields) -> list[tuple[float, str, bool]]:
    """Return when the scheduler preempts, which pod, and whether that breaks a budget."""
    groups = (NodeGroup(node(), count),)
    done = simulate(scenario(*works, nodes=groups, budgets=budgets, **fields), check=True)
    return [
        (entry.time_us / SECOND_US, entry.pod.partition("/")[2], entry.because.breaks_budget)
        for entry in done.entries
        if entry.kind == "Preempted"
    ]


A, B = app("a", nodes=("n-0",)), app("b", 5, nodes=("n-1",), recreate=False)


def test_without_a_budget_the_pod_of_lowest_priority_goes():
    assert pushed_out(A, B, high()) == [(10.0, "a-0", False)]


@pytest.mark.parametrize("amounts", [{"min_available": 1}, {"max_unavailable": 0}, {"min_available": "50%"}])
def test_a_pod_of_higher_priority_goes_where_that_breaks_no_budget(amounts):
    """One of one must stay (half of one is one, rounded up), so ``b`` goes, whatever the priorities."""
    assert pushed_out(A, B, high(), budgets=(budget("a", **amounts),)) == [(10.0, "b-0", False)]


def test_a_budget_is_broken_where_nothing_else_helps_and_the_journal_says_so():
    assert pushed_out(app("a"), high(), count=1, budgets=(budget("a", min_available=1),)) == [(10.0, "a-0", True)]


def test_what_a_budget_allows_follows_the_pods_that_run():
    """Two of ``a`` run and one must: one may go, at 10 s.

    From then on one runs, its replacement finds no place, and ``b`` has to go for the next, at 20 s. Of the third at 30
    s only ``a`` is left, and it breaks the budget.
    """
    two_of_a = app("a", nodes=("n-0", "n-1"), replicas=2)
    other = app("b", 5, nodes=("n-2",), recreate=False)
    works = (two_of_a, other, high("one"), high("two", 20), high("three", 30))
    found = pushed_out(*works, count=3, budgets=(budget("a", min_available=1),))
    assert found == [(10.0, "a-0", False), (20.0, "b-0", False), (30.0, "a-1", True)]


def test_a_pod_that_waits_for_its_restart_is_not_healthy():
    """Two of ``a`` are there and one must run.

    The second ends every second: at 10 s it waits, and the first must stay.
    """
    crashing = using(MI, exits_after_us=SECOND_US, exit_code=1)
    two_of_a = replace(app("a", nodes=("n-0", "n-1"), replicas=2), demands=({"main": using(MI)}, {"main": crashing}))
    works = (two_of_a, app("b", 5, nodes=("n-2",), recreate=False), high())
    assert pushed_out(*works, count=3, budgets=(budget("a", min_available=1),)) == [(10.0, "b-0", False)]
    healthy = replace(two_of_a, demands=({"main": using(MI)},))
    assert pushed_out(healthy, *works[1:], count=3, budgets=(budget("a", min_available=1),)) == [(10.0, "a-0", False)]


def test_a_percentage_is_of_the_pods_that_should_run():
    """Three should run and 30 % may be missing: 0.9 of three, one, rounded up. After the first has gone none may."""
    three = app("a", nodes=("n-0", "n-1", "n-2"), replicas=3)
    works = (three, app("b", 5, nodes=("n-3",), recreate=False), high("one"), high("two", 20))
    found = pushed_out(*works, count=4, budgets=(budget("a", max_unavailable="30%"),))
    assert found == [(10.0, "a-0", False), (20.0, "b-0", False)]


def test_pods_on_nodes_where_nothing_happens_are_healthy_too():
    """Without checks the nodes of ``a`` are not simulated."""
    two_of_a = app("a", nodes=("n-0", "n-1"), replicas=2)
    works = two_of_a, app("b", 5, nodes=("n-2",), recreate=False), high()
    groups = (NodeGroup(node(), 3),)
    for least, expected in ((1, "default/a-0"), (2, "default/b-0")):
        made = scenario(*works, nodes=groups, budgets=(budget("a", min_available=least),))
        assert [key for _, _, key in lines(simulate(made), "Preempted")] == [expected]


def test_a_budget_among_the_manifests_of_a_scenario_counts(tmp_path):
    """The status of a budget, as a cluster reports it, is of then: one is healthy, and none may go."""
    (tmp_path / "pods.yaml").write_text(MANIFESTS)
    path = tmp_path / "scenario.yaml"
    path.write_text(BUDGET_SCENARIO)
    done = simulate(load_scenario(str(path)))
    assert [key for _, _, key in lines(done, "Preempted")] == ["default/b"]
    (tmp_path / "pods.yaml").write_text(MANIFESTS.replace("minAvailable: 1", "minAvailable: 1.5"))
    (problem,) = read_scenario(str(path)).problems
    assert (problem.source, problem.line) == (str(tmp_path / "pods.yaml"), 5)


POD = """\
---
apiVersion: v1
kind: Pod
metadata: {{name: {0}, labels: {{app: {0}}}}}
spec:
  priorityClassName: {0}
  {1}
  containers: [{{name: main, image: a, resources: {{requests: {{memory: 700Mi}}}}}}]
---
{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: {0}}}, value: {2}}}
"""
MANIFESTS = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: a}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: a}}
status: {disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1, expectedPods: 2, observedGeneration: 1}
""" + "".join(
    POD.format(*each) for each in (("a", "nodeName: node-0", 0), ("b", "nodeName: node-1", 5), ("high", "", 100))
)

BUDGET_SCENARIO = """\
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: budget}
spec:
  duration: 30s
  manifests: [pods.yaml]
  nodes: [{name: node, count: 2, capacity: {cpu: 4, memory: 1000Mi}, kubelet: {evictionHard: {memory.available: 0%}}}]
  workloads: [{workload: high, arrives: 10s}]
"""


# ---- blast knows volumes in memory ---------------------------------------------------------------------------------


def blasted(*works, leaker: str, rate: int = 100 * MI) -> list[tuple[str, float, str]]:
    """Return who dies when a pod of a scenario leaks, when, and at which level; the leaker last."""
    (still,) = nodes_now(scenario(*works))
    leak = next(each for each in leaks(still, rate) if each.pod == f"default/{leaker}")
    found = BlastNode(still, slowest=rate).unleash(leak)
    return [(death.pod, round(death.after_seconds, 3), death.cause) for death in (*found.others, found.end)]


def test_what_is_in_a_neighbours_volume_in_memory_leaves_less_for_a_leak():
    """400Mi in a volume and 100Mi beside it leave 500Mi of 1000Mi: a leak of 100 MiB/s is killed after 5 s."""
    works = workload(in_memory(pod("a")), writing(400 * MI, 100 * MI)), workload(pod("b"), using())
    assert blasted(*works, leaker="b") == [("default/b", 5.0, "node")]


def test_what_a_leaker_wrote_into_memory_counts_against_its_limit():
    works = (workload(in_memory(pod("a", limits="memory=300Mi")), writing(100 * MI, 50 * MI)),)
    assert blasted(*works, leaker="a") == [("default/a", 1.5, "container")]


def test_what_an_init_container_left_in_memory_counts_for_a_leak():
    """300Mi of the pod's 400Mi: 1 s to the limit of the pod, 4 s to that of the container."""
    main, init = container("main", limits="memory=400Mi"), container("init", limits="memory=400Mi")
    works = (workload(in_memory(pod_of("a", main, init_containers=(init,))), {"init": writing(300 * MI)}),)
    assert blasted(*works, leaker="a") == [("default/a", 1.0, "pod")]


def test_a_neighbour_that_dies_frees_no_volume_in_memory():
    """The leaker requests all memory, so that its score is low, and holds nothing.

    600Mi are in a volume of ``a``, whose process has 100Mi: after 3 s the machine is full and ``a`` is killed first,
    for its score. That frees 100Mi and not 700Mi, which last the leaker until 4 s. The idle container of ``a`` is next
    for its score, and frees nothing.
    """
    leaker = workload(pod("leaker", "memory=999Mi"), using())
    works = leaker, workload(in_memory(pod("a", restart_policy="Never")), writing(600 * MI, 100 * MI))
    (still,) = nodes_now(scenario(works[0], replace(works[1], pod=two_containers(works[1].pod))))
    leak = next(each for each in leaks(still, 100 * MI) if each.pod == "default/leaker")
    found = BlastNode(still, slowest=100 * MI).unleash(leak)
    died = [(death.pod, death.container, round(death.after_seconds, 3)) for death in (*found.others, found.end)]
    assert died == [("default/a", "main", 3.0), ("default/a", "idle", 4.0), ("default/leaker", "main", 4.0)]


def test_what_the_kubelet_reports_of_a_volume_in_memory_is_not_page_cache():
    """Of a working set of 500Mi 100Mi are private; of the other 400Mi 300Mi are in the volume, so 100Mi are cache."""
    made = in_memory(pod("a"))
    memory = MemoryStats(working_set_bytes=500 * MI, rss_bytes=100 * MI, usage_bytes=500 * MI)
    stats = PodStats(
        PodReference("a", "default", "a"), (ContainerStats("main", memory),), memory, (VolumeStats("v", 300 * MI, 1),)
    )
    ((usage,),) = (each.containers for each in from_summary([made], Summary(pods=(stats,)), NodeUsage(1000 * MI)).pods)
    assert (usage.anon_bytes, usage.active_file_bytes, usage.tmpfs_bytes) == (100 * MI, 100 * MI, 300 * MI)
    assert usage.working_set_bytes == 500 * MI
