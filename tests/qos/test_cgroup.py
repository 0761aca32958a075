"""The plan as a whole: directories in order, files for both versions, reasons where nothing is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from msgspec.structs import replace

from admission.pods import amounts, container, pod
from podqos.model.pod import ObjectMeta, Pod
from podqos.qos.cgroup import Cgroup, Level, node_cgroups, pod_cgroups
from podqos.qos.cgroup_settings import CgroupDriver, CgroupSettings, CgroupVersion
from podqos.qos.cgroup_values import Rule
from podqos.qos.classes import classify
from strategies import pods

MI, GI = 2**20, 2**30
NODE = CgroupSettings(node_memory_bytes=64 * GI)
V1 = replace(NODE, cgroup_version=CgroupVersion.V1, cgroup_driver=CgroupDriver.CGROUPFS)
UID = "dba294ab-05fe-4314-a6d0-f9e0b3848104"

# The pod of source 004: qos-demo, one nginx container.
QOS_DEMO = replace(
    pod(container("nginx", requests="cpu=250m,memory=1Gi", limits="cpu=500m,memory=2Gi")),
    metadata=ObjectMeta(name="qos-demo", uid=UID),
)


def plan(given_pod: Pod, settings: CgroupSettings = NODE, **ids: str) -> tuple[Cgroup, ...]:
    return pod_cgroups(given_pod, classify(given_pod).qos_class, settings, ids=ids)


def written(cgroup: Cgroup) -> dict[str, str]:
    return {file.name: file.text for file in cgroup.files if file.text is not None}


def test_source_004_on_cgroup_v2_with_containerd():
    parent, sandbox, nginx = plan(QOS_DEMO, nginx="d009a3ea")
    slices = "/kubepods.slice/kubepods-burstable.slice/"
    assert parent.path == f"{slices}kubepods-burstable-poddba294ab_05fe_4314_a6d0_f9e0b3848104.slice"
    assert (sandbox.level, sandbox.path) == (Level.SANDBOX, f"{parent.path}/cri-containerd-<id>.scope")
    assert nginx.path == f"{parent.path}/cri-containerd-d009a3ea.scope"
    assert nginx.oci_path == "kubepods-burstable-poddba294ab_05fe_4314_a6d0_f9e0b3848104.slice:cri-containerd:d009a3ea"
    assert written(parent) == {"cpu.weight": "10", "cpu.max": "50000 100000", "memory.max": "2147483648"}
    assert written(nginx) == {
        "cpu.weight": "35",
        "cpu.max": "50000 100000",
        "memory.max": "2147483648",
        "memory.swap.max": "0",
        "memory.oom.group": "1",
    }


def test_source_004_on_cgroup_v1():
    parent, sandbox, nginx = plan(QOS_DEMO, V1)
    assert parent.path == f"/kubepods/burstable/pod{UID}"
    assert written(sandbox) == {"cpu.shares": "2"}
    common = {
        "cpu.shares": "256",
        "cpu.cfs_quota_us": "50000",
        "cpu.cfs_period_us": "100000",
        "memory.limit_in_bytes": "2147483648",
    }
    assert written(parent) == common
    assert written(nginx) == common | {"memory.memsw.limit_in_bytes": "2147483648"}


def test_a_file_that_is_not_written_says_why():
    parent, *_ = plan(pod(container("a", limits="memory=1Gi"), container("b")))
    (memory,) = (file for file in parent.files if file.name == "memory.max")
    assert (memory.text, memory.because.rule, memory.because.containers) == (None, Rule.NO_LIMIT, ("b",))


@pytest.mark.parametrize(
    ("settings", "files"),
    [
        pytest.param(NODE, {"cpu.max": "max 100000"}, id="v2"),
        pytest.param(V1, {"cpu.cfs_period_us": "100000"}, id="v1 leaves the quota at -1"),
        pytest.param(replace(NODE, cpu_cfs_quota=False), {}, id="not enforced"),
    ],
)
def test_a_container_without_cpu_limit(settings, files):
    nginx = plan(pod(container(requests="cpu=1")), settings)[-1]
    assert {name: text for name, text in written(nginx).items() if "cfs" in name or name == "cpu.max"} == files


def test_the_runtime_may_convert_shares_on_the_old_line():
    nginx = plan(QOS_DEMO, replace(NODE, weight_conversion="linear"))[-1]
    assert nginx.text("cpu.weight") == "10"


@pytest.mark.parametrize(
    ("settings", "name"), [(NODE, "hugetlb.{}.max"), (V1, "hugetlb.{}.limit_in_bytes")], ids=["v2", "v1"]
)
def test_huge_page_files_carry_the_kernels_spelling_of_the_size(settings, name):
    settings = replace(settings, hugepage_sizes_bytes=(GI, 64 * 1024))
    nginx = plan(pod(container(limits="cpu=1,hugepages-2Mi=4Mi")), settings)[-1]
    found = {file: text for file, text in written(nginx).items() if file.startswith("hugetlb")}
    assert found == {name.format("64KB"): "0", name.format("2MB"): "4194304", name.format("1GB"): "0"}


def test_without_qos_cgroups_only_containers_are_planned_and_asked_for_the_same():
    flat = replace(V1, cgroups_per_qos=False)
    sandbox, nginx = plan(QOS_DEMO, flat, nginx="abc")
    assert (sandbox.level, nginx.path) == (Level.SANDBOX, "/k8s.io/abc")
    assert nginx.files == plan(QOS_DEMO, V1)[-1].files
    assert node_cgroups((QOS_DEMO,), flat) == ()


def test_the_directories_above_the_pods():
    settings = replace(NODE, node_allocatable=amounts("cpu=2,memory=8Gi"), hugepage_sizes_bytes=(2 * MI,))
    node, burstable, best_effort = node_cgroups((QOS_DEMO,), settings)
    assert (node.level, node.path) == (Level.NODE, "/kubepods.slice")
    assert written(node) == {"cpu.weight": "79", "memory.max": "8589934592", "hugetlb.2MB.max": "0"}
    assert burstable.path == "/kubepods.slice/kubepods-burstable.slice"
    assert written(burstable) == {"cpu.weight": "10", "hugetlb.2MB.max": str(2**62)}
    assert best_effort.path == "/kubepods.slice/kubepods-besteffort.slice"
    assert written(best_effort) == {"cpu.weight": "1", "hugetlb.2MB.max": str(2**62)}


@given(pods())
def test_every_directory_of_a_pod_is_its_own(given_pod):
    names = [each.name for each in (*given_pod.spec.containers, *given_pod.spec.init_containers)]
    paths = [cgroup.path for cgroup in plan(given_pod, **{name: f"id-{name}" for name in names})]
    assert len(paths) == len(set(paths)) == len(names) + 2


@given(pods())
def test_both_versions_are_told_the_same_limits(given_pod):
    for old, new in zip(plan(given_pod, V1), plan(given_pod, NODE), strict=True):
        assert old.text("memory.limit_in_bytes") == new.text("memory.max")
        quota, _, period = (new.text("cpu.max") or "").partition(" ")
        assert (old.text("cpu.cfs_quota_us") or "max") == (quota or "max")
        assert (old.text("cpu.cfs_period_us") or "") == period
