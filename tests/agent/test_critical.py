"""Which pods the kubelet preempts to admit a critical one, by the rules of pkg/kubelet/preemption."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.test_agent import config
from eviction.nodes import guaranteed, pod
from podqos.agent.pods import NoVictims, request, victims
from podqos.model.pod import Pod
from podqos.model.profile import LATEST, profile_for
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceRequirements

MI = 1 << 20
CRITICAL = pod("critical", "memory=1Gi", priority=2_000_000_000)


def preempted(lacking_mi: int, *pods: Pod, preemptor: Pod = CRITICAL, **lacking: int) -> list[str]:
    found = victims(preemptor, pods, {"memory": lacking_mi * MI, **lacking}, config())
    return [each.metadata.name for each in found]


def test_the_pod_goes_that_leaves_the_least_of_what_lacks():
    assert preempted(300, pod("a", "memory=100Mi"), pod("b", "memory=200Mi"), pod("c", "memory=310Mi")) == ["c"]


def test_of_pods_that_free_enough_the_one_goes_that_requests_less():
    """Memory first, then CPU."""
    large, small = pod("large", "memory=900Mi"), pod("small", "cpu=2,memory=400Mi")
    assert preempted(300, large, small) == preempted(300, small, large) == ["small"]
    idle, busy = pod("idle", "cpu=1,memory=400Mi"), pod("busy", "cpu=2,memory=400Mi")
    assert preempted(300, idle, busy) == preempted(300, busy, idle) == ["idle"]


def test_of_equals_the_last_one_goes():
    assert preempted(300, *(pod(name, "memory=400Mi") for name in "abc")) == ["c"]


def test_pods_go_one_after_the_other_each_the_nearest_to_what_still_lacks():
    """600 leave 100 of 700; for those 150 are nearer than another 500, which free no less."""
    pods = [pod("a", "memory=500Mi"), pod("b", "memory=600Mi"), pod("c", "memory=150Mi")]
    assert preempted(700, *pods) == ["b", "c"]


def test_what_is_left_of_several_resources_is_squared_and_added():
    """Half of one and none of the other (0.25) is nearer than two fifths and two fifths (0.32)."""
    half, even = pod("half", "cpu=1,memory=50Mi"), pod("even", "cpu=600m,memory=60Mi")
    assert preempted(100, even, half, cpu=1000)[0] == "half"


def test_lower_classes_go_first_and_no_pod_goes_whose_request_is_not_needed():
    best_effort, burstable, safe = pod("best-effort"), pod("burstable", "memory=300Mi"), guaranteed("safe", "300Mi")
    pods = (safe, burstable, best_effort)
    assert preempted(200, *pods) == ["burstable"]
    assert preempted(500, *pods) == ["burstable", "safe"]
    assert preempted(0, *pods, pods=1) == ["best-effort"]


@pytest.mark.parametrize(
    ("own", "other", "goes"),
    [
        pytest.param(2_000_001_000, 2_000_000_000, True, id="lower priority"),
        pytest.param(2_000_000_000, 2_000_000_000, False, id="equal priority"),
        pytest.param(2_000_000_000, 2_000_001_000, False, id="higher priority"),
    ],
)
def test_a_critical_pod_goes_only_for_one_of_higher_priority(own, other, goes):
    running = pod("running", "memory=300Mi", priority=other)
    preemptor = pod("preemptor", priority=own)
    if goes:
        assert preempted(200, running, preemptor=preemptor) == ["running"]
    else:
        with pytest.raises(NoVictims) as raised:
            preempted(200, running, preemptor=preemptor)
        assert raised.value.lacking == {"memory": 200 * MI}


@pytest.mark.parametrize(("own", "other"), [(None, 2_000_000_000), (2_000_001_000, None), (None, None)])
def test_without_a_priority_critical_pods_leave_each_other_alone(own, other):
    """Preemptable compares priorities only where both pods have one."""

    def static(name: str, priority: int | None) -> Pod:
        made = pod(name, "memory=300Mi", priority=priority)
        return replace(made, metadata=replace(made.metadata, annotations={"kubernetes.io/config.source": "file"}))

    with pytest.raises(NoVictims):
        preempted(200, static("running", other), preemptor=static("preemptor", own))


def test_what_would_still_lack_is_named_by_resource():
    with pytest.raises(NoVictims) as raised:
        preempted(500, pod("a", "cpu=1,memory=300Mi"), cpu=1000, pods=2)
    assert raised.value.lacking == {"memory": 200 * MI, "pods": 1}


@pytest.mark.parametrize(
    ("resource", "freed"),
    [("memory", 300 * MI), ("cpu", 0), ("pods", 1), ("ephemeral-storage", 0)],
)
def test_overhead_is_freed_only_with_a_request(resource, freed):
    """GetResourceRequest adds overhead to a request that is not zero."""
    overhead = {"memory": Quantity.parse("100Mi"), "cpu": Quantity.parse("1")}
    assert request(pod("a", "memory=200Mi", overhead=overhead), resource, LATEST) == freed


@pytest.mark.parametrize(("minor", "memory_mi", "storage_mi"), [(36, 500, 0), (31, 200, 7)])
def test_with_pod_level_resources_nothing_of_the_containers_is_freed(minor, memory_mi, storage_mi):
    own = ResourceRequirements({"memory": Quantity.parse("500Mi")})
    whole = pod("a", "memory=200Mi,ephemeral-storage=7Mi", resources=own)
    freed = [request(whole, name, profile_for((1, minor))) // MI for name in ("memory", "ephemeral-storage")]
    assert freed == [memory_mi, storage_mi]
