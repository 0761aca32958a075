"""The order of documents changes who came first among equals, and nothing else."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from admission.pods import container
from eviction.nodes import pod, pod_of
from podqos.agent.journal import Entry
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import EmptyDir, Volume
from podqos.model.time_units import SECOND_US
from podqos.sim.engine.curve import Clock, Curve
from podqos.sim.run import simulate
from podqos.sim.scenario.demand import VolumeDemand
from podqos.sim.scenario.scenario import Filesystem, NodeGroup, NodeLost, Options, Scenario, ScenarioWorkload
from sim.worlds import MI, lines, node, run, scenario, using, workload


def curves(draw: st.DrawFn, most: int, own: int) -> Curve:
    """Return a curve of up to three knots whose values no other workload has, so that there are no ties."""
    knots = draw(st.lists(st.tuples(st.integers(0, 60), st.integers(0, most)), min_size=1, max_size=3))
    ordered = sorted(knots, key=lambda knot: knot[0])
    return Curve(tuple((at * SECOND_US + own, value + own) for at, value in ordered), clock=draw(st.sampled_from(Clock)))


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


def told(made: Scenario) -> Counter[Entry]:
    """Return the journal without the order of what happens at the same time."""
    return Counter(map(str, simulate(made).entries))


@settings(max_examples=150)
@given(shuffled())
def test_the_order_of_workloads_changes_nothing_where_no_two_are_equal(both):
    one, other = both
    assert told(one) == told(other)
