"""What only a real node tells the agent: a signal from the kernel, pods that run already; and an agent that shadows."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.memory_world import MemoryWorld, Run
from agent.test_agent import config
from eviction.nodes import pod, pod_of
from podqos.agent.commands import CreateCgroup, StartContainer, StartPod
from podqos.agent.events import ContainerExited, MemoryNotified, PodAdopted, PodBound, Remembered
from podqos.agent.state import Evicting, Resting
from podqos.model.pod import Container


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
