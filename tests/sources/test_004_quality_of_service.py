"""Source 004, "quality of service": its manifests, the code it quotes (v1.26) and the text around it, its cgroups."""

from __future__ import annotations

import json
import textwrap

import pytest
from msgspec.structs import replace

from kernel.shown import shown_for
from podqos.admission.validation import validate_resources
from podqos.model.pod import ObjectMeta, QOSClass
from podqos.model.profile import parse_version
from podqos.qos.cgroup import Level, node_cgroups, pod_cgroups
from podqos.qos.cgroup_paths import pod_path
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion
from podqos.qos.classes import classify
from podqos.qos.oom import COMPONENT_OOM_SCORE_ADJ, oom_scores

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
    assert 'start a list item with a dash ("- name: foo")' in said


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


def _stored_score(item):
    (container,) = item["containers"]
    return container["oomScoreAdj"], container["oomRule"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("system-node-critical", (-997, "NodeCritical")),
        pytest.param("system-cluster-critical", (900, "Burstable"), id="cluster-critical is not node-critical"),
        pytest.param("latency-critical", (900, "Burstable"), id="a class that is not in the input"),
    ],
)
def test_explain_knows_the_score_of_a_pod_that_only_names_its_priority_class(explained, name, expected):
    """A manifest states the name; the API server adds the number."""
    item = explained(f"priorityClassName: {name}\n{_burstable('1Gi')}", "--node-memory", "10Gi")

    assert _stored_score(item) == expected


def test_a_best_effort_pod_that_is_node_critical_is_killed_last_all_the_same(explained):
    item = explained("priorityClassName: system-node-critical\ncontainers: [{name: app, image: app}]")

    assert item["qosClass"] == "BestEffort"
    assert _stored_score(item) == (-997, "NodeCritical")


def test_check_judges_a_node_critical_pod_by_the_score_it_gets(command):
    fragment = (
        f"priorityClassName: system-node-critical\n{_burstable('1Gi').replace('name: app', 'name: app, image: a')}"
    )

    code, out, _ = command("check", fragment, "--node-memory", "10Gi")

    assert "never evicted, and never preempted" in out
    assert "oom_score_adj 9" not in out
    assert code == 1  # a system priority outside kube-system


def _commands_see(command, text):
    """Return the class in the answers of two commands to one text, and what was said about the text."""
    _, explained, said = command("explain", text, "-o", "json")
    _, admitted, _ = command("admit", text, "-o", "json")
    (one,), (other,) = json.loads(explained)["items"], json.loads(admitted)["items"]
    assert one["qosClassAsWritten"] == other["qosClassAsWritten"]
    return one, said


@EXAMPLES
def test_examples_as_bare_lists_of_containers_are_explained_and_said(command, fragment, expected):
    bare = textwrap.dedent(fragment).lstrip()

    item, said = _commands_see(command, bare)

    assert item["qosClass"] == expected.value
    assert said == (
        "example.yaml:1:1: warning: no kind: treated as Pod example (add apiVersion: v1, kind: Pod and spec:)\n"
    )
    assert item["notes"][0] == "no kind given: read as a Pod"


@pytest.mark.parametrize("component", ["kubelet", "kube-proxy"])
def test_node_components_have_minus_999(component):
    assert COMPONENT_OOM_SCORE_ADJ[component] == -999


