"""Every setting of a kubelet that podqos reads changes an answer; what it does not read is named, once.

A field that is added to ``KubeletConfiguration`` needs a row here: what it is set to, and which answer that changes.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import msgspec
import pytest

from podqos.admission.defaulting import defaulted
from podqos.agent.agent import memory_notification
from podqos.cli.main import main
from podqos.host.shell.protection import AgentProtection
from podqos.manifest.reading import read
from podqos.model.kubelet_config import API_VERSION, KIND, KNOWN_FIELDS, KubeletConfiguration, kubelet_configuration
from podqos.model.kubelet_ignored import (
    READ_GATES,
    SKIPPED_FIELDS,
    Gated,
    IgnoredGate,
    gate_is_on,
    ignored_settings,
)
from podqos.model.profile import LATEST
from podqos.objects.kubelet_notes import ignored_words
from podqos.qos.cgroup import node_cgroups, pod_cgroups
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.qos.classes import classify
from podqos.sim.node.settings import node_settings
from podqos.sim.scenario.scenario import Filesystem, MachineSpec

GI = 1 << 30
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: db}
spec: {containers: [{name: app, image: app:1, resources: {limits: {cpu: 2, memory: 2Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers: [{name: app, image: app:1, resources: {requests: {cpu: 1, memory: 1Gi}, limits: {memory: 2Gi, cpu: 2}}}]
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "pods.yaml").write_text(POD)
    return tmp_path


def _written(folder: Path, settings: dict[str, object]) -> str:
    path = folder / "kubelet.yaml"
    path.write_text(json.dumps({"apiVersion": API_VERSION, "kind": KIND, **settings}))
    return str(path)


def _command(capsys, *arguments: str) -> str:
    main(list(arguments))
    return capsys.readouterr().out


def thresholds(settings, folder, capsys):
    capacity = ("--node-memory", "64Gi", "--nodefs-capacity", "200Gi")
    return _command(capsys, "thresholds", "-f", _written(folder, settings), *capacity, "-o", "json")


def place(settings, folder, capsys):
    nodes = ("--nodes", "1", "--node-capacity", "cpu=8,memory=16Gi")
    kubelet = ("--kubelet-config", _written(folder, settings))
    return _command(capsys, "place", "-f", str(folder / "pods.yaml"), *kubelet, *nodes, "-o", "json")


def explain(settings, folder, capsys):
    node = ("--kubelet-config", _written(folder, settings), "--node-memory", "16Gi")
    return _command(capsys, "explain", "-f", str(folder / "pods.yaml"), *node, "-o", "json")


def check(settings, folder, capsys):
    """Return what is found; the notes name what is ignored."""
    _written(folder, settings)
    found = json.loads(_command(capsys, "check", str(folder), "--node-memory", "16Gi", "-o", "json"))
    return found["items"], found["summary"]


def _node(settings):
    config = kubelet_configuration({"apiVersion": API_VERSION, "kind": KIND, **settings})
    spec = MachineSpec(
        name="n",
        memory_bytes=16 * GI,
        cpu_milli=8000,
        swap_bytes=4 * GI,
        nodefs=Filesystem(100 * GI, 1_000_000),
        config=config,
    )
    return node_settings(spec, LATEST, None)


def cgroups(settings, folder, capsys):
    """Return the files of all cgroups of a simulated node."""
    del capsys
    pods = [defaulted(each.pod) for each in read("pods.yaml", (folder / "pods.yaml").read_bytes()).workloads]
    plan = _node(settings).agent.cgroups
    own = (cgroup for each in pods for cgroup in pod_cgroups(each, classify(each).qos_class, plan))
    return [
        (cgroup.path, file.name, file.text) for cgroup in (*node_cgroups(pods, plan), *own) for file in cgroup.files
    ]


def eviction(settings, folder, capsys):
    """Return what the eviction manager of a simulated node runs with."""
    del folder, capsys
    return _node(settings).agent.eviction


def restarts(settings, folder, capsys):
    del folder, capsys
    return _node(settings).agent.longest_back_off_seconds


def status(settings, folder, capsys):
    del folder, capsys
    return _node(settings).status_update_us


def own_score(settings, folder, capsys):
    """Return what the real node's agent writes into its own oom_score_adj."""
    del capsys
    config = kubelet_configuration({"apiVersion": API_VERSION, "kind": KIND, **settings})
    (folder / "self").mkdir(exist_ok=True)
    procfs = SimpleNamespace(root=folder, cgroups=lambda _pid: {})
    capabilities = SimpleNamespace(lines=list, oom_score_adj=lambda wanted: (wanted, None))
    own = SimpleNamespace(configuration=config, realtime=False, is_delegated=True)
    with patch("os.sched_setscheduler"), patch("os.setpriority"):
        AgentProtection(own, SimpleNamespace(version=None), capabilities, procfs, lambda _line: None).begin()
    return (folder / "self" / "oom_score_adj").read_text()


