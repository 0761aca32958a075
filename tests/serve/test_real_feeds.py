"""The page of a node and of a guard that really run on this machine, until they are killed."""

from __future__ import annotations

import signal

import pytest

from guard.kubelets import SLEEP, suite_kubelet
from guard.test_beside_a_kubelet import grower, guard, knows_pods, limited
from host.agents import Agent
from host.machine import needs_node
from host.nodes import pod_document
from serve.running import eventually, running

pytestmark = [pytest.mark.slow, needs_node]


def now(visitor):
    """Return what a page is told now of how old what it shows is."""
    return visitor.once()[-1][2]


def in_trouble(visitor, words):
    """Return what a page is told now, if that says so; an answer that breaks off is told first."""
    told = now(visitor)
    return told if words in told["trouble"] else None


def cluster(visitor):
    return visitor.value("/api/sources/start/cluster")


def names(visitor):
    return sorted(each["name"] for each in cluster(visitor)["pods"])


@pytest.fixture
def agent():
    agent = Agent()
    try:
        yield agent
    finally:
        agent.close()


def sleeps(name):
    return pod_document(name, "sleep", "1000", resources={"requests": {"memory": "16Mi"}})


def test_a_running_node_is_shown_as_its_pods_come_and_go_and_how_old_that_is_once_it_is_killed(agent):
    state = agent.folder / "state"
    agent.put(sleeps("first"))
    agent.start()
    eventually((state / "api.sock").exists, "the node")
    with running("--state-dir", state) as server:
        visitor = server.visitor()
        visitor.value("/api/session")
        eventually(lambda: names(visitor) == ["first"], "the first pod")
        eventually(lambda: cluster(visitor)["pods"][0]["usedBytes"], "what it uses")
        [node] = cluster(visitor)["nodes"]
        assert (node["memoryBytes"], node["isMeasured"]) == (256 << 20, True)
        [pod] = cluster(visitor)["pods"]
        details = visitor.value(f"/api/sources/start/pods?pod={pod['namespace']}%2Ffirst")
        assert details["standing"]["evictionPlace"] == 1
        agent.put(sleeps("second"))
        eventually(lambda: names(visitor) == ["first", "second"], "another pod")
        (agent.folder / "manifests/first.json").unlink()
        eventually(lambda: names(visitor) == ["second"], "that it is gone")
        eventually(lambda: now(visitor)["trouble"] == "", "that it is up to date")
        agent.end(signal.SIGKILL)
        told = eventually(
            lambda: in_trouble(visitor, "no node is running with this state directory"), "that the node is gone"
        )
        eventually(lambda: now(visitor)["ageSeconds"] >= told["ageSeconds"] + 2, "that it gets older")
        assert names(visitor) == ["second"]
        agent.start()
        eventually(lambda: now(visitor)["trouble"] == "", "that it is back")
        eventually(lambda: names(visitor) == ["second"], "its pod, which has gone on")


def test_a_running_guard_is_shown_with_its_mode_its_brakes_and_decisions_until_it_is_killed(tmp_path):
    with suite_kubelet() as kubelet:
        limited(kubelet)
        steady = kubelet.run("steady", SLEEP)
        with guard(kubelet, tmp_path, "--enforce", "--most", "3/5m") as process:
            eventually(lambda: knows_pods(tmp_path), "the guard knows pods")
            with running("--guard", tmp_path / "state", "--guard-run", tmp_path / "run") as server:
                visitor = server.visitor()
                visitor.value("/api/session")

                def told():
                    return cluster(visitor)["guard"]

                eventually(lambda: steady.name in names(visitor), "its pods")
                eventually(lambda: told()["mode"] == "enforces", "that it enforces")
                facts = {each["name"]: each["text"] for each in told()["facts"]}
                assert facts["rate limit"].startswith("0 of 3 evictions")
                [node] = cluster(visitor)["nodes"]
                assert (node["name"], node["memoryBytes"] > 0) == (kubelet.node, True)
                (tmp_path / "run/stop").touch()
                eventually(lambda: told()["mode"] == "evicts nothing: the stop file exists", "the kill switch")
                assert told()["enforce"]
                kubelet.run("grower", grower(kubelet))
                decided = eventually(
                    lambda: [each for each in told()["entries"] if each["kind"] == "WouldEvict"], "a decision"
                )
                assert decided[0]["pod"] == "default/grower"
                assert "stop file" in decided[0]["text"]
                assert decided[0]["reasons"]
                process.kill()
                eventually(lambda: in_trouble(visitor, "has stopped or is stuck"), "that the guard is gone")
                assert steady.name in names(visitor)
