from __future__ import annotations

import pytest

from host.nodes import kubelet
from podqos.errors import HostError, InputError
from podqos.host.cgroupfs_v2 import CgroupsV2
from podqos.host.settings import NodeSettings, agent_config, read_kubelet_file
from podqos.host.world import LogPolicy
from podqos.qos.cgroup_settings import CgroupVersion

MI = 1 << 20


@pytest.fixture
def cgroups(tmp_path):
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids")
    return CgroupsV2(tmp_path, "/podqos")


def _settings(tmp_path, **fields: object) -> NodeSettings:
    file = read_kubelet_file("kubelet.yaml", kubelet(**fields))
    return NodeSettings(
        node="n",
        manifests=tmp_path,
        state_dir=tmp_path,
        memory_bytes=1024 * MI,
        configuration=file.configuration,
        eviction=file.eviction,
        logs=file.logs,
    )


def test_the_share_is_the_capacity_and_pods_get_what_is_not_reserved(tmp_path, cgroups):
    reserved = {"memory": "100Mi", "cpu": "100m"}
    config = agent_config(
        _settings(tmp_path, systemReserved=reserved, evictionHard={"memory.available": "24Mi"}), cgroups
    )
    assert config.cgroups.node_memory_bytes == 1024 * MI
    assert config.cgroups.node_allocatable["memory"].value == 924 * MI
    assert config.allocatable["memory"].value == 900 * MI
    assert (config.cgroups.cgroup_root, config.cgroups.cgroup_version) == ("/podqos", CgroupVersion.V2)


def test_more_reserved_than_there_is_is_refused(tmp_path, cgroups):
    with pytest.raises(HostError, match="more is reserved than there is: memory"):
        agent_config(_settings(tmp_path, kubeReserved={"memory": "2Gi"}), cgroups)


def test_logs_are_rotated_as_configured(tmp_path):
    assert _settings(tmp_path, containerLogMaxSize="1Mi", containerLogMaxFiles=3).logs == LogPolicy(MI, 3)
    assert _settings(tmp_path).logs == LogPolicy()


@pytest.mark.parametrize(
    ("document", "what"),
    [
        (b"", "0 documents"),
        (b"[1]", "not a KubeletConfiguration"),
        (kubelet(cgroupsPerQOS=False, enforceNodeAllocatable=[]), "this node needs QoS cgroups"),
        (kubelet(containerLogMaxFiles=1), "containerLogMaxFiles"),
        (kubelet(evictionHrad={}), "did you mean evictionHard"),
    ],
    ids=["empty", "list", "no-qos-cgroups", "one-log", "misspelt"],
)
def test_a_file_that_makes_no_sense_is_refused_in_one_line(document, what):
    with pytest.raises(InputError) as refused:
        read_kubelet_file("kubelet.yaml", document)
    assert what in str(refused.value)
    assert "\n" not in str(refused.value)
