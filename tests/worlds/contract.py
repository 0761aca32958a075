"""What every world owes the agent. A test class per world inherits from ``WorldContract`` and says how to make one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

import pytest
from msgspec.structs import replace

from podqos.agent.agent import handle, start
from podqos.agent.driver import Driver, World
from podqos.agent.journal import Entry
from podqos.agent.port import (
    Command,
    ContainerExited,
    ContainerStarted,
    CreateCgroup,
    Event,
    HoldPod,
    KillContainer,
    MemoryLevel,
    MemoryNotified,
    PodBound,
    PodCleanedUp,
    PodStarted,
    PodStopped,
    PreemptPod,
    RemoveCgroup,
    StartContainer,
    StartPod,
    StopPod,
    WatchMemory,
    Woken,
)
from podqos.agent.state import AgentConfig, MemoryNotification
from podqos.eviction.manager import CleanUpNode, EvictPod, ReclaimTarget, configure
from podqos.eviction.signals import CleanUp, Layout, Signal, observe
from podqos.eviction.thresholds import Threshold, ThresholdValue
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity
from podqos.qos.cgroup_settings import CgroupSettings

MI = 1 << 20
QUIET_SECONDS = 0.3
"""How long is listened for what must not come."""


class Stage(Protocol):
    """A world with what a test needs around it."""

    world: World
    cgroups: CgroupSettings

    def pod(self, name: str) -> Pod:
        """Return a pod of one container that this world can run; it uses a few MiB and requests nothing."""

    def end(self, pod: Pod, exit_code: int) -> Sequence[Event]:
        """Let the main process of the pod's container exit by itself, and return what the world reported at once."""

    def grow(self, pod: Pod) -> Sequence[Event]:
        """Let the pod's container take 16 MiB more, if it can, and return what the world reported at once."""

    def settle(self, seconds: float) -> Sequence[Event]:
        """Let so much time pass in the world, and return what it reported."""


