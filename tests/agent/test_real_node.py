"""What only a real node tells the agent: a signal from the kernel, pods that run already; and an agent that shadows."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.memory_world import MemoryWorld, Run
from agent.test_agent import config
from eviction.nodes import pod, pod_of
from podqos.agent.agent import memory_notification
from podqos.agent.port import (
    ContainerExited,
    CreateCgroup,
    HoldPod,
    MemoryNotified,
    PodAdopted,
    PodBound,
    Remembered,
    StartContainer,
    StartPod,
    WatchMemory,
)
from podqos.agent.state import AgentConfig, Evicting, MemoryNotification, Resting
from podqos.eviction.manager import EvictPod
from podqos.eviction.signals import Signal
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import Container, Pod
from podqos.qos.cgroup_settings import CgroupVersion

SOFT = {"eviction_soft": {"memory.available": "200Mi"}, "eviction_soft_grace_period": {"memory.available": "5s"}}


def fast(**settings: object) -> AgentConfig:
    """Make the same node with the fast path."""
    return replace(config(**settings), notification=MemoryNotification.FAST_PATH)


def critical(name: str) -> Pod:
    """Make a pod that is never evicted."""
    made = pod(name)
    return replace(made, spec=replace(made.spec, priority=2_000_001_000))


def _world(**uses_mi: int) -> MemoryWorld:
    world = MemoryWorld()
    world.uses_mi.update(uses_mi)
    return world


class TestMemoryNotified:
    def test_the_agent_looks_at_once_instead_of_at_its_next_pass(self):
        running = Run(config(), _world(a=10))
        running.tell(PodBound(pod("a")))
        running.until(1)
        running.world.uses_mi["a"] = 950
        running.until(2)
        assert running.lines("Evicted") == []
        running.tell(MemoryNotified())
        assert running.lines("Evicted") == [(2, "Evicted", "default/a")]

    def test_a_false_alarm_costs_one_look_and_puts_the_next_pass_off(self):
        running = Run(config())
        running.until(3)
        running.tell(MemoryNotified())
        assert running.driver.state.loop == Resting(13_000_000)
        assert running.journal == []

    def test_a_notified_kubelet_looks_at_once_and_its_regular_passes_stay_where_they_are(self):
        running = Run(replace(config(), notification=MemoryNotification.KUBELET), _world(a=10))
        running.tell(PodBound(pod("a")))
        running.until(3)
        running.tell(MemoryNotified())
        assert running.driver.state.loop == Resting(10_000_000)
        running.world.uses_mi["a"] = 950
        running.tell(MemoryNotified())
        assert running.lines("Evicted", "CleanedUp") == [(3, "Evicted", "default/a"), (3, "CleanedUp", "default/a")]
        assert running.driver.state.loop == Resting(10_000_000)

    def test_a_notified_kubelet_does_not_wait_for_the_clean_up(self):
        world = _world(a=500, b=400)
        world.clean_up_seconds = 20
        running = Run(replace(config(), notification=MemoryNotification.KUBELET), world)
        for name in ("a", "b"):
            running.tell(PodBound(pod(name)))
        running.until(3)
        running.world.uses_mi["a"] = 550
        running.tell(MemoryNotified())
        running.world.uses_mi["b"] = 950
        running.until(10)
        assert running.lines("Evicted") == [(3, "Evicted", "default/a"), (10, "Evicted", "default/b")]

    def test_while_somebody_goes_nobody_else_is_chosen(self):
        world = _world(a=950, b=940)
        world.stop_seconds = 5
        running = Run(config(), world)
        for name in ("a", "b"):
            running.tell(PodBound(pod(name)))
        running.until(0)
        assert isinstance(running.driver.state.loop, Evicting)
        running.tell(MemoryNotified())
        assert len(running.lines("Evicted")) == 1


def _levels(world: MemoryWorld) -> list[tuple[Signal, int, bool]]:
    return [(level.signal, level.below_bytes >> 20, level.tell_if_below) for level in world.levels]


class TestWhatIsWatched:
    def test_without_notifications_nothing_is(self):
        running = Run(config(), _world(a=950))
        running.tell(PodBound(pod("a")))
        running.until(30)
        assert not any(isinstance(command, WatchMemory | HoldPod) for command in running.world.commands)

    def test_a_kubelet_watches_every_threshold_of_memory_and_sets_levels_every_ten_seconds_at_most(self):
        running = Run(replace(config(**SOFT), notification=MemoryNotification.KUBELET))
        running.until(0)
        assert _levels(running.world) == [(Signal.MEMORY, 100, False), (Signal.MEMORY, 200, False)]
        for seconds, times in ((4, 1), (9.999, 1), (10, 2), (15, 2)):
            running.until(seconds)
            running.tell(MemoryNotified())
            asked = [command for command in running.world.commands if isinstance(command, WatchMemory)]
            assert len(asked) == times, seconds

    def test_the_fast_path_watches_the_first_hard_threshold_of_memory_and_asks_after_every_look(self):
        running = Run(fast(**SOFT))
        running.until(0)
        assert _levels(running.world) == [(Signal.MEMORY, 100, True)]
        running.world.levels = ()
        running.tell(MemoryNotified())
        assert _levels(running.world) == [(Signal.MEMORY, 100, True)]

    def test_memory_that_is_known_to_be_short_is_not_told_again_and_nobody_is_asked_forever(self):
        running = Run(fast(), _world(a=950))
        running.tell(PodBound(critical("a")))
        running.until(15)
        assert _levels(running.world) == [(Signal.MEMORY, 100, False)]
        assert running.driver.state.loop == Resting(20_000_000)

    def test_a_soft_threshold_that_is_met_hides_no_hard_one(self):
        running = Run(fast(**SOFT), _world(a=850))
        running.tell(PodBound(pod("a")))
        running.until(0)
        assert _levels(running.world) == [(Signal.MEMORY, 100, True)]

    @pytest.mark.parametrize(
        ("is_set", "version", "fast_path", "expected"),
        [
            (False, CgroupVersion.V1, False, MemoryNotification.OFF),
            (True, CgroupVersion.V1, False, MemoryNotification.KUBELET),
            (True, CgroupVersion.V2, False, MemoryNotification.OFF),
            (False, CgroupVersion.V2, True, MemoryNotification.FAST_PATH),
            (True, CgroupVersion.V1, True, MemoryNotification.FAST_PATH),
        ],
    )
    def test_a_kubelet_is_notified_on_cgroup_v1_only(self, is_set, version, fast_path, expected):
        configuration = KubeletConfiguration(kernel_memcg_notification=is_set)
        assert memory_notification(configuration, version, fast_path=fast_path) is expected


class TestFastPath:
    def test_a_victim_of_a_hard_memory_threshold_is_held_before_it_is_told_to_go(self):
        running = Run(fast(), _world(a=950))
        running.tell(PodBound(pod("a")))
        running.until(0)
        held, told = (command for command in running.world.commands if isinstance(command, HoldPod | EvictPod))
        assert (held, told.pod) == (HoldPod(pod("a")), pod("a"))

    @pytest.mark.parametrize("notification", [MemoryNotification.OFF, MemoryNotification.KUBELET])
    def test_without_it_nobody_is_held(self, notification):
        running = Run(replace(config(), notification=notification), _world(a=950))
        running.tell(PodBound(pod("a")))
        running.until(0)
        assert running.lines("Evicted")
        assert not running.world.held

    def test_a_victim_of_a_soft_threshold_is_not_held(self):
        running = Run(fast(**SOFT), _world(a=850))
        running.tell(PodBound(pod("a")))
        running.until(10)
        assert running.lines("Evicted") == [(10, "Evicted", "default/a")]
        assert not running.world.held

    def test_a_shadow_holds_nobody(self):
        running = Run(replace(fast(), shadow=True), _world(a=950))
        running.tell(PodBound(pod("a")))
        running.until(0)
        assert running.lines("WouldEvict")
        assert not running.world.held

    def test_after_an_eviction_it_looks_again_at_once_and_a_kubelet_within_a_second(self):
        for settings, seconds in ((fast(), 0.001), (config(), 1)):
            running = Run(settings, _world(a=950, b=940))
            for name in ("a", "b"):
                running.tell(PodBound(pod(name)))
            running.until(5)
            assert running.lines("Evicted") == [(0, "Evicted", "default/a"), (seconds, "Evicted", "default/b")]

    def test_it_waits_for_what_is_left_of_the_victim_before_it_looks_again(self):
        world = _world(a=950, b=940)
        world.stop_seconds, world.clean_up_seconds = 0.4, 0.3
        running = Run(fast(), world)
        for name in ("a", "b"):
            running.tell(PodBound(pod(name)))
        running.until(5)
        assert running.lines("Evicted") == [(0, "Evicted", "default/a"), (0.701, "Evicted", "default/b")]

    def test_memory_that_ran_short_since_the_last_look_is_seen_at_once(self):
        running = Run(fast(), _world(a=10))
        running.tell(PodBound(pod("a")))
        running.until(4)
        for event in running.world.grow("a", 940):
            running.tell(event)
        assert running.lines("Evicted") == [(4, "Evicted", "default/a")]


class TestShadow:
    def test_whom_to_evict_is_written_down_and_nobody_is_evicted(self):
        running = Run(replace(config(), shadow=True), _world(a=950))
        running.tell(PodBound(pod("a")))
        running.until(15)
        assert running.lines("WouldEvict", "Evicted", "Stopped") == [
            (0, "WouldEvict", "default/a"),
            (10, "WouldEvict", "default/a"),
        ]
        (first, _) = (entry for entry in running.journal if entry.kind == "WouldEvict")
        assert first.because.usage == 950 << 20
        assert "a" in running.world.running

    def test_it_evicts_whom_it_would_have_evicted_otherwise(self):
        pods = {"a": 500, "b": 300, "c": 150}
        victims = []
        for shadow in (True, False):
            running = Run(replace(config(), shadow=shadow), _world(**pods))
            for name in pods:
                running.tell(PodBound(pod(name)))
            running.until(0)
            victims.append([line[2] for line in running.lines("WouldEvict", "Evicted")])
        assert victims[0] == victims[1] == ["default/a"]


def _adopted(*containers: str, before: tuple[Container, ...] = (), **known: Remembered) -> Run:
    base = pod_of("a", *(Container(name) for name in containers or ("main",)))
    running = Run(config())
    running.tell(PodAdopted(replace(base, spec=replace(base.spec, init_containers=before)), known))
    return running


class TestPodAdopted:
    def test_nothing_is_started_and_nothing_asked(self):
        running = _adopted(main=Remembered("running"))
        assert running.lines() == [(0, "Adopted", "default/a")]
        assert not any(isinstance(command, StartPod | StartContainer) for command in running.world.commands)
        assert any(isinstance(command, CreateCgroup) for command in running.world.commands[3:])

    def test_it_counts_as_if_it_had_been_bound(self):
        wanted = pod("a", "cpu=1,memory=64Mi")
        bound, adopted = Run(config()), Run(config())
        bound.tell(PodBound(wanted))
        adopted.tell(PodAdopted(wanted, {"main": Remembered("running")}))
        assert adopted.driver.state.requested == bound.driver.state.requested
        assert adopted.driver.state.tiers == bound.driver.state.tiers
        assert adopted.driver.state.active_pods == bound.driver.state.active_pods

    def test_twice_is_once(self):
        running = _adopted(main=Remembered("running"))
        running.tell(PodAdopted(pod("a")))
        assert len(running.journal) == 1

    def test_the_back_off_goes_on_where_it_was(self):
        running = _adopted(main=Remembered("running", restarts=3, back_off_seconds=40))
        running.until(5)
        running.tell(ContainerExited("a", "main", 1))
        running.until(60)
        (entry,) = (entry for entry in running.journal if entry.kind == "Restarted")
        assert (entry.time_us, entry.because.restarts, entry.because.back_off_seconds) == (45_000_000, 4, 40)

    def test_a_restart_that_was_put_off_comes_when_it_is_due(self):
        running = _adopted(main=Remembered("backing off", restarts=1, back_off_seconds=10, due_us=7_000_000))
        assert running.driver.wake_us == 0
        running.until(30)
        assert running.lines("Restarted") == [(7, "Restarted", "default/a")]

    @pytest.mark.parametrize("known", [{"init": Remembered("running")}, {}], ids=["known", "unknown"])
    def test_containers_that_wait_go_on_waiting(self, known):
        running = _adopted("main", before=(Container("init"),), **known)
        running.tell(ContainerExited("a", "init", 0))
        assert running.lines("Started") == [(0, "Started", "default/a")]
        started = [command.plan.name for command in running.world.commands if isinstance(command, StartContainer)]
        assert started == ["main"]
