"""Snapshots from a real kubelet's answers."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from eviction.nodes import pod
from orders.nodes import evicted, orders
from podqos.eviction.signals import Signal, decode_summary, observe
from podqos.manifest.reading import read
from podqos.model.profile import LATEST
from podqos.model.snapshot import NodeUsage
from podqos.model.stats import ContainerStats, MemoryStats, NodeStats, PodReference, PodStats, Summary, SwapStats
from podqos.orders.memory import memory_signals
from podqos.orders.usage import from_summary, node_of

RECORDINGS = Path(__file__).parents[1] / "recordings" / "kubelet"


def recorded(name: str) -> bytes:
    return gzip.decompress((RECORDINGS / f"{name}.json.gz").read_bytes())


def recorded_pods() -> bytes:
    """Return the answer of /pods; the recording has been shortened to its items."""
    return json.dumps({"kind": "PodList", "apiVersion": "v1", **json.loads(recorded("pods"))}).encode()


def _measured_at(now: datetime, stats: PodStats) -> PodStats:
    containers = (replace(each, memory=replace(each.memory, time=now)) for each in stats.containers)
    return replace(stats, containers=tuple(containers))


def test_containers_that_were_measured_later_count_more_than_the_cgroup_of_all_pods():
    """As in a node's /stats/summary while a pod grew: 608Mi in ten seconds."""
    then, now = (datetime(2026, 11, 18, 11, 58, second, tzinfo=UTC) for second in (5, 15))
    grown = ContainerStats("main", MemoryStats(time=now, working_set_bytes=700))
    stats = (
        PodStats(PodReference("a", "default", "u"), (grown,)),
        PodStats(PodReference("b", "default", "v"), (grown,)),
    )
    whole = ContainerStats("pods", MemoryStats(time=then, available_bytes=1850, working_set_bytes=150))
    memory = MemoryStats(time=then, available_bytes=9000, working_set_bytes=1000)
    summary = Summary(NodeStats("n", (whole,), memory), stats)
    found = from_summary([pod("a")], summary, node_of(summary))
    assert found.pods_working_set_bytes == 1400
    assert memory_signals(found, found.node.pods_limit_bytes, LATEST) == {
        Signal.MEMORY: 10000 - (1000 - 150) - 1400,
        Signal.ALLOCATABLE_MEMORY: 2000 - 1400,
    }


def test_memory_of_pods_outside_their_containers_counts_even_if_it_was_measured_earlier():
    then, now = (datetime(2026, 11, 18, 11, 58, second, tzinfo=UTC) for second in (5, 15))
    container = ContainerStats("main", MemoryStats(time=now, working_set_bytes=700))
    whole = ContainerStats("pods", MemoryStats(time=then, available_bytes=300, working_set_bytes=1700))
    memory = MemoryStats(time=then, available_bytes=9000, working_set_bytes=2000)
    summary = Summary(NodeStats("n", (whole,), memory), (PodStats(PodReference("a", "default", "a"), (container,)),))
    found = from_summary([pod("a")], summary, node_of(summary))
    assert found.node.pods_other_bytes == 1000
    assert memory_signals(found, 2000, LATEST) == {Signal.MEMORY: 8000 + 1000, Signal.ALLOCATABLE_MEMORY: 300}


class TestAgainstARecordedKubelet:
    """A kubelet's own /stats/summary and /pods."""

    summary = decode_summary(recorded("stats_summary"))
    pods = tuple(workload.pod for workload in read("pods.json", recorded_pods()).workloads)

    def test_every_pod_finds_its_figures(self):
        found = from_summary(self.pods, self.summary, node_of(self.summary))
        assert len(found.pods) == len(self.pods) == 12
        assert all(entry.stats is not None for entry in found.pods)
        assert sorted(found.stats) == sorted(observe(self.summary).pods)

    @pytest.mark.parametrize("known", [12, 5, 0])
    def test_both_signals_of_memory_are_what_the_kubelet_observes_even_if_pods_may_not_be_read(self, known):
        now = self.summary.node.memory.time  # as if all was measured at once
        summary = replace(self.summary, pods=tuple(_measured_at(now, stats) for stats in self.summary.pods))
        observed = observe(summary).signals
        node = node_of(summary)
        assert node.pods_limit_bytes == observed[Signal.ALLOCATABLE_MEMORY].capacity == 24201383936
        found = from_summary(self.pods[:known], summary, node)
        signals = (Signal.MEMORY, Signal.ALLOCATABLE_MEMORY)
        assert memory_signals(found, node.pods_limit_bytes, LATEST) == {
            name: observed[name].available for name in signals
        }

    def test_the_nodes_memory_is_what_the_kubelet_takes_for_capacity(self):
        assert node_of(self.summary).memory_bytes == observe(self.summary).signals[Signal.MEMORY].capacity

    def test_containers_have_the_working_set_the_kubelet_states(self):
        found = from_summary(self.pods, self.summary, node_of(self.summary))
        measured = {
            (entry.pod.key, usage.name): usage.working_set_bytes
            for entry in found.pods
            for usage in entry.containers
            if usage.is_measured
        }
        stated = {
            (f"{stats.pod_ref.namespace}/{stats.pod_ref.name}", container.name): container.memory.working_set_bytes
            for stats in self.summary.pods
            for container in stats.containers or ()
        }
        assert measured
        assert measured.items() <= stated.items()

    def test_both_orders_hold_all_pods(self):
        found = orders(from_summary(self.pods, self.summary, node_of(self.summary)))
        assert sorted(evicted(found)) == sorted(pod.metadata.name for pod in self.pods)


def summary(memory: MemoryStats | None, swap: SwapStats | None = None, uid: str = "a") -> Summary:
    """Make a summary of one pod."""
    container = ContainerStats("main", memory, swap=swap)
    return Summary(NodeStats("n"), (PodStats(PodReference("a", "default", uid), (container,), memory),))


def test_page_cache_is_told_from_private_memory():
    memory = MemoryStats(usage_bytes=100, working_set_bytes=70, rss_bytes=40)
    found = from_summary([pod("a")], summary(memory, SwapStats(None, 9)), NodeUsage(1000))
    (usage,) = found.pods[0].containers
    assert (usage.anon_bytes, usage.active_file_bytes, usage.inactive_file_bytes, usage.swap_bytes) == (40, 30, 30, 9)


def test_a_container_without_memory_figures_is_unknown_not_empty():
    found = from_summary([pod("a")], summary(None), NodeUsage(1000))
    assert not found.pods[0].containers[0].is_measured


def test_a_pod_is_found_by_name_where_its_uid_is_another():
    """The mirror of a static pod has one uid in the API and another on the node."""
    found = from_summary([pod("a")], summary(MemoryStats(working_set_bytes=5), uid="hash"), NodeUsage(1000))
    assert found.pods[0].containers[0].working_set_bytes == 5
    assert list(found.stats) == ["a"]


def test_a_node_without_memory_figures_is_none():
    assert node_of(summary(None)) is None


def test_memory_outside_pods_is_the_rest():
    node = NodeStats("n", memory=MemoryStats(available_bytes=50, working_set_bytes=50))
    whole = Summary(node, (PodStats(memory=MemoryStats(working_set_bytes=30)),))
    assert node_of(whole).system_bytes == 20
