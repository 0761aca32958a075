"""Names and directories of cgroups: both drivers, nested roots, every runtime, and without QoS cgroups."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.model.pod import ObjectMeta, Pod, QOSClass
from podqos.qos.cgroup_paths import (
    UNKNOWN_UID,
    ContainerLocation,
    cgroup_uid,
    container_location,
    node_path,
    pod_path,
    qos_path,
)
from podqos.qos.cgroup_settings import CgroupDriver, CgroupSettings, Runtime

UID = "dba294ab-05fe-4314-a6d0-f9e0b3848104"
GUARANTEED, BURSTABLE, BEST_EFFORT = QOSClass


def node(driver: str = "systemd", root: str = "/", runtime: str = "containerd", *, per_qos: bool = True):
    return CgroupSettings(
        node_memory_bytes=1,
        cgroup_driver=CgroupDriver(driver),
        cgroup_root=root,
        runtime=Runtime(runtime),
        cgroups_per_qos=per_qos,
    )


SYSTEMD_UID = UID.replace("-", "_")


@pytest.mark.parametrize(
    ("driver", "root", "qos_class", "expected"),
    [
        pytest.param(
            "systemd",
            "/",
            BURSTABLE,
            f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SYSTEMD_UID}.slice",
            id="the example of source 004",
        ),
        pytest.param("systemd", "/", GUARANTEED, f"/kubepods.slice/kubepods-pod{SYSTEMD_UID}.slice", id="no tier"),
        pytest.param(
            "systemd",
            "/a-b/c",
            BEST_EFFORT,
            "/a_b.slice/a_b-c.slice/a_b-c-kubepods.slice/a_b-c-kubepods-besteffort.slice"
            f"/a_b-c-kubepods-besteffort-pod{SYSTEMD_UID}.slice",
            id="nested root with a dash",
        ),
        pytest.param("cgroupfs", "", GUARANTEED, f"/kubepods/pod{UID}", id="cgroupfs keeps dashes"),
        pytest.param("cgroupfs", "/myroot", BURSTABLE, f"/myroot/kubepods/burstable/pod{UID}", id="cgroupfs root"),
    ],
)
def test_pod_path(driver, root, qos_class, expected):
    assert pod_path(UID, qos_class, node(driver, root)) == expected


@pytest.mark.parametrize(
    ("driver", "runtime", "name", "given_to_oci"),
    [
        ("systemd", "containerd", "cri-containerd-abc.scope", "kubepods-podu.slice:cri-containerd:abc"),
        ("systemd", "docker", "docker-abc.scope", "kubepods-podu.slice:docker:abc"),
        ("systemd", "cri-o", "crio-abc.scope", "kubepods-podu.slice:crio:abc"),
        ("cgroupfs", "containerd", "abc", "/kubepods/podu/abc"),
        ("cgroupfs", "docker", "abc", "/kubepods/podu/abc"),
        ("cgroupfs", "cri-o", "crio-abc", "/kubepods/podu/crio-abc"),
    ],
)
def test_container_directories_and_what_the_oci_runtime_is_given_differ(driver, runtime, name, given_to_oci):
    settings = node(driver, runtime=runtime)
    parent = pod_path("u", GUARANTEED, settings)
    assert container_location(parent, "abc", settings) == ContainerLocation(f"{parent}/{name}", given_to_oci)


@pytest.mark.parametrize(
    ("driver", "runtime", "path"),
    [
        ("cgroupfs", "containerd", "/k8s.io/abc"),
        ("cgroupfs", "cri-o", "/crio/crio-abc"),
        ("cgroupfs", "docker", "/docker/abc"),
        ("systemd", "cri-o", "/system.slice/crio-abc.scope"),
        ("systemd", "docker", "/system.slice/docker-abc.scope"),
        pytest.param("systemd", "containerd", None, id="containerd with systemd refuses to start it"),
    ],
)
def test_without_qos_cgroups_the_runtime_chooses(driver, runtime, path):
    settings = node(driver, "/myroot", runtime, per_qos=False)
    assert pod_path(UID, BURSTABLE, settings) is None
    assert container_location(None, "abc", settings).path == path


@pytest.mark.parametrize(("driver", "expected"), [("cgroupfs", "/myroot"), ("systemd", "/myroot.slice")])
def test_without_qos_cgroups_all_classes_are_the_root(driver, expected):
    settings = node(driver, "/myroot", per_qos=False)
    assert {node_path(settings), *(qos_path(qos_class, settings) for qos_class in QOSClass)} == {expected}


HASH = "3b5e1b9a3a4c0c9a1d7b0c6f2f6b2a11"
MIRROR = {"kubernetes.io/config.mirror": HASH, "kubernetes.io/config.hash": HASH}


@pytest.mark.parametrize(
    ("uid", "annotations", "expected"),
    [
        pytest.param(UID, {}, UID, id="from the API server"),
        pytest.param("", {}, UNKNOWN_UID, id="a manifest has none"),
        pytest.param(UID, MIRROR, HASH, id="a mirror shows another uid than the static pod's"),
        pytest.param("", {"kubernetes.io/config.source": "file"}, UNKNOWN_UID, id="a static manifest"),
        pytest.param(UID, {"kubernetes.io/config.hash": HASH}, UID, id="the hash alone makes no static pod"),
    ],
)
def test_which_uid_names_the_cgroup(uid, annotations, expected):
    assert cgroup_uid(Pod(metadata=ObjectMeta(uid=uid, annotations=annotations))) == expected


UIDS = st.uuids().map(str)
PODS = st.tuples(UIDS, st.sampled_from(QOSClass))
NODES = st.builds(
    node, st.sampled_from(CgroupDriver), st.sampled_from(("/", "/myroot", "/a-b/c")), st.sampled_from(Runtime)
)


@given(PODS, PODS, NODES)
def test_two_pods_never_share_a_path(one, other, settings):
    assert (pod_path(*one, settings) == pod_path(*other, settings)) == (one == other)


@given(PODS, NODES)
def test_a_pod_lies_in_its_class_and_the_class_in_the_node(pod, settings):
    path = pod_path(*pod, settings)
    assert path is not None
    assert path.rpartition("/")[0] == qos_path(pod[1], settings)
    assert f"{path}/".startswith(f"{node_path(settings)}/")


@given(PODS, st.sampled_from(("/", "/myroot", "/a-b/c")))
def test_a_systemd_slice_repeats_its_parent(pod, root):
    """That is systemd's rule for where a slice lies: ``a-b.slice`` is in ``a.slice``."""
    path = pod_path(*pod, node("systemd", root))
    assert path is not None
    names = [name.removesuffix(".slice") for name in path.split("/")[1:]]
    assert all(child.rpartition("-")[0] == parent for parent, child in itertools.pairwise(names))
