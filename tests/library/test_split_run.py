"""A fleet in shards: journal, summary and report are those of one process, or it is said why it is not split."""

from __future__ import annotations

import gc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from admission.pods import container
from eviction.nodes import pod, pod_of
from podqos.agent.journal import Kind, encode
from podqos.library.simulation import simulate
from podqos.library.split_run import _run, split_run
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.time_units import SECOND_US
from podqos.reading.spilled_journal import SpilledJournal
from podqos.sim.node.node import SimNode
from podqos.sim.node.recording import Recorder
from podqos.sim.run import simulate as run_to_the_end
from podqos.sim.scenario.happenings import NodeAdded, NodeLost
from podqos.sim.scenario.scenario import NodeGroup, Scenario
from podqos.sim.shards import ShardRun, Together, TogetherReason, shard, together
from podqos.sim.summary import run_summary
from sim.test_properties import scenarios
from sim.test_properties import workloads as any_workloads
from sim.worlds import GI, MI, node, ramp, scenario, using, workload


def fleet(*workloads, count=6, seconds=120, **fields):
    config = KubeletConfiguration(eviction_hard={"memory.available": "100Mi"})
    group = NodeGroup(node(config=config), count, phase_step_us=SECOND_US)
    return scenario(*workloads, seconds=seconds, nodes=(group,), **fields)


def spread(made, demand, **fields):
    return workload(
        made, demand, **{"nodes": (), "spread": True, "kind": "Deployment", "replicas": 12, "recreate": True, **fields}
    )


LEAK = spread(pod("leak", limits="memory=100Mi"), using(ramp(0, 300 * MI, 60)))
FLOOD = spread(pod("flood"), using(ramp(0, 3 * GI, 90)), replicas=6)


@st.composite
def fleets(draw: st.DrawFn) -> Scenario:
    """Return a scenario of two groups of nodes, whose pods are bound; some stay on their nodes when replaced."""
    made = draw(scenarios())
    (first, *_) = made.nodes
    other = replace(first.spec, name="other", loop_phase_us=3 * SECOND_US)
    groups = (replace(first, count=draw(st.integers(1, 4))), NodeGroup(other, draw(st.integers(1, 3)), SECOND_US))
    names = replace(made, nodes=groups).node_names

    def bound(index: int):
        each = draw(any_workloads(index, len(names)))
        some = tuple(draw(st.lists(st.sampled_from(names), max_size=4)))
        node_name = draw(st.sampled_from(["", names[0]]))
        spec = replace(each.pod.spec, node_name=node_name)
        recreate = draw(st.sampled_from([False, False, True]))
        return replace(
            each,
            pod=replace(each.pod, spec=spec),
            nodes=some,
            spread=not some,
            replicas=draw(st.integers(1, 9)),
            recreate=recreate,
        )

    lost = draw(st.sampled_from([(), (names[-1],)]))
    happenings = [NodeLost(at_us=5 * SECOND_US, node=name) for name in lost]
    happenings += [NodeAdded(at_us=20 * SECOND_US, node=name) for name in lost]
    workloads = tuple(bound(index) for index in range(draw(st.integers(1, 4))))
    return replace(made, nodes=groups, workloads=workloads, happenings=tuple(happenings))


def holds(made: Scenario) -> None:
    """Compare a run in shards with one of the whole fleet."""
    names = made.node_names
    recorder = Recorder(only=names)
    whole = run_to_the_end(made, recorder=recorder)
    leaves = any(entry.kind is Kind.REPLACED and not entry.node for entry in whole.entries)
    split = split_run(made, names, check=False, engine="processes", jobs=1, progress=None)
    assert isinstance(split, Together) == leaves, "it is split unless a replacement could go anywhere"
    if not isinstance(split, Together):
        run, records = split
        assert encode(run.entries) == encode(whole.entries)
        assert run_summary(run) == run_summary(whole)
        assert run.tallies.kinds == whole.tallies.kinds
        assert records == recorder.nodes, "pictures are the same"


@settings(max_examples=8)
@given(fleets())
def test_shards_have_the_journal_summary_and_report_of_the_whole_fleet(made):
    holds(made)


@pytest.mark.slow
@settings(max_examples=20)
@given(fleets())
def test_shards_have_the_journal_summary_and_report_of_many_fleets(made):
    holds(made)


OTHERS = {
    "before its first look": (NodeLost(5 * SECOND_US, "other"), NodeAdded(20 * SECOND_US, "other")),
    "between joining and its first look": (
        NodeLost(6 * SECOND_US, "n"),
        NodeAdded(20 * SECOND_US, "n"),
        NodeLost(22 * SECOND_US, "other"),
    ),
    "where its first look is after the end": (
        NodeLost(6 * SECOND_US, "n"),
        NodeAdded(86 * SECOND_US, "n"),
        NodeLost(88 * SECOND_US, "other"),
    ),
}


