from __future__ import annotations

import pytest

from host.nodes import kubelet
from podqos.errors import HostError, InputError
from podqos.host.linux.cgroupfs_v2 import CgroupsV2
from podqos.host.linux.procfs import Procfs
from podqos.host.node.container_starts import LogPolicy
from podqos.host.node.settings import HostSettings, agent_config, read_kubelet_file
from podqos.model.kubelet_ignored import Ignored
from podqos.qos.cgroup_settings import CgroupVersion

MI = 1 << 20


@pytest.fixture
def cgroups(tmp_path):
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids")
    return CgroupsV2(tmp_path, "/podqos")


def _settings(tmp_path, **fields: object) -> HostSettings:
    file = read_kubelet_file("kubelet.yaml", kubelet(**fields))
    return HostSettings(
        node="n",
        manifests=tmp_path,
        state_dir=tmp_path,
        memory_bytes=1024 * MI,
        configuration=file.configuration,
        logs=file.logs,
    )


def test_the_share_is_the_capacity_and_pods_get_what_is_not_reserved(tmp_path, cgroups):
    reserved = {"memory": "100Mi", "cpu": "100m"}
    config = agent_config(
        _settings(tmp_path, systemReserved=reserved, evictionHard={"memory.available": "24Mi"}), cgroups, Procfs()
    )
    assert config.cgroups.node_memory_bytes == 1024 * MI
    assert config.cgroups.node_allocatable["memory"].value == 924 * MI
    assert config.allocatable["memory"].value == 900 * MI
    assert (config.cgroups.cgroup_root, config.cgroups.cgroup_version) == ("/podqos", CgroupVersion.V2)


def test_more_reserved_than_there_is_is_refused(tmp_path, cgroups):
    with pytest.raises(HostError, match="reservations exceed capacity: memory"):
        agent_config(_settings(tmp_path, kubeReserved={"memory": "2Gi"}), cgroups, Procfs())


def test_logs_are_rotated_as_configured(tmp_path):
    assert _settings(tmp_path, containerLogMaxSize="1Mi", containerLogMaxFiles=3).logs == LogPolicy(MI, 3)
    assert _settings(tmp_path).logs == LogPolicy()


def test_the_flags_of_an_okd_node_are_read_like_its_configuration():
    arguments = (
        b"kubeletArguments:\n"
        b'  system-reserved: ["memory=256Mi"]\n'
        b'  eviction-hard: ["memory.available<24Mi"]\n'
        b'  container-log-max-size: ["1Mi"]\n'
        b'  node-labels: ["region=primary"]\n'
    )
    fields = {"systemReserved": {"memory": "256Mi"}, "evictionHard": {"memory.available": "24Mi"}}
    okd, own = read_kubelet_file("node-config.yaml", arguments), read_kubelet_file("k", kubelet(**fields))
    assert okd.configuration == own.configuration
    assert okd.logs == LogPolicy(MI, 5)
    assert okd.ignored == Ignored(flags=("node-labels",))


@pytest.mark.parametrize(
    ("document", "what"),
    [
        (b"", "contains no kubelet configuration"),
        (b"[1]", "contains no kubelet configuration"),
        (kubelet(cgroupsPerQOS=False, enforceNodeAllocatable=[]), "QoS cgroups are required"),
        (kubelet(containerLogMaxFiles=1), "containerLogMaxFiles"),
        (kubelet(evictionHrad={}), "did you mean evictionHard"),
        (
            kubelet(evictionSoft={"memory.available": "1Gi"}),
            "evictionSoft[memory.available]: grace period",
        ),
        (
            b'kubeletArguments: {cgroups-per-qos: ["false"], enforce-node-allocatable: [""]}',
            "kubelet.yaml: kubeletArguments.cgroups-per-qos: QoS cgroups",
        ),
        (b'kubeletArguments: {container-log-max-files: ["1"]}', "kubeletArguments.container-log-max-files: 1"),
    ],
    ids=["empty", "list", "no-qos-cgroups", "one-log", "misspelt", "no-grace", "okd-no-qos-cgroups", "okd-one-log"],
)
def test_a_file_that_makes_no_sense_is_refused_in_one_line(document, what):
    with pytest.raises(InputError) as refused:
        read_kubelet_file("kubelet.yaml", document)
    assert what in str(refused.value)
    assert "\n" not in str(refused.value)
