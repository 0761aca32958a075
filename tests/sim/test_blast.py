"""The blast radius: what one pod's leak does to its neighbours, against a scenario that is simulated as a whole."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from admission.pods import container
from eviction.nodes import guaranteed, pod, pod_of
from podqos.agent.journal import By
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.snapshot import ContainerUsage
from podqos.model.time_units import SECOND_US
from podqos.sim.blast import BlastNode, BlastPods, ImpossibleUsage, Leak, leaks, nodes_now
from podqos.sim.engine.curve import Clock, Curve, constant
from podqos.sim.run import simulate
from podqos.sim.scenario.scenario import ContainerDemand, Filesystem, MachineSpec, NodeGroup, Scenario, ScenarioWorkload

MI, GI = 1 << 20, 1 << 30
NODE = MachineSpec(name="n", memory_bytes=16 * GI, cpu_milli=16_000, nodefs=Filesystem(1 << 40, 1 << 30))


def _holds(pod_, memory: int, processes: int = 1):
    (container,) = pod_.spec.containers
    return pod_, (ContainerUsage(container.name, anon_bytes=memory, processes=processes),)


def _unleash(pods, name: str, rate: int):
    node = BlastPods(NODE, tuple(pods))
    (leak,) = (each for each in leaks(node, rate) if each.pod.endswith(f"/{name}"))
    return BlastNode(node, slowest=rate).unleash(leak)


def test_a_pod_with_a_limit_harms_nobody():
    """It reaches its own limit long before the node has none left."""
    found = _unleash([_holds(pod("a", "memory=1Gi", limits="memory=2Gi"), GI), _holds(pod("b"), GI)], "a", 100 * MI)
    assert (found.others, found.end.by, found.end.cause) == ((), By.KERNEL, "container")
    assert found.end.after_seconds == pytest.approx(GI / (100 * MI), rel=1e-3)


def test_a_burstable_pod_that_leaks_fast_takes_the_best_effort_ones_first():
    """A request of 15Gi of 16Gi makes its score so low that two BestEffort pods outweigh what it holds."""
    neighbours = [
        _holds(pod("small"), 100 * MI),
        _holds(pod("large"), 2 * GI),
        _holds(guaranteed("safe", "600Mi"), 500 * MI),
    ]
    found = _unleash([_holds(pod("leaker", "memory=15Gi"), GI), *neighbours], "leaker", 4 * GI)
    assert [death.pod.partition("/")[2] for death in found.others][:1] == ["large"]
    assert not any(death.pod.endswith("/safe") for death in found.others)
    assert all(death.by is By.KERNEL and death.cause == "node" for death in found.others)


def test_a_slow_leak_of_a_pod_over_its_request_ends_by_eviction_and_harms_nobody():
    """At 1 MiB/s the threshold holds the kubelet's look: the pod that uses most beyond its request goes."""
    found = _unleash([_holds(pod("leaker"), GI), _holds(pod("still", "memory=2Gi"), GI)], "leaker", MI)
    assert found.others == ()
    assert found.end.pod.endswith("/leaker")


def test_the_container_that_can_grow_furthest_is_the_one_that_leaks():
    two = pod("two", "memory=1Gi", limits="memory=2Gi")
    node = BlastPods(NODE, ((two, (ContainerUsage(two.spec.containers[0].name, anon_bytes=MI),)),))
    assert list(leaks(node, MI)) == [Leak(two.key, two.spec.containers[0].name, MI)]


def test_of_two_limited_containers_the_one_with_more_left_to_its_limit_leaks():
    """The larger limit does not decide: most of it is in use."""
    two = pod_of("two", container("full", limits="memory=4Gi"), container("free", limits="memory=2Gi"))
    usage = ContainerUsage("full", anon_bytes=4 * GI - MI), ContainerUsage("free", anon_bytes=MI)
    assert [leak.container for leak in leaks(BlastPods(NODE, ((two, usage),)), MI)] == ["free"]


def _scenario(rate: int) -> Scenario:
    def workload(name: str, spec, curve: Curve) -> ScenarioWorkload:
        demand = {spec.spec.containers[0].name: ContainerDemand(anon_bytes=curve)}
        return ScenarioWorkload(
            kind="Pod", namespace="ns", name=name, pod=spec, demands=(demand,), nodes=("n",), recreate=False
        )

    seconds = 16 * GI // rate + 60
    growing = Curve(((0, GI), (seconds * SECOND_US, GI + rate * seconds)), clock=Clock.CONTAINER)
    return Scenario(
        name="whole",
        duration_us=seconds * SECOND_US,
        nodes=(NodeGroup(NODE),),
        workloads=(
            workload("leaker", pod("leaker", "memory=12Gi"), growing),
            workload("one", pod("one"), constant(3 * GI)),
            workload("two", pod("two", "memory=1Gi"), constant(2 * GI)),
        ),
    )


