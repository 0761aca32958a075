"""An agent that is killed at any moment: its pods run on, and the next one takes them over."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from host.agents import Agent, shims, until, until_up
from host.machine import needs_node
from host.nodes import pod_document
from podqos.host.linux.capabilities import open_cgroups
from podqos.host.linux.procfs import Procfs

pytestmark = [needs_node, pytest.mark.slow]

_KILLS = 10


@pytest.fixture
def agent():
    made = Agent()
    try:
        yield made
    finally:
        made.close()


def test_pods_outlive_an_agent_that_is_killed_at_random_moments(agent):
    chance = random.Random(7)  # noqa: S311 - nothing secret
    stable = [f"web{number}" for number in range(4)]
    for number, name in enumerate(stable):
        agent.put(pod_document(name, "sleep", f"1000.{number}"))
    agent.put(pod_document("crash", "sh", "-c", "sleep 0.2; exit 1", "crash"))
    expected = {f"1000.{number}" for number in range(len(stable))}
    for _ in range(_KILLS):
        agent.start()
        time.sleep(chance.uniform(0.1, 1.2))
        agent.end(signal.SIGKILL)
        there = agent.commands()
        assert all(there[command] <= 1 for command in expected), there
    agent.start()
    there = until(agent, lambda: found if expected <= set((found := agent.processes()).values()) else None)
    before = {pid: _started(pid) for pid, command in there.items() if command in expected}
    agent.end(signal.SIGKILL)
    time.sleep(0.2)
    assert expected <= set(agent.commands()), "they run without an agent"
    journal = agent.entries()
    agent.start()
    until(agent, lambda: sum(entry.kind == "Adopted" for entry in agent.entries()[len(journal) :]) > len(stable))
    assert agent.entries()[: len(journal)] == journal, "no line is lost or changed"
    there = agent.commands()
    assert all(there[command] == 1 for command in expected), there
    assert {pid: _started(pid) for pid in before} == before
    assert agent.end(signal.SIGTERM) == 0
    assert not agent.cgroups.exists(agent.own)
    until(agent, lambda: not shims(agent.folder))
    assert not list((agent.folder / "state" / "pods").iterdir())


def test_a_pod_that_ended_without_an_agent_is_handled_by_the_next_one(agent):
    go_on = agent.folder / "go-on"
    waits = f"until [ -e {go_on} ]; do sleep 0.05; done"
    agent.put(pod_document("once", "sh", "-c", waits, spec={"restartPolicy": "Never"}))
    agent.start()
    until(agent, lambda: any(entry.kind == "Started" for entry in agent.entries()))
    agent.end(signal.SIGKILL)
    go_on.touch()
    until(agent, lambda: not agent.commands())
    agent.start()
    until(agent, lambda: any(entry.kind == "CleanedUp" for entry in agent.entries()))
    kinds = [entry.kind.value for entry in agent.entries()]
    assert kinds == ["Admitted", "Started", "Adopted", "Exited", "Succeeded", "Stopped", "CleanedUp"]
    agent.end(signal.SIGTERM)


def test_a_pod_whose_manifest_was_removed_without_an_agent_is_ended(agent):
    agent.put(pod_document("web", "sleep", "1000"))
    agent.start()
    until_up(agent, "1000")
    agent.end(signal.SIGKILL)
    (agent.folder / "manifests" / "web.json").unlink()
    agent.start()
    until(agent, lambda: not agent.commands())
    agent.end(signal.SIGTERM)


def test_what_outlived_its_shim_and_the_agent_does_not_run_twice(agent):
    agent.put(pod_document("web", "sleep", "1000"))
    agent.start()
    (orphan,) = until_up(agent, "1000")
    agent.end_with_shim()
    assert agent.processes() == {orphan: "1000"}
    agent.start()
    until(agent, lambda: any(entry.kind == "Restarted" for entry in agent.entries()))
    assert _others(agent, orphan) == ["1000"]
    agent.end(signal.SIGTERM)


def test_what_neither_shim_nor_records_know_is_ended_before_anything_is_started(agent):
    agent.put(pod_document("web", "sleep", "1000"))
    agent.start()
    (pid,) = until_up(agent, "1000")
    pod = agent.cgroups.of_process(pid).rpartition("/")[0]
    agent.end_with_shim()
    # A restart that was not recorded, and processes that have moved up.
    places = (f"{pod}/another", pod, pod.rpartition("/")[0], f"{agent.own}/kubepods", agent.own)
    strays = [_sleeping(agent, place) for place in places]
    try:
        agent.start()
        until(agent, lambda: all(stray.poll() is not None for stray in strays))
        until(agent, lambda: pid not in agent.processes())
        until_up(agent, "1000")
    finally:
        for stray in strays:
            stray.kill()
            stray.wait()
    assert agent.end(signal.SIGTERM) == 0


def test_agent_and_shim_killed_together_again_and_again_leave_every_pod_running_once(agent):
    chance = random.Random(3)  # noqa: S311 - nothing secret
    expected = {f"1000.{number}" for number in range(12)}
    for number in range(12):
        agent.put(pod_document(f"web{number}", "sleep", f"1000.{number}"))
    for _ in range(6):
        agent.start()
        time.sleep(chance.uniform(0.3, 1.0))
        agent.end_with_shim()
        there = agent.commands()
        assert all(count == 1 for count in there.values()), there
    orphans = set(agent.cgroups.processes(agent.own))
    agent.start()
    until(agent, lambda: not orphans & set(agent.cgroups.processes(agent.own)))
    until_up(agent, *expected)
    restarts = [entry.because for entry in agent.entries() if entry.kind == "Restarted"]
    assert {each.back_off_seconds for each in restarts} <= {0}, "none has ended by itself, so that none has to wait"
    assert agent.end(signal.SIGTERM) == 0
    assert not agent.cgroups.exists(agent.own)


@pytest.fixture
def elsewhere(agent):
    made = open_cgroups(f"{agent.own}-elsewhere")
    made.create(made.own)
    try:
        yield made
    finally:
        made.end([made.own], 5)
        assert not made.exists(made.own)


@pytest.mark.parametrize(
    ("hierarchies", "number"), [(1, signal.SIGTERM), (None, signal.SIGHUP)], ids=["memory, SIGTERM", "all, SIGHUP"]
)
def test_a_container_that_moved_into_another_cgroup_is_ended_with_the_node(agent, elsewhere, hierarchies, number):
    moves = "; ".join(f"echo $$$$ > {entrance}" for entrance in elsewhere.entrances(elsewhere.own)[:hierarchies])
    agent.put(pod_document("moves", "sh", "-c", f"{moves}; (sleep 1001 & sleep 1002); exit"))
    agent.start()
    until(agent, lambda: len(elsewhere.processes(elsewhere.own)) == 3)
    assert agent.end(number) == 0
    until(agent, lambda: not elsewhere.processes(elsewhere.own))
    assert not agent.cgroups.exists(agent.own)


def test_a_node_started_with_nohup_outlives_its_terminal(agent):
    agent.put(pod_document("web", "sleep", "1000"))
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        agent.start()
    finally:
        signal.signal(signal.SIGHUP, before)
    until_up(agent, "1000")
    agent.process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert agent.process.poll() is None
    assert agent.commands()
    assert agent.end(signal.SIGTERM) == 0


def test_a_container_that_moved_into_another_cgroup_does_not_run_twice(agent, elsewhere):
    moves = "; ".join(f"echo $$$$ > {entrance}" for entrance in elsewhere.entrances(elsewhere.own))
    agent.put(pod_document("moves", "sh", "-c", f"{moves}; exec sleep 1001"))
    agent.start()
    until(agent, lambda: elsewhere.processes(elsewhere.own) and not agent.commands())
    (before,) = elsewhere.processes(elsewhere.own)
    agent.end_with_shim()
    agent.start()
    there = until(agent, lambda: set(found) if {*(found := elsewhere.processes(elsewhere.own))} - {before} else None)
    assert before not in there
    assert agent.end(signal.SIGTERM) == 0


def _sleeping(agent: Agent, cgroup: str) -> subprocess.Popen[bytes]:
    """Start a process in a cgroup of the node."""
    agent.cgroups.create(cgroup)
    process = subprocess.Popen(["sleep", "2000"])
    for entrance in agent.cgroups.entrances(cgroup):
        Path(entrance).write_text(str(process.pid))
    return process


def test_what_the_state_directory_does_not_know_is_ended(agent):
    agent.put(pod_document("web", "sleep", "1000"))
    agent.start()
    (pid,) = until_up(agent, "1000")
    agent.end(signal.SIGKILL)
    for file in (agent.folder / "state" / "pods").iterdir():
        file.unlink()
    agent.start()
    assert _others(agent, pid) == ["1000"]
    agent.end(signal.SIGTERM)


def _others(agent: Agent, before: int) -> list[str]:
    """Wait until something else runs than before, and return all that runs then."""
    there = until(agent, lambda: found if (found := agent.processes()).keys() - {before} else None)
    if before not in there:
        there = until_up(agent, "1000")  # it may just be becoming that
    return sorted(there.values())


def _started(pid: int) -> list[str]:
    """Return when a process was started, since boot: with the id it names a process for good."""
    return Procfs().stat(pid)[19:20]
