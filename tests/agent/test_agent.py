"""The agent in the smallest of worlds: admission, cgroups, the eviction loop with its waits, conditions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.memory_world import MemoryWorld, Run
from eviction.nodes import guaranteed, pod
from podqos.agent.agent import handle, idle_until_us, is_idle, look_again_seconds, skip_idle_passes
from podqos.agent.driver import Driver
from podqos.agent.port import (
    CreateCgroup,
    Observed,
    PodBound,
    PodCleanedUp,
    PodDeleted,
    PodStopped,
    PreemptPod,
    RejectPod,
    StartPod,
    StopPod,
    UpdateCgroup,
    Woken,
)
from podqos.agent.reasons import (
    CleanUpGain,
    ConditionStatus,
    LocalStorageExceeded,
    NotAdmitted,
    Promised,
    ThresholdsMet,
    TooLittleLeft,
    UnderPressure,
)
from podqos.agent.state import AgentConfig, MemoryNotification, Resting, Stage
from podqos.eviction.manager import EvictPod, configure
from podqos.eviction.ranking import Policy
from podqos.eviction.signals import CleanUp, Layout, NodeCondition, Observation, RankKey, Signal, observe
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import EmptyDir, Pod, QOSClass, Volume
from podqos.model.quantity import Quantity
from podqos.model.stats import VolumeStats
from podqos.qos.cgroup_settings import CgroupSettings

MI = 1 << 20
BURSTABLE = "/kubepods.slice/kubepods-burstable.slice"


PLENTY = {"cpu": "64", "memory": "64Gi", "ephemeral-storage": "1Ti"}


def config(
    allocatable: dict[str, str] | None = None, max_pods: int = 110, cgroups_per_qos: bool = True, **settings: object
) -> AgentConfig:
    """Make a node of 1000 MiB that is under pressure below 100 MiB."""
    fields = {"eviction_hard": {"memory.available": "100Mi"}, "enforce_node_allocatable": (), **settings}
    return AgentConfig(
        node="n",
        cgroups=CgroupSettings(node_memory_bytes=1000 * MI, cgroups_per_qos=cgroups_per_qos),
        eviction=configure(KubeletConfiguration(**fields), layout=Layout.SINGLE),
        allocatable={name: Quantity.parse(text) for name, text in (allocatable or PLENTY).items()},
        max_pods=max_pods,
    )


def run(world: MemoryWorld | None = None, *pods: Pod, **settings: object) -> Run:
    """Start an agent and give it pods."""
    begun = Run(config(**settings), world)
    for each in pods:
        begun.tell(PodBound(each))
    return begun


def crowded(*, stop_seconds: float = 0, clean_up_seconds: float = 0) -> MemoryWorld:
    """Return a world in which ``greedy`` leaves too little memory."""
    world = MemoryWorld()
    world.uses_mi = {"greedy": 700, "modest": 250}
    world.stop_seconds, world.clean_up_seconds = stop_seconds, clean_up_seconds
    return world


GREEDY, MODEST = pod("greedy", "memory=100Mi"), pod("modest", "memory=300Mi")


# ---- admission and cgroups ---------------------------------------------------------------------------------------


def test_a_pod_starts_in_cgroups_made_for_it_with_the_scores_of_its_class():
    running = run(None, pod("a", "memory=100Mi"))
    *_, create, start = running.world.commands
    assert isinstance(create, CreateCgroup)
    assert create.cgroup.path == f"{BURSTABLE}/kubepods-burstable-poda.slice"
    assert isinstance(start, StartPod)
    assert [(plan.name, plan.oom_score_adj) for plan in start.containers] == [("main", 900)]
    assert start.containers[0].cgroup.path.startswith(create.cgroup.path)
    assert running.journal[-1].because == Promised(QOSClass.BURSTABLE, {"main": 900})
    assert running.driver.state.pods["a"].stage is Stage.RUNNING


def test_the_cgroups_of_the_classes_follow_the_pods_that_come_and_go():
    running = run()
    assert running.world.cgroups[BURSTABLE]["cpu.weight"] == "1"
    running.tell(PodBound(pod("a", "cpu=1")))
    assert running.world.cgroups[BURSTABLE]["cpu.weight"] == "39"
    running.tell(PodBound(pod("b", "cpu=1")))
    running.tell(PodDeleted("a"))
    assert running.world.cgroups[BURSTABLE]["cpu.weight"] == "39"
    running.tell(PodDeleted("b"))
    assert running.world.cgroups[BURSTABLE]["cpu.weight"] == "1"
    assert sorted(running.world.cgroups) == ["/kubepods.slice", "/kubepods.slice/kubepods-besteffort.slice", BURSTABLE]


def test_a_best_effort_pod_changes_no_cgroup_above_it():
    running = run(None, pod("a"))
    assert not any(isinstance(command, UpdateCgroup) for command in running.world.commands)


def test_without_qos_cgroups_the_kubelet_makes_none():
    running = run(None, pod("a"), cgroups_per_qos=False)
    running.tell(PodDeleted("a"))
    assert running.world.cgroups == {}


REFUSED = {
    "cpu": ("cpu=3", "OutOfcpu", TooLittleLeft("cpu", 3000, 1000, 2000)),
    "memory before what comes later": ("memory=2Gi,ephemeral-storage=9Gi", "OutOfmemory", None),
    "huge pages of a node that has none": ("hugepages-2Mi=2Mi", "OutOfhugepages-2Mi", None),
    "an extended resource the node does not list": ("example.com/dongle=1", None, None),
    "nothing": ("", None, None),
}


@pytest.mark.parametrize(("requests", "reason", "because"), REFUSED.values(), ids=REFUSED)
def test_a_pod_must_fit_into_what_is_left_of_allocatable(requests, reason, because):
    allocatable = {"cpu": "2", "memory": "1Gi", "ephemeral-storage": "1Gi"}
    running = run(None, pod("first", "cpu=1"), pod("second", requests), allocatable=allocatable)
    assert running.world.rejected == ({} if reason is None else {"second": reason})
    if because is not None:
        assert running.journal[-1].because == because
        (rejection,) = (command for command in running.world.commands if isinstance(command, RejectPod))
        assert rejection.message == (
            "Node didn't have enough resource: cpu, requested: 3000, used: 1000, capacity: 2000"
        )


def test_a_pod_fits_again_when_another_has_stopped():
    running = run(None, pod("a", "cpu=2"), allocatable={"cpu": "2"})
    running.world.stop_seconds = 5
    running.tell(PodDeleted("a"))
    running.tell(PodBound(pod("b", "cpu=2")))
    assert running.world.rejected == {"b": "OutOfcpu"}  # a pod counts until it has stopped
    running.until(6)
    running.tell(PodBound(pod("c", "cpu=2")))
    assert list(running.world.running) == ["c"]


def test_a_node_takes_no_more_pods_than_it_may():
    running = run(None, pod("a"), pod("b"), max_pods=1)
    assert running.world.rejected == {"b": "OutOfpods"}


def test_a_pod_told_of_twice_is_started_once():
    running = run(None, pod("a"), pod("a"))
    assert sum(isinstance(command, StartPod) for command in running.world.commands) == 1


def test_best_effort_pods_are_turned_away_while_memory_is_short():
    running = run(crowded(clean_up_seconds=1), GREEDY, MODEST)
    running.until(0)
    running.tell(PodBound(pod("late")))
    running.tell(PodBound(pod("wanted", "cpu=1m")))
    assert running.world.rejected == {"late": "Evicted"}
    rejection = next(entry for entry in running.journal if entry.kind == "Rejected")
    assert rejection.because == NotAdmitted(
        "BestEffortUnderMemoryPressure", "The node had condition: [MemoryPressure]. "
    )


# ---- deletion ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("own", "expected"), [(None, 30), (0, 0), (7, 7)])
def test_a_deleted_pod_gets_the_time_it_asked_for(own, expected):
    running = run(None, pod("a", termination_grace_period_seconds=own))
    running.tell(PodDeleted("a"))
    (stop,) = (command for command in running.world.commands if isinstance(command, StopPod))
    assert stop.grace_period_seconds == expected
    assert running.driver.state.pods == {}
    assert running.lines("Stopped", "CleanedUp") == [(0, "Stopped", "default/a"), (0, "CleanedUp", "default/a")]


def test_a_pod_that_ends_by_itself_is_cleaned_up_too():
    running = run(None, pod("a"))
    del running.world.running["a"]
    running.tell(PodStopped("a"))
    assert running.journal[-2].by is None
    assert running.driver.state.pods == {}


@pytest.mark.parametrize("event", [PodDeleted("x"), PodStopped("x"), PodCleanedUp("x"), Observed(Observation({}, {}))])
def test_news_of_unknown_pods_and_unasked_figures_change_nothing(event):
    running = run(None, pod("a"))
    before = running.driver.state
    step = handle(running.driver.config, before, 5, event)
    assert (step.state, step.commands, step.entries) == (before, (), ())


# ---- the eviction loop -------------------------------------------------------------------------------------------


def test_a_quiet_node_is_looked_at_every_ten_seconds_and_leaves_no_trace():
    running = run(None, pod("a"))
    written = len(running.journal)
    running.until(35)
    assert running.driver.wake_us == 40_000_000
    assert len(running.journal) == written


def test_woken_too_early_the_loop_rests_on():
    running = run()
    running.until(5)
    running.tell(Woken())
    assert running.driver.state.loop == Resting(10_000_000)


def test_the_pod_over_its_request_is_evicted_and_pressure_reported():
    running = run(crowded(), GREEDY, MODEST)
    running.until(0)
    assert list(running.world.running) == ["modest"]
    assert running.world.conditions == {NodeCondition.MEMORY_PRESSURE: True}
    assert running.lines()[-5:] == [
        (0, "Observed", None),
        (0, "ConditionChanged", None),
        (0, "Evicted", "default/greedy"),
        (0, "Stopped", "default/greedy"),
        (0, "CleanedUp", "default/greedy"),
    ]
    seen, changed, evicted = (entry.because for entry in running.journal[-5:-2])
    assert isinstance(seen, ThresholdsMet)
    assert [(one.signal, one.threshold, one.available) for one in seen.met] == [(Signal.MEMORY, 100 * MI, 50 * MI)]
    assert changed == ConditionStatus(NodeCondition.MEMORY_PRESSURE, holds=True)
    assert evicted == UnderPressure(
        signal=Signal.MEMORY,
        threshold=100 * MI,
        available=50 * MI,
        hard=True,
        policy=Policy.KUBELET,
        usage=700 * MI,
        request=100 * MI,
        over_request=True,
        priority=0,
        has_statistics=True,
        candidates=2,
        next_pod="default/modest",
        before_next_by=RankKey.OVER_REQUEST,
        grace_period_seconds=1,
        message="The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
        "Container main was using 700Mi, request is 100Mi, has larger consumption of memory. ",
    )


def test_pressure_is_reported_for_the_transition_period_and_then_no_more():
    running = run(crowded(), GREEDY, MODEST, eviction_pressure_transition_period="1m")
    running.until(59)
    assert running.world.conditions == {NodeCondition.MEMORY_PRESSURE: True}
    running.until(75)
    assert running.world.conditions == {NodeCondition.MEMORY_PRESSURE: False}
    assert [at for at, kind, _ in running.lines("ConditionChanged")] == [0, 61]


WAITS = {
    "gone at once": (0, 0, 1),
    "gone within a second": (0, 0.4, 1),
    "gone on the tick": (0, 2, 2),
    "gone between two ticks": (0, 2.3, 3),
    "stopping counts too": (0.5, 2.3, 3.5),
    "never gone": (0, 1000, 30),
}


@pytest.mark.parametrize(("stop", "clean_up", "next_look"), WAITS.values(), ids=WAITS)
def test_after_an_eviction_the_loop_looks_again_a_tick_after_the_pod_is_gone(stop, clean_up, next_look):
    running = run(crowded(stop_seconds=stop, clean_up_seconds=clean_up), GREEDY, MODEST)
    running.until(next_look - 0.01)
    assert not isinstance(running.driver.state.loop, Resting) or running.driver.wake_us == next_look * 1_000_000
    running.until(next_look)
    assert running.driver.wake_us == (next_look + 10) * 1_000_000
    assert running.lines("WaitTimedOut") == [(30.0, "WaitTimedOut", "default/greedy")] * (clean_up == 1000)


SOFT = {
    "eviction_hard": {},
    "eviction_soft": {"memory.available": "100Mi"},
    "eviction_soft_grace_period": {"memory.available": "5s"},
    "eviction_max_pod_grace_period": 20,
}


@pytest.mark.parametrize(("settings", "at", "waited"), [({}, 0, 10), (SOFT, 10, 30)], ids=["hard", "soft"])
def test_a_pod_that_does_not_stop_holds_the_loop_for_half_as_long_again_as_its_grace(settings, at, waited):
    """One second of grace under a hard threshold, twenty under this soft one; never less than ten of patience."""
    world = crowded(stop_seconds=1000)
    world.ends_at_grace = False
    stubborn = pod("greedy", "memory=100Mi", termination_grace_period_seconds=100)
    running = run(world, stubborn, MODEST, **settings)
    running.until(at + waited - 0.01)
    assert running.lines("Evicted", "WaitTimedOut") == [(at, "Evicted", "default/greedy")]
    running.until(at + waited)
    assert running.lines("WaitTimedOut") == [(at + waited, "WaitTimedOut", "default/greedy")]
    assert running.driver.wake_us == (at + waited + 30) * 1_000_000  # and now for the clean-up


def test_one_pod_goes_per_pass_until_pressure_is_gone():
    world = MemoryWorld()
    world.uses_mi = {"a": 400, "b": 300, "c": 250}
    running = run(world, pod("a"), pod("b"), pod("c"), eviction_hard={"memory.available": "500Mi"})
    running.until(30)
    assert running.lines("Evicted") == [(0, "Evicted", "default/a"), (1, "Evicted", "default/b")]
    assert list(world.running) == ["c"]


def test_critical_pods_are_passed_over_and_named():
    critical = pod("greedy", priority=2_000_000_000)
    running = run(crowded(), critical, MODEST)
    running.until(0)
    (evicted,) = (entry for entry in running.journal if entry.kind == "Evicted")
    assert evicted.pod == "default/modest"
    assert evicted.because.spared == ("default/greedy",)


def test_nobody_to_evict_means_the_next_look_is_in_ten_seconds():
    running = run(crowded(), pod("greedy", priority=2_000_000_000), pod("modest", priority=2_000_000_000))
    running.until(25)
    assert running.driver.wake_us == 30_000_000
    assert not running.lines("Evicted")


def test_pods_beyond_their_own_storage_limits_go_one_after_the_other():
    def full(name: str) -> Pod:
        volume = Volume("scratch", empty_dir=EmptyDir(size_limit=Quantity.parse("1Mi")))
        return pod(name, volumes=(volume,))

    running = run(None, full("a"), full("b"), pod("c"))
    summary = running.world.summary()
    stats = {
        uid: stats.__class__(stats.pod_ref, stats.containers, stats.memory, (VolumeStats("scratch", 2 * MI),))
        for uid, stats in observe(summary).pods.items()
    }
    state = handle(running.driver.config, running.driver.state, 0, Woken()).state
    first = handle(running.driver.config, state, 0, Observed(Observation({}, stats)))
    assert [command.pod.key for command in first.commands if isinstance(command, EvictPod)] == ["default/a"]
    assert [entry.pod for entry in first.entries] == ["default/a", "default/b"]
    assert isinstance(first.entries[0].because, LocalStorageExceeded)
    second = handle(running.driver.config, first.state, 1, PodStopped("a"))
    assert [command.pod.key for command in second.commands if isinstance(command, EvictPod)] == ["default/b"]
    third = handle(running.driver.config, second.state, 2, PodStopped("b"))
    assert third.state.loop.remaining == ("a", "b")

    # One that has come to its own end meanwhile is not told to go.
    early = handle(running.driver.config, first.state, 1, PodStopped("b"))
    late = handle(running.driver.config, early.state, 2, PodStopped("a"))
    assert not any(isinstance(command, EvictPod) for command in late.commands)
    assert late.state.loop.remaining == ("a",)


DISK = {"eviction_hard": {"nodefs.available": "100Mi"}}


@pytest.mark.parametrize(("images", "evicted"), [(950, []), (10, ["default/a"])], ids=["enough", "too little"])
def test_the_node_is_cleaned_up_before_anybody_is_evicted(images, evicted):
    world = MemoryWorld()
    world.unused_images_mi, world.disk_mi = images, 1000 if images == 950 else 50
    running = run(world, pod("a"), **DISK)
    running.until(0)
    (reclaimed,) = (entry.because for entry in running.journal if entry.kind == "Reclaimed")
    assert isinstance(reclaimed, CleanUpGain)
    assert reclaimed.what == (CleanUp.CONTAINERS, CleanUp.IMAGES)
    assert reclaimed.available_after - reclaimed.available_before == images * MI
    assert [name for _, _, name in running.lines("Evicted")] == evicted
    assert world.unused_images_mi == 0


def test_a_guaranteed_pod_within_its_request_is_evicted_last():
    world = MemoryWorld()
    world.uses_mi = {"g": 500, "b": 450}
    running = run(world, guaranteed("g", "600Mi"), pod("b", "memory=400Mi"))
    running.until(0)
    assert [name for _, _, name in running.lines("Evicted")] == ["default/b"]


# ---- idle passes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("until", [0, 1, 10, 11, 95])
def test_skipping_idle_passes_is_the_same_as_running_them(until):
    running = run(None, pod("a"))
    running.until(0)
    rested = running.driver.state
    assert is_idle(rested)
    running.until(until - 0.001)
    assert skip_idle_passes(running.driver.config, rested, until * 1_000_000) == running.driver.state


def under_pressure_no_more() -> Run:
    """Return a run after an eviction: nothing is met any more, and the node still reports memory pressure."""
    running = run(crowded(), GREEDY, MODEST)
    running.until(30)
    assert is_idle(running.driver.state)
    assert running.driver.state.manager.conditions == (NodeCondition.MEMORY_PRESSURE,)
    return running


def test_passes_are_skipped_while_a_condition_is_only_remembered():
    running = under_pressure_no_more()
    rested = running.driver.state
    running.until(200)
    assert skip_idle_passes(running.driver.config, rested, 200_000_001) == running.driver.state


def test_the_pass_that_takes_a_condition_back_is_not_skipped():
    running = under_pressure_no_more()
    rested, due_us = running.driver.state, running.driver.due_us
    assert due_us is not None
    assert skip_idle_passes(running.driver.config, rested, 10 * due_us).wake_us == due_us
    running.until(due_us / 1_000_000 - 0.001)
    assert running.driver.state.manager.conditions
    running.until(due_us / 1_000_000)
    assert not running.driver.state.manager.conditions
    assert running.driver.due_us is None


def test_of_two_conditions_the_one_seen_longer_ago_is_taken_back_first():
    state = under_pressure_no_more().driver.state
    last = {NodeCondition.MEMORY_PRESSURE: 30_000_000, NodeCondition.DISK_PRESSURE: 20_000_000}
    both = replace(state, manager=replace(state.manager, conditions=tuple(last), last_observed_us=last))
    assert idle_until_us(config(), both) == 20_000_000 + 300_000_000


@pytest.mark.parametrize(
    ("beyond_bytes", "seconds"),
    [
        pytest.param(-1, 0.01, id="already below: the pass acts, the watch only idles"),
        pytest.param(0, 0.002, id="at the threshold: as soon as can be"),
        pytest.param(1 << 30, 0.125, id="before the fastest machine can have used it up"),
        pytest.param(1 << 40, 10, id="with the next pass at the latest"),
    ],
)
def test_memory_is_looked_at_again_before_it_can_be_gone(beyond_bytes, seconds):
    assert look_again_seconds(beyond_bytes) == seconds


def test_skipped_passes_set_the_levels_of_a_notified_kubelet_too():
    running = Run(replace(config(), notification=MemoryNotification.KUBELET))
    running.until(0)
    rested = running.driver.state
    running.until(35)
    assert skip_idle_passes(running.driver.config, rested, 35_000_000) == running.driver.state
    assert running.driver.state.watched_us == 30_000_000


def test_a_driver_skips_passes_of_an_idle_agent_only():
    idle, busy = run(None, pod("a")), run(crowded(stop_seconds=5), GREEDY, MODEST)
    for running in (idle, busy):
        running.until(0)
        before = running.driver.state
        running.driver.skip_idle_passes(25_000_000)
        assert (running.driver.state == before) == (running is busy)
    assert idle.driver.wake_us == 30_000_000


def test_the_first_pass_comes_when_the_world_says():
    driver = Driver(config(), MemoryWorld(), lambda _: None)
    driver.start(3_000_000, 7_000_000)
    assert driver.wake_us == 7_000_000


def test_a_node_under_pressure_is_not_idle():
    running = run(crowded(), GREEDY, MODEST)
    running.until(0)
    assert not is_idle(running.driver.state)


# ---- critical pods -------------------------------------------------------------------------------------------------

CRITICAL = pod("critical", "memory=600Mi", priority=2_000_000_000)
SMALL = {"cpu": "4", "memory": "1000Mi", "ephemeral-storage": "1Gi"}


def test_a_pod_that_makes_room_for_a_critical_one_gets_its_own_grace_period():
    world = MemoryWorld()
    world.stop_seconds = 4
    running = run(world, pod("a", "memory=700Mi", termination_grace_period_seconds=7), CRITICAL, allocatable=SMALL)
    (asked,) = (command for command in world.commands if isinstance(command, PreemptPod))
    assert (asked.pod.metadata.name, asked.grace_period_seconds) == ("a", 7)
    assert asked.message == "Preempted in order to admit critical pod"
    running.until(3.9)
    assert "critical" not in running.driver.state.pods
    running.until(4)
    assert running.driver.state.pods["critical"].stage is Stage.RUNNING
    assert running.driver.state.preempting is None


def test_a_pod_that_does_not_stop_is_waited_for_half_as_long_again_as_its_grace_period_and_at_least_ten_seconds():
    world = MemoryWorld()
    world.stop_seconds, world.ends_at_grace = 1000, False
    stuck = [pod(name, "memory=400Mi", termination_grace_period_seconds=grace) for name, grace in (("a", 20), ("b", 1))]
    running = run(world, *stuck, pod("critical", "memory=900Mi", priority=2_000_000_000), allocatable=SMALL)
    running.tell(PodBound(pod("late")))
    running.until(60)
    told = [(entry.time_us / 1e6, entry.kind.value, entry.pod) for entry in running.journal if entry.time_us]
    assert [each for each in told if each[1] in {"WaitTimedOut", "Preempted", "Admitted"}] == [
        (10.0, "WaitTimedOut", "default/b"),
        (10.0, "Preempted", "default/a"),
        (40.0, "WaitTimedOut", "default/a"),
        (40.0, "Admitted", "default/critical"),
        (40.0, "Admitted", "default/late"),
    ]


def test_a_deadline_is_noticed_when_room_has_been_made_for_a_critical_pod():
    """The kubelet's loop waits for that, and is the one that checks deadlines (syncLoopIteration)."""
    world = MemoryWorld()
    world.stop_seconds = 4
    short = pod("short", "memory=100Mi", active_deadline_seconds=2, termination_grace_period_seconds=7)
    large = pod("large", "memory=700Mi", termination_grace_period_seconds=7)
    running = run(world, short, large, pod("next", active_deadline_seconds=5), CRITICAL, allocatable=SMALL)
    running.until(20)
    told = [(entry.time_us / 1e6, entry.kind.value, entry.pod) for entry in running.journal if entry.time_us]
    assert [line for line in told if line[1] in {"Failed", "Stopped", "Admitted"}] == [
        (4.0, "Stopped", "default/large"),
        (4.0, "Admitted", "default/critical"),
        (4.0, "Failed", "default/short"),
        (5.0, "Failed", "default/next"),
        (8.0, "Stopped", "default/short"),
        (9.0, "Stopped", "default/next"),
    ]


def test_a_critical_pod_for_which_no_one_can_make_room_is_refused_in_the_kubelets_words():
    world = MemoryWorld()
    running = run(
        world, pod("a", "memory=300Mi"), pod("critical", "memory=2Gi", priority=2_000_000_000), allocatable=SMALL
    )
    assert world.rejected == {"critical": "UnexpectedAdmissionError"}
    (asked,) = (command for command in world.commands if isinstance(command, RejectPod))
    assert asked.message == (
        "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods "
        "to preempt: no set of running pods found to reclaim resources: [(res: memory, q: 1098907648), ]"
    )
    assert "a" in running.driver.state.pods


def test_a_node_that_only_shadows_preempts_no_pod():
    world = MemoryWorld()
    begun = Run(replace(config(allocatable=SMALL), shadow=True), world)
    for each in (pod("a", "memory=700Mi"), CRITICAL):
        begun.tell(PodBound(each))
    assert world.rejected == {"critical": "OutOfmemory"}
