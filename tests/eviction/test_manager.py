from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eviction.nodes import MI, guaranteed, manager, memory_left, observed, pod, run, using, volume
from podqos.eviction.manager import CleanUpNode, EvictPod, ManagerState, Pass, after_clean_up
from podqos.eviction.pods import LocalStorageLimit
from podqos.eviction.ranking import Policy, Spared
from podqos.eviction.signals import CleanUp, Layout, NodeCondition, Signal, decode_summary, observe
from podqos.model.pod import EmptyDir
from podqos.model.profile import parse_version
from podqos.model.quantity import Quantity
from podqos.model.time_units import SECOND_US

HARD = {"eviction_hard": {"memory.available": "100Mi"}}
SOFT = {
    "eviction_hard": {"memory.available": "100Mi"},
    "eviction_soft": {"memory.available": "200Mi"},
    "eviction_soft_grace_period": {"memory.available": "30s"},
    "eviction_max_pod_grace_period": 20,
}
DISK = {"eviction_hard": {"nodefs.available": "100Mi"}, "eviction_minimum_reclaim": {"nodefs.available": "50Mi"}}
EVERYTHING = {"eviction_hard": {"pid.available": "10", "nodefs.inodesFree": "10", "memory.available": "100Mi"}}
HOG, CALM = pod("hog"), pod("calm")
USED = (using(HOG, 500), using(CALM, 10))
MEMORY_PRESSURE = (NodeCondition.MEMORY_PRESSURE,)


def victims(result: Pass) -> list[str]:
    return [command.pod.metadata.name for command in result.commands if isinstance(command, EvictPod)]


def test_nothing_happens_while_enough_is_left():
    result = run(manager(**HARD), 0, memory_left(100, *USED), HOG, CALM)
    assert (result.commands, result.state.conditions) == ((), ())


def test_a_hard_threshold_evicts_one_pod_at_once_and_says_why():
    result = run(manager(**HARD), 0, memory_left(99, *USED), CALM, HOG)
    (command,) = result.commands
    assert (command.pod, command.grace_period_seconds) == (HOG, 1)
    assert command.message == (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 99Mi. "
        "Container main was using 500Mi, request is 0, has larger consumption of memory. "
    )
    assert command.condition.reason == "TerminationByKubelet"
    assert command.because == result.reclaiming
    assert command.ranked == result.ranking[0]
    assert result.state.conditions == MEMORY_PRESSURE


def test_a_soft_threshold_reports_at_once_and_evicts_after_its_grace_period():
    config = manager(**SOFT)
    first = run(config, 0, memory_left(150, *USED, time_us=1), HOG)
    assert (victims(first), first.state.conditions) == ([], MEMORY_PRESSURE)
    second = run(config, 29, memory_left(150, *USED, time_us=2), HOG, state=first.state)
    assert victims(second) == []
    third = run(config, 30, memory_left(150, *USED, time_us=3), HOG, state=second.state)
    assert victims(third) == ["hog"]
    assert third.commands[0].grace_period_seconds == 20


def test_a_moment_of_relief_starts_the_grace_period_anew():
    config, state = manager(**SOFT), ManagerState()
    for second, left in ((0, 150), (20, 250), (30, 150), (50, 150)):
        result = run(config, second, memory_left(left, *USED), HOG, state=state)
        assert victims(result) == []
        state = result.state
    assert victims(run(config, 60, memory_left(150, *USED), HOG, state=state)) == ["hog"]


def test_a_condition_outlasts_its_cause_by_the_transition_period():
    config = manager(**HARD, eviction_pressure_transition_period="30s")
    state = run(config, 0, memory_left(50, *USED), HOG).state
    for second, reported in ((29, MEMORY_PRESSURE), (30, ())):
        state = run(config, second, memory_left(900, *USED), HOG, state=state).state
        assert state.conditions == reported


def test_a_threshold_lets_go_only_at_the_minimum_reclaim():
    config = manager(**HARD, eviction_minimum_reclaim={"memory.available": "50Mi"})
    first = run(config, 0, memory_left(99, *USED), HOG, CALM)
    second = run(config, 10, memory_left(149, *USED), CALM, state=first.state)
    assert victims(second) == ["calm"]
    third = run(config, 20, memory_left(150, *USED), state=second.state)
    assert third.state.thresholds_met == ()


def test_nobody_is_evicted_twice_for_one_sample():
    """Conditions and state go on."""
    config = manager(**HARD)
    first = run(config, 0, memory_left(50, *USED, time_us=5), HOG, CALM)
    second = run(config, 1, memory_left(50, *USED, time_us=5), CALM, state=first.state)
    assert (victims(first), victims(second)) == (["hog"], [])
    assert len(second.state.thresholds_met) == 1
    third = run(config, 2, memory_left(50, *USED, time_us=6), CALM, state=second.state)
    assert victims(third) == ["calm"]


