"""Random small scenarios: the invariants hold after every event, and the journal is one."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admission.pods import container
from eviction.nodes import pod_of, volume
from podqos.agent.journal import Entry, Kind, decode, encode
from podqos.kernel.memory import Watermarks
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import EmptyDir
from podqos.model.quantity import Quantity
from podqos.model.time_units import SECOND_US
from podqos.sim.engine.curve import Clock, Curve
from podqos.sim.record import Recorder
from podqos.sim.run import simulate
from podqos.sim.scenario.scenario import (
    ContainerDemand,
    Filesystem,
    MachineSpec,
    NodeGroup,
    NodeLost,
    Options,
    Scenario,
    ScenarioWorkload,
    SystemDemand,
    VolumeDemand,
)

MI = 1 << 20
_MOST_STOPPING_US = 60 * SECOND_US
"""Longer than a pod of the tests may take to stop."""


def check_journal(entries: list[Entry]) -> None:
    """Hold what must be true of a whole journal: time never goes back, nobody is killed twice, who is evicted ends."""
    last_us = 0
    alive: dict[tuple[str, str | None], bool] = {}
    evicted: dict[str, int] = {}
    for entry in entries:
        assert entry.time_us >= last_us, f"time goes back at {entry}"
        last_us = entry.time_us
        if entry.pod is None:
            continue
        if entry.kind is Kind.OOM_KILLED and entry.because is not None:
            key = entry.pod, entry.container
            if getattr(entry.because, "as_group", False):
                assert alive.get(key, True), f"killed twice: {entry}"
                alive[key] = False
        elif entry.kind is Kind.RESTARTED:
            alive[entry.pod, entry.container] = True
        elif entry.kind is Kind.EVICTED:
            assert entry.pod not in evicted, f"evicted twice: {entry}"
            evicted[entry.pod] = entry.time_us
        elif entry.kind is Kind.STOPPED:
            evicted.pop(entry.pod, None)
    is_lost = any(entry.kind is Kind.LOST for entry in entries)
    late = [pod for pod, time_us in evicted.items() if last_us - time_us > _MOST_STOPPING_US and not is_lost]
    assert not late, f"evicted and never stopped: {late}"


@cache
def curves(most: int) -> st.SearchStrategy[Curve]:
    """Return curves of up to five knots within a minute; steps, ramps, periodic ones."""
    knots = st.lists(st.tuples(st.integers(0, 60 * SECOND_US), st.integers(0, most)), min_size=1, max_size=5).map(
        lambda made: tuple(sorted(made, key=lambda knot: knot[0]))
    )
    return st.builds(
        Curve,
        knots,
        st.sampled_from([None, None, 61 * SECOND_US]),
        st.sampled_from(Clock),
    )


AMOUNTS = st.one_of(st.just(Curve(((0, 0),))), curves(400 * MI))

demands = st.builds(
    ContainerDemand,
    anon_bytes=curves(400 * MI),
    active_file_bytes=AMOUNTS,
    inactive_file_bytes=AMOUNTS,
    processes=st.integers(1, 4).map(lambda count: Curve(((0, count),))),
    pids=st.one_of(st.none(), curves(300)),
    cpu_milli=st.one_of(st.just(Curve(((0, 0),))), curves(4000)),
    logs_bytes=AMOUNTS,
    rootfs_bytes=AMOUNTS,
    volumes=st.dictionaries(st.just("v"), st.builds(VolumeDemand, AMOUNTS)),
    exits_after_us=st.one_of(st.none(), st.none(), st.integers(0, 30 * SECOND_US)),
    exit_code=st.integers(0, 1),
)

RESOURCES = ["", "memory=50Mi", "memory=100Mi,cpu=100m", "memory=300Mi"]


@st.composite
def workloads(draw: st.DrawFn, index: int, nodes: int) -> ScenarioWorkload:
    """Return a workload of up to three replicas."""
    requests = draw(st.sampled_from(RESOURCES))
    limits = draw(st.sampled_from(["", "memory=150Mi", "memory=300Mi,cpu=1"]))
    names = ["one", "two"][: draw(st.integers(1, 2))]
    made = pod_of(
        f"w{index}",
        *(container(name, requests=requests, limits=limits) for name in names),
        priority=draw(st.sampled_from([0, 0, 10])),
        restart_policy=draw(st.sampled_from(["Always", "OnFailure", "Never"])),
        init_containers=(container("init", limits=limits),) if draw(st.booleans()) else (),
        volumes=(
            volume(
                "v",
                empty_dir=EmptyDir(
                    draw(st.sampled_from(["", "Memory"])), draw(st.sampled_from([None, Quantity.parse("100Mi")]))
                ),
            ),
        ),
    )
    names += [each.name for each in made.spec.init_containers]
    placing = draw(st.sampled_from(["spread", "bound", "scheduled"]))
    return ScenarioWorkload(
        kind="Deployment",
        namespace="default",
        name=f"w{index}",
        pod=made,
        replicas=draw(st.integers(1, 3)),
        demands=tuple({name: draw(demands) for name in names} for _ in range(draw(st.integers(1, 2)))),
        arrives_us=draw(st.sampled_from([0, 0, 7 * SECOND_US])),
        deleted_us=draw(st.sampled_from([None, None, 40 * SECOND_US])),
        nodes=("n-0",) if placing == "bound" and nodes > 1 else (),
        spread=placing == "spread",
        recreate=draw(st.booleans()),
    )


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Return a scenario of one to three small nodes."""
    count = draw(st.integers(1, 3))
    hard = draw(
        st.sampled_from(
            [
                {},
                {"memory.available": "100Mi"},
                {"memory.available": "10%", "nodefs.available": "10%", "pid.available": "50"},
            ]
        )
    )
    spec = MachineSpec(
        name="n",
        memory_bytes=1000 * MI,
        cpu_milli=draw(st.sampled_from([1500, 4000])),
        swap_bytes=draw(st.sampled_from([0, 0, 200 * MI])),
        max_pids=500,
        cgroup_version=draw(st.sampled_from([1, 2])),
        watermarks=draw(st.sampled_from([None, Watermarks(0, 0, 0), Watermarks(20 * MI, 30 * MI, 40 * MI)])),
        nodefs=Filesystem(1000 * MI, 10_000),
        unused_image_bytes=draw(st.sampled_from([0, 100 * MI])),
        system=SystemDemand(anon_bytes=Curve(((0, draw(st.sampled_from([0, 100 * MI]))),))),
        config=KubeletConfiguration(
            eviction_hard=hard,
            kernel_memcg_notification=draw(st.booleans()),
            enforce_node_allocatable=draw(st.sampled_from([(), ("pods",)])),
            system_reserved=draw(st.sampled_from([{}, {"memory": "100Mi"}])),
            pod_pids_limit=draw(st.sampled_from([-1, 100])),
            fail_swap_on=False,
            cgroups_per_qos=draw(st.sampled_from([True, True, True, False])),
            qos_reserved={"memory": draw(st.sampled_from(["0%", "60%", "100%"]))},
            feature_gates={"QOSReserved": draw(st.booleans())},
        ),
        loop_phase_us=draw(st.integers(0, 9)) * SECOND_US,
        statistics_age_us=draw(st.sampled_from([0, 0, 4 * SECOND_US])),
        fast_path=draw(st.booleans()),
    )
    lost = draw(st.booleans()) and count > 1
    return Scenario(
        name="random",
        duration_us=90 * SECOND_US,
        nodes=(NodeGroup(spec, count, phase_step_us=SECOND_US),),
        workloads=tuple(draw(workloads(index, count)) for index in range(draw(st.integers(1, 4)))),
        happenings=(NodeLost(at_us=33 * SECOND_US, node="n-1"),) if lost else (),
        options=Options(
            container_start_us=draw(st.sampled_from([0, SECOND_US // 2])),
            container_stop_us=draw(st.sampled_from([0, 3 * SECOND_US])),
            clean_up_us=draw(st.sampled_from([0, 2 * SECOND_US])),
        ),
    )


@settings(max_examples=15)
@given(scenarios())
def test_the_invariants_hold_after_every_event(scenario):
    done = simulate(scenario, check=True)
    check_journal(done.entries)
    assert list(decode(encode(done.entries))) == done.entries


@pytest.mark.slow
@given(scenarios())
def test_the_invariants_hold_after_every_event_of_many_scenarios(scenario):
    done = simulate(scenario, check=True)
    check_journal(done.entries)
    assert simulate(scenario).entries == done.entries, "nodes that may rest change nothing"


@settings(max_examples=20)
@given(scenarios())
def test_watching_changes_nothing(scenario):
    assert simulate(scenario, recorder=Recorder(most_moments=50)).entries == simulate(scenario).entries
