"""From a run to what is shown of it."""

from __future__ import annotations

import pytest

from eviction.nodes import guaranteed, pod
from podqos.agent.journal import By
from podqos.agent.reasons import OOMKill
from podqos.answers.run_reading import run_view
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import QOSClass
from podqos.model.time_units import SECOND_US
from podqos.sim.engine.curve import constant
from podqos.sim.node.recording import Recorder
from podqos.sim.recorded_node import deadliest_nodes
from podqos.sim.run import simulate
from podqos.sim.scenario.demand import SystemDemand
from podqos.sim.scenario.scenario import NodeGroup
from sim.worlds import GI, MI, node, ramp, scenario, using, workload

EVICTING = KubeletConfiguration(eviction_hard={"memory.available": "100Mi"}, enforce_node_allocatable=())


def shown(*workloads, **fields):
    """Run a scenario and return what is shown."""
    recorder = Recorder()
    done = simulate(scenario(*workloads, **fields), recorder=recorder)
    return run_view(done, recorder.nodes)


@pytest.fixture(scope="module")
def leak():
    """Return a run in which a BestEffort pod uses the node up, and the kernel kills it."""
    return shown(
        workload(guaranteed("web", "200Mi"), using(150 * MI, cpu_milli=500)),
        workload(pod("batch", "memory=300Mi", priority=5), using(200 * MI, processes=2)),
        workload(pod("leak", restart_policy="Never"), using(ramp(0, 2000 * MI, 60, after=2))),
        seconds=60,
    )


# ---- series ----------------------------------------------------------------------------------------------------------


def test_pods_are_stacked_by_class_and_have_shades_of_their_own(leak):
    assert [each.qos_class for each in leak.pods] == [QOSClass.GUARANTEED, QOSClass.BURSTABLE, QOSClass.BEST_EFFORT]
    assert len({each.colour for each in leak.pods}) == 3
    assert leak.pods[1].containers[0].memory_request_bytes == 300 * MI
    assert leak.pods[2].containers[0].oom_score_adj == 1000


def test_all_series_of_a_node_have_the_times_of_the_node(leak):
    (view,) = leak.nodes
    columns = [view.available_bytes, view.free_bytes, view.system_bytes]
    columns += [column for series in view.pods for column in (series.anon_bytes, series.cpu_granted_milli)]
    assert {len(column) for column in columns} == {len(view.times_us)}
    assert view.times_us[0] == 0
    assert view.times_us[-1] == leak.end_us
    assert list(view.times_us) == sorted(view.times_us)


def test_a_kill_is_a_step_and_a_pod_that_does_not_run_has_no_figures(leak):
    (view,) = leak.nodes
    (kill,) = leak.kills
    before, after = (index for index, time_us in enumerate(view.times_us) if time_us == kill.time_us)
    series = view.pods[2].anon_bytes
    assert series[before] > 600 * MI
    assert series[after] is None
    assert view.available_bytes[before] < view.available_bytes[after]


def test_only_what_runs_short_besides_memory_is_shown(leak):
    assert leak.nodes[0].signals == ()
    disk = shown(workload(pod("writer"), using(rootfs_bytes=ramp(0, 60 * GI, 20))), seconds=30)
    assert [series.signal for series in disk.nodes[0].signals] == ["nodefs.available"]


# ---- both orders -----------------------------------------------------------------------------------------------------


def test_both_orders_are_known_between_events_too(leak):
    orders = leak.nodes[0].orders
    falling = [each for each in orders if 2 * SECOND_US < each.time_us < 18 * SECOND_US]
    assert len(falling) > 3
    used = [next(rank.usage for rank in each.kubelet if rank.pod == 2) for each in falling]
    assert used == sorted(used)


def test_the_orders_just_before_a_kill_begin_with_the_victim(leak):
    (kill,) = leak.kills
    orders = next(each for each in leak.nodes[0].orders if each.time_us == kill.time_us)
    assert leak.pods[orders.kernel[0].pod].key == kill.pod
    assert leak.pods[orders.kubelet[0].pod].key == kill.pod


# ---- kills -----------------------------------------------------------------------------------------------------------


