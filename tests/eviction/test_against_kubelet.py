"""Evictions of a real kubelet (v1.36.4, memory pressure), replayed from what it saw.

A run holds its configuration, the pods, memory samples taken every two seconds, the log of the eviction manager, what
the evicted pods and their events carry, and when the node reported MemoryPressure. The samples have figures per pod;
the one of the victim's container is the one the kubelet quotes itself.
"""

from __future__ import annotations

import gzip
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from podqos.eviction.manager import EvictPod, ManagerConfig, ManagerState, Pass, configure, synchronize
from podqos.eviction.messages import PHASE, REASON
from podqos.eviction.signals import Layout, NodeCondition, observe
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity
from podqos.model.stats import ContainerStats, MemoryStats, NodeStats, PodReference, PodStats, Summary

RECORDINGS = Path(__file__).parents[1] / "recordings" / "kubelet"
RANKED = re.compile(r'^I1115 (\S+) .*"Eviction manager: pods ranked for eviction" pods=(\[.*\])$')
STATUS_UPDATE_SECONDS = 10


class Recording:
    """One run, with what is needed to play it again."""

    def __init__(self, name: str) -> None:
        run = json.loads(gzip.decompress((RECORDINGS / name / "run.json.gz").read_bytes()))
        self.samples, self.evicted, self.log = run["samples"], run["evicted"], run["log"]
        self.pods = {
            pod.metadata.name: pod
            for pod in msgspec.convert(run["pods"], list[Pod], dec_hook=lambda _, text: Quantity.parse(text))
        }
        self.pressure = {entry["status"]: micros(entry["at"]) for entry in run["memoryPressure"]}
        self.config: ManagerConfig = configure(
            msgspec.convert(run["config"], KubeletConfiguration), layout=Layout.SINGLE
        )
        first = self.samples[0]["node_memory"]
        self.capacity_bytes = first["availableBytes"] + first["workingSetBytes"]

    def ranked(self) -> list[list[str]]:
        """Return the orders the kubelet logged."""
        return [json.loads(found[2]) for line in self.log if (found := RANKED.match(line))]

    def quoted(self, name: str) -> int:
        """Return what the kubelet says a victim's container was using."""
        return Quantity.parse(self.evicted[name]["eventAnnotations"]["offending_containers_usage"]).value

    def passes(self) -> list[tuple[int, int, dict[str, int]]]:
        """Return (time, available, working set per pod): the kubelet takes a node sample at every pass.

        The pods' figures are those of the last sample before it.
        """
        found: list[tuple[int, int, dict[str, int]]] = []
        for before, sample in zip(self.samples, self.samples[1:], strict=False):
            at = micros(sample["node_memory"]["time"])
            if before["node_memory"]["time"] != sample["node_memory"]["time"]:
                found.append((at, sample["node_memory"]["availableBytes"], before["pods"]))
        return found

    def step(self, state: ManagerState, at_us: int, available: int, working_sets: dict[str, int]) -> Pass:
        """Run one pass of the manager on the pods that have figures."""
        pods = [self.pods[name] for name in sorted(working_sets)]
        memory = MemoryStats(
            time=datetime.fromtimestamp(at_us / 10**6, UTC),
            available_bytes=available,
            working_set_bytes=self.capacity_bytes - available,
        )
        stats = tuple(self.stats(name, used) for name, used in working_sets.items())
        observation = observe(Summary(NodeStats(memory=memory), stats))
        return synchronize(self.config, state, now_us=at_us, observation=observation, pods=pods)

    def stats(self, name: str, used: int) -> PodStats:
        container = self.quoted(name) if used and name in self.evicted else used
        return PodStats(
            pod_ref=PodReference(uid=self.pods[name].metadata.uid),
            containers=(ContainerStats("main", MemoryStats(working_set_bytes=container)),),
            memory=MemoryStats(working_set_bytes=used),
        )


def micros(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 10**6)


def keys(result: Pass) -> list[str]:
    return [entry.pod.key for entry in result.ranking]