def test_critical_pods_are_passed_over():
    critical = pod("critical", priority=2_000_000_000)
    stats = (using(critical, 900), using(CALM, 10))
    result = run(manager(**HARD), 0, memory_left(50, *stats), critical, CALM)
    assert victims(result) == ["calm"]
    alone = run(manager(**HARD), 0, memory_left(50, *stats), critical)
    assert victims(alone) == []
    assert alone.ranking[0].spared is Spared.CRITICAL


def test_a_guaranteed_pod_is_evicted_only_under_a_hard_threshold_under_qos_tiers():
    safe = guaranteed("safe")
    config = replace(manager(**SOFT), policy=Policy.QOS_TIERS)
    seen = memory_left(150, using(safe, 64))
    state = run(config, 0, seen, safe).state
    assert victims(run(config, 60, seen, safe, state=state)) == []
    hard = run(config, 60, memory_left(99, using(safe, 64)), safe, state=state)
    assert victims(hard) == ["safe"]
    kubelet = replace(config, policy=None)
    assert victims(run(kubelet, 60, seen, safe, state=state)) == ["safe"]


def test_a_pod_full_of_file_cache_is_evicted_though_the_kernel_could_reclaim():
    """The working set holds active file pages. 200 Mi of the node are anonymous memory, 800 Mi could be had."""
    summary = {
        "node": {"memory": {"usageBytes": 1000 * MI, "workingSetBytes": 920 * MI, "availableBytes": 80 * MI}},
        "pods": [
            {
                "podRef": {"name": "reader", "uid": "reader"},
                # 50 Mi anonymous, 720 Mi active file, 80 Mi inactive file
                "memory": {"usageBytes": 850 * MI, "workingSetBytes": 770 * MI},
            },
            {"podRef": {"name": "worker", "uid": "worker"}, "memory": {"workingSetBytes": 150 * MI}},
        ],
    }
    observation = observe(decode_summary(json.dumps(summary).encode()))
    reader, worker = pod("reader", "memory=128Mi"), pod("worker", "memory=128Mi")
    assert victims(run(manager(**HARD), 0, observation, worker, reader)) == ["reader"]


class TestLocalStorage:
    """Limits of a pod's own come before everything else."""

    full = pod("full", volumes=(volume("scratch", empty_dir=EmptyDir("", Quantity.parse("10"))),))
    greedy = pod("greedy", limits="ephemeral-storage=10")
    stats = (using(full, 1, volumes={"scratch": 11}), using(greedy, 1, ephemeral=11), using(HOG, 900))

    def test_all_who_exceed_a_limit_go_in_one_pass_and_nobody_else(self):
        result = run(manager(**HARD), 0, memory_left(50, *self.stats), HOG, self.full, self.greedy)
        assert victims(result) == ["full", "greedy"]
        assert [command.because.kind for command in result.commands] == [
            LocalStorageLimit.EMPTY_DIR,
            LocalStorageLimit.POD,
        ]
        assert all(command.condition is None and command.annotations == {} for command in result.commands)
        assert result.reclaiming is None
        assert result.state.conditions == MEMORY_PRESSURE

    def test_critical_pods_keep_what_they_have(self):
        critical = pod("full", priority=2_000_000_000, volumes=self.full.spec.volumes)
        assert victims(run(manager(**HARD), 0, memory_left(900, *self.stats), critical)) == []

    def test_without_isolation_nobody_looks(self):
        config = manager(**HARD, local_storage_capacity_isolation=False)
        assert victims(run(config, 0, memory_left(900, *self.stats), self.full)) == []
        assert victims(run(config, 0, memory_left(50, *self.stats), self.full, HOG)) == ["hog"]

    def test_with_neither_thresholds_nor_isolation_the_state_stays_as_it_is(self):
        config = manager(eviction_hard={}, local_storage_capacity_isolation=False)
        assert run(config, 0, memory_left(0, *self.stats), self.full) == Pass(ManagerState())