def test_a_kill_by_the_kernel_has_its_places_reasons_and_what_would_have_saved_the_pod(leak):
    (kill,) = leak.kills
    assert (kill.by, kill.pod, kill.container, kill.qos_class) == (
        By.KERNEL,
        "default/leak",
        "main",
        QOSClass.BEST_EFFORT,
    )
    assert (kill.kernel_place, kill.kubelet_place) == (1, 1)
    assert isinstance(kill.because, OOMKill)
    assert kill.reasons
    changes = [saving.change for saving in kill.savings]
    assert "Make it Guaranteed" in changes
    assert any(change.startswith("evictionHard memory.available ") for change in changes)


def test_of_several_kills_at_one_time_each_victim_was_first_when_its_turn_came():
    """Killing the first gains too little, so that a second follows at once."""
    view = shown(
        workload(pod("small", restart_policy="Never"), using(200 * MI)),
        workload(pod("large", "memory=600Mi", restart_policy="Never"), using(600 * MI)),
        workload(guaranteed("web", "50Mi"), using(50 * MI)),
        workload(pod("jump", "memory=300Mi", restart_policy="Never"), using(ramp(0, 400 * MI, 0, after=1))),
        seconds=10,
    )
    assert [kill.pod for kill in view.kills] == ["default/small", "default/jump"]
    assert [kill.kernel_place for kill in view.kills] == [1, 1]


def test_an_eviction_has_what_would_have_saved_the_pod():
    view = shown(
        workload(pod("greedy", "memory=100Mi"), using(ramp(100 * MI, 700 * MI, 20))),
        workload(pod("modest", "memory=200Mi"), using(250 * MI)),
        seconds=60,
        spec=node(config=EVICTING),
    )
    kill = view.kills[0]
    assert (kill.by, kill.pod, kill.kubelet_place, kill.kernel_place) == (By.KUBELET, "default/greedy", 1, None)
    assert next(saving.change for saving in kill.savings if saving.saves).startswith("Request ")
    (span,) = view.nodes[0].conditions
    assert (span.condition, span.start_us) == ("MemoryPressure", kill.time_us)


IN_TIME = "evictionHard memory.available "


def _growing(**fields):
    """Return pods of which the kernel takes the one that grows, and the kubelet the one that is less important."""
    return (
        workload(guaranteed("web", "200Mi"), using(150 * MI)),
        workload(pod("batch", "memory=100Mi", restart_policy="Never"), using(200 * MI)),
        workload(pod("leak", priority=10, restart_policy="Never"), using(ramp(0, 2000 * MI, 60, after=2), **fields)),
    )


@pytest.mark.parametrize("phase", range(10))
def test_the_threshold_that_saves_a_pod_does_so_wherever_the_kubelets_loop_is(phase):
    (kill,) = [each for each in shown(*_growing()).kills if each.pod == "default/leak"]
    (saving,) = [each for each in kill.savings if each.change.startswith(IN_TIME)]
    assert saving.saves
    assert saving.effect.endswith("and evicts default/batch")
    config = KubeletConfiguration(
        eviction_hard={"memory.available": saving.change.removeprefix(IN_TIME)}, enforce_node_allocatable=()
    )
    again = shown(*_growing(), spec=node(config=config, loop_phase_us=phase * SECOND_US))
    until = [each.pod for each in again.kills if each.time_us <= kill.time_us]
    assert until[0] == "default/batch"
    assert (kill.time_us, "default/leak") not in [(each.time_us, each.pod) for each in again.kills]


def test_no_threshold_is_named_that_would_be_met_before_memory_falls():
    """Within a second nothing less than everything is left early enough."""
    view = shown(
        workload(guaranteed("web", "200Mi"), using(150 * MI)),
        workload(pod("leak", restart_policy="Never"), using(ramp(0, 2000 * MI, 2, after=2))),
    )
    (kill,) = view.kills
    assert not [each for each in kill.savings if each.change.startswith(IN_TIME)]


def test_a_pod_that_comes_and_goes_between_two_moments_has_its_places_and_savings():
    """It wants more than the node has from its first instant on."""
    view = shown(
        workload(pod("web", "memory=900Mi"), using(900 * MI)),
        workload(pod("jump", restart_policy="Never"), using(200 * MI), arrives_us=5 * SECOND_US),
    )
    (kill,) = view.kills
    assert (kill.pod, kill.kernel_place, kill.kubelet_place) == ("default/jump", 1, 1)
    assert "Make it Guaranteed" in [saving.change for saving in kill.savings]


