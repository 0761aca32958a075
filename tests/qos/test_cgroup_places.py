"""What the path of a cgroup says: the inverse of where the kubelet and the runtimes put it."""

from __future__ import annotations

from itertools import product

import pytest

from podqos.model.pod import QOSClass
from podqos.qos.cgroup_paths import (
    CgroupLevel,
    CgroupPlace,
    container_location,
    node_path,
    place_of,
    pod_path,
    qos_path,
)
from podqos.qos.cgroup_settings import CgroupDriver, CgroupSettings, Runtime

UID = "11111111-2222-3333-4444-555555555555"
ID = "0123456789abcdef" * 4
SETTINGS = [
    CgroupSettings(node_memory_bytes=1 << 33, cgroup_driver=driver, runtime=runtime, cgroup_root=root)
    for driver, runtime, root in product(CgroupDriver, Runtime, ("/", "/kubelet"))
]


@pytest.mark.parametrize(
    "settings", SETTINGS, ids=lambda each: f"{each.cgroup_driver}-{each.runtime}{each.cgroup_root}"
)
@pytest.mark.parametrize("qos_class", QOSClass)
def test_every_level_is_recognised_whichever_driver_and_runtime_made_it(settings, qos_class):
    pod = pod_path(UID, qos_class, settings)
    container = container_location(pod, ID, settings).path
    assert place_of(node_path(settings)) == CgroupPlace(CgroupLevel.KUBEPODS)
    if qos_class is not QOSClass.GUARANTEED:
        assert place_of(qos_path(qos_class, settings)) == CgroupPlace(CgroupLevel.CLASS, qos_class)
    assert place_of(pod) == CgroupPlace(CgroupLevel.POD, qos_class, UID)
    expected = CgroupPlace(CgroupLevel.CONTAINER, qos_class, UID, ID)
    assert place_of(container) == expected
    assert place_of(f"{container}/init.scope") == expected, "what a container makes below its own is its own"


@pytest.mark.parametrize(
    ("path", "level"),
    [
        ("/", CgroupLevel.MACHINE),
        ("/system.slice/sshd.service", CgroupLevel.SYSTEM),
        ("/system.slice/docker-" + ID + ".scope", CgroupLevel.SYSTEM),
        ("/docker/" + ID, CgroupLevel.SYSTEM),
        ("/mykubepods", CgroupLevel.SYSTEM),
        ("/user.slice/podman", CgroupLevel.SYSTEM),
        (f"/system.slice/containerd.service/kubepods-burstable-pod{UID.replace('-', '_')}.slice:cri-containerd:{ID}",
         CgroupLevel.CONTAINER),
        (f"/kubepods/burstable/pod{UID}/crio-conmon-{ID}", CgroupLevel.CONTAINER),
        ("/kubepods/pod" + "a" * 32, CgroupLevel.POD),
    ],
)  # fmt: skip
def test_other_paths(path, level):
    assert place_of(path).level is level