class WorldContract(ABC):
    """The contract, one clause per test."""

    patience_seconds: float = 5
    """How long what has to come may take, on top of a grace period."""

    @pytest.fixture
    @abstractmethod
    def stage(self) -> Stage:
        """Make a world with nothing in it."""

    def test_a_pod_that_is_started_is_reported_once_and_seen(self, stage):
        pod = stage.pod("a")
        events = _start(stage, pod, self.patience_seconds)
        assert events == [PodStarted(pod.metadata.uid)]
        seen = observe(stage.world.summary())
        assert set(seen.pods) == {pod.metadata.uid}
        assert [container.name for container in seen.pods[pod.metadata.uid].containers] == ["main"]

    @pytest.mark.parametrize("how", ["deleted", "preempted", "evicted"])
    def test_a_pod_that_is_told_to_go_stops_within_its_grace_period_and_is_seen_no_more(self, stage, how):
        pod, other = stage.pod("a"), stage.pod("b")
        for each in (pod, other):
            _start(stage, each, self.patience_seconds)
        command = {"deleted": StopPod(pod, 1), "preempted": PreemptPod(pod, 1), "evicted": _eviction(pod, 1)}[how]
        events = _heard(stage, stage.world.carry_out(command), 1 + self.patience_seconds)
        assert events == [PodStopped(pod.metadata.uid)]
        assert set(observe(stage.world.summary()).pods) == {other.metadata.uid}

    @pytest.mark.parametrize("exit_code", [0, 3])
    def test_a_container_that_ends_by_itself_is_reported_once_with_its_code(self, stage, exit_code):
        pod = stage.pod("a")
        _start(stage, pod, self.patience_seconds)
        events = _heard(stage, stage.end(pod, exit_code), self.patience_seconds)
        assert [_untimed(event) for event in events] == [ContainerExited(pod.metadata.uid, "main", exit_code)]

    def test_a_container_that_is_started_again_is_reported_once_and_seen(self, stage):
        pod = stage.pod("a")
        plan = _start_command(stage, pod).containers[0]
        _start(stage, pod, self.patience_seconds)
        _heard(stage, stage.end(pod, 1), self.patience_seconds)
        events = _heard(stage, stage.world.carry_out(StartContainer(pod, plan, 1)), self.patience_seconds)
        assert events == [ContainerStarted(pod.metadata.uid, "main")]
        seen = observe(stage.world.summary()).pods[pod.metadata.uid]
        assert [container.name for container in seen.containers] == ["main"]

    def test_a_container_that_is_killed_is_reported_once_and_can_be_started_again(self, stage):
        pod = stage.pod("a")
        plan = _start_command(stage, pod).containers[0]
        _start(stage, pod, self.patience_seconds)
        events = _heard(stage, stage.world.carry_out(KillContainer(pod, "main")), self.patience_seconds)
        assert [_untimed(event) for event in events] == [ContainerExited(pod.metadata.uid, "main", 143)]
        events = _heard(stage, stage.world.carry_out(StartContainer(pod, plan, 1)), self.patience_seconds)
        assert events == [ContainerStarted(pod.metadata.uid, "main")]

    def test_a_pod_whose_container_has_ended_can_still_be_stopped(self, stage):
        pod = stage.pod("a")
        _start(stage, pod, self.patience_seconds)
        _heard(stage, stage.end(pod, 0), self.patience_seconds)
        events = _heard(stage, stage.world.carry_out(StopPod(pod, 1)), 1 + self.patience_seconds)
        assert events == [PodStopped(pod.metadata.uid)]

    def test_nothing_is_left_of_a_stopped_pod_after_its_cgroup_is_removed(self, stage):
        pod = stage.pod("a")
        plan = _plan(stage, pod)
        _start(stage, pod, self.patience_seconds)
        _heard(stage, stage.world.carry_out(StopPod(pod, 0)), self.patience_seconds)
        (own,) = (
            command.cgroup for command in plan if isinstance(command, CreateCgroup) and "pod" in command.cgroup.level
        )
        told = stage.world.carry_out(RemoveCgroup(pod.metadata.uid, own.path))
        events = _heard(stage, told, self.patience_seconds)
        assert events == [PodCleanedUp(pod.metadata.uid)]

    def test_memory_that_is_not_available_is_working_set(self, stage):
        before = observe(stage.world.summary()).signals[Signal.MEMORY]
        _start(stage, stage.pod("a"), self.patience_seconds)
        after = observe(stage.world.summary()).signals[Signal.MEMORY]
        assert after.capacity == before.capacity
        assert 0 < after.available <= after.capacity

    @pytest.mark.parametrize("what", list(CleanUp))
    def test_a_clean_up_is_done_when_it_returns(self, stage, what):
        assert list(stage.world.carry_out(CleanUpNode(what, _reclaiming()))) == []

    def test_a_pod_that_is_held_runs_on_and_has_its_grace_period_if_it_does_not_grow(self, stage):
        pod = stage.pod("a")
        _start(stage, pod, self.patience_seconds)
        assert not stage.world.carry_out(HoldPod(pod))
        assert not stage.settle(QUIET_SECONDS)
        assert set(observe(stage.world.summary()).pods) == {pod.metadata.uid}
        events = _heard(stage, stage.world.carry_out(_eviction(pod, 1)), 1 + self.patience_seconds)
        assert events == [PodStopped(pod.metadata.uid)]

    def test_a_pod_that_is_held_and_grows_is_stopped_at_once_and_reported_once(self, stage):
        pod, other = stage.pod("a"), stage.pod("b")
        for each in (pod, other):
            _start(stage, each, self.patience_seconds)
        stage.world.carry_out(HoldPod(pod))
        told = [*stage.world.carry_out(_eviction(pod, 600)), *stage.grow(pod)]
        assert _heard(stage, told, self.patience_seconds) == [PodStopped(pod.metadata.uid)]
        assert set(observe(stage.world.summary()).pods) == {other.metadata.uid}

    def test_memory_that_crosses_a_level_is_told(self, stage):
        pod = stage.pod("a")
        _start(stage, pod, self.patience_seconds)
        events = [*_watch(stage, _available(stage) - 8 * MI), *stage.settle(QUIET_SECONDS)]
        assert events == []
        assert MemoryNotified() in _heard(stage, stage.grow(pod), self.patience_seconds)

    def test_levels_that_were_asked_for_before_count_no_more(self, stage):
        pod = stage.pod("a")
        _start(stage, pod, self.patience_seconds)
        _watch(stage, _available(stage) - 8 * MI)
        assert not stage.world.carry_out(WatchMemory())
        assert [*stage.grow(pod), *stage.settle(QUIET_SECONDS)] == []

    @pytest.mark.parametrize("tell_if_below", [True, False], ids=["wanted", "not wanted"])
    def test_memory_that_has_crossed_a_level_already_is_told_only_if_that_is_wanted(self, stage, tell_if_below):
        _start(stage, stage.pod("a"), self.patience_seconds)
        asked = _watch(stage, _available(stage) + 2 * MI, tell_if_below=tell_if_below)
        events = _heard(stage, asked, self.patience_seconds if tell_if_below else QUIET_SECONDS)
        assert events == ([MemoryNotified()] if tell_if_below else [])

    def test_an_agent_relieves_pressure_by_evicting_and_looks_again(self, stage):
        """The threshold is put where the node already is, so that no memory has to be filled for it."""
        pod = stage.pod("a")
        seen = observe(stage.world.summary()).signals[Signal.MEMORY]
        config = _config(stage, f"{seen.capacity}")
        entries: list[Entry] = []
        driver = Driver(config, stage.world, entries.append)
        driver.start(0)
        driver.deliver(0, PodBound(pod))
        for now_us in range(0, 4 * 60_000_000, 60_000_000):
            _hear_the_rest(stage, driver, entries, now_us, self.patience_seconds)
            driver.deliver(now_us, Woken())
        kinds = [entry.kind.value for entry in entries if entry.kind != "Observed"]
        assert kinds == ["Admitted", "Started", "ConditionChanged", "Evicted", "Stopped", "CleanedUp"]
        assert not observe(stage.world.summary()).pods

    def test_an_agent_on_the_fast_path_evicts_one_pod_after_the_other_without_waiting_for_a_pass(self, stage):
        pods = [stage.pod("a"), stage.pod("b")]
        capacity = observe(stage.world.summary()).signals[Signal.MEMORY].capacity
        config = replace(_config(stage, f"{capacity}"), notification=MemoryNotification.FAST_PATH)
        entries: list[Entry] = []
        driver = Driver(config, stage.world, entries.append)
        driver.start(0)
        for each in pods:
            driver.deliver(0, PodBound(each))
            _hear_the_rest(stage, driver, entries, 0, self.patience_seconds)
        for _ in pods:
            now_us = driver.wake_us
            driver.deliver(now_us, Woken())
            _hear_the_rest(stage, driver, entries, now_us, self.patience_seconds)
        kinds = [entry.kind.value for entry in entries if entry.pod is not None]
        assert kinds == [*["Admitted", "Started"] * 2, *["Evicted", "Stopped", "CleanedUp"] * 2]
        assert entries[-1].time_us < 10_000


