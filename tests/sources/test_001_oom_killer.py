"""Source 001, "the oom killer of Kubernetes": the constants and the formula, as they were up to v1.19."""

from __future__ import annotations

import pytest

from podqos.model.pod import QOSClass
from podqos.model.profile import parse_version
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.qos.classes import classify
from podqos.qos.oom import COMPONENT_OOM_SCORE_ADJ, oom_scores
from podqos.qos.run_flags import run_flags

GIB = 2**30
THEN = parse_version("1.13")  # when the class had the names the document quotes

GUARANTEED = "containers: [{name: app, resources: {limits: {cpu: 1, memory: 1Gi}}}]"
BEST_EFFORT = "containers: [{name: app}]"


def _burstable(memory: str) -> str:
    return f"containers: [{{name: app, resources: {{requests: {{memory: {memory}}}}}}}]"


def _value(pod, node_bytes, profile=THEN):
    (score,) = oom_scores(pod, classify(pod, profile).qos_class, node_bytes, profile)
    return score.value


@pytest.mark.parametrize(
    ("component", "value"),
    [("pod sandbox", -998), ("kubelet", -999), ("container runtime", -999), ("kube-proxy", -999)],
)
def test_fixed_value_of(component, value):
    assert COMPONENT_OOM_SCORE_ADJ[component] == value


@pytest.mark.parametrize("version", ["1.8", "1.13", "1.19"])
def test_guaranteed_was_minus_998_up_to_1_19(admitted, version):
    assert _value(admitted(GUARANTEED), 64 * GIB, parse_version(version)) == -998


def test_best_effort_is_1000(admitted):
    assert _value(admitted(BEST_EFFORT), 64 * GIB) == 1000


@pytest.mark.parametrize(
    ("memory", "node_bytes", "value"),
    [
        pytest.param("1Gi", 10 * GIB, 900, id="a tenth of the node"),
        pytest.param("5Gi", 10 * GIB, 500, id="half"),
        pytest.param("1", 10 * GIB, 999, id="next to nothing: kept below BestEffort's 1000"),
        pytest.param("0", 10 * GIB, 999, id="cpu only"),
        pytest.param("10219Mi", 10 * GIB, 3, id="one above the floor"),
        pytest.param("10Gi", 10 * GIB, 2, id="the whole node: 1000 + (-998), though a comment beside the code says 1"),
        pytest.param("20Gi", 10 * GIB, 2, id="more than the node"),
    ],
)
def test_burstable_formula(admitted, memory, node_bytes, value):
    fragment = f"containers: [{{name: app, resources: {{requests: {{cpu: 100m, memory: {memory}}}}}}}]"

    assert _value(admitted(fragment), node_bytes) == value


def test_best_effort_goes_first_then_the_smaller_request_and_guaranteed_last(admitted):
    pods = [admitted(text) for text in (BEST_EFFORT, _burstable("1Gi"), _burstable("8Gi"), GUARANTEED)]

    values = [_value(pod, 64 * GIB) for pod in pods]

    assert values == sorted(values, reverse=True)
    assert len(set(values)) == 4
    assert [classify(pod, THEN).qos_class for pod in pods] == [
        QOSClass.BEST_EFFORT,
        QOSClass.BURSTABLE,
        QOSClass.BURSTABLE,
        QOSClass.GUARANTEED,
    ]


# The flags of `docker help run`.

DOCUMENTED_FLAGS = {
    "--cpu-percent",
    "--cpu-period",
    "--cpu-quota",
    "--cpu-shares",
    "--cpuset-cpus",
    "--cpuset-mems",
    "--oom-kill-disable",
    "--oom-score-adj",
    "--kernel-memory",
    "--memory",
    "--memory-reservation",
    "--memory-swap",
    "--memory-swappiness",
}


@pytest.fixture
def flags(admitted):
    pod = admitted("containers: [{name: app, resources: {requests: {memory: 1Gi}, limits: {cpu: 500m, memory: 2Gi}}}]")
    (app,) = run_flags(pod, QOSClass.BURSTABLE, CgroupSettings(node_memory_bytes=10 * GIB))
    return {flag.name: flag.value for flag in app.flags}


def test_every_documented_flag_is_accounted_for(flags):
    assert flags.keys() == DOCUMENTED_FLAGS


def test_kubernetes_sets_the_score_through_the_oom_score_adj_flag(flags):
    assert flags["--oom-score-adj"] == "900"


def test_kubernetes_never_disables_the_oom_killer(flags):
    assert flags["--oom-kill-disable"] is None


def test_limits_become_memory_and_quota(flags):
    assert (flags["--memory"], flags["--cpu-period"], flags["--cpu-quota"]) == ("2147483648", "100000", "50000")