class TestCleanUp:
    """Disk pressure is met with a clean-up first; whether pods must go is decided by what it left."""

    writer = pod("writer")

    def left(self, available_mi: int):
        return observed({Signal.NODEFS: (available_mi * MI, 1000 * MI)}, using(self.writer, rootfs=1))

    def first_phase(self, layout: Layout = Layout.SINGLE) -> Pass:
        return run(manager(layout, **DISK), 0, self.left(99), self.writer)

    def test_the_first_phase_asks_for_the_clean_up_and_evicts_nobody(self):
        result = self.first_phase()
        assert [command.what for command in result.commands] == [CleanUp.CONTAINERS, CleanUp.IMAGES]
        assert all(isinstance(command, CleanUpNode) for command in result.commands)
        assert result.awaiting is not None

    @pytest.mark.parametrize(("left_mi", "evicted"), [(150, []), (149, ["writer"])])
    def test_pods_go_only_if_it_was_not_enough(self, left_mi, evicted):
        first = self.first_phase()
        second = after_clean_up(manager(**DISK), first, self.left(left_mi))
        assert victims(second) == evicted
        assert second.awaiting is None
        assert second.state == first.state

    def test_the_message_quotes_the_figures_from_before_the_clean_up(self):
        second = after_clean_up(manager(**DISK), self.first_phase(), self.left(120))
        assert "available: 99Mi. " in second.commands[0].message

    def test_pods_are_ranked_by_the_figures_from_before_the_clean_up(self):
        """Afterwards the statistics may have gaps, and who has none would go first."""
        light = pod("light")
        before = observed({Signal.NODEFS: (99 * MI, 1000 * MI)}, using(self.writer, rootfs=9), using(light, rootfs=1))
        first = run(manager(**DISK), 0, before, light, self.writer)
        assert victims(after_clean_up(manager(**DISK), first, self.left(99))) == ["writer"]

    def test_where_there_is_nothing_to_throw_away_pods_go_at_once(self):
        assert victims(self.first_phase(Layout.DEDICATED)) == ["writer"]


class TestWhoActs:
    """Upstream leaves this to chance beyond memory first; here it is an order."""

    def acting(self, **left: int) -> Signal:
        signals = {Signal[name]: (amount, 1000 * MI) for name, amount in left.items()}
        return run(manager(Layout.DEDICATED, **EVERYTHING), 0, observed(signals), HOG).reclaiming.threshold.signal

    def test_memory_before_disk_before_process_ids(self):
        assert self.acting(MEMORY=1, NODEFS_INODES=1, PID=1) is Signal.MEMORY
        assert self.acting(NODEFS_INODES=1, PID=1) is Signal.NODEFS_INODES
        assert self.acting(PID=1) is Signal.PID

    def test_hard_before_soft(self):
        config, seen = manager(**SOFT), memory_left(50, *USED)
        state = run(config, 0, seen, HOG).state
        result = run(config, 60, seen, HOG, state=state)
        assert len(result.state.thresholds_met) == 2
        assert result.commands[0].grace_period_seconds == 1


def test_derived_containerfs_thresholds_take_effect_from_the_second_pass_on():
    config = manager(eviction_hard={"nodefs.available": "100Mi"})
    seen = observed({Signal.CONTAINERFS: (MI, 1000 * MI)}, using(HOG, rootfs=5))
    first = run(config, 0, seen, HOG)
    assert (first.state.thresholds_met, first.commands) == ((), ())
    second = run(config, 10, seen, HOG, state=first.state)
    assert [item.signal for item in second.state.thresholds_met] == [Signal.CONTAINERFS]


def test_configured_containerfs_thresholds_are_overwritten_from_the_first_pass_on():
    config = manager(eviction_hard={"containerfs.available": "500Mi", "nodefs.available": "100Mi"})
    at = lambda left: observed({Signal.CONTAINERFS: (left * MI, 1000 * MI)}, using(HOG, rootfs=5))  # noqa: E731
    assert run(config, 0, at(400), HOG).state.thresholds_met == ()
    assert len(run(config, 0, at(99), HOG).state.thresholds_met) == 1


def test_up_to_1_13_process_ids_are_watched_but_nobody_is_evicted():
    config = replace(manager(eviction_hard={"pid.available": "10"}), profile=parse_version("1.13"))
    result = run(config, 0, observed({Signal.PID: (5, 100)}, *USED), HOG)
    assert (result.commands, result.state.conditions) == ((), (NodeCondition.PID_PRESSURE,))


def test_a_node_without_pods_evicts_nobody():
    assert run(manager(**HARD), 0, memory_left(0)).commands == ()


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 300)), max_size=30), st.sampled_from(["10s", "30s", "5m"]))
def test_at_most_one_pod_goes_per_pass_and_only_under_pressure(passes, period):
    """And the node reports a condition at least as long as anything is met."""
    config = manager(**SOFT, eviction_pressure_transition_period=period)
    now, state = 0, ManagerState()
    for interval, left in passes:
        now += interval
        result = run(config, now, memory_left(left, *USED, time_us=now * SECOND_US), HOG, CALM, state=state)
        state = result.state
        assert len(result.commands) <= 1
        assert not result.commands or left < 200
        assert not state.thresholds_met or state.conditions == MEMORY_PRESSURE
        assert left >= 100 or victims(result) == ["hog"]


@given(st.lists(st.integers(0, 300), max_size=20))
def test_the_same_input_gives_the_same_pass(amounts):
    def replayed() -> list[Pass]:
        config, state, results = manager(**SOFT), ManagerState(), []
        for index, left in enumerate(amounts):
            results.append(run(config, index * 10, memory_left(left, *USED), HOG, CALM, state=state))
            state = results[-1].state
        return results

    assert replayed() == replayed()
