"""Source 003 through the command: what a reader of "Allocating Node Resources" would type."""

from __future__ import annotations

import json
import re

import pytest

from podqos.cli.main import main

SOFT = """\
      kubeletArguments:
        eviction-soft:
        - memory.available<500Mi
        - nodefs.available<500Mi
        - nodefs.inodesFree<100Mi
        - imagefs.available<100Mi
        - imagefs.inodesFree<100Mi
        eviction-soft-grace-period:
        - memory.available=1m30s
        - nodefs.available=1m30s
        - nodefs.inodesFree=1m30s
        - imagefs.available=1m30s
        - imagefs.inodesFree=1m30s
"""
NO_PID = """\
kubeletArguments:
  eviction-hard:
  - memory.available<500Mi
"""
PRESSURE = """\
apiVersion: v1
kind: Node
metadata: {name: worker}
status:
  capacity: {cpu: 4, memory: 16Gi, pods: 110}
  allocatable: {cpu: 4, memory: 16Gi, pods: 110}
  conditions: [{type: MemoryPressure, status: "True"}]
---
apiVersion: v1
kind: Pod
metadata: {name: best-effort}
spec: {containers: [{name: app, image: app:1}]}
---
apiVersion: v1
kind: Pod
metadata: {name: guaranteed}
spec: {containers: [{name: app, image: app:1, resources: {limits: {cpu: 1, memory: 1Gi}}}]}
"""


@pytest.mark.parametrize("name", ["thresholds", "check"])
def test_the_soft_thresholds_of_disks_as_printed_come_after_the_hard_defaults(command, name):
    """A share and an amount: check took a filesystem of 100Gi, thresholds compared nothing."""
    _, out, _ = command(name, SOFT)

    wrong = {
        "thresholds": r"(\S+): the hard threshold \(\S+\) is crossed before the soft one",
        "check": r"the soft threshold of (\S+), \S+, is not above",
    }
    assert re.findall(wrong[name], out) == ["nodefs.available", "imagefs.available"]


def test_a_filesystem_of_known_size_decides_which_threshold_comes_first(command):
    _, out, _ = command("thresholds", SOFT, "--nodefs-capacity", "2Gi", "--imagefs-capacity", "400Mi")

    assert "is crossed before the soft one" not in out


@pytest.mark.parametrize(
    ("text", "version", "signals"),
    [
        (SOFT, "1.36", "pid.available"),
        (
            NO_PID,
            "1.36",
            "nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree, pid.available",
        ),
    ],
    ids=["defaults", "one signal named"],
)
def test_signals_without_a_threshold_are_named(command, text, version, signals):
    """Source 002 lists pid.available among the five signals, with no default."""
    _, out, _ = command("thresholds", text, "--kubernetes-version", version)

    assert f"\nno threshold: {signals}\n" in out


# qos-reserved: in the document's version it needs no feature gate.

QOS_RESERVED = """\
    kubeletArguments:
      experimental-qos-reserved:
      - 'memory=50%'
"""


def test_qos_reserved_as_printed_has_ceilings_in_its_version_and_nothing_says_otherwise(command):
    code, out, err = command("thresholds", QOS_RESERVED, "--node-memory", "16Gi", "--kubernetes-version", "1.9")

    assert (code, err) == (0, "")
    assert "  Burstable   16Gi minus 50% of what Guaranteed pods request\n" in out


def test_qos_reserved_without_its_gate_has_no_effect_today_and_that_is_said(command):
    code, out, err = command("thresholds", QOS_RESERVED, "--node-memory", "16Gi", "--kubernetes-version", "1.36")

    assert code == 0
    assert "qos-reserved has no effect without featureGates.QOSReserved: true (since 1.11)" in err
    assert "Memory ceilings of the classes" not in out


def test_both_nodes_of_the_oscillation_are_in_one_picture(tmp_path, capsys):
    assert main(["simulate", "soft-eviction", "--svg", str(tmp_path / "both.svg")]) == 0
    capsys.readouterr()

    drawn = (tmp_path / "both.svg").read_text()
    assert all(f">{node}<" in drawn for node in ("steady", "flapping"))


# The node reports its status every node-status-update-frequency, by default 10 s.


@pytest.mark.parametrize(
    ("text", "within"),
    [(NO_PID, "10s"), (f"{NO_PID}  node-status-update-frequency: ['30s']\n", "30s")],
    ids=["by default", "as set"],
)
def test_thresholds_says_when_the_scheduler_sees_pressure(command, text, within):
    _, out, _ = command("thresholds", text)

    assert f"Status      the scheduler sees pressure within {within} (the node's status update)\n" in out