def _available(stage: Stage) -> int:
    return observe(stage.world.summary()).signals[Signal.MEMORY].available


def _watch(stage: Stage, below_bytes: int, *, tell_if_below: bool = False) -> Sequence[Event]:
    return stage.world.carry_out(WatchMemory((MemoryLevel(Signal.MEMORY, below_bytes, tell_if_below),)))


def _config(stage: Stage, hard_memory: str = "100Mi") -> AgentConfig:
    settings = KubeletConfiguration(eviction_hard={"memory.available": hard_memory}, enforce_node_allocatable=())
    eviction = configure(settings, layout=Layout.SINGLE)
    return AgentConfig(node="n", cgroups=stage.cgroups, eviction=eviction, allocatable={})


def _plan(stage: Stage, pod: Pod) -> tuple[Command, ...]:
    """Return what an agent asks for when it is given a pod."""
    config = _config(stage)
    begun = start(config, 0)
    return handle(config, begun.state, 0, PodBound(pod)).commands


def _start_command(stage: Stage, pod: Pod) -> StartPod:
    (command,) = (command for command in _plan(stage, pod) if isinstance(command, StartPod))
    return command


def _untimed(event: Event) -> Event:
    return replace(event, finished_us=None) if isinstance(event, ContainerExited) else event


def _start(stage: Stage, pod: Pod, patience_seconds: float) -> list[Event]:
    config = _config(stage)
    tiers = start(config, 0).commands if not observe(stage.world.summary()).pods else ()
    events: list[Event] = []
    for command in (*tiers, *_plan(stage, pod)):
        told = stage.world.carry_out(command)
        events += _heard(stage, told, patience_seconds) if isinstance(command, StartPod) else told
    return events


def _heard(stage: Stage, told: Sequence[Event], patience_seconds: float) -> list[Event]:
    """Return what the world told at once, or else tells in time, and whatever it adds soon after."""
    return [*(told or stage.settle(patience_seconds)), *stage.settle(QUIET_SECONDS)]


def _hear_the_rest(stage: Stage, driver: Driver, entries: list[Entry], now_us: int, patience_seconds: float) -> None:
    """Deliver what the world tells until everything that was begun is done."""
    ends = {"Admitted": "Started", "Evicted": "Stopped", "Stopped": "CleanedUp"}

    def is_under_way() -> bool:
        kinds = Counter(entry.kind.value for entry in entries)
        return any(kinds[begun] > kinds[done] for begun, done in ends.items())

    while is_under_way():
        events = stage.settle(patience_seconds)
        assert events, "nothing came"
        for happened in events:
            driver.deliver(now_us, happened)


def _reclaiming() -> ReclaimTarget:
    amount = Quantity.parse("1Mi")
    return ReclaimTarget(Threshold(Signal.NODEFS, ThresholdValue(amount)), amount, amount)


def _eviction(pod: Pod, grace_seconds: int) -> EvictPod:
    eviction = EvictPod(pod, grace_seconds, "", {}, None, _reclaiming())
    return replace(eviction, message="The node was low on resource: memory. ")