def notification(settings, folder, capsys):
    """Return who listens to the kernel on a node with cgroup v1; on v2 the kubelet's notifier never fires."""
    del folder, capsys
    config = kubelet_configuration({"apiVersion": API_VERSION, "kind": KIND, **settings})
    return memory_notification(config, CgroupVersion.V1, fast_path=False)


GRACE = {"evictionSoftGracePeriod": {"memory.available": "1m"}}
SOFT = {"evictionSoft": {"memory.available": "2Gi"}}
MEMORY_QOS = {"featureGates": {"MemoryQoS": True}}
# Field: (what it is set to, which answer that changes, what else is set before and after)
ROWS: dict[str, tuple] = {
    "kubeReserved": ({"memory": "1Gi"}, place),
    "systemReserved": ({"cpu": "1"}, place),
    "reservedSystemCPUs": ("0-1", place),
    "enforceNodeAllocatable": (["none"], cgroups, {"systemReserved": {"memory": "1Gi"}}),
    "maxPods": (20, place),
    "podsPerCore": (2, place),
    "evictionHard": ({"memory.available": "1Gi"}, thresholds),
    "evictionSoft": (SOFT["evictionSoft"], thresholds, GRACE),
    "evictionSoftGracePeriod": ({"memory.available": "2m"}, thresholds, {**SOFT, **GRACE}),
    "evictionMinimumReclaim": ({"memory.available": "500Mi"}, thresholds),
    "evictionPressureTransitionPeriod": ("1m", eviction),
    "evictionMaxPodGracePeriod": (30, eviction),
    "mergeDefaultEvictionSettings": (True, thresholds, {"evictionHard": {"memory.available": "1Gi"}}),
    "kernelMemcgNotification": (True, notification),
    "localStorageCapacityIsolation": (False, eviction),
    "cgroupRoot": ("/pods", cgroups),
    "cgroupDriver": ("systemd", cgroups),
    "cgroupsPerQOS": (False, cgroups),
    "cpuCFSQuota": (False, cgroups),
    "cpuCFSQuotaPeriod": ("10ms", cgroups),
    "cpuManagerPolicy": ("static", explain, {"reservedSystemCPUs": "0"}),
    "memorySwap": ({"swapBehavior": "LimitedSwap"}, cgroups),
    "failSwapOn": (False, thresholds, {"memorySwap": {"swapBehavior": "LimitedSwap"}}),
    "memoryThrottlingFactor": (0.5, cgroups, MEMORY_QOS),
    "memoryReservationPolicy": ("TieredReservation", cgroups, MEMORY_QOS),
    "qosReserved": ({"memory": "100%"}, cgroups, {"featureGates": {"QOSReserved": True}}),
    "singleProcessOOMKill": (True, cgroups),
    "oomScoreAdj": (-500, own_score),
    "podPidsLimit": (100, cgroups),
    "crashLoopBackOff": ({"maxContainerRestartPeriod": "30s"}, restarts),
    "nodeStatusUpdateFrequency": ("5s", status),
    "registerWithTaints": ([{"key": "a", "value": "b", "effect": "NoSchedule"}], place),
    "featureGates": ({"MemoryQoS": True}, cgroups),
}


def test_every_declared_field_has_a_row():
    declared = {field.encode_name for field in msgspec.structs.fields(KubeletConfiguration)}
    assert declared == ROWS.keys()


@pytest.mark.parametrize("field", ROWS)
def test_a_field_that_is_read_changes_an_answer(field, folder, capsys):
    value, answer, *others = ROWS[field]
    settings = others[0] if others else {}
    before = answer(settings, folder, capsys)
    after = answer({**settings, field: value}, folder, capsys)
    assert before
    assert before != after


@pytest.mark.parametrize("answer", [place, thresholds, check, cgroups, eviction])
def test_a_field_that_is_skipped_changes_no_answer(answer, folder, capsys):
    skipped = {"memoryManagerPolicy": "Static", "topologyManagerPolicy": "restricted", "shutdownGracePeriod": "30s"}
    assert answer({}, folder, capsys) == answer(skipped, folder, capsys)