@pytest.mark.parametrize(("oom_score_adj", "shown"), [(0, 666), (1000, 1332), (-997, 2), (-1000, 0)])
def test_proc_oom_score_of_an_idle_process(oom_score_adj, shown):
    """`cat /proc/$PID/oom_score` moves the scale: an idle process at adjustment 0 does not show 0."""
    assert shown_for(oom_score_adj, 0, 16 * GIB // 4096) == shown


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


# The uid and the container ids of its listing.
UID = "dba294ab-05fe-4314-a6d0-f9e0b3848104"
NGINX_ID = "d009a3eaf084cf7ac26a2fa6d39a27c44e24268a7121f56a41ce8931eeffea70"
PAUSE_ID = "0b4746699dcf58de9023ea469c9209ad35bcd03535c95e44343983c7c1e4ec4a"
POD_DIRECTORY = (
    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-poddba294ab_05fe_4314_a6d0_f9e0b3848104.slice"
)
NODE = CgroupSettings(node_memory_bytes=64 * GIB)
CGROUP_V1 = CgroupSettings(node_memory_bytes=64 * GIB, cgroup_version=CgroupVersion.V1)


def _qos_demo(pod, settings=NODE):
    """Return the cgroups of the pod, its pause container and nginx."""
    running = replace(pod, metadata=ObjectMeta(name="qos-demo", uid=UID))
    return pod_cgroups(running, BURSTABLE, settings, ids={"": PAUSE_ID, "nginx": NGINX_ID})


def test_qos_demo_directories(admitted):
    assert [cgroup.path for cgroup in _qos_demo(admitted(QOS_DEMO))] == [
        POD_DIRECTORY,
        f"{POD_DIRECTORY}/cri-containerd-{PAUSE_ID}.scope",
        f"{POD_DIRECTORY}/cri-containerd-{NGINX_ID}.scope",
    ]


@pytest.mark.parametrize("level", [Level.POD, Level.CONTAINER])
def test_qos_demo_values_on_cgroup_v2(admitted, level):
    (cgroup,) = (each for each in _qos_demo(admitted(QOS_DEMO)) if each.level is level)

    assert cgroup.text("memory.max") == "2147483648"
    assert cgroup.text("cpu.max") == "50000 100000"


@pytest.mark.parametrize("level", [Level.POD, Level.CONTAINER])
def test_qos_demo_values_on_cgroup_v1(admitted, level):
    (cgroup,) = (each for each in _qos_demo(admitted(QOS_DEMO), CGROUP_V1) if each.level is level)

    assert cgroup.text("memory.limit_in_bytes") == "2147483648"
    assert cgroup.text("cpu.cfs_quota_us") == "50000"
    assert cgroup.text("cpu.cfs_period_us") == "100000"


@pytest.mark.parametrize(
    ("qos_class", "directory"),
    [
        (GUARANTEED, "/kubepods.slice/kubepods-pod<uid>.slice"),
        (BURSTABLE, "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice"),
        pytest.param(
            BEST_EFFORT,
            "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod<uid>.slice",
            id="BestEffort, with the .slice that the document leaves out",
        ),
    ],
)
def test_the_level_of_each_class(qos_class, directory):
    assert pod_path("<uid>", qos_class, NODE) == directory


def test_the_form_with_colons_is_what_the_oci_runtime_is_given_and_no_directory(admitted):
    *_, nginx = _qos_demo(admitted(QOS_DEMO))

    assert nginx.oci_path == f"{POD_DIRECTORY.rpartition('/')[2]}:cri-containerd:{NGINX_ID}"


def test_cgroups_per_qos_is_on_by_default():
    assert NODE.cgroups_per_qos
    assert [cgroup.level for cgroup in node_cgroups((), NODE)] == [Level.NODE, Level.QOS, Level.QOS]


# Resource limits


def test_a_container_without_limits_may_use_the_whole_node(admitted):
    """Its ceiling is the node's: no limit is written."""
    requests_only = "containers: [{name: app, resources: {requests: {cpu: 250m, memory: 1Gi}}}]"

    for cgroup in pod_cgroups(admitted(requests_only), BURSTABLE, CGROUP_V1):
        assert cgroup.text("memory.limit_in_bytes") is None
        assert cgroup.text("cpu.cfs_quota_us") is None


@pytest.mark.parametrize("name", ["cpu", "memory"])
def test_requests_above_limits_are_invalid(written, name):
    above = f"containers: [{{name: app, image: nginx, resources: {{requests: {{{name}: 2}}, limits: {{{name}: 1}}}}}}]"

    (error,) = validate_resources(written(above))

    assert error.path == "spec.containers[0].resources.requests"
    assert error.detail == f"must be less than or equal to {name} limit of 1"


def test_requests_below_zero_are_invalid(written):
    below = "containers: [{name: app, image: nginx, resources: {requests: {cpu: -1}}}]"

    assert validate_resources(written(below))