def test_an_eviction_for_disk_counts_the_place_in_the_order_for_disk():
    """By memory, web would stand first."""
    view = shown(
        workload(pod("web", "ephemeral-storage=1Gi"), using(300 * MI, rootfs_bytes=500 * MI)),
        workload(
            pod("writer", "memory=100Mi,ephemeral-storage=1Gi"), using(10 * MI, rootfs_bytes=ramp(0, 95 * GI, 20))
        ),
        seconds=40,
        spec=node(config=KubeletConfiguration(eviction_hard={"nodefs.available": "10%"}, enforce_node_allocatable=())),
    )
    kill = view.kills[0]
    assert (kill.pod, kill.kubelet_place, kill.because.candidates) == ("default/writer", 1, 2)
    request, less = kill.savings
    assert not request.saves
    assert request.effect.endswith("of 90.0Gi ephemeral-storage")
    assert less.saves
    assert less.change.endswith(" less disk")


def test_a_limit_of_the_pods_own_has_no_place_in_an_order_and_is_raised_to_save_the_pod():
    limited = pod("writer", limits="ephemeral-storage=1Gi")
    view = shown(workload(limited, using(10 * MI, rootfs_bytes=ramp(0, 2 * GI, 20))), workload("web", using(MI)))
    kill = view.kills[0]
    assert (kill.pod, kill.kubelet_place) == ("default/writer", None)
    assert kill.savings[0].change.startswith("An ephemeral-storage limit of ")
    assert kill.savings[0].change.endswith(" for main")
    assert kill.savings[0].effect == "replayed, no other pod dies instead"


# ---- the whole -------------------------------------------------------------------------------------------------------


def test_the_summary_names_workloads_not_pods(leak):
    rows = {row.workload: row for row in leak.summary.workloads}
    assert rows["default/leak"].oom_kills == 1
    assert rows["default/web"].untouched == 1
    assert leak.summary.oom_kills_by_level == {"node": 1}


def test_nodes_with_most_kills_come_first(leak):
    recorder = Recorder()
    two = scenario(
        workload(pod("leak"), using(ramp(0, 2000 * MI, 10))),
        seconds=60,
        nodes=(NodeGroup(node("n")), NodeGroup(node("m"))),
    )
    done = simulate(two, recorder=recorder)
    assert deadliest_nodes(done.entries) == ["n"]
    assert two.node_names == ["n", "m"]


# ---- second runs -----------------------------------------------------------------------------------------------------


def test_a_container_at_its_own_limit_is_told_the_limit_with_which_it_lives_through_the_same_run():
    """It grows to 300Mi. A fifth above what it asked for is too little: with 241Mi it dies a few seconds later."""
    view = shown(workload(pod("web", "memory=100Mi", "memory=200Mi"), using(ramp(0, 300 * MI, 20))), seconds=60)
    (saving,) = view.kills[0].savings
    assert (saving.change, saving.saves) == ("A memory limit of 482Mi", True)
    assert saving.edits == ("spec.containers[0].resources.limits.memory: 482Mi   # was 200Mi",)
    assert saving.rests_on[0] == "replayed the whole run with this change"


def test_a_request_with_which_another_workload_finds_no_node_says_so():
    """What runs beside pods fills half of the node, so that there is room for requests that is not free."""
    view = shown(
        workload(pod("web", "memory=100Mi"), using(ramp(100 * MI, 600 * MI, 40))),
        workload(pod("batch", "memory=400Mi"), using(390 * MI)),
        workload(pod("late", "memory=1350Mi"), using(10 * MI), arrives_us=450 * SECOND_US, nodes=()),
        seconds=600,
        spec=node(memory=2000 * MI, config=EVICTING, system=SystemDemand(anon_bytes=constant(1000 * MI))),
    )
    kill = view.kills[0]
    (saving,) = [each for each in kill.savings if each.kind == "request more"]
    assert kill.pod == "default/web"
    assert "then no node has room for default/late" in saving.effect
    assert saving.saves
