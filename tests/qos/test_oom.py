"""oom_score_adj: the formula's clamps, sidecars, and versions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podqos.model.pod import Container, ObjectMeta, Pod, PodSpec, QOSClass
from podqos.model.profile import LATEST, profile_for
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceRequirements
from podqos.qos.classes import classify
from podqos.qos.oom import COMPONENT_OOM_SCORE_ADJ, OOMRule, oom_scores
from strategies import pods

GI = 2**30


def burstable(*memory: str, sidecar: str | None = None) -> Pod:
    def asking(amount: str, restart_policy: str | None = None) -> Container:
        requests = {"memory": Quantity.parse(amount)}
        return Container(f"c-{amount}", resources=ResourceRequirements(requests), restart_policy=restart_policy)

    init = (asking(sidecar, "Always"),) if sidecar else ()
    return Pod(spec=PodSpec(containers=tuple(map(asking, memory)), init_containers=init))


def values(pod: Pod, node_bytes: int = 64 * GI, profile=LATEST) -> list[int]:
    return [score.value for score in oom_scores(pod, classify(pod, profile).qos_class, node_bytes, profile)]


@pytest.mark.parametrize(
    ("request_text", "minor", "expected", "rule"),
    [
        pytest.param("4130Mi", 36, 937, OOMRule.BURSTABLE, id="the analytics pipeline"),
        pytest.param("4Gi", 36, 938, OOMRule.BURSTABLE, id="truncated, not rounded"),
        pytest.param("1Mi", 36, 999, OOMRule.CEILING, id="below BestEffort"),
        pytest.param("64Gi", 36, 3, OOMRule.FLOOR, id="above Guaranteed since 1.20"),
        pytest.param("64Gi", 19, 2, OOMRule.FLOOR, id="above Guaranteed up to 1.19"),
    ],
)
def test_burstable_formula_and_its_clamps(request_text, minor, expected, rule):
    pod, profile = burstable(request_text), profile_for((1, minor))
    (score,) = oom_scores(pod, QOSClass.BURSTABLE, 64 * GI, profile)
    assert (score.value, score.rule) == (expected, rule)


def test_a_sidecar_is_no_likelier_to_die_than_the_smallest_container_since_1_32():
    pod = burstable("4Gi", "8Gi", sidecar="64Mi")
    assert values(pod) == [938, 875, 938]
    assert values(pod, profile=profile_for((1, 31))) == [938, 875, 999]


@pytest.mark.parametrize(
    ("minor", "priority_class", "expected"),
    [
        (13, "system-cluster-critical", 1000),
        (14, "system-cluster-critical", -998),
        (21, "system-cluster-critical", -997),
        (22, "system-cluster-critical", 1000),
        (22, "system-node-critical", -997),
        (36, "system-node-critical", -997),
    ],
)
def test_critical_pods_get_the_lowest_score_by_version(minor, priority_class, expected):
    spec = PodSpec(containers=(Container("c"),), priority=2_000_001_000, priority_class_name=priority_class)
    assert values(Pod(spec=spec), profile=profile_for((1, minor))) == [expected]


def test_the_name_of_the_priority_class_alone_does_not_protect():
    spec = PodSpec(containers=(Container("c"),), priority=5, priority_class_name="system-node-critical")
    assert values(Pod(spec=spec)) == [1000]
    mirror = ObjectMeta(annotations={"kubernetes.io/config.mirror": "x"})
    assert values(Pod(metadata=mirror, spec=spec)) == [-997]


def test_node_components_are_fixed():
    assert COMPONENT_OOM_SCORE_ADJ == {
        "kubelet": -999,
        "kube-proxy": -999,
        "container runtime": -999,
        "pod sandbox": -998,
    }


@given(pods(), st.integers(1, 2**45))
def test_burstable_lies_strictly_between_guaranteed_and_best_effort(pod, node_bytes):
    """Whatever the pod asks for as a whole, and however small the node is."""
    for score in oom_scores(pod, QOSClass.BURSTABLE, node_bytes):
        assert 3 <= score.value <= 999


def of_a_pod(requests: dict[str, str], *memory: str) -> Pod:
    pod = burstable(*memory)
    own = ResourceRequirements({name: Quantity.parse(amount) for name, amount in requests.items()})
    return Pod(spec=replace(pod.spec, resources=own))


def test_a_pod_level_request_of_zero_leaves_the_containers_their_own():
    """Nothing is there to share out."""
    assert values(of_a_pod({"cpu": "1", "memory": "0"}, "4Gi", "8Gi")) == values(burstable("4Gi", "8Gi"))
    assert values(of_a_pod({"cpu": "1"}, "4Gi", "8Gi")) == values(burstable("4Gi", "8Gi"))


def test_a_pod_that_asks_for_less_than_its_containers_stays_within_bounds():
    """No API server accepts it. Upstream would ask the kernel for more than it takes."""
    pod = of_a_pod({"memory": "1Gi"}, "63Gi", "1Mi")
    scores = oom_scores(pod, QOSClass.BURSTABLE, 64 * GI)
    assert [(score.value, score.rule) for score in scores] == [(501, OOMRule.BURSTABLE), (999, OOMRule.CEILING)]
    assert [score.value for score in oom_scores(pod, QOSClass.BURSTABLE, 64 * GI, bounded=False)] == [501, 1484]


def test_a_request_too_small_to_count_scores_one_below_best_effort_as_the_kubelet_writes_it():
    """GetContainerOOMScoreAdjust itself steps from 1000 to 999, whatever the kernel's bounds are."""
    (score,) = oom_scores(burstable("1Mi"), QOSClass.BURSTABLE, 64 * GI, bounded=False)
    assert score.value == 999


def test_on_a_node_smaller_than_a_request_the_floor_holds():
    assert values(of_a_pod({"memory": "3Gi"}, "2Gi", "1Gi"), node_bytes=GI) == [3, 3]


@given(st.integers(0, 2**20), st.integers(0, 2**20))
def test_a_larger_request_never_makes_a_container_likelier_to_die(smaller_mi, extra_mi):
    smaller, larger = (values(burstable(f"{n}Mi"))[0] for n in (smaller_mi + 1, smaller_mi + extra_mi + 1))
    assert larger <= smaller


@pytest.mark.parametrize(("minor", "expected"), [(36, [993, 993]), (37, [969, 969])])
def test_since_1_37_a_pod_that_asks_for_less_than_its_containers_takes_nothing_from_them(minor, expected):
    """(1Gi − 4Gi) / 2 is what no container claims: up to 1.36 each counts as 0.5Gi, since then as its own 2Gi."""
    two = burstable("2Gi", "2048Mi")
    asking = ResourceRequirements({"memory": Quantity.parse("1Gi")})
    assert values(replace(two, spec=replace(two.spec, resources=asking)), profile=profile_for((1, minor))) == expected
