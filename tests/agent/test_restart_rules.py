"""Restart policies and rules of containers (KEP-5307), and those that start the whole pod again (KEP-5532)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.memory_world import MemoryWorld, Run
from agent.test_agent import config
from agent.test_containers import made, restarts, started
from podqos.agent.port import KillContainer, PodBound, PodDeleted
from podqos.agent.reasons import RestartedAfter
from podqos.model.pod import Container, ExitCodes, Pod, RestartRule
from podqos.model.profile import profile_for

SIDECAR = Container("proxy", restart_policy="Always")


def ruled(policy: str, *rules: tuple[str, str, tuple[int, ...]], name: str = "main") -> Container:
    """Return a container with rules of (action, operator, exit codes)."""
    made_rules = (RestartRule(action, ExitCodes(operator, codes)) for action, operator, codes in rules)
    return Container(name, restart_policy=policy, restart_policy_rules=tuple(made_rules))


def with_containers(*containers: Container, policy: str = "Never", init: tuple[Container, ...] = ()) -> Pod:
    found = made(restart_policy=policy, init=init)
    return replace(found, spec=replace(found.spec, containers=containers))


def run(pod: Pod, minor: int = 37, world: MemoryWorld | None = None) -> Run:
    running = Run(replace(config(), profile=profile_for((1, minor))), world)
    running.tell(PodBound(pod))
    return running


def killed(running: Run) -> list[str]:
    return [command.container for command in running.world.commands if isinstance(command, KillContainer)]


IN, NOT_IN = ("Restart", "In", (42,)), ("Restart", "NotIn", (0, 42))
OUTCOMES = [
    pytest.param(34, ruled("Always"), "Never", 1, "Failed", id="up to 1.34 only the pod has a policy"),
    pytest.param(35, ruled("Always"), "Never", 1, "Restarted", id="the container's own policy comes first"),
    pytest.param(35, ruled("OnFailure"), "Never", 0, "Succeeded", id="OnFailure after success"),
    pytest.param(35, ruled("OnFailure"), "Never", 1, "Restarted", id="OnFailure after failure"),
    pytest.param(35, ruled("Never"), "Always", 1, "Failed", id="Never against the pod's Always"),
    pytest.param(35, ruled("Never", IN), "Never", 42, "Restarted", id="a rule comes before the policy"),
    pytest.param(35, ruled("Never", IN), "Never", 1, "Failed", id="a rule about another code"),
    pytest.param(35, ruled("Never", NOT_IN), "Never", 1, "Restarted", id="any other code"),
    pytest.param(35, ruled("Never", NOT_IN), "Never", 42, "Failed", id="one of those"),
    pytest.param(34, ruled("Never", IN), "Never", 42, "Failed", id="up to 1.34 there are no rules"),
    pytest.param(
        35,
        ruled("Never", ("RestartAllContainers", "In", (42,))),
        "Never",
        42,
        "Failed",
        id="up to 1.35 such a rule leaves it to the policy",
    ),
    pytest.param(
        36, ruled("Never", ("RestartAllContainers", "In", (42,))), "Never", 42, "Restarted", id="since 1.36 it counts"
    ),
    pytest.param(
        36,
        ruled("Never", ("Restart", "In", (7,)), ("RestartAllContainers", "In", (7,))),
        "Never",
        7,
        "Restarted",
        id="the first that matches",
    ),
]


@pytest.mark.parametrize(("minor", "container", "policy", "exit_code", "outcome"), OUTCOMES)
def test_what_an_end_leads_to_by_the_containers_own_policy_and_rules(minor, container, policy, exit_code, outcome):
    running = run(with_containers(container, policy=policy), minor)
    running.exit("a", exit_code)
    assert [kind for _, kind, _ in running.lines()][3] == outcome


def test_a_rule_restarts_with_back_off():
    running = run(with_containers(ruled("Never", IN)))
    for seconds in (1, 20):
        running.exit("a", 42)
        running.until(seconds)
    assert [waited for _, waited in restarts(running)] == [0, 10]


def test_an_init_container_that_failed_goes_by_its_own_policy_and_one_that_succeeded_is_done():
    init = ruled("Never", IN, name="setup")
    running = run(with_containers(Container("main"), policy="Always", init=(init,)))
    running.exit("a", 42, "setup")
    running.exit("a", 0, "setup")
    assert started(running) == ["setup", "setup", "main"]
    failing = run(with_containers(Container("main"), policy="Always", init=(init,)))
    failing.exit("a", 1, "setup")
    assert [kind for _, kind, _ in failing.lines()][-3:] == ["Failed", "Stopped", "CleanedUp"]


ALL = ("RestartAllContainers", "In", (42,))


def whole_pod(**policy: str) -> Pod:
    setup = Container("setup")
    return with_containers(ruled("Never", ALL), Container("other"), init=(setup, SIDECAR), **policy)


def test_a_rule_that_restarts_all_kills_the_others_without_grace_and_begins_with_the_init_containers():
    running = run(whole_pod())
    running.exit("a", 0, "setup")
    assert started(running) == ["setup", "proxy", "main", "other"]
    running.exit("a", 42)
    assert killed(running) == ["proxy", "other"]
    assert started(running)[4:] == ["setup"]
    running.exit("a", 0, "setup")
    assert started(running)[4:] == ["setup", "proxy", "main", "other"]
    again = [entry for entry in running.journal if isinstance(entry.because, RestartedAfter)]
    assert [(entry.container, entry.because.restarts, entry.because.with_all) for entry in again] == [
        ("setup", 1, True),
        ("proxy", 1, True),
        ("main", 1, True),
        ("other", 1, True),
    ]


def test_it_does_so_without_back_off_as_often_as_it_takes():
    running = run(with_containers(ruled("Never", ALL), Container("other")))
    for _ in range(5):
        running.exit("a", 42)
    assert restarts(running) == [(0.0, 0)] * 10


def test_nothing_starts_before_all_have_ended():
    world = MemoryWorld()
    world.kill_seconds = 3
    running = run(with_containers(ruled("Never", ALL), Container("other")), world=world)
    running.exit("a", 42)
    running.until(2)
    assert started(running) == ["main", "other"]
    running.until(4)
    assert started(running) == ["main", "other", "main", "other"]


def test_a_container_that_is_just_starting_is_killed_as_soon_as_it_runs():
    world = MemoryWorld()
    world.start_seconds = 2
    running = run(with_containers(ruled("Never", ALL), Container("other"), policy="Always"), world=world)
    running.exit("a", 1, "other")
    running.exit("a", 42)
    assert killed(running) == []
    running.until(3)
    assert killed(running) == ["other"]
    running.until(10)
    assert started(running) == ["main", "other", "other", "main", "other"]


def test_a_container_that_waits_for_its_restart_starts_with_the_others_once():
    running = run(with_containers(ruled("Never", ALL), Container("other"), policy="Always"))
    running.exit("a", 1, "other")
    running.exit("a", 1, "other")
    running.exit("a", 42)
    running.until(60)
    assert started(running) == ["main", "other", "other", "main", "other"]


def test_an_ephemeral_container_is_left_alone():
    found = with_containers(ruled("Never", ALL))
    debugged = replace(found, spec=replace(found.spec, ephemeral_containers=(Container("debug"),)))
    running = run(debugged)
    running.exit("a", 42)
    assert killed(running) == []
    assert started(running) == ["main", "debug", "main"]


def test_the_journal_says_of_all_that_end_meanwhile_that_they_restart_but_not_of_an_ephemeral_one():
    world = MemoryWorld()
    world.kill_seconds = 3
    found = with_containers(ruled("Never", ALL), Container("other"))
    running = run(replace(found, spec=replace(found.spec, ephemeral_containers=(Container("debug"),))), world=world)
    running.exit("a", 42)
    running.exit("a", 0, "debug")
    running.until(5)
    ended = {entry.container: entry.because.restarts for entry in running.journal if entry.kind == "Exited"}
    assert ended == {"main": True, "debug": False, "other": True}


def test_a_pod_that_is_deleted_meanwhile_does_not_begin_again():
    world = MemoryWorld()
    world.kill_seconds, world.stop_seconds = 3, 5
    running = run(with_containers(ruled("Never", ALL), Container("other")), world=world)
    running.exit("a", 42)
    running.tell(PodDeleted("a"))
    running.until(20)
    assert started(running) == ["main", "other"]
    assert not running.world.running
