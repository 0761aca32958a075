"""Every row of a blast is what a simulation from scratch gives, in which every pass of the kubelet is run."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from admission.pods import container
from eviction.nodes import pod_of
from podqos.agent.journal import Kind
from podqos.agent.reasons import cause_of
from podqos.kernel.memory import Watermarks
from podqos.model.kubelet_config import KubeletConfiguration, MemorySwapConfiguration
from podqos.model.pod import EmptyDir, Pod, Volume
from podqos.model.resources import MEMORY
from podqos.model.time_units import SECOND_US
from podqos.sim.blast import Blast, BlastNode, ImpossibleUsage, Leak, horizon_us, leaks, nodes_now
from podqos.sim.cluster.cluster import SimCluster
from podqos.sim.engine.curve import Curve, constant
from podqos.sim.engine.event_queue import EventQueue
from podqos.sim.node.node import SimNode
from podqos.sim.scenario.scenario import (
    ContainerDemand,
    Filesystem,
    MachineSpec,
    NodeGroup,
    Scenario,
    ScenarioWorkload,
    SystemDemand,
    VolumeDemand,
)

MI = 1 << 20
SLOW, FAST = 8 * MI, 256 * MI
TMPFS = Volume(name="fast", empty_dir=EmptyDir(medium="Memory"))

Row = list[tuple[float, str, str | None, str]]
"""After how many seconds, which pod and container, killed or evicted: until the leaking container ends."""


@st.composite
def pods(draw: st.DrawFn, index: int) -> Pod:
    """Return a pod of one or two containers, one of them perhaps a sidecar."""
    requests = draw(st.sampled_from(["", "memory=50Mi", "memory=400Mi", "memory=400Mi"]))
    limits = draw(st.sampled_from(["", "", "memory=400Mi", "memory=450Mi"]))
    names = ["one", "two"][: draw(st.integers(1, 2))]
    made = [container(name, requests=requests, limits=limits) for name in names]
    sidecar = [replace(each, restart_policy="Always") for each in made[1:]] if draw(st.booleans()) else []
    return pod_of(
        f"p{index}",
        *made[: len(made) - len(sidecar)],
        init_containers=tuple(sidecar),
        volumes=(TMPFS,),
        resources=draw(st.sampled_from([None, None, container("", limits="memory=500Mi").resources])),
        priority=draw(st.sampled_from([0, 0, 10, 2_000_000_000])),
        restart_policy=draw(st.sampled_from(["Always", "Always", "Never"])),
    )


@st.composite
def curves(draw: st.DrawFn, most: int) -> Curve:
    """Return what is held at the start, and grows later or does not: the leak's node stands still."""
    held = draw(st.integers(1, most))
    return constant(held) if draw(st.booleans()) else Curve(((0, held), (30 * SECOND_US, held + 100 * MI)))