GATES = {
    "MemoryQoS": (True, cgroups, {}),
    "DisableCPUQuotaWithExclusiveCPUs": (False, explain, {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}),
    "QOSReserved": (True, cgroups, {"qosReserved": {"memory": "50%"}}),
    "KubeletCrashLoopBackOffMax": (False, restarts, {"crashLoopBackOff": {"maxContainerRestartPeriod": "30s"}}),
}


def test_every_feature_gate_that_is_read_has_a_row():
    assert GATES.keys() == set(READ_GATES)


@pytest.mark.parametrize("gate", GATES)
def test_a_feature_gate_that_is_read_changes_an_answer(gate, folder, capsys):
    on, answer, settings = GATES[gate]
    gated = {**settings, "featureGates": {gate: on}}
    assert answer(settings, folder, capsys) != answer(gated, folder, capsys)
    assert not ignored_settings(gated)


@pytest.mark.parametrize(
    ("gates", "is_on"),
    [
        pytest.param({}, False, id="off by default"),
        pytest.param({"AllAlpha": True}, True, id="with all of its stage"),
        pytest.param({"AllAlpha": True, "QOSReserved": False}, False, id="its own name comes first"),
        pytest.param({"AllBeta": True}, False, id="it is alpha"),
    ],
)
def test_an_alpha_gate_is_on_by_its_name_or_with_all_of_them(gates, is_on):
    assert gate_is_on(gates, "QOSReserved") is is_on


# What is not read


def test_every_field_is_either_read_or_skipped():
    assert not ROWS.keys() & set(SKIPPED_FIELDS)
    assert ROWS.keys() | set(SKIPPED_FIELDS) == KNOWN_FIELDS
    assert len(set(SKIPPED_FIELDS)) == len(SKIPPED_FIELDS)