def assert_carries_the_same(command: EvictPod, evicted: dict[str, object]) -> None:
    assert (evicted["phase"], evicted["reason"]) == (PHASE, REASON)
    assert command.message == evicted["message"] == evicted["eventMessage"]
    assert command.annotations == evicted["eventAnnotations"]
    assert msgspec.to_builtins(command.condition) == evicted["condition"]


@pytest.mark.parametrize("name", ["eviction_settled", "eviction_soft"])
class TestAgainstASettledKubelet:
    """Statistics had caught up: the whole run is played from the samples, pass by pass."""

    def replay(self, recording: Recording) -> list[tuple[int, Pass]]:
        state, results = ManagerState(), []
        for at_us, available, working_sets in recording.passes():
            results.append((at_us, recording.step(state, at_us, available, working_sets)))
            state = results[-1][1].state
        return results

    def test_one_pod_is_evicted_in_the_logged_order_and_carries_the_same(self, name):
        recording = Recording(name)
        (acted,) = [result for _, result in self.replay(recording) if result.commands]
        assert [keys(acted)] == recording.ranked()
        (command,) = acted.commands
        assert_carries_the_same(command, recording.evicted[command.pod.metadata.name])

    def test_memory_pressure_is_reported_and_taken_back_when_it_was(self, name):
        """A condition shows at the node's next status update, at most ten seconds after the manager knows it."""
        recording = Recording(name)
        reported = [
            (at_us, NodeCondition.MEMORY_PRESSURE in result.state.conditions)
            for at_us, result in self.replay(recording)
        ]
        begins = next(at_us for at_us, pressed in reported if pressed)
        ends = next(at_us for at_us, pressed in reported if at_us > begins and not pressed)
        for ours, theirs in ((begins, recording.pressure["True"]), (ends, recording.pressure["False"])):
            assert 0 <= theirs - ours <= STATUS_UPDATE_SECONDS * 10**6


def test_the_soft_grace_period_ran_as_long_as_the_kubelet_logged():
    """Twice 'criteria not yet met', at 0 s and 10 s of 20 s, then the eviction."""
    recording = Recording("eviction_soft")
    waited = [line for line in recording.log if "eviction criteria not yet met" in line]
    state, idle = ManagerState(), 0
    for at_us, available, working_sets in recording.passes():
        result = recording.step(state, at_us, available, working_sets)
        state = result.state
        if result.commands:
            break
        idle += bool(state.first_observed_us)
    assert idle == len(waited) == 2
    assert result.commands[0].grace_period_seconds == 3  # evictionMaxPodGracePeriod, below the pod's own 5


class TestAgainstAKubeletWithStaleStatistics:
    """All pods were seconds old: the kubelet knew the memory of its victims, as it quotes it, and of the others 0."""

    recording = Recording("eviction_hard")

    def evict(self, state: ManagerState, second: str, victim: str, gone: tuple[str, ...] = ()) -> Pass:
        quoted = re.search(r"available: (\w+)\.", self.recording.evicted[victim]["message"])
        known = {name: 0 for name in self.recording.pods if name not in gone}
        known |= {victim: self.recording.quoted(victim), "critical": 495_616}
        at_us = micros(f"2026-11-15T01:06:{second}Z")
        return self.recording.step(state, at_us, Quantity.parse(quoted[1]).value, known)

    def test_the_stale_figures_give_the_logged_orders_and_victims(self):
        first = self.evict(ManagerState(), "15", "besteffort-small")
        second = self.evict(first.state, "16", "besteffort-hog", gone=("besteffort-small",))
        assert [keys(first), keys(second)] == self.recording.ranked()
        for result, victim in ((first, "besteffort-small"), (second, "besteffort-hog")):
            (command,) = result.commands
            assert command.pod.metadata.name == victim
            assert_carries_the_same(command, self.recording.evicted[victim])

    def test_true_figures_would_have_taken_the_hog_first(self):
        """So it was the statistics and not the rule that made the small pod go."""
        settled = next(sample["pods"] for sample in reversed(self.recording.samples))
        true = {**settled, **{name: self.recording.quoted(name) for name in ("besteffort-small", "besteffort-hog")}}
        result = self.recording.step(ManagerState(), 0, 17_767_988 * 1024, true)
        assert result.commands[0].pod.metadata.name == "besteffort-hog"