@pytest.mark.parametrize(
    ("version", "repelled"),
    [
        ("1.9", "MemoryPressure repels BestEffort pods, Disk- and PIDPressure every pod"),
        ("1.36", "pressure of any kind repels every pod that doesn't tolerate it"),
    ],
)
def test_thresholds_and_place_agree_about_whom_memory_pressure_repels(command, version, repelled):
    """The document: MemoryPressure keeps BestEffort pods away, DiskPressure all."""
    _, out, _ = command("thresholds", NO_PID, "--kubernetes-version", version)
    _, placed, _ = command("place", PRESSURE, "--kubernetes-version", version, "-o", "json")

    assert f"Scheduling  {repelled}\n" in out
    pending = {each["name"] for each in json.loads(placed)["pods"] if each["status"] == "Pending"}
    assert pending == ({"best-effort"} if version == "1.9" else {"best-effort", "guaranteed"})


# Below its request a container is killed only if the system's daemons need more than is reserved for them.

GUARANTEED = """\
apiVersion: v1
kind: Pod
metadata: {name: within}
spec: {containers: [{name: app, image: app:1, resources: {limits: {cpu: 1, memory: 2Gi}}}]}
"""


@pytest.mark.parametrize(("rate", "by"), [("16Mi/s", "the kubelet evicts"), ("1Gi/s", "the kernel kills")])
def test_a_guaranteed_pod_within_its_request_dies_when_system_daemons_outgrow_their_reservation(
    command, tmp_path, rate, by
):
    """Also source 000: Guaranteed pods are not killed as long as they stay within their limits."""
    (tmp_path / "usage.csv").write_text("pod,memory\nwithin,1800Mi\n")
    (tmp_path / "node.yaml").write_text(
        "kubeletArguments:\n  system-reserved: ['memory=1Gi']\n  eviction-hard: ['memory.available<500Mi']\n"
    )
    node = ("--usage", str(tmp_path / "usage.csv"), "--node-memory", "8Gi")
    growing = ("--growing", "system", "--rate", rate, "--kubelet-config", str(tmp_path / "node.yaml"))

    code, out, _ = command("forecast", GUARANTEED, *node, *growing)

    assert code == 0
    assert f"\n\nSystem daemons grow by {rate}\n" in out
    assert f"{by} default/within" in out
    code, out, _ = command("blast", GUARANTEED, *node, "--growing", "system")
    assert code == 0
    assert "default/within (Guaranteed)" in out


def test_the_shipped_scenario_of_daemons_over_their_reservation_kills_pods_within_their_requests(capsys):
    assert main(["simulate", "system-overrun"]) == 0
    out = capsys.readouterr().out

    assert "It uses 3840Mi, requests 4Gi and has priority 0" in out
    assert "OOM-killed" in out


# A file in OKD's notation, and settings with which no kubelet starts, in every command that reads them.

KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
NO_GRACE = "kubeletArguments:\n  eviction-soft: ['memory.available<500Mi']\n"
NO_CLASSES = f"{KUBELET}cgroupsPerQOS: false\n"
READERS = {
    "explain": ("-v",),
    "rank": (),
    "place": ("--nodes", "1", "--node-capacity", "cpu=4,memory=16Gi"),
    "cpu": ("--cores", "4"),
    "forecast": ("--growing", "within"),
    "blast": (),
}


@pytest.mark.parametrize("name", [*READERS])
@pytest.mark.parametrize(
    ("text", "what"),
    [(NO_GRACE, "grace period must be specified"), (NO_CLASSES, "the kubelet does not start")],
    ids=["a soft threshold without grace", "no cgroups per class"],
)
def test_a_node_that_does_not_start_is_an_error_wherever_its_file_is_read(command, tmp_path, name, text, what):
    (tmp_path / "node.yaml").write_text(text)

    code, out, err = command(name, GUARANTEED, *READERS[name], "--kubelet-config", str(tmp_path / "node.yaml"))

    assert (code, out) == (2, "")
    assert what in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", [*READERS])
def test_a_file_of_okd_says_which_versions_rules_it_gets(capsys, tmp_path, name):
    (tmp_path / "pods.yaml").write_text(GUARANTEED)
    (tmp_path / "node.yaml").write_text(NO_PID)
    files = ["-f", str(tmp_path / "pods.yaml"), "--kubelet-config", str(tmp_path / "node.yaml")]

    assert main([name, *files, *READERS[name]]) == 0
    said = "rules for kubeletArguments (OpenShift 3): those of Kubernetes 1.36 (--kubernetes-version 1.9 for OKD 3.9)"
    assert said in capsys.readouterr().err
    assert main([name, *files, *READERS[name], "--kubernetes-version", "1.9"]) == 0
    assert "rules for kubeletArguments" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (NO_GRACE, "(add memory.available to eviction-soft-grace-period)"),
        ("kubeletArguments:\n  cgroups-per-qos: ['false']\n", '(write enforce-node-allocatable: [""])'),
    ],
    ids=["a soft threshold without grace", "no cgroups per class"],
)
def test_what_keeps_a_node_of_okd_from_starting_is_fixed_in_its_own_notation(command, text, fix):
    code, _, err = command("thresholds", text)

    assert code == 2
    assert err.endswith(f"{fix}\n")
