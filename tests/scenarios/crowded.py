"""Random small nodes on which too many pods want too much, so that some are killed or evicted."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from admission.pods import container
from eviction.nodes import pod_of, volume
from podqos.eviction.ranking import Policy
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import EmptyDir
from podqos.model.quantity import Quantity
from podqos.sim.engine.curve import Clock, Curve
from podqos.sim.scenario.scenario import Filesystem, Options, Scenario, ScenarioWorkload, VolumeDemand
from sim.worlds import MI, SECOND_US, node, scenario, using

LEAST_LEFT = (
    {},
    {"memory.available": "100Mi"},
    {"memory.available": "20%"},
    {"nodefs.available": "10%", "nodefs.inodesFree": "10%"},
    {"pid.available": "20%"},
)
CONSTANT = Curve(((0, 0),))


@cache
def amounts(unit: int) -> st.SearchStrategy[Curve]:
    """Return an amount that stays, steps or climbs, by some time within half a minute."""
    sizes = st.sampled_from([10, 50, 100, 200, 300, 500]).map(lambda count: count * unit)
    times = st.sampled_from([1, 5, 12, 30]).map(lambda seconds: seconds * SECOND_US)
    clocks = st.sampled_from(Clock)
    return st.one_of(
        sizes.map(lambda size: Curve(((0, size),))),
        st.builds(lambda a, b, at, clock: Curve(((0, a), (at, a), (at, b)), clock=clock), sizes, sizes, times, clocks),
        st.builds(lambda a, b, at, clock: Curve(((0, a), (at, b)), clock=clock), sizes, sizes, times, clocks),
    )


@st.composite
def workloads(draw: st.DrawFn, index: int) -> ScenarioWorkload:
    """Return one or two pods of one or two containers."""
    resource = draw(st.sampled_from(["memory", "ephemeral-storage"]))
    names = ["one", "two"][: draw(st.integers(1, 2))]
    containers = []
    for name in names:
        request = draw(st.sampled_from([0, 20, 60, 150]))
        limit = draw(st.sampled_from([0, 0, 200, 600]))
        cpu = draw(st.sampled_from(["", ",cpu=100m"]))
        containers.append(
            container(
                name,
                requests=f"{resource}={request}Mi{cpu}" if request else "",
                limits=f"{resource}={limit}Mi{cpu}" if limit else "",
            )
        )
    size_limit = draw(st.sampled_from([None, None, "80Mi", "250Mi"]))
    medium = draw(st.sampled_from(["", "", "Memory"]))
    directory = EmptyDir(medium, None if size_limit is None else Quantity.parse(size_limit))
    idle = st.just(CONSTANT)
    demands = tuple(
        {
            name: using(
                draw(amounts(MI)),
                active_file_bytes=draw(st.one_of(idle, amounts(MI))),
                processes=draw(st.integers(1, 3)),
                pids=draw(amounts(1)),
                rootfs_bytes=draw(st.one_of(idle, amounts(MI))),
                rootfs_inodes=draw(st.one_of(idle, amounts(1))),
                volumes={"scratch": VolumeDemand(draw(st.one_of(idle, amounts(MI))))},
            )
            for name in names
        }
        for _ in range(2)
    )
    return ScenarioWorkload(
        kind="Deployment",
        namespace="default",
        name=f"w{index}",
        pod=pod_of(
            f"w{index}",
            *containers,
            priority=draw(st.sampled_from([0, 0, 10, 2_000_000_000])),
            volumes=(volume("scratch", empty_dir=directory),),
        ),
        replicas=draw(st.integers(1, 2)),
        demands=demands,
        nodes=("n",),
        recreate=draw(st.booleans()),
    )


@st.composite
def crowded(draw: st.DrawFn) -> Scenario:
    """Return a scenario on one node."""
    spec = node(
        max_pids=600,
        nodefs=Filesystem(1500 * MI, 800),
        swap_bytes=draw(st.sampled_from([0, 0, 200 * MI])),
        cgroup_version=draw(st.sampled_from([1, 2])),
        unused_image_bytes=draw(st.sampled_from([0, 50 * MI])),
        statistics_age_us=draw(st.sampled_from([0, 4 * SECOND_US])),
        config=KubeletConfiguration(
            eviction_hard=draw(st.sampled_from(LEAST_LEFT)),
            enforce_node_allocatable=draw(st.sampled_from([(), ("pods",)])),
            system_reserved=draw(st.sampled_from([{}, {"memory": "100Mi"}])),
            fail_swap_on=False,
        ),
    )
    return scenario(
        *(draw(workloads(index)) for index in range(draw(st.integers(2, 3)))),
        spec=spec,
        policy=draw(st.sampled_from((None, None, *Policy))),
        options=Options(container_stop_us=draw(st.sampled_from([0, SECOND_US // 2]))),
    )