@pytest.mark.parametrize(
    ("settings", "fields"),
    [
        ({"memoryManagerPolicy": "Static", "reservedMemory": [{"numaNode": 0}]}, "memoryManagerPolicy reservedMemory"),
        ({"topologyManagerPolicy": "single-numa-node"}, "topologyManagerPolicy"),
        ({"imageGCHighThresholdPercent": 70, "imageGCLowThresholdPercent": 80}, "imageGCHighThresholdPercent"),
        ({"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "0s"}, "shutdownGracePeriod"),
        ({"systemReservedCgroup": "/system.slice", "kubeReservedCgroup": ""}, "systemReservedCgroup"),
        ({"memoryManagerPolicy": "None", "topologyManagerPolicy": "none", "imageMinimumGCAge": "2m0s"}, ""),
        ({"clusterDNS": ["10.0.0.10"], "authentication": {"x509": {}}, "rotateCertificates": True}, ""),
    ],
)
def test_settings_that_bear_on_resources_are_named_and_others_are_not(settings, fields):
    ignored = ignored_settings(settings)
    assert ignored.fields == tuple(fields.split())
    assert bool(ignored) is bool(fields)


@pytest.mark.parametrize(
    ("gates", "names"),
    [
        ({"NodeSwap": True, "PodLevelResources": True, "SidecarContainers": True}, ""),
        ({"PodLevelResources": False}, "PodLevelResources"),
        ({"RotateKubeletServerCertificate": True, "CSIMigration": True}, ""),
        ({"EventedPLEG": True, "MemoryQoS": True}, "EventedPLEG"),
        ({"AllAlpha": True}, ""),
    ],
)
def test_feature_gates_that_nothing_reads_are_named_unless_they_are_about_something_else(gates, names):
    assert " ".join(gate.name for gate in ignored_settings({"featureGates": gates}).gates) == names


def test_a_misspelt_feature_gate_is_named_with_the_one_that_was_meant():
    ignored = ignored_settings({"featureGates": {"MemoryQos": True}})
    assert ignored.gates == (IgnoredGate("MemoryQos", "MemoryQoS"),)
    assert ignored_words(ignored) == "featureGates.MemoryQos is unknown: did you mean MemoryQoS?"


def test_a_setting_whose_gate_is_off_is_named():
    ignored = ignored_settings({"qosReserved": {"memory": "50%"}, "memoryThrottlingFactor": 0.9})
    assert ignored.without_gate == (Gated("qosReserved", "QOSReserved", (1, 11)),)


def test_a_gate_that_is_on_since_1_37_has_to_be_named_up_to_1_36_unless_it_is_turned_off():
    given = {"memoryThrottlingFactor": 0.5}
    words = "memoryThrottlingFactor has no effect without featureGates.MemoryQoS: true"
    assert ignored_words(ignored_settings(given)) == f"{words} (up to 1.36)"
    assert ignored_words(ignored_settings({**given, "featureGates": {"MemoryQoS": False}})) == words


def test_some_settings_are_read_by_a_check_but_by_no_simulation():
    settings = {"cpuManagerPolicy": "static", "kernelMemcgNotification": True}
    assert ignored_settings(settings).fields == ()
    assert ignored_settings(settings, "simulation").fields == ("cpuManagerPolicy", "kernelMemcgNotification")


def test_a_setting_is_named_for_one_reason():
    ignored = ignored_settings({"memoryThrottlingFactor": 0.5}, "simulation")
    gated = Gated("memoryThrottlingFactor", "MemoryQoS", until=(1, 36))
    assert (ignored.fields, ignored.without_gate) == ((), (gated,))
    enabled = {"memoryThrottlingFactor": 0.5, "featureGates": {"MemoryQoS": True}}
    assert not ignored_settings(enabled, "simulation")
    assert not ignored_settings(enabled)


def test_of_many_feature_gates_a_few_are_named():
    words = ignored_words(ignored_settings({"featureGates": {f"Gate{n}": True for n in range(9)}}))
    assert words.endswith("featureGates.Gate2, featureGates.Gate3, 5 more feature gates")


@pytest.mark.parametrize(
    "settings",
    [{}, {"memoryManagerPolicy": None}, {"featureGates": None}, {"featureGates": {}}, {"reservedMemory": []}],
    ids=repr,
)
def test_what_says_nothing_is_not_named(settings):
    assert not ignored_settings(settings)


IGNORED = {
    "memoryManagerPolicy": "Static",
    "clusterDNS": ["10.0.0.10"],
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": "0",
}
SCENARIO = """\
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: ignoring}
spec:
  duration: 1s
  manifests: [pods.yaml]
  nodes:
    - {name: a, capacity: {cpu: 8, memory: 16Gi}, kubelet: KUBELET}
    - {name: b, capacity: {cpu: 8, memory: 16Gi}, kubelet: KUBELET}
"""


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["thresholds", "-f", "kubelet.yaml"], "memoryManagerPolicy"),
        (["place", "-f", "pods.yaml", "--kubelet-config", "kubelet.yaml", "--nodes", "1", "--node-capacity",
          "cpu=8,memory=16Gi"], "memoryManagerPolicy"),
        (["check", "."], "memoryManagerPolicy"),
        (["check", "pods.yaml", "--kubelet-config", "kubelet.yaml"], "memoryManagerPolicy"),
        (["explain", "-f", "pods.yaml", "--kubelet-config", "kubelet.yaml"], "memoryManagerPolicy"),
        (["simulate", "scenario.yaml"], "cpuManagerPolicy, memoryManagerPolicy"),
        (["simulate", "in-place.yaml"], "cpuManagerPolicy, memoryManagerPolicy"),
        (["scenario", "validate", "scenario.yaml"], "cpuManagerPolicy, memoryManagerPolicy"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)  # fmt: skip
def test_a_command_says_once_what_it_ignores(arguments, named, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    _written(folder, IGNORED)
    (folder / "scenario.yaml").write_text(SCENARIO.replace("KUBELET", "kubelet.yaml"))
    (folder / "in-place.yaml").write_text(SCENARIO.replace("KUBELET", json.dumps(IGNORED)))
    assert main(arguments) in {0, 1}
    err = capsys.readouterr().err
    said = [line for line in err.splitlines() if "ignored (not modelled)" in line]
    assert len(said) == 1, err
    assert said[0].endswith(f"ignored (not modelled): {named}")
    assert "clusterDNS" not in err


def test_flags_are_named_like_fields_in_the_words_of_their_file(folder, capsys):
    flags = {
        "memory-manager-policy": ["Static"],
        "image-gc-high-threshold": ["85"],
        "qos-reserved": ["memory=50%"],
        "node-labels": ["a=b"],
    }
    path = folder / "node-config.yaml"
    path.write_text(json.dumps({"kubeletArguments": flags}))
    assert main(["thresholds", "-f", str(path), "--node-memory", "16Gi"]) == 0
    assert capsys.readouterr().err == (
        f"{path}: warning: kubeletArguments: ignored (not modelled): memory-manager-policy; "
        "ignored (no effect on pods): node-labels; "
        "qos-reserved has no effect without featureGates.QOSReserved: true (since 1.11)\n"
        "assumed: rules for kubeletArguments (OpenShift 3): those of Kubernetes 1.36 "
        "(--kubernetes-version 1.9 for OKD 3.9)\n"
    )