@pytest.mark.parametrize("rate", [MI, 64 * MI, GI, 8 * GI])
def test_a_leak_from_here_is_the_same_as_a_scenario_with_that_leak(rate):
    scenario = _scenario(rate)
    (still,) = nodes_now(scenario)
    leak = next(each for each in leaks(still, rate) if each.pod.endswith("/leaker"))
    found = BlastNode(still, slowest=rate).unleash(leak)
    kills = [
        (entry.time_us, entry.pod)
        for entry in simulate(scenario).entries
        if entry.kind.value in {"OOMKilled", "Evicted"}
    ]
    expected = [(round(death.after_seconds * SECOND_US), death.pod) for death in (*found.others, found.end)]
    assert kills[: len(expected)] == expected


def test_one_node_answers_for_one_leak_after_the_other():
    pods = [_holds(pod("a", "memory=12Gi"), GI), _holds(pod("b"), 3 * GI), _holds(pod("c"), 2 * GI)]
    given = BlastPods(NODE, tuple(pods))
    node = BlastNode(given, slowest=MI)
    every = [leak for rate in (4 * MI, 4 * GI) for leak in leaks(given, rate)]
    found = [node.unleash(leak) for leak in every]
    assert any(blast.others for blast in found)
    assert [BlastNode(given, slowest=MI).unleash(leak) for leak in every] == found
    assert [node.unleash(leak) for leak in every] == found


def test_a_sidecar_of_the_leaking_pod_is_no_other_pod():
    """The pod's own limit kills the container with most memory, which is not the one that leaks."""
    limited = pod_of(
        "two", container("main"), container("side"), resources=container("", limits="memory=4Gi").resources
    )
    usage = (ContainerUsage("main", anon_bytes=100 * MI), ContainerUsage("side", anon_bytes=3 * GI))
    node = BlastNode(BlastPods(NODE, ((limited, usage), _holds(pod("b"), GI))), slowest=MI)
    found = node.unleash(Leak(limited.key, "main", 100 * MI))
    assert (found.others, found.pods_taken) == ((), 0)
    assert (found.end.container, found.end.cause) == ("main", "pod")
    assert found.end.after_seconds == 20  # the other one is killed after 9.3 s, and back after a back-off of 10 s


@pytest.mark.parametrize(
    ("pods", "message"),
    [
        ([_holds(pod("a", limits="memory=1Gi"), 2 * GI)], r"default/a main uses 2Gi, above its limit of 1Gi"),
        (
            [_holds(pod("a"), 10 * GI), _holds(pod("b"), 7 * GI)],
            r"pods and system use more memory than n has \(15.9Gi\)",
        ),
    ],
    ids=["a container's limit", "the machine"],
)
def test_usage_that_the_kernel_would_not_allow_is_refused_and_not_blamed_on_a_leak(pods, message):
    with pytest.raises(ImpossibleUsage, match=message):
        BlastNode(BlastPods(NODE, tuple(pods)), slowest=MI)


def test_all_pods_together_above_their_limit_are_refused():
    spec = replace(NODE, config=KubeletConfiguration(system_reserved={"memory": "8Gi"}))
    with pytest.raises(ImpossibleUsage, match="the pods on n use more than the limit of /kubepods"):
        BlastNode(BlastPods(spec, (_holds(pod("a"), 10 * GI),)), slowest=MI)


def test_pods_for_which_there_is_no_room_are_refused_and_not_left_out():
    pods = _holds(pod("a", "memory=10Gi"), GI), _holds(pod("b", "memory=10Gi"), GI)
    with pytest.raises(ImpossibleUsage, match="the pods on n request more memory than its allocatable"):
        BlastNode(BlastPods(NODE, pods), slowest=MI)


def test_what_is_evicted_without_a_leak_is_said_and_not_blamed_on_one():
    """1.5Gi are left and the threshold is 2Gi: the largest pod goes, whatever leaks."""
    spec = replace(NODE, config=KubeletConfiguration(eviction_hard={"memory.available": "2Gi"}))
    pods = [_holds(pod("large"), 8 * GI), _holds(pod("small"), 2 * GI), _holds(pod("middle"), 4 * GI + 512 * MI)]
    node = BlastNode(BlastPods(spec, tuple(pods)), slowest=MI)
    assert [(each.node, each.pod) for each in node.evicted_before] == [("n", "default/large")]
    assert [leak.pod for leak in leaks(node.pods, MI)] == ["default/small", "default/middle"]
    found = node.unleash(Leak("default/middle", "main", 64 * MI))
    assert (found.others, found.end.by) == ((), By.KUBELET)
    # 9.5Gi are left by then: less than 2Gi just after 120 s, and the kubelet looks every ten.
    assert found.end.after_seconds == 130


def test_a_scenario_that_is_short_of_memory_when_it_begins_is_taken_as_it_is():
    config = KubeletConfiguration(eviction_hard={"memory.available": "2500Mi"})
    short = NodeGroup(replace(NODE, config=config, memory_bytes=7 * GI))
    (given,) = nodes_now(replace(_scenario(MI), nodes=(short,), workloads=_scenario(MI).workloads[1:]))
    assert [each.key for each, _ in given.pods] == ["default/one", "default/two"]
    assert [each.pod for each in BlastNode(given, slowest=MI).evicted_before] == ["default/one"]
