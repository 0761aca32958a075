"""Containers that end: restart policy, back-off, init containers and sidecars, the end of a pod."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.memory_world import MemoryWorld, Run
from agent.test_agent import config
from eviction.nodes import pod
from podqos.agent.port import (
    ContainerExited,
    ContainerStarted,
    PodBound,
    PodDeleted,
    StartContainer,
    StartPod,
    StopPod,
    Woken,
)
from podqos.agent.reasons import ExitedWith, RestartedAfter
from podqos.model.pod import Container, Pod


def made(*, restart_policy: str = "", init: tuple[Container, ...] = (), containers: tuple[str, ...] = ("main",)) -> Pod:
    """Return a pod called a."""
    base = pod("a")
    spec = replace(
        base.spec,
        restart_policy=restart_policy,
        init_containers=init,
        containers=tuple(Container(name=name) for name in containers),
    )
    return replace(base, spec=spec)


def run(made_pod: Pod, world: MemoryWorld | None = None) -> Run:
    running = Run(config(), world)
    running.tell(PodBound(made_pod))
    return running


def restarts(running: Run) -> list[tuple[float, int]]:
    """Return when containers ran again, and how long that was put off."""
    return [
        (entry.time_us / 1e6, entry.because.back_off_seconds)
        for entry in running.journal
        if isinstance(entry.because, RestartedAfter)
    ]


def started(running: Run) -> list[str]:
    """Return the containers in the order in which they were started, again or not."""
    names: list[str] = []
    for command in running.world.commands:
        if isinstance(command, StartPod):
            names += [plan.name for plan in command.containers]
        elif isinstance(command, StartContainer):
            names.append(command.plan.name)
    return names


def test_a_container_restarts_at_once_the_first_time_then_after_ten_seconds_doubling_to_five_minutes():
    running = run(made())
    for _ in range(8):
        running.exit("a")
        running.until(running.world.now_us / 1e6 + 301)
    assert [waited for _, waited in restarts(running)] == [0, 10, 20, 40, 80, 160, 300, 300]
    assert restarts(running)[1] == (311.0, 10)


@pytest.mark.parametrize(("longest", "waits"), [(30, [0, 10, 20, 30, 30]), (5, [0, 5, 5, 5, 5])])
def test_the_kubelet_may_be_told_how_long_a_restart_waits_at_most(longest, waits):
    running = Run(replace(config(), longest_back_off_seconds=longest))
    running.tell(PodBound(made()))
    for _ in waits:
        running.exit("a")
        running.until(running.world.now_us / 1e6 + 31)
    assert [waited for _, waited in restarts(running)] == waits


def test_the_back_off_is_forgotten_after_ten_minutes_of_running():
    running = run(made())
    running.exit("a")
    running.until(600)
    running.exit("a")
    running.until(1210)
    running.exit("a")
    running.until(1900)
    running.exit("a")
    running.exit("a")
    running.until(2000)
    assert restarts(running) == [(0.0, 0), (610.0, 10), (1230.0, 20), (1900.0, 0), (1910.0, 10)]


def test_the_back_off_counts_from_the_end_of_the_container_not_from_when_it_was_heard_of():
    running = run(made())
    running.exit("a")
    running.until(5)
    running.tell(ContainerExited("a", "main", 1, finished_us=4_200_000))
    running.until(30)
    assert restarts(running) == [(0.0, 0), (14.2, 10)]


def test_a_container_that_was_lost_is_restarted_at_once_and_its_back_off_stays():
    running = run(made())
    running.exit("a")
    running.until(5)
    running.exit("a")
    running.until(20)
    running.tell(ContainerExited("a", "main", 137, is_lost=True))
    running.tell(ContainerExited("a", "main", 137, is_lost=True))
    running.until(21)
    running.exit("a")
    running.until(60)
    assert restarts(running) == [(0.0, 0), (15.0, 10), (20.0, 0), (20.0, 0), (41.0, 20)]


def test_the_agent_wants_to_be_woken_for_a_restart_and_for_its_passes():
    running = run(made())
    running.tell(Woken())
    running.exit("a")
    running.until(3)
    running.exit("a")
    assert running.driver.wake_us == 10_000_000
    running.until(11)
    assert running.driver.wake_us == 13_000_000


POLICIES = [
    ("Always", 0, "Restarted"),
    ("Always", 1, "Restarted"),
    ("", 0, "Restarted"),
    ("OnFailure", 1, "Restarted"),
    ("OnFailure", 0, "Succeeded"),
    ("Never", 0, "Succeeded"),
    ("Never", 1, "Failed"),
]


@pytest.mark.parametrize(("policy", "exit_code", "outcome"), POLICIES)
def test_the_restart_policy_says_what_an_end_leads_to(policy, exit_code, outcome):
    running = run(made(restart_policy=policy))
    running.exit("a", exit_code)
    kinds = [kind for _, kind, _ in running.lines()]
    assert kinds[:4] == ["Admitted", "Started", "Exited", outcome]
    assert ("Stopped" in kinds) == (outcome != "Restarted")
    assert bool(running.world.running) == (outcome == "Restarted")


def test_a_pod_that_ended_by_itself_was_stopped_by_nobody_and_gives_back_what_it_held():
    running = run(made(restart_policy="Never"))
    running.exit("a", 0)
    (stopped,) = (entry for entry in running.journal if entry.kind == "Stopped")
    assert stopped.by is None
    assert running.driver.state.pods == {}
    assert not any(running.driver.state.requested.values())


def test_a_pod_runs_on_while_one_of_its_containers_does_and_fails_if_any_did():
    running = run(made(restart_policy="Never", containers=("one", "two")))
    running.exit("a", 1, "one")
    assert running.world.running
    running.exit("a", 0, "two")
    assert running.lines("Succeeded", "Failed") == [(0.0, "Failed", "default/a")]


def test_init_containers_run_one_after_the_other_before_the_regular_ones():
    running = run(made(init=(Container(name="first"), Container(name="second")), containers=("one", "two")))
    assert started(running) == ["first"]
    running.exit("a", 0, "first")
    running.exit("a", 0, "second")
    assert started(running) == ["first", "second", "one", "two"]
    assert [entry.container for entry in running.journal if entry.kind == "Started"] == [None, "second", "one", "two"]


def test_an_init_container_that_fails_runs_again_before_anything_else():
    running = run(made(restart_policy="OnFailure", init=(Container(name="first"),)))
    running.exit("a", 1, "first")
    assert started(running) == ["first", "first"]
    running.exit("a", 0, "first")
    assert started(running) == ["first", "first", "main"]


def test_an_init_container_that_fails_ends_a_pod_that_never_restarts():
    running = run(made(restart_policy="Never", init=(Container(name="first"),)))
    running.exit("a", 1, "first")
    assert running.lines("Failed") == [(0.0, "Failed", "default/a")]
    assert started(running) == ["first"]


SIDECAR = Container(name="proxy", restart_policy="Always")


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_a_sidecar_always_restarts_and_starts_before_the_others(policy):
    running = run(made(restart_policy=policy, init=(SIDECAR, Container(name="setup"))))
    assert started(running) == ["proxy", "setup"]
    running.exit("a", 0, "proxy")
    assert started(running) == ["proxy", "setup", "proxy"]
    running.exit("a", 0, "setup")
    assert started(running)[3:] == ["main"]


def test_a_sidecar_does_not_keep_a_pod_alive():
    running = run(made(restart_policy="Never", init=(SIDECAR,)))
    running.exit("a", 0)
    assert isinstance(running.world.commands[-2], StopPod)
    assert running.lines("Succeeded", "Stopped")[0][1] == "Succeeded"
    assert not running.world.running


def test_what_ends_while_its_pod_is_told_to_go_is_not_restarted():
    world = MemoryWorld()
    world.stop_seconds = 5
    running = run(made(), world)
    running.tell(PodDeleted("a"))
    running.exit("a")
    running.until(20)
    assert restarts(running) == []
    assert running.lines("Exited", "Stopped") == [(0.0, "Exited", "default/a"), (5.0, "Stopped", "default/a")]


def test_a_restart_that_is_put_off_is_forgotten_with_its_pod():
    running = run(made())
    running.exit("a")
    running.exit("a")
    running.tell(PodDeleted("a"))
    running.until(60)
    assert len(restarts(running)) == 1


def test_restarts_that_are_due_together_do_not_wait_for_a_pod_that_is_going():
    world = MemoryWorld()
    world.stop_seconds = 25
    running = run(made(), world)
    running.tell(PodBound(pod("b")))
    for name in ("a", "b", "a", "b"):
        running.exit(name)
    running.tell(PodDeleted("a"))
    running.until(12)
    assert [(entry.time_us / 1e6, entry.pod) for entry in running.journal if entry.kind == "Restarted"] == [
        (0.0, "default/a"),
        (0.0, "default/b"),
        (10.0, "default/b"),
    ]


def test_a_start_of_what_the_agent_does_not_know_changes_nothing():
    running = run(made())
    before = running.driver.state, len(running.journal)
    running.tell(ContainerStarted("a", "another"))
    running.tell(ContainerStarted("gone", "main"))
    assert (running.driver.state, len(running.journal)) == before


def test_an_end_that_is_heard_of_twice_counts_once():
    running = run(made(restart_policy="Never", containers=("one", "two")))
    running.exit("a", 1, "one")
    running.exit("a", 1, "one")
    assert len(running.lines("Exited")) == 1


def test_the_journal_says_how_a_container_ended_and_after_what_it_ran_again():
    running = run(made())
    running.exit("a", 137, oom_killed=True)
    exited, again = running.journal[-2:]
    assert (exited.container, exited.because) == ("main", ExitedWith(137, oom_killed=True, restarts=True))
    assert (again.container, again.because) == ("main", RestartedAfter(137, 1, 0, oom_killed=True))
