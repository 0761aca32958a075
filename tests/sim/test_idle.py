"""Nodes that rest: their journal is the same as if they had been simulated, and they wake when they are wanted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from admission.pods import container
from eviction.nodes import guaranteed, pod, pod_of
from podqos.agent.journal import encode
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.time_units import SECOND_US
from podqos.sim.cluster.cluster import SimCluster
from podqos.sim.cluster.known_nodes import KnownNodes
from podqos.sim.cluster.long_journal import LongJournal
from podqos.sim.engine.curve import Clock, Curve, constant
from podqos.sim.engine.event_queue import EventQueue
from podqos.sim.node.recording import Recorder
from podqos.sim.run import simulate
from podqos.sim.scenario.demand import SystemDemand
from podqos.sim.scenario.happenings import NodeLost
from podqos.sim.scenario.replicas import places
from podqos.sim.scenario.scenario import Filesystem, NodeGroup, Scenario
from sim.test_properties import scenarios
from sim.worlds import GI, MI, node, ramp, scenario, using, workload


def idle_nodes(made: Scenario) -> int:
    """Return how many nodes are not set up at the beginning."""
    return len(unwatched(made).fleet.idle)


def unwatched(made: Scenario) -> SimCluster:
    """Return a cluster of which nobody wants to see anything."""
    return SimCluster(made, EventQueue(made.duration_us), is_watched=lambda _: False)


def all_awake(made: Scenario) -> bytes:
    """Return the journal of a run in which every node is simulated."""
    return encode(simulate(made, check=True).entries)


def fleet(*demands, count=5, seconds=100, happenings=(), beside=(), **fields):
    """Return a scenario of equal nodes, each with two pods of a workload whose pods take turns with demands."""
    spread = {"nodes": (), "spread": True, "kind": "Deployment", "replicas": count * 2, "recreate": True}
    made = workload(pod("a", limits="memory=100Mi,cpu=1"), using(), **{**spread, **fields})
    made = replace(made, demands=tuple({"main": demand} for demand in demands))
    groups = (NodeGroup(node(config=KubeletConfiguration(eviction_hard={"memory.available": "100Mi"})), count),)
    return scenario(made, *beside, seconds=seconds, nodes=groups, happenings=happenings)


LOUD = {
    "beyond a limit": using(200 * MI),
    "beyond a limit at last": using(ramp(0, 150 * MI, 60)),
    "beyond a quota": using(MI, cpu_milli=1500),
    "ending": using(MI, exits_after_us=SECOND_US),
    "too many processes": using(MI, pids=5_000_000),
    "a full disk": using(MI, logs_bytes=1 << 50),
    "passing a threshold of the disk": using(MI, rootfs_bytes=48 * GI),
}


@pytest.mark.parametrize("demand", LOUD.values(), ids=LOUD)
def test_a_node_with_something_to_do_is_set_up(demand):
    made = fleet(demand)
    hard = {"memory.available": "100Mi", "nodefs.available": "10%"}
    (group,) = made.nodes
    spec = replace(group.spec, config=KubeletConfiguration(eviction_hard=hard))
    assert idle_nodes(replace(made, nodes=(replace(group, spec=spec),))) == 0


QUIET = {
    "idle": (using(),),
    "steady": (using(50 * MI, cpu_milli=500),),
    "rising": (using(ramp(0, 90 * MI, 60, clock=Clock.SCENARIO)),),
    "a leak that is slow": (using(ramp(0, 10 * GI, 100_000)),),
    "two kinds": (using(50 * MI), using(90 * MI)),
}


@pytest.mark.parametrize("demands", QUIET.values(), ids=QUIET)
def test_a_node_with_nothing_to_do_rests_and_its_journal_is_the_same(demands):
    made = fleet(*demands)
    assert idle_nodes(made) == 5
    assert encode(simulate(made).entries) == all_awake(made)


@pytest.mark.parametrize(("best_effort_mi", "rest"), [(700, 5), (900, 0)], ids=["below", "above"])
def test_a_node_rests_as_long_as_every_class_stays_below_its_ceiling(best_effort_mi, rest):
    """Of 1000Mi two Guaranteed pods reserve 100Mi each."""
    made = fleet(using(MI))
    (group,) = made.nodes
    config = KubeletConfiguration(
        eviction_hard={}, qos_reserved={"memory": "100%"}, feature_gates={"QOSReserved": True}
    )
    nodes = (replace(group, spec=replace(group.spec, config=config)),)
    spread = {"nodes": (), "spread": True, "kind": "Deployment", "replicas": 5}
    beside = workload(pod("scratch"), using(best_effort_mi * MI), **spread)
    (reserving,) = made.workloads
    made = replace(made, nodes=nodes, workloads=(replace(reserving, pod=guaranteed("a", "100Mi")), beside))
    assert idle_nodes(made) == rest
    assert encode(simulate(made).entries) == all_awake(made)


def test_pods_that_take_turns_are_quiet_together_though_their_peaks_would_not_be():
    one = Curve(((0, 0), (50 * SECOND_US, 600 * MI), (100 * SECOND_US, 0)), period_us=100 * SECOND_US)
    other = Curve(((0, 600 * MI), (50 * SECOND_US, 0), (100 * SECOND_US, 600 * MI)), period_us=100 * SECOND_US)
    both = [workload(pod(name), using(curve)) for name, curve in (("one", one), ("other", other))]
    assert idle_nodes(scenario(*both, seconds=1000)) == 1
    assert idle_nodes(scenario(*both, workload(pod("third"), using(500 * MI)), seconds=1000)) == 0


SUM = Curve(((0, 0), (50 * SECOND_US, 600 * MI), (100 * SECOND_US, 0)), period_us=100 * SECOND_US)
REST = Curve(((0, 600 * MI), (50 * SECOND_US, 0), (100 * SECOND_US, 600 * MI)), period_us=100 * SECOND_US)
EVEN_SECONDS = (1 << 26) / SECOND_US
"""No slope to a whole number is rounded in so much time."""
LIMITED = pod("a", limits="memory=100Mi,cpu=1")
FULL = {
    "the machine": lambda more: [workload("a", using(500 * MI)), workload("b", using(500 * MI + more))],
    "the machine, by curves that take turns": lambda more: [
        workload("a", using(SUM)),
        workload("b", using(REST)),
        workload("c", using(400 * MI + more)),
    ],
    "the machine, with daemons": lambda more: [workload("a", using(700 * MI + more))],
    "a limit": lambda more: [workload(LIMITED, using(ramp(0, 100 * MI + more, EVEN_SECONDS)))],
    "a quota": lambda more: [workload(LIMITED, using(0, cpu_milli=ramp(0, 1000 + more, 60)))],
    "the disk": lambda more: [
        workload(name, using(0, logs_bytes=50 * GI + extra)) for name, extra in (("a", 0), ("b", more))
    ],
}


@pytest.mark.parametrize("pods", FULL.values(), ids=FULL)
def test_a_node_that_is_full_to_the_last_unit_is_idle_and_one_more_makes_it_worth_a_look(pods):
    system = (
        SystemDemand(anon_bytes=constant(300 * MI)) if pods is FULL["the machine, with daemons"] else SystemDemand()
    )
    full, over = (scenario(*pods(more), seconds=100, spec=node(system=system)) for more in (0, 1))
    assert (idle_nodes(full), idle_nodes(over)) == (1, 0)
    assert encode(simulate(full).entries) == all_awake(full)
    kinds = simulate(over).tallies.kinds
    assert kinds.keys() & {"OOMKilled", "Throttled", "Refused"}


def test_pods_that_are_not_all_admitted_make_a_node_worth_a_look():
    full = [workload(pod(f"p{number}", "memory=400Mi"), using()) for number in range(3)]
    assert idle_nodes(scenario(*full[:2])) == 1
    assert idle_nodes(scenario(*full)) == 0


def test_pods_are_bound_in_turn_by_the_numbers_of_nodes_whichever_of_them_are_simulated():
    made = fleet(using(), count=4)
    (spread,) = made.workloads
    known = KnownNodes(made)
    every = {*places(spread, known.turns(spread, [f"n-{number}" for number in range(4)]))}
    assert len(every) == 8
    some = {*places(spread, known.turns(spread, ["n-1", "n-3"]))}
    assert some == {(number, name) for number, name in every if name in {"n-1", "n-3"}}


def test_init_containers_end_at_the_beginning():
    made = pod_of("a", container("main"), init_containers=(container("first"), container("second")))
    idle = scenario(workload(made, using(MI)))
    assert idle_nodes(idle) == 1
    assert encode(simulate(idle).entries) == all_awake(idle)


def free(name: str, **fields: object):
    return workload(pod(name), using(MI), **{"nodes": (), "kind": "Deployment", **fields})


WAKING = {
    "a deletion": fleet(using(MI), deleted_us=30 * SECOND_US),
    "a node that is lost": fleet(using(MI), seconds=500, happenings=(NodeLost(at_us=3 * SECOND_US, node="n-1"),)),
    "a node that is lost at once": fleet(using(MI), happenings=(NodeLost(at_us=0, node="n-1"),)),
    "a late arrival": fleet(using(MI), arrives_us=40 * SECOND_US),
    "a pod from the scheduler": fleet(using(MI), beside=(free("b", replicas=3),)),
    "a late pod from the scheduler": fleet(
        using(ramp(0, 50 * MI, 60)), beside=(free("b", arrives_us=33 * SECOND_US, replicas=3),)
    ),
    "preemption": fleet(
        using(MI),
        beside=(
            workload(
                pod("b", "memory=950Mi", priority=9),
                using(MI),
                nodes=(),
                arrives_us=5 * SECOND_US,
                replicas=2,
                kind="Deployment",
            ),
        ),
    ),
}


@pytest.mark.parametrize("made", WAKING.values(), ids=WAKING)
def test_a_node_that_wakes_goes_on_as_if_it_had_been_there_all_the_time(made):
    assert encode(simulate(made).entries) == all_awake(made)


def test_only_nodes_that_are_wanted_wake():
    made = fleet(using(MI), seconds=10, happenings=(NodeLost(at_us=3 * SECOND_US, node="n-1"),))
    cluster = unwatched(made)
    while cluster.queue.next is not None:
        cluster.queue.step()
    assert list(cluster.fleet.idle) == ["n-0", "n-2", "n-3", "n-4"]


def test_nodes_that_are_watched_do_not_rest():
    class Two(Recorder):
        def records(self, node: str) -> bool:
            return node in {"n-1", "n-3"}

    recorder = Two()
    made = fleet(using(MI))
    assert encode(simulate(made, recorder=recorder).entries) == all_awake(made)
    assert set(recorder.nodes) == {"n-1", "n-3"}


def test_many_quiet_nodes_cost_no_events():
    done = simulate(fleet(using(MI), count=300))
    assert done.tallies.events == 1
    assert done.tallies.kinds == {"Admitted": 600, "Started": 600}


def test_a_long_journal_reads_like_a_list():
    made = fleet(using(MI), count=12, happenings=(NodeLost(at_us=3 * SECOND_US, node="n-1"),))
    cluster = unwatched(made)
    while cluster.queue.next is not None:
        cluster.queue.step()
    written = sorted(cluster.entries, key=lambda entry: (entry.time_us, entry.node))
    journal, entries = LongJournal(written, cluster.fleet), list(simulate(made).entries)
    assert list(journal) == list(journal) == entries
    assert len(journal) == len(entries)
    assert (journal[0], journal[-1], journal[3:9:2], journal[::-1]) == (
        entries[0],
        entries[-1],
        entries[3:9:2],
        entries[::-1],
    )
    with pytest.raises(IndexError):
        journal[len(entries)]


@st.composite
def calm_scenarios(draw: st.DrawFn) -> Scenario:
    """Return scenarios with larger machines, on many of which nothing happens by itself."""
    made = draw(scenarios())
    (group,) = made.nodes
    times = draw(st.sampled_from([2, 4, 40]))
    spec = replace(
        group.spec,
        memory_bytes=times * group.spec.memory_bytes,
        cpu_milli=times * group.spec.cpu_milli,
        max_pids=times * group.spec.max_pids,
        nodefs=Filesystem(times * 1000 * MI, times * 10_000),
        config=replace(group.spec.config, pod_pids_limit=-1),
    )
    workloads = tuple(
        replace(
            each,
            demands=tuple(
                {name: replace(demand, exits_after_us=None) for name, demand in demands.items()}
                for demands in each.demands
            ),
            spread=each.spread or draw(st.booleans()),
        )
        for each in made.workloads
    )
    return replace(made, nodes=(replace(group, spec=spec),), workloads=workloads)


@settings(max_examples=12)
@given(st.one_of(scenarios(), calm_scenarios(), calm_scenarios()))
def test_resting_changes_nothing(made):
    assert encode(simulate(made).entries) == encode(simulate(made, recorder=Recorder(2)).entries)


@pytest.mark.slow
@given(calm_scenarios())
def test_resting_changes_nothing_in_many_scenarios(made):
    assert encode(simulate(made).entries) == encode(simulate(made, recorder=Recorder(2)).entries)
