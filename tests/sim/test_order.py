"""The order of documents changes who came first among equals, and nothing else."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from admission.pods import container
from eviction.nodes import pod, pod_of
from podqos.agent.journal import encode
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import EmptyDir, Volume
from podqos.model.time_units import SECOND_US
from podqos.reading.scenario_files import load_scenario
from podqos.sim.engine.curve import Clock, Curve
from podqos.sim.run import simulate
from podqos.sim.scenario.scenario import (
    Filesystem,
    NodeGroup,
    NodeLost,
    Options,
    Scenario,
    ScenarioWorkload,
    VolumeDemand,
)
from sim.worlds import MI, lines, node, run, scenario, using, workload


def curves(draw: st.DrawFn, most: int, own: int) -> Curve:
    """Return a curve of up to three knots whose values no other workload has, so that there are no ties."""
    knots = draw(st.lists(st.tuples(st.integers(0, 60), st.integers(0, most)), min_size=1, max_size=3))
    ordered = sorted(knots, key=lambda knot: knot[0])
    return Curve(
        tuple((at * SECOND_US + own, value + own) for at, value in ordered), clock=draw(st.sampled_from(Clock))
    )


@st.composite
def workloads(draw: st.DrawFn, index: int, nodes: int) -> ScenarioWorkload:
    """Return a workload with a priority of its own."""
    own = (index + 1) * 123_457
    names = ["one", "two"][: draw(st.integers(1, 2))]
    limits = draw(st.sampled_from(["", "memory=150Mi", "memory=300Mi,cpu=1"]))
    requests = draw(st.sampled_from(["", "memory=20Mi", "memory=50Mi,cpu=100m"]))
    made = pod_of(
        f"w{index}",
        *(container(name, requests=requests, limits=limits) for name in names),
        priority=index,
        restart_policy=draw(st.sampled_from(["Always", "Never"])),
        volumes=(Volume("v", empty_dir=EmptyDir(medium=draw(st.sampled_from(["", "Memory"])))),),
    )
    demands = {
        name: using(
            curves(draw, 300 * MI, own + turn),
            active_file_bytes=curves(draw, 100 * MI, own + turn) if draw(st.booleans()) else 0,
            cpu_milli=curves(draw, 3000, index),
            processes=draw(st.integers(1, 3)),
            exits_after_us=draw(st.sampled_from([None, None, 20 * SECOND_US + own])),
            volumes={"v": VolumeDemand(curves(draw, 100 * MI, own + turn))} if draw(st.booleans()) else {},
        )
        for turn, name in enumerate(names)
    }
    where = draw(st.sampled_from(["bound", "bound", "scheduled"]))
    arrives = draw(st.sampled_from([0, 0, 7]))
    return workload(
        made,
        demands,
        nodes=(f"n-{draw(st.integers(0, nodes - 1))}",) if where == "bound" else (),
        arrives_us=arrives * SECOND_US,
        deleted_us=draw(st.sampled_from([None, 7 * SECOND_US, 40 * SECOND_US])),
        kind="Deployment",
        recreate=draw(st.booleans()),
    )


@st.composite
def shuffled(draw: st.DrawFn) -> tuple[Scenario, Scenario]:
    """Return a scenario, and the same with its workloads in another order."""
    count = draw(st.integers(2, 3))
    config = KubeletConfiguration(
        eviction_hard=draw(st.sampled_from([{}, {"memory.available": "100Mi"}, {"nodefs.available": "20%"}])),
        enforce_node_allocatable=draw(st.sampled_from([(), ("pods",)])),
    )
    spec = node(
        config=config,
        cgroup_version=draw(st.sampled_from([1, 2])),
        nodefs=Filesystem(1000 * MI, 10_000),
        statistics_age_us=draw(st.sampled_from([0, 4 * SECOND_US])),
    )
    given = [draw(workloads(index, count)) for index in range(draw(st.integers(2, 4)))]
    made = scenario(
        *given,
        seconds=90,
        nodes=(NodeGroup(spec, count, phase_step_us=SECOND_US),),
        happenings=(NodeLost(33 * SECOND_US, "n-1"),) if draw(st.booleans()) else (),
        options=Options(container_stop_us=draw(st.sampled_from([0, 3 * SECOND_US]))),
    )
    return made, replace(made, workloads=tuple(draw(st.permutations(given))))


def told(made: Scenario) -> Counter[str]:
    """Return the journal without the order of what happens at the same time."""
    return Counter(map(str, simulate(made).entries))


@settings(max_examples=60)
@given(shuffled())
def test_the_order_of_workloads_changes_nothing_where_no_two_are_equal(both):
    one, other = both
    assert told(one) == told(other)


def test_of_pods_that_arrive_together_the_first_in_the_file_comes_first():
    """Only one of two fits: on the node they are bound to, or on the only one there is."""
    for where in (("n",), ()):
        both = [workload(pod(name, "memory=600Mi"), using(MI), nodes=where) for name in "ab"]
        for order in (both, both[::-1]):
            (started,) = lines(run(*order), "Admitted")
            assert started[2] == f"default/{order[0].name}"


def test_of_pods_that_arrive_together_the_one_of_higher_priority_is_placed_first():
    low = workload(pod("low", "memory=600Mi", priority=0), using(MI), nodes=())
    high = workload(pod("high", "memory=600Mi", priority=1), using(MI), nodes=())
    for order in ((low, high), (high, low)):
        assert lines(run(*order), "Placed") == [(0.0, "Placed", "default/high")]


DOCUMENTS = tuple(
    f"""\
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  priorityClassName: {name}
  nodeName: worker
  containers:
    - {{name: main, image: app, resources: {{limits: {{memory: {limit}}}, requests: {{memory: 10Mi}}}}}}
---
{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: {name}}}, value: {value}}}
"""
    for name, limit, value in (("a", "200Mi", 1), ("b", "600Mi", 2), ("c", "900Mi", 3))
)
DEMANDS = (
    "- {workload: a, demand: {memory: 10Mi per second, cpu: 500m}, deleted: 40s}",
    "- {workload: b, demand: {memory: {random: {low: 100Mi, high: 500Mi, every: 5s}}}}",
    "- {workload: c, demand: {memory: 700Mi over 20s}, arrives: 5s}",
)
FILE = """\
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: order}
spec:
  duration: 60s
  manifests: [pods.yaml]
  nodes: [{name: worker, capacity: {cpu: 4, memory: 1000Mi}, kubelet: {evictionHard: {memory.available: 100Mi}}}]
  workloads:
"""


def test_the_order_of_documents_changes_nothing_and_that_of_demands_not_a_byte(tmp_path):
    """Random demands do not depend on it either: they follow the seed and the name."""
    path = tmp_path / "scenario.yaml"
    journals = set()
    for documents in permutations(DOCUMENTS):
        (tmp_path / "pods.yaml").write_text("---\n".join(documents))
        written = set()
        for demands in (DEMANDS, DEMANDS[::-1]):
            path.write_text(FILE + "".join(f"    {demand}\n" for demand in demands))
            written.add(encode(simulate(load_scenario(str(path))).entries))
        (journal,) = written
        journals.add(frozenset(Counter(journal.splitlines()).items()))
    assert len(journals) == 1
    assert b"OOMKilled" in journal
    assert b"Evicted" in journal
