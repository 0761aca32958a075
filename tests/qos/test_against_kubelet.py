"""The plan held against a real node: what a kubelet v1.36.4 with containerd wrote on cgroup v1 (see recordings)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import pytest

from kernel.shown import shown_for
from podqos.model.pod import Pod, QOSClass
from podqos.model.quantity import Quantity
from podqos.qos.cgroup import Cgroup, Level, node_cgroups, pod_cgroups
from podqos.qos.cgroup_settings import CgroupDriver, CgroupSettings, CgroupVersion
from podqos.qos.classes import classify
from podqos.qos.oom import oom_scores

RECORDINGS = Path(__file__).parent.parent / "recordings" / "kubelet"

# What the kernel shows where nothing was written.
KERNEL_DEFAULTS = {
    "memory.limit_in_bytes": "9223372036854771712",
    "memory.memsw.limit_in_bytes": "9223372036854771712",
    "cpu.shares": "1024",
    "cpu.cfs_quota_us": "-1",
    "cpu.cfs_period_us": "100000",
    "pids.max": "max",
}
PAGE_BYTES = 4096


def recorded(name: str):
    return json.loads(gzip.decompress((RECORDINGS / f"{name}.json.gz").read_bytes()))


def quantities(amounts: dict[str, str]) -> dict[str, Quantity]:
    return {name: Quantity.parse(amount) for name, amount in amounts.items()}


def pods() -> list[Pod]:
    items = recorded("pods")["items"]
    return msgspec.convert(items, list[Pod], dec_hook=lambda _, text: Quantity.parse(text))


def node_settings() -> CgroupSettings:
    """Read the node's settings from its own configuration; none is guessed from the tree."""
    config = recorded("configz")["kubeletconfig"]
    capacity = quantities(recorded("api_node")["status"]["capacity"])
    capacity["pid"] = Quantity.of_units(recorded("stats_summary")["node"]["rlimit"]["maxpid"])
    allocatable = dict(capacity)
    for name, reserved in quantities(config["systemReserved"]).items():
        allocatable[name] -= reserved
    assert config["cpuCFSQuotaPeriod"] == "100ms"
    return CgroupSettings(
        node_memory_bytes=capacity["memory"].value,
        node_capacity=capacity,
        node_allocatable=allocatable,
        enforce_node_allocatable="pods" in config["enforceNodeAllocatable"],
        cgroup_version=CgroupVersion.V1,
        cgroup_driver=CgroupDriver(config["cgroupDriver"]),
        cgroup_root=config["cgroupRoot"],
        cgroups_per_qos=config["cgroupsPerQOS"],
        cpu_cfs_quota=config["cpuCFSQuota"],
        cpu_cfs_period_us=100_000,
        pod_pids_limit=config["podPidsLimit"],
    )


def container_ids(pod: Pod) -> dict[str, str]:
    return {row["container"] or "": row["id"] for row in recorded("cri_requests") if row["pod"] == pod.key}


def plan() -> list[Cgroup]:
    settings, given = node_settings(), pods()
    cgroups = list(node_cgroups(given, settings))
    for pod in given:
        cgroups += pod_cgroups(pod, classify(pod).qos_class, settings, ids=container_ids(pod))
    return cgroups


class TestAgainstKubelet:
    def test_the_class_is_the_recorded_one(self):
        given = pods()
        assert [classify(pod).qos_class for pod in given] == [pod.status.qos_class for pod in given]
        assert {pod.status.qos_class for pod in given} == set(QOSClass)

    def test_the_plan_has_exactly_the_recorded_directories(self):
        """Init containers that have ended are planned, but their directories are gone."""
        root = node_settings().cgroup_root
        ended = {(row["pod"], row["container"]) for row in recorded("cri_requests")}
        ended -= {(row["pod"], row["container"]) for row in recorded("cgroup_tree")}
        assert ended == {("default/sidecar", "once")}
        expected = {root + row["path"] for row in recorded("cgroup_tree") if row["path"] != "/"}
        planned = {cgroup.path for cgroup in plan() if cgroup.container != "once"}
        assert planned == expected

    @pytest.mark.parametrize("level", list(Level))
    def test_memory_cpu_and_pids_of_every_directory(self, level):
        settings = node_settings()
        tree = {settings.cgroup_root + row["path"]: row for row in recorded("cgroup_tree") if row["path"] != "/"}
        compared = 0
        for cgroup in plan():
            if cgroup.level is level and cgroup.container != "once":
                row = tree[cgroup.path]
                shown = {name: cgroup.text(name) or default for name, default in KERNEL_DEFAULTS.items()}
                assert (row["kind"], shown) == (str(level), row["values"]), cgroup.path
                compared += 1
        assert compared == {"node": 1, "qos": 2, "pod": 12, "sandbox": 12, "container": 17}[level]

    def test_the_oci_runtime_is_given_the_planned_path(self):
        planned = {cgroup.path: cgroup.oci_path for cgroup in plan() if cgroup.oci_path}
        assert set(planned.values()) == {row["cgroupsPath"] for row in recorded("cri_requests")}

    def test_the_sandbox_is_sent_to_the_pods_cgroup(self):
        parents = {row["cgroup_parent"] for row in recorded("cri_requests") if row["kind"] == "sandbox"}
        assert parents == {cgroup.path for cgroup in plan() if cgroup.level is Level.POD}

    def test_the_kubelet_asks_for_the_planned_values(self):
        """The request behind each container, the ended init container's too."""
        requests = {row["cgroupsPath"]: row["resources"] for row in recorded("cri_requests")}
        for cgroup in plan():
            if cgroup.level is Level.CONTAINER:
                asked = requests[cgroup.oci_path]
                memory = asked.get("memory_limit_in_bytes")
                assert cgroup.text("cpu.shares") == str(asked["cpu_shares"])
                assert cgroup.text("cpu.cfs_period_us") == str(asked["cpu_period"])
                assert cgroup.text("cpu.cfs_quota_us") == (str(asked["cpu_quota"]) if "cpu_quota" in asked else None)
                assert cgroup.text("memory.limit_in_bytes") == (str(memory) if memory else None)
                assert cgroup.text("memory.memsw.limit_in_bytes") == (str(memory) if memory else None)

    def test_oom_scores_are_those_the_kubelet_asked_for(self):
        capacity_bytes = node_settings().node_memory_bytes
        planned = {
            (pod.key, score.container): score.value
            for pod in pods()
            for score in oom_scores(pod, classify(pod).qos_class, capacity_bytes)
        }
        asked = {
            (row["pod"], row["container"]): row["requested_by_kubelet"]
            for row in recorded("processes")
            if row["kind"] == "container"
        }
        requests = {
            (row["pod"], row["container"]): row["resources"]["oom_score_adj"]
            for row in recorded("cri_requests")
            if row["kind"] == "container"
        }
        assert planned == requests
        assert asked.items() <= planned.items()
        assert len(asked) == 17

    def test_oom_scores_shown_by_the_kernel(self):
        """The processes sleep and use next to nothing: at most a thousandth of the node, one step of the scale."""
        total_pages = node_settings().node_memory_bytes // PAGE_BYTES
        for row in recorded("processes"):
            least = shown_for(row["oom_score_adj"], 0, total_pages)
            most = shown_for(row["oom_score_adj"], total_pages // 1000, total_pages)
            assert least <= row["oom_score"] <= most
            assert most - least <= 1