@st.composite
def demands(draw: st.DrawFn, limit: int | None, *, plain: bool) -> ContainerDemand:
    """Return what a container wants: up to its limit, and often close to it; if plain, without page cache."""
    most = 500 * MI if limit is None else draw(st.sampled_from([limit // 4, limit - 40 * MI]))
    volume = st.sampled_from([constant(0), constant(0), constant(most // 8)])
    cache = st.just(constant(0)) if plain else volume
    return ContainerDemand(
        anon_bytes=draw(curves(most)),
        active_file_bytes=draw(cache),
        inactive_file_bytes=draw(cache),
        processes=constant(draw(st.sampled_from([1, 1, 3]))),
        volumes={"fast": VolumeDemand(draw(volume))},
    )


@st.composite
def workloads(draw: st.DrawFn, index: int, *, plain: bool) -> ScenarioWorkload:
    """Return a pod with its demand."""
    made = draw(pods(index))
    wanted = {}
    for each in made.running_containers:
        limit = each.resources.limits.get(MEMORY)
        wanted[each.name] = draw(demands(None if limit is None else limit.value, plain=plain))
    return ScenarioWorkload(
        kind="Pod", namespace="default", name=made.metadata.name, pod=made, demands=(wanted,), nodes=("n",)
    )


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Return a node with little left, or already short of memory; if plain, one whose kubelet only looks at times."""
    plain = draw(st.booleans())
    made = tuple(draw(workloads(index, plain=plain)) for index in range(draw(st.integers(3, 6))))
    held = sum(
        each.anon_bytes.at(0) + each.active_file_bytes.at(0) + each.volumes["fast"].used_bytes.at(0)
        for workload in made
        for each in workload.demands[0].values()
    )
    config = KubeletConfiguration(
        eviction_hard=draw(st.sampled_from([{}, {"memory.available": "100Mi"}, {"memory.available": "10%"}])),
        eviction_soft=draw(st.sampled_from([{}, {}, {"memory.available": "200Mi"}])),
        eviction_soft_grace_period={"memory.available": "15s"},
        eviction_minimum_reclaim=draw(st.sampled_from([{}, {"memory.available": "50Mi"}])),
        eviction_pressure_transition_period=draw(st.sampled_from(["5m0s", "25s", "0s"])),
        system_reserved=draw(st.sampled_from([{}, {"memory": "100Mi"}])),
        memory_swap=MemorySwapConfiguration("LimitedSwap"),
        fail_swap_on=False,
        kernel_memcg_notification=not plain and draw(st.booleans()),
    )
    if not config.eviction_soft:
        config = replace(config, eviction_soft_grace_period={})
    spec = MachineSpec(
        name="n",
        memory_bytes=held + (draw(st.integers(80, 500)) + 100 * bool(config.system_reserved)) * MI,
        cpu_milli=4000,
        swap_bytes=0 if plain else draw(st.sampled_from([0, 0, 200 * MI])),
        nodefs=Filesystem(1 << 40, 1_000_000),
        cgroup_version=draw(st.sampled_from([1, 2])),
        watermarks=draw(st.sampled_from([Watermarks(0, 0, 0), Watermarks(20 * MI, 25 * MI, 30 * MI)])),
        system=SystemDemand(
            anon_bytes=constant(50 * MI),
            inactive_file_bytes=constant(0 if plain else draw(st.sampled_from([0, 30])) * MI),
        ),
        statistics_age_us=0 if plain else draw(st.sampled_from([0, 0, 3 * SECOND_US])),
        fast_path=not plain and draw(st.booleans()),
        config=config,
    )
    return Scenario(name="drawn", duration_us=60 * SECOND_US, nodes=(NodeGroup(spec),), workloads=made)


def simulated(node: BlastNode, leak: Leak) -> Row:
    """Simulate the node from scratch, with a container that leaks as soon as the others have come to rest."""
    lasts_us, begins_us = horizon_us(node.scenario.nodes[0].spec, leak.bytes_per_second), node.begins_us
    growth = leak.bytes_per_second * lasts_us // SECOND_US
    made = []
    for workload in node.scenario.workloads:
        demands = dict(workload.demands[0])
        if workload.pod.key == leak.pod:
            held = demands[leak.container].anon_bytes.at(0)
            knots = ((0, held), (begins_us, held), (begins_us + lasts_us, held + growth))
            demands[leak.container] = replace(demands[leak.container], anon_bytes=Curve(knots))
        made.append(replace(workload, demands=(demands,)))
    queue = EventQueue(begins_us + lasts_us)
    cluster = SimCluster(replace(node.scenario, workloads=tuple(made)), queue)
    row: Row = []
    with patch.object(SimNode, "_may_skip", lambda _: False):
        while queue.next is not None:
            read = len(cluster.entries)
            queue.step()
            for entry in cluster.entries[read:]:
                is_leaker = entry.pod == leak.pod and entry.container in {None, leak.container}
                is_counted = entry.pod != leak.pod or is_leaker
                if entry.kind in {Kind.OOM_KILLED, Kind.EVICTED} and is_counted and entry.time_us >= begins_us:
                    after = (entry.time_us - begins_us) / SECOND_US
                    row.append((after, entry.pod, entry.container, cause_of(entry.because)))
                    if is_leaker:
                        return row
    return row


def row_of(blast: Blast) -> Row:
    """Return the same of a blast."""
    deaths = blast.others if blast.end is None else (*blast.others, blast.end)
    return [(death.after_seconds, death.pod, death.container, death.cause) for death in deaths]


def check(scenario: Scenario) -> None:
    """Let every pod leak, twice, and hold every row against the simulation."""
    try:
        (given,) = nodes_now(scenario)
        node = BlastNode(given, slowest=SLOW)
    except ImpossibleUsage:
        reject()
    every = [leak for rate in (SLOW, FAST) for leak in leaks(node.pods, rate)]
    found = [node.unleash(leak) for leak in every]
    assert [node.unleash(leak) for leak in reversed(every)] == found[::-1], "a leak leaves no trace"
    for leak, blast in zip(every, found, strict=True):
        assert row_of(blast) == simulated(node, leak), leak


@settings(max_examples=12)
@given(scenarios())
def test_every_row_is_what_a_simulation_from_scratch_gives(scenario):
    check(scenario)


@pytest.mark.slow
@given(scenarios())
def test_every_row_is_what_a_simulation_from_scratch_gives_on_many_nodes(scenario):
    check(scenario)