@pytest.mark.parametrize("happenings", OTHERS.values(), ids=OTHERS)
def test_what_happens_to_other_nodes_leaves_the_looks_of_a_node_as_they_are(happenings):
    """Nothing happens at the start: the first event of a node is its first look, or concerns another node."""
    two = pod_of("two", container("one"), container("other"))
    late = spread(two, {"one": using(MI), "other": using(MI)}, replicas=2, recreate=False, arrives_us=7 * SECOND_US)
    groups = tuple(
        NodeGroup(node(name, loop_phase_us=phase * SECOND_US)) for name, phase in (("n", 5), ("other", 3), ("third", 4))
    )
    holds(scenario(late, seconds=90, nodes=groups, happenings=happenings))


def test_any_choice_of_nodes_has_their_part_of_the_journal():
    made = fleet(LEAK, replace(FLOOD, recreate=False))
    chosen = {"n-1", "n-2", "n-5"}
    apart = run_to_the_end(shard(made, chosen)).entries
    assert encode(apart) == encode(entry for entry in run_to_the_end(made).entries if entry.node in chosen)
    assert {entry.node for entry in apart} == chosen


def test_processes_have_the_same_journal_and_report():
    made = fleet(LEAK, replace(FLOOD, recreate=False), seconds=60)
    shown = ["n-1", "n-4"]
    whole, split = simulate(made, nodes=shown), simulate(made, nodes=shown, engine="processes", jobs=2)
    assert (encode(split.journal), split.report) == (encode(whole.journal), whole.report)
    assert split.together is None
    assert split.summary.evictions > 0 < split.summary.oom_kills


TOGETHER = {
    "scheduled": (fleet(LEAK, replace(LEAK, spread=False)), Together(TogetherReason.SCHEDULED, "default/leak")),
    "a DaemonSet": (fleet(replace(LEAK, kind="DaemonSet")), Together(TogetherReason.DAEMON_SET, "default/leak")),
    "one node": (fleet(LEAK, count=1), Together(TogetherReason.ONE_NODE)),
}


@pytest.mark.parametrize(("made", "why"), TOGETHER.values(), ids=TOGETHER)
def test_a_fleet_that_cannot_be_split_runs_in_one_process_and_says_why(made, why):
    assert together(made) == why
    run = simulate(made, engine="processes", jobs=2)
    assert (run.together, encode(run.journal)) == (why, encode(simulate(made).journal))


def test_a_pod_that_is_replaced_somewhere_ends_the_split():
    run = simulate(fleet(LEAK, FLOOD), engine="processes", jobs=2)
    first = next(entry for entry in run.journal if entry.kind is Kind.REPLACED)
    assert run.together is not None
    assert run.together.because is TogetherReason.REPLACED
    assert run.together.time_us >= first.time_us


def test_a_template_that_names_its_node_is_replaced_there_without_the_scheduler():
    """With ``nodeName`` in the template every pod has a node when it is made: no scheduler sees it."""
    pinned = replace(FLOOD.pod, spec=replace(FLOOD.pod.spec, node_name="n-0"))
    slow = using(ramp(0, 3 * GI, 600))
    made = fleet(spread(pinned, slow, nodes=("n-0",), spread=False, replicas=1), seconds=300)
    run = simulate(made, engine="processes", jobs=1)
    replaced = [entry for entry in run.journal if entry.kind is Kind.REPLACED]
    assert run.together is None
    assert {entry.node for entry in replaced} == {"n-0"}
    again = {entry.pod for entry in run.journal if entry.kind in {Kind.STARTED, Kind.REJECTED}}
    assert {entry.pod for entry in replaced} <= again
    assert not any(entry.kind in {Kind.PLACED, Kind.PENDING} for entry in run.journal)


def test_a_spilled_journal_reads_like_a_list_however_large_its_parts_are(monkeypatch):
    monkeypatch.setattr("podqos.reading.spilled_journal._READ_BYTES", 100)
    made = fleet(LEAK, seconds=100)
    whole = list(run_to_the_end(made).entries)
    journal = SpilledJournal()
    for name in reversed(made.node_names):
        own = [entry for entry in whole if entry.node == name]
        journal.add(encode(own), len(own))
    assert list(journal) == list(journal) == whole
    assert (len(journal), journal[-1], journal[3:5], journal[0]) == (len(whole), whole[-1], whole[3:5], whole[0])


def test_a_shard_that_is_done_leaves_no_node_in_memory():
    def nodes() -> int:
        return sum(isinstance(each, SimNode) for each in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = nodes()
        assert isinstance(_run(fleet(LEAK), (), False, (0, 3)), ShardRun)
        assert nodes() == before
    finally:
        gc.enable()
