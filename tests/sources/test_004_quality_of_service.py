"""Source 004, "quality of service": its manifests, the code it quotes (v1.26) and the text around it, its cgroups."""

from __future__ import annotations

import pytest

from podqos.model.pod import QOSClass
from podqos.model.profile import parse_version
from podqos.qos.classes import classify
from podqos.qos.oom import COMPONENT_OOM_SCORE_ADJ, oom_scores, shown_oom_score

BEST_EFFORT, BURSTABLE, GUARANTEED = QOSClass.BEST_EFFORT, QOSClass.BURSTABLE, QOSClass.GUARANTEED
GIB = 2**30
QUOTED = parse_version("v1.26.0")

# The five manifests, with the dashes that make `containers` a list.

LIMITS_ONLY = """
    containers:
    - name: foo
      resources:
        limits:
          cpu: 10m
          memory: 1Gi
    - name: bar
      resources:
        limits:
          cpu: 100m
          memory: 100Mi
"""
EQUAL = """
    containers:
    - name: foo
      resources:
        limits:
          cpu: 10m
          memory: 1Gi
        requests:
          cpu: 10m
          memory: 1Gi
    - name: bar
      resources:
        limits:
          cpu: 100m
          memory: 100Mi
        requests:
          cpu: 100m
          memory: 100Mi
"""
BAR_WITHOUT_RESOURCES = """
    containers:
    - name: foo
      resources:
        limits:
          cpu: 10m
          memory: 1Gi
        requests:
          cpu: 10m
          memory: 1Gi
    - name: bar
"""
ONE_LIMIT_EACH = """
    containers:
    - name: foo
      resources:
        limits:
          memory: 1Gi
    - name: bar
      resources:
        limits:
          cpu: 100m
"""
EMPTY_RESOURCES = """
    containers:
    - name: foo
      resources:
    - name: bar
      resources:
"""
EXAMPLES = pytest.mark.parametrize(
    ("fragment", "expected"),
    [
        pytest.param(LIMITS_ONLY, GUARANTEED, id="Guaranteed: limits only"),
        pytest.param(EQUAL, GUARANTEED, id="Guaranteed: requests == limits"),
        pytest.param(BAR_WITHOUT_RESOURCES, BURSTABLE, id="Burstable: bar states nothing"),
        pytest.param(ONE_LIMIT_EACH, BURSTABLE, id="Burstable: foo limits memory, bar cpu"),
        pytest.param(EMPTY_RESOURCES, BEST_EFFORT, id="BestEffort: resources left empty"),
    ],
)


@EXAMPLES
def test_example(admitted, fragment, expected):
    assert classify(admitted(fragment)).qos_class is expected


@EXAMPLES
def test_examples_as_printed_without_the_dashes_are_refused(refused, fragment, expected):
    (said,) = refused(fragment.replace("- name", "name"))

    assert said.startswith("example.yaml:")


def test_requests_equal_to_zero_are_not_guaranteed(admitted):
    zero = "{requests: {cpu: 0, memory: 0}, limits: {cpu: 0, memory: 0}}"

    assert classify(admitted(f"containers: [{{name: foo, resources: {zero}}}]")).qos_class is BEST_EFFORT


# oom_score_adj: the code is that of v1.26, the numbers in the text are those of v1.19 and before.


def _burstable(memory: str) -> str:
    return f"containers: [{{name: app, resources: {{requests: {{memory: {memory}}}}}}}]"


def _value(pod, profile, node_bytes=10 * GIB):
    return oom_scores(pod, classify(pod, profile).qos_class, node_bytes, profile)[0].value


@pytest.mark.parametrize(
    ("version", "guaranteed", "floor"),
    [("1.19", -998, 2), ("1.20", -997, 3), ("1.26", -997, 3), ("1.36", -997, 3)],
)
def test_guaranteed_and_the_floor_of_burstable_by_version(admitted, version, guaranteed, floor):
    profile = parse_version(version)

    assert _value(admitted(EQUAL), profile) == guaranteed
    assert _value(admitted(_burstable("10Gi")), profile) == floor


@pytest.mark.parametrize(
    ("fragment", "value"),
    [
        pytest.param(EQUAL, -997, id="Guaranteed"),
        pytest.param(EMPTY_RESOURCES, 1000, id="BestEffort"),
        pytest.param(_burstable("1Gi"), 900, id="a tenth of the memory"),
        pytest.param(_burstable("1"), 999, id="exactly 1000 is lowered by one"),
        pytest.param(_burstable("11Gi"), 3, id="below 1000 + (-997)"),
    ],
)
def test_the_quoted_code(admitted, fragment, value):
    assert _value(admitted(fragment), QUOTED) == value


def test_node_critical_pods_get_guaranteeds_value(admitted):
    critical = "priorityClassName: system-node-critical\npriority: 2000001000\n" + _burstable("1Gi")

    assert _value(admitted(critical), QUOTED) == -997


@pytest.mark.parametrize("component", ["kubelet", "kube-proxy"])
def test_node_components_have_minus_999(component):
    assert COMPONENT_OOM_SCORE_ADJ[component] == -999


@pytest.mark.parametrize(
    ("oom_score_adj", "shown"),
    [(0, 666), (1000, 1332), (-997, 2)],
)
def test_proc_oom_score_of_an_idle_process(oom_score_adj, shown):
    """`cat /proc/$PID/oom_score` moves the scale: an idle process at adjustment 0 does not show 0."""
    total_pages = 16 * GIB // 4096

    assert shown_oom_score(oom_score_adj * (total_pages // 1000), total_pages) == shown


# cgroups: the pod of the document

QOS_DEMO = """
    containers:
    - name: nginx
      image: nginx:latest
      resources:
        requests:
          cpu: 250m
          memory: 1Gi
        limits:
          cpu: 500m
          memory: 2Gi
"""


def test_qos_demo_is_burstable(admitted):
    assert classify(admitted(QOS_DEMO)).qos_class is BURSTABLE
